//! What handoffs and placements ask of the engine.

use crate::data::ids::NodeId;
use crate::data::stats::NodeStats;
use crate::engine::Engine;
use crate::node_api::stage::Role;
use crate::queues::channel::Channel;
use std::sync::Arc;

impl Engine {
    pub(crate) fn role(&self, id: NodeId) -> Role {
        self.defs[id.index()].role
    }

    pub(crate) fn is_from_start(&self, id: NodeId) -> bool {
        self.defs[id.index()].from_start
    }

    pub(crate) fn stats_of(&self, id: NodeId, worker: usize) -> Arc<NodeStats> {
        self.defs[id.index()].stats[worker].clone()
    }

    pub(crate) fn channel(&self, worker: usize) -> Arc<Channel> {
        self.channels[worker].clone()
    }
}
