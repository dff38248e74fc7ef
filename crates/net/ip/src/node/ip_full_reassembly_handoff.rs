//! ip4-full-reassembly-handoff, ip6-full-reassembly-handoff, ip4-sv-reassembly-handoff, ip6-sv-reassembly-handoff: bring all fragments
//! of a datagram to one worker, whichever workers they came in by. With one worker they go straight on, and so they do where
//! workers have no rings to each other, which is so until software RSS or a node on a worker of its own needs them.
//!
//! Which worker it is follows from the datagram and from who takes new work: a datagram whose fragments come while workers
//! come or go may be torn apart, and is then given up when its time is over.

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
    /// The same for all workers, and not to be guessed by senders.
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
