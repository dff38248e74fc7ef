//! What a packet costs in the whole router.

use super::figures::Whole;
use crate::measure::costs;
use crate::pace;
use crate::report::{CostKind, Spread};
use volley_graph::NodeReport;

/// Cycles per packet of one repetition.
#[derive(Clone, Copy)]
pub struct Cost {
    graph: f64,
    all: f64,
    vector: f64,
}

impl Cost {
    /// The cost between two reports of all nodes and of the loop.
    pub fn of(before: &[NodeReport], after: &[NodeReport]) -> Cost {
        let all = costs(before, after);
        let sum = |kind, value: fn(&crate::NodeCost) -> u64| {
            let ours = all.iter().filter(|it| it.kind == kind);
            ours.map(value).sum::<u64>() as f64
        };
        let packets = sum(CostKind::Source, |it| it.vectors).max(1.0);
        let graph = sum(CostKind::Node, |it| it.clocks);
        let others = sum(CostKind::Source, |it| it.clocks) + sum(CostKind::Loop, |it| it.clocks);
        Cost {
            graph: graph / packets,
            all: (graph + others) / packets,
            vector: sum(CostKind::Node, |it| it.vectors)
                / sum(CostKind::Node, |it| it.calls).max(1.0),
        }
    }
}

/// The figures of several repetitions.
pub fn whole(costs: &[Cost]) -> Whole {
    let all = Spread::of(costs.iter().map(|it| it.all));
    Whole {
        graph: Spread::of(costs.iter().map(|it| it.graph)),
        all,
        mpps: volley_simd::cycles_per_second() / all.median.max(1.0) / 1e6,
        vector: Spread::of(costs.iter().map(|it| it.vector)).median,
        core_cycles_per_tsc: pace::speed(),
    }
}
