//! Packet traces: a worker notes plain bytes, the control thread makes them text.

use crate::context::RawCx;
use crate::dispatch::DispatchState;
use crate::frame::{Col, Frame};
use crate::{NodeId, PacketView};
use crossbeam_queue::ArrayQueue;
use std::mem::MaybeUninit;
use std::sync::Arc;
use volley_buf::Pool;

/// Names that a trace's text may need.
pub trait TraceNames {
    /// A node's name.
    fn node(&self, node: NodeId) -> String;
    /// A counter's name and its sentence.
    fn counter(&self, node: NodeId, counter: usize) -> (String, String);
    /// An interface's name.
    fn interface(&self, index: u32) -> String;
}

/// What a traced packet leaves behind at a node: plain data, at most 112 bytes.
pub trait Trace: Copy + Send + 'static {
    /// Note the packet as it arrives at the node. Runs on the worker: no formatting here.
    fn note(packet: &PacketView<'_>) -> Self;
    /// The text an operator reads. Runs on the control thread.
    fn text(&self, names: &dyn TraceNames) -> String;
}

/// Which packets are worth a trace. Called on the worker: no allocation, no locks, no formatting.
pub trait TraceFilter: Send + Sync {
    /// Whether to trace a packet; `back` bytes in front of its position belong to it (its Ethernet header, where the
    /// position is behind it).
    fn wants(&self, packet: &PacketView<'_>, back: usize) -> bool;
}

/// Bytes that a node's trace may take.
pub const MAX_TRACE_BYTES: usize = 112;

/// The trace of a node that has nothing special to say: the packet's first bytes.
#[derive(Clone, Copy)]
pub struct PacketTrace {
    head: [u8; 80],
    held: u8,
    len: u32,
    rx: u32,
    tx: Option<u32>,
    /// The word of [`Col::Offload`], and where a checksum to be finished begins.
    offload: u32,
    sum: u16,
}

impl PacketTrace {
    /// The bytes that were noted.
    pub fn bytes(&self) -> &[u8] {
        &self.head[..self.held as usize]
    }

    /// Length of the packet from its position at the node.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether the packet was empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Where, from the packet's position at the node, a checksum began that was still to be finished.
    pub fn unfinished_checksum(&self) -> Option<usize> {
        crate::offload::is_sum(self.offload).then_some(usize::from(self.sum))
    }

    /// Interface that it came in by.
    pub fn rx(&self) -> u32 {
        self.rx
    }

    /// Interface that it leaves by, where that is known.
    pub fn tx(&self) -> Option<u32> {
        self.tx
    }
}

impl Trace for PacketTrace {
    fn note(packet: &PacketView<'_>) -> Self {
        let bytes = packet.bytes();
        let held = bytes.len().min(80);
        let mut head = [0; 80];
        head[..held].copy_from_slice(&bytes[..held]);
        let sum = packet.offload().checksum;
        PacketTrace {
            head,
            held: held as u8,
            len: packet.len() as u32,
            rx: packet.rx(),
            tx: packet.get(Col::Tx),
            offload: packet.get(Col::Offload).unwrap_or(0),
            sum: sum.map_or(0, |sum| sum.start),
        }
    }

