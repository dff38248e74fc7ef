//! ip4-frag: cuts packets that are too long for the link they leave by (RFC 791, 3.2; RFC 1812, 4.2.2.7). Rule 7.2 of
//! `docs/forwarding-rules.md`.
//!
//! On entry and exit the position is at the IP header and the `Dpo` column names the adjacency. The fragments go to the rewrite, which
//! makes of each what it makes of any packet.

use crate::IpTrace;
use volley_fib::V4;
use volley_fib::dataplane::{DataPlane, Dpo};
use volley_graph::{
    Col, Cx, Done, Fate, Isa, Node, NodeId, Offload, Offspring, Packet, PacketView, Vector,
    counters, nexts,
};
use volley_iface::{Payload, finish_checksum};
use volley_wire::checksum::Sum;

nexts! {
    /// Where ip4-frag sends packets.
    pub enum Next { Drop => "error-drop", Rewrite => "ip4-rewrite" }
}

counters! {
    /// What ip4-frag counts.
    pub enum Count {
        /// packets that were cut into fragments
        Fragmented = "fragmented" (Info),
        /// fragments that they were cut into
        Fragments = "fragments" (Info),
        /// the link takes not even eight bytes behind the IP header
        MtuTooSmall = "mtu-too-small" (Error),
        /// the segments of a super-segment are too long for the link
        SuperSegment = "super-segment" (Error),
        /// the checksum that is to be finished does not fit the packet
        BadOffload = "bad-offload" (Error),
        /// no packet buffer was free for a fragment
        NoBuffers = "no-buffers" (Error),
    }
}

/// More fragments follow.
const MORE: u16 = 0x2000;
/// The part of the flags that is the offset, in units of eight bytes.
const OFFSET: u16 = 0x1fff;
/// The longest header.
const HEADER: usize = 60;

/// State of ip4-frag.
pub struct Ip4Frag {
    fib: DataPlane<V4>,
}

impl Ip4Frag {
    /// Over the FIB, which knows each link's MTU.
    pub fn new(fib: DataPlane<V4>) -> Self {
        Ip4Frag { fib }
    }
}

fn be16(bytes: &[u8], at: usize) -> u16 {
    let word = bytes.get(at..at + 2);
    word.map_or(0, |w| u16::from_be_bytes([w[0], w[1]]))
}

/// Options that are not to be copied (RFC 791, 3.1: the top bit of their type) give way to bytes that say nothing, so that all
/// fragments have headers of one length.
fn blank(options: &mut [u8]) {
    const NOTHING: u8 = 1;
    let mut at = 0;
    while let Some(&kind) = options.get(at) {
        match (kind, options.get(at + 1).map(|len| usize::from(*len))) {
            (0, _) => return,
            (NOTHING, _) => at += 1,
            (_, Some(len)) if len >= 2 && at + len <= options.len() => {
                if kind & 0x80 == 0 {
                    options[at..at + len].fill(NOTHING);
                }
                at += len;
            }
            _ => return,
        }
    }
}

/// A packet under the knife.
struct Cut {
    header: [u8; HEADER],
    /// Bytes of the header, of what is behind it, and of that in each fragment but the last.
    head: usize,
    payload: usize,
    room: usize,
    /// Flags and offset of the packet itself: it may be a fragment.
    flags: u16,
}

impl Cut {
    fn new(packet: &PacketView<'_>, mtu: usize) -> Option<Cut> {
        let (bytes, len) = (packet.bytes(), packet.len());
        let head = usize::from(bytes.first()? & 15) * 4;
        let room = mtu.checked_sub(head)? & !7;
        let mut header = [0; HEADER];
        header.get_mut(..head)?.copy_from_slice(bytes.get(..head)?);
        (room > 0).then_some(Cut {
            header,
            head,
            payload: len.checked_sub(head)?,
            room,
            flags: be16(bytes, 6),
        })
    }

