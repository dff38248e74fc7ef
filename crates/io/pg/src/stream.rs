//! A stream on its worker, and what the control thread sees of it.

use crate::make::pick::Pick;
use crate::make::program::{BLOCK, Program};
use crate::make::unroll::Round;
use crate::make::values::{Random, Values};
use crossbeam_queue::ArrayQueue;
use rand_xoshiro::rand_core::SeedableRng;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use volley_graph::buf::DATA;
use volley_graph::{DeferredPackets, NodeId};

/// The most streams there can be on one worker.
pub const MAX_STREAMS: usize = 256;

/// Packets made ahead of time, so that what is measured behind the source finds buffers that nothing has touched for
/// a while: `packets` buffers are filled, then sent vector by vector untouched; then the next lap is filled. When one
/// stream of a worker is preloaded, all that are enabled there are, interleaved, with the longest lap. Fewer free
/// buffers make the lap shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preload {
    /// Packets of one lap.
    pub packets: usize,
}

/// What the control thread wants of a stream, in the low bits of a command; the rest counts commands.
pub(crate) const OFF: u32 = 0;
pub(crate) const ON: u32 = 1;
pub(crate) const GONE: u32 = 2;

/// What both threads see of a stream.
#[derive(Default)]
pub(crate) struct Shared {
    /// Written by the control thread.
    pub(crate) command: AtomicU32,
    /// The last command that is carried out to the end, every packet processed; written by the worker.
    pub(crate) done: AtomicU32,
    /// Packets made since the stream was enabled, lost ones included.
    pub(crate) sent: AtomicU64,
    /// The worker that it is to be on; written by the control thread.
    pub(crate) worker: AtomicU32,
    /// It is counted among those on their way to another worker.
    moving: AtomicBool,
}

impl Shared {
    /// The worker that it is to be on.
    #[inline(always)]
    pub(crate) fn worker(&self) -> usize {
        self.worker.load(Ordering::Relaxed) as usize
    }

    /// Whether it is to stay with `worker`, which has taken up every command (the last one it has `seen`).
    #[inline(always)]
    pub(crate) fn is_at_rest(&self, worker: usize, seen: u32) -> bool {
        self.command.load(Ordering::Acquire) == seen && self.worker() == worker
    }

    pub(crate) fn order(&self, want: u32) {
        let before = self.command.load(Ordering::Relaxed);
        self.command
            .store((before & !3).wrapping_add(4) | want, Ordering::Release);
    }

    pub(crate) fn is_enabled(&self) -> bool {
        let command = self.command.load(Ordering::Relaxed);
        // A stream that was told to stop is enabled until it has.
        command != self.done.load(Ordering::Acquire)
    }

    /// Whether the last thing it was told is to send, and it is not through with that.
    pub(crate) fn is_wanted(&self) -> bool {
        self.command.load(Ordering::Relaxed) & 3 == ON && self.is_enabled()
    }
}

/// The way streams take to a worker and back.
pub(crate) struct Inbox {
    pub(crate) new: ArrayQueue<Box<Stream>>,
    pub(crate) gone: ArrayQueue<Box<Stream>>,
    /// Streams on their way from one worker to another: one number for all workers.
    moving: Arc<AtomicUsize>,
}

impl Inbox {
    pub(crate) fn for_workers(workers: usize) -> Vec<Arc<Inbox>> {
        let moving = Arc::<AtomicUsize>::default();
        let inbox = || Inbox {
            new: ArrayQueue::new(MAX_STREAMS),
            gone: ArrayQueue::new(MAX_STREAMS),
            moving: moving.clone(),
        };
        (0..workers).map(|_| Arc::new(inbox())).collect()
    }

    /// Control thread: a stream is to go to another worker.
    pub(crate) fn steer(&self, stream: &Shared, worker: usize) {
        stream.worker.store(worker as u32, Ordering::Relaxed);
        self.sets_out(stream);
    }

