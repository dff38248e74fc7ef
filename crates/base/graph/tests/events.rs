//! Events of nodes: a linear model in place of the processor's counters. Each node has a known number of events for a packet
//! and for a call, so that every sum is known.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use volley_graph::buf::Pool;
use volley_graph::*;
use volley_perfmon::CounterError;

/// Counts allocations and deallocations of each thread.
struct Counting;
thread_local! {
    static HEAP: Cell<u64> = const { Cell::new(0) };
}
// SAFETY: everything is passed to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HEAP.with(|n| n.set(n.get() + 1));
        // SAFETY: the caller's contract.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, p: *mut u8, layout: Layout) {
        HEAP.with(|n| n.set(n.get() + 1));
        // SAFETY: the caller's contract.
        unsafe { System.dealloc(p, layout) }
    }
}
#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What a processor would count, and for how long it counted something else.
#[derive(Default)]
struct Processor {
    events: [AtomicU64; 2],
    off_ns: AtomicU64,
    /// The number of groups that were closed.
    closed: AtomicU64,
    /// The next call loses the counters for a time.
    loses: AtomicBool,
}

impl Processor {
    /// So many events of each kind.
    fn add(&self, events: [u64; 2]) {
        for (sum, new) in self.events.iter().zip(events) {
            sum.fetch_add(new, Relaxed);
        }
    }

    /// The same in a call of a node.
    fn work(&self, events: [u64; 2]) {
        self.add(events);
        if self.loses.swap(false, Relaxed) {
            self.off_ns.fetch_add(5, Relaxed);
        }
    }
}

/// Reading the counters has events, too.
const OVERHEAD: [u64; 2] = [13, 1];

struct Group(Arc<Processor>);

impl CounterGroup for Group {
    fn read(&mut self) -> Reading {
        self.0.add(OVERHEAD);
        let mut reading = Reading {
            off_ns: self.0.off_ns.load(Relaxed),
            ..Reading::default()
        };
        for (value, sum) in reading.values.iter_mut().zip(&self.0.events) {
            *value = sum.load(Relaxed);
        }
        reading
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.0.closed.fetch_add(1, Relaxed);
    }
}

nexts! { enum ToFirst { First => "first" } }
nexts! { enum ToLast { Last => "last" } }

/// Events of a node: for a packet and for a call.
const SOURCE: [[u64; 2]; 2] = [[3, 0], [40, 2]];
const FIRST: [[u64; 2]; 2] = [[17, 1], [100, 0]];
const LAST: [[u64; 2]; 2] = [[5, 0], [0, 7]];

fn model([packet, call]: [[u64; 2]; 2], calls: u64, packets: u64) -> [u64; 2] {
    [0, 1].map(|at| packets * packet[at] + calls * call[at])
}

/// Vectors of rising size; every third poll has none.
struct Rising {
    at: usize,
    sizes: Vec<usize>,
    processor: Arc<Processor>,
}

impl Source for Rising {
    const NAME: &'static str = "rising";
    type Next = ToFirst;
    type Count = NoCounters;
    fn poll<I: Isa>(&mut self, _: &Cx<'_, NoCounters>, out: &mut Output<'_, I, ToFirst>) -> usize {
        let size = self.sizes.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        self.processor.work(model(SOURCE, 1, size as u64));
        match size {
            0 => 0,
            n => out.alloc(n, 0).send(ToFirst::First),
        }
    }
}

struct First(Arc<Processor>);

impl Node for First {
    const NAME: &'static str = "first";
    type Next = ToLast;
    type Count = NoCounters;
    type Trace = PacketTrace;
    fn run<I: Isa>(&mut self, _: &Cx<'_, NoCounters>, v: Vector<'_, I, ToLast>) -> Consumed {
        self.0.work(model(FIRST, 1, v.len() as u64));
        v.send_all(ToLast::Last)
    }
}

struct Last(Arc<Processor>);

impl Node for Last {
    const NAME: &'static str = "last";
    type Next = NoNext;
    type Count = NoCounters;
    type Trace = PacketTrace;
    fn run<I: Isa>(&mut self, _: &Cx<'_, NoCounters>, v: Vector<'_, I, NoNext>) -> Consumed {
        self.0.work(model(LAST, 1, v.len() as u64));
        v.free()
    }
}

struct Bench {
    engine: Engine,
    workers: Vec<Worker>,
    processor: Arc<Processor>,
}

