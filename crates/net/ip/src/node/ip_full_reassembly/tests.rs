//! The node as a stage, on a clock that the test owns: fragments in, datagrams out.

use super::*;
use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;
use volley_fib::{Fib, V4, V6};
use volley_graph::buf::Pool;
use volley_graph::{
    Clock, DROP_NODE, Domain, Engine, Glance, Level, NoCounters, NoNext, Settings, Source, Worker,
};
use volley_model::{Family, ReassemblySettings};

const SECOND_NS: u64 = 1_000_000_000;

/// Where a packet arrived, its bytes with the Ethernet header in front, and the reason of its drop.
type Arrived = Vec<(&'static str, Vec<u8>, Option<&'static str>)>;

struct End(&'static str, Arc<Mutex<Arrived>>);

impl Node for End {
    const NAME: &'static str = "end";
    type Next = NoNext;
    type Count = NoCounters;
    type Trace = Glance;

    #[inline(always)]
    fn run<I: Isa>(&mut self, _: &Cx<'_, NoCounters>, v: Vector<'_, I, NoNext>) -> Done {
        for row in 0..v.len() {
            let view = v.view(row);
            let mut bytes = Vec::new();
            view.segments(view.moved(), |part| bytes.extend_from_slice(part));
            let reason = view.get(Col::Err).filter(|word| *word != 0).map(|word| {
                let (_, counter) = volley_graph::NodeId::of_reason(word);
                Count::INFO[counter].name
            });
            self.1.lock().unwrap().push((self.0, bytes, reason));
        }
        v.free()
    }
}

nexts! {
    enum ToTest { Test => "under-test" }
}

struct Feeder(Arc<Mutex<Vec<Vec<u8>>>>, usize);

impl Source for Feeder {
    const NAME: &'static str = "feeder";
    type Next = ToTest;
    type Count = NoCounters;

    fn poll<I: Isa>(&mut self, _: &Cx<'_, NoCounters>, out: &mut Output<'_, I, ToTest>) -> usize {
        let mut waiting = self.0.lock().unwrap();
        let n = waiting.len().min(self.1);
        let mut fresh = out.alloc(n, 0);
        for (row, packet) in waiting.drain(..fresh.len()).enumerate() {
            fresh.write(row, &packet);
        }
        fresh.prepare(|_, packet| packet.advance(14));
        fresh.send(ToTest::Test)
    }
}

struct Bench {
    worker: Worker,
    clock: Clock,
    pool: Arc<Pool>,
    waiting: Arc<Mutex<Vec<Vec<u8>>>>,
    arrived: Arc<Mutex<Arrived>>,
    switches: Arc<ReassemblySwitches>,
    _engine: Engine,
}

impl Bench {
    fn new<F: Icmp>(level: Level, size: usize, plane: fn(&Fib) -> DataPlane<F>) -> Bench {
        let (domain, clock, pool) = (Domain::new(), Clock::manual(), Pool::new(2048).unwrap());
        let settings = Settings {
            vector_size: size.max(4),
            buffers: 2048,
            level,
            workers: 1,
            clock: clock.clone(),
        };
        let mut engine = Engine::new(settings, pool.clone(), domain.clone()).unwrap();
        let (waiting, arrived) = (Arc::default(), Arc::<Mutex<Arrived>>::default());
        engine.remove(DROP_NODE).unwrap();
        for name in [F::LOCAL, F::ICMP_ERROR, DROP_NODE] {
            let arrived = arrived.clone();
            engine
                .add(name, move |_| End(name, arrived.clone()))
                .unwrap();
        }
        let feed: Arc<Mutex<Vec<Vec<u8>>>> = Arc::clone(&waiting);
        let feeder = move |_| Feeder(feed.clone(), size);
        engine.add_source("feeder", feeder).unwrap();
        let switches = Arc::new(ReassemblySwitches::new(match F::AF {
            Af::V4 => Family::V4,
            Af::V6 => Family::V6,
        }));
        let (plane, mine) = (plane(&Fib::new(&domain)), switches.clone());
        let make = move |worker| {
            FullReassembly::<F>::new(plane.clone(), mine.clone(), worker, size.max(4))
        };
        engine.add_stage("under-test", make).unwrap();
        Bench {
            worker: engine.build().unwrap().remove(0),
            clock,
            pool,
            waiting,
            arrived,
            switches,
            _engine: engine,
        }
    }

    fn give(&mut self, packets: impl IntoIterator<Item = Vec<u8>>) -> Arrived {
        self.waiting.lock().unwrap().extend(packets);
        while self.worker.step() > 0 {}
        std::mem::take(&mut self.arrived.lock().unwrap())
    }

    fn at(&mut self, now_ns: u64) -> Arrived {
        let Clock::Manual(cell) = &self.clock else {
            unreachable!()
        };
        cell.store(now_ns, Relaxed);
        self.give([])
    }
}

const ETHERNET: [u8; 14] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];

