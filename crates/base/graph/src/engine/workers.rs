//! Workers of the engine: building, adding and removing them, and sending changes to them.

use crate::data::column::Column;
use crate::data::error::GraphError;
use crate::data::frame::Frame;
use crate::data::ids::{MAX_NODES, NodeId};
use crate::engine::changes::SetVectorSize;
use crate::engine::state::{Engine, RetiredNodes};
use crate::node_api::drop_node::DROP_NODE;
use crate::node_api::stage::Role;
use crate::queues::channel::Channel;
use crate::queues::dispatch::{Dispatch, PendingFrames};
use crate::queues::handoff::HandoffRings;
use crate::queues::holders::Holders;
use crate::queues::pending_nodes::PendingNodes;
use crate::queues::trace::Tracer;
use crate::worker::agenda::Agenda;
use crate::worker::round;
use crate::worker::round::{Change, ChangeQueues, Worker};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

impl Engine {
    /// Check that every edge leads to a node, and build all workers.
    pub fn build(&mut self) -> Result<Vec<Worker>, GraphError> {
        self.build_first(self.settings.workers)
    }

    /// As [`Engine::build`], but only the first `workers` workers are built; others can be added later
    /// ([`Engine::add_worker`]).
    pub fn build_first(&mut self, workers: usize) -> Result<Vec<Worker>, GraphError> {
        let places = self.settings.workers;
        if !(1..=places).contains(&workers) {
            return Err(GraphError::Workers(workers));
        }
        self.channels = (0..places).map(|_| Arc::new(Channel::new())).collect();
        let queues = |_| Arc::new(ChangeQueues::new());
        self.change_queues = (0..places).map(queues).collect();
        self.sent = vec![0; places];
        self.defs.iter_mut().for_each(|d| d.from_start = true);
        self.retired_nodes = RetiredNodes::default();
        let built = (0..workers).map(|w| self.build_worker(w)).collect();
        match &built {
            Ok(_) => (0..workers).for_each(|w| self.worker_set.add(w)),
            Err(_) => {
                self.channels.clear();
                self.change_queues.clear();
            }
        }
        built
    }

    /// Build the worker with the lowest free id. It gets every change from now on, so the caller must run it.
    pub fn add_worker(&mut self) -> Result<Worker, GraphError> {
        let mut places = 0..self.channels.len();
        let free = places.find(|w| !self.worker_set.has(*w));
        let place = free.ok_or(GraphError::NoPlace(self.channels.len()))?;
        let worker = self.build_worker(place)?;
        self.worker_set.add(place);
        Ok(worker)
    }

    /// Remove a worker that has ended: its id becomes free. Its counts stay in the totals.
    pub fn remove_worker(&mut self, place: usize, worker: Option<Worker>) {
        self.worker_set.remove(place);
        self.events.remove_worker(place);
        drop(worker);
        self.unlink(place);
        let channel = &self.channels[place];
        while self.change_queues[place].pending.pop().is_some() {}
        self.sent[place] = channel.changes.load(Relaxed);
    }

    fn build_worker(&mut self, worker: usize) -> Result<Worker, GraphError> {
        let mut slots = Vec::with_capacity(MAX_NODES);
        for id in 0..self.defs.len() {
            slots.push(self.slot(NodeId(id as u16), worker)?);
        }
        let defs = &self.defs;
        let of = |role: Role| {
            let all = (0..defs.len()).filter(|&n| defs[n].role == role);
            let mut list = Vec::with_capacity(MAX_NODES);
            list.extend(all.map(|n| NodeId(n as u16)));
            list
        };
        let (sources, stages) = (of(Role::Source), of(Role::Stage));
        Ok(Worker {
            id: worker,
            dispatch: self.dispatch(worker)?,
            slots,
            sources,
            stages,
            agenda: Agenda::new(),
            reader: self.domain.register(),
            level: self.settings.level,
            clock: self.settings.clock.clone(),
            channel: self.channels[worker].clone(),
            change_queues: self.change_queues[worker].clone(),
            clock_read_cycles: round::clock_read_cycles(),
            ended: 0,
            began: 0,
            spent: 0,
            booked: 0,
            untimed: 0,
            long: round::gap_threshold_cycles(),
        })
    }

