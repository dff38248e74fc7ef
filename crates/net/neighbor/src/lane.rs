//! Bounded lock-free queues between one worker and the control thread. If a queue is full, the sender drops the new message and
//! counts it; no thread blocks.

use crate::entry::Mac;
use crate::table::Key;
use crossbeam_queue::ArrayQueue;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use volley_graph::{HeldPacket, Share};
use volley_model::Family;
use volley_router_discovery::ReceivedAdvert;
use volley_router_discovery::nd::{FRAME, LONG};

/// Most packets of one worker that wait for resolution, for all neighbours together.
pub const HELD: usize = 512;
/// Capacity for messages from a worker, requests excluded.
const HEARD: usize = 1024;
/// Capacity for requests: any host can send them, so they have a separate, smaller queue.
const ASKED: usize = 256;
/// Capacity for router advertisements.
const ADVERTS: usize = 32;
/// Capacity for requests and answers of arping.
const PROBES: usize = 256;
/// Capacity for frames from the control thread to the worker.
const FRAMES: usize = 1024;
/// Capacity for long frames to the worker.
const LONGS: usize = 32;

/// A packet whose next hop's MAC address is not known.
pub struct HeldForResolution {
    /// Interface and address of the next hop.
    pub key: Key,
    /// IP version of the packet.
    pub family: Family,
    /// Whether a route names the next hop: then the packet's sender did not choose the address.
    pub is_next_hop: bool,
    /// The packet.
    pub packet: HeldPacket,
}

/// Type of a message from a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeighborMessageKind {
    /// A request for an address of this router.
    Question,
    /// An answer to a request of this router.
    Answer,
    /// A gratuitous announcement.
    Announcement,
    /// A neighbour advertisement with its flags; an all-zero MAC address means that the message has none.
    Advertisement {
        /// Solicited flag: the message answers a request.
        solicited: bool,
        /// Override flag: the MAC address replaces a known one.
        overrides: bool,
    },
    /// The sender claims an address of this router.
    Conflict,
    /// The sender claims a tentative address of this router, or probes for it.
    Claim,
    /// The sender uses the MAC address of the receiving interface.
    OwnMac,
    /// A router solicitation; an all-zero MAC address means that the message has none.
    Routers,
}

/// A received ARP or ND message, as a worker reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeighborMessage {
    /// The receiving interface.
    pub rx: u32,
    /// The address that the message is about.
    pub addr: IpAddr,
    /// MAC address of the sender.
    pub mac: Mac,
    /// Type of the message.
    pub what: NeighborMessageKind,
}

/// A sent request or a received answer of arping, with its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeMessage {
    /// Nanoseconds on the workers' clock.
    pub at: u64,
    /// The event.
    pub event: ProbeEvent,
}

/// An event of a run of arping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeEvent {
    /// The worker sent the request.
    Sent {
        /// The run.
        id: u16,
        /// The request, from 0.
        number: u32,
    },
    /// A host answered.
    Answer {
        /// The interface that received it.
        rx: u32,
        /// The address.
        addr: IpAddr,
        /// MAC address of the host.
        mac: Mac,
    },
}

/// What happens to a packet that waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The packet is looked up again: the MAC address is known.
    Resumed,
    /// The packet is sent on its neighbour's interface to the known MAC address: no lookup finds a link-local address.
    OnLink {
        /// The interface.
        tx: u32,
        /// The MAC address of the interface.
        from: Mac,
        /// The MAC address of the neighbour.
        to: Mac,
    },
    /// No neighbour answered: the packet is dropped, and its sender receives an ICMP error.
    Lost,
    /// The packet is dropped in favour of a newer one.
    Evicted,
}

/// A packet that the control thread returns to the graph.
pub struct ResolvedPacket {
    /// IP version of the packet.
    pub family: Family,
    /// What happens to the packet.
    pub end: End,
    /// The packet.
    pub packet: HeldPacket,
}

/// A frame that a worker is to send.
pub struct Frame<const ROOM: usize = FRAME> {
    /// The interface to send on.
    pub tx: u32,
    /// Number of valid bytes.
    pub len: usize,
    /// The frame.
    pub bytes: [u8; ROOM],
    /// The run of arping that needs the send time, and the number of the request.
    pub probe: Option<(u16, u32)>,
}

impl<const ROOM: usize> Frame<ROOM> {
    /// A frame of these bytes, truncated to the capacity.
    pub fn new(tx: u32, from: &[u8]) -> Self {
        let (mut bytes, len) = ([0; ROOM], from.len().min(ROOM));
        bytes[..len].copy_from_slice(&from[..len]);
        let probe = None;
        Frame {
            tx,
            len,
            bytes,
            probe,
        }
    }
}

