//! Dropped packets by reason and receive interface, with the last packet of each key: written by the worker, read by
//! the control thread.
//!
//! Each worker has a table and is its only writer. A slot is found by reason and interface, and is never freed. When all
//! slots that are searched for a key are in use, packets of that key are not in the table (the counter of their node
//! includes them). A sample is written between two increments of a sequence number, which is odd meanwhile: a reader that
//! finds an odd or changed number tries again, and the writer never waits.

use crate::data::packet::PacketView;
use crate::data::stats;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// The number of slots of a table.
const SLOTS: usize = 1024;
/// The number of slots that are searched for one key.
const PROBE_LENGTH: usize = 16;
/// The words of a sample.
const SAMPLE_WORDS: usize = 16;
/// The maximum number of bytes of a sample.
pub const SAMPLE: usize = SAMPLE_WORDS * 8;
/// The maximum number of attempts to read a sample.
const READ_RETRIES: usize = 8;

/// The key of a drop: a word of the `ERR` column, and the receive interface.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct DropKey {
    pub(crate) rx: u32,
    pub(crate) reason: u32,
}

impl DropKey {
    /// Never 0, which marks a free slot.
    fn key(self) -> u64 {
        u64::from((self.rx & 0x7fff_ffff) + 1) << 32 | u64::from(self.reason)
    }

    fn of_key(key: u64) -> Option<DropKey> {
        Some(DropKey {
            rx: ((key >> 32) as u32).checked_sub(1)?,
            reason: key as u32,
        })
    }
}

/// The last packet of a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DropSample {
    /// The time on the worker's clock, in nanoseconds.
    pub at_ns: u64,
    /// The length at the receive interface.
    pub len: usize,
    /// The first bytes, at most [`SAMPLE`], from the receive interface on: outer headers included.
    pub bytes: Vec<u8>,
    /// The start of a checksum to complete, relative to the first byte.
    pub unfinished_checksum: Option<usize>,
}

#[derive(Default)]
#[repr(align(64))]
struct DropSlot {
    key: AtomicU64,
    packets: AtomicU64,
    /// The number of the vector with the sample.
    vector: AtomicU64,
    /// Odd while the rest is written; 0 while there is no sample.
    sequence: AtomicU32,
    len: AtomicU32,
    /// The start of the checksum to complete, plus 1; 0 for none.
    sum: AtomicU32,
    at_ns: AtomicU64,
    words: [AtomicU64; SAMPLE_WORDS],
}

impl DropSlot {
    fn write(&self, packet: &PacketView<'_>, now_ns: u64) {
        let (mut bytes, mut held) = ([0u8; SAMPLE], 0);
        let back = packet.moved();
        packet.segments(back, |segment| {
            let part = segment.len().min(SAMPLE - held);
            bytes[held..held + part].copy_from_slice(&segment[..part]);
            held += part;
        });
        let sequence = self.sequence.load(Ordering::Relaxed);
        self.sequence
            .store(sequence.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release);
        let len = (packet.len() + back) as u32;
        self.len.store(len, Ordering::Relaxed);
        let sum = packet.offload().checksum;
        let sum = sum.map_or(0, |sum| u32::from(sum.start) + back as u32 + 1);
        self.sum.store(sum, Ordering::Relaxed);
        self.at_ns.store(now_ns, Ordering::Relaxed);
        for (cell, part) in self.words.iter().zip(bytes.as_chunks::<8>().0) {
            cell.store(u64::from_le_bytes(*part), Ordering::Relaxed);
        }
        // 0 means that there is no sample.
        let done = sequence.wrapping_add(2).max(2);
        self.sequence.store(done, Ordering::Release);
    }

    /// The sample; none while there is no sample, or when it changes during every attempt.
    fn read(&self) -> Option<DropSample> {
        for _ in 0..READ_RETRIES {
            let before = self.sequence.load(Ordering::Acquire);
            if before == 0 {
                return None;
            }
            let words = self.words.each_ref().map(|w| w.load(Ordering::Relaxed));
            let len = self.len.load(Ordering::Relaxed) as usize;
            let at_ns = self.at_ns.load(Ordering::Relaxed);
            let sum = self.sum.load(Ordering::Relaxed);
            fence(Ordering::Acquire);
            if before & 1 == 0 && self.sequence.load(Ordering::Relaxed) == before {
                let mut bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
                bytes.truncate(len);
                return Some(DropSample {
                    at_ns,
                    len,
                    bytes,
                    unfinished_checksum: sum.checked_sub(1).map(|start| start as usize),
                });
            }
            std::hint::spin_loop();
        }
        None
    }
}

/// The drops of one worker.
#[derive(Default)]
pub(crate) struct DropTable {
    /// Allocated with the worker: there are usually fewer workers than worker ids.
    places: OnceLock<Box<[DropSlot]>>,
}

impl DropTable {
    /// Allocate the slots, on the control thread.
    pub(crate) fn allocate(&self) {
        let room = || (0..SLOTS).map(|_| DropSlot::default()).collect();
        self.places.get_or_init(room);
    }

