//! Hostile peers: random and adversarial messages, files, memory tables, rings, descriptors, indices and lengths, at both
//! interface kinds. Nothing crashes, memory that was not shared stays unchanged, the faulty interface goes down with a
//! named reason and recovers with a well-behaved peer, and other interfaces keep working.

mod support;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use support::process::{resident_kib, resources};
use support::{Bench, back_end, frame, front_end, spec};
use volley_shm::Account;
use volley_vhost::memory::{Memory, RegionSpec};
use volley_vhost::model::{SocketRole, VirtioUser};
use volley_vhost::protocol::{Arrived, Link, Listener, RingAddr, code, connect, encode, reply};
use volley_vhost::protocol::{regions, ring_addr};

const FILE: u64 = 1 << 20;
/// The region begins and ends in the middle of a page, so the bytes around it are mapped, but not shared.
const REGION: RegionSpec = RegionSpec {
    guest: 0x10_0000,
    size: 0x8_0000 - 0x40,
    user: 0x7f00_0000_0000,
    offset: 0x1_0020,
};
const CANARY: u8 = 0xc5;
/// Guest addresses of the rings, aligned in the file and therefore in memory.
const DESC: u64 = 0x1_0000 - 0x20;
const AVAIL: u64 = DESC + 0x4000;
const USED: u64 = DESC + 0x8000;
const DATA: u64 = DESC + 0x1_0000;

/// A guest's memory: the test maps the whole file.
struct Ram {
    file: OwnedFd,
    all: Memory,
}

impl Ram {
    fn new() -> Ram {
        let file = volley_shm::memory_file("t", FILE as usize).unwrap();
        let whole = RegionSpec {
            guest: 0,
            size: FILE,
            user: 0,
            offset: 0,
        };
        let all = Memory::map(&[whole], vec![file.try_clone().unwrap()], &Account::new()).unwrap();
        let ram = Ram { file, all };
        ram.put(0, &vec![CANARY; FILE as usize]);
        ram.put(REGION.offset, &vec![0; REGION.size as usize]);
        ram
    }

    fn put(&self, at: u64, bytes: &[u8]) {
        let place = self.all.guest(at, bytes.len() as u32).unwrap();
        assert_eq!(self.all.view(place).unwrap().write(0, bytes), bytes.len());
    }

    /// Write into the region.
    fn set(&self, at: u64, bytes: &[u8]) {
        let room = REGION.size.saturating_sub(at).min(bytes.len() as u64);
        if room > 0 {
            self.put(REGION.offset + at, &bytes[..room as usize]);
        }
    }

    fn assert_untouched(&self) {
        let mut all = vec![0; FILE as usize];
        let place = self.all.guest(0, FILE as u32).unwrap();
        self.all.view(place).unwrap().read(0, &mut all);
        let (start, end) = (
            REGION.offset as usize,
            (REGION.offset + REGION.size) as usize,
        );
        let around = all[..start].iter().chain(&all[end..]);
        assert!(
            around.copied().all(|b| b == CANARY),
            "memory outside the region was written"
        );
    }
}

/// Interfaces `a` and `b`, which are each other's peers, and `x`, whose peer is hostile.
struct Scene {
    bench: Bench,
    dir: tempfile::TempDir,
    front: bool,
    listener: Option<Listener>,
}

impl Scene {
    fn new(front: bool, options: VirtioUser) -> Scene {
        let dir = tempfile::tempdir().unwrap();
        let mut bench = Bench::new();
        let other = dir.path().join("other");
        bench
            .create("a", back_end(spec(&other, SocketRole::Server)))
            .unwrap();
        bench
            .create("b", front_end(spec(&other, SocketRole::Client)))
            .unwrap();
        let x = dir.path().join("x");
        let role = if front {
            SocketRole::Client
        } else {
            SocketRole::Server
        };
        let options = VirtioUser {
            socket: x.clone(),
            role,
            ..options
        };
        let listener = front.then(|| Listener::bind(&x).unwrap());
        let kind = if front { front_end } else { back_end };
        bench.create("x", kind(options)).unwrap();
        assert!(bench.until(5, |b| b.is_up("a") && b.is_up("b")));
        Scene {
            bench,
            dir,
            front,
            listener,
        }
    }

