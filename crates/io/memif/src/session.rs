//! The handshake of one connection, both sides: the allowed order of messages and the resulting rings.
//!
//! - True on entry: any message, with any file or none, at any time.
//! - True on exit: a [`ConnectionRings`] if all messages were in order and every ring's location is valid; otherwise one
//!   sentence with the reason, and all resources received so far are unmapped and closed.

use crate::link::{ConnectionRings, RxQueue, TxQueue};
use crate::region::{MAX_REGION, Map};
use crate::ring::{Buffers, DESCRIPTOR, HEAD, MAX_LOG2, Memory, Place, Rx, Tx};
use crate::wire::{AddRing, Hello, Init, Message, Text, VERSION};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::io::{self, ErrorKind};
use std::rc::Rc;
use std::sync::Arc;
use volley_shm::calls::{Call, Calls, Kernel};
use volley_shm::{Account, Event, MapError};

/// Maximum number of queues of a connection, per direction.
pub const MAX_QUEUES: u16 = 64;
/// Maximum number of regions of a connection.
const MAX_REGIONS: u16 = 256;

/// Reason for the end of a connection, as sent to the other side.
pub type Reason = String;

/// The server's first message.
pub fn hello() -> Message {
    Message::Hello(Hello {
        name: Text::new(concat!("Volley ", env!("CARGO_PKG_VERSION"))),
        min_version: VERSION,
        max_version: VERSION,
        max_region: MAX_REGIONS - 1,
        max_m2s_ring: MAX_QUEUES - 1,
        max_s2m_ring: MAX_QUEUES - 1,
        max_log2_ring_size: MAX_LOG2,
    })
}

/// The server's side.
pub struct Serving {
    calls: Rc<dyn Calls>,
    regions: Vec<Map>,
    rx: Vec<(Place, Event)>,
    tx: Vec<(Place, Event)>,
    /// The client's name, once its request has been accepted.
    pub peer: Option<String>,
    /// Memory charged to the interface's peers.
    account: Option<Arc<Account>>,
    up: bool,
}

/// Result of a message from the client.
pub enum Served {
    /// Send an acknowledgement.
    Ack,
    /// The rings are ready: send CONNECTED.
    Up(Arc<ConnectionRings>),
}

fn unexpected(message: &Message) -> Reason {
    format!("unexpected message {}", message.kind())
}

fn no_file(message: &Message, file: Option<OwnedFd>) -> Result<(), Reason> {
    match file {
        None => Ok(()),
        Some(_) => Err(format!(
            "unexpected file descriptor with {}",
            message.kind()
        )),
    }
}

impl Default for Serving {
    fn default() -> Self {
        Serving::new(Rc::new(Kernel))
    }
}

impl Serving {
    /// A server before the client's first message.
    pub fn new(calls: Rc<dyn Calls>) -> Self {
        Serving {
            calls,
            regions: Vec::new(),
            rx: Vec::new(),
            tx: Vec::new(),
            peer: None,
            account: None,
            up: false,
        }
    }

    /// Handle a message from the client. `admit` returns whether the client may connect to the interface that it names,
    /// and the interface's memory account.
    pub fn receive(
        &mut self,
        message: Message,
        file: Option<OwnedFd>,
        admit: impl FnOnce(&Init) -> Result<Arc<Account>, Reason>,
    ) -> Result<Served, Reason> {
        match message {
            Message::Disconnect { reason, .. } => {
                Err(format!("the peer disconnected: {}", reason.shown()))
            }
            _ if self.up => Err(unexpected(&message)),
            Message::Init(init) if self.peer.is_none() => {
                no_file(&message, file)?;
                if init.version != VERSION {
                    return Err(format!("unsupported version {:#06x}", init.version));
                }
                if init.mode != 0 {
                    return Err("mode mismatch: only Ethernet is supported".into());
                }
                self.account = Some(admit(&init)?);
                self.peer = Some(init.name.shown());
                Ok(Served::Ack)
            }
            _ if self.peer.is_none() => Err(unexpected(&message)),
            Message::AddRegion { index, size } => self.add_region(index, size, file),
            Message::AddRing(ring) => self.add_ring(ring, file),
            Message::Connect(_) => {
                no_file(&message, file)?;
                self.up = true;
                self.connect().map(Served::Up)
            }
            _ => Err(unexpected(&message)),
        }
    }

    fn add_region(
        &mut self,
        index: u16,
        size: u64,
        file: Option<OwnedFd>,
    ) -> Result<Served, Reason> {
        let file = file.ok_or("missing memory region fd")?;
        if usize::from(index) != self.regions.len() {
            return Err(format!("invalid region index {index}"));
        }
        if index >= MAX_REGIONS {
            return Err("too many regions".into());
        }
        if !self.rx.is_empty() || !self.tx.is_empty() {
            return Err("region after the first ring".into());
        }
        let before: u64 = self.regions.iter().map(|m| m.size() as u64).sum();
        if before.saturating_add(size) > MAX_REGION {
            return Err("regions of more than 16 GiB".into());
        }
        let account = self.account.as_ref().ok_or("region before INIT")?;
        let may_fail = self.calls.before(Call::PeerMemory);
        let map = may_fail
            .map_err(MapError::from)
            .and_then(|()| Map::of_peer(file.as_fd(), size, account));
        self.regions
            .push(map.map_err(|e| format!("region {index}: {e}"))?);
        Ok(Served::Ack)
    }

