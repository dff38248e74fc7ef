//! Packet traces: a worker records plain bytes, the control thread converts them into text.

use crate::data::col::Col;
use crate::data::frame::Frame;
use crate::data::ids::NodeId;
use crate::data::lost::panic_text;
use crate::data::offload;
use crate::data::offload::GsoKind;
use crate::data::packet::PacketView;
use crossbeam_queue::ArrayQueue;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use volley_buf::Pool;

/// Names for the text of a trace.
pub trait TraceNames {
    /// The name of a node.
    fn node(&self, node: NodeId) -> String;
    /// The name of a counter and its description.
    fn counter(&self, node: NodeId, counter: usize) -> (String, String);
    /// The name of an interface.
    fn interface(&self, index: u32) -> String;
    /// The name of a kind of super-segments.
    fn gso(&self, kind: GsoKind) -> &'static str;
}

/// The record of a traced packet at a node: plain data, at most 112 bytes.
pub trait Trace: Copy + Send + 'static {
    /// Record the packet as it arrives at the node. Runs on the worker: no formatting here.
    fn note(packet: &PacketView<'_>) -> Self;
    /// The text for the operator. Runs on the control thread.
    fn text(&self, names: &dyn TraceNames) -> String;
}

/// Selects the packets to trace. Called on the worker: no allocation, no locks, no formatting.
pub trait TraceFilter: Send + Sync {
    /// Whether to trace a packet. The `back` bytes in front of its position belong to it: its Ethernet header, where
    /// the position is behind it.
    fn wants(&self, packet: &PacketView<'_>, back: usize) -> bool;
}

/// The maximum size of a node's trace record in bytes.
pub const MAX_TRACE_BYTES: usize = 112;

/// The trace of a node without own data: the first bytes of the packet.
#[derive(Clone, Copy)]
pub struct PacketTrace {
    head: [u8; 80],
    held: u8,
    len: u32,
    rx: u32,
    tx: Option<u32>,
    /// The word of [`Col::OFFLOAD`], and the start of the checksum to complete.
    offload: u32,
    sum: u16,
}

impl PacketTrace {
    /// The recorded bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.head[..self.held as usize]
    }

    /// The length of the packet from its position at the node.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether the packet was empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The start of the checksum to complete, relative to the packet's position at the node.
    pub fn unfinished_checksum(&self) -> Option<usize> {
        offload::is_sum(self.offload).then_some(usize::from(self.sum))
    }

    /// The receive interface.
    pub fn rx(&self) -> u32 {
        self.rx
    }

    /// The transmit interface, where it is known.
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
            tx: packet.get(Col::TX),
            offload: packet.get(Col::OFFLOAD).unwrap_or(0),
            sum: sum.map_or(0, |sum| sum.start),
        }
    }

    fn text(&self, names: &dyn TraceNames) -> String {
        let by = self
            .tx
            .map(|tx| format!(" tx {}", names.interface(tx)))
            .unwrap_or_default();
        let hex: Vec<String> = self.bytes().chunks(4).take(10).map(hex).collect();
        let left = offload::text(self.offload, self.sum, |kind| names.gso(kind));
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

/// A trace record in the queue to the control thread.
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
        // SAFETY: the assertion above checks size and alignment; a `Copy` type needs no drop.
        unsafe { data.as_mut_ptr().cast::<T>().write(trace) };
        let text = |data: &MaybeUninit<[u64; MAX_TRACE_BYTES / 8]>, names: &dyn TraceNames| {
            // SAFETY: this function is stored together with data that `new::<T>` wrote.
            let trace = unsafe { &*data.as_ptr().cast::<T>() };
            // The function may be that of a plugin, and no panic leaves a plugin.
            let text = catch_unwind(AssertUnwindSafe(|| trace.text(names)));
            text.unwrap_or_else(|payload| format!("no text: {}", panic_text(&*payload)))
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

/// A node on the path of a traced packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceStep {
    /// The node.
    pub node: String,
    /// The time on the worker's clock, in nanoseconds.
    pub at_ns: u64,
    /// The text of the node.
    pub text: String,
}

/// A traced packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceReport {
    /// The worker that marked it.
    pub worker: usize,
    /// The number that the worker gave it, from 1.
    pub packet: u32,
    /// The nodes on the packet's path.
    pub steps: Vec<TraceStep>,
}

/// The bits of the packet's number in a mark.
const NUMBER_BITS: u32 = 26;
const NUMBER_MASK: u32 = (1 << NUMBER_BITS) - 1;

/// The worker of a mark, and the packet's number on it.
pub(crate) fn mark_owner(mark: u32) -> (usize, u32) {
    ((mark >> NUMBER_BITS) as usize, mark & NUMBER_MASK)
}

/// The worker's side of tracing.
pub(crate) struct Tracer {
    /// The number of packets still to be marked at each node.
    pub(crate) remaining: Vec<u32>,
    /// The filter of each node; none: all packets.
    pub(crate) filters: Vec<Option<Arc<dyn TraceFilter>>>,
    pub(crate) armed: bool,
    /// The worker that marks the packets, in the highest bits of each mark: other workers may record packets that it
    /// marked.
    owner: u32,
    pub(crate) next: u32,
    pub(crate) notes: Arc<ArrayQueue<TraceRecord>>,
}

impl Tracer {
    /// The queue of records to the control thread.
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

    /// Whether rows of `frame` may have to be marked or recorded at `node`.
    #[inline(always)]
    pub(crate) fn is_relevant(&self, frame: &Frame) -> bool {
        self.armed | frame.has(Col::TRACE)
    }

    /// Mark the first packets that reach a node where traces were started.
    #[cold]
    pub(crate) fn mark(&mut self, node: NodeId, pool: &Pool, frame: &mut Frame) {
        let Some(budget) = self.remaining.get_mut(node.index()).filter(|b| **b > 0) else {
            return;
        };
        let filter = self.filters.get(node.index()).and_then(Option::as_deref);
        frame.make_valid(Col::TRACE, 0);
        for row in 0..frame.n {
            if *budget == 0 {
                break;
            }
            let marked = frame.words(Col::TRACE.at())[row] != 0;
            if marked || filter.is_some_and(|f| !wants(f, &PacketView::new(pool, frame, row))) {
                continue;
            }
            *budget -= 1;
            let n = frame.n;
            frame.cols[Col::TRACE.at()].words_mut(n)[row] = self.owner | self.next;
            self.next = ((self.next + 1) & NUMBER_MASK).max(1);
        }
        self.armed = self.remaining.iter().any(|&b| b > 0);
    }
}

/// At a transmit interface a packet's position is at its new Ethernet header; elsewhere it may be behind the Ethernet
/// header of the receive interface.
fn wants(filter: &dyn TraceFilter, packet: &PacketView<'_>) -> bool {
    let leaves = packet.get(Col::TX).is_some();
    filter.wants(packet, if leaves { 0 } else { packet.moved() })
}
