//! Interfaces with spreading: destination and order of packets, and `show`. The tests step the workers themselves.

use crate::{Rss, RssHash, RssMode, RssReply, RssState, ShowRss, WorkerHandoff, register};
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use volley_graph::buf::Pool;
use volley_graph::{
    Clock, Consumed, Cx, Domain, Engine, Isa, NoCounters, NoNext, Node, Output, PacketTrace,
    Processes, RECEIVE_ARC, Settings, Source, Vector, Worker, nexts,
};
use volley_iface::driver::NewInterface;
use volley_iface::{IfIdx, Registry};
use volley_model::{ModelError, Owners, Request};

nexts! { pub enum Start { Drop => "error-drop" } }

/// Packets to be received by each worker.
type Packets = Arc<Mutex<VecDeque<Vec<u8>>>>;
/// Packets that arrived, in order, with their worker.
type Came = Arc<Mutex<Vec<(usize, Vec<u8>)>>>;

/// The receive queue of pg0, on worker 0.
struct Feeder {
    worker: usize,
    packets: Packets,
    rx: u32,
}

impl Source for Feeder {
    const NAME: &'static str = "feeder";
    type Next = Start;
    type Count = NoCounters;
    fn poll<I: Isa>(&mut self, _: &Cx<'_, NoCounters>, out: &mut Output<'_, I, Start>) -> usize {
        if self.worker != 0 {
            return 0;
        }
        let mut packets = self.packets.lock().unwrap();
        let size = out.vector_size();
        let mut fresh = out.alloc(packets.len().min(size), self.rx);
        fresh.fill(|_, data| {
            let packet = packets.pop_front().unwrap();
            data[..packet.len()].copy_from_slice(&packet);
            packet.len()
        });
        fresh.send_received(self.rx)
    }
}

/// Node after `worker-handoff`: records the packets.
struct Behind(usize, Came);

impl Node for Behind {
    const NAME: &'static str = "ethernet-input";
    type Next = NoNext;
    type Count = NoCounters;
    type Trace = PacketTrace;
    fn run<I: Isa>(&mut self, _: &Cx<'_, NoCounters>, v: Vector<'_, I, NoNext>) -> Consumed {
        let mut came = self.1.lock().unwrap();
        let packets = (0..v.len()).map(|row| (self.0, v.view(row).bytes().to_vec()));
        came.extend(packets);
        v.free()
    }
}

/// The words of `set interface rss`.
fn rss(interface: &str, words: &str) -> Rss {
    let mut it = Rss {
        interface: interface.to_owned(),
        hash: RssHash::Toeplitz,
        symmetric: false,
        inner: false,
        workers: Vec::new(),
        mode: RssMode::On,
    };
    let mut words = words.split_whitespace();
    while let Some(word) = words.next() {
        match word {
            "crc32c" => it.hash = RssHash::Crc32c,
            "symmetric" => it.symmetric = true,
            "inner" => it.inner = true,
            "auto" => it.mode = RssMode::Auto,
            "workers" => {
                let all = words.next().unwrap().split(',');
                it.workers = all.map(|w| w.parse().unwrap()).collect();
            }
            "on" | "toeplitz" => {}
            other => panic!("{other}"),
        }
    }
    it
}

struct Bench {
    workers: Vec<Worker>,
    clock: Clock,
    pool: Arc<Pool>,
    packets: Packets,
    came: Came,
    owners: Owners,
    processes: Processes,
    host: volley_iface::driver::DriverHost,
}

impl Bench {
    fn new(workers: usize) -> Bench {
        let (pool, domain, clock) = (Pool::new(8192).unwrap(), Domain::new(), Clock::manual());
        let settings = Settings {
            vector_size: 64,
            workers,
            clock: clock.clone(),
            ..Settings::default()
        };
        let engine = Engine::new(settings, pool.clone(), domain).unwrap();
        let mut registry = Registry::new(engine);
        let (packets, came) = (Packets::default(), Came::default());
        let sink = came.clone();
        let mut engine = registry.engine.borrow_mut();
        let behind = engine.add(Behind::NAME, move |w| Behind(w, sink.clone()));
        let behind = behind.unwrap();
        engine.set_receiver(Behind::NAME).unwrap();
        drop(engine);
        register(&mut registry).unwrap();
        let new = NewInterface::new("pg0", "test");
        let index = registry
            .interfaces
            .borrow_mut()
            .create(new, behind)
            .unwrap();
        let feed = packets.clone();
        registry
            .engine
            .borrow_mut()
            .add_source("feeder", move |worker| Feeder {
                worker,
                packets: feed.clone(),
                rx: index.0,
            })
            .unwrap();
        let workers = registry.engine.borrow_mut().build().unwrap();
        Bench {
            workers,
            clock,
            pool,
            packets,
            came,
            processes: registry.processes.clone(),
            host: registry.host(),
            owners: registry.owners,
        }
    }