impl Bench {
    /// Workers whose source sends vectors of these sizes, one a round.
    fn new(workers: usize, sizes: &[usize]) -> Bench {
        let settings = Settings {
            workers,
            ..Settings::default()
        };
        let mut engine = Engine::new(settings, Pool::new(8192).unwrap(), Domain::new()).unwrap();
        let processor = Arc::<Processor>::default();
        let (mine, sizes) = (processor.clone(), sizes.to_vec());
        let source = move |_| Rising {
            at: 0,
            sizes: sizes.clone(),
            processor: mine.clone(),
        };
        engine.add_source(Rising::NAME, source).unwrap();
        let mine = processor.clone();
        engine
            .add(First::NAME, move |_| First(mine.clone()))
            .unwrap();
        let mine = processor.clone();
        engine.add(Last::NAME, move |_| Last(mine.clone())).unwrap();
        let workers = engine.build().unwrap();
        Bench {
            engine,
            workers,
            processor,
        }
    }

    fn start(&mut self, workers: &[usize]) {
        let group = |w: &usize| {
            (
                *w,
                Box::new(Group(self.processor.clone())) as Box<dyn CounterGroup>,
            )
        };
        let groups = workers.iter().map(group).collect();
        self.engine.count_events(groups).unwrap();
    }

    fn rounds(&mut self, rounds: usize) {
        for _ in 0..rounds {
            self.workers.iter_mut().for_each(|it| _ = it.step());
        }
    }

    /// Calls, packets, uncounted calls and events of a node on a worker.
    fn counted(&self, worker: usize, node: &str) -> (u64, u64, u64, [u64; 2]) {
        let all = self.engine.event_reports();
        let mut ours = all
            .iter()
            .filter(|it| it.worker == worker && it.node == node);
        let events = |it: &EventReport| [it.values[0], it.values[1]];
        let row = ours
            .next()
            .map(|it| (it.calls, it.vectors, it.uncounted, events(it)));
        assert_eq!(ours.next(), None, "one row");
        row.unwrap_or_default()
    }
}

#[test]
fn the_events_of_each_node_are_those_of_the_linear_model() {
    let sizes = [1, 2, 0, 7, 8, 0, 64, 255, 256];
    let mut bench = Bench::new(1, &sizes);
    bench.start(&[0]);
    bench.rounds(sizes.len());
    let packets = sizes.iter().sum::<usize>() as u64;
    for (node, events) in [("rising", SOURCE), ("first", FIRST), ("last", LAST)] {
        // Polls without packets are not counted.
        let wanted = (7, packets, 0, model(events, 7, packets));
        assert_eq!(bench.counted(0, node), wanted, "{node}");
    }
    assert_eq!(bench.counted(0, "error-drop"), Default::default());
    let runtime = bench.engine.runtime(0);
    let calls = |name: &str| runtime.iter().find(|it| it.name == name).map(|it| it.calls);
    assert_eq!(calls("first"), Some(7), "the clocks of nodes go on");
}

#[test]
fn a_call_during_which_the_counters_were_lost_is_left_out() {
    let mut bench = Bench::new(1, &[10; 40]);
    bench.start(&[0]);
    bench.rounds(20);
    // The source's next call loses them: first and last are counted all the same.
    bench.processor.loses.store(true, Relaxed);
    bench.rounds(20);
    assert_eq!(
        bench.counted(0, "rising"),
        (39, 390, 1, model(SOURCE, 39, 390))
    );
    assert_eq!(
        bench.counted(0, "first"),
        (40, 400, 0, model(FIRST, 40, 400))
    );
}

#[test]
fn counting_starts_and_stops_without_the_heap_and_leaves_the_nodes_as_they_were() {
    let mut bench = Bench::new(1, &[10; 40]);
    bench.rounds(2);
    bench.start(&[0]);
    let before = HEAP.with(Cell::get);
    bench.rounds(4);
    assert_eq!(HEAP.with(Cell::get), before, "to start and to count");
    bench.engine.stop_events().unwrap();
    let before = HEAP.with(Cell::get);
    bench.rounds(3);
    assert_eq!(HEAP.with(Cell::get), before, "to stop");
    assert_eq!(
        bench.processor.closed.load(Relaxed),
        0,
        "by the control thread"
    );
    assert!(bench.engine.settled());
    assert_eq!(bench.processor.closed.load(Relaxed), 1);
    assert!(!bench.engine.is_counting_events());
    assert_eq!(
        bench.counted(0, "last"),
        (4, 40, 0, model(LAST, 4, 40)),
        "kept"
    );
    // Nothing reads the counters any more.
    let events = || bench.processor.events[1].load(Relaxed);
    let (calls, before) = (5, events());
    let all = [SOURCE, FIRST, LAST].map(|it| model(it, calls, 10 * calls)[1]);
    bench
        .workers
        .iter_mut()
        .for_each(|it| (0..calls).for_each(|_| _ = it.step()));
    assert_eq!(events() - before, all.iter().sum::<u64>());
    // Once more: what was counted before is forgotten.
    bench.start(&[0]);
    bench.rounds(1);
    assert_eq!(bench.counted(0, "last"), (1, 10, 0, model(LAST, 1, 10)));
}

