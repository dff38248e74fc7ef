//! The front end of the control channel: negotiates features, then sends memory and rings, one request at a time. Each
//! connection gets new memory, so a back end that reconnects finds no data of the previous connection.

use crate::driver::{PackedDriver, RingDirection, Shared, SplitDriver};
use crate::fault::Fault;
use crate::feature::{self, Wanted};
use crate::protocol::{Link, Message, RingAddr, code, encode, regions, ring_addr};
use crate::wire::{PATIENCE, Ring, Running, VhostPort};
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;
use volley_shm::Event;
use volley_shm::calls::{Call, Calls};

/// State of one connection.
pub struct Frontend {
    wanted: Wanted,
    wire: Arc<VhostPort>,
    size: u16,
    /// Queue pairs: the configured number, later at most what the back end supports.
    pairs: usize,
    features: u64,
    protocol: u64,
    /// The pending request; `None` when the rings run.
    asked: Option<u32>,
    /// Eventfds that notify the back end.
    kicks: Vec<Arc<Event>>,
    calls: Rc<dyn Calls>,
}

impl Drop for Frontend {
    fn drop(&mut self) {
        self.wire.clear();
    }
}

fn system(e: std::io::Error) -> Fault {
    Fault::new("out-of-resources", e.to_string())
}

fn pair(ring: usize, number: u64) -> Vec<u8> {
    (ring as u64 | number << 32).to_le_bytes().to_vec()
}

impl Frontend {
    /// Begin the negotiation with the back end behind `link`.
    pub fn new(
        wanted: Wanted,
        wire: Arc<VhostPort>,
        (size, pairs): (u16, usize),
        link: &Link,
        calls: Rc<dyn Calls>,
    ) -> Result<Self, Fault> {
        wire.clear();
        let mut frontend = Frontend {
            wanted,
            wire,
            size,
            pairs,
            features: 0,
            protocol: 0,
            asked: None,
            kicks: Vec::new(),
            calls,
        };
        frontend.ask(link, code::GET_FEATURES)?;
        Ok(frontend)
    }

    /// Negotiated features.
    pub fn features(&self) -> u64 {
        self.features
    }

    /// Number of running queue pairs.
    pub fn pairs(&self) -> usize {
        let live = |q: &usize| self.wire.rx[*q].is_live() && self.wire.tx[*q].is_live();
        (0..self.pairs).take_while(live).count()
    }

    /// Descriptors of each ring.
    pub fn ring_size(&self) -> u16 {
        self.size
    }

    /// Whether the back end blocks its own notifications.
    pub fn is_blocked(&self) -> bool {
        self.kicks.iter().any(|kick| kick.is_stuck())
    }