    fn socket(&self) -> std::path::PathBuf {
        self.dir.path().join("x")
    }

    /// A connection between the hostile peer and `x`.
    fn meet(&mut self) -> Link {
        if !self.front {
            let link = connect(&self.socket()).unwrap();
            self.bench.step();
            return link;
        }
        let listener = self.listener.take().unwrap();
        let mut link = None;
        let met = self.bench.until(5, |_| {
            link = listener.accept().unwrap();
            link.is_some()
        });
        assert!(met);
        self.listener = Some(listener);
        link.unwrap()
    }

    /// Other interfaces keep working, and no buffer is lost.
    fn assert_sound(&mut self) {
        let b = self.bench.index("b");
        self.bench.got();
        self.bench
            .send("a", (0..20).map(|i| frame(64 + i as usize, i)));
        let mut passed = 0;
        self.bench.until(5, |bench| {
            passed += bench.got().iter().filter(|(i, _)| *i == b).count();
            passed >= 20
        });
        assert_eq!(passed, 20, "others go on");
        assert_eq!(self.bench.pool.report().in_use(), 0);
        let row = self.bench.show("x");
        assert_eq!(row.fault.is_some(), row.faults > 0 && row.fault.is_some());
        if let Some(fault) = &row.fault {
            let (name, text) = fault.split_once(": ").unwrap();
            assert!(!name.is_empty() && !text.is_empty());
        }
        if !self.bench.is_up("x") {
            assert!(!self.bench.reason("x").is_empty());
        }
    }
}