    /// Carries out `set interface rss pg0 ...`, and creates handoff rings for all workers.
    fn rss(&mut self, words: &str) {
        self.try_rss(words).unwrap();
        self.settle();
    }

    fn try_rss(&mut self, words: &str) -> Result<(), ModelError> {
        let request = match words {
            "off" => Request::unset(&rss("pg0", "")).unwrap(),
            words => Request::set(&rss("pg0", words)).unwrap(),
        };
        self.owners.apply(&request).unwrap().map(drop)
    }

    fn show(&mut self) -> RssReply {
        self.owners.ask(&ShowRss).unwrap()
    }

    fn send(&self, packets: impl IntoIterator<Item = Vec<u8>>) {
        self.packets.lock().unwrap().extend(packets);
    }

    /// Steps all workers and the control thread until no work is pending.
    fn settle(&mut self) {
        let mut quiet = 0;
        while quiet < 8 {
            let moved: usize = self.workers.iter_mut().map(Worker::step).sum();
            self.processes.run_manual();
            quiet = if moved == 0 { quiet + 1 } else { 0 };
        }
        assert_eq!(self.pool.report().in_use(), 0);
    }

    fn took(&self) -> Vec<(usize, Vec<u8>)> {
        std::mem::take(&mut *self.came.lock().unwrap())
    }

    fn is_in_front(&self) -> bool {
        let index = self.host.interfaces.borrow().index("pg0").unwrap();
        self.is_on_arc(index)
    }

    /// Whether `worker-handoff` is enabled on an interface.
    fn is_on_arc(&self, index: IfIdx) -> bool {
        let engine = self.host.engine.borrow();
        let arcs = engine.arcs();
        let arc = arcs.iter().find(|arc| arc.name == RECEIVE_ARC).unwrap();
        let mut features = arc.features.iter();
        let found = features.find(|(name, _)| *name == WorkerHandoff::NAME);
        found.unwrap().1.contains(&index.0)
    }
}

/// A UDP packet over IPv4 from port `flow`, with a number.
fn udp(flow: u16, number: u32) -> Vec<u8> {
    let mut frame = [[2; 12].as_slice(), &[8, 0]].concat();
    frame.extend([
        0x45, 0, 0, 32, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 198, 51, 100, 7,
    ]);
    frame.extend(flow.to_be_bytes());
    frame.extend([0, 53, 0, 12, 0, 0]);
    frame.extend(number.to_be_bytes());
    frame
}

/// A UDP packet in the reverse direction.
fn answer(flow: u16) -> Vec<u8> {
    let mut frame = udp(flow, 0);
    for at in 26..30 {
        frame.swap(at, at + 4);
    }
    (frame[34], frame[35]) = (0, 53);
    frame[36..38].copy_from_slice(&flow.to_be_bytes());
    frame
}

/// A UDP packet in a tunnel between two routers, which is one outer flow.
fn tunnelled(flow: u16) -> Vec<u8> {
    let inside = &udp(flow, 0)[14..];
    let mut frame = [[2; 12].as_slice(), &[8, 0]].concat();
    frame.extend([
        0x45, 0, 0, 52, 0, 0, 0, 0, 64, 4, 0, 0, 203, 0, 113, 1, 203, 0, 113, 2,
    ]);
    frame.extend(inside);
    frame
}

fn flow_of(packet: &[u8]) -> u16 {
    u16::from_be_bytes([packet[34], packet[35]])
}

fn number_of(packet: &[u8]) -> u32 {
    u32::from_be_bytes(packet[42..46].try_into().unwrap())
}

/// Checks that flows are in order, each on one worker; returns the number of packets of each worker.
fn by_worker(came: &[(usize, Vec<u8>)], workers: usize) -> Vec<usize> {
    let mut counts = vec![0; workers];
    let mut of_flow = BTreeMap::new();
    for (worker, packet) in came {
        counts[*worker] += 1;
        let was = of_flow.insert(flow_of(packet), (*worker, number_of(packet)));
        if let Some((before, number)) = was {
            assert_eq!(before, *worker, "a flow stays on its worker");
            assert!(number < number_of(packet), "in order");
        }
    }
    counts
}

fn many(flows: u16, each: u32) -> impl Iterator<Item = Vec<u8>> {
    (0..each).flat_map(move |n| (0..flows).map(move |f| udp(1000 + f, n)))
}

