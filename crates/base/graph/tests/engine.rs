//! The engine as a whole: a small graph at all vector sizes and levels.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;
use volley_graph::buf::Pool;
use volley_graph::*;

/// Counts allocations of the threads that enable it.
struct Counting;
thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}
// SAFETY: everything is passed to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|n| n.set(n.get() + 1));
        // SAFETY: the caller's contract.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, p: *mut u8, layout: Layout) {
        // SAFETY: the caller's contract.
        unsafe { System.dealloc(p, layout) }
    }
}
#[global_allocator]
static ALLOCATOR: Counting = Counting;

nexts! { enum FromSource { Sort => "sorter" } }
nexts! {
    enum FromSorter {
        Drop => "error-drop", E0 => "end0", E1 => "end1", E2 => "end2", E3 => "end3", E4 => "end4",
        E5 => "end5", E6 => "end6", E7 => "end7", E8 => "end8", E9 => "end9",
    }
}
counters! {
    /// What sorter counts.
    enum Count {
        /// the first byte requests a drop
        Unwanted = "unwanted" (Error),
    }
}

/// Sends `left` packets whose first word is a sequence number.
struct Numbers {
    left: u32,
    next: u32,
    burst: usize,
}

impl Source for Numbers {
    const NAME: &'static str = "numbers";
    type Next = FromSource;
    type Count = NoCounters;
    fn poll<I: Isa>(
        &mut self,
        _cx: &Cx<'_, NoCounters>,
        out: &mut Output<'_, I, FromSource>,
    ) -> usize {
        let n = self.burst.min(self.left as usize).min(out.vector_size());
        if n == 0 {
            return 0;
        }
        let mut fresh = out.alloc(n, 1);
        let first = self.next;
        fresh.fill(|row, data| {
            data[..4].copy_from_slice(&(first + row as u32).to_be_bytes());
            64
        });
        let n = fresh.send(FromSource::Sort);
        self.left -= n as u32;
        self.next += n as u32;
        n
    }
}

/// Splits by number modulo `ways`, and drops every 11th packet.
struct Sorter {
    words: Words<1>,
    verdict: Column,
    ways: u32,
}

impl Sorter {
    fn new(ways: u32) -> Self {
        Sorter {
            words: Words::new(1024),
            verdict: Column::new(1024),
            ways,
        }
    }
}

/// The edge of each packet.
const VERDICT: ColumnInfo = ColumnInfo::new("sorter-verdict", ColumnKind::Value, 5, Life::Hop);

impl Node for Sorter {
    const NAME: &'static str = "sorter";
    type Next = FromSorter;
    type Count = Count;
    type Trace = PacketTrace;
    const COLUMNS: &'static [ColumnInfo] = &[VERDICT];
    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, mut v: Vector<'_, I, FromSorter>) -> Consumed {
        v.words(0, &mut self.words);
        let n = v.len();
        let number = |row| self.words.row(row)[0];
        for (row, verdict) in self.verdict.words_mut(n).iter_mut().enumerate() {
            *verdict = u32::from(number(row) % 11 == 0) * Count::Unwanted.code();
        }
        let ways = self.ways;
        for (row, code) in v.column_mut(VERDICT.col).iter_mut().enumerate() {
            *code = 1 + number(row) % ways;
        }
        v.drop_out(cx, &self.verdict, |_| FromSorter::Drop);
        v.take(VERDICT.col, &mut self.verdict);
        v.send_by(&self.verdict)
    }
}

/// Checks that the numbers of its packets ascend, and frees them.
struct End {
    last: u32,
    modulo: u32,
    expect: u32,
}

impl Node for End {
    const NAME: &'static str = "end";
    type Next = NoNext;
    type Count = NoCounters;
    type Trace = PacketTrace;
    #[inline(always)]
    fn run<I: Isa>(&mut self, _cx: &Cx<'_, NoCounters>, v: Vector<'_, I, NoNext>) -> Consumed {
        for row in 0..v.len() {
            let bytes = v.view(row).bytes();
            let number = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            assert!(
                !number.is_multiple_of(11),
                "dropped packets do not come here"
            );
            assert_eq!(number % self.modulo, self.expect, "sorted");
            assert!(number > self.last, "order is kept");
            self.last = number;
        }
        v.free()
    }
}