fn say(link: &Link, what: u32, payload: &[u8], files: &[BorrowedFd<'_>]) {
    // Sending fails if Volley has closed the connection; the peer continues regardless.
    let _ = link.send(&encode(what, 0, payload), files);
}

fn pair(ring: u32, num: u32) -> [u8; 8] {
    (u64::from(ring) | u64::from(num) << 32).to_le_bytes()
}

/// Set up rings 0 and 1 of a guest correctly.
fn handshake(link: &Link, ram: &Ram, features: u64, size: u32) {
    say(link, code::SET_OWNER, &[], &[]);
    say(link, code::SET_FEATURES, &features.to_le_bytes(), &[]);
    say(
        link,
        code::SET_MEM_TABLE,
        &regions(&[REGION]),
        &[ram.file.as_fd()],
    );
    for ring in 0..2u32 {
        let event = rustix::event::eventfd(0, rustix::event::EventfdFlags::NONBLOCK).unwrap();
        let base = REGION.user + u64::from(ring) * 0x800;
        say(link, code::SET_VRING_NUM, &pair(ring, size), &[]);
        let wrap = if features & volley_vhost::feature::RING_PACKED != 0 {
            0x8000
        } else {
            0
        };
        say(link, code::SET_VRING_BASE, &pair(ring, wrap), &[]);
        let addr = RingAddr {
            ring,
            flags: 0,
            desc: base + DESC,
            avail: base + AVAIL,
            used: base + USED,
        };
        say(link, code::SET_VRING_ADDR, &ring_addr(&addr), &[]);
        let number = u64::from(ring).to_le_bytes();
        say(link, code::SET_VRING_CALL, &number, &[event.as_fd()]);
        say(link, code::SET_VRING_KICK, &number, &[event.as_fd()]);
        say(link, code::SET_VRING_ENABLE, &pair(ring, 1), &[]);
    }
}

/// Numbers near limits.
fn near() -> impl Strategy<Value = u64> {
    let points = [
        0,
        1,
        16,
        256,
        4096,
        0xffff,
        u64::from(u32::MAX),
        REGION.guest,
        REGION.guest + REGION.size,
        REGION.guest + DATA,
        REGION.user,
        REGION.user + REGION.size,
        FILE,
        1 << 63,
        u64::MAX,
    ];
    let point = prop::sample::select(points.to_vec());
    prop_oneof![
        4 => (point, -64i64..64).prop_map(|(p, d)| p.wrapping_add_signed(d)),
        1 => any::<u64>(),
    ]
}

/// Type of a file that the peer sends.
#[derive(Clone, Copy, Debug)]
enum File {
    Memory,
    Small,
    Event,
    Pipe,
    Null,
    Socket,
    Directory,
}

fn open(file: File) -> OwnedFd {
    match file {
        File::Memory => volley_shm::memory_file("t", FILE as usize).unwrap(),
        File::Small => volley_shm::memory_file("t", 100).unwrap(),
        File::Event => rustix::event::eventfd(0, rustix::event::EventfdFlags::NONBLOCK).unwrap(),
        File::Pipe => std::io::pipe().unwrap().1.into(),
        File::Null => std::fs::File::open("/dev/null").unwrap().into(),
        File::Socket => std::os::unix::net::UnixStream::pair().unwrap().0.into(),
        File::Directory => std::fs::File::open("/").unwrap().into(),
    }
}

fn any_file() -> impl Strategy<Value = File> {
    use File::*;
    prop::sample::select(vec![
        Memory, Memory, Small, Event, Event, Pipe, Null, Socket, Directory,
    ])
}

/// One action of a hostile front end.
#[derive(Clone, Debug)]
enum Act {
    /// A message with random words after its header.
    Message(u32, u32, Vec<u64>, Vec<File>),
    /// A memory table.
    Table(Vec<[u64; 4]>, Vec<File>),
    /// A ring message with likely numbers.
    Ring(u32, u32, u32),
    /// Ring addresses.
    Address(u32, u64, u64, u64),
    /// A correct handshake.
    Handshake(u64, u32),
    /// Bytes that are not a message.
    Bytes(Vec<u8>),
    /// Packets from Volley.
    Traffic,
}

fn features() -> impl Strategy<Value = u64> {
    use volley_vhost::feature as f;
    let all = [
        f::VERSION_1,
        f::MRG_RXBUF,
        f::RING_PACKED,
        f::EVENT_IDX,
        f::INDIRECT_DESC,
        f::PROTOCOL,
        f::CSUM,
        f::HOST_TSO4,
    ];
    prop::sample::subsequence(all.to_vec(), 0..all.len())
        .prop_map(|bits| bits.iter().fold(f::VERSION_1, |all, bit| all | bit))
}

fn act() -> impl Strategy<Value = Act> {
    let ring_codes = [8, 10, 11, 18u32];
    prop_oneof![
        3 => (0u32..42, any::<u32>(), prop::collection::vec(near(), 0..6), prop::collection::vec(any_file(), 0..3))
            .prop_map(|(c, flags, words, files)| Act::Message(c, flags & 0xfffffff8 | 1, words, files)),
        2 => (prop::collection::vec([near(), near(), near(), near()], 0..9), prop::collection::vec(any_file(), 0..9))
            .prop_map(|(specs, files)| Act::Table(specs, files)),
        3 => (prop::sample::select(ring_codes.to_vec()), 0u32..34, prop_oneof![0u32..300, any::<u32>()])
            .prop_map(|(c, ring, num)| Act::Ring(c, ring, num)),
        2 => (0u32..4, near(), near(), near()).prop_map(|(r, d, a, u)| Act::Address(r, d, a, u)),
        4 => (features(), prop_oneof![Just(64u32), Just(128), 0u32..200]).prop_map(|(f, n)| Act::Handshake(f, n)),
        1 => prop::collection::vec(any::<u8>(), 1..40).prop_map(Act::Bytes),
        2 => Just(Act::Traffic),
    ]
}

fn perform(act: &Act, link: &Link, ram: &Ram, bench: &mut Bench) {
    let borrow = |files: &[OwnedFd]| -> Vec<OwnedFd> {
        files.iter().map(|f| f.try_clone().unwrap()).collect()
    };
    match act {
        Act::Message(what, flags, words, files) => {
            let files: Vec<OwnedFd> = files.iter().map(|f| open(*f)).collect();
            let fds: Vec<_> = files.iter().map(AsFd::as_fd).collect();
            let payload: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
            let mut bytes = encode(*what, 0, &payload);
            bytes[4..8].copy_from_slice(&flags.to_le_bytes());
            let _ = link.send(&bytes, &fds);
        }
        Act::Table(specs, files) => {
            let spec = |s: &[u64; 4]| RegionSpec {
                guest: s[0],
                size: s[1],
                user: s[2],
                offset: s[3],
            };
            let specs: Vec<_> = specs.iter().map(spec).collect();
            let files: Vec<OwnedFd> = borrow(&files.iter().map(|f| open(*f)).collect::<Vec<_>>());
            let fds: Vec<_> = files.iter().take(8).map(AsFd::as_fd).collect();
            let _ = link.send(&encode(code::SET_MEM_TABLE, 0, &regions(&specs)), &fds);
        }
        Act::Ring(what, ring, num) => say(link, *what, &pair(*ring, *num), &[]),
        Act::Address(ring, desc, avail, used) => {
            let addr = RingAddr {
                ring: *ring,
                flags: 0,
                desc: *desc,
                avail: *avail,
                used: *used,
            };
            say(link, code::SET_VRING_ADDR, &ring_addr(&addr), &[]);
        }
        Act::Handshake(features, size) => handshake(link, ram, *features, *size),
        Act::Bytes(bytes) => _ = link.send(bytes, &[]),
        Act::Traffic => {
            bench.send("x", (0..40).map(|i| frame(60 + i as usize * 50, i)));
            bench.step();
        }
    }
}

/// A descriptor of a hostile guest.
fn descriptor() -> impl Strategy<Value = [u8; 16]> {
    let good = (
        0u64..0x6_0000,
        prop_oneof![0u32..4096, Just(16), Just(32), Just(48)],
    )
        .prop_map(|(at, len)| (REGION.guest + DATA + (at & !15), len));
    let bad = (near(), prop_oneof![0u32..4096, any::<u32>()]);
    let flags = prop_oneof![6 => 0u16..4, 1 => 4u16..8, 2 => Just(0x80u16), 2 => Just(0x82), 1 => any::<u16>()];
    (
        prop_oneof![5 => good, 1 => bad],
        flags,
        prop_oneof![8 => 0u16..64, 1 => any::<u16>()],
        any::<bool>(),
    )
        .prop_map(|((addr, len), flags, next, packed)| {
            let mut d = [0; 16];
            d[..8].copy_from_slice(&addr.to_le_bytes());
            d[8..12].copy_from_slice(&len.to_le_bytes());
            let (a, b) = if packed { (next, flags) } else { (flags, next) };
            d[12..14].copy_from_slice(&a.to_le_bytes());
            d[14..].copy_from_slice(&b.to_le_bytes());
            d
        })
}

/// What a hostile guest writes into its rings between two polls.
#[derive(Clone, Debug)]
struct Scribble {
    ring: u64,
    descs: Vec<[u8; 16]>,
    /// Entries of the available ring, and the advance of its index.
    heads: Vec<u16>,
    ahead: u16,
    /// Another word to overwrite: address, value.
    other: (u64, u64),
    /// An indirect table somewhere in the data.
    table: Vec<[u8; 16]>,
}

fn scribble() -> impl Strategy<Value = Scribble> {
    let head = prop_oneof![9 => 0u16..64, 1 => any::<u16>()];
    let ahead = prop_oneof![6 => 1u16..64, 1 => Just(64), 1 => any::<u16>()];
    let other = (
        prop_oneof![DESC..USED + 0x1000, 0..REGION.size],
        any::<u64>(),
    );
    let descs = prop::collection::vec(descriptor(), 64);
    let table = prop::collection::vec(descriptor(), 0..8);
    (
        0u64..2,
        descs,
        prop::collection::vec(head, 64),
        ahead,
        other,
        table,
    )
        .prop_map(|(ring, descs, heads, ahead, other, table)| Scribble {
            ring,
            descs,
            heads,
            ahead,
            other,
            table,
        })
}

fn write_scribble(s: &Scribble, ram: &Ram, index: &mut [u16; 2]) {
    let base = s.ring * 0x800;
    ram.set(base + DESC, &s.descs.concat());
    let heads: Vec<u8> = s.heads.iter().flat_map(|h| h.to_le_bytes()).collect();
    ram.set(base + AVAIL + 4, &heads);
    ram.set(DATA, &s.table.concat());
    ram.set(s.other.0, &s.other.1.to_le_bytes());
    let index = &mut index[s.ring as usize];
    *index = index.wrapping_add(s.ahead);
    ram.set(base + AVAIL + 2, &index.to_le_bytes());
}

fn cases() -> ProptestConfig {
    let small = std::env::var_os("VOLLEY_SMALL").is_some();
    ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(if small { 30 } else { 150 })
    }
}

