//! The calls of a worker in a round: sources with queues, stages with packets; and the cost of its rounds.

use crossbeam_queue::ArrayQueue;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use volley_graph::buf::Pool;
use volley_graph::*;

nexts! { enum Next { Keep => "keeper" } }
nexts! { enum Out { Drop => "error-drop" } }

/// The number of calls of nodes, and whether a source has a queue.
#[derive(Default)]
struct Seen {
    polls: AtomicU64,
    releases: AtomicU64,
    has_queue: AtomicBool,
}

/// Sends as many packets as an entry of its inbox requests, and is polled while it has a queue.
struct Receiver {
    seen: Arc<Seen>,
    inbox: Arc<ArrayQueue<usize>>,
}

impl Source for Receiver {
    const NAME: &'static str = "receiver";
    type Next = Next;
    type Count = NoCounters;

    fn poll<I: Isa>(&mut self, _: &Cx<'_, NoCounters>, out: &mut Output<'_, I, Next>) -> usize {
        self.seen.polls.fetch_add(1, Relaxed);
        let n = self.inbox.pop().unwrap_or(0);
        if n == 0 {
            return 0;
        }
        out.alloc(n, 0).send(Next::Keep)
    }

    fn is_vacant(&self) -> bool {
        !self.seen.has_queue.load(Relaxed) && self.inbox.is_empty()
    }

    fn may_sleep(&self, _: u64, _: u64) -> bool {
        true
    }

    /// Does not check the inbox: only the notification wakes the worker.
    fn arm(&mut self, _: &mut WakeConditions) -> bool {
        true
    }
}

/// Holds every vector for one round.
struct Keeper {
    seen: Arc<Seen>,
    held: Vec<(Batch, bool)>,
    one: Column,
}

impl Node for Keeper {
    const NAME: &'static str = "keeper";
    type Next = Out;
    type Count = NoCounters;
    type Trace = PacketTrace;

    #[inline(always)]
    fn run<I: Isa>(&mut self, _: &Cx<'_, NoCounters>, v: Vector<'_, I, Out>) -> Consumed {
        let (held, one) = (&mut self.held, &mut self.one);
        one.words_mut(v.len()).fill(0);
        v.classify(one, |_, _, batch| held.push((batch, false)))
    }
}

impl Stage for Keeper {
    fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    fn release<I: Isa>(&mut self, _: &Cx<'_, NoCounters>, out: &mut Output<'_, I, Out>) -> usize {
        self.seen.releases.fetch_add(1, Relaxed);
        let old = self.held.iter().position(|(_, old)| *old);
        let sent = old.map_or(0, |at| out.send_batch(self.held.remove(at).0, Out::Drop));
        if sent == 0 {
            self.held.iter_mut().for_each(|(_, old)| *old = true);
        }
        sent
    }
}

struct Bench {
    engine: Engine,
    workers: Vec<Worker>,
    seen: Arc<Seen>,
    inbox: Arc<ArrayQueue<usize>>,
}

fn bench(vector_size: usize) -> Bench {
    let settings = Settings {
        vector_size,
        ..Settings::default()
    };
    let pool = Pool::new(4096).unwrap();
    let mut engine = Engine::new(settings, pool, Domain::new()).unwrap();
    let seen = Arc::<Seen>::default();
    let inbox = Arc::new(ArrayQueue::new(64));
    let (theirs, put) = (seen.clone(), inbox.clone());
    engine
        .add_source(Receiver::NAME, move |_| Receiver {
            seen: theirs.clone(),
            inbox: put.clone(),
        })
        .unwrap();
    let theirs = seen.clone();
    engine
        .add_stage(Keeper::NAME, move |_| Keeper {
            seen: theirs.clone(),
            held: Vec::new(),
            one: Column::new(vector_size),
        })
        .unwrap();
    let workers = engine.build().unwrap();
    Bench {
        engine,
        workers,
        seen,
        inbox,
    }
}

impl Bench {
    fn polls(&self) -> u64 {
        self.seen.polls.load(Relaxed)
    }

    fn line(&self, name: &str) -> NodeReport {
        let mut lines = self.engine.runtime(0);
        lines.extend(self.engine.loop_report(0));
        lines.into_iter().find(|l| l.name == name).unwrap()
    }
}