    fn dispatch(&mut self, worker: usize) -> Result<Dispatch, GraphError> {
        let size = self.settings.vector_size;
        let notes = self.notes[worker].get_or_insert_with(Tracer::notes).clone();
        let mut queues = Vec::with_capacity(MAX_NODES);
        queues.extend((0..self.defs.len()).map(|_| PendingFrames::default()));
        let mut free_frames = Vec::with_capacity(4 * MAX_NODES);
        let frames = (64 + 2 * self.defs.len() + self.stage_frames).min(4 * MAX_NODES);
        free_frames.extend((0..frames).map(|_| Frame::new(size)));
        Ok(Dispatch {
            queues,
            pending: PendingNodes::new(self.order()?),
            next_frame: None,
            free_frames,
            vector_size: self.vector_size,
            frame_capacity: size,
            bufs: self.pool.cache(),
            arcs: Box::new(self.arcs.tables(|name| self.node(name))?),
            tracer: Tracer::new(MAX_NODES, worker, notes),
            handoff: HandoffRings::new(worker),
            drop_node: self.node(DROP_NODE)?,
            targets: Column::new(size),
            offsets: vec![0; size.next_multiple_of(8)].into(),
            holders: Holders::new(),
            holding: false,
            meter: None,
            frames_allocated: 0,
        })
    }

    /// Send a prepared change to one worker.
    pub fn send(&mut self, worker: usize, change: Box<dyn Change>) -> Result<(), GraphError> {
        let channel = self.channels.get(worker);
        let Some(channel) = channel.filter(|_| self.worker_set.has(worker)) else {
            return Err(GraphError::Workers(worker));
        };
        let queues = &self.change_queues[worker];
        while queues.done.pop().is_some() {}
        queues
            .pending
            .push(change)
            .map_err(|_| GraphError::WorkerBusy(worker))?;
        self.sent[worker] += 1;
        channel.notify();
        Ok(())
    }

    /// Wake all workers because sources or stages got work by other means than a change. The workers call all of them in the
    /// next round.
    pub fn wake(&self) {
        self.channels.iter().for_each(|c| c.notify());
    }

    /// Whether a worker is asleep.
    pub fn is_asleep(&self, worker: usize) -> bool {
        let wakeup = self.channels.get(worker).and_then(|c| c.wakeup.0.get());
        wakeup.is_some_and(|wakeup| wakeup.is_asleep())
    }

    /// The number of times that a worker has slept.
    pub fn sleeps(&self, worker: usize) -> u64 {
        self.channels
            .get(worker)
            .map_or(0, |c| c.sleeps.load(Relaxed))
    }

    pub(crate) fn room_for_changes(&self) -> Result<(), GraphError> {
        let full = self
            .change_queues
            .iter()
            .position(|q| q.pending.len() + 8 > q.pending.capacity());
        full.map_or(Ok(()), |worker| Err(GraphError::WorkerBusy(worker)))
    }

    /// Whether every worker has applied every change. Also frees what the changes replaced.
    pub fn settled(&self) -> bool {
        self.domain.reclaim();
        let workers = self.channels.iter().zip(&self.change_queues);
        let mut is_settled = true;
        // Each queue is emptied, also behind a worker that has not applied its changes: what was replaced must be dropped before
        // its code is unmapped.
        for ((channel, queues), &sent) in workers.zip(&self.sent) {
            while queues.done.pop().is_some() {}
            is_settled &= channel.changes.load(Relaxed) == sent;
        }
        is_settled
    }

    /// Set the maximum number of packets of a vector: at least 1, and at most the capacity
    /// ([`crate::Settings::vector_size`]).
    pub fn set_vector_size(&mut self, packets: usize) -> Result<(), GraphError> {
        let room = self.settings.vector_size;
        if !(1..=room).contains(&packets) {
            return Err(GraphError::VectorRoom { packets, room });
        }
        self.room_for_changes()?;
        for worker in self.worker_set.iter() {
            self.send(worker, Box::new(SetVectorSize(packets)))?;
        }
        self.vector_size = packets;
        Ok(())
    }
}
