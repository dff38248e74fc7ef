//! The filters of system calls: every thread of the daemon has them, and they refuse what they should. The tests stop a thread
//! like a debugger and make it call, like an attacker who controls the thread.
// tidy: allow(target_arch) registers depend on the processor
#![cfg(target_arch = "x86_64")]

mod support;

use nix::libc;
use std::collections::BTreeMap;
use support::made::{Call, answer, is_worker, lasting_threads, threads};
use support::{Daemon, Folder, text, volley};

const CONFIG: &str = "[engine]\nworkers = 2\n[[interface]]\nname = \"pg0\"\nkind = \"pg\"\n";
const REFUSED: i64 = -(libc::EPERM as i64);

const VSOCK: u64 = libc::AF_VSOCK as u64;
const STREAM: u64 = libc::SOCK_STREAM as u64;
const WRITE_AND_EXECUTE: u64 = (libc::PROT_WRITE | libc::PROT_EXEC) as u64;

/// Calls that no thread may make. Without a filter each gives root another result.
const FORBIDDEN: [Call; 19] = [
    ("execve", libc::SYS_execve, [0, 0, 0]),
    ("execveat", libc::SYS_execveat, [u64::MAX, 0, 0]),
    ("fork", libc::SYS_fork, [0, 0, 0]),
    ("clone", libc::SYS_clone, [0, 0, 0]),
    ("ptrace", libc::SYS_ptrace, [u64::MAX, 0, 0]),
    ("kill", libc::SYS_kill, [0, 0, 0]),
    ("process_vm_writev", libc::SYS_process_vm_writev, [0, 0, 0]),
    ("mount", libc::SYS_mount, [0, 0, 0]),
    ("chroot", libc::SYS_chroot, [0, 0, 0]),
    ("unshare", libc::SYS_unshare, [0, 0, 0]),
    ("setns of any kind", libc::SYS_setns, [u64::MAX >> 33, 0, 0]),
    ("setuid", libc::SYS_setuid, [u64::MAX >> 32, 0, 0]),
    ("init_module", libc::SYS_init_module, [0, 0, 0]),
    ("keyctl", libc::SYS_keyctl, [9999, 0, 0]),
    ("io_uring_setup", libc::SYS_io_uring_setup, [0, 0, 0]),
    ("a socket to guests", libc::SYS_socket, [VSOCK, STREAM, 0]),
    (
        "events of all threads",
        libc::SYS_perf_event_open,
        [u64::MAX, u64::MAX, u64::MAX],
    ),
    (
        "events of a processor",
        libc::SYS_perf_event_open,
        [u64::MAX, 0, 0],
    ),
    (
        "writable code",
        libc::SYS_mprotect,
        [1, 0, WRITE_AND_EXECUTE],
    ),
];

/// Calls that only workers may not make, and their result in the other threads.
const FORBIDDEN_TO_WORKERS: [Call; 5] = [
    ("openat", libc::SYS_openat, [u64::MAX, 0, 0]),
    ("socket", libc::SYS_socket, [9999, 0, 0]),
    ("bpf", libc::SYS_bpf, [0, 0, 0]),
    ("unlinkat", libc::SYS_unlinkat, [u64::MAX, 0, 0]),
    (
        "perf_event_open",
        libc::SYS_perf_event_open,
        [u64::MAX, 0, u64::MAX],
    ),
];

/// The number of filters of a thread.
fn filters(status: &BTreeMap<String, String>) -> u32 {
    let number = status.get("Seccomp_filters");
    number.map_or(0, |n| n.parse().unwrap())
}

/// The number of filters of this test, which the daemon inherits.
fn own_filters() -> u32 {
    let own = std::process::id();
    filters(&threads(own)[&(own as i32)])
}

#[test]
fn no_thread_can_make_a_forbidden_call() {
    let mut daemon = Daemon::start(CONFIG, &[]);
    daemon.ok("workers add");
    let (pid, own) = (daemon.pid(), own_filters());
    let all = lasting_threads(pid);
    assert_eq!(all.values().filter(|s| is_worker(s)).count(), 3);
    assert!(all.values().any(|s| s["Name"] == "volley-log"), "{all:?}");
    for (thread, status) in &all {
        let name = &status["Name"];
        let wanted = if is_worker(status) { 3 } else { 2 };
        assert_eq!(status["Seccomp"], "2", "{name}");
        assert_eq!(filters(status) - own, wanted, "{name}");
        assert_eq!(status["NoNewPrivs"], "1", "{name}");
        for call in FORBIDDEN {
            assert_eq!(answer(*thread, call), REFUSED, "{name}: {}", call.0);
        }
        for call in FORBIDDEN_TO_WORKERS {
            let message = answer(*thread, call);
            // In the control thread a socket of family 9999 is refused, too.
            let refused = is_worker(status) || call.0 == "socket";
            assert_eq!(message == REFUSED, refused, "{name}: {} {message}", call.0);
        }
    }
    println!(
        "{} forbidden calls of each of {} threads: all are refused, bar all",
        FORBIDDEN.len(),
        all.len()
    );
    let shown = daemon.json("show process");
    for thread in shown["threads"].as_array().unwrap() {
        assert_eq!(thread["seccomp"], "filter", "{thread}");
        assert_eq!(thread["no_new_privileges"], true, "{thread}");
    }
    assert!(daemon.ok("show process").contains("volley-w2 "));
    // The daemon works as before.
    daemon.ok("set interface state pg0 up");
    daemon.ok("workers del 2");
    daemon.stop("TERM");
}

#[test]
fn without_filters_the_same_calls_get_other_answers() {
    let config = format!("[process]\nseccomp = \"off\"\n{CONFIG}");
    let daemon = Daemon::start(&config, &[]);
    let own = own_filters();
    for (thread, status) in lasting_threads(daemon.pid()) {
        assert_eq!(filters(&status), own, "{}", status["Name"]);
        // Without the calls that a process without capabilities is refused in any case, and without fork, which would succeed.
        for call in FORBIDDEN.iter().filter(|call| {
            ["execve", "ptrace", "io_uring_setup", "a socket to guests"].contains(&call.0)
        }) {
            let message = answer(thread, *call);
            assert_ne!(message, REFUSED, "{}: {}", status["Name"], call.0);
        }
    }
}

#[test]
fn in_mode_log_calls_are_made() {
    let config = format!("[process]\nseccomp = \"log\"\n{CONFIG}");
    let mut daemon = Daemon::start(&config, &[]);
    for (thread, status) in lasting_threads(daemon.pid()) {
        assert_eq!(status["Seccomp"], "2");
        let execve = FORBIDDEN[0];
        let fault = -i64::from(libc::EFAULT);
        assert_eq!(answer(thread, execve), fault, "{}", status["Name"]);
    }
    daemon.ok("set interface state pg0 up");
    daemon.stop("TERM");
}

#[test]
fn the_setting_is_checked() {
    let folder = Folder::new();
    let file = folder.file("volley.toml");
    std::fs::write(&file, "[process]\nseccomp = \"some\"\n").unwrap();
    let output = volley(&["config", "check", file.to_str().unwrap()]);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(
        message.contains(":2:") && message.contains("auto, enforce, log or off"),
        "{message}"
    );
}