    fn add_ring(&mut self, ring: AddRing, file: Option<OwnedFd>) -> Result<Served, Reason> {
        let file = file.ok_or("missing interrupt fd")?;
        if ring.private_hdr_size != 0 {
            return Err("private headers not supported".into());
        }
        let rings = if ring.s2m { &mut self.rx } else { &mut self.tx };
        if usize::from(ring.index) != rings.len() {
            return Err(format!("invalid ring index {}", ring.index));
        }
        if ring.index >= MAX_QUEUES {
            return Err("too many rings".into());
        }
        let may_fail = self.calls.before(Call::PeerEvent);
        let wakeup = may_fail
            .map_err(io::Error::from)
            .and_then(|()| Event::of_peer(file));
        let wakeup = wakeup.map_err(|error| match error.kind() {
            ErrorKind::InvalidInput => "the interrupt fd is no eventfd".to_owned(),
            _ => format!("the interrupt fd: {error}"),
        })?;
        let (region, offset, log2) = (ring.region, ring.offset, ring.log2_ring_size);
        rings.push((
            Place {
                region,
                offset,
                log2,
            },
            wakeup,
        ));
        Ok(Served::Ack)
    }

    fn connect(&mut self) -> Result<Arc<ConnectionRings>, Reason> {
        let memory = Memory::new(std::mem::take(&mut self.regions));
        let (mut rx, mut tx) = (Vec::new(), Vec::new());
        for (place, wakeup) in self.rx.drain(..) {
            let ring = Rx::server(&memory, place).map_err(|e| e.to_string())?;
            ring.want_wakeup(false);
            rx.push(RxQueue::new(ring, wakeup));
        }
        for (place, wakeup) in self.tx.drain(..) {
            let ring = Tx::server(&memory, place).map_err(|e| e.to_string())?;
            tx.push(TxQueue::new(ring, wakeup));
        }
        Ok(ConnectionRings::new(memory, rx, tx))
    }
}

/// Parameters of a client.
#[derive(Clone, Debug)]
pub struct Offer {
    /// Number of the interface at the server.
    pub id: u32,
    /// The secret that the server requires.
    pub secret: String,
    /// Name of the local interface.
    pub name: String,
    /// Number of rings from the server to the client.
    pub rx_queues: u16,
    /// Number of rings from the client to the server.
    pub tx_queues: u16,
    /// Binary logarithm of the number of descriptors.
    pub log2: u8,
    /// Size of a packet buffer in bytes.
    pub buffer_size: u32,
}

/// The client's side.
pub struct Joining {
    calls: Rc<dyn Calls>,
    offer: Offer,
    parts: Option<Parts>,
    /// Number of messages sent; each is acknowledged before the next one.
    sent: usize,
    link: Option<Arc<ConnectionRings>>,
    /// The server's name, then the name of its interface.
    pub peer: String,
}

/// The resources that the messages describe.
struct Parts {
    region: OwnedFd,
    size: u64,
    rings: Vec<(AddRing, OwnedFd)>,
}

/// Result of a message from the server.
pub enum Joined {
    /// Send the message that [`Joining::say`] returns.
    Next,
    /// The server has accepted all messages.
    Up(Arc<ConnectionRings>),
}

impl Joining {
    /// A client before its first message.
    pub fn new(offer: Offer) -> Self {
        Joining::with(offer, Rc::new(Kernel))
    }

    /// As [`Joining::new`], with system calls that may fail.
    pub fn with(offer: Offer, calls: Rc<dyn Calls>) -> Self {
        Joining {
            calls,
            offer,
            parts: None,
            sent: 0,
            link: None,
            peer: String::new(),
        }
    }

    /// Handle a message from the server.
    pub fn receive(&mut self, message: Message, file: Option<OwnedFd>) -> Result<Joined, Reason> {
        if let Message::Disconnect { reason, .. } = &message {
            return Err(format!("the peer disconnected: {}", reason.shown()));
        }
        no_file(&message, file)?;
        match message {
            Message::Hello(hello) if self.parts.is_none() => {
                self.peer = hello.name.shown();
                self.prepare(&hello)?;
                Ok(Joined::Next)
            }
            // The server does not acknowledge the last message, CONNECT.
            Message::Ack if self.sent > 0 && self.sent < self.messages() => Ok(Joined::Next),
            Message::Connected(name) if self.sent > 0 && self.sent == self.messages() => {
                if !name.is_empty() {
                    self.peer = format!("{} ({})", name.shown(), self.peer);
                }
                let link = self.link.take().ok_or_else(|| unexpected(&message))?;
                link.rx().iter().for_each(|queue| queue.rx.open());
                Ok(Joined::Up(link))
            }
            _ => Err(unexpected(&message)),
        }
    }