fn options(packed: bool) -> VirtioUser {
    VirtioUser {
        packed,
        event_idx: true,
        gso: true,
        ring: 64,
        ..spec(Path::new("x"), SocketRole::Client)
    }
}

/// A peer that sends messages in any order.
fn messages(acts: &[Act], packed: bool) {
    let _alone = support::alone();
    let mut scene = Scene::new(false, options(packed));
    let ram = Ram::new();
    let mut link = scene.meet();
    for act in acts {
        perform(act, &link, &ram, &mut scene.bench);
        scene.bench.step();
        if scene.bench.show("x").state.starts_with("no peer") {
            link = scene.meet();
        }
    }
    scene.assert_sound();
    ram.assert_untouched();
    drop(link);
    assert!(scene.bench.until(5, |b| !b.is_up("x")));
    // The next peer finds the interface in its initial state.
    let link = scene.meet();
    handshake(&link, &ram, volley_vhost::feature::VERSION_1, 64);
    assert!(
        scene.bench.until(5, |b| b.is_up("x")),
        "{:?}",
        scene.bench.show("x")
    );
}

/// A guest that writes anything into its rings.
fn rings_of_a_guest(features: u64, all: &[Scribble]) {
    let _alone = support::alone();
    let mut scene = Scene::new(false, options(true));
    let ram = Ram::new();
    let link = scene.meet();
    handshake(&link, &ram, features, 64);
    scene.bench.until(5, |b| b.is_up("x"));
    let mut index = [0; 2];
    for s in all {
        write_scribble(s, &ram, &mut index);
        let frames = (0..30).map(|i| frame(60 + i as usize * 90, i));
        scene.bench.send("x", frames);
        scene.bench.step();
        scene.bench.step();
    }
    scene.assert_sound();
    ram.assert_untouched();
}

