//! The context of a node while it runs.

use crate::data::col::Col;
use crate::data::counters::Counters;
use crate::data::ids::NodeId;
use crate::data::packet::Packet;
use crate::data::stats::{NodeStats, add_relaxed};
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;
use volley_tables::qsbr::Guard;

/// The context of one run of a node.
pub struct Cx<'a, C: Counters> {
    pub(crate) raw: &'a RawCx<'a>,
    pub(crate) count: PhantomData<C>,
}

/// [`Cx`] without the node's type. It is made for each run of a node, so it has few words: the node's own state is behind one.
pub(crate) struct RawCx<'a> {
    pub(crate) own: &'a NodeState,
    pub(crate) guard: Guard<'a>,
    pub(crate) now_ns: u64,
}

/// What the worker that runs a node keeps for it.
pub(crate) struct NodeState {
    pub(crate) node: NodeId,
    pub(crate) edges: Box<[NodeId]>,
    pub(crate) stats: Arc<NodeStats>,
}

impl Deref for RawCx<'_> {
    type Target = NodeState;

    #[inline(always)]
    fn deref(&self) -> &NodeState {
        self.own
    }
}

impl<'a, C: Counters> Cx<'a, C> {
    #[inline(always)]
    pub(crate) fn new(raw: &'a RawCx<'a>) -> Self {
        Cx {
            raw,
            count: PhantomData,
        }
    }

    /// Proof that published tables may be read.
    #[inline(always)]
    pub fn guard(&self) -> Guard<'a> {
        self.raw.guard
    }

    /// Nanoseconds on the worker's clock at the start of this round.
    #[inline(always)]
    pub fn now_ns(&self) -> u64 {
        self.raw.now_ns
    }

    /// This node.
    #[inline(always)]
    pub fn node(&self) -> NodeId {
        self.raw.node
    }

    /// Count `by` packets.
    #[inline(always)]
    pub fn count(&self, counter: C, by: u64) {
        if let Some(cell) = self.raw.stats.counters.get(counter.index()) {
            add_relaxed(cell, by);
        }
    }
}

impl Packet<'_> {
    /// Count the packet under `counter` and tag it with that drop reason. Always false, so that it can be the result of a
    /// check in [`crate::Vector::sift`].
    pub fn fail<C: Counters>(&mut self, cx: &Cx<'_, C>, counter: C) -> bool {
        cx.count(counter, 1);
        self.set(Col::ERR, cx.node().reason(counter.index()));
        false
    }
}