fn engine(
    level: Level,
    vector_size: usize,
    ways: u32,
    packets: u32,
    burst: usize,
) -> (Engine, Worker, Arc<Pool>) {
    let pool = Pool::new(8192).unwrap();
    let settings = Settings {
        vector_size,
        level,
        clock: Clock::manual(),
        ..Settings::default()
    };
    let mut engine = Engine::new(settings, pool.clone(), Domain::new()).unwrap();
    engine
        .add_source("numbers", move |_| Numbers {
            left: packets,
            next: 1,
            burst,
        })
        .unwrap();
    engine.add("sorter", move |_| Sorter::new(ways)).unwrap();
    for end in 0..10 {
        engine
            .add(&format!("end{end}"), move |_| End {
                last: 0,
                modulo: ways,
                expect: end,
            })
            .unwrap();
    }
    let worker = engine.build().unwrap().pop().unwrap();
    (engine, worker, pool)
}

#[test]
fn every_packet_arrives_once_in_order_whatever_size_and_level() {
    for level in Level::available() {
        for (vector_size, burst) in [(4, 3), (16, 16), (64, 7), (256, 256), (1024, 1000)] {
            for ways in [1, 2, 3, 8, 9, 10] {
                let (engine, mut worker, pool) = engine(level, vector_size, ways, 5000, burst);
                while worker.step() > 0 {}
                let runtime = engine.runtime(0);
                let vectors = |name: &str| runtime.iter().find(|n| n.name == name).unwrap().vectors;
                assert_eq!(vectors("sorter"), 5000);
                assert_eq!(vectors("error-drop"), 5000 / 11);
                assert_eq!(
                    (0..10).map(|e| vectors(&format!("end{e}"))).sum::<u64>(),
                    5000 - 5000 / 11
                );
                let unwanted = engine
                    .counters()
                    .into_iter()
                    .find(|c| c.info.name == "unwanted")
                    .unwrap();
                assert_eq!(unwanted.count, 5000 / 11);
                assert_eq!(pool.report().in_use(), 0);
                assert_eq!(
                    engine.load(0).unwrap().3,
                    0,
                    "no frame was allocated while running"
                );
                assert!(worker.is_idle());
            }
        }
    }
}

#[test]
fn the_data_path_does_not_allocate() {
    let (_engine, mut worker, _pool) = engine(Level::detect(), 256, 10, 100_000, 256);
    worker.step();
    let before = ALLOCATIONS.with(Cell::get);
    while worker.step() > 0 {}
    assert_eq!(ALLOCATIONS.with(Cell::get), before);
}

#[test]
fn an_edge_to_nowhere_is_a_start_up_error() {
    let mut engine =
        Engine::new(Settings::default(), Pool::new(64).unwrap(), Domain::new()).unwrap();
    engine.add("sorter", |_| Sorter::new(1)).unwrap();
    let error = engine.build().err().map(|e| e.to_string()).unwrap();
    assert_eq!(
        error,
        "node `sorter` has an edge to `end0`, which is no node: register the crate that brings it"
    );
    assert!(matches!(
        engine.add("sorter", |_| Sorter::new(1)),
        Err(GraphError::NodeExists(_))
    ));
}

/// A feature that passes all packets on. Its statistics count them.
struct Pass;
impl Node for Pass {
    const NAME: &'static str = "pass";
    type Next = NoNext;
    type Count = NoCounters;
    type Trace = PacketTrace;
    #[inline(always)]
    fn run<I: Isa>(&mut self, _cx: &Cx<'_, NoCounters>, v: Vector<'_, I, NoNext>) -> Consumed {
        v.next_feature()
    }
}

nexts! { enum ToEnd { End => "end" } }
struct Gate(ArcId);
impl Node for Gate {
    const NAME: &'static str = "sorter";
    type Next = ToEnd;
    type Count = NoCounters;
    type Trace = PacketTrace;
    #[inline(always)]
    fn run<I: Isa>(&mut self, _cx: &Cx<'_, NoCounters>, v: Vector<'_, I, ToEnd>) -> Consumed {
        v.send_arc(self.0, Col::RX, ToEnd::End)
    }
}

