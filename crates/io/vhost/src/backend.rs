//! The back end of the control channel: handles the front end's messages and starts and stops rings.
//!
//! A ring runs once it has memory, a size, addresses and a kick descriptor (or the flag that there is none), and is
//! enabled. A message that changes any of these stops the ring first, so no sequence of messages leaves a running ring
//! with a resource that no longer exists.

use crate::device::{Layout, Packed, Split};
use crate::fault::Fault;
use crate::feature::{self, Wanted};
use crate::memory::{Memory, Place};
use crate::protocol::{Message, RingAddr, code, reply};
use crate::wire::{MAX_PAIRS, PATIENCE, Ring, RingSlot, Running, VhostPort};
use rustix::io::Errno;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;
use volley_shm::calls::{Call, Calls, Kernel};
use volley_shm::{Account, Event};

const RINGS: usize = 2 * MAX_PAIRS;
/// Largest ring size in virtio.
const MAX_SIZE: u32 = 32_768;

/// Parameters of a ring that the front end has sent so far.
#[derive(Default)]
struct Described {
    size: u32,
    addr: Option<RingAddr>,
    base: u32,
    /// Kick descriptor, once it is set; the inner `None` means that the front end polls and sends none.
    kick: Option<Option<Arc<Event>>>,
    call: Option<Arc<Event>>,
    enabled: bool,
}

/// State of one connection.
pub struct Backend {
    wanted: Wanted,
    wire: Arc<VhostPort>,
    features: u64,
    protocol: u64,
    memory: Option<Arc<Memory>>,
    /// Memory charged to the interface's peers.
    account: Arc<Account>,
    rings: Vec<Described>,
    calls: Rc<dyn Calls>,
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.wire.clear();
    }
}

fn named(name: &'static str, text: String) -> Fault {
    Fault::new(name, text)
}

impl Backend {
    /// State of a new connection.
    pub fn new(wanted: Wanted, wire: Arc<VhostPort>, account: Arc<Account>) -> Self {
        wire.clear();
        Backend {
            wanted,
            wire,
            features: 0,
            protocol: 0,
            memory: None,
            account,
            rings: (0..RINGS).map(|_| Described::default()).collect(),
            calls: Rc::new(Kernel),
        }
    }

    /// The same connection, with system calls that may fail.
    pub fn with_calls(mut self, calls: Rc<dyn Calls>) -> Self {
        self.calls = calls;
        self
    }

    /// Negotiated features.
    pub fn features(&self) -> u64 {
        self.features
    }

    /// The shared memory.
    pub fn memory(&self) -> Option<&Memory> {
        self.memory.as_deref()
    }

    /// Size of a ring, for `show`.
    pub fn ring_size(&self, ring: usize) -> u32 {
        self.rings.get(ring).map_or(0, |r| r.size)
    }

    /// Number of running queue pairs.
    pub fn pairs(&self) -> usize {
        let runs = |i: &usize| self.lane(2 * i).is_live() && self.lane(2 * i + 1).is_live();
        (0..MAX_PAIRS).take_while(runs).count()
    }

    /// The slot of a ring. The guest receives from even rings, so the back end transmits to them.
    fn lane(&self, ring: usize) -> &RingSlot {
        match ring % 2 {
            0 => &self.wire.tx[ring / 2],
            _ => &self.wire.rx[ring / 2],
        }
    }

    /// Handle a message and return the reply, if the message has one.
    pub fn handle(&mut self, mut message: Message) -> Result<Option<Vec<u8>>, Fault> {
        if message.is_reply() {
            let text = format!("message {} is a reply to nothing", message.code);
            return Err(named("unexpected-reply", text));
        }
        let takes_files = [
            code::SET_MEM_TABLE,
            code::SET_VRING_KICK,
            code::SET_VRING_CALL,
            code::SET_VRING_ERR,
        ];
        if !message.files.is_empty() && !takes_files.contains(&message.code) {
            let text = format!("message {} came with files", message.code);
            return Err(named("wrong-file-count", text));
        }
        if let Some(number) = self.ask(&message)? {
            return Ok(Some(reply(message.code, number)));
        }
        self.change(&mut message)?;
        let wants = message.needs_reply() && self.protocol & feature::PROTOCOL_REPLY_ACK != 0;
        Ok(wants.then(|| reply(message.code, 0)))
    }

