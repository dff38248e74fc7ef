//! Offload requests: a checksum to complete, or a super-segment to cut, before a packet is transmitted.
//!
//! Packets from kernels and guests have such requests. The word in [`Col::OFFLOAD`] describes them; it is 0 for a packet
//! without requests, and a vector without such packets does not have the column. Positions are kept as offsets in the
//! buffer, so that headers can be pushed and removed in front of them.
//!
//! The word: bit 31 a checksum to complete, bits 28-30 the kind of super-segment (0 for none), bits 16-27 the end of its
//! headers, bits 0-15 payload bytes per segment.

use crate::data::col::Col;
use crate::data::frame::{CHAINED, Frame, IDX, POS};
use crate::data::packet::{Packet, PacketView};
use volley_buf::Pool;

const SUM: u32 = 1 << 31;
/// The flag of a [`GsoKind`]; its two lower bits are its class, counted from 1.
const FLAG: u8 = 1 << 2;

/// The requests of a packet. A peer supplies them, so they are not trusted before [`crate::NewVector::set_offload`] has checked
/// them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Offload {
    /// A checksum to complete.
    pub checksum: Option<Checksum>,
    /// A super-segment to cut.
    pub gso: Option<Gso>,
}

/// A checksum to complete, as `virtio_net_hdr` describes it: the sum of all bytes from `start` to the packet's end is
/// written to `start + offset`, which contains the sum of the pseudo header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Checksum {
    /// Bytes from the packet's position to the first summed byte.
    pub start: u16,
    /// Bytes from there to the checksum.
    pub offset: u16,
}

/// A super-segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gso {
    /// The kind of the segments.
    pub kind: GsoKind,
    /// Payload bytes of each segment.
    pub size: u16,
    /// Bytes of all headers from the packet's position, the layer-4 header included.
    pub headers: u16,
}

/// The kind of a super-segment: a class, which a device supports or not, and a flag. The engine carries both; the crate that
/// cuts super-segments defines their meaning and names the classes ([`crate::Engine::set_gso_names`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GsoKind(u8);

impl GsoKind {
    /// The number of classes; they are counted from 0.
    pub const CLASSES: usize = 3;

    /// A class without the flag.
    ///
    /// # Panics
    /// If there is no such class.
    pub const fn new(class: u8) -> Self {
        assert!(
            class < Self::CLASSES as u8,
            "no such class of super-segments"
        );
        GsoKind(class + 1)
    }

    /// The same class with the flag or without it.
    #[inline(always)]
    pub const fn with_flag(self, flag: bool) -> Self {
        GsoKind(self.0 & !FLAG | if flag { FLAG } else { 0 })
    }

    /// The class.
    #[inline(always)]
    pub const fn class(self) -> u8 {
        (self.0 & !FLAG) - 1
    }

    /// Whether the flag is set.
    #[inline(always)]
    pub const fn has_flag(self) -> bool {
        self.0 & FLAG != 0
    }
}

/// Why a request is refused. The packet must be dropped and counted under this name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadOffload {
    /// The checksum is not in the packet's first segment.
    #[error("the checksum to be finished lies outside the packet")]
    Checksum,
    /// The segments would be empty.
    #[error("segments of 0 bytes are requested")]
    Size,
    /// The kind of segments is unknown.
    #[error("the kind of segments is unknown")]
    Kind,
    /// The headers are not in the packet's first segment.
    #[error("the headers are longer than the packet")]
    Headers,
}

impl Offload {
    /// No request.
    pub const NONE: Offload = Offload {
        checksum: None,
        gso: None,
    };

    /// The device features that a word of [`Col::OFFLOAD`] requires, as bits: 0 a checksum, then classes of [`GsoKind`]; 4
    /// segments without a checksum to complete, which no device supports.
    #[inline(always)]
    pub fn needs(word: u32) -> u32 {
        let (kind, sum) = (word >> 28 & 3, word >> 31);
        let gso = u32::from(kind != 0);
        sum | gso << kind | (gso & !sum) << 4
    }

    /// Whether the request fits a packet whose first segment has `first` bytes.
    pub fn check(&self, first: usize) -> Result<(), BadOffload> {
        if let Some(sum) = self.checksum {
            let end = usize::from(sum.start) + usize::from(sum.offset) + 2;
            (end <= first).then_some(()).ok_or(BadOffload::Checksum)?;
        }
        if let Some(gso) = self.gso {
            (gso.size > 0).then_some(()).ok_or(BadOffload::Size)?;
            let fits = gso.headers > 0 && usize::from(gso.headers) <= first;
            fits.then_some(()).ok_or(BadOffload::Headers)?;
        }
        Ok(())
    }

    fn word(&self, at: usize) -> u32 {
        let sum = if self.checksum.is_some() { SUM } else { 0 };
        self.gso.map_or(sum, |gso| {
            let end = (at + usize::from(gso.headers)) as u32;
            sum | u32::from(gso.kind.0) << 28 | end << 16 | u32::from(gso.size)
        })
    }
}

