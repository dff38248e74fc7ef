//! The engine's own changes to a worker.

use crate::data::frame::Frame;
use crate::data::ids::NodeId;
use crate::node_api::stage::Role;
use crate::queues::arcs::ArcTables;
use crate::queues::dispatch::PendingFrames;
use crate::queues::pending_nodes::PendingNodes;
use crate::queues::trace::TraceFilter;
use crate::worker::round::{Change, Slot, Worker};
use std::sync::Arc;

/// A node is added, or another node gets its id.
pub(crate) struct NodeChange {
    pub(crate) id: NodeId,
    pub(crate) slot: Option<Slot>,
    pub(crate) role: Role,
    /// Frames for a new id. If the id is reused, they return with the change, because the old node's frames stay.
    pub(crate) spare: Vec<Box<Frame>>,
    /// The trace filter of the old node. It returns with the change.
    pub(crate) filter: Option<Arc<dyn TraceFilter>>,
    /// The old node is a stage that leaves.
    pub(crate) leaves: bool,
    /// The node that gets the packets of the old stage.
    pub(crate) heir: Option<NodeId>,
}

impl NodeChange {
    /// Exchange the nodes. The order of nodes must follow.
    fn swap(&mut self, worker: &mut Worker) {
        let Some(slot) = self.slot.take() else { return };
        if let Some(old) = worker.slots.get_mut(self.id.index()) {
            self.slot = Some(std::mem::replace(old, slot));
        } else {
            // The vectors have capacity for the largest graph, so nothing is allocated here.
            worker.slots.push(slot);
            worker.dispatch.queues.push(PendingFrames::default());
            worker.dispatch.add_frames(&mut self.spare);
        }
        // The trace request was for the old node with this id.
        let tracer = &mut worker.dispatch.tracer;
        if let Some(budget) = tracer.remaining.get_mut(self.id.index()) {
            *budget = 0;
        }
        if let Some(filter) = tracer.filters.get_mut(self.id.index()) {
            std::mem::swap(filter, &mut self.filter);
        }
        worker.sources.retain(|&s| s != self.id);
        worker.stages.retain(|&s| s != self.id);
        match self.role {
            Role::Node => {}
            Role::Source => worker.sources.push(self.id),
            Role::Stage => worker.stages.push(self.id),
        }
    }
}

/// A node is added, or another node gets its id, and the order of nodes changes.
pub(crate) struct AddNode {
    pub(crate) node: NodeChange,
    pub(crate) pending: PendingNodes,
}

impl Change for AddNode {
    fn swap(&mut self, worker: &mut Worker) {
        self.node.swap(worker);
        std::mem::swap(&mut worker.dispatch.pending, &mut self.pending);
    }
}

/// Drops the packets that a stage has lost by a panic when it left. The node that has its id now, or else the stage, says for which
/// counter; a node that is no plugin's has none for it.
#[cold]
fn drop_lost(worker: &mut Worker, id: NodeId, stage: Option<&Slot>, frames: Vec<Box<Frame>>) {
    let now = worker.slots.get(id.index());
    let named = |slot: &&Slot| slot.body.panicked().is_some();
    let by = now.filter(named).or(stage.filter(named));
    for frame in frames {
        match by.and_then(|slot| Some((slot.body.panicked()?, &slot.own.stats))) {
            Some((counter, stats)) => worker.dispatch.drop_frame(id, counter, stats, frame),
            None => worker.dispatch.push_frame(worker.dispatch.drop_node, frame),
        }
    }
}

/// Nodes and edges that change together.
pub(crate) struct Rewire {
    /// New nodes by rising id, then those that leave.
    pub(crate) nodes: Vec<NodeChange>,
    /// Other edges of nodes that stay.
    pub(crate) edges: Vec<(NodeId, Box<[NodeId]>)>,
    pub(crate) pending: PendingNodes,
}

impl Rewire {
    /// Send the packets of stages that leave, and to which no other stage succeeds, on their way through the old graph.
    fn empty(&self, worker: &mut Worker) {
        let leaving = self.nodes.iter();
        let leaving = leaving.filter(|it| it.leaves && it.heir.is_none());
        // A stage may send packets to a stage that leaves too. Packets that run in a circle are dropped in the end.
        for _ in 0..=leaving.clone().count() {
            let mut held = false;
            for node in leaving.clone() {
                let Some(slot) = worker.slots.get_mut(node.id.index()) else {
                    continue;
                };
                if slot.body.is_holding() {
                    held = true;
                    let next = slot.own.edges.first().copied();
                    let next = next.unwrap_or(worker.dispatch.drop_node);
                    let lost = slot.body.leave(node.id, &mut worker.dispatch, next);
                    if !lost.is_empty() {
                        drop_lost(worker, node.id, None, lost);
                    }
                    worker.run_left();
                }
            }
            if !held {
                break;
            }
        }
    }
}

