//! A guest that writes anything into its shared memory between the steps of the device's end of a ring.

use std::cell::RefCell;
use std::os::fd::OwnedFd;
use volley_shm::Account;
use volley_vhost::batch::{Batch, HEADER, Room};
use volley_vhost::device::{End, Layout, Notification, Reserved};
use volley_vhost::header::plain;
use volley_vhost::memory::{Memory, RegionSpec};

/// The file, whose middle is the region.
const FILE: usize = 3 << 16;
const REGION: RegionSpec = RegionSpec {
    guest: 0x10_0000,
    size: 1 << 16,
    user: 0x7f00_0000_0000,
    offset: 1 << 16,
};
const CANARY: u8 = 0xc5;
/// Offsets of the parts of the ring in the region.
const PARTS: [u64; 3] = [0, 0x1000, 0x2000];
/// Bytes of a frame that is sent, and capacity for a received one.
const FRAME: usize = 3000;

struct Arena {
    _file: OwnedFd,
    /// The whole file.
    all: Memory,
    /// The region, which the device can access.
    memory: Memory,
}

thread_local! {
    static ARENA: RefCell<Arena> = RefCell::new(Arena::new());
}

impl Arena {
    fn new() -> Arena {
        let file = volley_shm::memory_file("fuzz", FILE).expect("memory");
        let whole = RegionSpec {
            guest: 0,
            size: FILE as u64,
            user: 0,
            offset: 0,
        };
        let map = |spec| {
            let file = file.try_clone().expect("a file");
            Memory::map(&[spec], vec![file], &Account::new()).unwrap_or_else(|_| panic!("a map"))
        };
        let (all, memory) = (map(whole), map(REGION));
        let arena = Arena {
            _file: file,
            all,
            memory,
        };
        arena.put(0, &[CANARY; FILE]);
        arena
    }

    fn put(&self, at: u64, bytes: &[u8]) {
        let place = self.all.guest(at, bytes.len() as u32).expect("in the file");
        self.all.view(place).expect("in the file").write(0, bytes);
    }

    fn assert_untouched(&self) {
        let mut all = vec![0; FILE];
        let place = self.all.guest(0, FILE as u32).expect("all");
        self.all.view(place).expect("all").read(0, &mut all);
        let (start, end) = (
            REGION.offset as usize,
            (REGION.offset + REGION.size) as usize,
        );
        let mut around = all[..start].iter().chain(&all[end..]);
        assert!(
            around.all(|b| *b == CANARY),
            "memory that is not shared was written"
        );
    }
}

/// Runs a script: four bytes of the ring's properties, then steps of the guest and of the device.
pub fn attack<E: End>(new: fn(Layout, &Memory) -> E, bytes: &[u8]) {
    let Some(([size, options, a, b], script)) = bytes.split_first_chunk::<4>() else {
        return;
    };
    ARENA.with_borrow(|arena| {
        arena.put(REGION.offset, &[0; REGION.size as usize]);
        let memory = &arena.memory;
        let size = 1u16 << (size % 8);
        let part = |n: usize, len: u32| {
            memory
                .guest(REGION.guest + PARTS[n], len)
                .expect("in the region")
        };
        let layout = Layout {
            size,
            desc: part(0, 16 * u32::from(size)),
            avail: part(1, 6 + 2 * u32::from(size)),
            used: part(2, 6 + 8 * u32::from(size)),
            indirect: options & 1 != 0,
            event_idx: options & 2 != 0,
            mergeable: options & 4 != 0,
            base: u32::from(u16::from_le_bytes([*a, *b])) & 0x7fff | 0x8000_8000,
        };
        let mut guest = Script {
            arena,
            rest: script,
        };
        device(&mut new(layout, memory), memory, &mut guest);
        arena.assert_untouched();
    });
}

struct Script<'a> {
    arena: &'a Arena,
    rest: &'a [u8],
}

impl Script<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    /// The guest writes into its memory.
    fn write(&mut self) -> Option<()> {
        let (low, high, len) = (self.byte()?, self.byte()?, self.byte()?);
        let at = usize::from(u16::from_le_bytes([low, high]));
        let len = usize::from(len)
            .min(self.rest.len())
            .min(REGION.size as usize - at);
        let (bytes, rest) = self.rest.split_at(len);
        self.rest = rest;
        if !bytes.is_empty() {
            self.arena.put(REGION.offset + at as u64, bytes);
        }
        Some(())
    }
}

fn device<E: End>(end: &mut E, memory: &Memory, guest: &mut Script<'_>) -> Option<()> {
    let (mut batch, mut room) = (Batch::default(), Room::default());
    loop {
        match guest.byte()? % 8 {
            0..=3 => guest.write()?,
            4 => {
                batch.clear();
                let most = usize::from(guest.byte()?);
                let fault = end.look(memory, &mut batch, most).is_err();
                assert!(batch.entries().len() <= most);
                receive(memory, &batch);
                end.done(memory, &batch, batch.entries().len());
                if fault {
                    return None;
                }
            }
            5 => {
                let len = usize::from(guest.byte()?) * 12 % FRAME;
                send(end, memory, &mut room, len)?;
            }
            6 => {
                end.flush(memory, &mut room);
                room.clear();
            }
            _ => {
                end.listen(memory, Notification::On);
                let _ = (end.waits(memory), end.base());
                end.ahead(memory, 1);
                end.listen(memory, Notification::Off);
            }
        }
    }
}

fn receive(memory: &Memory, batch: &Batch) {
    let mut to = [0; FRAME];
    for at in 0..batch.entries().len() {
        let len = batch.frame_len(at).min(FRAME);
        assert!(batch.copy(memory, at, HEADER, &mut to[..len]) <= len);
    }
}

/// Sends a frame; none if the ring has a fault.
fn send<E: End>(end: &mut E, memory: &Memory, room: &mut Room, len: usize) -> Option<()> {
    if room.is_full() {
        return Some(());
    }
    room.begin();
    match end.reserve(memory, room, HEADER + len) {
        Ok(Reserved::Room) => {
            assert!(room.bytes() >= HEADER + len, "there is room for the frame");
            let header = plain(end.buffer_count(room.buffers()));
            room.fill(memory, header, &[7; FRAME][..len]);
            Some(())
        }
        Ok(_) => {
            room.cancel();
            Some(())
        }
        Err(_) => None,
    }
}