    fn sets_out(&self, stream: &Shared) {
        if !stream.moving.swap(true, Ordering::AcqRel) {
            self.moving.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A worker: a stream has come to worker `here`, or ends (none). It is on its way no more, unless it is to go elsewhere.
    pub(crate) fn arrived(&self, stream: &Shared, here: Option<usize>) {
        let leaves = || here.is_some_and(|here| stream.worker() != here);
        if leaves() || !stream.moving.swap(false, Ordering::AcqRel) {
            return;
        }
        self.moving.fetch_sub(1, Ordering::Relaxed);
        // It was sent elsewhere meanwhile, by the control thread, which took it to be still on its way.
        if leaves() {
            self.sets_out(stream);
        }
    }

    /// Whether a stream waits to be taken in, or may come from another worker.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.new.is_empty() || self.moving.load(Ordering::Relaxed) > 0
    }
}

/// A lap of packets made ahead.
pub(crate) struct Lap {
    pub(crate) aside: DeferredPackets,
    /// The stream of each packet.
    pub(crate) rows: Vec<u8>,
    pub(crate) at: usize,
    pub(crate) packets: usize,
}

impl Lap {
    pub(crate) fn new(preload: Preload) -> Lap {
        Lap {
            aside: DeferredPackets::with_capacity(preload.packets),
            rows: Vec::with_capacity(preload.packets),
            at: 0,
            packets: preload.packets,
        }
    }
}

/// What a stream is made from.
pub(crate) struct Parts {
    pub(crate) programs: Box<[Program]>,
    pub(crate) pick: Pick,
    pub(crate) values: Box<[Values]>,
    /// All packets, where they are few.
    pub(crate) round: Option<Round>,
    pub(crate) seed: u64,
    pub(crate) rate_pps: Option<u64>,
    pub(crate) limit: Option<u64>,
    pub(crate) max_frame: usize,
    pub(crate) rx: Option<u32>,
    pub(crate) node: Option<NodeId>,
}

impl Parts {
    /// The length of all packets, if it is one and they can be made many at a time.
    fn alike(&self) -> Option<usize> {
        if let Some(round) = &self.round {
            return round.len();
        }
        let [program] = &*self.programs else {
            return None;
        };
        let one = matches!(self.pick, Pick::Only) && program.goes_by_strips(&self.values);
        one.then_some(program.len())
    }
}

/// A stream on its worker.
pub(crate) struct Stream {
    pub(crate) shared: Arc<Shared>,
    parts: Parts,
    random: Random,
    /// Some packets do not fit in one buffer: they are made in `scratch` and copied into chains.
    pub(crate) is_big: bool,
    /// The length of all its packets, where they are made many at a time.
    alike: Option<usize>,
    scratch: Vec<u8>,
    pub(crate) lap: Option<Lap>,
    pub(crate) seen: u32,
    pub(crate) on: bool,
    started_ns: Option<u64>,
    made: u64,
    /// In the vector being made: packets that it may still give, packets and bytes given, where they go.
    pub(crate) quota: usize,
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    pub(crate) target: NodeId,
    pub(crate) is_down: bool,
}

impl Stream {
    pub(crate) fn new(parts: Parts, preload: Option<Preload>) -> Stream {
        let longest = parts.programs.iter().map(Program::len).max().unwrap_or(0);
        Stream {
            shared: Arc::default(),
            random: Random::seed_from_u64(parts.seed),
            is_big: longest > DATA,
            alike: parts.alike().filter(|len| *len <= DATA),
            scratch: vec![0; longest.next_multiple_of(BLOCK)],
            lap: preload.map(Lap::new),
            seen: 0,
            on: false,
            started_ns: None,
            made: 0,
            quota: 0,
            packets: 0,
            bytes: 0,
            target: NodeId(0),
            is_down: false,
            parts,
        }
    }

    /// The interface that its packets count as received on.
    #[inline(always)]
    pub(crate) fn rx(&self) -> Option<u32> {
        self.parts.rx
    }

    /// The node it enters at, if that is not its interface's.
    #[inline(always)]
    pub(crate) fn node(&self) -> Option<NodeId> {
        self.parts.node
    }

    /// Most packets in a vector.
    #[inline(always)]
    pub(crate) fn max_frame(&self) -> usize {
        self.parts.max_frame
    }

