//! Counting events of nodes: which workers have counters, and the sums of all nodes.

use crate::data::error::GraphError;
use crate::data::events::{CounterGroup, EventReport, EventSums};
use crate::data::ids::NodeId;
use crate::engine::state::Engine;
use crate::queues::meter::Meter;
use crate::worker::body::Body;
use crate::worker::counted::{CountedBody, take_counted};
use crate::worker::round::{Change, Worker};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The sums of a node on one worker.
struct NodeEvents {
    worker: usize,
    id: NodeId,
    name: String,
    sums: Arc<EventSums>,
}

/// The events of nodes that are or were counted.
#[derive(Default)]
pub(crate) struct EventCounts {
    /// The workers that have counters.
    on: BTreeSet<usize>,
    /// Sums of the last time when events were counted.
    sums: Vec<NodeEvents>,
}

impl EventCounts {
    /// The sums of a node. A node that comes back under its number goes on counting.
    fn sums(&mut self, worker: usize, id: NodeId, name: &str) -> Arc<EventSums> {
        let is_it = |it: &&NodeEvents| (it.worker, it.id, &*it.name) == (worker, id, name);
        if let Some(known) = self.sums.iter().find(is_it) {
            return known.sums.clone();
        }
        self.new_sums(worker, id, name)
    }

    /// The sums of a node that has none yet.
    fn new_sums(&mut self, worker: usize, id: NodeId, name: &str) -> Arc<EventSums> {
        let sums = Arc::<EventSums>::default();
        self.sums.push(NodeEvents {
            worker,
            id,
            name: name.to_owned(),
            sums: sums.clone(),
        });
        sums
    }

    /// The body of a node that is new on a worker: it counts events if the worker has counters.
    pub(super) fn body(
        &mut self,
        worker: usize,
        id: NodeId,
        name: &str,
        body: Box<dyn Body>,
    ) -> Box<dyn Body> {
        match self.on.contains(&worker) {
            true => Box::new(CountedBody::new(body, self.sums(worker, id, name))),
            false => body,
        }
    }

    /// The worker is removed, with its counters.
    pub(super) fn remove_worker(&mut self, worker: usize) {
        self.on.remove(&worker);
    }
}

/// The bodies of a worker's nodes are counted from now on.
struct StartCounting {
    meter: Option<Box<Meter>>,
    /// The bodies of all nodes, without the nodes' own bodies.
    bodies: Vec<(NodeId, Option<Box<CountedBody>>)>,
}

impl Change for StartCounting {
    fn swap(&mut self, worker: &mut Worker) {
        // Marks of nodes come without counters, and leave those that are there.
        if let Some(meter) = &mut self.meter {
            meter.calibrate();
            std::mem::swap(&mut worker.dispatch.meter, &mut self.meter);
        }
        for (id, body) in &mut self.bodies {
            if let Some(slot) = worker.slots.get_mut(id.index())
                && let Some(body) = body.take()
            {
                body.replace(&mut slot.body);
            }
        }
    }
}

/// No node of a worker is counted any more. The counters and the bodies return with the change.
struct StopCounting {
    meter: Option<Box<Meter>>,
    /// Has room for the bodies of all nodes.
    bodies: Vec<Box<dyn Body>>,
}

impl Change for StopCounting {
    fn swap(&mut self, worker: &mut Worker) {
        std::mem::swap(&mut worker.dispatch.meter, &mut self.meter);
        for slot in &mut worker.slots {
            self.bodies.extend(take_counted(&mut slot.body));
        }
    }
}

impl Engine {
    /// The id of the thread of a worker; none if no thread runs it.
    pub fn thread(&self, worker: usize) -> Option<i32> {
        self.channels.get(worker)?.thread_stack.id()
    }

    /// Count the events of all nodes on these workers from now on, each with counters of its thread. What was counted before
    /// is forgotten. Nodes that are added meanwhile are counted, too; workers that are added are not.
    pub fn count_events(
        &mut self,
        groups: Vec<(usize, Box<dyn CounterGroup>)>,
    ) -> Result<(), GraphError> {
        self.stop_events()?;
        self.room_for_changes()?;
        self.events.sums.clear();
        for (worker, group) in groups {
            let nodes = self.defs.iter().enumerate();
            let nodes = nodes.filter(|(_, def)| !def.removed);
            let bodies = nodes.map(|(id, def)| {
                let id = NodeId(id as u16);
                let sums = self.events.new_sums(worker, id, &def.name);
                (id, Some(Box::new(CountedBody::empty(sums))))
            });
            let start = StartCounting {
                bodies: bodies.collect(),
                meter: Some(Box::new(Meter::new(group))),
            };
            self.send(worker, Box::new(start))?;
            self.events.on.insert(worker);
        }
        Ok(())
    }

    /// Stop counting events: [`Engine::event_reports`] keeps the sums. [`Engine::settled`] closes the counters.
    pub fn stop_events(&mut self) -> Result<(), GraphError> {
        self.room_for_changes()?;
        let nodes = self.defs.len();
        while let Some(worker) = self.events.on.pop_first() {
            let stop = StopCounting {
                meter: None,
                bodies: Vec::with_capacity(nodes),
            };
            self.send(worker, Box::new(stop))?;
        }
        Ok(())
    }

    /// Call nodes of a worker by functions that a simulator of the processor can tell apart ([`crate::mark_name`]), in this order.
    /// They stay so until the worker ends.
    pub fn mark_nodes(&mut self, worker: usize, nodes: &[String]) -> Result<(), GraphError> {
        let marked = nodes.iter().enumerate().map(|(mark, node)| {
            let body = Box::new(CountedBody::marked(mark));
            Ok((self.node(node)?, Some(body)))
        });
        let start = StartCounting {
            bodies: marked.collect::<Result<_, GraphError>>()?,
            meter: None,
        };
        self.send(worker, Box::new(start))
    }

    /// Whether a worker has counters.
    pub fn is_counting_events(&self) -> bool {
        !self.events.on.is_empty()
    }

    /// The events of all nodes that ran since counting began.
    pub fn event_reports(&self) -> Vec<EventReport> {
        let all = self.events.sums.iter();
        all.map(|it| it.sums.report(it.worker, &it.name))
            .filter(|it| it.calls + it.uncounted > 0)
            .collect()
    }
}
