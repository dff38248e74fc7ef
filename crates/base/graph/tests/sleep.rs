//! Sleeping workers: when they may sleep, what wakes them, and how fast.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};
use volley_graph::buf::Pool;
use volley_graph::{
    Cx, Domain, Engine, Isa, NoCounters, Output, Settings, Source, WakeConditions, WorkerThreads,
    nexts,
};

nexts! {
    enum Next { Drop => "error-drop" }
}

/// The state of a source, shared with the test.
#[derive(Default)]
struct Seen {
    /// Whether the source must be polled.
    busy: AtomicBool,
    got: AtomicU64,
    /// The time of the last packet, in nanoseconds since `since`.
    at_ns: AtomicU64,
    /// Entries that arrive without a descriptor.
    inbox: AtomicU64,
}

struct Socket {
    from: UnixStream,
    since: Instant,
    seen: Arc<Seen>,
}

impl Source for Socket {
    const NAME: &'static str = "socket";
    type Next = Next;
    type Count = NoCounters;

    fn poll<I: Isa>(&mut self, _: &Cx<'_, NoCounters>, out: &mut Output<'_, I, Next>) -> usize {
        let inbox = self.seen.inbox.swap(0, SeqCst);
        let n = inbox as usize + self.from.read(&mut [0; 16]).unwrap_or(0);
        if n == 0 {
            return 0;
        }
        self.seen.got.fetch_add(n as u64, SeqCst);
        let at = self.since.elapsed().as_nanos() as u64;
        self.seen.at_ns.store(at, SeqCst);
        out.alloc(n, 0).send(Next::Drop)
    }

    fn may_sleep(&self, _now_ns: u64, idle_ns: u64) -> bool {
        !self.seen.busy.load(SeqCst) && idle_ns > 50_000
    }

    fn arm(&mut self, rest: &mut WakeConditions) -> bool {
        rest.add_fd(&self.from) && self.seen.inbox.load(SeqCst) == 0
    }
}

struct Bench {
    engine: Engine,
    running: WorkerThreads,
    to: UnixStream,
    since: Instant,
    seen: Arc<Seen>,
}

fn bench() -> Bench {
    let pool = Pool::new(1024).unwrap();
    let mut engine = Engine::new(Settings::default(), pool, Domain::new()).unwrap();
    let (from, to) = UnixStream::pair().unwrap();
    from.set_nonblocking(true).unwrap();
    let (since, seen) = (Instant::now(), Arc::new(Seen::default()));
    let theirs = seen.clone();
    engine
        .add_source("socket", move |_| Socket {
            from: from.try_clone().unwrap(),
            since,
            seen: theirs.clone(),
        })
        .unwrap();
    let workers = engine.build().unwrap();
    let running = WorkerThreads::start(workers, &[]).unwrap();
    let bench = Bench {
        engine,
        running,
        to,
        since,
        seen,
    };
    bench.wait(|b| b.engine.sleeps(0) > 0);
    bench
}

impl Bench {
    fn wait(&self, done: impl Fn(&Bench) -> bool) {
        let start = Instant::now();
        while !done(self) {
            assert!(start.elapsed().as_secs() < 20, "it comes");
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// The median time of several packets from `send` to the source.
    fn latency(&mut self, send: impl Fn(&mut Bench)) -> Duration {
        let mut all = Vec::new();
        for _ in 0..21 {
            std::thread::sleep(Duration::from_millis(2));
            let (before, start) = (self.seen.got.load(SeqCst), self.since.elapsed());
            send(self);
            self.wait(|b| b.seen.got.load(SeqCst) > before);
            let at = Duration::from_nanos(self.seen.at_ns.load(SeqCst));
            all.push(at.saturating_sub(start));
        }
        all.sort();
        all[10]
    }
}

#[test]
fn packets_and_wakeups_wake_a_worker_within_a_millisecond() {
    let mut bench = bench();
    let by_packet = bench.latency(|b| b.to.write_all(b"x").unwrap());
    let by_wakeup = bench.latency(|b| {
        b.seen.inbox.store(1, SeqCst);
        b.engine.wake();
    });
    assert!(by_packet < Duration::from_millis(1), "{by_packet:?}");
    assert!(by_wakeup < Duration::from_millis(1), "{by_wakeup:?}");
}

#[test]
fn nobody_waits_for_a_sleeping_worker() {
    let mut bench = bench();
    for round in 0..50 {
        let ticket = bench.engine.domain().epoch();
        bench.wait(|b| b.engine.domain().passed(ticket));
        bench.engine.trace("socket", 0, None).unwrap();
        let start = Instant::now();
        bench.wait(|b| b.engine.settled());
        let took = start.elapsed();
        assert!(took < Duration::from_secs(1), "round {round}: {took:?}");
    }
}

#[test]
fn a_sleeping_worker_costs_little_and_a_polling_one_does_not_sleep() {
    let bench = bench();
    let rounds = |b: &Bench| {
        let before = b.engine.load(0).unwrap().0;
        std::thread::sleep(Duration::from_millis(200));
        b.engine.load(0).unwrap().0 - before
    };
    let asleep = rounds(&bench);
    assert!(asleep < 100, "{asleep} rounds in 200 ms");
    bench.seen.busy.store(true, SeqCst);
    bench.engine.wake();
    bench.wait(|b| b.engine.load(0).unwrap().0 > 1000);
    let sleeps = bench.engine.sleeps(0);
    std::thread::sleep(Duration::from_millis(50));
    assert!(bench.engine.sleeps(0) <= sleeps + 1);
}

#[test]
fn a_sleeping_worker_is_stopped_at_once() {
    let bench = bench();
    let start = Instant::now();
    assert_eq!(bench.running.stop().len(), 1);
    assert!(start.elapsed() < Duration::from_secs(1));
}
