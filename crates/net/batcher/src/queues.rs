//! Queues of packets on one worker, and the order in which they release batches.
//!
//! - A queue has one open batch; full batches wait until there are as many as the `gather` setting, and the worker polls.
//! - A batch is released early if its oldest packet would exceed its limit in case the worker polls as late as it did recently:
//!   after at least half of the limit, at most fifteen sixteenths of it.
//! - Strict queues first; the others are served round robin, each with up to its weight in batches.
//! - Packets of a queue leave in order of arrival.
//! - At most [`MOST`] batches are held, and no more buffers than this worker's part of the batcher's share of the pool; beyond
//!   that the oldest batch is released at once. Nothing is dropped here.

use crate::count::{Cells, bump};
use crate::table::{QUEUES, QueuePlan, Table};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use volley_graph::{Batch, Share, StageCx};

/// Largest number of held batches.
pub(crate) const MOST: usize = 128;
/// Arrival times recorded for one batch; later arrivals count as the last one.
const ARRIVALS: usize = 8;
/// Time for which a late poll of the worker is remembered: some ticks of the kernel's timer, the most frequent cause on a
/// machine that is not configured for polling.
const MEMORY_NS: u64 = 16_000_000;

/// Nanoseconds after which a packet is released: a sixteenth of its limit is reserved for the rest of its path.
#[inline(always)]
fn due_ns(limit: u64) -> u64 {
    limit - limit / 16
}

/// Arrival times of the packets of a batch.
#[derive(Clone, Copy, Default)]
struct Times {
    arrivals: [(u64, u32); ARRIVALS],
    n: usize,
}

impl Times {
    fn add(&mut self, now: u64, packets: usize) {
        match self.n.checked_sub(1).map(|last| &mut self.arrivals[last]) {
            // Some packets count as older than they are, which is on the safe side.
            Some(last) if last.0 == now || self.n == ARRIVALS => last.1 += packets as u32,
            _ => {
                self.arrivals[self.n] = (now, packets as u32);
                self.n += 1;
            }
        }
    }

    fn oldest(&self) -> u64 {
        self.arrivals[0].0
    }
}

struct Waiting {
    batch: Batch,
    /// Buffers of the batch's packets.
    buffers: usize,
    times: Times,
}

#[derive(Default)]
struct Queue {
    full: VecDeque<Waiting>,
    open: Option<Waiting>,
    packets: u64,
}

impl Queue {
    /// Arrival time of the first packet in the queue.
    fn oldest(&self) -> Option<u64> {
        let first = self.full.front().or(self.open.as_ref())?;
        Some(first.times.oldest())
    }
}

/// Reason for the release of a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ReleaseReason {
    Full,
    Timeout,
    Flush,
    /// The space of the batch is needed.
    Evicted,
}

/// All queues of one worker.
pub(crate) struct Queues {
    queues: Vec<Queue>,
    cells: Arc<Cells>,
    /// Bit sets of queues with a full batch, and of queues with an open one.
    full: u64,
    open: u64,
    /// Queues that reached `gather` full batches and still have one.
    ripe: u64,
    batches: usize,
    /// Buffers held, the share of the pool, and the index of this worker.
    buffers: usize,
    share: Arc<Share>,
    worker: usize,
    /// This worker's limit from the share, at the last poll.
    limit: usize,
    pub(crate) packets: u64,
    /// No batch is overdue before this time.
    pub(crate) next_due: u64,
    turn: u32,
    credit: u32,
    gaps: Gaps,
}

/// Intervals between the worker's polls.
#[derive(Default)]
struct Gaps {
    /// Time of the last poll (none if the worker slept since), and the interval before that poll.
    asked: Option<u64>,
    last: u64,
    /// Longest interval of this window and of the previous one, and the start of this window.
    longest: [u64; 2],
    since: u64,
}

impl Gaps {
    /// Records a poll at `now`.
    #[inline(always)]
    fn ask(&mut self, now: u64) {
        let gap = self.asked.map_or(0, |asked| now.saturating_sub(asked));
        (self.asked, self.last) = (Some(now), gap);
        if now.saturating_sub(self.since) > MEMORY_NS {
            (self.since, self.longest) = (now, [0, self.longest[0]]);
        }
        self.longest[0] = self.longest[0].max(gap);
    }

    /// Time between the last poll and `now`, or the interval before that poll if longer.
    fn elsewhere(&self, now: u64) -> u64 {
        let since = self.asked.map_or(0, |asked| now.saturating_sub(asked));
        self.last.max(since)
    }

    /// The longest recorded interval.
    #[inline(always)]
    fn longest(&self) -> u64 {
        self.longest[0].max(self.longest[1])
    }
}