#[test]
fn a_source_without_queue_is_polled_after_notices_only() {
    let mut bench = bench(256);
    bench.workers[0].steps(10);
    assert_eq!(bench.polls(), 1, "in the first round, and then no more");
    bench.inbox.push(3).unwrap();
    assert_eq!(bench.workers[0].steps(10), 0, "nobody said anything");
    bench.engine.wake();
    // The source sent three, and the stage released them.
    assert_eq!(bench.workers[0].steps(10), 6);
    assert_eq!(bench.polls(), 2);
    bench.seen.has_queue.store(true, Relaxed);
    bench.engine.wake();
    bench.workers[0].steps(10);
    assert_eq!(bench.polls(), 12, "a queue is polled in every round");
    bench.seen.has_queue.store(false, Relaxed);
    bench.engine.set_vector_size(8).unwrap();
    bench.workers[0].steps(10);
    assert_eq!(bench.polls(), 13, "a change is a notice too");
}

#[test]
fn a_notice_that_was_forgotten_costs_a_delay() {
    let mut bench = bench(256);
    bench.workers[0].steps(10);
    bench.inbox.push(3).unwrap();
    assert_eq!(bench.workers[0].steps(2000), 6);
    assert!(bench.polls() < 5);
}

#[test]
fn a_stage_is_called_while_it_holds_something() {
    let mut bench = bench(256);
    let releases = |b: &Bench| b.seen.releases.load(Relaxed);
    bench.workers[0].steps(20);
    assert_eq!(releases(&bench), 0);
    bench.inbox.push(5).unwrap();
    bench.engine.wake();
    assert_eq!(bench.workers[0].step(), 5);
    assert_eq!(releases(&bench), 1);
    // The batch is released as a whole, and the second call finds the stage empty.
    assert_eq!(bench.workers[0].steps(20), 5);
    assert_eq!(releases(&bench), 2);
}

/// A worker that sleeps, and a source that does not check its inbox in `arm`.
#[test]
fn sleepers_see_notices() {
    let mut bench = bench(256);
    let running = WorkerThreads::start(std::mem::take(&mut bench.workers), &[]).unwrap();
    let wait = |done: &dyn Fn() -> bool| {
        let start = std::time::Instant::now();
        while !done() {
            assert!(start.elapsed().as_secs() < 20, "it comes");
            std::thread::yield_now();
        }
    };
    for n in 0..300 {
        if n % 3 == 0 {
            wait(&|| bench.engine.is_asleep(0));
        }
        bench.inbox.push(1).unwrap();
        bench.engine.wake();
        wait(&|| bench.inbox.is_empty());
    }
    wait(&|| bench.line(DROP_NODE).vectors == 300);
    drop(running);
}

/// Packets, and the cycles of the loop, of all lines, and of the clock around them, in a thousand rounds.
fn a_thousand_rounds(bench: &mut Bench) -> [u64; 3] {
    bench.engine.clear_runtime();
    for _ in 0..40 {
        bench.inbox.push(100).unwrap();
    }
    bench.engine.wake();
    let start = cycles();
    let packets = bench.workers[0].steps(1000);
    let most = cycles() - start;
    assert_eq!(packets, 8000);
    let line = bench.line(LOOP);
    assert_eq!((line.calls, line.vectors), (1000, 8000));
    assert!(line.state == NodeState::Loop);
    let nodes: u64 = bench.engine.runtime(0).iter().map(|n| n.clocks).sum();
    [line.clocks, nodes + line.clocks, most]
}

#[test]
fn the_loop_and_the_nodes_are_the_whole_time() {
    let mut bench = bench(256);
    bench.seen.has_queue.store(true, Relaxed);
    // Short runs are estimates from every seventh run: another thread that takes the core during a timed run counts seven
    // times. One measurement without that is enough.
    let mut last = [0; 3];
    let found = (0..50).any(|_| {
        last = a_thousand_rounds(&mut bench);
        let [in_loop, all, most] = last;
        in_loop > 0 && all <= most + most / 2 && all >= most / 2
    });
    assert!(found, "loop, lines and clock: {last:?}");
    bench.engine.clear_runtime();
    let line = bench.line(LOOP);
    assert_eq!((line.calls, line.vectors, line.clocks), (0, 0, 0));
}

#[test]
fn vectors_of_one_packet() {
    let mut bench = bench(1);
    bench.inbox.push(7).unwrap();
    bench.engine.wake();
    assert_eq!(bench.workers[0].steps(5), 2, "the source makes one vector");
    assert_eq!(bench.line(DROP_NODE).largest, 1);
    assert!(
        Engine::new(
            Settings {
                vector_size: 0,
                ..Settings::default()
            },
            Pool::new(64).unwrap(),
            Domain::new()
        )
        .is_err()
    );
}
