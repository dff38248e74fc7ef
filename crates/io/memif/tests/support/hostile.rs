//! A hostile peer that a script of bytes controls: for property tests and for the fuzzer.
//!
//! After each script the other interfaces must work, the attacked one must work for a well-behaved peer, and every buffer
//! must be free again. An access outside the shared regions hits the guard pages around every mapping and ends the
//! process.

use super::{Peer, Router, master, offer, packet, slave};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::MemfdFlags;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use std::cell::RefCell;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::path::PathBuf;
use volley_iface::AdminState;
use volley_memif::model::Memif;
use volley_memif::session::hello;
use volley_memif::socket::{Address, Channel, Listener};
use volley_memif::wire::{AddRing, Hello, Init, Message, Text, VERSION};

/// The bytes of a script; zeros after its end.
struct Script<'a>(&'a [u8]);

impl Script<'_> {
    fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((first, rest)) => {
                self.0 = rest;
                *first
            }
            None => 0,
        }
    }

    fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    fn word(&mut self) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|_| self.byte()))
    }

    /// A number near a limit: 0, `size`, the largest ones, or any.
    fn near(&mut self, size: u64) -> u64 {
        match self.byte() % 12 {
            0 => 0,
            1 => 1,
            2 => size,
            3 => size.wrapping_sub(1),
            4 => size + 1,
            5 => size / 2,
            6 => u64::from(u32::MAX),
            7 => u64::MAX,
            8 => size.wrapping_sub(u64::from(self.byte())),
            9 => u64::from(self.byte()) * 16,
            10 => u64::from(self.byte()) * 4096,
            _ => self.word(),
        }
    }
}

const LOG2: u8 = 4;
/// Bytes of a ring.
pub const RING: u64 = 128 + (16 << LOG2);
/// Size of the region of a peer that begins correctly: two rings, 32 buffers of 256 bytes.
pub const REGION: u64 = 2 * RING + 32 * 256;

/// Volley with the attacked interfaces, and well-behaved peers.
pub struct Arena {
    router: Router,
    socket: PathBuf,
    /// Well-behaved peers, patched to the attacked master and slave.
    to_master: Peer,
    to_slave: Peer,
    /// A well-behaved peer of an interface that returns its packets.
    echo: Peer,
    listener: Listener,
    number: u32,
    /// Messages and writes of hostile peers so far.
    pub operations: usize,
    _folder: tempfile::TempDir,
}

impl Default for Arena {
    fn default() -> Self {
        Arena::new()
    }
}

impl Arena {
    pub fn new() -> Arena {
        let folder = tempfile::tempdir().unwrap();
        let (socket, evil) = (
            folder.path().join("m.sock"),
            folder.path().join("evil.sock"),
        );
        let mut router = Router::new(&socket, 1);
        router.socket(1, evil.clone()).unwrap();
        let listener = Listener::bind(&Address(evil)).unwrap();
        let echo = router.memif(master(1));
        router.patch(&echo, &echo);
        let attacked = router.memif(master(0));
        let (to_master, to_slave) = (router.memif(master(2)), router.memif(master(3)));
        router
            .create(Memif {
                ring_size: 16,
                buffer_size: 256,
                ..slave(0, 1)
            })
            .unwrap();
        for (a, b) in [(&attacked, &to_master), (&"memif1/0".to_owned(), &to_slave)] {
            router.patch(a, b);
            router.patch(b, a);
        }
        let [to_master, to_slave, echo] = [2, 3, 1].map(|id| {
            let router = RefCell::new(&mut router);
            Peer::join(&socket, offer(id), || router.borrow_mut().step()).unwrap()
        });
        Arena {
            router,
            socket,
            to_master,
            to_slave,
            echo,
            listener,
            number: 0,
            operations: 0,
            _folder: folder,
        }
    }

    /// Send traffic to the attacked interfaces, and run rounds.
    fn step(&mut self, rounds: u8) {
        for round in 0..=rounds % 8 {
            self.number += 1;
            let sizes = [60, 64, 65, 255, 256, 257, 1500, 9000];
            let one = packet(self.number, sizes[usize::from(round) % sizes.len()]);
            for peer in [&mut self.to_master, &mut self.to_slave] {
                peer.send(0, std::slice::from_ref(&one));
                peer.receive(0);
            }
            self.router.step();
        }
    }

