//! Single-steps workers: the next worker is chosen at random while the others are stopped, so the order of all memory
//! accesses is known.

use super::code::{Code, is_own};
use super::decode::{Decoded, Kind, LONGEST};
use super::lines::{By, Lines, NOWHERE, Place, PlaceId, WORKERS};
use super::meant::Meant;
use iced_x86::InstructionInfoFactory;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// Maximum number of consecutive instructions of one worker.
const TURN: u64 = 400;
/// Time limit for one instruction outside the kernel, and for stopping a thread.
const PATIENCE: Duration = Duration::from_secs(5);

/// A worker's thread.
struct Thread {
    id: Pid,
    worker: usize,
    /// Whether the thread is in the kernel.
    away: bool,
    /// Signal to deliver when the thread continues.
    signal: Option<Signal>,
    /// Calls that have not returned: the caller's address, and the stack address of the return address.
    calls: Vec<(u64, u64)>,
    steps: u64,
}

/// Decoded instructions, with their code place if that does not depend on the caller.
struct Known {
    decoded: Decoded,
    place: Option<PlaceId>,
}

/// The stopped workers of a process.
pub struct Stepper<'a> {
    threads: Vec<Thread>,
    memory: File,
    pub code: Code,
    known: HashMap<u64, Known>,
    factory: InstructionInfoFactory,
    meant: &'a [Meant],
    pub places: Vec<Place>,
    numbers: HashMap<Place, PlaceId>,
    pub lines: Lines,
    /// Number of accesses with unknown addresses.
    pub unknown: u64,
    rng: u64,
}

/// Threads of a process whose name is `PREFIX` and a number.
fn tasks(pid: u32, prefix: &str) -> Vec<(usize, Pid)> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task"));
    let mut found: Vec<(usize, Pid)> = tasks
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|task| {
            let comm = std::fs::read_to_string(task.path().join("comm")).ok()?;
            let worker = comm.trim_end().strip_prefix(prefix)?.parse().ok()?;
            let id: i32 = task.file_name().to_str()?.parse().ok()?;
            Some((worker, Pid::from_raw(id)))
        })
        .collect();
    found.sort_unstable();
    found
}

impl<'a> Stepper<'a> {
    /// Stops the threads of a process whose name is `prefix` and a number.
    pub fn attach(pid: u32, prefix: &str, meant: &'a [Meant]) -> Result<Self, String> {
        let failed = |what: &str, why: &dyn std::fmt::Display| format!("{what}: {why}");
        let found = tasks(pid, prefix);
        if !(2..=WORKERS).contains(&found.len()) {
            return Err(format!(
                "process {pid} has {} threads {prefix}N",
                found.len()
            ));
        }
        let path = format!("/proc/{pid}/mem");
        let memory = File::open(&path).map_err(|e| failed(&path, &e))?;
        let path = format!("/proc/{pid}/maps");
        let maps = std::fs::read_to_string(&path).map_err(|e| failed(&path, &e))?;
        let mut stepper = Stepper {
            threads: Vec::new(),
            memory,
            code: Code::new(&maps),
            known: HashMap::new(),
            factory: InstructionInfoFactory::new(),
            meant,
            places: vec![Place::default()],
            numbers: HashMap::new(),
            lines: Lines::default(),
            unknown: 0,
            rng: 0x9e37_79b9_7f4a_7c15,
        };
        for (worker, id) in found {
            ptrace::seize(id, ptrace::Options::empty()).map_err(|e| failed("ptrace", &e))?;
            stepper.threads.push(Thread {
                id,
                worker,
                away: true,
                signal: None,
                calls: Vec::new(),
                steps: 0,
            });
            ptrace::interrupt(id).map_err(|e| failed("ptrace", &e))?;
        }
        stepper.gather()?;
        stepper.share_a_core();
        Ok(stepper)
    }

    /// Pins the stepper and the workers to one core: waking a thread on another core takes ten times as long. If pinning
    /// is refused, stepping is only slower.
    fn share_a_core(&self) {
        let me = Pid::from_raw(0);
        let Ok(mine) = sched_getaffinity(me) else {
            return;
        };
        let mut cores = (0..CpuSet::count()).rev();
        let Some(last) = cores.find(|c| mine.is_set(*c) == Ok(true)) else {
            return;
        };
        let mut one = CpuSet::new();
        if one.set(last).is_err() {
            return;
        }
        let threads = self.threads.iter().map(|t| t.id);
        for thread in threads.chain([me]) {
            let _ = sched_setaffinity(thread, &one);
        }
    }