    /// Begin with the first packet.
    pub(crate) fn restart(&mut self) {
        self.random = Random::seed_from_u64(self.parts.seed);
        self.parts.pick.reset();
        self.parts.values.iter_mut().for_each(Values::reset);
        self.parts.round.iter_mut().for_each(Round::restart);
        (self.on, self.started_ns, self.made) = (true, None, 0);
        self.shared.sent.store(0, Ordering::Relaxed);
    }

    /// Whether all packets asked for are made.
    #[inline(always)]
    pub(crate) fn is_over(&self) -> bool {
        self.parts.limit.is_some_and(|limit| self.made >= limit)
    }

    /// How many packets it has to give now, at most `most`: packet `i` is due `i + 1` intervals after the first poll.
    #[inline(always)]
    pub(crate) fn due(&mut self, now_ns: u64, most: usize) -> usize {
        let mut due = most.min(self.parts.max_frame) as u64;
        if let Some(limit) = self.parts.limit {
            due = due.min(limit - self.made.min(limit));
        }
        if let Some(rate) = self.parts.rate_pps {
            let started = *self.started_ns.get_or_insert(now_ns);
            let elapsed = u128::from(now_ns.saturating_sub(started));
            let all = (elapsed * u128::from(rate) / 1_000_000_000) as u64;
            due = due.min(all.saturating_sub(self.made));
        }
        due as usize
    }

    /// When the next packet is due; 0 when that is now, or nobody knows.
    pub(crate) fn next_due(&self) -> u64 {
        let (Some(rate), Some(started)) = (self.parts.rate_pps, self.started_ns) else {
            return 0;
        };
        let span = (u128::from(self.made) + 1) * 1_000_000_000 / u128::from(rate.max(1)) + 1;
        started.saturating_add(u64::try_from(span).unwrap_or(u64::MAX))
    }

    /// Make the next packet in `packet`, which is one buffer's data area (for streams that are not big).
    #[inline(always)]
    pub(crate) fn make(&mut self, packet: &mut [u8]) -> usize {
        self.made += 1;
        let parts = &mut self.parts;
        if let Some(round) = &mut parts.round {
            let (from, len) = round.next();
            let to = packet.as_chunks_mut::<BLOCK>().0.iter_mut();
            to.zip(from).for_each(|(to, from)| *to = *from);
            return len;
        }
        let (which, len) = parts.pick.next(&mut self.random);
        parts.programs[which].make(packet, len, &mut parts.values, &mut self.random)
    }

    /// Whether the next packets are all of one length and can be made many at a time: [`Stream::make_alike`].
    #[inline(always)]
    pub(crate) fn alike(&self) -> Option<usize> {
        self.alike
    }

    /// Make the next packets, if [`Stream::alike`].
    #[inline(always)]
    pub(crate) fn make_alike(&mut self, strip: &mut [&mut [u8; DATA]]) {
        let Parts {
            programs,
            values,
            round,
            ..
        } = &mut self.parts;
        self.made += strip.len() as u64;
        if let Some(round) = round {
            for packet in strip.iter_mut() {
                let (from, _) = round.next();
                let to = packet.as_chunks_mut::<BLOCK>().0.iter_mut();
                to.zip(from).for_each(|(to, from)| *to = *from);
            }
        } else if let Some(program) = programs.first() {
            program.make_strip(strip, values, &mut self.random);
        }
    }

    /// Make the next packet, whatever its length.
    pub(crate) fn make_long(&mut self) -> &[u8] {
        let Parts {
            programs,
            pick,
            values,
            round,
            ..
        } = &mut self.parts;
        self.made += 1;
        if let Some(round) = round {
            let (blocks, len) = round.next();
            return &blocks.as_flattened()[..len];
        }
        let (which, len) = pick.next(&mut self.random);
        let program = &programs[which];
        if let Some(bytes) = program.unchanged() {
            return bytes;
        }
        let len = program.make(&mut self.scratch, len, values, &mut self.random);
        &self.scratch[..len]
    }

    /// Pass over the next packet: it is lost before it is made.
    pub(crate) fn skip(&mut self) {
        self.make_long();
    }

    /// Say how many packets were sent (or lost).
    #[inline(always)]
    pub(crate) fn publish(&self, packets: u64) {
        let sent = &self.shared.sent;
        sent.store(sent.load(Ordering::Relaxed) + packets, Ordering::Relaxed);
    }
}