    /// Check what must hold after every script.
    fn check(&mut self) {
        self.number += 1;
        let wanted = packet(self.number, 60 + self.number as usize % 3000);
        assert_eq!(self.echo.send(0, std::slice::from_ref(&wanted)), 1);
        let got: Vec<_> = (0..3)
            .flat_map(|_| {
                self.router.step();
                self.echo.receive(0)
            })
            .collect();
        assert!(got == [wanted], "another interface has lost a packet");
        assert_eq!(self.router.in_use(), 0, "every buffer came back");
        for name in ["memif0/0", "memif1/0"] {
            let row = self.router.row(name);
            assert!(
                row.connected || !row.reason.is_empty(),
                "{name} says why it is down"
            );
        }
    }

    /// A well-behaved client can use the attacked master.
    fn honest(&mut self) {
        let router = RefCell::new(&mut self.router);
        let peer = Peer::join(&self.socket, offer(0), || router.borrow_mut().step());
        let mut peer = peer.unwrap();
        let wanted = packet(self.number, 300);
        self.to_master.receive(0);
        assert_eq!(peer.send(0, std::slice::from_ref(&wanted)), 1);
        self.router.step();
        assert!(self.to_master.receive(0) == [wanted]);
        drop(peer);
        self.router
            .until("the honest one to leave", |r| !r.row("memif0/0").connected);
    }
}

fn memory(size: u64) -> OwnedFd {
    let file = rustix::fs::memfd_create("evil", MemfdFlags::CLOEXEC).unwrap();
    rustix::fs::ftruncate(&file, size).unwrap();
    file
}

fn eventfd() -> OwnedFd {
    let flags = rustix::event::EventfdFlags::CLOEXEC | rustix::event::EventfdFlags::NONBLOCK;
    rustix::event::eventfd(0, flags).unwrap()
}

/// Any file but a suitable one.
fn odd_file(script: &mut Script<'_>) -> Option<OwnedFd> {
    let open = |path: &str| std::fs::File::open(path).ok().map(OwnedFd::from);
    match script.byte() % 8 {
        0 => None,
        1 => open("/dev/null"),
        2 => open("/dev/zero"),
        3 => open("/proc/self/exe"),
        4 => open("/tmp"),
        5 => std::io::pipe().ok().map(|(_, writer)| writer.into()),
        6 => Some(eventfd()),
        _ => Some(memory(script.near(REGION) % (1 << 24))),
    }
}