struct Sink;
impl Node for Sink {
    const NAME: &'static str = "end";
    type Next = NoNext;
    type Count = NoCounters;
    type Trace = PacketTrace;
    #[inline(always)]
    fn run<I: Isa>(&mut self, _cx: &Cx<'_, NoCounters>, v: Vector<'_, I, NoNext>) -> Consumed {
        v.free()
    }
}

fn arc_engine() -> (Engine, Worker) {
    let mut engine =
        Engine::new(Settings::default(), Pool::new(1024).unwrap(), Domain::new()).unwrap();
    engine
        .add_source("numbers", |_| Numbers {
            left: 1000,
            next: 1,
            burst: 10,
        })
        .unwrap();
    let arc = engine.arc("test-arc", "sorter", "end");
    engine.add("sorter", move |_| Gate(arc)).unwrap();
    engine.add("end", |_| Sink).unwrap();
    for name in ["f1", "f2"] {
        engine.add(name, |_| Pass).unwrap();
        engine
            .add_feature(
                "test-arc",
                Feature {
                    name,
                    before: &[],
                    after: &[],
                },
            )
            .unwrap();
    }
    let worker = engine.build().unwrap().pop().unwrap();
    (engine, worker)
}

fn seen(engine: &Engine) -> Vec<u64> {
    let runtime = engine.runtime(0);
    ["f1", "f2", "end"]
        .iter()
        .map(|n| runtime.iter().find(|r| r.name == *n).unwrap().vectors)
        .collect()
}

#[test]
fn features_switch_on_and_off_while_packets_flow() {
    let (mut engine, mut worker) = arc_engine();
    worker.step();
    assert_eq!(seen(&engine), [0, 0, 10]);
    engine.set_feature("test-arc", "f2", 1, true).unwrap();
    assert!(
        !engine.settled(),
        "a change is confirmed only when the worker uses it"
    );
    worker.step();
    assert!(engine.settled());
    assert_eq!(seen(&engine), [0, 10, 20]);
    engine.set_feature("test-arc", "f1", 1, true).unwrap();
    engine.set_feature("test-arc", "f2", 2, true).unwrap();
    worker.step();
    assert_eq!(seen(&engine), [10, 20, 30]);
    engine.set_feature("test-arc", "f1", 1, false).unwrap();
    engine.set_feature("test-arc", "f2", 1, false).unwrap();
    worker.step();
    assert_eq!(seen(&engine), [10, 20, 40]);
    assert!(engine.set_feature("test-arc", "f9", 1, true).is_err());
    assert!(engine.set_feature("no-arc", "f1", 1, true).is_err());
}

#[test]
fn nodes_come_and_go_while_packets_flow() {
    let (mut engine, mut worker) = arc_engine();
    worker.step();
    engine.add("late", |_| Pass).unwrap();
    engine
        .add_feature(
            "test-arc",
            Feature {
                name: "late",
                before: &["f1"],
                after: &[],
            },
        )
        .unwrap();
    engine.set_feature("test-arc", "late", 1, true).unwrap();
    worker.step();
    assert!(engine.settled());
    assert_eq!(seen(&engine), [0, 0, 20]);
    assert_eq!(
        engine
            .runtime(0)
            .iter()
            .find(|r| r.name == "late")
            .unwrap()
            .vectors,
        10
    );
    assert!(engine.remove("end").is_err(), "an edge leads there");
    engine.set_feature("test-arc", "late", 1, false).unwrap();
    engine.remove("late").unwrap();
    worker.step();
    assert!(engine.settled() && engine.node("late").is_err());
    engine.remove("numbers").unwrap();
    assert_eq!(worker.step(), 0, "a removed source is silent");
}