    fn send(&self, link: &Link, bytes: &[u8], files: &[BorrowedFd<'_>]) -> Result<(), Fault> {
        self.calls.before(Call::Send).map_err(Fault::of_socket)?;
        link.send(bytes, files)
    }

    fn ask(&mut self, link: &Link, what: u32) -> Result<(), Fault> {
        self.asked = Some(what);
        self.send(link, &encode(what, 0, &[]), &[])
    }

    fn say(&self, link: &Link, what: u32, number: u64) -> Result<(), Fault> {
        self.send(link, &encode(what, 0, &number.to_le_bytes()), &[])
    }

    /// Handle a reply.
    pub fn handle(&mut self, message: Message, link: &Link) -> Result<(), Fault> {
        if self.asked != Some(message.code) || !message.is_reply() || !message.files.is_empty() {
            let text = format!("message {} answers nothing", message.code);
            return Err(Fault::new("unexpected-reply", text));
        }
        let number = message.number()?;
        match message.code {
            code::GET_FEATURES => {
                if number & feature::VERSION_1 == 0 {
                    let text = "the back end does not know virtio version 1".to_owned();
                    return Err(Fault::new("back-end-too-old", text));
                }
                self.features = self.wanted.take(number);
                if self.features & feature::PROTOCOL != 0 {
                    return self.ask(link, code::GET_PROTOCOL_FEATURES);
                }
            }
            code::GET_PROTOCOL_FEATURES => {
                self.protocol = number & feature::PROTOCOL_MQ;
                self.say(link, code::SET_PROTOCOL_FEATURES, self.protocol)?;
                if self.protocol & feature::PROTOCOL_MQ != 0 {
                    return self.ask(link, code::GET_QUEUE_NUM);
                }
            }
            _ => {
                let most = usize::try_from(number).unwrap_or(usize::MAX).max(1);
                self.pairs = self.pairs.min(most);
                return self.set_up(link);
            }
        }
        self.pairs = 1;
        self.set_up(link)
    }

    /// Create the memory of the rings, and send it with the features.
    fn share(&self, link: &Link) -> Result<Shared, Fault> {
        let may_fail = self.calls.before(Call::OwnMemory);
        may_fail.map_err(|e| system(e.into()))?;
        let shared = Shared::new(2 * self.pairs, self.size).map_err(system)?;
        self.send(link, &encode(code::SET_OWNER, 0, &[]), &[])?;
        self.say(link, code::SET_FEATURES, self.features)?;
        let table = encode(code::SET_MEM_TABLE, 0, &regions(&[shared.spec]));
        self.send(link, &table, &[shared.file.as_fd()])?;
        Ok(shared)
    }

    /// Send memory and rings after the negotiation.
    fn set_up(&mut self, link: &Link) -> Result<(), Fault> {
        self.asked = None;
        if self.pairs == 1 {
            self.features &= !feature::MQ;
        }
        let Shared { memory, spots, .. } = self.share(link)?;
        let memory = Arc::new(memory);
        let offloads = feature::CSUM | feature::GUEST_CSUM;
        self.wire
            .offloads
            .store(self.features & offloads != 0, Relaxed);
        for (ring, spot) in spots.iter().enumerate() {
            let has = |bit| self.features & bit != 0;
            let layout = spot.layout(
                &memory,
                self.size,
                has(feature::EVENT_IDX),
                has(feature::MRG_RXBUF),
            );
            let Some(layout) = layout else {
                return Err(Fault::new(
                    "out-of-resources",
                    "the rings do not fit their memory",
                ));
            };
            let way = if ring % 2 == 0 {
                RingDirection::Receive
            } else {
                RingDirection::Send
            };
            let end = if has(feature::RING_PACKED) {
                Ring::PackedDriver(PackedDriver::new(layout, spot, &memory, way))
            } else {
                Ring::SplitDriver(SplitDriver::new(layout, spot, &memory, way))
            };
            let addr = RingAddr {
                ring: ring as u32,
                flags: 0,
                desc: spot.desc,
                used: spot.used,
                avail: spot.avail,
            };
            let [call, alarm] = self.describe(link, &addr)?;
            self.kicks.push(call.clone());
            let lane = match way {
                RingDirection::Receive => &self.wire.rx[ring / 2],
                RingDirection::Send => &self.wire.tx[ring / 2],
            };
            let running = Running {
                ring: end,
                memory: memory.clone(),
                call: Some(call),
                alarm: Some(alarm),
            };
            lane.put(Some(running), Instant::now() + PATIENCE)?;
        }
        if self.features & feature::PROTOCOL != 0 {
            for ring in 0..2 * self.pairs {
                self.send(
                    link,
                    &encode(code::SET_VRING_ENABLE, 0, &pair(ring, 1)),
                    &[],
                )?;
            }
        }
        self.wire.pairs.store(self.pairs, Relaxed);
        Ok(())
    }

    /// Describe a ring to the back end; returns the ring's kick and call eventfds.
    fn describe(&self, link: &Link, addr: &RingAddr) -> Result<[Arc<Event>; 2], Fault> {
        let event = || {
            let may_fail = self.calls.before(Call::OwnEvent);
            may_fail.map_err(|e| system(e.into()))?;
            Event::new().map(Arc::new).map_err(system)
        };
        let (kick, call) = (event()?, event()?);
        let ring = addr.ring as usize;
        let base = if self.features & feature::RING_PACKED != 0 {
            0x8000
        } else {
            0
        };
        let number = (ring as u64).to_le_bytes();
        self.send(
            link,
            &encode(code::SET_VRING_CALL, 0, &number),
            &[call.as_fd()],
        )?;
        self.send(
            link,
            &encode(code::SET_VRING_NUM, 0, &pair(ring, u64::from(self.size))),
            &[],
        )?;
        self.send(
            link,
            &encode(code::SET_VRING_BASE, 0, &pair(ring, base)),
            &[],
        )?;
        self.send(
            link,
            &encode(code::SET_VRING_ADDR, 0, &ring_addr(addr)),
            &[],
        )?;
        self.send(
            link,
            &encode(code::SET_VRING_KICK, 0, &number),
            &[kick.as_fd()],
        )?;
        Ok([kick, call])
    }
}
