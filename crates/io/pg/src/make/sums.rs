//! Checksums of generated packets: computed once for the template, and updated per packet for the changed bytes.
//!
//! Every packet starts as a copy of its template, so no state is carried from packet to packet: the control thread sums all
//! bytes that never change, and the worker adds the words that its edits changed (RFC 1071:
//! a one's complement sum may be computed in parts). If the length changes too, the worker sums the whole packet.

use volley_graph::STRIP;
use volley_graph::buf::DATA;
use volley_wire::checksum::Sum;

/// The pseudo-header of a transport checksum (RFC 768, RFC 9293, RFC 8200 8.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pseudo {
    /// Offset of the two addresses.
    pub(crate) at: usize,
    /// Total length of the two addresses.
    pub(crate) len: usize,
    /// The number of the transport protocol.
    pub(crate) protocol: u16,
}

/// A checksum that is updated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Checksum {
    /// Offset of its field.
    pub(crate) at: usize,
    /// Start of the bytes that it covers.
    pub(crate) start: usize,
    /// End of these bytes; none = the end of the packet.
    pub(crate) end: Option<usize>,
    /// The pseudo-header, if any.
    pub(crate) pseudo: Option<Pseudo>,
    /// UDP: zero means "no checksum" and is sent as 0xffff.
    pub(crate) is_udp: bool,
}

impl Checksum {
    /// Compute and store it in a packet of `len` bytes.
    #[inline]
    pub(crate) fn compute(&self, packet: &mut [u8], len: usize) {
        packet[self.at..self.at + 2].fill(0);
        let sum = self.sum(packet, len).folded();
        self.store(packet, sum.to_be());
    }

    fn sum(&self, packet: &[u8], len: usize) -> Sum {
        let end = self.end.unwrap_or(len);
        let pseudo = self.pseudo.map_or(Sum::new(), |p| {
            let addresses = Sum::new().bytes(&packet[p.at..p.at + p.len]);
            addresses.word(p.protocol).word((end - self.start) as u16)
        });
        pseudo.bytes(&packet[self.start..end])
    }

    /// Store the complement of a folded sum of native words.
    #[inline(always)]
    fn store(&self, packet: &mut [u8], folded: u16) {
        let sum = match !folded {
            0 if self.is_udp => 0xffff,
            sum => sum,
        };
        packet[self.at..self.at + 2].copy_from_slice(&sum.to_ne_bytes());
    }

    /// The covered words that contain a byte for which `dirty` is true, and the odd last byte if `dirty` is true for it.
    fn touched(&self, len: usize, dirty: &[bool]) -> (Vec<usize>, Option<usize>) {
        let end = self.end.unwrap_or(len);
        let addresses = self.pseudo.map_or(0..0, |p| p.at..p.at + p.len);
        let is_dirty = |at: usize| dirty.get(at).copied().unwrap_or(false);
        let words = addresses
            .step_by(2)
            .chain((self.start..end.saturating_sub(1)).step_by(2))
            .filter(|at| *at != self.at && (is_dirty(*at) || is_dirty(at + 1)));
        let tail = ((end - self.start) % 2 == 1 && is_dirty(end - 1)).then(|| end - 1);
        (words.collect(), tail)
    }

    /// The work for it after edits of the bytes for which `dirty` is true; none if there is none.
    pub(crate) fn plan(&self, packet: &[u8], len: usize, dirty: &[bool]) -> Option<Update> {
        let (words, tail) = self.touched(len, dirty);
        if words.is_empty() && tail.is_none() {
            return None;
        }
        let mut rest = packet.to_vec();
        let touched = words.iter().flat_map(|at| [*at, at + 1]).chain(tail);
        touched
            .chain([self.at, self.at + 1])
            .for_each(|at| rest[at] = 0);
        Some(Update::Words {
            sum: *self,
            base: self.sum(&rest, len).folded().to_be(),
            words: words.into(),
            tail,
        })
    }
}

/// The work per packet for one checksum.
#[derive(Clone, Debug)]
pub(crate) enum Update {
    /// Add the words that changed to the sum of all others.
    Words {
        sum: Checksum,
        base: u16,
        words: Box<[usize]>,
        tail: Option<usize>,
    },
    /// Sum the whole packet, because its length varies.
    Whole(Checksum),
}

impl Update {
    /// As [`Self::run`], for several packets: the positions of the words are determined once.
    #[inline(always)]
    pub(crate) fn run_strip(&self, strip: &mut [&mut [u8; DATA]], len: usize) {
        let Update::Words {
            sum,
            base,
            words,
            tail: None,
        } = self
        else {
            for packet in strip.iter_mut() {
                self.run(&mut packet[..], len);
            }
            return;
        };
        for part in strip.chunks_mut(STRIP) {
            let mut accs = [u32::from(*base); STRIP];
            for &at in words {
                for (acc, packet) in accs.iter_mut().zip(part.iter()) {
                    *acc += u32::from(u16::from_ne_bytes([packet[at], packet[at + 1]]));
                }
            }
            for acc in &mut accs {
                let once = (*acc & 0xffff) + (*acc >> 16);
                *acc = (once & 0xffff) + (once >> 16);
            }
            for (acc, packet) in accs.iter().zip(part.iter_mut()) {
                sum.store(&mut packet[..], *acc as u16);
            }
        }
    }

    #[inline(always)]
    pub(crate) fn run(&self, packet: &mut [u8], len: usize) {
        match self {
            Update::Whole(sum) => sum.compute(packet, len),
            Update::Words {
                sum,
                base,
                words,
                tail,
            } => {
                let mut acc = u32::from(*base);
                for &at in words {
                    acc += u32::from(u16::from_ne_bytes([packet[at], packet[at + 1]]));
                }
                if let Some(at) = *tail {
                    acc += u32::from(u16::from_ne_bytes([packet[at], 0]));
                }
                // Fewer than 2^16 words, so two folds are enough.
                let acc = (acc & 0xffff) + (acc >> 16);
                sum.store(packet, ((acc & 0xffff) + (acc >> 16)) as u16);
            }
        }
    }
}
