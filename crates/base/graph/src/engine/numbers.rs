//! Assignment of node ids. Ids are limited, and interfaces with their nodes are added and removed while the graph runs.

use crate::data::error::GraphError;
use crate::data::ids::{MAX_NODES, NodeId};
use crate::engine::state::{Engine, NodeDefinition};
use crate::queues::trace::TraceRecord;
use std::sync::atomic::Ordering::Acquire;

impl Engine {
    /// Assign an id to a node: a free one, or a new one. Also returns the old node with that id, if any.
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

    /// Undo [`Engine::enter`].
    pub(super) fn withdraw(&mut self, id: NodeId, before: Option<NodeDefinition>) {
        match before {
            Some(before) => {
                self.defs[id.index()] = before;
                self.leave(id);
            }
            None => drop(self.defs.pop()),
        }
    }

    /// Retire the id of a removed node. Ids that existed from the start are not reused: rings between workers may carry
    /// them longer than the changes show.
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

    /// Remove drops and trace records of a removed node, so that they are not reported for the node that gets its id.
    fn forget_node(&mut self, id: NodeId) {
        let kinds = self.drop_kinds().into_iter();
        let of_node = kinds.filter(|(kind, _)| NodeId::of_reason(kind.reason).0 == id);
        let now: Vec<_> = of_node.map(|(kind, (count, _))| (kind, count)).collect();
        self.drop_baselines.extend(now);
        for queue in self.notes.iter().flatten() {
            let all = std::iter::from_fn(|| queue.pop()).take(queue.capacity());
            let others: Vec<TraceRecord> = all.filter(|note| note.node != id).collect();
            // When workers add records meanwhile, the queue may be too short for all: records are lost, never packets.
            others.into_iter().for_each(|note| drop(queue.push(note)));
        }
    }
}