    /// Put the header of the fragment at `from` right, which has `part` bytes.
    fn dress(&self, out: &mut [u8], from: usize, part: usize) {
        let Some(header) = out.get_mut(..self.head) else {
            return;
        };
        if from > 0 {
            blank(&mut header[20..]);
        }
        let offset = (self.flags & OFFSET) + (from / 8) as u16;
        let last = from + part == self.payload;
        let more = if last { self.flags & MORE } else { MORE };
        let flags = self.flags & !(MORE | OFFSET) | more | offset & OFFSET;
        header[2..4].copy_from_slice(&((self.head + part) as u16).to_be_bytes());
        header[6..8].copy_from_slice(&flags.to_be_bytes());
        header[10..12].fill(0);
        let sum = Sum::new().bytes(header).checksum();
        header[10..12].copy_from_slice(&sum.to_be_bytes());
    }
}

/// Cut a packet into fragments for `node`; returns how many.
fn fragment<I: Isa>(
    packet: &PacketView<'_>,
    mtu: usize,
    node: NodeId,
    out: &mut Offspring<'_, I>,
) -> Result<usize, Count> {
    let cut = Cut::new(packet, mtu).ok_or(Count::MtuTooSmall)?;
    let mut from = Payload::new(packet, cut.head).ok_or(Count::BadOffload)?;
    let mut made = 0;
    for at in (0..cut.payload).step_by(cut.room) {
        let part = cut.room.min(cut.payload - at);
        let mut copied = 0;
        let first = out.add(packet, node, cut.head + part, |buffer| {
            let head = cut.head.saturating_sub(copied).min(buffer.len());
            buffer[..head].copy_from_slice(&cut.header[copied.min(cut.head)..][..head]);
            from.read(&mut buffer[head..], &mut Sum::new());
            copied += buffer.len();
        });
        cut.dress(first.ok_or(Count::NoBuffers)?, at, part);
        made += 1;
    }
    Ok(made)
}

/// What is left to be done with the whole packet is done before it is cut.
fn complete(packet: &mut Packet<'_>) -> Result<(), Count> {
    let Offload { checksum, gso } = packet.offload();
    if gso.is_some() {
        return Err(Count::SuperSegment);
    }
    if let Some(sum) = checksum {
        finish_checksum(packet, sum).map_err(|_| Count::BadOffload)?;
        packet
            .set_offload(&Offload::NONE)
            .map_err(|_| Count::BadOffload)?;
    }
    Ok(())
}

impl Node for Ip4Frag {
    const NAME: &'static str = "ip4-frag";
    type Next = Next;
    type Count = Count;
    type Trace = IpTrace;

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, mut v: Vector<'_, I, Next>) -> Done {
        v.forget(&[Col::Err]);
        v.require(Col::Dpo, 0);
        let (adjs, rewrite) = (self.fib.read(cx.guard()).adjs(), v.edge(Next::Rewrite));
        v.unfold(|packet, out| {
            let dpo = Dpo(packet.get(Col::Dpo).unwrap_or(0));
            let mtu = usize::from(adjs.words(dpo.index()).facts.mtu());
            let made = complete(packet).and_then(|()| fragment(&packet.view(), mtu, rewrite, out));
            match made {
                Ok(fragments) => {
                    cx.count(Count::Fragmented, 1);
                    cx.count(Count::Fragments, fragments as u64);
                    Fate::Replaced
                }
                Err(why) => {
                    packet.fail(cx, why);
                    Fate::Drop(Next::Drop)
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_blanked_unless_they_are_copied() {
        // Record route, no operation, an option with the copied bit, end of the list.
        let mut options = [7, 4, 4, 9, 1, 0x94, 4, 0, 0, 0, 7, 3];
        blank(&mut options);
        assert_eq!(options, [1, 1, 1, 1, 1, 0x94, 4, 0, 0, 0, 7, 3]);
        for bad in [[7, 9], [7, 1], [7, 0]] {
            let mut options = bad;
            blank(&mut options);
            assert_eq!(options, bad);
        }
    }
}
