//! Threads of a process, and system calls that a thread is made to make: the test stops the thread like a debugger, and acts like
//! an attacker who controls the thread.

use nix::libc;
use nix::sys::ptrace;
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;
use std::collections::BTreeMap;
use std::time::Duration;

/// The machine code of `syscall`.
const INSTRUCTION: i64 = 0x050f;
/// Distance from the stack pointer to the bytes that a call names: the thread does not use this part of its stack.
const BELOW: u64 = 1024;
/// An argument that is the address of the bytes.
pub const BYTES: u64 = 0x5bad_5bad_5bad;

/// Number and arguments of a system call.
pub type Call = (&'static str, libc::c_long, [u64; 3]);

/// Of each thread: its id, and the fields of its `/proc` status.
pub fn threads(pid: u32) -> BTreeMap<i32, BTreeMap<String, String>> {
    let pair = |line: &str| {
        let (key, value) = line.split_once(':')?;
        Some((key.to_owned(), value.trim().to_owned()))
    };
    let of = |task: std::fs::DirEntry| {
        let number = task.file_name().into_string().ok()?.parse().ok()?;
        let text = std::fs::read_to_string(task.path().join("status")).ok()?;
        Some((number, text.lines().filter_map(pair).collect()))
    };
    let all = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    all.flatten().filter_map(of).collect()
}

/// The same, once the helper threads have ended, which live briefly without work.
pub fn lasting_threads(pid: u32) -> BTreeMap<i32, BTreeMap<String, String>> {
    for _ in 0..500 {
        let all = threads(pid);
        if !all
            .values()
            .any(|status| status["Name"].starts_with("tokio"))
        {
            return all;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("helper threads do not end");
}

pub fn is_worker(status: &BTreeMap<String, String>) -> bool {
    status["Name"].starts_with("volley-w")
}

fn wait_for(thread: Pid) {
    waitpid(thread, Some(WaitPidFlag::__WALL)).unwrap();
}

/// Writes bytes into the memory of a stopped thread.
fn place(thread: Pid, at: u64, bytes: &[u8]) {
    for (i, part) in bytes.chunks(8).enumerate() {
        let mut word = [0; 8];
        word[..part.len()].copy_from_slice(part);
        let at = at + 8 * i as u64;
        ptrace::write(thread, at as ptrace::AddressType, i64::from_le_bytes(word)).unwrap();
    }
}

/// The result of a call that a thread sleeping in a system call is made to make; none if it is not asleep.
fn made_by(thread: i32, (_, number, arguments): Call, bytes: &[u8]) -> Option<i64> {
    let thread = Pid::from_raw(thread);
    ptrace::attach(thread).unwrap();
    wait_for(thread);
    let before = ptrace::getregs(thread).unwrap();
    let at = before.rip - 2;
    let word = ptrace::read(thread, at as ptrace::AddressType).unwrap();
    let mut result = None;
    if word & 0xffff == INSTRUCTION {
        let mut registers = before;
        registers.rip = at;
        // The interrupted call must not be restarted.
        registers.orig_rax = u64::MAX;
        registers.rax = number as u64;
        let memory = (before.rsp - BELOW) & !7;
        place(thread, memory, bytes);
        let argument = |it| if it == BYTES { memory } else { it };
        [registers.rdi, registers.rsi, registers.rdx] = arguments.map(argument);
        [registers.r10, registers.r8, registers.r9] = [0; 3];
        ptrace::setregs(thread, registers).unwrap();
        ptrace::step(thread, None).unwrap();
        wait_for(thread);
        result = Some(ptrace::getregs(thread).unwrap().rax as i64);
        ptrace::setregs(thread, before).unwrap();
    }
    ptrace::detach(thread, None).unwrap();
    result
}

/// The result of a call that a thread is made to make.
pub fn answer(thread: i32, call: Call) -> i64 {
    answer_with(thread, call, &[])
}

/// The same for a call with an argument [`BYTES`], the address of these bytes and a zero byte.
pub fn answer_with(thread: i32, call: Call, bytes: &[u8]) -> i64 {
    let bytes = [bytes, &[0]].concat();
    let tries = (0..500).find_map(|_| {
        made_by(thread, call, &bytes).or_else(|| {
            std::thread::sleep(Duration::from_millis(10));
            None
        })
    });
    tries.expect("the thread does not sleep")
}