/// A word that a back end writes, its address, and how many of its bits.
type Write = (u64, u64, u64);

/// A back end that writes anything into the rings of a virtio-user interface.
fn rings_of_a_back_end(packed: bool, writes: &[Write], answers: &[u64]) {
    let _alone = support::alone();
    let mut scene = Scene::new(true, options(packed));
    let mut link = scene.meet();
    let (spec, file) = answer(&mut scene, &mut link, answers);
    let Some(file) = file else {
        return scene.assert_sound();
    };
    let all = RegionSpec {
        guest: 0,
        size: spec.size,
        user: 0,
        offset: spec.offset,
    };
    let memory = Memory::map(&[all], vec![file], &Account::new()).unwrap();
    for (nth, (at, word, small)) in writes.iter().enumerate() {
        // Rings come first in each ring's memory; small words are likely indices, ids and lengths.
        let word = match small {
            0 => *word,
            1 => word & 0x3f,
            _ => word & 0x003f_0000_07ff_003f,
        };
        let ring = if nth % 2 == 0 { 0 } else { 64 * 33 * 64 + 2048 };
        let place = memory.guest(ring + (at & !7), 8).unwrap();
        memory.view(place).unwrap().store64(0, word);
        if nth % 10 == 0 {
            let frames = (0..20).map(|i| frame(60 + i as usize * 200, i));
            scene.bench.send("x", frames);
        }
        scene.bench.step();
    }
    scene.assert_sound();
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    prop::collection::vec(act(), 1..25)
}

fn scribbles() -> impl Strategy<Value = Vec<Scribble>> {
    prop::collection::vec(scribble(), 1..12)
}

fn writes() -> impl Strategy<Value = Vec<Write>> {
    prop::collection::vec((0u64..0x3000, any::<u64>(), 0u64..3), 1..300)
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn any_order_of_messages(acts in acts(), packed: bool) {
        messages(&acts, packed);
    }

    #[test]
    fn any_rings_of_a_guest(features in features(), all in scribbles()) {
        rings_of_a_guest(features, &all);
    }

    #[test]
    fn any_rings_of_a_back_end(packed: bool, writes in writes(), answers in prop::collection::vec(any::<u64>(), 3)) {
        rings_of_a_back_end(packed, &writes, &answers);
    }
}