/// The queues of one worker.
pub struct ControlQueues {
    /// To the control thread: packets that wait.
    pub waiting_packets: ArrayQueue<HeldForResolution>,
    /// To the control thread: received messages, requests excluded.
    pub received_messages: ArrayQueue<NeighborMessage>,
    /// To the control thread: received requests.
    pub received_requests: ArrayQueue<NeighborMessage>,
    /// To the control thread: received router advertisements, with the interface.
    pub adverts: ArrayQueue<(u32, ReceivedAdvert)>,
    /// To the control thread: events of runs of arping.
    pub probe_messages: ArrayQueue<ProbeMessage>,
    /// Whether a run of arping waits for answers.
    probed: AtomicBool,
    /// To the worker: packets that have waited.
    pub resolved_packets: ArrayQueue<ResolvedPacket>,
    /// To the worker: frames to send.
    pub frames: ArrayQueue<Frame>,
    /// To the worker: long frames to send.
    pub large_frames: ArrayQueue<Frame<LONG>>,
    /// Number of buffers outside the graph. Only the worker writes it.
    away: AtomicUsize,
    /// Number of packets outside the graph. Only the worker writes it.
    packets: AtomicUsize,
    /// The part of the buffers that waiting packets may use.
    share: Arc<Share>,
    worker: usize,
}

impl ControlQueues {
    /// The queues of worker `worker`; `share` limits the buffers of its waiting packets.
    pub fn new(share: Arc<Share>, worker: usize) -> Self {
        ControlQueues {
            packets: AtomicUsize::new(0),
            share,
            worker,
            waiting_packets: ArrayQueue::new(HELD),
            received_messages: ArrayQueue::new(HEARD),
            received_requests: ArrayQueue::new(ASKED),
            adverts: ArrayQueue::new(ADVERTS),
            probe_messages: ArrayQueue::new(PROBES),
            probed: AtomicBool::new(false),
            resolved_packets: ArrayQueue::new(HELD),
            frames: ArrayQueue::new(FRAMES),
            large_frames: ArrayQueue::new(LONGS),
            away: AtomicUsize::new(0),
        }
    }

    /// Worker: sends a message to the control thread; false if the queue is full.
    pub fn tell(&self, heard: NeighborMessage) -> bool {
        let queue = match heard.what {
            NeighborMessageKind::Question
            | NeighborMessageKind::Routers
            | NeighborMessageKind::OwnMac => &self.received_requests,
            NeighborMessageKind::Claim
            | NeighborMessageKind::Answer
            | NeighborMessageKind::Announcement
            | NeighborMessageKind::Advertisement { .. }
            | NeighborMessageKind::Conflict => &self.received_messages,
        };
        queue.push(heard).is_ok()
    }

    /// Worker: whether a run of arping waits for answers.
    pub fn is_probed(&self) -> bool {
        self.probed.load(Relaxed)
    }

    /// Control thread: sets whether a run of arping waits for answers.
    pub fn set_probed(&self, probed: bool) {
        self.probed.store(probed, Relaxed);
    }

    /// Worker: whether one more packet of `buffers` buffers may wait. If so, both queues that it passes have a free slot.
    pub fn has_room(&self, buffers: usize) -> bool {
        let may = self.packets.load(Relaxed) < HELD
            && self.away.load(Relaxed) + buffers <= self.share.each();
        self.share.count_refused(self.worker, u64::from(!may));
        may
    }

    /// Buffers that packets to untrusted neighbours may use: the rest is for neighbours that are known or named by a route.
    pub fn for_untrusted(&self) -> usize {
        self.share.each().min(HELD) * 3 / 4
    }

    /// Worker: a packet of `buffers` buffers leaves the graph.
    pub fn leave(&self, buffers: usize) {
        let now = self.away.load(Relaxed) + buffers;
        self.set_away(now, self.packets.load(Relaxed) + 1);
    }

    /// Worker: `packets` packets of `buffers` buffers return to the graph; `evicted` of them are dropped in favour of newer
    /// ones.
    pub fn come_back(&self, packets: usize, buffers: usize, evicted: u64) {
        let now = self.away.load(Relaxed).saturating_sub(buffers);
        self.set_away(now, self.packets.load(Relaxed).saturating_sub(packets));
        self.share.count_evicted(self.worker, evicted);
    }

    fn set_away(&self, buffers: usize, packets: usize) {
        self.away.store(buffers, Relaxed);
        self.packets.store(packets, Relaxed);
        self.share.set_held(self.worker, buffers);
    }

    /// Buffers outside the graph.
    pub fn away(&self) -> usize {
        self.away.load(Relaxed)
    }

    /// Whether frames or packets are queued for the worker.
    pub fn is_waiting(&self) -> bool {
        !(self.resolved_packets.is_empty()
            && self.frames.is_empty()
            && self.large_frames.is_empty())
    }
}

#[cfg(test)]
impl Default for ControlQueues {
    /// For a single worker with 1024 buffers.
    fn default() -> Self {
        use volley_graph::{Domain, Engine, Settings, buf::Pool};
        let pool = Pool::new(16_384).unwrap();
        let mut engine = Engine::new(Settings::default(), pool, Domain::new()).unwrap();
        ControlQueues::new(engine.add_share("neighbors", 1).unwrap(), 0)
    }
}
