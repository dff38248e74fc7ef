//! Tests of the stage between a source and the next node, with a manual clock: packets in, batches out.

use crate::{
    BatcherSettings, InterfaceBatcher, PathBatcherReply, PathQueue, PathRule, ShowPathBatcher,
    register,
};
use proptest::prelude::*;
use std::sync::{Arc, Mutex};
use volley_graph::buf::Pool;
use volley_graph::{
    Clock, Col, Consumed, Cx, Domain, Engine, Isa, Level, NoCounters, NoNext, Node, Output,
    PacketTrace, Settings, Source, Vector, Worker, nexts,
};
use volley_iface::driver::DriverHost;
use volley_iface::{Interfaces, NewInterface, Registry};
use volley_model::{Applied, ModelError, Owners, Request};
use volley_object::{FieldError, Value};

type Packets = Arc<Mutex<Vec<Vec<u8>>>>;
/// Vectors that the node behind the stage receives.
type Vectors = Arc<Mutex<Vec<Vec<Vec<u8>>>>>;

nexts! {
    enum ToAny { Drop => "error-drop" }
}

struct Feeder {
    packets: Packets,
    rx: u32,
}

impl Source for Feeder {
    const NAME: &'static str = "feeder";
    type Next = ToAny;
    type Count = NoCounters;

    fn poll<I: Isa>(&mut self, _: &Cx<'_, NoCounters>, out: &mut Output<'_, I, ToAny>) -> usize {
        let mut waiting = self.packets.lock().unwrap();
        let n = waiting.len().min(out.vector_size());
        if n == 0 {
            return 0;
        }
        let mut fresh = out.alloc(n, self.rx);
        assert_eq!(fresh.len(), n);
        for (row, packet) in waiting.drain(..n).enumerate() {
            fresh.write(row, &packet);
        }
        fresh.send_received(self.rx)
    }
}

struct Behind(Vectors);

impl Node for Behind {
    const NAME: &'static str = "ethernet-input";
    type Next = NoNext;
    type Count = NoCounters;
    type Trace = PacketTrace;

    #[inline(always)]
    fn run<I: Isa>(&mut self, _: &Cx<'_, NoCounters>, v: Vector<'_, I, NoNext>) -> Consumed {
        let rows = 0..v.len();
        let rx_is_kept = v
            .column(Col::RX)
            .iter()
            .all(|rx| *rx == v.column(Col::RX)[0]);
        assert!(rx_is_kept);
        let packets = rows.map(|row| v.view(row).bytes().to_vec()).collect();
        self.0.lock().unwrap().push(packets);
        v.free()
    }
}

struct Bench {
    worker: Worker,
    clock: Clock,
    pool: Arc<Pool>,
    packets: Packets,
    out: Vectors,
    owners: Owners,
    processes: volley_graph::Processes,
    host: DriverHost,
}

impl Bench {
    fn new(vector_size: usize) -> Bench {
        Bench::with_buffers(vector_size, 8192)
    }

    fn with_buffers(vector_size: usize, buffers: usize) -> Bench {
        let (pool, domain, clock) = (Pool::new(buffers).unwrap(), Domain::new(), Clock::manual());
        let settings = Settings {
            vector_size,
            buffers,
            level: Level::detect(),
            workers: 1,
            clock: clock.clone(),
        };
        let engine = Engine::new(settings, pool.clone(), domain).unwrap();
        let mut registry = Registry::new(engine);
        let (packets, out) = (Packets::default(), Vectors::default());
        let sink = out.clone();
        let mut engine = registry.engine.borrow_mut();
        let behind = engine.add(Behind::NAME, move |_| Behind(sink.clone()));
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
            .add_source("feeder", move |_| Feeder {
                packets: feed.clone(),
                rx: index.0,
            })
            .unwrap();
        let worker = registry.engine.borrow_mut().build().unwrap().remove(0);
        let host = registry.host();
        Bench {
            worker,
            clock,
            pool,
            packets,
            out,
            processes: registry.processes.clone(),
            owners: registry.owners,
            host,
        }
    }

    fn on(vector_size: usize, rules: &[&str]) -> Bench {
        let mut bench = Bench::new(vector_size);
        rules.iter().for_each(|r| bench.ok(r));
        bench.switch(true);
        bench
    }