fn body(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + at / 251) as u8).collect()
}

/// A fragment over Ethernet: `from` and `to` are the part of `body` that it has.
fn ip4(id: u16, body: &[u8], from: usize, to: usize) -> Vec<u8> {
    let more = if to < body.len() { 0x2000 } else { 0 };
    let flags = more | (from / 8) as u16;
    let mut p = ETHERNET.to_vec();
    p.extend([0x45, 0]);
    p.extend(((20 + to - from) as u16).to_be_bytes());
    p.extend(id.to_be_bytes());
    p.extend(flags.to_be_bytes());
    p.extend([64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    let sum = volley_wire::checksum::checksum(&p[14..]);
    p[24..26].copy_from_slice(&sum.to_be_bytes());
    p.extend(&body[from..to]);
    p
}

fn ip6(id: u32, body: &[u8], from: usize, to: usize) -> Vec<u8> {
    let word = from as u16 | u16::from(to < body.len());
    let mut p = ETHERNET.to_vec();
    p.extend([0x60, 0, 0, 0]);
    p.extend(((8 + to - from) as u16).to_be_bytes());
    p.extend([44, 64]);
    p.extend([1; 16]);
    p.extend([2; 16]);
    p.extend([17, 0]);
    p.extend(word.to_be_bytes());
    p.extend(id.to_be_bytes());
    p.extend(&body[from..to]);
    p
}

/// A datagram's fragments of `part` bytes each.
fn all_of(len: usize, part: usize, one: impl Fn(&[u8], usize, usize) -> Vec<u8>) -> Vec<Vec<u8>> {
    let body = body(len);
    let ends = |from: usize| (from, (from + part).min(len));
    let parts = (0..len).step_by(part).map(ends);
    parts.map(|(from, to)| one(&body, from, to)).collect()
}

#[test]
fn datagrams_are_whole_again_at_every_size_and_level() {
    for level in Level::available() {
        for size in [1, 7, 256] {
            for (len, part) in [(20, 8), (3000, 1480), (65_515, 1480)] {
                let mut bench = Bench::new::<V4>(level, size, Fib::dataplane4);
                let mut fragments = all_of(len, part, |b, from, to| ip4(7, b, from, to));
                fragments.reverse();
                let out = bench.give(fragments);
                let mut want = ip4(7, &body(len), 0, len);
                want[18..20].copy_from_slice(&7u16.to_be_bytes());
                assert_eq!(out.len(), 1, "{level} {size} {len}");
                assert_eq!((out[0].0, out[0].2), ("ip4-local", None));
                assert!(out[0].1 == want, "{level} {size} {len}");
                assert_eq!(bench.pool.report().in_use(), 0);
            }
        }
    }
}

#[test]
fn ip6_datagrams_lose_their_fragment_headers() {
    let mut bench = Bench::new::<V6>(Level::detect(), 64, Fib::dataplane6);
    let out = bench.give(all_of(65_535, 1232, |b, from, to| ip6(7, b, from, to)));
    assert_eq!((out.len(), out[0].0), (1, "ip6-local"));
    let got = &out[0].1;
    assert_eq!(got[14..22], [0x60, 0, 0, 0, 0xff, 0xff, 17, 64]);
    assert!(got[54..] == body(65_535));
    assert_eq!(bench.pool.report().in_use(), 0);
}

#[test]
fn when_time_is_over_only_the_first_fragment_is_told_of() {
    let mut bench = Bench::new::<V4>(Level::detect(), 64, Fib::dataplane4);
    let parts = all_of(4000, 1480, |b, from, to| ip4(9, b, from, to));
    assert!(bench.give(parts[..2].to_vec()).is_empty());
    assert_eq!(bench.pool.report().in_use(), 2);
    let late = all_of(4000, 1480, |b, from, to| ip4(10, b, from, to));
    assert!(bench.at(SECOND_NS).is_empty());
    assert!(bench.give(late[1..2].to_vec()).is_empty());
    assert!(bench.at(30 * SECOND_NS - 1).is_empty());
    let out = bench.at(30 * SECOND_NS);
    let want = [
        ("ip4-icmp-error", parts[0].clone(), Some("timeout")),
        ("error-drop", parts[1].clone(), Some("timeout")),
    ];
    let mut out: Vec<_> = out.into_iter().collect();
    out.sort_by_key(|it| it.0 == "error-drop");
    assert_eq!(out, want);
    let out = bench.at(31 * SECOND_NS);
    assert_eq!(
        (out.len(), out[0].0),
        (1, "error-drop"),
        "no first fragment"
    );
    assert_eq!(bench.pool.report().in_use(), 0);
}

#[test]
fn an_overlap_is_silent_and_takes_the_rest_along() {
    let mut bench = Bench::new::<V6>(Level::detect(), 64, Fib::dataplane6);
    let body = body(64);
    let cut = |from, to| ip6(1, &body, from, to);
    let out = bench.give([cut(0, 32), cut(24, 40), cut(32, 64), cut(0, 32)]);
    let reasons: Vec<_> = out.iter().map(|it| (it.0, it.2.unwrap_or(""))).collect();
    let want = [
        ("error-drop", "overlap"),
        ("error-drop", "discarded"),
        ("error-drop", "discarded"),
        ("error-drop", "overlap"),
    ];
    assert_eq!(reasons, want);
    assert!(bench.at(60 * SECOND_NS).is_empty());
    assert_eq!(bench.give([cut(0, 32), cut(32, 64)]).len(), 1);
    assert_eq!(bench.pool.report().in_use(), 0);
}

#[test]
fn ip6_senders_are_told_of_what_is_wrong_with_a_fragment() {
    let mut bench = Bench::new::<V6>(Level::detect(), 64, Fib::dataplane6);
    let long = body(64);
    let mut too_long = ip6(2, &long, 0, 8);
    too_long[56..58].copy_from_slice(&0xfff9u16.to_be_bytes());
    let out = bench.give([ip6(1, &long, 0, 9), too_long]);
    let reasons: Vec<_> = out.iter().map(|it| (it.0, it.2.unwrap_or(""))).collect();
    let want = [
        ("ip6-icmp-error", "bad-fragment-length"),
        ("ip6-icmp-error", "too-long"),
    ];
    assert_eq!(reasons, want);
}

#[test]
fn a_flood_holds_no_more_than_it_may() {
    let mut bench = Bench::new::<V4>(Level::detect(), 256, Fib::dataplane4);
    bench.switches.set(&ReassemblySettings {
        max_reassemblies: 100,
        max_buffers: 150,
        ..ReassemblySettings::default()
    });
    let body = body(64);
    let mut dropped = 0;
    for id in 0..2000u16 {
        let out = bench.give([ip4(id, &body, 0, 16), ip4(id, &body, 24, 32)]);
        assert!(out.iter().all(|it| it.2 == Some("evicted")));
        dropped += out.len();
        assert!(bench.pool.report().in_use() <= 150);
    }
    assert_eq!(dropped + bench.pool.report().in_use(), 4000);
    // The newest is still there, and whole with its rest.
    let rest = [ip4(1999, &body, 16, 24), ip4(1999, &body, 32, 64)];
    let out = bench.give(rest);
    assert!(
        out.iter()
            .any(|it| it.0 == "ip4-local" && it.1[34..] == body[..])
    );
}
