//! What lies between one worker and the control thread: eight bounded queues without locks. A full queue loses what is new,
//! and whoever wanted to say it counts that; nobody waits.

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

/// Packets of one worker that may wait, all neighbours together.
pub const HELD: usize = 512;
/// What workers heard and the control thread has not looked at.
const HEARD: usize = 1024;
/// Questions that the control thread has not looked at: anybody can ask, so they are apart, and fewer.
const ASKED: usize = 256;
/// Advertisements of routers that the control thread has not looked at.
const ADVERTS: usize = 32;
/// Requests and answers of arping that the control thread has not read.
const PROBES: usize = 256;
/// Frames that the control thread made and the worker has not sent.
const FRAMES: usize = 1024;
/// Long frames that the worker has not sent.
const LONGS: usize = 32;

/// A packet whose next hop's MAC address is not known.
pub struct HeldForResolution {
    /// The next hop.
    pub key: Key,
    /// Of this family is the packet.
    pub family: Family,
    /// Whether a route named the next hop: the packet's sender did not choose the address.
    pub is_next_hop: bool,
    /// The packet.
    pub packet: HeldPacket,
}

/// What a neighbour said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeighborMessageKind {
    /// It asked for an address of ours.
    Question,
    /// It answered us.
    Answer,
    /// It told everybody who it is.
    Announcement,
    /// An advertisement of IPv6, whose flags say what it is worth; all zeros stand for a MAC address that it does not say.
    Advertisement {
        /// It answers a question.
        solicited: bool,
        /// It takes the place of a MAC address that is known.
        overrides: bool,
    },
    /// It says it has an address of ours.
    Conflict,
    /// It says it has an address that is tentative here, or asks whether somebody has it.
    Claim,
    /// It sends with the MAC address of the interface that it was heard on.
    OwnMac,
    /// It asked for routers; all zeros stand for a MAC address that it does not say.
    Routers,
}

/// Who said what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeighborMessage {
    /// The interface that it was heard on.
    pub rx: u32,
    /// Whose address.
    pub addr: IpAddr,
    /// With which MAC address.
    pub mac: Mac,
    /// What.
    pub what: NeighborMessageKind,
}

/// What happened to a request of arping, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeMessage {
    /// Nanoseconds on the workers' clock.
    pub at: u64,
    /// What happened.
    pub event: ProbeEvent,
}

/// What happened to a request of arping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeEvent {
    /// It left.
    Sent {
        /// The run.
        id: u16,
        /// The request, from 0.
        number: u32,
    },
    /// A station says that it has an address.
    Answer {
        /// The interface that received it.
        rx: u32,
        /// The address.
        addr: IpAddr,
        /// The station.
        mac: Mac,
    },
}

/// What becomes of a packet that waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It is looked up again: the MAC address is known.
    Resumed,
    /// It leaves by the interface of its neighbour, whose MAC address is known: no lookup finds a link-local address.
    OnLink {
        /// The interface.
        tx: u32,
        /// The MAC address of the interface.
        from: Mac,
        /// The MAC address of the neighbour.
        to: Mac,
    },
    /// No neighbour answered: it is dropped, and its sender is notified.
    Lost,
    /// It yields to a newer one: it is dropped.
    Evicted,
}

/// A packet on its way back into the graph.
pub struct ResolvedPacket {
    /// Its family.
    pub family: Family,
    /// What becomes of it.
    pub end: End,
    /// The packet.
    pub packet: HeldPacket,
}

/// A frame to be sent.
pub struct Frame<const ROOM: usize = FRAME> {
    /// The interface to send on.
    pub tx: u32,
    /// How many bytes count.
    pub len: usize,
    /// The frame.
    pub bytes: [u8; ROOM],
    /// The run of arping that wants to know when it leaves, and the number of the request.
    pub probe: Option<(u16, u32)>,
}

impl<const ROOM: usize> Frame<ROOM> {
    /// A frame of these bytes, cut where there is no more room.
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
    /// To the control thread: what was heard, questions aside.
    pub received_messages: ArrayQueue<NeighborMessage>,
    /// To the control thread: who asked us.
    pub received_requests: ArrayQueue<NeighborMessage>,
    /// To the control thread: what routers advertise, and on which interface.
    pub adverts: ArrayQueue<(u32, ReceivedAdvert)>,
    /// To the control thread: what concerns runs of arping.
    pub probe_messages: ArrayQueue<ProbeMessage>,
    /// Whether there are such runs.
    probed: AtomicBool,
    /// To the worker: packets that waited.
    pub resolved_packets: ArrayQueue<ResolvedPacket>,
    /// To the worker: frames to be sent.
    pub frames: ArrayQueue<Frame>,
    /// The same for long ones.
    pub large_frames: ArrayQueue<Frame<LONG>>,
    /// Buffers outside the graph. The worker alone writes it.
    away: AtomicUsize,
    /// Packets outside the graph, written by it alone too.
    packets: AtomicUsize,
    /// What packets that wait may take of the buffers.
    share: Arc<Share>,
    worker: usize,
}

impl ControlQueues {
    /// The queues of worker `worker`, whose packets may take as many buffers as `share` says.
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

    /// Worker: tell the control thread; false when there is no room.
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

    /// Control thread: whether a run waits.
    pub fn set_probed(&self, probed: bool) {
        self.probed.store(probed, Relaxed);
    }

    /// Worker: whether one more packet of so many buffers may wait. Where it may, both queues that it passes have room.
    pub fn has_room(&self, buffers: usize) -> bool {
        let may = self.packets.load(Relaxed) < HELD
            && self.away.load(Relaxed) + buffers <= self.share.each();
        self.share.count_refused(self.worker, u64::from(!may));
        may
    }

    /// Buffers that packets to untrusted neighbours may take: the rest is for neighbours that are known or named by a route.
    pub fn for_untrusted(&self) -> usize {
        self.share.each().min(HELD) * 3 / 4
    }

    /// Worker: a packet of so many buffers went away.
    pub fn leave(&self, buffers: usize) {
        let now = self.away.load(Relaxed) + buffers;
        self.set_away(now, self.packets.load(Relaxed) + 1);
    }

    /// Worker: so many packets of so many buffers came back, some of which yielded to newer ones.
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

    /// Whether the worker has something to fetch.
    pub fn is_waiting(&self) -> bool {
        !(self.resolved_packets.is_empty()
            && self.frames.is_empty()
            && self.large_frames.is_empty())
    }
}

#[cfg(test)]
impl Default for ControlQueues {
    /// For a worker that has 1024 buffers to itself.
    fn default() -> Self {
        use volley_graph::{Domain, Engine, Settings, buf::Pool};
        let pool = Pool::new(16_384).unwrap();
        let mut engine = Engine::new(Settings::default(), pool, Domain::new()).unwrap();
        ControlQueues::new(engine.add_share("neighbors", 1).unwrap(), 0)
    }
}