#[test]
fn flows_are_spread_and_stay_where_they_are() {
    for (workers, words) in [
        (2, "on"),
        (3, "crc32c on"),
        (4, "symmetric on"),
        (4, "workers 1,3 on"),
    ] {
        let mut bench = Bench::new(workers);
        bench.rss(words);
        assert!(bench.is_in_front());
        bench.send(many(500, 4));
        bench.settle();
        let came = bench.took();
        assert_eq!(came.len(), 2000, "{words}");
        let counts = by_worker(&came, workers);
        let part: Vec<usize> = match words {
            "workers 1,3 on" => vec![1, 3],
            _ => (0..workers).collect(),
        };
        for worker in 0..workers {
            let share = counts[worker] * part.len();
            let fair = 1000 < share && share < 3000;
            assert_eq!(fair, part.contains(&worker), "{words}: {counts:?}");
        }
        let row = bench.show().interfaces.remove(0);
        assert_eq!(row.state, RssState::Spread);
        let shown: Vec<u64> = row.workers.iter().map(|w| w.packets).collect();
        let counted: Vec<u64> = part.iter().map(|w| counts[*w] as u64).collect();
        assert_eq!(shown, counted);
    }
}

#[test]
fn a_tunnel_is_one_flow_or_many_as_asked() {
    let mut bench = Bench::new(4);
    for (words, some) in [("on", 1), ("inner on", 4)] {
        bench.rss(words);
        bench.send((0..400).map(tunnelled));
        bench.settle();
        let mut workers: Vec<usize> = bench.took().iter().map(|(w, _)| *w).collect();
        assert_eq!(workers.len(), 400);
        workers.sort_unstable();
        workers.dedup();
        assert_eq!(workers.len(), some, "{words}");
    }
}

#[test]
fn both_directions_meet_when_asked() {
    let mut bench = Bench::new(4);
    for (words, all) in [("symmetric on", true), ("on", false)] {
        bench.rss(words);
        let mut same = 0;
        for flow in 2000..2100 {
            bench.send([udp(flow, 0), answer(flow)]);
            bench.settle();
            let came = bench.took();
            same += usize::from(came[0].0 == came[1].0);
        }
        assert_eq!(same == 100, all, "{words}: {same}");
    }
}

#[test]
fn what_is_no_flow_stays() {
    let mut bench = Bench::new(4);
    bench.rss("on");
    let mut arp = vec![2; 12];
    arp.extend([8, 6, 0, 1]);
    arp.resize(60, 0);
    bench.send((0..50).map(|_| arp.clone()));
    bench.settle();
    assert!(bench.took().iter().all(|(worker, _)| *worker == 0));
}

#[test]
fn switched_off_it_costs_nothing_and_nothing_is_lost_on_the_way() {
    let mut bench = Bench::new(3);
    assert!(!bench.is_in_front());
    bench.rss("on");
    bench.send(many(100, 10));
    bench.workers[0].step();
    bench.try_rss("off").unwrap();
    assert!(bench.is_in_front(), "packets are still with other workers");
    assert_eq!(bench.show().interfaces[0].state, RssState::Leaves);
    bench.settle();
    assert!(!bench.is_in_front());
    assert!(bench.show().interfaces.is_empty());
    let came = bench.took();
    assert_eq!(came.len(), 1000);
    let mut last = BTreeMap::new();
    for (_, packet) in &came {
        let before = last.insert(flow_of(packet), number_of(packet));
        assert!(before.is_none_or(|n| n < number_of(packet)), "in order");
    }
}

#[test]
fn a_full_ring_drops_by_name_and_holds_nobody_up() {
    let mut bench = Bench::new(2);
    bench.rss("workers 1 on");
    bench.send(many(64, 100));
    while bench.workers[0].step() > 0 {}
    let dropped = 6400 - 63 * 64;
    let engine = bench.host.engine.clone();
    let count = |name: &str| {
        let all = engine.borrow().counters();
        let mine = all
            .iter()
            .find(|c| c.node == "worker-handoff" && c.info.name == name);
        mine.map_or(0, |c| c.count)
    };
    assert_eq!(count("congestion"), dropped);
    assert_eq!(count("handed"), 63 * 64);
    let link = bench
        .show()
        .handoffs
        .into_iter()
        .find(|h| h.from == 0 && h.to == 1);
    let link = link.unwrap();
    assert_eq!((link.packets, link.drops), (63 * 64, dropped));
    bench.settle();
    assert_eq!(bench.took().len() as u64, 6400 - dropped);
}

#[test]
fn a_deleted_interface_leaves_no_trace() {
    let mut bench = Bench::new(2);
    bench.rss("on");
    let index = bench.host.interfaces.borrow().index("pg0").unwrap();
    bench.host.interfaces.borrow_mut().delete("pg0").unwrap();
    assert!(!bench.is_on_arc(index));
    bench.settle();
    assert!(bench.show().interfaces.is_empty());
}