    /// Handle the messages that query a value.
    fn ask(&mut self, message: &Message) -> Result<Option<u64>, Fault> {
        Ok(Some(match message.code {
            code::GET_FEATURES => self.wanted.offer(),
            code::GET_PROTOCOL_FEATURES => feature::PROTOCOL_MQ | feature::PROTOCOL_REPLY_ACK,
            code::GET_QUEUE_NUM => MAX_PAIRS as u64,
            code::GET_VRING_BASE => {
                let ring = self.ring(message.ring_state()?.ring)?;
                self.stop(ring)?;
                let d = &mut self.rings[ring];
                // The ring stays stopped until the front end sends a new kick descriptor.
                d.kick = None;
                ring as u64 | u64::from(d.base) << 32
            }
            _ => return Ok(None),
        }))
    }

    fn change(&mut self, message: &mut Message) -> Result<(), Fault> {
        match message.code {
            code::SET_FEATURES => self.set_features(message.number()?),
            code::SET_PROTOCOL_FEATURES => {
                self.protocol = message.number()?;
                Ok(())
            }
            code::SET_OWNER => message.nothing(),
            code::RESET_OWNER => {
                self.stop_all()?;
                self.rings
                    .iter_mut()
                    .for_each(|r| *r = Described::default());
                Ok(())
            }
            code::SET_MEM_TABLE => self.set_memory(message),
            code::SET_VRING_ERR => message.ring_file().map(|_| ()),
            code::SET_VRING_NUM
            | code::SET_VRING_ADDR
            | code::SET_VRING_BASE
            | code::SET_VRING_KICK
            | code::SET_VRING_CALL
            | code::SET_VRING_ENABLE => self.describe(message),
            other => Err(named(
                "unknown-message",
                format!("message {other} was not negotiated"),
            )),
        }
    }

    fn set_features(&mut self, features: u64) -> Result<(), Fault> {
        let more = features & !self.wanted.offer();
        if more != 0 {
            let text = format!("features {more:#x} were not offered");
            return Err(named("features-not-offered", text));
        }
        if features & feature::VERSION_1 == 0 && features & feature::MRG_RXBUF == 0 && features != 0
        {
            let text = "the guest's driver has neither version 1 nor mergeable buffers".into();
            return Err(named("driver-too-old", text));
        }
        self.stop_all()?;
        self.features = features;
        let offloads = feature::CSUM | feature::GUEST_CSUM;
        self.wire.offloads.store(features & offloads != 0, Relaxed);
        self.start_all()
    }

    fn set_memory(&mut self, message: &mut Message) -> Result<(), Fault> {
        let specs = message.regions()?;
        let files = std::mem::take(&mut message.files);
        self.stop_all()?;
        // Unmap the old memory before the new one is mapped: a front end may send the same memory repeatedly.
        self.memory = None;
        let failed = |e: Errno| named("region-not-mapped", format!("memory region 0: {e}"));
        self.calls.before(Call::PeerMemory).map_err(failed)?;
        self.memory = Some(Arc::new(Memory::map(&specs, files, &self.account)?));
        self.start_all()
    }

    fn describe(&mut self, message: &mut Message) -> Result<(), Fault> {
        if matches!(message.code, code::SET_VRING_KICK | code::SET_VRING_CALL) {
            let (ring, file) = message.ring_file()?;
            let ring = self.ring(ring)?;
            let bad = |e: std::io::Error| named("bad-event-file", format!("ring {ring}: {e}"));
            let may_fail = self.calls.before(Call::PeerEvent);
            may_fail.map_err(|e| bad(e.into()))?;
            let event = file.map(Event::of_peer).transpose().map_err(bad)?;
            let event = event.map(Arc::new);
            self.stop(ring)?;
            match message.code {
                code::SET_VRING_KICK => self.rings[ring].kick = Some(event),
                _ => self.rings[ring].call = event,
            }
            return self.start(ring);
        }
        if message.code == code::SET_VRING_ADDR {
            let addr = message.ring_addr()?;
            let ring = self.ring(addr.ring)?;
            self.stop(ring)?;
            self.rings[ring].addr = Some(addr);
            return self.start(ring);
        }
        let state = message.ring_state()?;
        let ring = self.ring(state.ring)?;
        self.stop(ring)?;
        let d = &mut self.rings[ring];
        match message.code {
            code::SET_VRING_NUM if state.num == 0 || state.num > MAX_SIZE => {
                let text = format!("ring {ring} has {} descriptors", state.num);
                return Err(named("bad-ring-size", text));
            }
            code::SET_VRING_NUM => d.size = state.num,
            code::SET_VRING_BASE => d.base = state.num,
            _ => d.enabled = state.num != 0,
        }
        self.start(ring)
    }

