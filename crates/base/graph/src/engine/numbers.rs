//! Which number a node gets. Numbers are few, and interfaces with their nodes come and go for as long as the graph runs.

use crate::data::error::GraphError;
use crate::data::ids::{MAX_NODES, NodeId};
use crate::engine::state::{Engine, NodeDefinition};
use crate::queues::trace::TraceRecord;
use std::sync::atomic::Ordering::Acquire;

impl Engine {
    /// Give a node its number: one that is free, or a new one. What had the number before comes with it.
    pub(super) fn enter(
        &mut self,
        def: NodeDefinition,
    ) -> Result<(NodeId, Option<NodeDefinition>), GraphError> {
        if let Some(id) = self.free_number() {
            self.forget_node(id);
            let before = std::mem::replace(&mut self.defs[id.index()], def);
            return Ok((id, Some(before)));
        }
        if self.defs.len() >= MAX_NODES {
            return Err(GraphError::TooManyNodes(MAX_NODES));
        }
        self.defs.push(def);
        Ok((NodeId((self.defs.len() - 1) as u16), None))
    }

    /// As if [`Engine::enter`] had not been.
    pub(super) fn withdraw(&mut self, id: NodeId, before: Option<NodeDefinition>) {
        match before {
            Some(before) => {
                self.defs[id.index()] = before;
                self.leave(id);
            }
            None => drop(self.defs.pop()),
        }
    }

    /// A node was taken out. Rings between workers may carry numbers that there were from the start, for longer than
    /// changes tell: those are not given out again.
    pub(super) fn leave(&mut self, id: NodeId) {
        if !self.is_from_start(id) {
            self.retired_nodes.0.push_back((id, self.sent.clone()));
        }
    }

    fn free_number(&mut self) -> Option<NodeId> {
        let (id, sent) = self.retired_nodes.0.front()?;
        let (id, mut worker_set) = (*id, self.worker_set.iter());
        let is_free = worker_set.all(|w| self.channels[w].changes.load(Acquire) >= sent[w]);
        is_free.then(|| self.retired_nodes.0.pop_front())?;
        Some(id)
    }

    /// What was dropped and noted at a node that is gone is not said of the one that gets its number.
    fn forget_node(&mut self, id: NodeId) {
        let kinds = self.drop_kinds().into_iter();
        let of_node = kinds.filter(|(kind, _)| NodeId::of_reason(kind.reason).0 == id);
        let now: Vec<_> = of_node.map(|(kind, (count, _))| (kind, count)).collect();
        self.drop_baselines.extend(now);
        for queue in self.notes.iter().flatten() {
            let all = std::iter::from_fn(|| queue.pop()).take(queue.capacity());
            let others: Vec<TraceRecord> = all.filter(|note| note.node != id).collect();
            // Beside workers that note more there may be no room for all: notes are lost, never packets.
            others.into_iter().for_each(|note| drop(queue.push(note)));
        }
    }
}
