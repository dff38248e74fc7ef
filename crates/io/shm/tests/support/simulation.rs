//! The common part of the simulations of memif and vhost-user peers: random numbers and system calls that fail by seed, virtual
//! time, and the runs over all seeds.
//!
//! `VOLLEY_SEEDS=N` runs so many seeds. A failure prints its seed and the operations; `VOLLEY_SEED=SEED` repeats it.
#![allow(dead_code)]

use rustix::io::Errno;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use volley_shm::calls::{Call, Calls};

/// Seeds of a usual run.
const SEEDS: u64 = 300;
/// Operations of a seed.
const OPERATIONS: usize = 40;
/// Operations between two times at which the calls are sound.
const PERIOD: usize = 10;

/// Numbers from a seed (splitmix64).
pub struct Random(Cell<u64>);

impl Random {
    pub fn below(&self, end: usize) -> usize {
        let state = self.0.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.0.set(state);
        let a = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let b = (a ^ (a >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((b ^ (b >> 31)) % end.max(1) as u64) as usize
    }

    pub fn percent(&self, of: usize) -> bool {
        self.below(100) < of
    }

    /// One of the values.
    pub fn pick<T: Copy>(&self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

/// Each call, with the errors that it may have.
const CALLS: [(Call, &[Errno]); 10] = [
    (Call::Connect, &[Errno::MFILE, Errno::AGAIN, Errno::NOMEM]),
    (Call::Accept, &[Errno::MFILE, Errno::NFILE, Errno::NOBUFS]),
    (
        Call::Send,
        &[Errno::AGAIN, Errno::NOBUFS, Errno::NOMEM, Errno::PIPE],
    ),
    (Call::Receive, &[Errno::AGAIN, Errno::AGAIN, Errno::NOMEM]),
    (Call::ReceiveFile, &[Errno::MFILE]),
    (Call::Watch, &[Errno::NOSPC, Errno::NOMEM]),
    (Call::PeerMemory, &[Errno::NOMEM, Errno::AGAIN]),
    (Call::OwnMemory, &[Errno::NOMEM, Errno::MFILE, Errno::NOSPC]),
    (Call::PeerEvent, &[Errno::NOMEM, Errno::BADF]),
    (Call::OwnEvent, &[Errno::MFILE, Errno::NOMEM]),
];

/// How often something happened, for each call.
type Counts = [u64; CALLS.len()];

/// System calls that fail by seed, and virtual time.
pub struct Faulty {
    random: Random,
    now: Cell<Instant>,
    /// So many of a hundred calls fail.
    percent: Cell<usize>,
    /// Only this call fails; none = all do.
    only: Cell<Option<Call>>,
    made: RefCell<Counts>,
    failed: RefCell<Counts>,
}

impl Faulty {
    /// No call fails from now on.
    pub fn heal(&self) {
        self.percent.set(0);
    }

    /// Let time pass.
    pub fn pass(&self, time: Duration) {
        self.now.set(self.now.get() + time);
    }

    /// So many of a hundred calls fail.
    pub fn percent(&self) -> usize {
        self.percent.get()
    }

    /// Whether each of these calls fails.
    pub fn never(&self, call: Call) -> bool {
        self.percent.get() == 100 && self.only.get().is_none_or(|only| only == call)
    }

    /// How often a call was tried.
    pub fn made(&self, call: Call) -> u64 {
        self.made.borrow()[call as usize]
    }
}

impl Calls for Faulty {
    fn before(&self, call: Call) -> Result<(), Errno> {
        self.made.borrow_mut()[call as usize] += 1;
        let may_fail = self.only.get().is_none_or(|only| only == call);
        if !may_fail || !self.random.percent(self.percent.get()) {
            return Ok(());
        }
        self.failed.borrow_mut()[call as usize] += 1;
        Err(self.random.pick(CALLS[call as usize].1))
    }

    fn now(&self) -> Instant {
        self.now.get()
    }
}

/// What each simulation has.
pub struct Stage {
    pub calls: Rc<Faulty>,
    pub random: Random,
    pub folder: TempDir,
    log: Rc<RefCell<Vec<String>>>,
}

impl Stage {
    fn new(seed: u64, log: &Rc<RefCell<Vec<String>>>) -> Stage {
        let calls = Faulty {
            random: Random(Cell::new(!seed)),
            now: Cell::new(Instant::now()),
            percent: Cell::new(0),
            only: Cell::new(None),
            made: Default::default(),
            failed: Default::default(),
        };
        Stage {
            calls: Rc::new(calls),
            random: Random(Cell::new(seed)),
            folder: tempfile::tempdir().unwrap(),
            log: log.clone(),
        }
    }

    /// A line of the log, which a failure prints.
    pub fn say(&self, text: String) {
        self.log.borrow_mut().push(text);
    }

    /// Choose the calls that fail during the next operation.
    pub fn arm(&self) {
        let percent = self.random.pick(&[0, 10, 30, 50, 100, 100]);
        let only = self.random.percent(70).then(|| self.random.pick(&CALLS).0);
        self.calls.percent.set(percent);
        self.calls.only.set(only);
        self.say(format!("  {percent} % of {only:?} fail"));
    }
}

/// Volley and its peers.
pub trait Simulation {
    fn new(stage: Stage) -> Self;

    fn stage(&self) -> &Stage;

    /// Do one operation while calls fail, then check what must hold at any time.
    fn operate(&mut self);

    /// The calls are sound, the peers behave: check that all interfaces exchange packets. True if one had to come up again.
    fn settle(&mut self) -> bool;
}

/// Runs a seed; the number of calls of each kind that failed, and how often interfaces came up again.
fn run<S: Simulation>(seed: u64) -> Result<(Counts, u64), String> {
    let log = Rc::default();
    let work = || {
        let mut it = S::new(Stage::new(seed, &log));
        let mut recoveries = u64::from(it.settle());
        for at in 1..=OPERATIONS {
            it.stage().arm();
            it.operate();
            if at.is_multiple_of(PERIOD) {
                it.stage().say("settle".into());
                recoveries += u64::from(it.settle());
            }
        }
        let failed = *it.stage().calls.failed.borrow();
        (failed, recoveries)
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

/// Runs all seeds. A seed leaves no file and no shared memory behind, which `resources` counts; each call fails in one of them.
pub fn simulate<S: Simulation>(resources: fn() -> (usize, usize)) {
    for (at, (call, _)) in CALLS.iter().enumerate() {
        assert_eq!(*call as usize, at, "the order of the calls");
    }
    let small = std::env::var_os("VOLLEY_SMALL").map(|_| SEEDS / 20);
    let many = number("VOLLEY_SEEDS").or(small).unwrap_or(SEEDS);
    let one = number("VOLLEY_SEED");
    let seeds = one.map_or(0..many, |seed| seed..seed + 1);
    let (mut sums, mut recoveries, mut open) = (Counts::default(), 0, None);
    for seed in seeds {
        let (failed, more) = run::<S>(seed).unwrap_or_else(|failure| panic!("{failure}"));
        sums.iter_mut()
            .zip(failed)
            .for_each(|(sum, more)| *sum += more);
        recoveries += more;
        // The first seed opens what the process keeps, such as completions of event counters.
        let now = resources();
        let before = *open.get_or_insert(now);
        assert_eq!(before, now, "files and maps after seed {seed}");
    }
    let all: u64 = sums.iter().sum();
    println!(
        "{many} seeds, {all} calls failed ({sums:?}), interfaces came up again {recoveries} times: 0 seeds fail, bar 0"
    );
    assert!(one.is_some() || sums.iter().all(|n| *n > 0), "{sums:?}");
    assert!(recoveries > 0);
}
