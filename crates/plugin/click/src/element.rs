//! What an element is for the nodes that run it.

use crate::cells::Cells;
use crate::fast::ETHERNET;
pub use crate::fast::Fast;
use crate::link::Link;
use crate::pace::Pace;
use crate::turn::TurnKind;
use std::any::Any;
use std::ops::RangeInclusive;
use std::sync::Arc;
use volley_graph::{Guard, Packet, Rows, counters};
use volley_pcap::spool::CaptureWriter;
use volley_tables::Publisher;
use volley_tables::qsbr::Snap;

counters! {
    /// Why elements drop packets.
    pub enum Reason {
        /// packets that no output of the element is for
        Unmatched = "unmatched" (Error),
        /// packets that are too short for the headers or the bytes that the element reads
        TooShort = "too-short" (Error),
        /// packets whose IP header is wrong
        BadHeader = "bad-header" (Error),
        /// packets whose checksum is wrong
        BadChecksum = "bad-checksum" (Error),
        /// packets without the mark of an IP header: put CheckIPHeader or MarkIPHeader in front of the element
        NoIpHeader = "no-ip-header" (Error),
        /// packets whose source address is no address of a host
        BadSource = "bad-source" (Error),
        /// packets whose IP options are wrong
        BadOptions = "bad-options" (Error),
        /// packets whose TTL has expired
        TtlExpired = "ttl-expired" (Error),
        /// packets without a route
        NoRoute = "no-route" (Error),
        /// packets that are longer than the MTU and must not be fragmented
        MustFragment = "must-fragment" (Error),
        /// packets for which a queue has no room
        QueueFull = "queue-full" (Error),
        /// packets for which no ICMP error may be sent
        NoError = "no-error" (Error),
        /// packets that wait for the answer to an ARP query for too long, or for which there is no room
        Unresolved = "unresolved" (Error),
        /// packets that the rules of the element refuse
        Refused = "refused" (Error),
        /// packets for which no buffer was free
        NoBuffer = "no-buffer" (Error),
        /// packets whose position cannot move as far as the element is to move it
        NoRoom = "no-room" (Error),
    }
}

/// What happens to a packet: an output, and the reason to drop the packet if that output is not connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict(pub(crate) u32);

const NOWHERE: u32 = 0xffff;

impl Verdict {
    /// Send the packet to an output.
    #[inline]
    pub const fn port(port: usize) -> Verdict {
        Verdict::port_or(port, Reason::Unmatched)
    }

    /// Send the packet to an output, or drop it where that is not connected.
    #[inline]
    pub const fn port_or(port: usize, reason: Reason) -> Verdict {
        let port = if port < NOWHERE as usize {
            port as u32
        } else {
            NOWHERE
        };
        Verdict(port | (reason as u32) << 16)
    }

    /// Drop the packet.
    #[inline]
    pub const fn drop(reason: Reason) -> Verdict {
        Verdict(NOWHERE | (reason as u32) << 16)
    }

    /// The output among `outputs`, or the reason.
    #[inline]
    pub(crate) fn resolve(self, outputs: usize) -> Result<usize, u32> {
        let port = (self.0 & 0xffff) as usize;
        match port < outputs {
            true => Ok(port),
            false => Err(self.0 >> 16),
        }
    }
}

/// An element that sends every packet to one output, or drops it.
pub trait Each: Send {
    /// What the element does to a whole vector; it must be what [`Each::packet`] does to each packet.
    fn fast(&self) -> Fast {
        Fast::None
    }

    /// Handle a packet. `now_ns` is the time of the round.
    fn packet(&mut self, packet: &mut Packet<'_>, now_ns: u64) -> Verdict;

    /// Handle the packets of a vector: the verdicts replace the words of `verdicts`.
    fn run(&mut self, rows: &mut Rows<'_>, verdicts: &mut [u32], now_ns: u64, _: Guard<'_>) {
        for (row, verdict) in verdicts.iter_mut().enumerate().take(rows.len()) {
            *verdict = self.packet(&mut rows.packet(row), now_ns).0;
        }
    }
}

/// Passes all packets. An element between a queue and its reader passes what the queue in front lets out, by the element's [`Pace`].
#[derive(Clone)]
pub(crate) struct Pass;

impl Each for Pass {
    fn fast(&self) -> Fast {
        Fast::Pass
    }