    /// Waits until every thread is stopped.
    fn gather(&mut self) -> Result<(), String> {
        let start = Instant::now();
        while !self.threads.iter_mut().all(|t| t.is_back()) {
            if start.elapsed() > PATIENCE {
                return Err("a worker does not stop".into());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Number of instructions of each worker so far.
    pub fn steps(&self) -> Vec<(usize, u64)> {
        self.threads.iter().map(|t| (t.worker, t.steps)).collect()
    }

    fn draw(&mut self, sides: u64) -> u64 {
        self.rng ^= self.rng << 13;
        self.rng ^= self.rng >> 7;
        self.rng ^= self.rng << 17;
        self.rng % sides
    }

    /// Steps this number of instructions in total, or until the time limit.
    pub fn run(&mut self, steps: u64, limit: Duration) -> Result<(), String> {
        let (start, mut done) = (Instant::now(), 0);
        while done < steps && start.elapsed() < limit {
            let nth = self.draw(self.threads.len() as u64) as usize;
            let turn = 1 + self.draw(TURN);
            if !self.threads[nth].is_back() {
                std::thread::sleep(Duration::from_micros(50));
                continue;
            }
            for _ in 0..turn {
                if !self.step(nth)? {
                    break;
                }
                done += 1;
            }
        }
        Ok(())
    }

    /// Steps one instruction of a thread; false if the thread has entered the kernel.
    fn step(&mut self, nth: usize) -> Result<bool, String> {
        let id = self.threads[nth].id;
        let failed = |e: nix::Error| format!("thread {id}: {e}");
        let registers = ptrace::getregs(id).map_err(failed)?;
        let kind = self.look(nth, &registers)?;
        let thread = &mut self.threads[nth];
        ptrace::step(id, thread.signal.take()).map_err(failed)?;
        thread.steps += 1;
        if kind == Kind::System {
            thread.away = true;
            return Ok(thread.is_back());
        }
        let status = waitpid(id, Some(WaitPidFlag::__WALL)).map_err(failed)?;
        thread.stopped(status)?;
        Ok(true)
    }

    /// Records the accesses of a thread's next instruction.
    fn look(
        &mut self,
        nth: usize,
        registers: &nix::libc::user_regs_struct,
    ) -> Result<Kind, String> {
        let ip = registers.rip;
        if !self.known.contains_key(&ip) {
            let known = self.learn(ip)?;
            self.known.insert(ip, known);
        }
        let thread = &mut self.threads[nth];
        while thread
            .calls
            .last()
            .is_some_and(|(_, at)| *at < registers.rsp)
        {
            thread.calls.pop();
        }
        let place = match self.known[&ip].place {
            Some(place) => place,
            None => self.place_of_caller(nth),
        };
        let thread = &mut self.threads[nth];
        let known = &self.known[&ip];
        let calls = &thread.calls;
        let stack = || {
            let callers = calls.iter().rev().map(|(from, _)| *from);
            std::iter::once(ip).chain(callers).collect()
        };
        let by = By {
            worker: thread.worker,
            place,
            is: &self.places[place as usize],
            stack: &stack,
        };
        let lines = &mut self.lines;
        let unknown = known.decoded.accesses(registers, |a| lines.touch(a, &by));
        self.unknown += unknown as u64;
        if known.decoded.kind == Kind::Call {
            thread
                .calls
                .push((known.decoded.next - 1, registers.rsp - 8));
        }
        Ok(known.decoded.kind)
    }

    fn learn(&mut self, ip: u64) -> Result<Known, String> {
        let mut bytes = [0; LONGEST];
        let n = self.memory.read_at(&mut bytes, ip);
        let n = n.map_err(|e| format!("code at {ip:#x}: {e}"))?;
        let decoded = Decoded::new(&bytes[..n], ip, &mut self.factory)
            .ok_or_else(|| format!("no instruction at {ip:#x}"))?;
        let place = self.place(ip);
        Ok(Known { decoded, place })
    }

    /// The innermost function of this workspace at an address.
    fn place(&mut self, ip: u64) -> Option<PlaceId> {
        let frames = self.code.frames(ip);
        let own = frames.iter().find(|f| is_own(f))?;
        let meant = self
            .meant
            .iter()
            .position(|m| m.has(&own.function, &own.place));
        let place = Place {
            function: own.function.clone(),
            at: own.place.clone(),
            meant,
            orders: meant.is_some_and(|m| self.meant[m].orders),
        };
        let places = &mut self.places;
        let next = places.len() as PlaceId;
        Some(*self.numbers.entry(place.clone()).or_insert_with(|| {
            places.push(place);
            next
        }))
    }

    /// The code place of the caller of the present function.
    fn place_of_caller(&mut self, nth: usize) -> PlaceId {
        for at in (0..self.threads[nth].calls.len()).rev() {
            let (from, _) = self.threads[nth].calls[at];
            if let Some(place) = self.place(from) {
                return place;
            }
        }
        NOWHERE
    }
}

impl Drop for Stepper<'_> {
    /// Detaches from the threads.
    fn drop(&mut self) {
        for thread in self.threads.iter().filter(|t| t.away) {
            let _ = ptrace::interrupt(thread.id);
        }
        let _ = self.gather();
        for thread in &self.threads {
            let _ = ptrace::detach(thread.id, thread.signal);
        }
    }
}

impl Thread {
    /// Whether the thread is stopped.
    fn is_back(&mut self) -> bool {
        if !self.away {
            return true;
        }
        let flags = WaitPidFlag::__WALL | WaitPidFlag::WNOHANG;
        match waitpid(self.id, Some(flags)) {
            Ok(WaitStatus::StillAlive) => false,
            Ok(status) => self.stopped(status).is_ok(),
            Err(_) => false,
        }
    }

    fn stopped(&mut self, status: WaitStatus) -> Result<(), String> {
        match status {
            WaitStatus::Stopped(_, Signal::SIGTRAP) | WaitStatus::PtraceEvent(..) => {}
            WaitStatus::Stopped(_, signal) => self.signal = Some(signal),
            other => return Err(format!("worker {}: {other:?}", self.worker)),
        }
        self.away = false;
        Ok(())
    }
}
