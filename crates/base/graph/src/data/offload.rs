//! What is left to be done with a packet before it is on a wire: a checksum to be finished, a super-segment to be cut.
//!
//! Packets from kernels and guests come so as a matter of course. The word in [`Col::Offload`] says what; it is 0 for a
//! packet with nothing to do, and a vector without such packets does not have the column. Places are kept as offsets in
//! the buffer, so headers may come and go in front of them.
//!
//! The word: bit 31 a checksum is to be finished, bit 30 the sender wants to see congestion marks (TCP with ECN), bits
//! 28-29 the kind of super-segment (0 for none), bits 16-27 where its headers end, bits 0-15 payload bytes per segment.

use crate::data::frame::{CHAINED, Col, Frame, IDX, POS};
use crate::data::packet::{Packet, PacketView};
use volley_buf::Pool;

const SUM: u32 = 1 << 31;
const ECN: u32 = 1 << 30;

/// What is to be done. Made from what a peer says, so nothing of it is believed before [`crate::NewVector::set_offload`] took it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Offload {
    /// A checksum to be finished.
    pub checksum: Option<Checksum>,
    /// Segments to be cut.
    pub gso: Option<Gso>,
}

/// A checksum to be finished, as `virtio_net_hdr` describes it: the sum over everything from `start` to the packet's
/// end goes to `start + offset`, where the sum of the pseudo header stands now.
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
    /// Which protocol.
    pub kind: GsoKind,
    /// Payload bytes of each segment.
    pub size: u16,
    /// Bytes of all headers from the packet's position, the layer-4 header included.
    pub headers: u16,
    /// TCP with congestion marks: the mark stays on the first segment only.
    pub ecn: bool,
}

/// The protocol of a super-segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum GsoKind {
    /// TCP over IPv4.
    Tcp4 = 1,
    /// TCP over IPv6.
    Tcp6 = 2,
    /// UDP over either, one datagram for each segment.
    Udp = 3,
}

/// Why a request is refused. The packet is to be dropped, and counted under this name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadOffload {
    /// The checksum does not lie in the packet's first segment.
    #[error("the checksum to be finished lies outside the packet")]
    Checksum,
    /// The segments would be empty.
    #[error("segments of 0 bytes are asked for")]
    Size,
    /// The kind of segments is none that there is.
    #[error("the kind of segments is unknown")]
    Kind,
    /// The headers do not lie in the packet's first segment.
    #[error("the headers are longer than the packet")]
    Headers,
}

impl Offload {
    /// Nothing to do.
    pub const NONE: Offload = Offload {
        checksum: None,
        gso: None,
    };

    /// What a word of [`Col::Offload`] needs somebody to be able to do, as bits: 0 a checksum, then [`GsoKind`]s; 4 what
    /// no device does: segments whose checksum nobody asked for.
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
            let ecn = if gso.ecn { ECN } else { 0 };
            let end = (at + usize::from(gso.headers)) as u32;
            sum | ecn | (gso.kind as u32) << 28 | end << 16 | u32::from(gso.size)
        })
    }
}

/// What a word says, for traces: nothing, or a clause that begins with a comma. `start` is where the checksum begins.
pub(crate) fn text(word: u32, start: u16) -> String {
    let sum = match word & SUM {
        0 => String::new(),
        _ => format!(", checksum from byte {start} to be finished"),
    };
    let kind = match kind(word) {
        None => return sum,
        Some(GsoKind::Tcp4) => "TCP over IPv4",
        Some(GsoKind::Tcp6) => "TCP over IPv6",
        Some(GsoKind::Udp) => "UDP",
    };
    format!("{sum}, {kind} to be cut every {} bytes", word & 0xffff)
}

/// A checksum is still to be finished.
pub(crate) fn is_sum(word: u32) -> bool {
    word & SUM != 0
}

fn kind(word: u32) -> Option<GsoKind> {
    match word >> 28 & 3 {
        1 => Some(GsoKind::Tcp4),
        2 => Some(GsoKind::Tcp6),
        3 => Some(GsoKind::Udp),
        _ => None,
    }
}

/// Write a request into a row; its packet's position is `at`.
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
    if word != 0 || frame.has(Col::Offload) {
        frame.make_valid(Col::Offload, 0);
        let n = frame.n;
        frame.cols[Col::Offload as usize].words_mut(n)[row] = word;
    }
    Ok(())
}

impl PacketView<'_> {
    /// What is left to be done with the packet; places count from the current position. A place that the
    /// position has passed is 65535, which is outside any packet's first segment.
    pub fn offload(&self) -> Offload {
        let word = self.get(Col::Offload).unwrap_or(0);
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
            ecn: word & ECN != 0,
        });
        Offload { checksum, gso }
    }

    /// Bytes from the current position of the longest packet that will be on the wire: the packet's own length, or that
    /// of one segment.
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
    /// What is left to be done with the packet.
    pub fn offload(&self) -> Offload {
        self.view().offload()
    }

    /// Say what is left to be done with the packet; [`Offload::NONE`] when everything is.
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
            kind: GsoKind::Tcp6,
            size: 1440,
            headers: 74,
            ecn: false,
        };
        let (checksum, gso) = (Some(sum), Some(gso));
        assert_eq!(Offload::needs(Offload::NONE.word(256)), 0);
        let only = |checksum, gso| Offload::needs(Offload { checksum, gso }.word(256));
        assert_eq!(only(checksum, None), 0b0001);
        assert_eq!(only(checksum, gso), 0b0101);
        assert_eq!(only(None, gso), 0b10100);
        let word = Offload { checksum, gso }.word(256);
        let said =
            ", checksum from byte 34 to be finished, TCP over IPv6 to be cut every 1440 bytes";
        assert_eq!(text(word, 34), said);
        assert_eq!(text(0, 0), "");
    }
}