    fn packet(&mut self, _: &mut Packet<'_>, _: u64) -> Verdict {
        Verdict::port(0)
    }
}

/// Where an element that makes packets puts them.
pub trait Emit {
    /// Make a packet of `len` bytes (at most 2,048) with the annotations of `like` for an output; `fill` gets its bytes. The
    /// network header is `net` bytes behind its start. Returns false when no buffer is free or the output is not connected.
    fn build(
        &mut self,
        like: &mut Packet<'_>,
        port: usize,
        len_and_net: (usize, usize),
        fill: &mut dyn FnMut(&mut [u8]),
    ) -> bool;

    /// Make a copy of a packet for an output. Returns false as [`Emit::build`] does.
    fn copy(&mut self, packet: &mut Packet<'_>, port: usize) -> bool;

    /// Count packets that the element held, and that it drops without their buffers.
    fn lose(&mut self, reason: Reason, packets: u64);
}

/// What an element that makes packets does with the packet that it got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketAction {
    /// Send or drop the packet.
    Go(Verdict),
    /// Free the packet: others replace it.
    Replaced,
}

/// An element that makes packets from a packet.
pub trait Build: Send {
    /// What the element does to a whole vector; it must be what [`Build::packet`] does to each packet.
    fn fast(&self) -> Fast {
        Fast::None
    }

    /// With [`Fast::Resolve`]: the Ethernet header for packets to a next hop, if it is known.
    fn header(&self, _next_hop: u32, _now_ns: u64) -> Option<[u8; ETHERNET]> {
        None
    }

    /// Handle a packet. Packets arrive at an output in the order in which they are made and sent.
    fn packet(&mut self, packet: &mut Packet<'_>, to: &mut dyn Emit, now_ns: u64) -> PacketAction;
}

/// An element that makes packets from nothing.
pub trait Generate: Send {
    /// The number of packets to make now, at most `most`.
    fn due(&mut self, now_ns: u64, most: usize, guard: Guard<'_>) -> usize;
    /// The bytes of all packets of a round, where they are equal.
    fn alike(&self) -> Option<&[u8]> {
        None
    }
    /// The destination of the packets, if they begin with an IP header: both are noted.
    fn destination(&self) -> Option<u32> {
        None
    }
    /// The bytes of the next packet.
    fn next(&mut self) -> &[u8];
    /// So many packets were made; fewer than due if buffers are missing.
    fn made(&mut self, count: usize);
    /// Whether the element will make no packet until a handler is written.
    fn is_idle(&self) -> bool;
}

/// What a graph writes: its files and its lines.
pub type Written = Vec<Arc<CaptureWriter>>;

/// Whether what the graph writes has room: elements that read files wait for it, so that no packet is lost.
#[derive(Clone)]
pub struct Room(Snap<Written>);

/// Free records that elements which read files leave for others.
const SPARE: usize = 1024;

impl Room {
    /// For what is published.
    pub(crate) fn new(written: Snap<Written>) -> Room {
        Room(written)
    }

