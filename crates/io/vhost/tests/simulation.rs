//! A simulation of vhost-user and virtio-user peers over system calls that fail or have nothing yet, from a seed: no real time,
//! no other process.
//!
//! Volley has two back ends and two front ends, which are each other's peers; a stranger connects now and then, says nothing
//! or nonsense, and goes. After each operation each interface is up, or down with a reason. When the calls are sound again, all
//! interfaces come up, and each gets every frame that its peer sends. Every buffer, file and map is free again at the end.
//!
//! `VOLLEY_SEEDS=N` runs so many seeds. A failure prints its seed and the operations; `VOLLEY_SEED=SEED` repeats it.

mod support;

use rustix::io::Errno;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};
use support::{Bench, back_end, frame, front_end, resources, spec};
use volley_graph::Level;
use volley_iface::AdminState;
use volley_vhost::calls::{Call, Calls};
use volley_vhost::model::{SocketRole, VirtioUser};
use volley_vhost::protocol::{Link, connect};

/// Seeds of a usual run.
const SEEDS: u64 = 300;
/// Operations of a seed.
const OPERATIONS: usize = 40;
/// Virtual time of a round.
const ROUND: Duration = Duration::from_millis(25);
/// Most rounds of an operation.
const ROUNDS: usize = 30;
/// Rounds until everything is up.
const PATIENCE: usize = 400;
/// The interfaces: each back end is followed by its front end. The first back end listens, the second one connects.
const NAMES: [&str; 4] = ["dev0", "drv0", "dev1", "drv1"];

/// Numbers from a seed (splitmix64).
struct Random(Cell<u64>);

