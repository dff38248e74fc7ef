//! Reports on nodes and workers, and the baselines that they are relative to.

use crate::data::counters::CounterInfo;
use crate::data::ids::NodeId;
use crate::engine::state::{Engine, LoopBase, NodeDefinition};
use crate::engine::stats::{CounterReport, DropReport, NodeReport, NodeState};
use crate::node_api::stage::Role;
use crate::queues::channel::RoundGap;
use crate::queues::drop_table::{DropKey, DropSample};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use volley_stack_sample::StackSampler;

/// The name of the line for a worker's loop: the cost of its rounds outside of nodes.
pub const LOOP: &str = "worker-loop";

impl Engine {
    /// The cost of the rounds of `worker` outside of its nodes since the last clear, as a line among those of
    /// [`Engine::runtime`]. Its calls are rounds. The clocks of all lines together are the whole time of the rounds.
    pub fn loop_report(&self, worker: usize) -> Option<NodeReport> {
        let (channel, base) = (self.channels.get(worker)?, &self.loops_cleared[worker]);
        let now = LoopBase::of(&channel.rounds.0);
        Some(NodeReport {
            name: LOOP.to_owned(),
            state: NodeState::Loop,
            calls: now.rounds - base.rounds,
            vectors: now.packets - base.packets,
            suspends: 0,
            // Clocks of nodes are estimates where runs are sampled, and this value is the rest.
            clocks: now.clocks.saturating_sub(base.clocks),
            largest: 0,
        })
    }

    /// A sampler of the stack of a worker's thread.
    pub fn stack_sampler(&self, worker: usize) -> Option<StackSampler> {
        let channel = self.channels.get(worker)?;
        Some(StackSampler::new(channel.thread_stack.clone()))
    }

    /// The statistics of every node on `worker` since the last clear.
    pub fn runtime(&self, worker: usize) -> Vec<NodeReport> {
        let asleep = self.is_asleep(worker);
        let line = |def: &NodeDefinition| {
            let (stats, base) = (&def.stats[worker], &def.cleared[worker]);
            NodeReport {
                name: def.name.clone(),
                state: match (def.role == Role::Source, asleep) {
                    (false, _) => NodeState::Active,
                    (true, false) => NodeState::Polling,
                    (true, true) => NodeState::Interrupt,
                },
                calls: stats.calls.load(Relaxed) - base.calls,
                vectors: stats.vectors.load(Relaxed) - base.vectors,
                suspends: stats.suspends.load(Relaxed) - base.suspends,
                clocks: stats.clocks.load(Relaxed) - base.clocks,
                largest: stats.largest.load(Relaxed),
            }
        };
        self.defs
            .iter()
            .filter(|d| !d.removed && worker < d.stats.len())
            .map(line)
            .collect()
    }

    /// Every counter of every node, summed over all workers, since the last clear.
    pub fn counters(&self) -> Vec<CounterReport> {
        let value = |def: &NodeDefinition, c: usize| {
            let of = |w: usize| {
                let base = def.cleared[w].counters.get(c).copied().unwrap_or(0);
                def.stats[w].counters[c].load(Relaxed) - base
            };
            (0..def.stats.len()).map(of).sum()
        };
        let of_node = |def: &NodeDefinition| {
            let line = |(c, info): (usize, &CounterInfo)| CounterReport {
                node: def.name.clone(),
                info: *info,
                count: value(def, c),
            };
            def.counters
                .iter()
                .enumerate()
                .map(line)
                .collect::<Vec<_>>()
        };
        self.defs
            .iter()
            .filter(|d| !d.removed)
            .flat_map(of_node)
            .collect()
    }

    /// Reset `show runtime`.
    pub fn clear_runtime(&mut self) {
        for (channel, base) in self.channels.iter().zip(&mut self.loops_cleared) {
            channel.rounds.0.longest.store(0, Relaxed);
            *base = LoopBase::of(&channel.rounds.0);
        }
        for def in &mut self.defs {
            for (stats, base) in def.stats.iter().zip(&mut def.cleared) {
                base.calls = stats.calls.load(Relaxed);
                base.vectors = stats.vectors.load(Relaxed);
                base.clocks = stats.clocks.load(Relaxed);
                base.suspends = stats.suspends.load(Relaxed);
            }
        }
    }