    fn ring(&self, ring: u32) -> Result<usize, Fault> {
        let text = || format!("ring {ring}, there are {RINGS}");
        let known = usize::try_from(ring).ok().filter(|r| *r < RINGS);
        known.ok_or_else(|| named("ring-number", text()))
    }

    fn stop_all(&mut self) -> Result<(), Fault> {
        (0..RINGS).try_for_each(|ring| self.stop(ring))
    }

    fn start_all(&mut self) -> Result<(), Fault> {
        (0..RINGS).try_for_each(|ring| self.start(ring))
    }

    /// Stop a ring and save its position.
    fn stop(&mut self, ring: usize) -> Result<(), Fault> {
        if let Some(running) = self.lane(ring).put(None, Instant::now() + PATIENCE)? {
            let base = crate::with_ring!(&running.ring, end => crate::device::End::base(end));
            self.rings[ring].base = base;
        }
        Ok(())
    }

    /// Whether the front end blocks its own notifications.
    pub fn is_blocked(&self) -> bool {
        let blocked = |ring: &Described| ring.call.as_ref().is_some_and(|call| call.is_stuck());
        self.rings.iter().any(blocked)
    }

    /// Start a ring if all of its parameters are known.
    fn start(&mut self, ring: usize) -> Result<(), Fault> {
        let d = &self.rings[ring];
        let enabled = d.enabled || self.features & feature::PROTOCOL == 0;
        let (Some(memory), Some(addr), true, true, true) =
            (&self.memory, d.addr, d.kick.is_some(), d.size > 0, enabled)
        else {
            return Ok(());
        };
        let layout = self.layout(ring, memory, &addr)?;
        let end = if self.features & feature::RING_PACKED != 0 {
            Ring::Packed(Packed::new(layout, memory))
        } else {
            Ring::Split(Split::new(layout, memory))
        };
        let running = Running {
            ring: end,
            memory: memory.clone(),
            call: d.call.clone(),
            alarm: d.kick.clone().flatten(),
        };
        let lane = self.lane(ring);
        lane.put(Some(running), Instant::now() + PATIENCE)?;
        self.wire.pairs.fetch_max(ring / 2 + 1, Relaxed);
        Ok(())
    }

    fn layout(&self, ring: usize, memory: &Memory, addr: &RingAddr) -> Result<Layout, Fault> {
        let d = &self.rings[ring];
        let (n, packed) = (u64::from(d.size), self.features & feature::RING_PACKED != 0);
        if !packed && !d.size.is_power_of_two() {
            let text = format!("ring {ring} has {n} descriptors, a split ring has a power of two");
            return Err(named("bad-ring-size", text));
        }
        let [avail, used] = if packed {
            [4, 4]
        } else {
            [6 + 2 * n, 6 + 8 * n]
        };
        let part = |what: &str, user, len, align: usize| -> Result<Place, Fault> {
            let text = || format!("{what} of ring {ring} at {user:#x}");
            let place = memory.user(user, len);
            let place = place.ok_or_else(|| named("ring-outside-memory", text()))?;
            let aligned = memory.view(place).is_some_and(|v| v.is_aligned(align));
            aligned
                .then_some(place)
                .ok_or_else(|| named("ring-misaligned", text()))
        };
        Ok(Layout {
            size: d.size as u16,
            desc: part("descriptors", addr.desc, 16 * n, 16)?,
            avail: part(
                "available ring",
                addr.avail,
                avail,
                if packed { 4 } else { 2 },
            )?,
            used: part("used ring", addr.used, used, 4)?,
            indirect: self.features & feature::INDIRECT_DESC != 0,
            event_idx: self.features & feature::EVENT_IDX != 0,
            mergeable: self.features & feature::MRG_RXBUF != 0,
            base: if packed && d.base == 0 {
                0x8000
            } else {
                d.base
            },
        })
    }
}