    fn apply(&mut self, request: Request) -> Result<Applied, ModelError> {
        self.owners.apply(&request).unwrap()
    }

    /// Requests from short texts: `queue ...` and `rule ...`.
    fn request(text: &str) -> Result<Request, FieldError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let after = |word: &str| {
            let at = words.iter().position(|w| *w == word)?;
            words.get(at + 1).and_then(|w| w.parse::<u32>().ok())
        };
        match words[0] {
            "queue" => Request::set(&PathQueue {
                id: words[1].parse().unwrap(),
                batch: after("batch"),
                timeout: after("timeout"),
                gather: after("gather"),
                weight: after("weight"),
                strict: after("strict"),
            }),
            "rule" => Request::set(&PathRule {
                name: words[1].into(),
                queue: after("queue").unwrap_or(0),
                priority: after("priority").unwrap_or(0),
                r#match: words
                    .windows(2)
                    .filter(|w| w[0] == "match")
                    .map(|w| w[1].parse().unwrap())
                    .collect(),
            }),
            other => panic!("{other}"),
        }
    }

    fn gone(class: &str, key: Value) -> Request {
        let classes = volley_object::classes();
        Request::Unset(classes.get(class).unwrap().key(vec![key]).unwrap())
    }

    fn ok(&mut self, text: &str) {
        self.apply(Bench::request(text).unwrap()).unwrap();
    }

    fn refused(&mut self, text: &str) -> String {
        match Bench::request(text) {
            Ok(request) => self.apply(request).unwrap_err().to_string(),
            Err(error) => error.to_string(),
        }
    }

    fn switch(&mut self, enabled: bool) {
        let interface = "pg0".to_owned();
        let batcher = InterfaceBatcher { interface, enabled };
        self.apply(Request::set(&batcher).unwrap()).unwrap();
    }

    fn send(&self, packets: impl IntoIterator<Item = Vec<u8>>) {
        self.packets.lock().unwrap().extend(packets);
    }

    fn run(&mut self) {
        while self.worker.step() > 0 {}
        self.processes.run_manual();
    }

    fn later(&mut self, us: u64) {
        self.clock.advance(us * 1000);
        self.run();
    }

    fn taken(&self) -> Vec<Vec<Vec<u8>>> {
        std::mem::take(&mut *self.out.lock().unwrap())
    }

    fn shown(&mut self) -> PathBatcherReply {
        self.owners.ask(&ShowPathBatcher).unwrap()
    }
}

/// A small frame of a type, with a flow and a number in it.
fn frame(kind: u16, flow: u8, number: u16) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, flow];
    frame.extend(kind.to_be_bytes());
    let mut ip = [0; 40];
    ip[0] = if kind == 0x86dd { 0x60 } else { 0x45 };
    // No next header (IPv6), an experimental protocol (IPv4).
    if kind == 0x86dd {
        ip[6] = 59;
    } else {
        ip[9] = 253;
    }
    frame.extend(ip);
    frame.extend(number.to_be_bytes());
    frame
}

fn tagged(vlan: u16, number: u16) -> Vec<u8> {
    let mut frame = frame(0x0800, vlan as u8, number);
    let tag = [[0x81, 0], vlan.to_be_bytes()].concat();
    frame.splice(12..12, tag);
    frame
}

fn alternating(n: u16) -> impl Iterator<Item = Vec<u8>> {
    (0..n).map(|i| frame(if i % 2 == 0 { 0x0800 } else { 0x86dd }, (i % 2) as u8, i))
}

const TWO: [&str; 4] = [
    "queue 1 batch 16",
    "queue 2 batch 16",
    "rule four queue 1 match ip4",
    "rule six queue 2 match ip6",
];

#[test]
fn alternating_paths_come_out_as_whole_vectors() {
    let mut bench = Bench::on(32, &TWO);
    bench.send(alternating(64));
    bench.run();
    let vectors = bench.taken();
    let sizes: Vec<usize> = vectors.iter().map(Vec::len).collect();
    assert_eq!(sizes, [16; 4]);
    for vector in &vectors {
        assert!(
            vector.iter().all(|p| p[12..14] == vector[0][12..14]),
            "one path in a vector"
        );
    }
    assert_eq!(bench.pool.report().in_use(), 0);
    let shown = bench.shown();
    assert_eq!(
        (
            shown.totals.packets,
            shown.rules[0].packets,
            shown.rules[1].packets
        ),
        (64, 32, 32)
    );
    assert_eq!((shown.queues[1].full, shown.queues[1].timeouts), (2, 0));
}

