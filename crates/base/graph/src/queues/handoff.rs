//! Handoff: rings of whole frames carry packets from one worker to another, one ring for each ordered pair of workers.
//!
//! Neither side blocks. A full ring refuses a frame, and the producer drops and counts its packets. Every frame is
//! exchanged for an empty one in both directions, so each worker keeps as many frames as it had. The producer wakes
//! the consumer's worker.
//!
//! A worker's *epoch* keeps packets in order when a flow moves to another worker ([`crate::StageCx::begin_epoch`]): packets
//! handed off in an epoch wait, whatever their destination, until all workers have run the packets of the epoch
//! before.

use crate::data::frame::Frame;
use crate::data::ids::{MAX_NODES, NodeId};
use crate::data::stats::add_relaxed;
use crate::data::worker_set::MAX_WORKERS;
use crate::queues::channel::Channel;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use volley_tables::exchange::{Consumer, Epochs, Producer};

/// Entries of each ring that are reserved for the marker of an epoch.
const RESERVED_ENTRIES: usize = 1;

/// Counters of one ring. The producer writes them.
#[derive(Default)]
#[repr(align(64))]
pub(crate) struct HandoffCounters {
    pub(crate) frames: AtomicU64,
    pub(crate) packets: AtomicU64,
    pub(crate) refused: AtomicU64,
}

/// Counters of the ring from one worker to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandoffReport {
    /// The worker that enqueues.
    pub from: usize,
    /// The worker that dequeues.
    pub to: usize,
    /// Frames enqueued. A vector may be split into several.
    pub frames: u64,
    /// Packets enqueued.
    pub packets: u64,
    /// Packets dropped because the ring was full.
    pub refused: u64,
}

/// An entry of a ring: a frame for a node, an empty frame, or the marker of an epoch.
pub(crate) struct HandoffEntry {
    pub(crate) node: NodeId,
    /// The number of the epoch that begins; 0 for an entry with packets.
    pub(crate) epoch: u64,
    /// The node is placed on another worker than the producer: the consumer runs it, even if the consumer's own table
    /// places the node elsewhere.
    pub(crate) placed: bool,
    pub(crate) frame: Box<Frame>,
}

impl HandoffEntry {
    pub(crate) fn empty(frame: Box<Frame>) -> Self {
        HandoffEntry {
            node: NodeId(0),
            epoch: 0,
            placed: false,
            frame,
        }
    }
}

/// The producer's end of a ring to another worker.
pub(crate) struct HandoffProducer {
    pub(crate) ring: Producer<HandoffEntry>,
    pub(crate) counters: Arc<HandoffCounters>,
    pub(crate) peer: Arc<Channel>,
}

/// The consumer's end of a ring from another worker.
pub(crate) struct HandoffConsumer {
    pub(crate) ring: Consumer<HandoffEntry>,
    pub(crate) epochs: Arc<Epochs>,
    /// The epoch whose marker was dequeued and that is not complete; 0 for none.
    pub(crate) epoch: u64,
    /// Whether all packets in front of the marker have run.
    pub(crate) arrived: bool,
}

/// All ring ends of one worker, including the ring to itself.
pub(crate) struct HandoffRings {
    pub(crate) worker_id: usize,
    /// Indexed by worker.
    pub(crate) producers: Vec<Option<HandoffProducer>>,
    pub(crate) consumers: Vec<HandoffConsumer>,
    pub(crate) epochs: Arc<Epochs>,
    pub(crate) epoch: u64,
    /// Packets that stay on this worker bypass its own ring, which is empty.
    pub(crate) direct: bool,
    /// No other worker hands packets off to this worker any more.
    pub(crate) is_alone: bool,
}

/// The destination of a packet, as [`crate::Vector::handoff`] reads it: a worker and a node.
#[inline(always)]
pub fn handoff_code(worker: usize, node: NodeId) -> u32 {
    (worker as u32) << 16 | u32::from(node.0)
}

impl HandoffRings {
    pub(crate) fn new(worker_id: usize) -> Self {
        HandoffRings {
            worker_id,
            producers: (0..MAX_WORKERS).map(|_| None).collect(),
            consumers: Vec::with_capacity(MAX_WORKERS),
            epochs: Epochs::new(0),
            epoch: 0,
            direct: true,
            is_alone: false,
        }
    }

