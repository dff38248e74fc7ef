//! The nodes on an arc between a source and the ends of all edges, one worker and a clock that the test owns.

use super::*;
use crate::node::ip_full_reassembly_handoff::Handoff;
use crate::node::ip_sv_reassembly_feature::SvFeature;
use crate::reassembly::Virtual;
use std::collections::hash_map::RandomState;
use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;
use volley_fib::Af;
use volley_graph::buf::Pool;
use volley_graph::{
    ArcId, Clock, DROP_NODE, Domain, Engine, Feature, Glance, NoCounters, NoNext, Settings, Source,
    Worker,
};
use volley_model::Family;

/// Where a packet arrived, its bytes, its flow's hash, and the reason of its drop.
pub type Arrived = Vec<(&'static str, Vec<u8>, u32, Option<&'static str>)>;

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
            let reason = view.get(Col::Err).filter(|word| *word != 0).map(|word| {
                let (_, counter) = volley_graph::NodeId::of_reason(word);
                Count::INFO[counter].name
            });
            let hash = view.get(Col::Hash).unwrap_or(0);
            let packet = (self.0, view.bytes().to_vec(), hash, reason);
            self.1.lock().unwrap().push(packet);
        }
        v.free()
    }
}

/// The node in front of the arc.
struct Start(ArcId);

nexts! {
    enum ToEnd { End => "end" }
}

impl Node for Start {
    const NAME: &'static str = "start";
    type Next = ToEnd;
    type Count = NoCounters;
    type Trace = Glance;

    #[inline(always)]
    fn run<I: Isa>(&mut self, _: &Cx<'_, NoCounters>, v: Vector<'_, I, ToEnd>) -> Done {
        v.send_arc(self.0, Col::Rx, ToEnd::End)
    }
}

/// A feature behind the one under test.
struct Later(Arc<Mutex<u64>>);

impl Node for Later {
    const NAME: &'static str = "later";
    type Next = NoNext;
    type Count = NoCounters;
    type Trace = Glance;

    #[inline(always)]
    fn run<I: Isa>(&mut self, _: &Cx<'_, NoCounters>, v: Vector<'_, I, NoNext>) -> Done {
        *self.0.lock().unwrap() += v.len() as u64;
        v.next_feature()
    }
}

nexts! {
    enum ToTest { Test => "start" }
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
        fresh.send(ToTest::Test)
    }
}

pub struct Bench {
    worker: Worker,
    clock: Clock,
    pub pool: Arc<Pool>,
    waiting: Arc<Mutex<Vec<Vec<u8>>>>,
    arrived: Arc<Mutex<Arrived>>,
    pub behind: Arc<Mutex<u64>>,
    pub switches: Arc<ReassemblySwitches>,
    pub engine: Engine,
}

pub const ARC: &str = "arc-under-test";

impl Bench {
    pub fn new<F: Icmp>(level: Level, size: usize, plane: fn(&Fib) -> DataPlane<F>) -> Bench {
        let (domain, clock, pool) = (Domain::new(), Clock::manual(), Pool::new(2048).unwrap());
        let settings = Settings {
            vector_size: size.max(4),
            buffers: 2048,
            level,
            workers: 1,
            clock: clock.clone(),
        };
        let size = size.max(4);
        let mut engine = Engine::new(settings, pool.clone(), domain.clone()).unwrap();
        let (waiting, arrived) = (
            Arc::<Mutex<Vec<Vec<u8>>>>::default(),
            Arc::<Mutex<Arrived>>::default(),
        );
        let behind = Arc::<Mutex<u64>>::default();
        engine.remove(DROP_NODE).unwrap();
        for name in ["end", DROP_NODE] {
            let arrived = arrived.clone();
            engine
                .add(name, move |_| End(name, arrived.clone()))
                .unwrap();
        }
        let feed = waiting.clone();
        engine
            .add_source("feeder", move |_| Feeder(feed.clone(), size))
            .unwrap();
        let arc = engine.arc(ARC, "start", "end");
        engine.add("start", move |_| Start(arc)).unwrap();
        let count = behind.clone();
        engine.add("later", move |_| Later(count.clone())).unwrap();
        let node = engine
            .add(F::SV_FEATURE, move |_| SvFeature::<F>::new(size))
            .unwrap();
        for (name, after) in [(F::SV_FEATURE, &[][..]), ("later", &[F::SV_FEATURE])] {
            let before = &[];
            let feature = Feature {
                name,
                before,
                after,
            };
            engine.add_feature(ARC, feature).unwrap();
            engine.set_feature(ARC, name, 0, true).unwrap();
        }
        let (crew, hasher) = (engine.crew().clone(), RandomState::new());
        let handoff = move |_| Handoff::<Virtual<F>>::new(crew.clone(), hasher.clone(), size);
        engine.add(F::SV_HANDOFF, handoff).unwrap();
        let switches = Arc::new(ReassemblySwitches::new(match F::AF {
            Af::V4 => Family::V4,
            Af::V6 => Family::V6,
        }));
        let (plane, mine) = (plane(&Fib::new(&domain)), switches.clone());
        let spot = Spot { arc, node };
        let make =
            move |worker| SvReassembly::<F>::new(plane.clone(), mine.clone(), spot, (worker, size));
        engine.add_stage(F::SV_REASSEMBLY, make).unwrap();
        Bench {
            worker: engine.build().unwrap().remove(0),
            clock,
            pool,
            waiting,
            arrived,
            behind,
            switches,
            engine,
        }
    }

    pub fn give(&mut self, packets: impl IntoIterator<Item = Vec<u8>>) -> Arrived {
        self.waiting.lock().unwrap().extend(packets);
        while self.worker.step() > 0 {}
        std::mem::take(&mut self.arrived.lock().unwrap())
    }

    pub fn at(&mut self, now_ns: u64) -> Arrived {
        let Clock::Manual(cell) = &self.clock else {
            unreachable!()
        };
        cell.store(now_ns, Relaxed);
        self.give([])
    }

    /// What the handler would show: datagrams known and awaited, fragments that wait.
    pub fn shown(&self) -> [u32; 3] {
        self.switches.virtual_now(0)
    }
}