/// Send bytes that are not a message, with up to six files.
fn send_raw(channel: &Channel, bytes: &[u8], files: &[BorrowedFd<'_>]) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(files));
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    let _ = rustix::net::sendmsg(channel, &[IoSlice::new(bytes)], &mut ancillary, flags);
}

/// Write into shared memory like any process that has the file.
fn poke(file: &OwnedFd, at: u64, bytes: &[u8]) {
    let _ = rustix::io::pwrite(file, bytes, at % (1 << 40));
}

/// Write an invalid value into the ring at `ring`.
fn poke_ring(script: &mut Script<'_>, file: &OwnedFd, ring: u64, size: u64) {
    match script.byte() % 24 {
        0 => poke(
            file,
            ring + 6,
            &(script.near(1 << LOG2) as u16).to_le_bytes(),
        ),
        1 => poke(
            file,
            ring + 64,
            &(script.near(1 << LOG2) as u16).to_le_bytes(),
        ),
        2 => poke(file, ring + 4, &[script.byte()]),
        3 => poke(file, ring, &(script.word() as u32).to_le_bytes()),
        _ => {
            let slot = u64::from(script.byte()) % (1 << LOG2);
            let flags = u16::from(script.byte() % 4);
            let region = (script.near(1) as u16) * u16::from(script.byte().is_multiple_of(4));
            let (length, offset) = (script.near(size) as u32, script.near(size) as u32);
            let mut bytes = [0; 16];
            bytes[..2].copy_from_slice(&flags.to_le_bytes());
            bytes[2..4].copy_from_slice(&region.to_le_bytes());
            bytes[4..8].copy_from_slice(&length.to_le_bytes());
            bytes[8..12].copy_from_slice(&offset.to_le_bytes());
            poke(file, ring + 128 + slot * 16, &bytes);
        }
    }
}

/// A client's state.
struct Client {
    channel: Channel,
    region: OwnedFd,
    wakeups: Vec<OwnedFd>,
}

impl Client {
    fn new(arena: &Arena) -> Client {
        let channel = Channel::connect(&Address(arena.socket.clone())).unwrap();
        let region = memory(REGION);
        for ring in [0, RING] {
            poke(&region, ring, &0x03E3_1F20u32.to_le_bytes());
            // Valid buffers to begin with.
            for slot in 0..1u64 << LOG2 {
                let number = slot + (ring != 0) as u64 * 16;
                let mut bytes = [0; 16];
                bytes[4..8].copy_from_slice(&256u32.to_le_bytes());
                bytes[8..12].copy_from_slice(&((2 * RING + number * 256) as u32).to_le_bytes());
                poke(&region, ring + 128 + slot * 16, &bytes);
            }
        }
        let wakeups = vec![eventfd(), eventfd()];
        Client {
            channel,
            region,
            wakeups,
        }
    }

    fn say(&self, message: Message, file: Option<BorrowedFd<'_>>) {
        let _ = self.channel.send(&message, file);
    }

    fn init(&self, script: &mut Script<'_>) {
        let odd = script.byte() % 8 == 7;
        let init = Init {
            version: if odd { script.word() as u16 } else { VERSION },
            id: if odd { u32::from(script.byte() % 5) } else { 0 },
            mode: if odd { script.byte() } else { 0 },
            secret: Text::new(""),
            name: Text(std::array::from_fn(|_| script.byte())),
        };
        self.say(Message::Init(init), None);
    }

    fn add_region(&self, script: &mut Script<'_>) {
        let odd = script.byte() % 8 == 7;
        let index = if odd { script.near(1) as u16 } else { 0 };
        let size = if odd { script.near(REGION) } else { REGION };
        let other = if odd { odd_file(script) } else { None };
        let file = other.as_ref().unwrap_or(&self.region);
        self.say(Message::AddRegion { index, size }, Some(file.as_fd()));
    }

    fn add_ring(&self, script: &mut Script<'_>, s2m: bool) {
        let odd = script.byte() % 8 == 7;
        let ring = AddRing {
            s2m: if odd { script.byte() & 1 != 0 } else { s2m },
            index: if odd { script.near(1) as u16 } else { 0 },
            region: if odd { script.near(1) as u16 } else { 0 },
            offset: if odd {
                script.near(REGION) as u32
            } else {
                u32::from(!s2m) * RING as u32
            },
            log2_ring_size: if odd { script.byte() % 20 } else { LOG2 },
            private_hdr_size: u16::from(odd && script.byte() & 1 != 0),
        };
        let other = if odd { odd_file(script) } else { None };
        let file = other.as_ref().unwrap_or(&self.wakeups[usize::from(s2m)]);
        self.say(Message::AddRing(ring), Some(file.as_fd()));
    }

    fn shake_hands(&self, script: &mut Script<'_>) {
        self.init(script);
        self.add_region(script);
        self.add_ring(script, true);
        self.add_ring(script, false);
        self.say(Message::Connect(Text::new("evil")), None);
    }

    fn act(&self, script: &mut Script<'_>) {
        match script.byte() % 16 {
            0 => self.init(script),
            1 => self.add_region(script),
            2 => {
                let s2m = script.byte() & 1 != 0;
                self.add_ring(script, s2m);
            }
            3 => self.say(Message::Connect(Text::new("")), None),
            4 => {
                let len = usize::from(script.byte());
                let mut bytes: Vec<u8> = (0..len).map(|_| script.byte()).collect();
                if script.byte() & 1 != 0 {
                    bytes.resize(128, 0);
                    (bytes[0], bytes[1]) = (script.byte() % 12, 0);
                }
                let files: Vec<OwnedFd> = (0..script.byte() % 6)
                    .filter_map(|_| odd_file(script))
                    .collect();
                let files: Vec<_> = files.iter().map(|f| f.as_fd()).collect();
                send_raw(&self.channel, &bytes, &files);
            }
            5 => {
                let size = script.near(REGION) % (1 << 24);
                let _ = rustix::fs::ftruncate(&self.region, size);
            }
            6 => {
                let wakeup = &self.wakeups[usize::from(script.byte() & 1)];
                let _ = rustix::fs::fcntl_setfl(wakeup, rustix::fs::OFlags::empty());
                let _ = rustix::fs::fcntl_setfl(wakeup, rustix::fs::OFlags::NONBLOCK);
                let _ = rustix::io::write(wakeup, &(u64::MAX - 1).to_ne_bytes());
                let _ = rustix::fs::fcntl_setfl(wakeup, rustix::fs::OFlags::empty());
            }
            7 => poke(
                &self.region,
                script.near(REGION),
                &script.word().to_le_bytes(),
            ),
            n => poke_ring(script, &self.region, u64::from(n & 1) * RING, REGION),
        }
    }
}

/// The reason why a master's link went down after a client that was connected correctly wrote this into its region.
pub fn reason_after(arena: &mut Arena, writes: &[(u64, Vec<u8>)], size: Option<u64>) -> String {
    let client = Client::new(arena);
    arena.step(1);
    client.shake_hands(&mut Script(&[]));
    arena.step(1);
    assert!(arena.router.row("memif0/0").connected);
    for (at, bytes) in writes {
        poke(&client.region, *at, bytes);
    }
    if let Some(size) = size {
        rustix::fs::ftruncate(&client.region, size).unwrap();
    }
    arena.step(3);
    let reason = arena.router.link_reason("memif0/0");
    arena.check();
    arena.honest();
    reason.unwrap_or_default()
}

/// A client attacks a master.
pub fn attack_master(arena: &mut Arena, bytes: &[u8]) {
    let mut script = Script(bytes);
    for _ in 0..4 {
        let client = Client::new(arena);
        arena.step(1);
        if !script.byte().is_multiple_of(8) {
            client.shake_hands(&mut script);
            arena.operations += 5;
            arena.step(1);
        }
        while !script.is_over() && !script.byte().is_multiple_of(32) {
            client.act(&mut script);
            arena.operations += 1;
            if script.byte().is_multiple_of(4) {
                let rounds = script.byte();
                arena.step(rounds);
            }
        }
        arena.step(2);
        drop(client);
        arena.step(2);
        if script.is_over() {
            break;
        }
    }
    arena.check();
    arena.honest();
}

/// Act as the server until the slave considers itself connected; returns its region, if it was received.
fn take_in(arena: &mut Arena, channel: &Channel, script: &mut Script<'_>) -> Option<OwnedFd> {
    let greeting = match script.byte() % 8 {
        0 => Message::Hello(Hello {
            name: Text(std::array::from_fn(|_| script.byte())),
            min_version: script.near(u64::from(VERSION)) as u16,
            max_version: script.near(u64::from(VERSION)) as u16,
            max_region: script.word() as u16,
            max_m2s_ring: script.near(0) as u16,
            max_s2m_ring: script.near(0) as u16,
            max_log2_ring_size: script.byte(),
        }),
        _ => hello(),
    };
    let _ = channel.send(&greeting, None);
    let mut region = None;
    let mut connected = script.byte().is_multiple_of(16);
    while !connected {
        arena.step(0);
        match channel.receive() {
            Ok(Some((message, file))) => {
                if matches!(message, Message::AddRegion { .. }) {
                    region = file;
                }
                connected = matches!(message, Message::Connect(_));
                let answer = if connected {
                    Message::Connected(Text(std::array::from_fn(|_| script.byte())))
                } else {
                    Message::Ack
                };
                let _ = channel.send(&answer, None);
            }
            _ => connected = true,
        }
    }
    region
}

/// A server attacks a slave.
pub fn attack_slave(arena: &mut Arena, bytes: &[u8]) {
    let mut script = Script(bytes);
    arena.router.state("memif1/0", AdminState::Up);
    arena.step(1);
    let Some(channel) = arena.listener.accept() else {
        panic!(
            "the slave does not come: {:?}",
            arena.router.row("memif1/0")
        );
    };
    let region = take_in(arena, &channel, &mut script);
    arena.step(1);
    while !script.is_over() {
        arena.operations += 1;
        match (script.byte() % 16, &region) {
            (0, _) => {
                let file = odd_file(&mut script);
                let kind = script.byte() % 12;
                let mut bytes = [0; 128];
                bytes[0] = kind;
                bytes[2..40].fill_with(|| script.byte());
                let files: Vec<_> = file.iter().map(|f| f.as_fd()).collect();
                send_raw(&channel, &bytes, &files);
            }
            (1, Some(region)) => {
                let _ = rustix::fs::ftruncate(region, script.near(REGION) % (1 << 24));
                let flags =
                    rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
                let _ = rustix::fs::fallocate(region, flags, 0, 1 << 20);
            }
            (2, Some(region)) => {
                poke(region, script.near(2 * RING), &script.word().to_le_bytes());
            }
            (n, Some(region)) => {
                let ring = u64::from(n & 1) * RING;
                poke_ring(&mut script, region, ring, 256);
            }
            _ => {}
        }
        if script.byte().is_multiple_of(4) {
            let rounds = script.byte();
            arena.step(rounds);
        }
    }
    arena.step(2);
    drop(channel);
    arena.step(1);
    arena.router.state("memif1/0", AdminState::Down);
    arena.step(2);
    while arena.listener.accept().is_some() {}
    arena.step(1);
    arena.check();
}