    fn text(&self, names: &dyn TraceNames) -> String {
        let by = self
            .tx
            .map(|tx| format!(" tx {}", names.interface(tx)))
            .unwrap_or_default();
        let hex: Vec<String> = self.bytes().chunks(4).take(10).map(hex).collect();
        let left = crate::offload::text(self.offload, self.sum);
        format!(
            "{} bytes, rx {}{by}{left}\n{}",
            self.len,
            names.interface(self.rx),
            hex.join(" ")
        )
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// A trace note on its way to the control thread.
pub(crate) struct TraceRecord {
    pub(crate) packet: u32,
    pub(crate) node: NodeId,
    pub(crate) at_ns: u64,
    data: MaybeUninit<[u64; MAX_TRACE_BYTES / 8]>,
    text: fn(&MaybeUninit<[u64; MAX_TRACE_BYTES / 8]>, &dyn TraceNames) -> String,
}

impl TraceRecord {
    pub(crate) fn new<T: Trace>(packet: u32, node: NodeId, at_ns: u64, trace: T) -> Self {
        const { assert!(size_of::<T>() <= MAX_TRACE_BYTES && align_of::<T>() <= 8) };
        let mut data = MaybeUninit::<[u64; MAX_TRACE_BYTES / 8]>::uninit();
        // SAFETY: the assertion above makes room and alignment certain; `Copy` means that nothing needs dropping.
        unsafe { data.as_mut_ptr().cast::<T>().write(trace) };
        let text = |data: &MaybeUninit<[u64; MAX_TRACE_BYTES / 8]>, names: &dyn TraceNames| {
            // SAFETY: this function is stored together with data that `new::<T>` wrote.
            unsafe { &*data.as_ptr().cast::<T>() }.text(names)
        };
        TraceRecord {
            packet,
            node,
            at_ns,
            data,
            text,
        }
    }

    pub(crate) fn step(&self, names: &dyn TraceNames) -> TraceStep {
        TraceStep {
            node: names.node(self.node),
            at_ns: self.at_ns,
            text: (self.text)(&self.data, names),
        }
    }
}

/// One node on a traced packet's way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceStep {
    /// The node.
    pub node: String,
    /// Nanoseconds on the worker's clock.
    pub at_ns: u64,
    /// What the node has to say.
    pub text: String,
}

/// One traced packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceReport {
    /// The worker that saw it.
    pub worker: usize,
    /// The number that the worker gave it, from 1.
    pub packet: u32,
    /// Its way through the graph.
    pub steps: Vec<TraceStep>,
}

/// Bits of a traced packet's mark that number it.
const NUMBER_BITS: u32 = 26;
const NUMBER_MASK: u32 = (1 << NUMBER_BITS) - 1;

/// The worker that gave a mark, and the packet's number there.
pub(crate) fn mark_owner(mark: u32) -> (usize, u32) {
    ((mark >> NUMBER_BITS) as usize, mark & NUMBER_MASK)
}

/// The worker's side of tracing.
pub(crate) struct Tracer {
    /// Packets still to be marked at each node.
    pub(crate) remaining: Vec<u32>,
    /// Which packets are marked there; none: all.
    pub(crate) filters: Vec<Option<Arc<dyn TraceFilter>>>,
    pub(crate) armed: bool,
    /// The worker that gives the numbers, in the highest bits of each: others may note packets that it marked.
    owner: u32,
    pub(crate) next: u32,
    pub(crate) notes: Arc<ArrayQueue<TraceRecord>>,
}

impl Tracer {
    /// The way of notes to the control thread.
    pub(crate) fn notes() -> Arc<ArrayQueue<TraceRecord>> {
        Arc::new(ArrayQueue::new(4096))
    }

    pub(crate) fn new(nodes: usize, worker: usize, notes: Arc<ArrayQueue<TraceRecord>>) -> Self {
        Tracer {
            remaining: vec![0; nodes],
            filters: vec![None; nodes],
            armed: false,
            owner: (worker as u32) << NUMBER_BITS,
            next: 1,
            notes,
        }
    }

    /// Whether rows of `frame` may have to be marked or noted at `node`.
    #[inline(always)]
    pub(crate) fn is_relevant(&self, frame: &Frame) -> bool {
        self.armed | frame.has(Col::Trace)
    }

    /// Give numbers to the first packets that reach a node which was asked to start traces.
    #[cold]
    pub(crate) fn mark(&mut self, node: NodeId, pool: &Pool, frame: &mut Frame) {
        let Some(budget) = self.remaining.get_mut(node.index()).filter(|b| **b > 0) else {
            return;
        };
        let filter = self.filters.get(node.index()).and_then(Option::as_deref);
        frame.make_valid(Col::Trace, 0);
        for row in 0..frame.n {
            if *budget == 0 {
                break;
            }
            let marked = frame.words(Col::Trace as usize)[row] != 0;
            if marked || filter.is_some_and(|f| !wants(f, &PacketView::new(pool, frame, row))) {
                continue;
            }
            *budget -= 1;
            let n = frame.n;
            frame.cols[Col::Trace as usize].words_mut(n)[row] = self.owner | self.next;
            self.next = ((self.next + 1) & NUMBER_MASK).max(1);
        }
        self.armed = self.remaining.iter().any(|&b| b > 0);
    }
}

/// Where a packet leaves by an interface it stands at the Ethernet header it leaves with; anywhere else it may stand
/// behind the one it came with.
fn wants(filter: &dyn TraceFilter, packet: &PacketView<'_>) -> bool {
    let leaves = packet.get(Col::Tx).is_some();
    filter.wants(packet, if leaves { 0 } else { packet.moved() })
}

/// Note every marked row of `frame`; a full queue loses notes, never packets.
#[cold]
pub(crate) fn note_rows<T: Trace>(dispatch: &DispatchState, cx: &RawCx<'_>, frame: &Frame) {
    if !frame.has(Col::Trace) {
        return;
    }
    for row in 0..frame.n {
        let packet = frame.words(Col::Trace as usize)[row];
        if packet != 0 {
            let view = PacketView::new(dispatch.bufs.pool(), frame, row);
            let _ = dispatch.tracer.notes.push(TraceRecord::new(
                packet,
                cx.node,
                cx.now_ns,
                T::note(&view),
            ));
        }
    }
}
