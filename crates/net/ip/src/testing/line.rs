//! Test bed for a node that stores fragments, between a source and the ends of all edges: one worker and a manual clock.
// tidy: allow(Mutex) only tests are built with it

use crate::ReassemblySwitches;
use crate::reassembly::Reassemble;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use volley_fib::Af;
use volley_fib::columns::FLOW_HASH;
use volley_graph::buf::Pool;
use volley_graph::{
    Clock, Col, Consumed, Counters, Cx, DROP_NODE, Domain, Engine, Isa, Level, NoCounters, NoNext,
    Node, NodeId, Output, PacketTrace, Settings, Source, Vector, Worker, nexts,
};
use volley_model::Family;

/// For each packet: the node where it arrived, its bytes including those before the IP header, its flow hash, and its drop
/// reason.
pub(crate) type Arrived = Vec<(&'static str, Vec<u8>, u32, Option<&'static str>)>;

struct End {
    name: &'static str,
    arrived: Arc<Mutex<Arrived>>,
    reason: fn(usize) -> &'static str,
}

impl Node for End {
    const NAME: &'static str = "end";
    type Next = NoNext;
    type Count = NoCounters;
    type Trace = PacketTrace;

    #[inline(always)]
    fn run<I: Isa>(&mut self, _: &Cx<'_, NoCounters>, v: Vector<'_, I, NoNext>) -> Consumed {
        for row in 0..v.len() {
            let view = v.view(row);
            let mut bytes = Vec::new();
            view.segments(view.moved(), |part| bytes.extend_from_slice(part));
            let reason = view.get(Col::ERR).filter(|word| *word != 0);
            let reason = reason.map(|word| (self.reason)(NodeId::of_reason(word).1));
            let hash = view.get(FLOW_HASH.col).unwrap_or(0);
            let packet = (self.name, bytes, hash, reason);
            self.arrived.lock().unwrap().push(packet);
        }
        v.free()
    }
}

nexts! {
    enum ToTest { Test => "under-test" }
}

/// Creates packets with `front` bytes before the IP header.
struct Feeder {
    waiting: Arc<Mutex<Vec<Vec<u8>>>>,
    size: usize,
    front: usize,
}

impl Source for Feeder {
    const NAME: &'static str = "feeder";
    type Next = ToTest;
    type Count = NoCounters;

    fn poll<I: Isa>(&mut self, _: &Cx<'_, NoCounters>, out: &mut Output<'_, I, ToTest>) -> usize {
        let mut waiting = self.waiting.lock().unwrap();
        let n = waiting.len().min(self.size);
        let mut fresh = out.alloc(n, 0);
        for (row, packet) in waiting.drain(..fresh.len()).enumerate() {
            fresh.write(row, &packet);
        }
        fresh.prepare(|_, packet| packet.advance(self.front));
        fresh.send(ToTest::Test)
    }
}

/// Graph under construction.
pub(crate) struct Plan {
    pub engine: Engine,
    pub domain: Arc<Domain>,
    pub switches: Arc<ReassemblySwitches>,
    clock: Clock,
    pool: Arc<Pool>,
    waiting: Arc<Mutex<Vec<Vec<u8>>>>,
    arrived: Arc<Mutex<Arrived>>,
}

impl Plan {
    /// Packets arrive up to `size` at a time, each with `front` bytes before its IP header, and are sent to the node
    /// "under-test", which the caller adds. They arrive at the `ends` and the drop node; `C` are the counters of the drop
    /// reasons.
    pub fn new<F: Reassemble, C: Counters>(
        level: Level,
        (size, front): (usize, usize),
        ends: &[&'static str],
    ) -> Plan {
        let (domain, clock, pool) = (Domain::new(), Clock::manual(), Pool::new(16_384).unwrap());
        let settings = Settings {
            vector_size: size.max(4),
            buffers: 16_384,
            level,
            workers: 1,
            clock: clock.clone(),
        };
        let mut engine = Engine::new(settings, pool.clone(), domain.clone()).unwrap();
        let arrived = Arc::<Mutex<Arrived>>::default();
        engine.remove(DROP_NODE).unwrap();
        for name in ends.iter().copied().chain([DROP_NODE]) {
            let arrived = arrived.clone();
            let end = move |_| End {
                name,
                arrived: arrived.clone(),
                reason: |counter| C::INFO[counter].name,
            };
            engine.add(name, end).unwrap();
        }
        let waiting = Arc::<Mutex<Vec<Vec<u8>>>>::default();
        let feed = waiting.clone();
        let feeder = move |_| Feeder {
            waiting: feed.clone(),
            size,
            front,
        };
        engine.add_source("feeder", feeder).unwrap();
        let family = match F::AF {
            Af::V4 => Family::V4,
            Af::V6 => Family::V6,
        };
        Plan {
            domain,
            switches: Arc::new(ReassemblySwitches::new(family, &mut engine).unwrap()),
            engine,
            clock,
            pool,
            waiting,
            arrived,
        }
    }

    pub fn build(mut self) -> Line {
        Line {
            worker: self.engine.build().unwrap().remove(0),
            engine: self.engine,
            switches: self.switches,
            clock: self.clock,
            pool: self.pool,
            waiting: self.waiting,
            arrived: self.arrived,
        }
    }
}

/// The worker and its environment.
pub(crate) struct Line {
    worker: Worker,
    pub engine: Engine,
    pub switches: Arc<ReassemblySwitches>,
    clock: Clock,
    pub pool: Arc<Pool>,
    waiting: Arc<Mutex<Vec<Vec<u8>>>>,
    arrived: Arc<Mutex<Arrived>>,
}

impl Line {
    /// Sends packets, runs the worker until no work is pending, and returns what arrived.
    pub fn give(&mut self, packets: impl IntoIterator<Item = Vec<u8>>) -> Arrived {
        self.waiting.lock().unwrap().extend(packets);
        while self.worker.step() > 0 {}
        std::mem::take(&mut self.arrived.lock().unwrap())
    }

    /// Sets the clock and returns what arrived.
    pub fn at(&mut self, now_ns: u64) -> Arrived {
        let Clock::Manual(cell) = &self.clock else {
            unreachable!()
        };
        cell.store(now_ns, Relaxed);
        self.give([])
    }
}