    /// Whether there is room for some vectors everywhere.
    pub fn is_free(&self, guard: Guard<'_>) -> bool {
        let mut all = self.0.read(guard).iter();
        all.all(|it| it.room() >= SPARE)
    }
}

/// Factory of one instance per worker.
pub type Maker<T> = Box<dyn Fn() -> Box<T>>;

/// An element as nodes run it.
pub enum Element {
    /// See [`Each`].
    Each(Maker<dyn Each>),
    /// See [`Build`].
    Build(Maker<dyn Build>),
    /// As [`Element::Each`], but all packets end here.
    End(Maker<dyn Each>),
    /// See [`Generate`].
    Source(Maker<dyn Generate>),
    /// A source, and what gets the packets of its input, where that is connected.
    Echo {
        /// See [`Generate`].
        source: Maker<dyn Generate>,
        /// All packets end here.
        replies: Maker<dyn Each>,
    },
    /// A queue of this many packets.
    Queue(usize),
    /// Packets on their way over a link.
    Link(Arc<Link>),
    /// Packets of this interface enter the graph here.
    FromDevice(u32),
    /// Packets leave by this interface.
    ToDevice(u32),
    /// Frames go to the nodes of the router.
    ToHost,
    /// An element without packets.
    Nothing,
}

/// What waits for the control thread.
#[derive(Clone)]
pub enum ControlOutput {
    /// Packets for a file.
    Dump(Arc<CaptureWriter>, std::path::PathBuf),
    /// Packets to be printed.
    Print(Arc<CaptureWriter>, crate::print::Style),
}

impl ControlOutput {
    /// The packets that wait.
    pub fn spool(&self) -> &Arc<CaptureWriter> {
        match self {
            ControlOutput::Dump(spool, _) | ControlOutput::Print(spool, _) => spool,
        }
    }
}

/// Queues, for an element that reads their lengths.
#[derive(Clone, Default)]
pub struct Queues {
    /// Cells of the queues.
    pub(crate) cells: Vec<Arc<Cells>>,
    /// The element is behind the queues.
    pub(crate) is_pull: bool,
}

/// An element reads the lengths of queues.
pub struct Watch {
    /// What the element reads.
    pub queues: Publisher<Queues>,
    /// Names of the queues; none: those next to it.
    pub named: Vec<String>,
}

/// An element with what belongs to it.
pub struct Made {
    /// What runs it.
    pub element: Element,
    /// The numbers of outputs, where the arguments decide them.
    pub outputs: Option<RangeInclusive<usize>>,
    /// The number of inputs, where the arguments decide it.
    pub inputs: Option<usize>,
    /// How fast the element lets packets out of the queue in front of it.
    pub pace: Option<Pace>,
    /// How the queues behind the inputs take turns.
    pub turn: Option<TurnKind>,
    /// The queues whose lengths the element reads.
    pub watch: Option<Watch>,
    /// What the control thread writes.
    pub to_control: Option<ControlOutput>,
    /// Texts of further handlers that can be read.
    pub texts: Vec<(&'static str, String)>,
    /// The element asks the program to end: it sets its cell of this number to 1.
    pub stop_cell: Option<usize>,
    /// What lives as long as the element.
    pub kept: Option<Box<dyn Any>>,
}

impl Made {
    /// An element without more.
    pub fn new(element: Element) -> Made {
        Made {
            element,
            outputs: None,
            inputs: None,
            pace: None,
            turn: None,
            watch: None,
            to_control: None,
            texts: Vec::new(),
            stop_cell: None,
            kept: None,
        }
    }

    /// An [`Each`] that is cloned for every worker.
    pub fn each<T: Each + Clone + 'static>(element: T) -> Made {
        Made::new(Element::Each(Box::new(move || Box::new(element.clone()))))
    }

    /// A [`Build`] that is cloned for every worker.
    pub fn build<T: Build + Clone + 'static>(element: T) -> Made {
        Made::new(Element::Build(Box::new(move || Box::new(element.clone()))))
    }

    /// An [`Each`] at which packets end, cloned for every worker.
    pub fn end<T: Each + Clone + 'static>(element: T) -> Made {
        Made::new(Element::End(Box::new(move || Box::new(element.clone()))))
    }

    /// A [`Generate`] that is cloned for every worker.
    pub fn source<T: Generate + Clone + 'static>(element: T) -> Made {
        Made::new(Element::Source(Box::new(move || Box::new(element.clone()))))
    }

    /// The same with this number of outputs.
    pub fn outputs(mut self, outputs: usize) -> Made {
        self.outputs = Some(outputs..=outputs);
        self
    }

    /// The same with this number of outputs or more.
    pub fn outputs_from(mut self, outputs: usize) -> Made {
        self.outputs = Some(outputs..=1024);
        self
    }
}