    /// The slot of a key; a free slot is assigned to a new key.
    #[inline]
    fn slot(&self, kind: DropKey) -> Option<&DropSlot> {
        let places = self.places.get()?;
        let key = kind.key();
        let start = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54) as usize;
        for step in 0..PROBE_LENGTH {
            let place = &places[(start + step) % SLOTS];
            match place.key.load(Ordering::Relaxed) {
                found if found == key => return Some(place),
                0 => {
                    place.key.store(key, Ordering::Relaxed);
                    return Some(place);
                }
                _ => {}
            }
        }
        None
    }

    /// Record that a packet of vector `vector` is dropped. The rows of a vector are passed in reverse order: the first
    /// packet of a key is the last one of the vector, and only that packet is kept.
    #[inline]
    pub(crate) fn record(&self, kind: DropKey, packet: &PacketView<'_>, vector: u64, now_ns: u64) {
        let Some(place) = self.slot(kind) else {
            return;
        };
        stats::add_relaxed(&place.packets, 1);
        if place.vector.load(Ordering::Relaxed) != vector {
            place.vector.store(vector, Ordering::Relaxed);
            place.write(packet, now_ns);
        }
    }

    /// All keys: the number of packets, and the last packet.
    pub(crate) fn read(&self) -> impl Iterator<Item = (DropKey, u64, Option<DropSample>)> {
        self.places.get().into_iter().flatten().filter_map(|place| {
            let kind = DropKey::of_key(place.key.load(Ordering::Relaxed))?;
            Some((kind, place.packets.load(Ordering::Relaxed), place.read()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::col::Col;
    use crate::data::frame::{Frame, IDX, POS};
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;
    use volley_buf::{Pool, START};

    /// A frame of one packet of `len` bytes `fill`, in a buffer that is not freed.
    fn frame(pool: &Arc<Pool>, fill: u8, len: usize) -> Box<Frame> {
        let mut cache = pool.cache();
        let mut idx = [0];
        assert_eq!(cache.alloc(&mut idx), 1);
        let mut frame = Frame::new(4);
        frame.n = 1;
        for (col, word) in [
            (IDX, idx[0]),
            (POS, START as u32),
            (Col::LEN.at(), len as u32),
            (Col::RX.at(), 0),
        ] {
            frame.cols[col].words_mut(1)[0] = word;
        }
        // SAFETY: the buffer is owned here, and `len` bytes fit behind its start.
        unsafe { pool.at(idx[0], START).write_bytes(fill, len) };
        frame
    }

    #[test]
    fn the_last_packet_of_each_kind_is_kept() {
        let pool = Pool::new(64).unwrap();
        let book = DropTable::default();
        book.allocate();
        let (short, long) = (frame(&pool, 7, 60), frame(&pool, 9, 900));
        let views = [&short, &long].map(|f| PacketView::new(&pool, f, 0));
        let kind = |rx, reason| DropKey { rx, reason };
        book.record(kind(1, 5), &views[0], 1, 10);
        book.record(kind(1, 5), &views[1], 1, 10);
        book.record(kind(2, 5), &views[1], 2, 20);
        let mut found: Vec<_> = book.read().collect();
        found.sort_by_key(|(kind, ..)| *kind);
        let sample = |at_ns, len, bytes| {
            Some(DropSample {
                at_ns,
                len,
                bytes,
                unfinished_checksum: None,
            })
        };
        // The first recorded packet of a vector stays.
        assert_eq!(
            found,
            [
                (kind(1, 5), 2, sample(10, 60, vec![7; 60])),
                (kind(2, 5), 1, sample(20, 900, vec![9; SAMPLE])),
            ]
        );
    }

    #[test]
    fn a_full_book_leaves_kinds_out_and_keeps_the_others() {
        let pool = Pool::new(64).unwrap();
        let book = DropTable::default();
        book.allocate();
        let packet = frame(&pool, 1, 60);
        let view = PacketView::new(&pool, &packet, 0);
        for round in 0..3 {
            for reason in 0..4 * SLOTS as u32 {
                book.record(DropKey { rx: 3, reason }, &view, round + 1, 1);
            }
        }
        let found: Vec<_> = book.read().collect();
        assert!(found.len() > SLOTS / 2 && found.len() <= SLOTS);
        assert!(found.iter().all(|(_, packets, _)| *packets == 3));
    }

    #[test]
    fn a_reader_never_sees_half_a_sample() {
        let pool = Pool::new(64).unwrap();
        let book = Arc::new(DropTable::default());
        book.allocate();
        let kind = DropKey { rx: 0, reason: 1 };
        let stop = Arc::new(AtomicBool::new(false));
        let writer = {
            let (pool, book, stop) = (pool.clone(), book.clone(), stop.clone());
            std::thread::spawn(move || {
                let frames = [frame(&pool, 0x11, 128), frame(&pool, 0x22, 128)];
                let mut vector = 0;
                while !stop.load(Ordering::Relaxed) {
                    vector += 1;
                    let view = PacketView::new(&pool, &frames[vector as usize % 2], 0);
                    book.record(kind, &view, vector, vector);
                    // valgrind stops threads at fixed numbers of steps, which may be in the middle of a write every
                    // time: here it may not.
                    std::thread::yield_now();
                }
            })
        };
        let small = std::env::var_os("VOLLEY_SMALL").is_some();
        let (mut whole, enough) = (0, if small { 500 } else { 20_000 });
        while whole < enough {
            let Some((_, _, Some(sample))) = book.read().next() else {
                continue;
            };
            let first = [0x11, 0x22][sample.at_ns as usize % 2];
            assert_eq!(sample.bytes, vec![first; 128], "vector {}", sample.at_ns);
            whole += 1;
        }
        stop.store(true, Ordering::Relaxed);
        writer.join().unwrap();
    }
}
