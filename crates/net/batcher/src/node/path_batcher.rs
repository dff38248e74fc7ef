//! path-batcher: collects packets of one path before they enter the graph, so that vectors do not split.
//!
//! A feature of the arc of received packets, on the interfaces where the path batcher is enabled.

use crate::count::{Cells, bump};
use crate::memo::{Front, LearnedEntries, Trail, front};
use crate::parser::{Features, Program};
use crate::queues::Queues;
use crate::table::Table;
use std::sync::{Arc, LazyLock};
use volley_graph::{
    Clock, Col, Column, Consumed, Cx, Isa, Node, Output, PacketView, Share, Stage, Trace,
    TraceNames, Vector, WakeConditions, counters, nexts,
};
use volley_tables::qsbr::Snap;

nexts! {
    /// Where path-batcher sends packets: to the next node on the arc of their interface, mostly `ethernet-input`.
    pub enum Next { Ethernet => "ethernet-input", Drop => "error-drop" }
}

counters! {
    /// What path-batcher counts.
    pub enum Count {
        /// packets that were put into a queue
        Queued = "queued" (Info),
        /// packets that were sent on unsorted while an interface is switched off
        Passed = "passed" (Info),
        /// packets that were sent on early because the rules changed
        Flushed = "flushed" (Info),
    }
}

/// A worker does not sleep if a batch is due within this time: waking up takes as long.
const NEAR_NS: u64 = 200_000;
/// A sleeping worker wakes up this long before a batch is due.
const EARLY_NS: u64 = 150_000;

/// State of path-batcher on one worker.
pub struct PathBatcher {
    table: Snap<Table>,
    queues: Queues,
    cells: Arc<Cells>,
    clock: Clock,
    codes: Column,
    features: Features,
    memos: LearnedEntries,
    /// Version of the table that classified the held packets.
    version: u64,
    /// Packets until the next sample.
    until_sample: u32,
    rng: u32,
    /// The last round in which [`Queues::ask`] was called.
    round: u64,
}

impl PathBatcher {
    pub(crate) fn new(
        table: Snap<Table>,
        (cells, share): (Arc<Cells>, Arc<Share>),
        clock: Clock,
        (worker, size): (usize, usize),
    ) -> Self {
        PathBatcher {
            table,
            queues: Queues::new(cells.clone(), share, worker),
            cells,
            clock,
            codes: Column::new(size),
            features: Features::default(),
            memos: LearnedEntries::default(),
            version: 0,
            until_sample: 0,
            rng: 0x9e37_79b9,
            round: 0,
        }
    }

    /// Classifies the packets of a vector: stores the queue of each in the `codes` column.
    #[inline(always)]
    fn sort<I: Isa>(&mut self, table: &Table, v: &mut Vector<'_, I, Next>) {
        v.prefetch_headers();
        let (n, chains) = (v.len(), v.has_chains());
        let codes = self.codes.words_mut(n);
        let (mut counter, mut streak) = (u32::MAX, 0u64);
        let rules = &self.cells.rules;
        let book = |counter: u32, streak: u64| {
            if let Some(cell) = rules.get(counter as usize) {
                bump(cell, streak);
            }
        };
        for row in 0..n {
            let front = front(v.front(row));
            let len = if chains {
                v.view(row).bytes().len()
            } else {
                v.column(Col::LEN)[row] as usize
            };
            let sample = table.sample != 0 && self.until_sample == 0;
            let rank = match self.memos.fits(&front, len) {
                Some(memo) if !sample => match self.memos.rank(memo) {
                    Some(rank) => rank,
                    None => recall(table, &self.memos, &mut self.features, memo, v.view(row)),
                },
                _ => walk(
                    table,
                    &mut self.memos,
                    &mut self.features,
                    &front,
                    v.view(row),
                    sample,
                ),
            };
            if table.sample != 0 {
                self.until_sample = match self.until_sample.checked_sub(1) {
                    Some(left) => left,
                    None => stride(&mut self.rng, table.sample),
                };
                if sample && rank >= table.learned_from {
                    bump(&self.cells.looked, 1);
                    let _ = self.cells.samples.push(table.signature(&self.features));
                }
            }
            let target = table.target(rank);
            codes[row] = target.queue;
            if target.counter != counter {
                book(counter, streak);
                (counter, streak) = (target.counter, 0);
            }
            streak += 1;
        }
        book(counter, streak);
    }

    /// Releases everything that another table classified, before the new packets.
    #[cold]
    fn flush<I: Isa>(&mut self, cx: &Cx<'_, Count>, v: &mut Vector<'_, I, Next>) {
        let (now, isa) = (self.clock.now_ns(), v.isa());
        cx.count(Count::Flushed, self.queues.packets);
        while let Some(batch) = self.queues.flush(now) {
            v.stage_cx().send_on_receive(isa, batch);
        }
        self.queues.publish();
    }
}