#[test]
fn a_batch_goes_when_its_time_is_up_and_not_before() {
    let mut bench = Bench::on(32, &TWO);
    bench.later(1000);
    bench.send(alternating(10));
    bench.run();
    assert!(bench.taken().is_empty());
    assert_eq!(
        bench.pool.report().in_use(),
        10,
        "held packets hold their buffers"
    );
    assert_eq!(bench.shown().totals.held, 10);
    for _ in 0..4 {
        bench.later(5);
        assert!(bench.taken().is_empty());
    }
    (0..6).for_each(|_| bench.later(5));
    assert_eq!(bench.taken().len(), 2);
    let shown = bench.shown();
    assert!(
        shown.totals.delay_max_us <= 50.0 && shown.totals.delay_max_us > 20.0,
        "{}",
        shown.totals.delay_max_us
    );
    assert_eq!((shown.totals.held, shown.queues[1].timeouts), (0, 1));
    assert_eq!(bench.pool.report().in_use(), 0);
}

#[test]
fn the_batcher_holds_no_more_than_its_share_of_the_buffers() {
    let rules = [
        "queue 1 batch 64 gather 16",
        "queue 2 batch 64 gather 16",
        "rule four queue 1 match ip4",
        "rule six queue 2 match ip6",
    ];
    let mut bench = Bench::with_buffers(64, 1024);
    rules.iter().for_each(|rule| bench.ok(rule));
    bench.switch(true);
    let (mut came, mut most) = (0, 0);
    for _ in 0..100 {
        bench.send(alternating(100));
        bench.run();
        came += bench.taken().iter().map(Vec::len).sum::<usize>();
        most = most.max(bench.pool.report().in_use());
    }
    let held = bench.shown().totals.held as usize;
    assert_eq!((came + held, bench.pool.report().in_use()), (10_000, held));
    assert!((129..=192).contains(&most), "{most} of 192");
}

#[test]
fn a_worker_that_is_held_up_now_and_then_comes_in_time_nevertheless() {
    let mut bench = Bench::on(32, &TWO);
    let held_up = |bench: &mut Bench, from: u16| {
        for us in 0..8000u16 {
            if us % 100 == 0 {
                bench.send(alternating(2));
            }
            // Every 4 ms, as by the kernel's timer, at varying times of a packet's wait.
            let stall = us % 4000 == (from + us / 4000 * 37) % 100 + 100;
            bench.later(if stall { 22 } else { 1 });
        }
        bench.shown().queues.iter().map(|q| q.late).sum::<u64>()
    };
    // The first stall cannot be foreseen.
    held_up(&mut bench, 0);
    bench.processes.run_manual();
    let before: u64 = bench.shown().queues.iter().map(|q| q.late).sum();
    let late: Vec<u64> = (0..12).map(|n| held_up(&mut bench, n * 9)).collect();
    assert_eq!(late, [before; 12]);
    assert!(bench.shown().totals.delay_p99_us <= 50.0);
    assert_eq!(
        bench.pool.report().in_use(),
        bench.shown().totals.held as usize
    );
}

#[test]
fn strict_queues_first_and_weights_in_turn() {
    let rules = [
        "queue 1 batch 4",
        "queue 2 batch 4 weight 2",
        "queue 3 batch 4 strict 1",
        "rule a queue 1 match ethernet.type=1",
        "rule b queue 2 match ethernet.type=2",
        "rule c queue 3 match ethernet.type=3",
    ];
    let mut bench = Bench::on(64, &rules);
    bench.send((0..48).map(|i| frame(1 + i % 3, 0, i)));
    bench.run();
    let order: Vec<u8> = bench.taken().iter().map(|v| v[0][13]).collect();
    assert_eq!(order, [3, 3, 3, 3, 1, 2, 2, 1, 2, 2, 1, 1]);
}