#[test]
fn nodes_that_come_meanwhile_are_counted_and_workers_that_come_are_not() {
    let mut bench = Bench::new(3, &[10; 100]);
    bench.start(&[0, 1]);
    bench.rounds(3);
    let mine = bench.processor.clone();
    bench
        .engine
        .add("late", move |_| Last(mine.clone()))
        .unwrap();
    bench.rounds(2);
    for worker in [0, 1] {
        assert_eq!(bench.counted(worker, "last").0, 5);
    }
    assert_eq!(bench.counted(2, "last"), Default::default());
    // A node that goes has what it counted.
    bench.engine.remove("late").unwrap();
    bench.rounds(1);
    // A worker that ends takes its counters with it, and its successor has none.
    let worker = bench.workers.remove(1);
    bench.engine.remove_worker(1, Some(worker));
    assert_eq!(bench.processor.closed.load(Relaxed), 1);
    let fresh = bench.engine.add_worker().unwrap();
    assert_eq!(fresh.id(), 1);
    bench.workers.push(fresh);
    bench.rounds(4);
    assert_eq!(bench.counted(1, "last").0, 6);
    assert_eq!(bench.counted(0, "last").0, 10);
    bench.engine.stop_events().unwrap();
    bench.rounds(1);
    assert!(bench.engine.settled());
    assert_eq!(bench.processor.closed.load(Relaxed), 2);
}

#[test]
fn a_node_that_is_placed_on_a_worker_is_counted_there_and_gets_its_own_body_back() {
    let mut bench = Bench::new(2, &[10; 100]);
    bench.start(&[0, 1]);
    let full = (bench.engine.node("first").unwrap(), 0);
    bench.engine.place_node("last", Some(1), full).unwrap();
    bench.rounds(20);
    let (there, here) = (bench.counted(1, "last"), bench.counted(0, "last"));
    assert_eq!(here.1, 0, "handed off");
    assert!(there.1 >= 380, "{there:?}");
    assert_eq!(there.3, model(LAST, there.0, there.1));
    bench.engine.stop_events().unwrap();
    bench.rounds(2);
    assert!(bench.engine.settled());
    let before = bench.processor.events[0].load(Relaxed);
    bench.rounds(10);
    // Both sources and `first` of both workers, `last` for all packets: no reading of counters.
    let wanted: u64 = [SOURCE, FIRST].map(|it| model(it, 20, 200)[0]).iter().sum();
    let last = model(LAST, 0, 200)[0];
    assert_eq!(
        bench.processor.events[0].load(Relaxed) - before,
        wanted + last
    );
}

#[test]
fn a_node_that_was_placed_before_is_counted_and_still_counted_when_it_returns() {
    let mut bench = Bench::new(2, &[10; 200]);
    let full = (bench.engine.node("first").unwrap(), 0);
    bench.engine.place_node("last", Some(1), full).unwrap();
    bench.rounds(2);
    bench.start(&[0, 1]);
    bench.rounds(20);
    let (there, here) = (bench.counted(1, "last"), bench.counted(0, "last"));
    assert_eq!(here, Default::default(), "a handoff is no call of the node");
    assert!(there.1 >= 380, "{there:?}");
    assert_eq!(there.3, model(LAST, there.0, there.1));
    bench.engine.place_node("last", None, full).unwrap();
    for _ in 0..20 {
        bench.rounds(1);
        bench.engine.restore_nodes();
    }
    assert!(bench.engine.restore_nodes(), "it is back");
    let before = bench.counted(0, "last");
    bench.rounds(10);
    let after = bench.counted(0, "last");
    assert_eq!(after.1 - before.1, 100);
    assert_eq!(after.3, model(LAST, after.0, after.1));
}

#[test]
fn reading_counters_of_the_kernel_does_not_use_the_heap() {
    let bundle = volley_perfmon::bundle("page-faults").unwrap();
    let mut group = match volley_perfmon::Group::open(bundle, volley_perfmon::this_thread()) {
        Ok(group) => group,
        Err(error @ (CounterError::Refused { .. } | CounterError::NoKernelSupport)) => {
            println!("SKIP: {error}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let first = group.read();
    let before = HEAP.with(Cell::get);
    let mut last = group.read();
    for _ in 0..100 {
        last = group.read();
    }
    assert_eq!(HEAP.with(Cell::get), before);
    let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while last.values[2] == first.values[2] && std::time::Instant::now() < end {
        last = group.read();
    }
    assert!(last.values[2] > first.values[2], "the clock of the thread");
}