impl Change for Rewire {
    fn swap(&mut self, worker: &mut Worker) {
        self.empty(worker);
        for node in &mut self.nodes {
            node.swap(worker);
        }
        for (id, edges) in &mut self.edges {
            if let Some(slot) = worker.slots.get_mut(id.index()) {
                std::mem::swap(&mut slot.own.edges, edges);
            }
        }
        std::mem::swap(&mut worker.dispatch.pending, &mut self.pending);
        for node in self.nodes.iter_mut().filter(|it| it.leaves) {
            let next = node.heir.unwrap_or(worker.dispatch.drop_node);
            if let Some(old) = &mut node.slot {
                let lost = old.body.leave(node.id, &mut worker.dispatch, next);
                if !lost.is_empty() {
                    // The counters of the stage are gone if another node has its id: one of the router, in whose place it was.
                    let stage = (node.heir != Some(node.id)).then_some(&*old);
                    drop_lost(worker, node.id, stage, lost);
                }
            }
        }
        worker.run_left();
    }
}

/// Replaces the tables of feature arcs.
pub(crate) struct SetArcs {
    pub(crate) tables: Box<ArcTables>,
}

impl Change for SetArcs {
    fn swap(&mut self, worker: &mut Worker) {
        std::mem::swap(&mut worker.dispatch.arcs, &mut self.tables);
    }
}

/// Starts traces at a node, or stops all traces.
pub(crate) struct SetTrace {
    pub(crate) node: Option<NodeId>,
    pub(crate) packets: u32,
    pub(crate) filter: Option<Arc<dyn TraceFilter>>,
}

impl Change for SetTrace {
    fn swap(&mut self, worker: &mut Worker) {
        let tracer = &mut worker.dispatch.tracer;
        match self.node {
            None => tracer.remaining.fill(0),
            Some(node) => {
                if let Some(budget) = tracer.remaining.get_mut(node.index()) {
                    *budget = budget.saturating_add(self.packets);
                }
                // The old filter returns with the change, and the control thread frees it.
                if let Some(filter) = tracer.filters.get_mut(node.index()) {
                    std::mem::swap(filter, &mut self.filter);
                }
            }
        }
        tracer.armed = tracer.remaining.iter().any(|&b| b > 0);
    }
}

/// Sets the vector size, at most the capacity of frames.
pub(crate) struct SetVectorSize(pub(crate) usize);

impl Change for SetVectorSize {
    fn swap(&mut self, worker: &mut Worker) {
        std::mem::swap(&mut worker.dispatch.vector_size, &mut self.0);
    }
}

/// Frames for packets that stages hold: see [`crate::Engine::reserve_frames`].
pub(crate) struct AddFrames {
    pub(crate) spare: Vec<Box<Frame>>,
}

impl Change for AddFrames {
    fn swap(&mut self, worker: &mut Worker) {
        worker.dispatch.add_frames(&mut self.spare);
    }
}

#[cfg(test)]
mod tests {
    use crate::*;
    use volley_buf::Pool;

    /// Frees all packets.
    struct Sink;

    impl Node for Sink {
        const NAME: &'static str = "sink";
        type Next = NoNext;
        type Count = NoCounters;
        type Trace = PacketTrace;
        fn run<I: Isa>(&mut self, _: &Cx<'_, NoCounters>, v: Vector<'_, I, NoNext>) -> Consumed {
            v.free()
        }
    }

    #[test]
    fn nodes_that_come_and_go_leave_no_frames_behind() {
        let settings = Settings::default();
        let mut engine = Engine::new(settings, Pool::new(1024).unwrap(), Domain::new()).unwrap();
        let mut worker = engine.build().unwrap().pop().unwrap();
        let before = worker.dispatch.free_frames.len();
        for _ in 0..3 {
            engine.add("sink", |_| Sink).unwrap();
            worker.step();
            assert_eq!(worker.dispatch.free_frames.len(), before + 2);
            engine.remove("sink").unwrap();
            worker.step();
            assert_eq!(worker.dispatch.free_frames.len(), before + 2);
        }
    }
}