/// The rank of a packet with a cache entry, if the rank depends on field values.
#[inline(never)]
fn recall(
    table: &Table,
    memos: &LearnedEntries,
    features: &mut Features,
    memo: usize,
    packet: PacketView<'_>,
) -> u32 {
    memos.recall(memo, packet.bytes(), features);
    table.matcher.find(features)
}

/// The rank of a packet without a cache entry, or of a sample.
#[inline(never)]
fn walk(
    table: &Table,
    memos: &mut LearnedEntries,
    features: &mut Features,
    front: &Front,
    packet: PacketView<'_>,
    sample: bool,
) -> u32 {
    let mut trail = Trail::default();
    table
        .program
        .parse(packet.bytes(), sample, features, &mut trail);
    let rank = table.matcher.find(features);
    if !sample {
        memos.note(front, &trail, features, rank);
    }
    rank
}

/// Number of packets to skip before the next sample. The number is random: with a fixed stride, periodic traffic could show
/// only one of its paths.
#[inline(always)]
fn stride(rng: &mut u32, sample: u32) -> u32 {
    *rng ^= *rng << 13;
    *rng ^= *rng >> 17;
    *rng ^= *rng << 5;
    let most = 2 * sample.max(1) - 1;
    ((u64::from(*rng) * u64::from(most)) >> 32) as u32
}

impl Node for PathBatcher {
    const NAME: &'static str = "path-batcher";
    type Next = Next;
    type Count = Count;
    type Trace = PathTrace;

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, mut v: Vector<'_, I, Next>) -> Consumed {
        let table = self.table.read(cx.guard());
        if table.version != self.version {
            if self.queues.packets > 0 {
                self.flush(cx, &mut v);
            }
            self.version = table.version;
            self.memos.clear();
        }
        if table.pass {
            cx.count(Count::Passed, v.len() as u64);
            return v.send_on_receive();
        }
        self.sort(table, &mut v);
        cx.count(Count::Queued, v.len() as u64);
        let (now, isa) = (self.clock.now_ns(), v.isa());
        let queues = &mut self.queues;
        let done = v.classify(&self.codes, |stage_cx, id, piece| {
            queues.push(
                stage_cx,
                table,
                id as usize,
                piece,
                now,
                |stage_cx, batch| {
                    stage_cx.send_on_receive(isa, batch);
                },
            );
        });
        queues.publish();
        done
    }
}

impl Stage for PathBatcher {
    fn is_holding(&self) -> bool {
        self.queues.packets > 0
    }

    #[inline(always)]
    fn release<I: Isa>(&mut self, cx: &Cx<'_, Count>, out: &mut Output<'_, I, Next>) -> usize {
        let table = self.table.read(cx.guard());
        let now = self.clock.now_ns();
        if self.round != cx.now_ns() {
            self.round = cx.now_ns();
            self.queues.ask(now);
        }
        let batch = if table.version != self.version {
            self.queues.flush(now)
        } else {
            self.queues.next(table, now)
        };
        let Some(batch) = batch else {
            self.queues.publish();
            return 0;
        };
        if table.version != self.version {
            cx.count(Count::Flushed, batch.len() as u64);
        }
        let sent = out.send_batch_on_receive(batch);
        if self.queues.packets == 0 {
            self.queues.publish();
        }
        sent
    }

    fn may_sleep(&self, now_ns: u64) -> bool {
        self.queues.packets == 0 || self.queues.next_due > now_ns + NEAR_NS
    }

    fn arm(&mut self, rest: &mut WakeConditions) -> bool {
        self.queues.rest();
        if self.queues.packets > 0 {
            rest.wake_at(self.queues.next_due.saturating_sub(EARLY_NS));
        }
        true
    }
}

/// Bytes of a packet that its trace stores.
const NOTED: usize = 96;

/// Trace of a packet: its first bytes, from which the headers are named.
#[derive(Clone, Copy)]
pub struct PathTrace {
    head: [u8; NOTED],
    noted: u8,
    rx: u32,
    len: u32,
}

static BUILT_IN: LazyLock<Program> = LazyLock::new(|| Program::new(&[]));

impl Trace for PathTrace {
    fn note(packet: &PacketView<'_>) -> Self {
        let (mut head, bytes) = ([0; NOTED], packet.bytes());
        let n = bytes.len().min(NOTED);
        head[..n].copy_from_slice(&bytes[..n]);
        PathTrace {
            head,
            noted: n as u8,
            rx: packet.rx(),
            len: packet.len() as u32,
        }
    }

    fn text(&self, names: &dyn TraceNames) -> String {
        let mut features = Features::default();
        let head = &self.head[..self.noted as usize];
        BUILT_IN.parse(head, true, &mut features, &mut Trail::default());
        let path = BUILT_IN.path_text(features.path);
        format!(
            "from {}, {} bytes\npath {path}",
            names.interface(self.rx),
            self.len
        )
    }
}