/// Resident memory of this process in KiB, and its files and maps, while no other test runs.
fn footprint() -> (u64, (usize, usize)) {
    let _alone = support::alone();
    (resident_kib(), resources())
}

/// `VOLLEY_OPERATIONS=N` makes it N operations: messages, and writes into shared memory.
#[test]
fn many_operations_cost_no_memory() {
    let asked = std::env::var("VOLLEY_OPERATIONS").ok();
    let wanted: usize = asked.map_or(1500, |text| text.parse().unwrap());
    let mut runner = TestRunner::deterministic();
    let one_of_each = (acts(), features(), scribbles(), writes(), any::<bool>());
    let (mut done, mut rounds, mut warm) = (0, 0, None);
    while done < wanted {
        let (acts, features, scribbles, writes, packed) =
            one_of_each.new_tree(&mut runner).unwrap().current();
        messages(&acts, packed);
        rings_of_a_guest(features, &scribbles);
        rings_of_a_back_end(packed, &writes, &[done as u64, features, 0]);
        // A scribble writes 64 descriptors, 64 heads, a table, a word and an index.
        let scribbled = scribbles.iter().map(|s| 130 + s.table.len());
        done += acts.len() + scribbled.sum::<usize>() + writes.len();
        rounds += 1;
        if rounds == 20 {
            warm = Some(footprint());
        }
    }
    let what =
        format!("{done} operations of hostile vhost-user and virtio peers in {rounds} rounds");
    let Some((before, open)) = warm else {
        return println!("{what}, at least {wanted}");
    };
    let (now, left) = footprint();
    let more = now.saturating_sub(before);
    println!("{what}: {more} KiB more than after 20 rounds, at most {GROWTH_KIB}");
    assert!(more < GROWTH_KIB, "{more} KiB");
    assert_eq!(left, open, "files and maps");
}

/// Most that the memory of this process may grow after the first rounds, in KiB.
const GROWTH_KIB: u64 = 16 << 10;

/// A back end that answers with random numbers; returns the memory that the front end sent, if it did.
fn answer(scene: &mut Scene, link: &mut Link, answers: &[u64]) -> (RegionSpec, Option<OwnedFd>) {
    let (mut spec, mut file, mut nth) = (REGION, None, 0);
    for _ in 0..50 {
        scene.bench.step();
        match link.receive() {
            Ok(Arrived::Message(mut m)) => match m.code {
                1 | 15 | 17 => {
                    let number =
                        answers[nth % answers.len()] | if m.code == 1 { 1 << 32 } else { 0 };
                    let _ = link.send(&reply(m.code, number), &[]);
                    nth += 1;
                }
                code::SET_MEM_TABLE => {
                    spec = m.regions().unwrap()[0];
                    file = m.files.pop();
                }
                _ => {}
            },
            Ok(Arrived::Nothing) if scene.bench.is_up("x") => break,
            Ok(_) => {}
            Err(_) => break,
        }
    }
    (spec, file)
}

/// A split descriptor.
fn desc(addr: u64, len: u32, flags: u16, next: u16) -> [u8; 16] {
    let mut d = [0u8; 16];
    d[..8].copy_from_slice(&addr.to_le_bytes());
    d[8..12].copy_from_slice(&len.to_le_bytes());
    d[12..14].copy_from_slice(&flags.to_le_bytes());
    d[14..].copy_from_slice(&next.to_le_bytes());
    d
}