    fn messages(&self) -> usize {
        3 + self.parts.as_ref().map_or(0, |parts| parts.rings.len())
    }

    /// The next message to send, with its file.
    pub fn say(&mut self) -> Option<(Message, Option<BorrowedFd<'_>>)> {
        let parts = self.parts.as_ref()?;
        let at = self.sent;
        self.sent += 1;
        Some(match at {
            0 => {
                let init = Init {
                    version: VERSION,
                    id: self.offer.id,
                    mode: 0,
                    secret: Text::new(&self.offer.secret),
                    name: Text::new(concat!("Volley ", env!("CARGO_PKG_VERSION"))),
                };
                (Message::Init(init), None)
            }
            1 => {
                let message = Message::AddRegion {
                    index: 0,
                    size: parts.size,
                };
                (message, Some(parts.region.as_fd()))
            }
            at => match parts.rings.get(at - 2) {
                Some((ring, wakeup)) => (Message::AddRing(*ring), Some(wakeup.as_fd())),
                None => (Message::Connect(Text::new(&self.offer.name)), None),
            },
        })
    }

    /// Allocate memory and rings, as many rings as the server supports.
    fn prepare(&mut self, hello: &Hello) -> Result<(), Reason> {
        if !(hello.min_version..=hello.max_version).contains(&VERSION) {
            let (min, max) = (hello.min_version, hello.max_version);
            return Err(format!(
                "the server speaks versions {min:#06x} to {max:#06x} only"
            ));
        }
        let offer = &self.offer;
        let most = |max: u16, wanted: u16| wanted.min(max.saturating_add(1));
        let tx_count = most(hello.max_s2m_ring, offer.tx_queues);
        let rx_count = most(hello.max_m2s_ring, offer.rx_queues);
        let log2 = offer.log2.min(hello.max_log2_ring_size).min(MAX_LOG2);
        let layout = Layout::new(tx_count + rx_count, log2, offer.buffer_size)?;
        let failed = |e: &dyn std::fmt::Display| format!("no shared memory: {e}");
        let calls = &self.calls;
        calls.before(Call::OwnMemory).map_err(|e| failed(&e))?;
        let (region, map) = Map::of_ours(layout.size as usize).map_err(|e| failed(&e))?;
        let memory = Memory::new(vec![map]);
        let (mut rx, mut tx, mut rings) = (Vec::new(), Vec::new(), Vec::new());
        for number in 0..tx_count + rx_count {
            let s2m = number < tx_count;
            let (place, buffers) = (layout.place(number), layout.buffers(number));
            calls.before(Call::OwnEvent).map_err(|e| failed(&e))?;
            let wakeup = Event::new().map_err(|e| failed(&e))?;
            let copy = wakeup.as_fd().try_clone_to_owned();
            let ring = AddRing {
                s2m,
                index: if s2m { number } else { number - tx_count },
                region: place.region,
                offset: place.offset,
                log2_ring_size: place.log2,
                private_hdr_size: 0,
            };
            rings.push((ring, copy.map_err(|e| failed(&e))?));
            if s2m {
                let ring = Tx::client(&memory, place, buffers).map_err(|e| failed(&e))?;
                tx.push(TxQueue::new(ring, wakeup));
            } else {
                let ring = Rx::client(&memory, place, buffers).map_err(|e| failed(&e))?;
                ring.want_wakeup(false);
                rx.push(RxQueue::new(ring, wakeup));
            }
        }
        self.link = Some(ConnectionRings::new(memory, rx, tx));
        let size = layout.size;
        self.parts = Some(Parts {
            region,
            size,
            rings,
        });
        Ok(())
    }
}

/// Layout of a client's region: rings, then the buffers of each ring.
pub struct Layout {
    log2: u8,
    ring: u32,
    first: u32,
    buffer: u32,
    stride: u32,
    size: u64,
}

impl Layout {
    /// Layout for this number of rings.
    pub fn new(rings: u16, log2: u8, buffer: u32) -> Result<Layout, Reason> {
        let ring = HEAD as u64 + ((DESCRIPTOR as u64) << log2);
        // An odd number of cache lines, so that equal offsets in adjacent buffers do not share a cache set.
        let stride = (u64::from(buffer).div_ceil(64).max(1) * 64) | 64;
        let first = (u64::from(rings) * ring).next_multiple_of(4096);
        let size = (first + u64::from(rings) * (stride << log2)).next_multiple_of(4096);
        if size > u64::from(u32::MAX) {
            let megabytes = size >> 20;
            return Err(format!(
                "rings and buffers need {megabytes} MB, at most 4095 are possible"
            ));
        }
        Ok(Layout {
            log2,
            ring: ring as u32,
            first: first as u32,
            buffer,
            stride: stride as u32,
            size,
        })
    }

    fn place(&self, number: u16) -> Place {
        Place {
            region: 0,
            offset: u32::from(number) * self.ring,
            log2: self.log2,
        }
    }

    fn buffers(&self, number: u16) -> Buffers {
        Buffers {
            region: 0,
            first: self.first + u32::from(number) * (self.stride << self.log2),
            size: self.buffer,
            stride: self.stride,
        }
    }
}