#[test]
fn vectors_get_another_size_while_packets_flow() {
    let (mut engine, mut worker) = arc_engine();
    worker.step();
    assert_eq!(
        (engine.vector_size(), seen(&engine)),
        (256, [0, 0, 10].into())
    );
    engine.set_vector_size(4).unwrap();
    assert!(!engine.settled());
    worker.step();
    assert_eq!(
        (engine.vector_size(), seen(&engine)),
        (4, [0, 0, 14].into())
    );
    engine.set_vector_size(256).unwrap();
    worker.step();
    assert_eq!(seen(&engine), [0, 0, 24]);
    for packets in [0, 257] {
        let refused = engine.set_vector_size(packets).unwrap_err();
        assert_eq!(refused, GraphError::VectorRoom { packets, room: 256 });
    }
    assert!(engine.settled() && engine.vector_size() == 256);
}

#[test]
fn traced_packets_tell_their_way() {
    let (mut engine, mut worker) = arc_engine();
    engine.trace("numbers", 2, None).unwrap();
    worker.step();
    engine.trace("end", 1, None).unwrap();
    worker.step();
    let traces = engine.traces(&|i| format!("if{i}"));
    let ways: Vec<Vec<&str>> = traces
        .iter()
        .map(|t| t.steps.iter().map(|s| s.node.as_str()).collect())
        .collect();
    assert_eq!(
        ways,
        [
            vec!["numbers", "sorter", "end"],
            vec!["numbers", "sorter", "end"],
            vec!["end"]
        ]
    );
    assert!(
        traces[0].steps[1]
            .text
            .starts_with("64 bytes, rx if1\n00000001"),
        "{}",
        traces[0].steps[1].text
    );
    engine.clear_traces().unwrap();
    worker.step();
    assert!(engine.traces(&|_| String::new()).is_empty());
}

/// Selects packets whose number is a multiple of this.
struct Multiples(u32);

impl TraceFilter for Multiples {
    fn wants(&self, packet: &PacketView<'_>, back: usize) -> bool {
        assert_eq!(back, 0, "nothing was stripped");
        packet.bytes()[..4]
            .try_into()
            .is_ok_and(|word| u32::from_be_bytes(word) % self.0 == 0)
    }
}

#[test]
fn a_filter_chooses_the_packets_of_a_trace() {
    let (mut engine, mut worker, _) = engine(Level::Scalar, 16, 2, 100, 16);
    for node in ["numbers", "sorter"] {
        engine.clear_traces().unwrap();
        engine.trace(node, 2, Some(Arc::new(Multiples(5)))).unwrap();
        worker.step();
        worker.step();
        let traces = engine.traces(&|i| format!("if{i}"));
        let number = |t: &TraceReport| {
            let text = &t.steps[0].text;
            let hex = text.split_once("\n").unwrap().1;
            u32::from_str_radix(&hex[..8], 16).unwrap()
        };
        let numbers: Vec<u32> = traces.iter().map(number).collect();
        assert_eq!(numbers.len(), 2, "{node}");
        assert!(numbers.iter().all(|n| n % 5 == 0), "{node}: {numbers:?}");
    }
    // A trace without a filter replaces the filter of the earlier trace.
    engine.clear_traces().unwrap();
    engine.trace("sorter", 3, None).unwrap();
    worker.step();
    assert_eq!(engine.traces(&|_| String::new()).len(), 3);
}

#[test]
fn drops_are_kept_by_reason_and_interface_with_the_last_packet() {
    let (mut engine, mut worker, _) = engine(Level::Scalar, 16, 2, 100, 16);
    while worker.step() > 0 {}
    let drops = engine.drops();
    let [drop] = &drops[..] else {
        panic!("{drops:?}")
    };
    assert_eq!(engine.name(drop.node), "sorter");
    let info = engine.counter_info(drop.node, drop.counter).unwrap();
    let counters = engine.counters();
    let counted = counters.iter().find(|c| c.info.name == info.name);
    assert_eq!((info.name, drop.rx), ("unwanted", 1));
    // 11, 22, ... 99.
    assert_eq!((counted.unwrap().count, drop.count), (9, 9));
    let sample = drop.sample.as_ref().unwrap();
    assert_eq!((sample.len, sample.bytes.len()), (64, 64));
    assert_eq!(sample.bytes[..4], 99u32.to_be_bytes());
    engine.clear_counters();
    assert!(engine.drops().is_empty());
}