/// Name of a fault, and the descriptors, first available entry and available index that cause it.
fn faulty() -> [(&'static str, Vec<u8>, u16, u16); 12] {
    let data = REGION.guest + DATA;
    let end = REGION.guest + REGION.size;
    let loops = [desc(data, 60, 1, 1), desc(data, 60, 1, 0)].concat();
    let table = REGION.guest + DATA;
    [
        ("index-jump", vec![], 0, 65),
        ("index-out-of-range", vec![], 64, 1),
        ("index-out-of-range", desc(data, 60, 1, 64).to_vec(), 0, 1),
        ("descriptor-loop", loops, 0, 1),
        (
            "address-outside-memory",
            desc(end - 1, 60, 0, 0).to_vec(),
            0,
            1,
        ),
        (
            "address-outside-memory",
            desc(u64::MAX, 60, 0, 0).to_vec(),
            0,
            1,
        ),
        (
            "descriptor-wrong-direction",
            desc(data, 60, 2, 0).to_vec(),
            0,
            1,
        ),
        ("bad-indirect-table", desc(table, 17, 4, 0).to_vec(), 0, 1),
        ("bad-indirect-table", desc(table, 0, 4, 0).to_vec(), 0, 1),
        (
            "bad-indirect-table",
            desc(end - 16, 32, 4, 0).to_vec(),
            0,
            1,
        ),
        ("bad-indirect-table", desc(table, 32, 5, 0).to_vec(), 0, 1),
        (
            "bad-indirect-table",
            desc(table + 64, 32, 4, 0).to_vec(),
            0,
            1,
        ),
    ]
}

/// A guest that is otherwise correct causes each ring fault once.
#[test]
fn faults_have_their_names() {
    let _alone = support::alone();
    let table = REGION.guest + DATA;
    for (name, descs, head, ahead) in faulty() {
        let mut scene = Scene::new(false, options(false));
        let ram = Ram::new();
        // The last case's target: a table whose first entry is indirect again.
        ram.set(DATA + 64, &desc(table, 32, 4, 0));
        let link = scene.meet();
        use volley_vhost::feature as f;
        handshake(&link, &ram, f::VERSION_1 | f::INDIRECT_DESC, 64);
        assert!(
            scene.bench.until(5, |b| b.is_up("x")),
            "{:?}",
            scene.bench.show("x")
        );
        ram.set(0x800 + DESC, &descs);
        ram.set(0x800 + AVAIL + 4, &head.to_le_bytes());
        ram.set(0x800 + AVAIL + 2, &ahead.to_le_bytes());
        assert!(scene.bench.until(5, |b| !b.is_up("x")), "{name}");
        let row = scene.bench.show("x");
        assert!(
            row.fault.as_ref().unwrap().starts_with(name),
            "{name}: {row:?}"
        );
        assert!(scene.bench.reason("x").starts_with(name));
        assert_eq!(row.faults, 1);
        scene.assert_sound();
    }
}

/// The peer shrinks the memory that it shares while packets pass.
#[test]
fn memory_that_shrinks_is_a_fault() {
    let _alone = support::alone();
    let mut scene = Scene::new(false, options(false));
    let file = rustix::fs::memfd_create("t", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    rustix::fs::ftruncate(&file, FILE).unwrap();
    let whole = RegionSpec {
        guest: 0,
        size: FILE,
        user: 0,
        offset: 0,
    };
    let ram = Ram {
        all: Memory::map(&[whole], vec![file.try_clone().unwrap()], &Account::new()).unwrap(),
        file,
    };
    let link = scene.meet();
    handshake(&link, &ram, volley_vhost::feature::VERSION_1, 64);
    assert!(scene.bench.until(5, |b| b.is_up("x")));
    rustix::fs::ftruncate(&ram.file, 4096).unwrap();
    assert!(scene.bench.until(5, |b| !b.is_up("x")));
    assert!(
        scene.bench.reason("x").starts_with("memory-shrunk"),
        "{}",
        scene.bench.reason("x")
    );
    scene.assert_sound();
}

/// Hundreds of hostile connections leave no file, map or buffer behind.
#[test]
fn nothing_leaks() {
    let _alone = support::alone();
    let mut scene = Scene::new(false, options(false));
    let ram = Ram::new();
    let mut before = None;
    for round in 0..200u32 {
        let link = scene.meet();
        handshake(&link, &ram, volley_vhost::feature::VERSION_1, 64);
        let memory = volley_shm::memory_file("t", 4096).unwrap();
        say(
            &link,
            round % 40,
            &round.to_le_bytes(),
            &[memory.as_fd(), memory.as_fd()],
        );
        scene.bench.step();
        drop((link, memory));
        assert!(scene.bench.until(5, |b| !b.is_up("x")
            && b.show("x").state.starts_with("no peer")));
        let now = resources();
        assert_eq!(*before.get_or_insert(now), now, "round {round}");
    }
    scene.assert_sound();
}
