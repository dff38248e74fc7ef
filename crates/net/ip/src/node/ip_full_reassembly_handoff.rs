//! ip4-full-reassembly-handoff, ip6-full-reassembly-handoff, ip4-sv-reassembly-handoff, ip6-sv-reassembly-handoff: hand off all
//! fragments of a datagram to one worker, whichever workers received them. Fragments stay on their worker if it is the only one
//! or if the workers have no handoff rings between them; software RSS and nodes on a dedicated worker create these rings.
//!
//! The target worker follows from the datagram and from the workers that accept new work. A datagram whose fragments arrive
//! while workers are added or removed may be split between two workers, and then times out.

use crate::IpTrace;
use crate::reassembly::{Gather, Reassemble};
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::marker::PhantomData;
use std::sync::Arc;
use volley_graph::{
    Column, Consumed, Counters, Cx, Isa, MAX_WORKERS, Node, Vector, WorkerSet, counters,
    handoff_code, nexts,
};

nexts! {
    /// Edges of the handoff nodes.
    pub struct Next<G: Gather> {
        DROP => "error-drop",
        REASSEMBLY => G::NODE,
    }
}

counters! {
    /// What the handoff nodes count.
    pub enum Count {
        /// fragments that were handed to another worker
        Handed = "handed" (Info),
        /// fragments for another worker, which had too much waiting
        Congestion = "congestion" (Error),
    }
}

/// State of a handoff node.
pub struct Handoff<G> {
    worker_set: Arc<WorkerSet>,
    /// Random state that is the same for all workers and unpredictable for senders.
    hasher: RandomState,
    codes: Column,
    gather: PhantomData<G>,
}

impl<G> Handoff<G> {
    /// For vectors of up to `size` packets.
    pub fn new(worker_set: Arc<WorkerSet>, hasher: RandomState, size: usize) -> Self {
        Handoff {
            worker_set,
            hasher,
            codes: Column::new(size),
            gather: PhantomData,
        }
    }
}

impl<G: Gather> Node for Handoff<G> {
    const NAME: &'static str = G::HANDOFF;
    type Next = Next<G>;
    type Count = Count;
    type Trace = IpTrace;

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, mut v: Vector<'_, I, Next<G>>) -> Consumed {
        if self.worker_set.count() < 2 {
            return v.send_all(Next::REASSEMBLY);
        }
        let node = v.edge(Next::REASSEMBLY);
        let (mut workers, mut n) = ([0; MAX_WORKERS], 0);
        for (place, worker) in workers.iter_mut().zip(self.worker_set.accepting()) {
            (*place, n) = (worker, n + 1);
        }
        let workers = &workers[..n];
        let stage_cx = v.stage_cx();
        if n < 2 || !workers.iter().all(|worker| stage_cx.has_ring_to(*worker)) {
            return v.send_all(Next::REASSEMBLY);
        }
        for (row, code) in self.codes.words_mut(v.len()).iter_mut().enumerate() {
            let key = G::Family::key(v.view(row).bytes());
            let hash = key.map_or(0, |key| self.hasher.hash_one(key));
            *code = handoff_code(workers[hash as usize % n], node);
        }
        let (done, handed) = v.handoff(&self.codes, Count::Congestion.index(), Next::DROP);
        cx.count(Count::Handed, handed.went);
        cx.count(Count::Congestion, handed.refused);
        done
    }
}
