//! Cache of parser results. The result for a packet depends on few of its bytes: the trail of a walk records these bits and
//! their values, and a later packet with the same values needs no walk.
//!
//! - On exit: a packet that an entry fits has the same headers at the same offsets as the packet of the entry.
//! - A walk that read beyond the window, or that ended at the end of the packet, gets no entry.
//! - At most [`MOST`] entries; packets of further types are walked, and occasionally replace an entry.

use crate::parser::{Features, bits};

/// Bytes at the start of a packet that entries cover.
pub(crate) const WINDOW: usize = 64;
/// Largest number of entries.
const MOST: usize = 8;
/// One of this many walks without an entry replaces an entry.
const REPLACE: u32 = 64;
/// Largest number of fields of an entry.
const FIELDS: usize = 8;

/// The window as words, with the bytes in memory order.
pub(crate) type Front = [u64; WINDOW / 8];

/// The window of a packet.
#[inline(always)]
pub(crate) fn front(bytes: &[u8; WINDOW]) -> Front {
    let (words, _) = bytes.as_chunks::<8>();
    std::array::from_fn(|k| u64::from_ne_bytes(words[k]))
}

/// A field of a parsed header: slot, first bit from the packet's start, bits.
type Field = (u8, u16, u8);

/// The bits of a packet that a walk depends on.
pub(crate) struct Trail {
    mask: [u8; WINDOW],
    /// Least packet length: a shorter packet may end inside the bytes that the walk read.
    least: usize,
    fields: [Field; FIELDS],
    n: usize,
    /// Whether the walk may become an entry.
    whole: bool,
}

impl Default for Trail {
    fn default() -> Self {
        Trail {
            mask: [0; WINDOW],
            least: 0,
            fields: [(0, 0, 0); FIELDS],
            n: 0,
            whole: true,
        }
    }
}

impl Trail {
    /// Records that the walk depends on these bits of a byte.
    pub(crate) fn asked(&mut self, at: usize, mask: u8) {
        self.passed(at + 1);
        match self.mask.get_mut(at) {
            Some(all) => *all |= mask,
            None => self.whole = false,
        }
    }

    /// Records that the packet has bytes up to `end`, because a whole header was read.
    pub(crate) fn passed(&mut self, end: usize) {
        self.least = self.least.max(end);
    }

    /// Records that a field was extracted.
    pub(crate) fn took(&mut self, slot: u8, bit: usize, bits: u8) {
        match (self.fields.get_mut(self.n), u16::try_from(bit)) {
            (Some(field), Ok(bit)) => {
                *field = (slot, bit, bits);
                self.n += 1;
                // A field behind the header may be truncated by the end of the packet.
                self.whole &= usize::from(bit) + usize::from(bits) <= 8 * self.least;
            }
            _ => self.whole = false,
        }
    }

    /// Records that the end of the packet stopped the walk.
    pub(crate) fn cut(&mut self) {
        self.whole = false;
    }
}

/// One cached walk.
struct LearnedEntry {
    mask: Front,
    value: Front,
    least: usize,
    seen: u64,
    path: u64,
    fields: [Field; FIELDS],
    n: usize,
    /// Rank from the matcher, if no field value can change it.
    rank: Option<u32>,
}

/// Entries for the program of one table.
#[derive(Default)]
pub(crate) struct LearnedEntries {
    all: Vec<LearnedEntry>,
    walks: u32,
    replaced: usize,
}

impl LearnedEntries {
    /// Removes all entries, for a new table.
    pub(crate) fn clear(&mut self) {
        self.all.clear();
    }

    /// The entry that fits a packet whose first segment has `len` bytes.
    #[inline(always)]
    pub(crate) fn fits(&self, front: &Front, len: usize) -> Option<usize> {
        self.all.iter().position(|memo| {
            let differs = |k: usize| (front[k] ^ memo.value[k]) & memo.mask[k];
            let odd = (0..WINDOW / 8).fold(0, |odd, k| odd | differs(k));
            odd == 0 && len >= memo.least
        })
    }

    /// Rank of packets with this entry; none if it depends on field values.
    #[inline(always)]
    pub(crate) fn rank(&self, memo: usize) -> Option<u32> {
        self.all[memo].rank
    }

    /// Restores the result of the walk.
    pub(crate) fn recall(&self, memo: usize, packet: &[u8], out: &mut Features) {
        let memo = &self.all[memo];
        (out.seen, out.path) = (memo.seen, memo.path);
        for &(slot, bit, count) in &memo.fields[..memo.n] {
            out.set(slot, bits(packet, bit, count));
        }
    }

