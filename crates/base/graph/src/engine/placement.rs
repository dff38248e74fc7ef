//! Nodes that run on one worker only (pipelines). The other workers hand the packets for them off to that worker.
//!
//! On the other workers a [`HandoffStub`] replaces the node. When a node moves, an epoch keeps the packets of a flow in
//! order.

use crate::data::error::GraphError;
use crate::data::ids::NodeId;
use crate::engine::state::{Engine, NodePlacement};
use crate::node_api::drop_node::DROP_NODE;
use crate::node_api::stage::Role;
use crate::worker::body::Body;
use crate::worker::handoff_stub::{CongestionCounter, EmptyBody, HandoffStub};
use crate::worker::round::{Change, Worker};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Places a node on another worker.
struct PlaceNode {
    id: NodeId,
    /// The worker. None: every worker runs the node for its own packets.
    to: Option<usize>,
    stub: Option<Box<HandoffStub>>,
}

impl Change for PlaceNode {
    fn swap(&mut self, worker: &mut Worker) {
        let me = worker.dispatch.handoff.worker_id();
        let to = self.to.unwrap_or(me);
        let Some(slot) = worker.slots.get_mut(self.id.index()) else {
            return;
        };
        if let Some(forwarder) = slot.body.as_handoff_stub() {
            (forwarder.to, forwarder.starts_epoch) = (to, true);
            return;
        }
        // Packets that this worker ran before are complete: only packets that it handed off can be overtaken.
        if to != me
            && let Some(mut shell) = self.stub.take()
        {
            shell.inner = Some(std::mem::replace(&mut slot.body, Box::new(EmptyBody)));
            slot.body = shell;
        }
    }
}

/// Restores a node that has moved back to its worker.
struct RestoreNode {
    id: NodeId,
    /// Workers that have no more packets to hand off, as bits.
    done: Arc<AtomicU64>,
    old: Option<Box<dyn Body>>,
}

impl Change for RestoreNode {
    fn swap(&mut self, worker: &mut Worker) {
        let me = worker.dispatch.handoff.worker_id();
        let Some(slot) = worker.slots.get_mut(self.id.index()) else {
            return;
        };
        if let Some(forwarder) = slot.body.as_handoff_stub() {
            let is_back = forwarder.to == me;
            if is_back
                && (forwarder.starts_epoch && !worker.dispatch.begin_epoch()
                    || !forwarder.has_drained(&mut worker.dispatch))
            {
                return;
            }
            if is_back && let Some(inner) = forwarder.inner.take() {
                self.old = Some(std::mem::replace(&mut slot.body, inner));
            }
        }
        self.done.fetch_or(1 << me, Relaxed);
    }
}

impl Engine {
    /// Let a node run on `worker` only, or (none) on every worker for the worker's own packets. Packets that are
    /// dropped because the ring is full are counted by counter number `full.1` of node `full.0`. Nodes of interfaces,
    /// sources, stages and the drop node cannot be placed.
    pub fn place_node(
        &mut self,
        name: &str,
        worker: Option<usize>,
        full: (NodeId, usize),
    ) -> Result<(), GraphError> {
        let id = self.node(name)?;
        if let Some(worker) = worker.filter(|worker| !self.worker_set().has(*worker)) {
            return Err(GraphError::NoWorker(worker));
        }
        let is_plain = self.role(id) == Role::Node && id != self.node(DROP_NODE)?;
        if !is_plain || !self.is_from_start(id) {
            return Err(GraphError::NotPlaceable(name.to_owned()));
        }
        self.add_handoff_rings()?;
        self.room_for_changes()?;
        for at in self.worker_set().iter() {
            let shell = HandoffStub {
                inner: None,
                to: worker.unwrap_or(at),
                starts_epoch: false,
                full: CongestionCounter {
                    reason: full.0.reason(full.1),
                    counter: full.1,
                    stats: self.stats_of(full.0, at),
                },
            };
            let stub = Some(Box::new(shell));
            let place = PlaceNode {
                id,
                to: worker,
                stub,
            };
            self.send(at, Box::new(place))?;
        }
        let done = Arc::new(AtomicU64::new(0));
        self.placements.0.insert(id, NodePlacement { worker, done });
        Ok(())
    }

    /// The nodes that run on one worker only, with the worker.
    pub fn placed_nodes(&self) -> Vec<(String, usize)> {
        let all = self.placements.0.iter();
        let here = all.filter_map(|(id, at)| Some((self.name(*id).to_owned(), at.worker?)));
        here.collect()
    }

    /// Restore nodes that are no longer placed. Call it periodically until it returns false.
    pub fn restore_nodes(&mut self) -> bool {
        let all = self.worker_set().iter().fold(0, |all, w| all | 1 << w);
        let is_done = |at: &NodePlacement| at.done.load(Relaxed) & all == all;
        self.placements
            .0
            .retain(|_, at| at.worker.is_some() || !is_done(at));
        let open = self.placements.0.iter().filter(|(_, at)| !is_done(at));
        let open: Vec<_> = open.map(|(id, at)| (*id, at.done.clone())).collect();
        if open.is_empty() || !self.settled() || self.room_for_changes().is_err() {
            return open.is_empty();
        }
        for (id, done) in open {
            for worker in self
                .worker_set()
                .iter()
                .filter(|w| done.load(Relaxed) & 1 << w == 0)
            {
                let straight = RestoreNode {
                    id,
                    done: done.clone(),
                    old: None,
                };
                // The queue of changes is full: the next call tries again.
                let _ = self.send(worker, Box::new(straight));
            }
        }
        false
    }
}
