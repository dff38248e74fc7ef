//! A stream on its worker, and the state that it shares with the control thread.

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

/// The maximum number of streams on one worker.
pub const MAX_STREAMS: usize = 256;

/// Preloading: packets are made in advance, so that a measurement behind the source finds buffers that were not accessed for
/// some time. `packets` buffers are filled, then sent vector by vector without access; then the next lap is filled. When one
/// stream of a worker is preloaded, all enabled streams of the worker are, interleaved, with the longest lap. With fewer free
/// buffers the lap is shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preload {
    /// Packets of one lap.
    pub packets: usize,
}

/// The commands of the control thread, in the low bits of a command word; the other bits count commands.
pub(crate) const OFF: u32 = 0;
pub(crate) const ON: u32 = 1;
pub(crate) const GONE: u32 = 2;

/// The state of a stream that both threads access.
#[derive(Default)]
pub(crate) struct Shared {
    /// Written by the control thread.
    pub(crate) command: AtomicU32,
    /// The last completed command, after every packet was processed; written by the worker.
    pub(crate) done: AtomicU32,
    /// Packets made since the stream was enabled, including lost ones.
    pub(crate) sent: AtomicU64,
    /// The assigned worker; written by the control thread.
    pub(crate) worker: AtomicU32,
    /// Whether the stream is counted as moving to another worker.
    moving: AtomicBool,
}

impl Shared {
    /// The assigned worker.
    #[inline(always)]
    pub(crate) fn worker(&self) -> usize {
        self.worker.load(Ordering::Relaxed) as usize
    }

    /// Whether the stream stays on `worker`, which has carried out every command (the last one is `seen`).
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
        // A stream with a command to stop is enabled until it has stopped.
        command != self.done.load(Ordering::Acquire)
    }

    /// Whether the last command is to send, and it is not completed.
    pub(crate) fn is_wanted(&self) -> bool {
        self.command.load(Ordering::Relaxed) & 3 == ON && self.is_enabled()
    }
}

/// The queues by which streams are passed to a worker and returned.
pub(crate) struct Inbox {
    pub(crate) new: ArrayQueue<Box<Stream>>,
    pub(crate) gone: ArrayQueue<Box<Stream>>,
    /// The number of streams that move from one worker to another, shared by all workers.
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

    /// Control thread: assign a stream to another worker.
    pub(crate) fn steer(&self, stream: &Shared, worker: usize) {
        stream.worker.store(worker as u32, Ordering::Relaxed);
        self.sets_out(stream);
    }

    fn sets_out(&self, stream: &Shared) {
        if !stream.moving.swap(true, Ordering::AcqRel) {
            self.moving.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Worker: a stream has arrived at worker `here`, or ends (none). It is not moving any more unless it is assigned
    /// elsewhere.
    pub(crate) fn arrived(&self, stream: &Shared, here: Option<usize>) {
        let leaves = || here.is_some_and(|here| stream.worker() != here);
        if leaves() || !stream.moving.swap(false, Ordering::AcqRel) {
            return;
        }
        self.moving.fetch_sub(1, Ordering::Relaxed);
        // The control thread assigned it elsewhere meanwhile, while it was still counted as moving.
        if leaves() {
            self.sets_out(stream);
        }
    }

    /// Whether a new stream is in the queue, or may come from another worker.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.new.is_empty() || self.moving.load(Ordering::Relaxed) > 0
    }
}

/// A lap of preloaded packets.
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

/// The parts of a stream.
pub(crate) struct Parts {
    pub(crate) programs: Box<[Program]>,
    pub(crate) pick: Pick,
    pub(crate) values: Box<[Values]>,
    /// All packets, if the stream repeats after a few.
    pub(crate) round: Option<Round>,
    pub(crate) seed: u64,
    pub(crate) rate_pps: Option<u64>,
    pub(crate) limit: Option<u64>,
    pub(crate) max_frame: usize,
    pub(crate) rx: Option<u32>,
    pub(crate) node: Option<NodeId>,
}

impl Parts {
    /// The length of all packets, if it is the same and they can be made in strips.
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
    /// Whether some packets do not fit in one buffer: they are made in `scratch` and copied into chains.
    pub(crate) is_big: bool,
    /// The length of all packets, if they are made in strips.
    alike: Option<usize>,
    scratch: Vec<u8>,
    /// In a box, because each call of `pg-input` moves it out and back.
    pub(crate) lap: Option<Box<Lap>>,
    pub(crate) seen: u32,
    pub(crate) on: bool,
    started_ns: Option<u64>,
    made: u64,
    /// For the current vector: the packets that are still due, the packets and bytes made, and their first node.
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
            lap: preload.map(|ahead| Box::new(Lap::new(ahead))),
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

    /// The receive interface of its packets.
    #[inline(always)]
    pub(crate) fn rx(&self) -> Option<u32> {
        self.parts.rx
    }

    /// The first node of its packets, unless it is that of its interface.
    #[inline(always)]
    pub(crate) fn node(&self) -> Option<NodeId> {
        self.parts.node
    }

    /// The maximum number of packets of a vector.
    #[inline(always)]
    pub(crate) fn max_frame(&self) -> usize {
        self.parts.max_frame
    }

    /// Start with the first packet.
    pub(crate) fn restart(&mut self) {
        self.random = Random::seed_from_u64(self.parts.seed);
        self.parts.pick.reset();
        self.parts.values.iter_mut().for_each(Values::reset);
        self.parts.round.iter_mut().for_each(Round::restart);
        (self.on, self.started_ns, self.made) = (true, None, 0);
        self.shared.sent.store(0, Ordering::Relaxed);
    }

    /// Whether the requested number of packets is reached.
    #[inline(always)]
    pub(crate) fn is_over(&self) -> bool {
        self.parts.limit.is_some_and(|limit| self.made >= limit)
    }

    /// The number of packets that are due now, at most `most`: packet `i` is due `i + 1` intervals after the first poll.
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

    /// The time at which the next packet is due; 0 when that is now, or unknown.
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

    /// The length of the next packets, if it is the same and they can be made in strips: [`Stream::make_alike`].
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

    /// Make the next packet, of any length.
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

    /// Skip the next packet, which is lost before it is made.
    pub(crate) fn skip(&mut self) {
        self.make_long();
    }

    /// Add to the number of packets sent (or lost).
    #[inline(always)]
    pub(crate) fn publish(&self, packets: u64) {
        let sent = &self.shared.sent;
        sent.store(sent.load(Ordering::Relaxed) + packets, Ordering::Relaxed);
    }
}
