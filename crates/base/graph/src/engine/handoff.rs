//! Rings between workers: the control thread makes them, gives each worker its ends, and removes them.

use crate::data::error::GraphError;
use crate::data::frame::Frame;
use crate::data::worker_set::MAX_WORKERS;
use crate::engine::state::Engine;
use crate::queues::handoff::{
    HandoffConsumer, HandoffCounters, HandoffEntry, HandoffProducer, HandoffReport,
};
use crate::worker::round::{Change, Worker};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use volley_tables::exchange::{Epochs, swap_ring};

/// Gives a worker its ends of rings.
struct AddHandoffRings {
    epochs: Arc<Epochs>,
    producers: Vec<(usize, Option<HandoffProducer>)>,
    consumers: Vec<HandoffConsumer>,
}

impl Change for AddHandoffRings {
    fn swap(&mut self, worker: &mut Worker) {
        let handoff = &mut worker.dispatch.handoff;
        std::mem::swap(&mut handoff.epochs, &mut self.epochs);
        for (to, producer) in &mut self.producers {
            // The consumer is new and its rings are empty: it has completed all epochs.
            handoff.epochs.join(*to, handoff.epoch);
            std::mem::swap(&mut handoff.producers[*to], producer);
        }
        // The capacity is one consumer for each worker.
        handoff.consumers.append(&mut self.consumers);
    }
}

/// Removes the rings to and from a worker that has ended.
struct RemoveHandoffRings {
    worker: usize,
    epochs: Arc<Epochs>,
    producer: Option<HandoffProducer>,
    consumers: Vec<HandoffConsumer>,
}

impl Change for RemoveHandoffRings {
    fn swap(&mut self, worker: &mut Worker) {
        let handoff = &mut worker.dispatch.handoff;
        if handoff.worker_id == self.worker {
            handoff.is_alone = true;
            return;
        }
        self.producer = handoff.producers[self.worker].take();
        handoff.epochs.leave(self.worker);
        let gone = |consumer: &mut HandoffConsumer| Arc::ptr_eq(&consumer.epochs, &self.epochs);
        let Some(at) = handoff.consumers.iter_mut().position(gone) else {
            return;
        };
        // Packets that the worker handed off are run first. The empty ring then costs one check in each round.
        if handoff.consumers[at].epoch == 0 && handoff.consumers[at].ring.is_empty() {
            self.consumers.push(handoff.consumers.swap_remove(at));
        }
    }
}

/// Frames in each ring. The more rings there are, the fewer frames each has.
fn depth(workers: usize) -> usize {
    (256 / workers.max(1)).clamp(4, 64)
}

impl Engine {
    /// Make the missing rings between all workers. They are in use when the change has reached the workers; until then
    /// a handoff is refused.
    pub fn add_handoff_rings(&mut self) -> Result<(), GraphError> {
        let workers: Vec<usize> = self.worker_set().accepting().collect();
        let is_missing = |w: &usize| !self.handoff_mesh.rings.contains_key(&(*w, *w));
        if !workers.iter().any(is_missing) {
            return Ok(());
        }
        self.room_for_changes()?;
        let (size, depth) = (self.settings().vector_size, depth(workers.len()));
        let mut adds: BTreeMap<usize, AddHandoffRings> = BTreeMap::new();
        for &worker in &workers {
            let none = self.no_links(worker);
            adds.insert(worker, none);
        }
        for (&from, &to) in workers
            .iter()
            .flat_map(|f| workers.iter().map(move |t| (f, t)))
        {
            if self.handoff_mesh.rings.contains_key(&(from, to)) {
                continue;
            }
            let empty = |_| HandoffEntry::empty(Frame::new(size));
            let (producer, consumer) = swap_ring((0..depth).map(empty).collect());
            let counters = Arc::new(HandoffCounters::default());
            self.handoff_mesh.rings.insert((from, to), counters.clone());
            let producer = HandoffProducer {
                ring: producer,
                counters,
                peer: self.channel(to),
            };
            let epochs = self.handoff_mesh.epochs[&from].clone();
            let consumer = HandoffConsumer {
                ring: consumer,
                epochs,
                epoch: 0,
                arrived: false,
            };
            if let Some(add) = adds.get_mut(&from) {
                add.producers.push((to, Some(producer)));
            }
            if let Some(add) = adds.get_mut(&to) {
                add.consumers.push(consumer);
            }
        }
        for (worker, add) in adds {
            self.send(worker, Box::new(add))?;
        }
        Ok(())
    }

    /// Stop handoffs to a worker that is to end, and remove its rings once they are empty. A worker with rings does
    /// not end before this call.
    pub fn unlink(&mut self, worker: usize) {
        self.handoff_mesh
            .rings
            .retain(|(from, to), _| *from != worker && *to != worker);
        let Some(epochs) = self.handoff_mesh.epochs.remove(&worker) else {
            return;
        };
        for other in self.worker_set().iter() {
            let drop = RemoveHandoffRings {
                worker,
                epochs: epochs.clone(),
                producer: None,
                consumers: Vec::with_capacity(1),
            };
            // A worker whose queue of changes is full keeps its rings. Handoffs to them are refused when they are
            // full.
            let _ = self.send(other, Box::new(drop));
        }
    }

    fn no_links(&mut self, worker: usize) -> AddHandoffRings {
        let epochs = self.handoff_mesh.epochs.entry(worker);
        AddHandoffRings {
            epochs: epochs.or_insert_with(|| Epochs::new(MAX_WORKERS)).clone(),
            producers: Vec::new(),
            consumers: Vec::new(),
        }
    }

    /// Counters of the rings between the workers.
    pub fn handoffs(&self) -> Vec<HandoffReport> {
        let report =
            |(&(from, to), cells): (&(usize, usize), &Arc<HandoffCounters>)| HandoffReport {
                from,
                to,
                frames: cells.frames.load(Relaxed),
                packets: cells.packets.load(Relaxed),
                refused: cells.refused.load(Relaxed),
            };
        self.handoff_mesh.rings.iter().map(report).collect()
    }
}