    /// Adds an entry for a walk and its result.
    pub(crate) fn note(&mut self, front: &Front, trail: &Trail, found: &Features, rank: u32) {
        self.walks = self.walks.wrapping_add(1);
        let full = self.all.len() >= MOST;
        if !trail.whole || (full && !self.walks.is_multiple_of(REPLACE)) {
            return;
        }
        let mask = self::front(&trail.mask);
        let memo = LearnedEntry {
            mask,
            value: std::array::from_fn(|k| front[k] & mask[k]),
            least: trail.least,
            seen: found.seen,
            path: found.path,
            fields: trail.fields,
            n: trail.n,
            rank: (trail.n == 0).then_some(rank),
        };
        if full {
            self.replaced = (self.replaced + 1) % MOST;
            self.all[self.replaced] = memo;
        } else {
            self.all.push(memo);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parser::{Program, SLOTS};
    use proptest::prelude::*;

    const WANTS: [&str; 7] = [
        "ip4.dst",
        "ip6.dst",
        "udp.dst",
        "tcp",
        "vlan.id",
        "vxlan.vni",
        "ip4@2.src",
    ];

    /// A packet by `kind`: Ethernet, possibly a tag, IPv4 with options or IPv6, UDP, TCP or VXLAN with an inner IPv4 packet.
    fn packet(kind: u8) -> Vec<u8> {
        let mut p = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
        if kind & 1 != 0 {
            p.extend([0x81, 0, 0, 7]);
        }
        let proto = if kind & 2 != 0 { 17 } else { 6 };
        if kind & 4 != 0 {
            p.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 40, proto, 64]);
            p.extend([7; 32]);
        } else {
            let words = 5 + (kind >> 3 & 1);
            p.extend([8, 0, 0x40 | words, 0, 0, 80, 0, 0, 0, 0, 64, proto, 0, 0]);
            p.extend(vec![9; 4 * words as usize - 12]);
        }
        p.extend([0, 9, 0x12, 0xb5, 0, 60, 0, 0, 8, 0, 0, 0, 0, 0, 42, 0]);
        p.extend([2, 0, 0, 0, 0, 3, 2, 0, 0, 0, 0, 4, 8, 0, 0x45, 0]);
        p.extend([5; 40]);
        p
    }

    fn window(packet: &[u8]) -> Front {
        let mut bytes = [0xa5; WINDOW];
        let n = packet.len().min(WINDOW);
        bytes[..n].copy_from_slice(&packet[..n]);
        front(&bytes)
    }

    proptest! {
        /// Whatever packets came before: an entry that fits a packet gives the same result as a walk of this packet.
        #[test]
        fn a_memo_is_as_good_as_a_walk(
            wants in prop::collection::vec(0..WANTS.len(), 0..4),
            packets in prop::collection::vec(
                (0u8..16, prop::collection::vec((12usize..90, any::<u8>()), 0..2), 12usize..120),
                1..80,
            ),
        ) {
            let mut program = Program::new(&[]);
            for want in wants {
                program.want(WANTS[want]).unwrap();
            }
            program.finish();
            let (mut memos, mut recalled) = (LearnedEntries::default(), Features::default());
            for (kind, changes, cut) in packets {
                let mut packet = packet(kind);
                for (at, byte) in changes {
                    if let Some(b) = packet.get_mut(at) {
                        *b = byte;
                    }
                }
                packet.truncate(cut);
                let mut walked = Features::default();
                let mut trail = Trail::default();
                program.parse(&packet, false, &mut walked, &mut trail);
                // A stand-in for a matcher without values: the rank depends on the headers alone.
                let rank = (walked.seen ^ walked.path >> 3 ^ walked.path >> 32) as u32;
                let front = window(&packet);
                match memos.fits(&front, packet.len()) {
                    None => memos.note(&front, &trail, &walked, rank),
                    Some(memo) => match memos.rank(memo) {
                        Some(known) => prop_assert_eq!(known, rank),
                        None => {
                            memos.recall(memo, &packet, &mut recalled);
                            prop_assert_eq!((recalled.seen, recalled.path), (walked.seen, walked.path));
                            let taken = &trail.fields[..trail.n];
                            for slot in taken.iter().map(|f| f.0 as usize % SLOTS) {
                                prop_assert_eq!(recalled.values[slot], walked.values[slot]);
                            }
                        }
                    },
                }
            }
        }
    }

    #[test]
    fn the_second_packet_of_a_kind_is_known_and_a_ninth_kind_waits() {
        let mut program = Program::new(&[]);
        program.want("udp").unwrap();
        program.finish();
        let mut memos = LearnedEntries::default();
        let mut known = |packet: &[u8]| {
            let front = window(packet);
            if memos.fits(&front, packet.len()).is_some() {
                return true;
            }
            let (mut found, mut trail) = (Features::default(), Trail::default());
            program.parse(packet, false, &mut found, &mut trail);
            memos.note(&front, &trail, &found, 0);
            false
        };
        assert!(!known(&packet(2)) && known(&packet(2)));
        assert!(
            !known(&packet(2)[..30]),
            "a packet that ends too early leaves no memo"
        );
        assert!(!known(&packet(2)[..30]));
        for kind in [3, 4, 5, 6, 7, 10, 11] {
            assert!(!known(&packet(kind)), "{kind}");
            assert!(known(&packet(kind)), "{kind}");
        }
        assert!(!known(&packet(8)) && !known(&packet(8)), "there is no room");
        for _ in 0..REPLACE {
            known(&packet(8));
        }
        assert!(known(&packet(8)), "but now and then one gives way");
    }
}