#[test]
fn full_batches_wait_for_each_other_and_no_longer_than_their_limit() {
    let rules = [
        "queue 1 batch 4 gather 2",
        "queue 2 batch 4 gather 3 timeout 30",
        "rule a queue 1 match ethernet.type=1",
        "rule b queue 2 match ethernet.type=2",
    ];
    let mut bench = Bench::on(64, &rules);
    bench.send((0..24).map(|i| frame(1 + i % 2, 0, i)));
    bench.run();
    let order = |bench: &mut Bench| -> Vec<u8> { bench.taken().iter().map(|v| v[0][13]).collect() };
    assert_eq!(
        order(&mut bench),
        [1, 1, 2, 2, 2, 1],
        "two, three, and what a turn left"
    );
    bench.send((0..8).map(|i| frame(2, 0, i)));
    bench.run();
    assert!(order(&mut bench).is_empty(), "two of three are full");
    (0..4).for_each(|_| bench.later(5));
    assert!(order(&mut bench).is_empty(), "20 us of 30");
    (0..3).for_each(|_| bench.later(5));
    assert_eq!(order(&mut bench), [2, 2]);
    let shown = bench.shown();
    assert_eq!((shown.totals.held, shown.queues[2].late), (0, 0));
    assert_eq!(bench.pool.report().in_use(), 0);
}

#[test]
fn learning_finds_the_two_heaviest_of_fifty() {
    let mut bench = Bench::on(64, &[]);
    let defaults = BatcherSettings {
        learn: 2,
        learn_sample: 4,
        learn_field: vec!["vlan.id".into()],
        ..BatcherSettings::default()
    };
    bench.apply(Request::set(&defaults).unwrap()).unwrap();
    let mut number = 0;
    for _ in 0..100 {
        let heavy = [17, 31];
        let packets = (0..200u16).map(|i| {
            if i % 4 < 3 {
                heavy[(i % 2) as usize]
            } else {
                i / 4
            }
        });
        bench.send(packets.map(|vlan| {
            number += 1;
            tagged(vlan, number)
        }));
        bench.later(5_000);
    }
    let shown = bench.shown();
    let mut learned: Vec<&str> = shown.learned.iter().map(|l| l.path.as_str()).collect();
    learned.sort_unstable();
    assert_eq!(
        learned,
        [
            "ethernet/vlan/ip4 vlan.id=17",
            "ethernet/vlan/ip4 vlan.id=31"
        ]
    );
    assert!(
        shown.queues.iter().any(|q| q.learned && q.packets > 1000),
        "{:?}",
        shown.queues
    );
    bench.later(1000);
    assert_eq!(bench.pool.report().in_use(), 0);
}

#[test]
fn bad_rules_say_why_and_change_nothing() {
    let mut bench = Bench::on(32, &TWO);
    let before = bench.shown();
    for (text, part) in [
        (
            "rule x queue 9 match arp",
            "there is no path-batcher queue 9",
        ),
        ("rule x queue 1 match ip5", "there is no header ip5"),
        (
            "rule x queue 1 match ip4.colour=1",
            "ip4 has no field colour",
        ),
        ("rule x queue 1 match ip4.ttl=256", "8 bits"),
        ("rule x queue 1 match ip4.dst=2001:db8::1", "32 bits"),
        ("rule x queue 2 match ip4", "matches the same packets"),
        (
            "rule x queue 1 match udp.dst=1 match udp.dst=2",
            "no packet has both",
        ),
        (
            "rule x queue 1 match path=ethernet/ipx",
            "there is no header ipx",
        ),
        ("queue 64", "64"),
        ("queue 1 batch 0", "batch"),
    ] {
        let why = bench.refused(text);
        assert!(why.contains(part) && !why.contains('\n'), "{text}: {why}");
    }
    let many: Vec<String> = (0..17)
        .map(|i| {
            format!(
                "match ip4@{}.{}=1",
                1 + i / 7,
                ["tos", "len", "ttl", "protocol", "src", "dst", "dscp"][i % 7]
            )
        })
        .collect();
    let chunks: Vec<String> = many.chunks(9).map(|c| c.join(" ")).collect();
    bench.ok(&format!("rule a queue 1 {}", chunks[0]));
    assert!(
        bench
            .refused(&format!("rule b queue 1 {}", chunks[1]))
            .contains("16 different fields")
    );
    bench.apply(Bench::gone("path_rule", "a".into())).unwrap();
    let in_use = bench
        .apply(Bench::gone("path_queue", Value::Number(1)))
        .unwrap_err()
        .to_string();
    assert!(in_use.contains("four"), "{in_use}");
    assert_eq!(bench.shown(), before);
}