    /// Enqueue a frame for a worker. Returns an empty frame in exchange, or the frame itself when the ring is full.
    #[inline(always)]
    pub(crate) fn enqueue(
        &mut self,
        worker: usize,
        node: NodeId,
        placed: bool,
        frame: Box<Frame>,
    ) -> Result<Box<Frame>, Box<Frame>> {
        let Some(Some(producer)) = self.producers.get_mut(worker) else {
            return Err(frame);
        };
        let rows = frame.n as u64;
        let mut entry = HandoffEntry {
            node,
            epoch: 0,
            placed,
            frame,
        };
        if !producer.ring.enqueue(&mut entry, RESERVED_ENTRIES) {
            add_relaxed(&producer.counters.refused, rows);
            return Err(entry.frame);
        }
        add_relaxed(&producer.counters.frames, 1);
        add_relaxed(&producer.counters.packets, rows);
        if worker != self.worker_id {
            producer.peer.wake();
        }
        Ok(entry.frame)
    }

    /// The id of this worker.
    #[inline(always)]
    pub(crate) fn worker_id(&self) -> usize {
        self.worker_id
    }

    /// See [`crate::StageCx::begin_epoch`]. `frame` is empty; another empty frame is returned for it.
    pub(crate) fn begin_epoch(&mut self, mut frame: Box<Frame>) -> (Box<Frame>, bool) {
        let mut rings = self.producers.iter_mut().flatten();
        if rings.any(|producer| producer.ring.free_slots() == 0) {
            return (frame, false);
        }
        self.epoch += 1;
        self.direct = false;
        let me = self.worker_id;
        for (worker, producer) in self.producers.iter_mut().enumerate() {
            let Some(producer) = producer else { continue };
            let mut entry = HandoffEntry::empty(frame);
            entry.epoch = self.epoch;
            producer.ring.enqueue(&mut entry, 0);
            frame = entry.frame;
            if worker != me {
                producer.peer.wake();
            }
        }
        (frame, true)
    }

    /// Whether packets that stay on this worker may bypass its own ring.
    #[inline(always)]
    pub(crate) fn is_epoch_over(&mut self) -> bool {
        self.direct || self.finish_epoch()
    }

    #[cold]
    fn finish_epoch(&mut self) -> bool {
        let (me, turns) = (self.worker_id, Arc::as_ptr(&self.epochs));
        let mine = self
            .consumers
            .iter_mut()
            .find(|i| Arc::as_ptr(&i.epochs) == turns);
        self.direct = self.producers.get(me).is_none_or(Option::is_none)
            || mine.is_none_or(|consumer| consumer.epoch == 0 && consumer.ring.is_empty());
        self.direct
    }

    /// Whether the worker may end: its rings are empty, and no other worker enqueues packets for it.
    pub(crate) fn can_exit(&self) -> bool {
        let none = |consumer: &HandoffConsumer| consumer.epoch == 0 && consumer.ring.is_empty_now();
        (self.is_alone || self.consumers.is_empty()) && self.consumers.iter().all(none)
    }

    /// Whether all other workers have dequeued everything that this worker enqueued.
    #[inline(always)]
    pub(crate) fn is_flushed(&self) -> bool {
        // A worker without a ring to itself has no rings to other workers.
        self.consumers.is_empty() || self.are_empty()
    }

    #[inline(never)]
    fn are_empty(&self) -> bool {
        self.producers.iter().flatten().all(|o| o.ring.is_empty())
    }

    /// Whether all rings to this worker are empty.
    #[inline(always)]
    pub(crate) fn is_empty(&mut self) -> bool {
        let mut consumers = self.consumers.iter_mut();
        consumers.all(|consumer| consumer.epoch == 0 && consumer.ring.is_empty())
    }
}

impl HandoffConsumer {
    /// Whether entries may be dequeued: the last epoch is complete.
    #[inline(always)]
    pub(crate) fn is_epoch_complete(&mut self) -> bool {
        if self.epoch != 0 && self.arrived && self.epochs.is_complete(self.epoch) {
            self.epoch = 0;
        }
        self.epoch == 0
    }
}

const _: () = assert!(MAX_NODES <= 1 << 16, "a node fits the code of a handoff");