#[test]
fn what_cannot_be_is_said() {
    let mut bench = Bench::new(2);
    let error = bench.try_rss("workers 0,2 on").unwrap_err().to_string();
    assert!(error.contains("there is no worker 2"), "{error}");
    let request = Request::set(&rss("pg7", "on")).unwrap();
    let answer = bench.owners.apply(&request);
    assert!(answer.unwrap().unwrap_err().to_string().contains("pg7"));
}

/// Processes packets until a worker has been busy for `seconds`, then makes a load sample due.
fn keep_busy(bench: &mut Bench, seconds: f64) {
    let engine = bench.host.engine.clone();
    let until = engine.borrow().busy_seconds(0) + seconds;
    while engine.borrow().busy_seconds(0) < until {
        bench.send(many(500, 1));
        bench.workers.iter_mut().for_each(|w| _ = w.step());
    }
    while bench.workers.iter_mut().map(Worker::step).sum::<usize>() > 0 {}
    bench.took();
    bench.clock.advance(100_000_000);
    bench.processes.run_manual();
}

#[test]
fn a_hot_queue_is_spread_by_itself_and_a_calm_one_is_not() {
    let mut bench = Bench::new(2);
    bench.rss("auto");
    assert!(!bench.is_in_front());
    assert_eq!(bench.show().interfaces[0].state, RssState::Waits);
    for _ in 0..5 {
        bench.clock.advance(100_000_000);
        bench.processes.run_manual();
    }
    assert!(!bench.is_in_front(), "nothing to do is no load");
    for _ in 0..3 {
        assert!(!bench.is_in_front(), "a moment is no load");
        keep_busy(&mut bench, 0.09);
    }
    bench.settle();
    assert!(bench.is_in_front());
    bench.send(many(100, 1));
    bench.settle();
    assert!(by_worker(&bench.took(), 2).iter().all(|n| *n > 10));
    // The first sample may still include earlier work.
    for _ in 0..21 {
        bench.clock.advance(100_000_000);
        bench.processes.run_manual();
    }
    bench.settle();
    assert!(!bench.is_in_front(), "all is calm");
    assert_eq!(bench.show().interfaces[0].state, RssState::Waits);
}

#[test]
fn heavy_flows_of_one_worker_are_parted_in_order() {
    let mut bench = Bench::new(2);
    bench.rss("on");
    // Flows of worker 0, in separate entries.
    bench.send(many(400, 1));
    bench.settle();
    let came = bench.took();
    let mine = came.iter().filter(|(worker, _)| *worker == 0).take(8);
    let flows: Vec<u16> = mine.map(|(_, packet)| flow_of(packet)).collect();
    let mut last = BTreeMap::new();
    for n in 0..30 {
        let packets = (0..100).flat_map(|k| flows.iter().map(move |f| udp(*f, n * 100 + k)));
        bench.send(packets);
        while !bench.packets.lock().unwrap().is_empty() {
            bench.workers.iter_mut().for_each(|w| _ = w.step());
        }
        bench.clock.advance(100_000_000);
        bench.processes.run_manual();
    }
    bench.settle();
    let came = bench.took();
    assert_eq!(came.len(), 24_000);
    for (_, packet) in &came {
        let before = last.insert(flow_of(packet), number_of(packet));
        assert!(before.is_none_or(|n| n < number_of(packet)), "in order");
    }
    assert!(bench.show().interfaces[0].rebalanced > 0);
    let late = &came[came.len() - 800..];
    let there = late.iter().filter(|(worker, _)| *worker == 1).count();
    assert!((200..=600).contains(&there), "{there} of 800");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Settings change while workers and the control thread run in any order: the same packets come out, each flow in order.
    #[test]
    fn any_interleaving_gives_the_same_packets(
        workers in 2usize..=4,
        script in prop::collection::vec((0u8..12, 0usize..4), 1..200),
    ) {
        let mut bench = Bench::new(workers);
        let (mut sent, mut number) = (0, 0);
        let words = ["on", "crc32c on", "off", "workers 1 on", "inner symmetric on", "workers 0 on", "auto"];
        for (what, which) in script {
            match what {
                0 => bench.try_rss(words[(sent + which) % words.len()]).unwrap(),
                1 | 2 => {
                    bench.send((0..40).map(|f| udp(1000 + f, number)));
                    (sent, number) = (sent + 40, number + 1);
                }
                3 => bench.processes.run_manual(),
                _ => _ = bench.workers[which % workers].step(),
            }
        }
        bench.settle();
        let mut came = bench.took();
        let dropped: u64 = bench.host.engine.borrow().drops().iter().map(|d| d.count).sum();
        prop_assert_eq!(came.len() as u64 + dropped, sent as u64);
        let mut last = BTreeMap::new();
        for (_, packet) in came.drain(..) {
            let before = last.insert(flow_of(&packet), number_of(&packet));
            prop_assert!(before.is_none_or(|n| n < number_of(&packet)));
        }
    }
}
