//! What the nodes of the generator and the control thread share: orders of trials, and what was sent and received.
//!
//! Contract: the generator's node writes [`Sent`], the sink's node [`Received`], each on one worker. The control thread reads.

use super::bucket::Plan;
use super::histogram::Histogram;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const RELAXED: Ordering = Ordering::Relaxed;

/// Orders of the control thread.
#[derive(Default)]
pub struct Orders {
    /// Twice the number of the trial, plus one while packets are sent.
    state: AtomicU32,
    /// Bits of the period.
    period: AtomicU64,
    burst: AtomicU64,
    depth: AtomicU64,
    /// Number of packets; `u64::MAX` for no limit.
    limit: AtomicU64,
    /// Which kind of frames is sent.
    kind: AtomicU32,
}

impl Orders {
    /// Begin the next trial; returns its number.
    pub fn begin(&self, plan: &Plan) -> u32 {
        self.period.store(plan.period.to_bits(), RELAXED);
        self.burst.store(plan.burst.max(1), RELAXED);
        self.depth.store(plan.depth.max(1), RELAXED);
        self.limit.store(plan.limit.unwrap_or(u64::MAX), RELAXED);
        let trial = self.trial() + 1;
        self.state.store(2 * trial + 1, Ordering::Release);
        trial
    }

    /// Send frames of this kind from the next trial on.
    pub fn choose(&self, kind: u32) {
        self.kind.store(kind, RELAXED);
    }

    /// The kind of frames of a trial that has begun.
    pub fn kind(&self) -> usize {
        self.kind.load(RELAXED) as usize
    }

    /// Send no further packets.
    pub fn end(&self) {
        self.state.store(2 * self.trial(), Ordering::Release);
    }

    /// Number of the current trial, 0 before the first.
    pub fn trial(&self) -> u32 {
        self.state.load(Ordering::Acquire) / 2
    }

    /// The state: see [`Orders::plan`].
    #[inline(always)]
    pub fn state(&self) -> u32 {
        self.state.load(Ordering::Acquire)
    }

    /// The plan of the trial; none if no packets are sent.
    pub fn plan(&self, state: u32) -> Option<Plan> {
        let limit = self.limit.load(RELAXED);
        (state % 2 == 1).then(|| Plan {
            period: f64::from_bits(self.period.load(RELAXED)),
            burst: self.burst.load(RELAXED),
            depth: self.depth.load(RELAXED),
            limit: (limit != u64::MAX).then_some(limit),
        })
    }
}

/// What the generator sent in the current trial.
#[derive(Default)]
pub struct Sent {
    /// The state that the node obeys: the other values are those of this trial.
    pub state: AtomicU32,
    /// Packets.
    pub packets: AtomicU64,
    /// Tokens that were lost because the generator was late.
    pub missed: AtomicU64,
    /// Packets that had no buffer.
    pub no_buffers: AtomicU64,
    /// Largest number of packets of one vector.
    pub largest: AtomicU64,
    /// Time stamp counter at the first and at the last packet.
    pub first: AtomicU64,
    /// Time stamp counter at the last packet.
    pub last: AtomicU64,
    /// Cycles between two calls of the generator: as often, the worker polls its ports.
    pub polls: Histogram,
}

/// What the sink received in the current trial.
#[derive(Default)]
pub struct Received {
    /// The trial that the values are of; 0 before the first packet.
    pub trial: AtomicU32,
    /// Packets with a probe, without duplicates.
    pub packets: AtomicU64,
    /// Bytes of these packets.
    pub bytes: AtomicU64,
    /// Packets whose sequence number was received before.
    pub duplicates: AtomicU64,
    /// Packets behind one with a larger sequence number (RFC 4737).
    pub reordered: AtomicU64,
    /// Packets without a probe of this trial.
    pub others: AtomicU64,
    /// Largest sequence number, plus one.
    pub end: AtomicU64,
    /// Time stamp counter at the first packet.
    pub first: AtomicU64,
    /// Time stamp counter at the last packet.
    pub last: AtomicU64,
    /// Cycles from the due time of a packet to the sink.
    pub latency: Histogram,
}

impl Received {
    /// Forget everything, for a new trial. Only the sink's node may call this.
    pub fn clear(&self) {
        let cells = [
            &self.packets,
            &self.bytes,
            &self.duplicates,
            &self.reordered,
            &self.others,
            &self.end,
            &self.first,
            &self.last,
        ];
        cells.iter().for_each(|cell| cell.store(0, RELAXED));
        self.latency.clear();
    }
}

impl Sent {
    /// Forget everything, for a new trial. Only the generator's node may call this.
    pub fn clear(&self) {
        let cells = [
            &self.packets,
            &self.missed,
            &self.no_buffers,
            &self.largest,
            &self.first,
            &self.last,
        ];
        cells.iter().for_each(|cell| cell.store(0, RELAXED));
        self.polls.clear();
    }
}

/// Add to a cell that only this thread writes.
#[inline(always)]
pub fn add(cell: &AtomicU64, by: u64) {
    cell.store(cell.load(RELAXED) + by, RELAXED);
}