#[test]
fn clear_starts_reports_from_zero() {
    let (mut engine, mut worker, _) = engine(Level::Scalar, 16, 2, 100, 16);
    while worker.step() > 0 {}
    engine.clear_runtime();
    engine.clear_counters();
    assert!(engine.runtime(0).iter().all(|n| n.vectors == 0));
    assert!(engine.counters().iter().all(|c| c.count == 0));
}

#[test]
fn running_out_of_buffers_drops_nothing_that_is_in_flight() {
    let pool = Pool::new(64).unwrap();
    let mut engine = Engine::new(Settings::default(), pool.clone(), Domain::new()).unwrap();
    engine
        .add_source("numbers", |_| Numbers {
            left: 1000,
            next: 1,
            burst: 256,
        })
        .unwrap();
    let arc = engine.arc("test-arc", "sorter", "end");
    engine.add("sorter", move |_| Gate(arc)).unwrap();
    engine.add("end", |_| Sink).unwrap();
    let mut worker = engine.build().unwrap().pop().unwrap();
    while worker.step() > 0 {}
    assert_eq!(
        engine
            .runtime(0)
            .iter()
            .find(|r| r.name == "end")
            .unwrap()
            .vectors,
        1000
    );
    assert!(pool.report().failures > 0);
    assert_eq!(pool.report().in_use(), 0);
}

#[test]
fn workers_run_on_threads_and_take_changes() {
    let (mut engine, worker) = arc_engine();
    let running = WorkerThreads::start(vec![worker], &[]).unwrap();
    engine.set_feature("test-arc", "f1", 1, true).unwrap();
    let start = std::time::Instant::now();
    while !engine.settled() {
        assert!(start.elapsed().as_secs() < 10, "the worker takes changes");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert!(running.is_alive());
    assert_eq!(running.stop().len(), 1);
}

#[test]
fn packets_longer_than_a_buffer_are_chains() {
    use volley_graph::harness::{In, run};
    struct Through;
    impl Node for Through {
        const NAME: &'static str = "through";
        type Next = ToEnd;
        type Count = NoCounters;
        type Trace = PacketTrace;
        #[inline(always)]
        fn run<I: Isa>(
            &mut self,
            _cx: &Cx<'_, NoCounters>,
            mut v: Vector<'_, I, ToEnd>,
        ) -> Consumed {
            v.advance(14);
            v.each(|p| {
                p.bytes_mut()[0] ^= 1;
                ToEnd::End
            })
        }
    }
    let packets: Vec<In> = [60usize, 2048, 2049, 5000, 65_000]
        .iter()
        .map(|&n| In::new(&(0..n).map(|i| (i * 7) as u8).collect::<Vec<_>>()))
        .collect();
    let out = run(&packets, &Domain::new(), |_| Through);
    for (packet, out) in packets.iter().zip(&out) {
        let mut want = packet.bytes[14..].to_vec();
        want[0] ^= 1;
        assert_eq!(out.bytes, want);
    }
}

#[test]
fn changes_never_stop_a_worker() {
    let (mut engine, worker) = arc_engine();
    let running = WorkerThreads::start(vec![worker], &[]).unwrap();
    let start = std::time::Instant::now();
    let wait = |engine: &Engine| {
        while !engine.settled() {
            assert!(start.elapsed().as_secs() < 60, "changes are taken");
            std::thread::yield_now();
        }
    };
    for round in 0..200 {
        engine
            .set_feature("test-arc", "f1", round % 7, round % 2 == 0)
            .unwrap();
        engine.trace("end", 1, None).unwrap();
        wait(&engine);
    }
    for late in 0..20 {
        engine.add(&format!("late{late}"), |_| Pass).unwrap();
        wait(&engine);
    }
    assert!(running.is_alive());
    assert!(
        engine.longest_round_us(0) > 0.0,
        "the longest round is published"
    );
    let (rounds, ..) = engine.load(0).unwrap();
    assert!(rounds >= 220, "every change was taken between two rounds");
    let worker = running.stop().pop().unwrap();
    assert!(worker.is_idle());
    assert_eq!(
        engine
            .runtime(0)
            .iter()
            .find(|r| r.name == "error-drop")
            .unwrap()
            .vectors,
        0
    );
}