impl Queues {
    pub(crate) fn new(cells: Arc<Cells>, share: Arc<Share>, worker: usize) -> Queues {
        let queue = || Queue {
            full: VecDeque::with_capacity(MOST + 1),
            ..Queue::default()
        };
        Queues {
            queues: (0..QUEUES).map(|_| queue()).collect(),
            cells,
            full: 0,
            open: 0,
            ripe: 0,
            batches: 0,
            buffers: 0,
            limit: share.each(),
            share,
            worker,
            packets: 0,
            next_due: u64::MAX,
            turn: 0,
            credit: 0,
            gaps: Gaps::default(),
        }
    }

    /// Appends packets to their queue.
    #[inline(always)]
    fn gather(
        &mut self,
        stage_cx: &mut StageCx<'_>,
        (id, plan): (usize, &QueuePlan),
        mut piece: Batch,
        now: u64,
    ) {
        let queue = &mut self.queues[id];
        let mut buffers = stage_cx.buffers(&piece);
        self.packets += piece.len() as u64;
        queue.packets += piece.len() as u64;
        self.buffers += buffers;
        loop {
            match &mut queue.open {
                None if piece.len() <= plan.batch => {
                    let mut times = Times::default();
                    times.add(now, piece.len());
                    let batch = piece;
                    queue.open = Some(Waiting {
                        batch,
                        buffers,
                        times,
                    });
                    self.batches += 1;
                    piece = stage_cx.empty_batch();
                }
                None => {
                    let (batch, times) = (stage_cx.empty_batch(), Times::default());
                    queue.open = Some(Waiting {
                        batch,
                        buffers: 0,
                        times,
                    });
                    self.batches += 1;
                    continue;
                }
                Some(open) => {
                    let moved = stage_cx.move_packets(&mut open.batch, &mut piece, plan.batch);
                    if moved > 0 {
                        open.times.add(now, moved);
                    }
                    let left = stage_cx.buffers(&piece);
                    open.buffers += buffers - left;
                    buffers = left;
                }
            }
            let is_full = |w: &Waiting| w.batch.len() >= plan.batch || !piece.is_empty();
            if queue.open.as_ref().is_some_and(is_full) {
                queue.full.extend(queue.open.take());
                self.full |= 1 << id;
            }
            if piece.is_empty() {
                stage_cx.free_batch(piece);
                break;
            }
        }
    }

