//! The nodes on an arc, and a feature behind them.

use super::*;
use crate::node::ip_full_reassembly_handoff::Handoff;
use crate::node::ip_sv_reassembly_feature::SvFeature;
use crate::reassembly::Virtual;
use crate::testing::line::{Line, Plan};
use std::collections::hash_map::RandomState;
use std::sync::Mutex;
use volley_graph::{ArcId, Feature, NoCounters, NoNext, PacketTrace};

/// The node before the arc.
struct Start(ArcId);

nexts! {
    enum ToEnd { End => "end" }
}

impl Node for Start {
    const NAME: &'static str = "under-test";
    type Next = ToEnd;
    type Count = NoCounters;
    type Trace = PacketTrace;

    #[inline(always)]
    fn run<I: Isa>(&mut self, _: &Cx<'_, NoCounters>, v: Vector<'_, I, ToEnd>) -> Consumed {
        v.send_arc(self.0, Col::RX, ToEnd::End)
    }
}

/// A feature behind the one under test.
struct Later(Arc<Mutex<u64>>);

impl Node for Later {
    const NAME: &'static str = "later";
    type Next = NoNext;
    type Count = NoCounters;
    type Trace = PacketTrace;

    #[inline(always)]
    fn run<I: Isa>(&mut self, _: &Cx<'_, NoCounters>, v: Vector<'_, I, NoNext>) -> Consumed {
        *self.0.lock().unwrap() += v.len() as u64;
        v.next_feature()
    }
}

pub const ARC: &str = "arc-under-test";

/// The test bed, and a count of packets that reached the later feature.
pub fn counted<F: Icmp>(
    level: Level,
    size: usize,
    plane: fn(&Fib) -> DataPlane<F>,
) -> (Line, Arc<Mutex<u64>>) {
    let mut plan = Plan::new::<F, Count>(level, (size, 0), &["end"]);
    let (size, engine) = (size.max(4), &mut plan.engine);
    let behind = Arc::<Mutex<u64>>::default();
    let arc = engine.arc(ARC, Start::NAME, "end");
    engine.add(Start::NAME, move |_| Start(arc)).unwrap();
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
    let (worker_set, hasher) = (engine.worker_set().clone(), RandomState::new());
    let handoff = move |_| Handoff::<Virtual<F>>::new(worker_set.clone(), hasher.clone(), size);
    engine.add(F::SV_HANDOFF, handoff).unwrap();
    let (plane, mine) = (plane(&Fib::new(&plan.domain)), plan.switches.clone());
    let spot = ArcPosition { arc, node };
    let make =
        move |worker| SvReassembly::<F>::new(plane.clone(), mine.clone(), spot, (worker, size));
    engine.add_stage(F::SV_REASSEMBLY, make).unwrap();
    (plan.build(), behind)
}

pub fn bench<F: Icmp>(level: Level, size: usize, plane: fn(&Fib) -> DataPlane<F>) -> Line {
    counted(level, size, plane).0
}

/// The values that `show` reports: datagrams known and awaited, fragments that wait.
pub fn shown(line: &Line) -> [u32; 3] {
    line.switches.virtual_now(0)
}