/// The text of a word in traces: empty, or a clause that begins with a comma. `start` is the start of the checksum,
/// `name` the name of a kind.
pub(crate) fn text(word: u32, start: u16, name: impl Fn(GsoKind) -> &'static str) -> String {
    let sum = match word & SUM {
        0 => String::new(),
        _ => format!(", checksum from byte {start} to be finished"),
    };
    match kind(word).map(name) {
        None => sum,
        Some(kind) => format!("{sum}, {kind} to be cut every {} bytes", word & 0xffff),
    }
}

/// Whether a checksum is to be completed.
pub(crate) fn is_sum(word: u32) -> bool {
    word & SUM != 0
}

#[inline(always)]
fn kind(word: u32) -> Option<GsoKind> {
    (word >> 28 & 3 != 0).then_some(GsoKind((word >> 28 & 7) as u8))
}

/// Write a request into a row; `at` is the position of its packet.
pub(crate) fn set(
    pool: &Pool,
    frame: &mut Frame,
    row: usize,
    offload: &Offload,
    first: usize,
) -> Result<(), BadOffload> {
    offload.check(first)?;
    let at = (frame.words(POS)[row] & !CHAINED) as usize;
    if let Some(sum) = offload.checksum {
        // SAFETY: the frame owns the buffer and is borrowed exclusively.
        let meta = unsafe { pool.meta(frame.words(IDX)[row]) };
        meta.sum_start = at as u16 + sum.start;
        meta.sum_offset = sum.offset;
    }
    let word = offload.word(at);
    if word != 0 || frame.has(Col::OFFLOAD) {
        frame.make_valid(Col::OFFLOAD, 0);
        let n = frame.n;
        frame.cols[Col::OFFLOAD.at()].words_mut(n)[row] = word;
    }
    Ok(())
}

impl PacketView<'_> {
    /// The requests of the packet, with offsets from the current position. An offset in front of the current position is
    /// reported as 65535, which is outside any packet's first segment.
    pub fn offload(&self) -> Offload {
        let word = self.get(Col::OFFLOAD).unwrap_or(0);
        if word == 0 {
            return Offload::NONE;
        }
        let at = self.frame.words(POS)[self.row] & !CHAINED;
        let checksum = (word & SUM != 0).then(|| {
            // SAFETY: the frame owns the buffer and is borrowed.
            let meta = unsafe { *self.pool.meta(self.frame.words(IDX)[self.row]) };
            Checksum {
                start: u32::from(meta.sum_start)
                    .checked_sub(at)
                    .map_or(u16::MAX, |n| n as u16),
                offset: meta.sum_offset,
            }
        });
        let gso = kind(word).map(|kind| Gso {
            kind,
            size: word as u16,
            headers: (word >> 16 & 0xfff)
                .checked_sub(at)
                .map_or(u16::MAX, |n| n as u16),
        });
        Offload { checksum, gso }
    }

    /// The length, from the current position, of the longest packet that is transmitted: the packet itself, or one of its
    /// segments.
    pub fn wire_len(&self) -> usize {
        match self.offload().gso {
            Some(gso) => self
                .len()
                .min(usize::from(gso.headers) + usize::from(gso.size)),
            None => self.len(),
        }
    }
}

impl Packet<'_> {
    /// The requests of the packet.
    pub fn offload(&self) -> Offload {
        self.view().offload()
    }

    /// Set the requests of the packet; [`Offload::NONE`] when all are complete.
    pub fn set_offload(&mut self, offload: &Offload) -> Result<(), BadOffload> {
        let first = self.bytes().len();
        set(self.pool, self.frame, self.row, offload, first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_says_what_is_needed() {
        let sum = Checksum {
            start: 34,
            offset: 16,
        };
        let gso = Gso {
            kind: GsoKind::new(1),
            size: 1440,
            headers: 74,
        };
        let (checksum, gso) = (Some(sum), Some(gso));
        assert_eq!(Offload::needs(Offload::NONE.word(256)), 0);
        let only = |checksum, gso| Offload::needs(Offload { checksum, gso }.word(256));
        assert_eq!(only(checksum, None), 0b0001);
        assert_eq!(only(checksum, gso), 0b0101);
        assert_eq!(only(None, gso), 0b10100);
        let word = Offload { checksum, gso }.word(256);
        let name = |kind: GsoKind| ["letters", "parcels", "crates"][usize::from(kind.class())];
        let message = ", checksum from byte 34 to be finished, parcels to be cut every 1440 bytes";
        assert_eq!(text(word, 34, name), message);
        assert_eq!(text(0, 0, name), "");
    }

    #[test]
    fn a_flag_changes_neither_the_class_nor_what_is_needed() {
        for class in 0..GsoKind::CLASSES as u8 {
            let plain = GsoKind::new(class);
            let flagged = plain.with_flag(true);
            assert_eq!((flagged.class(), flagged.has_flag()), (class, true));
            assert_eq!((plain.class(), plain.has_flag()), (class, false));
            assert_eq!(flagged.with_flag(false), plain);
            let word = |kind| {
                let gso = Some(Gso {
                    kind,
                    size: 1,
                    headers: 54,
                });
                let checksum = None;
                Offload { checksum, gso }.word(0)
            };
            assert_eq!(kind(word(flagged)), Some(flagged));
            assert_eq!(kind(word(plain)), Some(plain));
            assert_eq!(Offload::needs(word(flagged)), Offload::needs(word(plain)));
        }
    }
}
