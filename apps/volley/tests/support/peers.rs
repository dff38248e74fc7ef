//! Hostile peers that share memory with a daemon. They build every message themselves, because no library of a correct peer can
//! do what they do.

use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, OFlags};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use volley_iface::IfIdx;
use volley_memif::link::ConnectionRings as MemifLink;
use volley_memif::session::{Served, Serving, hello};
use volley_memif::socket::{Address, Channel};
use volley_memif::wire::{AddRing, Init, Message, Text, VERSION};
use volley_shm::Account;
use volley_vhost::backend::Backend;
use volley_vhost::device::{End, Notification};
use volley_vhost::feature::{self, Wanted};
use volley_vhost::memory::RegionSpec;
use volley_vhost::protocol::{Arrived, Link, Listener, RingAddr, code, encode, regions, ring_addr};
use volley_vhost::wire::VhostPort;

const LIMIT: Duration = Duration::from_secs(30);

/// Repeats an attempt until it has a result.
pub fn until<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + LIMIT;
    loop {
        if let Some(result) = attempt() {
            return result;
        }
        assert!(Instant::now() < end, "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A memfd without pages that forbids seals, like those of QEMU and DPDK.
pub fn sparse(bytes: u64) -> OwnedFd {
    let file = rustix::fs::memfd_create("peer", MemfdFlags::CLOEXEC).unwrap();
    rustix::fs::ftruncate(&file, bytes).unwrap();
    file
}

fn poke(file: &OwnedFd, at: u64, bytes: &[u8]) {
    assert_eq!(rustix::io::pwrite(file, bytes, at), Ok(bytes.len()));
}

fn peek16(file: &OwnedFd, at: u64) -> u16 {
    let mut word = [0; 2];
    rustix::io::pread(file, &mut word, at).unwrap();
    u16::from_le_bytes(word)
}

/// Makes an eventfd blocking, and fills it: the next `write` sleeps until it is read.
pub fn block(event: impl AsFd) {
    rustix::fs::fcntl_setfl(&event, OFlags::empty()).unwrap();
    rustix::io::write(&event, &(u64::MAX - 1).to_ne_bytes()).unwrap();
}

/// Slots of each ring here.
pub const SLOTS: u16 = 256;
/// Bytes before each packet of a virtio ring.
const HEAD: u32 = 12;

/// A vhost-user front end.
pub struct Guest {
    _link: Link,
    pub file: OwnedFd,
    /// The eventfd by which the daemon is notified.
    pub call: OwnedFd,
    sent: u16,
}

impl Guest {
    const USER: u64 = 0x7f00_0000_0000;
    const AVAIL: u64 = 0x4000;
    const USED: u64 = 0x8000;
    const NEXT: u64 = 0x1_0000;
    const DATA: u64 = 0x10_0000;

    /// Connects to a daemon and shares a file of `bytes` bytes.
    pub fn new(socket: &Path, bytes: u64) -> Guest {
        let link = until("the vhost-user socket", || {
            volley_vhost::protocol::connect(socket).ok()
        });
        let guest = Guest {
            _link: link,
            file: sparse(bytes),
            call: eventfd(0, EventfdFlags::CLOEXEC).unwrap(),
            sent: 0,
        };
        guest.shake_hands(bytes);
        guest
    }

    fn say(&self, what: u32, payload: &[u8], files: &[BorrowedFd<'_>]) {
        // Some tests wait for the daemon to disconnect.
        let _ = self._link.send(&encode(what, 0, payload), files);
    }

    fn shake_hands(&self, bytes: u64) {
        let pair =
            |ring: u32, number: u32| (u64::from(ring) | u64::from(number) << 32).to_le_bytes();
        self.say(code::SET_OWNER, &[], &[]);
        self.say(code::SET_FEATURES, &feature::VERSION_1.to_le_bytes(), &[]);
        let region = RegionSpec {
            guest: 0,
            size: bytes,
            user: Guest::USER,
            offset: 0,
        };
        self.say(
            code::SET_MEM_TABLE,
            &regions(&[region]),
            &[self.file.as_fd()],
        );
        for ring in 0..2u32 {
            let at = Guest::USER + u64::from(ring) * Guest::NEXT;
            self.say(code::SET_VRING_NUM, &pair(ring, SLOTS.into()), &[]);
            self.say(code::SET_VRING_BASE, &pair(ring, 0), &[]);
            let address = RingAddr {
                ring,
                flags: 0,
                desc: at,
                avail: at + Guest::AVAIL,
                used: at + Guest::USED,
            };
            self.say(code::SET_VRING_ADDR, &ring_addr(&address), &[]);
            let number = u64::from(ring).to_le_bytes();
            self.say(code::SET_VRING_CALL, &number, &[self.call.as_fd()]);
            let kick = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
            self.say(code::SET_VRING_KICK, &number, &[kick.as_fd()]);
        }
    }

    fn describe(&self, ring: u64, slot: u16, address: u64, len: u32, flags: u16) {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&address.to_le_bytes());
        bytes[8..12].copy_from_slice(&len.to_le_bytes());
        bytes[12..14].copy_from_slice(&flags.to_le_bytes());
        poke(
            &self.file,
            ring * Guest::NEXT + u64::from(slot) * 16,
            &bytes,
        );
        let entry = ring * Guest::NEXT + Guest::AVAIL + 4 + u64::from(slot) * 2;
        poke(&self.file, entry, &slot.to_le_bytes());
    }

    /// Offers buffers for packets of the daemon, and requests a notification for each.
    pub fn offer(&self) {
        for slot in 0..SLOTS {
            self.describe(0, slot, Guest::DATA + u64::from(slot) * 2048, 2048, 2);
        }
        poke(&self.file, Guest::AVAIL + 2, &SLOTS.to_le_bytes());
    }

    /// Sends a ring full of packets, each on a separate page, from page `from` on. False if the daemon does not take them.
    pub fn send_pages(&mut self, from: u64) -> bool {
        for slot in 0..SLOTS {
            let address = Guest::DATA + (from + u64::from(slot)) * 4096;
            self.describe(1, slot, address, HEAD + 60, 0);
        }
        self.sent = self.sent.wrapping_add(SLOTS);
        poke(
            &self.file,
            Guest::NEXT + Guest::AVAIL + 2,
            &self.sent.to_le_bytes(),
        );
        let end = Instant::now() + Duration::from_secs(2);
        while peek16(&self.file, Guest::NEXT + Guest::USED + 2) != self.sent {
            if Instant::now() > end {
                return false;
            }
            std::thread::sleep(Duration::from_micros(100));
        }
        true
    }
}

/// A vhost-user back end, whose peer is a virtio-user interface.
pub struct Device {
    _link: Link,
    _backend: Backend,
    wire: Arc<VhostPort>,
}

impl Device {
    /// Accepts a connection of a daemon.
    pub fn new(listener: &Listener) -> Device {
        let mut link = until("a virtio-user interface", || listener.accept().unwrap());
        let wire = VhostPort::new(IfIdx(0));
        let wanted = Wanted {
            gso: false,
            packed: false,
            event_idx: false,
            mq: false,
        };
        let mut backend = Backend::new(wanted, wire.clone(), Account::new());
        until("the rings", || {
            if let Arrived::Message(message) = link.receive().unwrap()
                && let Some(answer) = backend.handle(message).unwrap()
            {
                link.send(&answer, &[]).unwrap();
            }
            (backend.pairs() > 0).then_some(())
        });
        Device {
            _link: link,
            _backend: backend,
            wire,
        }
    }

    /// Requests notifications of packets by an eventfd that blocks.
    pub fn block(&self) {
        let mut claim = self.wire.rx[0].claim().unwrap();
        let running = claim.as_mut().unwrap();
        block(running.alarm.as_ref().unwrap().as_fd());
        let memory = running.memory.clone();
        volley_vhost::with_ring!(&mut running.ring, end => end.listen(&memory, Notification::On));
    }
}

/// A memif slave.
pub struct Slave {
    channel: Channel,
    pub file: OwnedFd,
    /// The eventfd by which the daemon is notified of packets from it.
    pub interrupt: OwnedFd,
    sent: u16,
}

impl Slave {
    const LOG2: u8 = 8;
    const RING: u64 = 128 + (16 << Slave::LOG2);
    const DATA: u64 = 0x10_0000;

    /// Connects to interface `id` and shares a file of `bytes` bytes.
    pub fn new(socket: &Path, id: u32, bytes: u64) -> Slave {
        let address = Address(socket.to_owned());
        let channel = until("the memif socket", || Channel::connect(&address).ok());
        let slave = Slave {
            channel,
            file: sparse(bytes),
            interrupt: eventfd(0, EventfdFlags::CLOEXEC).unwrap(),
            sent: 0,
        };
        for ring in [0, Slave::RING] {
            poke(&slave.file, ring, &0x03E3_1F20u32.to_le_bytes());
        }
        slave.shake_hands(id, bytes);
        slave
    }

    fn say(&self, message: Message, file: Option<&OwnedFd>) {
        // Some tests wait for the daemon to disconnect.
        let _ = self.channel.send(&message, file.map(AsFd::as_fd));
    }

    fn shake_hands(&self, id: u32, size: u64) {
        let init = Init {
            version: VERSION,
            id,
            mode: 0,
            secret: Text::new(""),
            name: Text::new("hostile"),
        };
        self.say(Message::Init(init), None);
        self.say(Message::AddRegion { index: 0, size }, Some(&self.file));
        for (s2m, offset) in [(true, 0), (false, Slave::RING as u32)] {
            let ring = AddRing {
                s2m,
                index: 0,
                region: 0,
                offset,
                log2_ring_size: Slave::LOG2,
                private_hdr_size: 0,
            };
            // The daemon reads the eventfd by which it is notified.
            let own = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
            let event = if s2m { &own } else { &self.interrupt };
            self.say(Message::AddRing(ring), Some(event));
        }
        self.say(Message::Connect(Text::new("x")), None);
    }

    /// Why the daemon disconnected, once it has.
    pub fn reason(&self) -> Option<String> {
        loop {
            match self.channel.receive() {
                Ok(Some((Message::Disconnect { reason, .. }, _))) => return Some(reason.shown()),
                Ok(Some(_)) => {}
                _ => return None,
            }
        }
    }

    fn describe(&self, ring: u64, slot: u16, length: u32, offset: u64) {
        let mut bytes = [0; 16];
        bytes[4..8].copy_from_slice(&length.to_le_bytes());
        bytes[8..12].copy_from_slice(&(offset as u32).to_le_bytes());
        poke(&self.file, ring + 128 + u64::from(slot) * 16, &bytes);
    }

    /// Offers buffers for packets of the daemon, and requests a notification for each.
    pub fn offer(&self) {
        for slot in 0..SLOTS {
            self.describe(
                Slave::RING,
                slot,
                2048,
                Slave::DATA + u64::from(slot) * 2048,
            );
        }
        poke(&self.file, Slave::RING + 6, &SLOTS.to_le_bytes());
    }

    /// Like [`Guest::send_pages`].
    pub fn send_pages(&mut self, from: u64) -> bool {
        for slot in 0..SLOTS {
            self.describe(0, slot, 60, Slave::DATA + (from + u64::from(slot)) * 4096);
        }
        self.sent = self.sent.wrapping_add(SLOTS);
        poke(&self.file, 6, &self.sent.to_le_bytes());
        let end = Instant::now() + Duration::from_secs(2);
        while peek16(&self.file, 64) != self.sent {
            if Instant::now() > end {
                return false;
            }
            std::thread::sleep(Duration::from_micros(100));
        }
        true
    }
}

/// A memif master.
pub struct Master {
    _channel: Channel,
    link: Arc<MemifLink>,
}

impl Master {
    /// Accepts a connection of a daemon.
    pub fn new(listener: &volley_memif::socket::Listener) -> Master {
        let channel = until("a memif slave", || listener.accept());
        channel.send(&hello(), None).unwrap();
        let mut session = Serving::default();
        let link = until("the rings", || {
            let (message, file) = channel.receive().unwrap()?;
            let served = session.receive(message, file, |_| Ok(Account::new()));
            match served.unwrap() {
                Served::Ack => {
                    channel.send(&Message::Ack, None).unwrap();
                    None
                }
                Served::Up(link) => {
                    let connected = Message::Connected(Text::new("x"));
                    channel.send(&connected, None).unwrap();
                    Some(link)
                }
            }
        });
        Master {
            _channel: channel,
            link,
        }
    }

    /// Requests notifications of packets by an eventfd that blocks.
    pub fn block(&self) {
        let queue = &self.link.rx()[0];
        block(queue.wakeup.as_fd());
        queue.rx.want_wakeup(true);
    }
}