#[test]
fn an_interface_that_goes_takes_the_stage_with_it() {
    let mut bench = Bench::on(32, &TWO);
    bench.send(alternating(10));
    bench.run();
    let interfaces: std::rc::Rc<std::cell::RefCell<Interfaces>> = bench.host.interfaces.clone();
    interfaces.borrow_mut().delete("pg0").unwrap();
    assert!(bench.shown().interfaces.is_empty());
    let arcs = bench.host.engine.borrow().arcs();
    let on: Vec<u32> = arcs
        .iter()
        .flat_map(|arc| &arc.features)
        .flat_map(|f| f.1.clone())
        .collect();
    assert!(on.is_empty(), "{on:?}");
    (0..20).for_each(|_| bench.later(10));
    assert_eq!(bench.pool.report().in_use(), 0);
}

#[derive(Clone, Debug)]
enum Event {
    Packets(Vec<u8>),
    Later(u64),
    Switch(bool),
    Rule(u8, u8),
    Delete(u8),
    Queue(u8, u32, u32),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => prop::collection::vec(0u8..6, 1..80).prop_map(Event::Packets),
        3 => (0u64..120).prop_map(Event::Later),
        2 => any::<bool>().prop_map(Event::Switch),
        2 => (0u8..6, 0u8..4).prop_map(|(f, q)| Event::Rule(f, q)),
        1 => (0u8..6).prop_map(Event::Delete),
        1 => (1u8..4, 1u32..40, 1u32..4).prop_map(|(q, b, g)| Event::Queue(q, b, g)),
    ]
}

proptest! {
    /// Whatever changes while packets flow: all packets arrive, each flow in order, all buffers are freed, and no packet waits
    /// longer than its limit plus one step of the clock.
    #[test]
    fn nothing_is_lost_or_overtaken(
        events in prop::collection::vec(event(), 1..60),
        size in prop_oneof![Just(4usize), Just(7), Just(64), Just(256)],
    ) {
        let mut bench = Bench::on(size, &["queue 1 batch 8", "queue 2 batch 3 weight 2", "queue 3 batch 30 strict 1"]);
        let mut sent = [0u16; 6];
        for event in events {
            match event {
                Event::Packets(flows) => {
                    let packets = flows.iter().map(|&flow| {
                        sent[flow as usize] += 1;
                        frame([0x0800, 0x86dd][(flow % 2) as usize], flow, sent[flow as usize])
                    });
                    let packets: Vec<_> = packets.collect();
                    bench.send(packets);
                    bench.run();
                }
                Event::Later(us) => bench.later(us),
                Event::Switch(on) => bench.switch(on),
                Event::Rule(flow, queue) => {
                    bench.ok(&format!("rule f{flow} queue {queue} match ethernet.src=02:00:00:00:00:0{flow}"));
                }
                Event::Delete(flow) => {
                    let _ = bench.apply(Bench::gone("path_rule", Value::text(format!("f{flow}"))));
                }
                Event::Queue(id, batch, gather) => bench.ok(&format!("queue {id} batch {batch} gather {gather}")),
            }
            let held = bench.shown().totals.held as usize;
            prop_assert_eq!(bench.pool.report().in_use(), held, "allocated = free + held");
        }
        (0..30).for_each(|_| bench.later(10));
        let mut got = [0u16; 6];
        for packet in bench.taken().into_iter().flatten() {
            let flow = packet[11] as usize;
            got[flow] += 1;
            let number = u16::from_be_bytes(packet[54..56].try_into().unwrap());
            prop_assert_eq!(number, got[flow], "flow {} in order", flow);
        }
        prop_assert_eq!(got, sent);
        prop_assert_eq!(bench.pool.report().in_use(), 0);
    }
}