    /// Adds packets for queue `id` that arrived now. Batches that exceed the capacity are passed to `send`.
    #[inline(always)]
    pub(crate) fn push(
        &mut self,
        stage_cx: &mut StageCx<'_>,
        table: &Table,
        id: usize,
        piece: Batch,
        now: u64,
        mut send: impl FnMut(&mut StageCx<'_>, Batch),
    ) {
        let id = id % QUEUES;
        let plan = table.queues[id];
        let packets = piece.len();
        self.gather(stage_cx, (id, &plan), piece, now);
        let queue = &self.queues[id];
        match &queue.open {
            None => self.open &= !(1 << id),
            Some(_) => self.open |= 1 << id,
        }
        if queue.full.len() >= plan.gather {
            self.ripe |= 1 << id;
        }
        if let Some(oldest) = queue.oldest() {
            self.next_due = self.next_due.min(oldest + due_ns(plan.timeout_ns));
        }
        let cells = &self.cells.queues[id];
        bump(&cells.packets, packets as u64);
        if queue.packets > cells.most.load(Relaxed) {
            cells.most.store(queue.packets, Relaxed);
        }
        while self.batches > MOST && self.full & 1 << id != 0 {
            if let Some(batch) = self.take(id, plan.timeout_ns, now, ReleaseReason::Full) {
                send(stage_cx, batch);
            }
        }
        while self.buffers > self.limit
            && let Some(batch) = self.evict(now)
        {
            send(stage_cx, batch);
        }
    }

    /// The oldest batch of all queues, for a release because more is held than the share of the pool allows.
    #[cold]
    fn evict(&mut self, now: u64) -> Option<Batch> {
        let ages = self.queues.iter().enumerate();
        let ages = ages.filter_map(|(id, queue)| Some((queue.oldest()?, id)));
        let (_, id) = ages.min()?;
        let batch = self.take(id, u64::MAX, now, ReleaseReason::Evicted)?;
        self.share.count_evicted(self.worker, batch.len() as u64);
        Some(batch)
    }

    /// Records the worker's first poll of a round, at `now`.
    pub(crate) fn ask(&mut self, now: u64) {
        self.gaps.ask(now);
        self.limit = self.share.each();
    }

    /// Records that the worker sleeps until the next batch is due or packets arrive: this time counts as no delay.
    pub(crate) fn rest(&mut self) {
        self.gaps.asked = None;
    }

    /// The next batch to release, if any.
    #[inline(always)]
    pub(crate) fn next(&mut self, table: &Table, now: u64) -> Option<Batch> {
        if self.buffers > self.limit {
            return self.evict(now);
        }
        let overdue = self.overdue(table, now);
        // A queue's turn that has begun continues.
        let turn = if self.credit > 0 { 1 << self.turn } else { 0 };
        let ready = self.ripe | self.full & turn | overdue;
        if ready == 0 {
            return None;
        }
        let id = self.choose(table, ready);
        let why = if self.full & 1 << id != 0 {
            ReleaseReason::Full
        } else {
            ReleaseReason::Timeout
        };
        self.take(id, table.queues[id].timeout_ns, now, why)
    }

    /// Queues with a batch whose time may be up before the next poll.
    #[inline(always)]
    fn overdue(&mut self, table: &Table, now: u64) -> u64 {
        let held = self.open | self.full;
        if held == 0 {
            self.next_due = u64::MAX;
            return 0;
        }
        let gap = self.gaps.longest();
        if now + gap < self.next_due {
            return 0;
        }
        let (mut due, mut left, mut first) = (0, held, u64::MAX);
        while left != 0 {
            let id = left.trailing_zeros() as usize;
            left &= left - 1;
            let limit = table.queues[id].timeout_ns;
            let Some(oldest) = self.queues[id].oldest() else {
                continue;
            };
            let deadline = oldest + due_ns(limit);
            // A release is early by at most half of the limit.
            let early = gap.min(due_ns(limit) - limit / 2);
            if now + early >= deadline {
                due |= 1 << id;
            } else {
                first = first.min(deadline);
            }
        }
        if due == 0 {
            self.next_due = first;
        }
        due
    }

    /// The ready queue that releases a batch next.
    #[inline(always)]
    fn choose(&mut self, table: &Table, ready: u64) -> usize {
        if ready & table.strict_mask != 0 {
            let first = table.strict.iter().find(|id| ready & 1 << **id != 0);
            if let Some(id) = first {
                return *id as usize;
            }
        }
        let turns = ready & !table.strict_mask;
        if self.credit > 0 && turns & 1 << self.turn != 0 {
            self.credit -= 1;
            return self.turn as usize;
        }
        // The next queue after the last one in round robin order.
        let from = (self.turn + 1) % QUEUES as u32;
        let id = (turns.rotate_right(from).trailing_zeros() + from) % QUEUES as u32;
        self.turn = id;
        let plan = &table.queues[id as usize];
        self.credit = plan.weight.max(plan.gather as u32).saturating_sub(1);
        id as usize
    }

    /// Takes the oldest batch of a queue.
    fn take(&mut self, id: usize, limit: u64, now: u64, why: ReleaseReason) -> Option<Batch> {
        let queue = &mut self.queues[id];
        let Waiting {
            batch,
            buffers,
            times,
        } = match queue.full.pop_front() {
            Some(full) => full,
            None => {
                self.open &= !(1 << id);
                queue.open.take()?
            }
        };
        if queue.full.is_empty() {
            self.full &= !(1 << id);
            self.ripe &= !(1 << id);
        }
        let packets = batch.len() as u64;
        queue.packets -= packets;
        self.packets -= packets;
        self.batches -= 1;
        self.buffers -= buffers;
        self.cells.size(packets as usize);
        let cells = &self.cells.queues[id];
        let mut late = 0;
        for (at, n) in &times.arrivals[..times.n] {
            let waited = now.saturating_sub(*at);
            self.cells.delay(waited, u64::from(*n));
            late += if waited > limit { u64::from(*n) } else { 0 };
        }
        if late > 0 {
            bump(&cells.late, late);
            if self.gaps.elsewhere(now) > limit / 2 {
                bump(&cells.held_up, late);
            }
        }
        match why {
            ReleaseReason::Evicted => {}
            ReleaseReason::Full => bump(&cells.full, 1),
            ReleaseReason::Timeout => bump(&cells.timeouts, 1),
            ReleaseReason::Flush => bump(&self.cells.flushed, packets),
        }
        Some(batch)
    }

    /// Takes everything that is held, queue by queue, each in order.
    pub(crate) fn flush(&mut self, now: u64) -> Option<Batch> {
        let held = self.full | self.open;
        let id = held.trailing_zeros() as usize;
        (held != 0).then(|| self.take(id, u64::MAX, now, ReleaseReason::Flush))?
    }

    /// Publishes the number of held packets.
    pub(crate) fn publish(&self) {
        let reported = self.cells.held.load(Relaxed);
        if reported == 0 && self.packets == 0 {
            return;
        }
        self.share.set_held(self.worker, self.buffers);
        for (queue, cells) in self.queues.iter().zip(&self.cells.queues) {
            cells.held.store(queue.packets, Relaxed);
        }
        // The control thread waits for this value when an interface is disabled.
        self.cells
            .held
            .store(self.packets, std::sync::atomic::Ordering::Release);
    }
}