impl Random {
    fn below(&self, end: usize) -> usize {
        let state = self.0.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.0.set(state);
        let a = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let b = (a ^ (a >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((b ^ (b >> 31)) % end.max(1) as u64) as usize
    }

    fn percent(&self, of: usize) -> bool {
        self.below(100) < of
    }
}

/// Each call, with the errors that it may have.
const CALLS: [(Call, &[Errno]); 9] = [
    (Call::Connect, &[Errno::MFILE, Errno::AGAIN, Errno::NOMEM]),
    (Call::Accept, &[Errno::MFILE, Errno::NFILE, Errno::NOBUFS]),
    (Call::Send, &[Errno::AGAIN, Errno::NOBUFS, Errno::PIPE]),
    (Call::Receive, &[Errno::AGAIN, Errno::AGAIN, Errno::NOMEM]),
    (Call::Watch, &[Errno::NOSPC, Errno::NOMEM]),
    (Call::PeerMemory, &[Errno::NOMEM, Errno::AGAIN]),
    (Call::OwnMemory, &[Errno::NOMEM, Errno::MFILE, Errno::NOSPC]),
    (Call::PeerEvent, &[Errno::NOMEM, Errno::BADF]),
    (Call::OwnEvent, &[Errno::MFILE, Errno::NOMEM]),
];

/// System calls that fail by seed.
struct Faulty {
    random: Random,
    now: Cell<Instant>,
    /// So many of a hundred calls fail.
    percent: Cell<usize>,
    /// Only this call fails; none = all do.
    only: Cell<Option<Call>>,
    failed: RefCell<[u64; CALLS.len()]>,
}

impl Calls for Faulty {
    fn before(&self, call: Call) -> Result<(), Errno> {
        let may_fail = self.only.get().is_none_or(|only| only == call);
        if !may_fail || !self.random.percent(self.percent.get()) {
            return Ok(());
        }
        self.failed.borrow_mut()[call as usize] += 1;
        let (_, errors) = CALLS[call as usize];
        Err(errors[self.random.below(errors.len())])
    }

    fn now(&self) -> Instant {
        self.now.get()
    }
}

/// What one seed does.
struct Simulation {
    bench: Bench,
    calls: Rc<Faulty>,
    random: Random,
    options: VirtioUser,
    sockets: [PathBuf; 2],
    exists: [bool; NAMES.len()],
    stranger: Option<Link>,
    number: u32,
    /// How often interfaces had to come up again.
    recoveries: u64,
    log: Rc<RefCell<Vec<String>>>,
    _folder: tempfile::TempDir,
}

impl Simulation {
    fn new(seed: u64, log: &Rc<RefCell<Vec<String>>>) -> Simulation {
        let folder = tempfile::tempdir().unwrap();
        let calls = Rc::new(Faulty {
            random: Random(Cell::new(!seed)),
            now: Cell::new(Instant::now()),
            percent: Cell::new(0),
            only: Cell::new(None),
            failed: Default::default(),
        });
        let random = Random(Cell::new(seed));
        let option = || random.percent(50);
        let options = VirtioUser {
            packed: option(),
            event_idx: option(),
            gso: option(),
            ring: 64,
            ..spec(folder.path(), SocketRole::Client)
        };
        Simulation {
            bench: Bench::with_calls(Level::detect(), 64, calls.clone()),
            calls,
            random,
            options,
            sockets: ["a", "b"].map(|name| folder.path().join(name)),
            exists: [false; NAMES.len()],
            stranger: None,
            number: 0,
            recoveries: 0,
            log: log.clone(),
            _folder: folder,
        }
    }

    fn say(&self, text: String) {
        self.log.borrow_mut().push(text);
    }

    fn round(&mut self) {
        self.calls.now.set(self.calls.now.get() + ROUND);
        self.bench.step();
    }

    fn create(&mut self, at: usize) {
        let listens = matches!(at, 0 | 3);
        let kind = VirtioUser {
            socket: self.sockets[at / 2].clone(),
            role: match listens {
                true => SocketRole::Server,
                false => SocketRole::Client,
            },
            ..self.options.clone()
        };
        let kind = match at % 2 {
            0 => back_end(kind),
            _ => front_end(kind),
        };
        self.bench.create(NAMES[at], kind).unwrap();
        self.exists[at] = true;
    }

    /// The faults of the next operation.
    fn arm(&mut self) {
        let percent = [0, 10, 30, 50, 100, 100][self.random.below(6)];
        let only = self.random.percent(70);
        let only = only.then(|| CALLS[self.random.below(CALLS.len())].0);
        self.calls.percent.set(percent);
        self.calls.only.set(only);
        self.say(format!("  {percent} % of {only:?} fail"));
    }

    fn operate(&mut self) {
        self.arm();
        let (at, what) = (self.random.below(NAMES.len()), self.random.below(10));
        self.say(format!("{what} for {}", NAMES[at]));
        match what {
            0 | 1 if self.exists[at] => {
                self.bench.delete(NAMES[at]);
                self.exists[at] = false;
            }
            0 | 1 => self.create(at),
            2 | 3 if self.exists[at] => {
                let is_up = self.random.percent(70);
                let state = [AdminState::Down, AdminState::Up][usize::from(is_up)];
                self.bench.up(NAMES[at], state);
            }
            4 | 5 if self.exists[at] => {
                let frames = (0..20).map(|n| frame(60 + n as usize * 60, n));
                self.bench.send(NAMES[at], frames);
            }
            6 => self.stranger = connect(&self.sockets[at / 2]).ok(),
            7 => self.stranger = None,
            8 => {
                let pause = Duration::from_millis(self.random.below(5000) as u64);
                self.calls.now.set(self.calls.now.get() + pause);
            }
            _ => {}
        }
        for _ in 0..self.random.below(ROUNDS) {
            if let Some(stranger) = &self.stranger
                && self.random.percent(20)
            {
                let nonsense: Vec<u8> = (0..24).map(|_| self.random.below(8) as u8).collect();
                let _ = stranger.send(&nonsense, &[]);
            }
            self.round();
        }
        self.calls.percent.set(0);
        self.check();
    }

    /// What must hold at any time.
    fn check(&mut self) {
        for _ in 0..4 {
            self.bench.step_worker();
        }
        self.bench.got();
        let held = self.bench.pool.report().in_use();
        assert_eq!(held, 0, "buffers that did not come back");
        for at in (0..NAMES.len()).filter(|at| self.exists[*at]) {
            let (row, reason) = (self.bench.show(NAMES[at]), self.bench.reason(NAMES[at]));
            let is_ready = row.state.ends_with("queue pairs");
            assert_eq!(
                is_ready,
                reason.is_empty(),
                "{}: {row:?} {reason}",
                NAMES[at]
            );
        }
    }

    /// The calls are sound, the stranger is gone: all interfaces exchange frames.
    fn settle(&mut self) {
        self.say("settle".into());
        self.stranger = None;
        for at in (0..NAMES.len())
            .filter(|at| !self.exists[*at])
            .collect::<Vec<_>>()
        {
            self.create(at);
        }
        for name in NAMES {
            self.bench.up(name, AdminState::Up);
        }
        let mut rounds = 0;
        while !NAMES.iter().all(|name| self.bench.is_up(name)) {
            let reasons = NAMES.map(|name| self.bench.reason(name));
            assert!(rounds < PATIENCE, "not up again: {reasons:?}");
            self.recoveries += u64::from(rounds == 0);
            rounds += 1;
            self.round();
        }
        for _ in 0..4 {
            self.round();
        }
        self.bench.got();
        for at in 0..NAMES.len() {
            self.number += 1;
            let wanted = frame(60 + self.number as usize % 1400, self.number);
            let peer = self.bench.index(NAMES[at ^ 1]);
            self.bench.send(NAMES[at], [wanted.clone()]);
            for _ in 0..6 {
                self.round();
            }
            let got = self.bench.got();
            assert!(
                got == [(peer, wanted)],
                "{}: {} frames",
                NAMES[at],
                got.len()
            );
        }
        self.check();
    }
}

/// Runs a seed; the number of calls of each kind that failed, and how often interfaces came up again.
fn run(seed: u64) -> Result<([u64; CALLS.len()], u64), String> {
    let log = Rc::default();
    let work = || {
        let mut simulation = Simulation::new(seed, &log);
        simulation.settle();
        for at in 1..=OPERATIONS {
            simulation.operate();
            if at.is_multiple_of(10) {
                simulation.settle();
            }
        }
        let failed = *simulation.calls.failed.borrow();
        (failed, simulation.recoveries)
    };
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let why = text.or_else(|| panic.downcast_ref::<&str>().copied());
        let why = why.unwrap_or("a panic without a text");
        let operations = log.borrow().join("\n");
        format!("seed {seed} fails (VOLLEY_SEED={seed} repeats it): {why}\nafter these operations:\n{operations}")
    })
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[test]
fn an_interface_is_up_or_says_why_not_whatever_fails() {
    for (at, (call, _)) in CALLS.iter().enumerate() {
        assert_eq!(*call as usize, at, "the order of the calls");
    }
    let small = std::env::var_os("VOLLEY_SMALL").map(|_| SEEDS / 20);
    let many = number("VOLLEY_SEEDS").or(small).unwrap_or(SEEDS);
    let seeds = match number("VOLLEY_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..many,
    };
    let (mut sums, mut recoveries, mut open) = ([0; CALLS.len()], 0, None);
    for seed in seeds {
        match run(seed) {
            Ok((failed, more)) => {
                sums.iter_mut()
                    .zip(failed)
                    .for_each(|(sum, more)| *sum += more);
                recoveries += more;
            }
            Err(failure) => panic!("{failure}"),
        }
        // The first seed opens what the process keeps, such as completions of event counters.
        let now = resources();
        assert_eq!(
            *open.get_or_insert(now),
            now,
            "files and maps after seed {seed}"
        );
    }
    println!("calls that failed: {sums:?}, interfaces came up again {recoveries} times");
    let is_one = number("VOLLEY_SEED").is_some();
    assert!(is_one || sums.iter().all(|failed| *failed > 0), "{sums:?}");
    assert!(recoveries > 0);
}