    pub(super) fn drop_kinds(&self) -> BTreeMap<DropKey, (u64, Option<DropSample>)> {
        let mut kinds: BTreeMap<DropKey, (u64, Option<DropSample>)> = BTreeMap::new();
        for (kind, count, sample) in self.drop_tables.iter().flat_map(|book| book.read()) {
            let entry = kinds.entry(kind).or_default();
            entry.0 += count;
            let later = |s: &DropSample| entry.1.as_ref().is_none_or(|e| e.at_ns < s.at_ns);
            if let Some(sample) = sample.filter(later) {
                entry.1 = Some(sample);
            }
        }
        kinds
    }

    /// Dropped packets by reason and receive interface, summed over all workers, since the last clear.
    pub fn drops(&self) -> Vec<DropReport> {
        let kinds = self.drop_kinds().into_iter();
        let report = |(kind, (count, sample)): (DropKey, (u64, Option<DropSample>))| {
            let before = self.drop_baselines.get(&kind).copied().unwrap_or(0);
            let (node, counter) = NodeId::of_reason(kind.reason);
            (count > before).then(|| DropReport {
                node,
                counter,
                rx: kind.rx,
                count: count - before,
                sample,
            })
        };
        kinds.filter_map(report).collect()
    }

    /// Remove the drops of interface `rx`, which is being deleted: another interface may get its index.
    pub fn forget_drops(&mut self, rx: u32) {
        let kinds = self.drop_kinds().into_iter().filter(|(k, _)| k.rx == rx);
        let now = kinds.map(|(kind, (count, _))| (kind, count));
        self.drop_baselines.extend(now);
    }

    /// Reset `show errors` and `show drops`.
    pub fn clear_counters(&mut self) {
        let now = self.drop_kinds().into_iter();
        self.drop_baselines = now.map(|(kind, (count, _))| (kind, count)).collect();
        for def in &mut self.defs {
            for (stats, base) in def.stats.iter().zip(&mut def.cleared) {
                base.counters = stats.counters.iter().map(|c| c.load(Relaxed)).collect();
            }
        }
    }

    /// The longest round of a worker since the last clear, in microseconds, including changes of the configuration: the
    /// longest time that packets had to wait.
    pub fn longest_round_us(&self, worker: usize) -> f64 {
        let cycles = self
            .channels
            .get(worker)
            .map_or(0, |c| c.rounds.0.longest.load(Relaxed));
        cycles as f64 * 1e6 / volley_simd::cycles_per_second()
    }

    /// Seconds that a worker has spent in rounds with packets: its load, without idle polling.
    pub fn busy_seconds(&self, worker: usize) -> f64 {
        let cycles = self
            .channels
            .get(worker)
            .map_or(0, |c| c.rounds.0.busy_cycles.load(Relaxed));
        cycles as f64 / volley_simd::cycles_per_second()
    }

    /// The node that a worker ran last.
    pub fn last_node(&self, worker: usize) -> NodeId {
        let channel = self.channels.get(worker);
        NodeId(channel.map_or(0, |c| c.node.load(Relaxed) as u16))
    }

    /// The long gaps in a worker's rounds since the last call.
    pub fn take_gaps(&self, worker: usize) -> Vec<RoundGap> {
        let channel = self.channels.get(worker);
        let queue = channel.into_iter().map(|c| &c.gaps);
        queue
            .flat_map(|q| std::iter::from_fn(|| q.pop()).take(q.capacity()))
            .collect()
    }

    /// The total number of long gaps in a worker's rounds.
    pub fn long_gaps(&self, worker: usize) -> u64 {
        let channel = self.channels.get(worker);
        channel.map_or(0, |c| c.long_gaps.load(Relaxed))
    }

    /// The number of rounds, rounds with packets, packets, and frames allocated while running, of one worker.
    pub fn load(&self, worker: usize) -> Option<(u64, u64, u64, u64)> {
        let c = &self.channels.get(worker)?.rounds.0;
        Some((
            c.all.load(Relaxed),
            c.busy.load(Relaxed),
            c.entered.load(Relaxed),
            c.frames_allocated.load(Relaxed),
        ))
    }
}
