//! Offloads in software: completes what a transmit node does not support, before that node.
//!
//! - A partial checksum is computed over everything from its start to the packet's end.
//! - A super-segment of TCP or UDP is segmented: IPv4 identification and TCP sequence increase, FIN and PSH stay on the last
//!   segment, CWR on the first (RFC 3168, 6.1.2); each segment has its own lengths and checksums.
//!
//! Requests are untrusted: offsets are taken from the packet's headers, and a packet that contradicts its request is dropped.

use crate::gso::{GsoProtocol, TCP};
use volley_graph::buf::DATA;
use volley_graph::{BadOffload, Checksum, Gso, Isa, NodeId, Packet, PacketView, Replicator};
use volley_wire::checksum::Sum;
use volley_wire::ethertype;

/// Reason why a packet cannot be completed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The request contradicts the packet.
    Bad,
    /// No buffer is free.
    NoBuffers,
}

impl From<BadOffload> for Fault {
    fn from(_: BadOffload) -> Self {
        Fault::Bad
    }
}

/// Offsets of a packet's headers, in bytes from the Ethernet header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct HeaderOffsets {
    /// The IP header.
    pub(crate) l3: usize,
    /// Whether the IP header is IPv6.
    pub(crate) six: bool,
    /// The TCP or UDP header.
    pub(crate) l4: usize,
    /// Length of the TCP or UDP header.
    pub(crate) l4_len: usize,
    /// Whether the layer-4 header follows the fixed IP header, so that addresses and protocol are those of the pseudo header.
    direct: bool,
}

/// The most segments of one packet: a peer must not cause work for thousands of packets with one.
const MOST: usize = 2048;

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    let word = bytes.get(at..at + 2)?;
    Some(u16::from_be_bytes([word[0], word[1]]))
}

fn put16(bytes: &mut [u8], at: usize, word: u16) {
    if let Some(place) = bytes.get_mut(at..at + 2) {
        place.copy_from_slice(&word.to_be_bytes());
    }
}

/// Finds the headers of a super-segment in its first bytes. With IPv6 extension headers, the start of the checksum is the end
/// of the extension headers.
pub(crate) fn header_offsets(
    first: &[u8],
    protocol: GsoProtocol,
    sum: Option<Checksum>,
) -> Option<HeaderOffsets> {
    let mut l3 = 14;
    let mut kind = be16(first, 12)?;
    while ethertype::is_tag(kind) && l3 < 22 {
        kind = be16(first, l3 + 2)?;
        l3 += 4;
    }
    let six = match (kind, protocol) {
        (ethertype::IP4, GsoProtocol::Tcp4 | GsoProtocol::Udp) => false,
        (ethertype::IP6, GsoProtocol::Tcp6 | GsoProtocol::Udp) => true,
        _ => return None,
    };
    let proto = protocol.number();
    let version = first.get(l3)? >> 4;
    (version == if six { 6 } else { 4 }).then_some(())?;
    let (at, next) = match six {
        true => (l3 + 40, *first.get(l3 + 6)?),
        false => (l3 + usize::from(first[l3] & 15) * 4, *first.get(l3 + 9)?),
    };
    let direct = next == proto;
    let l4 = match (sum, direct) {
        (_, true) => at,
        (Some(sum), false) if six && usize::from(sum.start) > at => usize::from(sum.start),
        _ => return None,
    };
    let offset = protocol.checksum_offset();
    let fits = |s: Checksum| usize::from(s.start) == l4 && usize::from(s.offset) == offset;
    (at >= l3 + 20 && sum.is_none_or(fits)).then_some(())?;
    let l4_len = match proto {
        TCP => usize::from(first.get(l4 + 12)? >> 4) * 4,
        _ => 8,
    };
    let whole = l4_len >= if proto == TCP { 20 } else { 8 } && l4 + l4_len <= first.len();
    whole.then_some(HeaderOffsets {
        l3,
        six,
        l4,
        l4_len,
        direct,
    })
}

/// Completes a checksum in place; drivers use this for checksums that their device cannot complete.
pub fn complete_checksum(packet: &mut Packet<'_>, sum: Checksum) -> Result<(), Fault> {
    let start = usize::from(sum.start);
    let at = start + usize::from(sum.offset);
    let view = packet.view();
    (at + 2 <= view.bytes().len())
        .then_some(())
        .ok_or(Fault::Bad)?;
    let mut skip = start;
    let mut all = Sum::new();
    for slice in view.slices() {
        let n = skip.min(slice.len());
        (skip, all) = (skip - n, all.bytes(&slice[n..]));
    }
    // A UDP checksum of zero means that there is none (RFC 768).
    let value = match sum.offset {
        6 => all.checksum_udp(),
        _ => all.checksum(),
    };
    put16(packet.bytes_mut(), at, value);
    Ok(())
}

/// The payload of a packet, read in pieces.
pub struct Payload<'a> {
    slices: volley_graph::Slices<'a>,
    rest: &'a [u8],
}

impl<'a> Payload<'a> {
    /// The payload behind `headers` bytes, which lie in the packet's first segment.
    pub fn new(view: &PacketView<'a>, headers: usize) -> Option<Self> {
        let mut slices = view.slices();
        let rest = slices.next()?.get(headers..)?;
        Some(Payload { slices, rest })
    }

    /// Fills `out`, and adds its contents to `sum`.
    pub fn read(&mut self, mut out: &mut [u8], sum: &mut Sum) {
        while !out.is_empty() {
            if self.rest.is_empty() {
                match self.slices.next() {
                    Some(next) => self.rest = next,
                    None => return out.fill(0),
                }
            }
            let n = out.len().min(self.rest.len());
            let (here, later) = out.split_at_mut(n);
            here.copy_from_slice(&self.rest[..n]);
            *sum = sum.bytes(here);
            (self.rest, out) = (&self.rest[n..], later);
        }
    }
}

/// A super-segment that is being segmented.
struct Segmenter<'a> {
    head: &'a [u8],
    protocol: GsoProtocol,
    header_offsets: HeaderOffsets,
    /// Bytes of the whole packet.
    len: usize,
    size: usize,
}

impl Segmenter<'_> {
    /// Corrects the headers of segment `number`: `payload` bytes whose sum is `sum`.
    fn dress(&self, out: &mut [u8], number: usize, payload: usize, sum: Sum, last: bool) {
        let HeaderOffsets {
            l3,
            six,
            l4,
            l4_len,
            ..
        } = self.header_offsets;
        let l4_bytes = (l4_len + payload) as u16;
        match six {
            true => put16(out, l3 + 4, (l4 - l3 - 40 + l4_len + payload) as u16),
            false => {
                let id = be16(self.head, l3 + 4)
                    .unwrap_or(0)
                    .wrapping_add(number as u16);
                put16(out, l3 + 2, (l4 - l3 + l4_len + payload) as u16);
                put16(out, l3 + 4, id);
                put16(out, l3 + 10, 0);
                let header = Sum::new().bytes(&out[l3..l4]).checksum();
                put16(out, l3 + 10, header);
            }
        }
        match self.protocol {
            GsoProtocol::Udp => put16(out, l4 + 4, l4_bytes),
            _ => self.tcp(&mut out[l4..], number, last),
        }
        let at = l4 + self.protocol.checksum_offset();
        put16(out, at, 0);
        let sum = self.join(self.pseudo(l4_bytes).bytes(&out[l4..l4 + l4_len]), sum);
        let value = match self.protocol {
            GsoProtocol::Udp => sum.checksum_udp(),
            _ => sum.checksum(),
        };
        put16(out, at, value);
    }

    fn join(&self, headers: Sum, payload: Sum) -> Sum {
        headers.word(payload.folded())
    }

    /// Sets sequence and flags of a TCP segment.
    fn tcp(&self, tcp: &mut [u8], number: usize, last: bool) {
        const FIN_PSH: u8 = 0x09;
        const CWR: u8 = 0x80;
        let first: [u8; 4] = tcp[4..8].try_into().unwrap_or_default();
        let seq = u32::from_be_bytes(first).wrapping_add((number * self.size) as u32);
        tcp[4..8].copy_from_slice(&seq.to_be_bytes());
        if !last {
            tcp[13] &= !FIN_PSH;
        }
        if number > 0 {
            tcp[13] &= !CWR;
        }
    }

    /// The sum of the pseudo header. With IPv6 extension headers (a routing header hides the final destination) the sum is that
    /// in the sender's checksum field, with the length of this segment in place of the whole one's.
    fn pseudo(&self, l4_bytes: u16) -> Sum {
        let HeaderOffsets {
            l3,
            six,
            l4,
            direct,
            ..
        } = self.header_offsets;
        let proto = self.protocol.number();
        if direct {
            let addresses = if six {
                l3 + 8..l3 + 40
            } else {
                l3 + 12..l3 + 20
            };
            return Sum::new()
                .bytes(&self.head[addresses])
                .word(u16::from(proto))
                .word(l4_bytes);
        }
        let left = be16(self.head, l4 + 16).filter(|_| proto == TCP);
        let left = left.or_else(|| be16(self.head, l4 + 6)).unwrap_or(0);
        let whole = (self.len - l4) as u16;
        Sum::new().word(left).word(!whole).word(l4_bytes)
    }
}

/// Splits a super-segment into packets for `node`; returns how many. A super-segment of one segment stays unchanged (0).
pub(crate) fn segment<I: Isa>(
    packet: &Packet<'_>,
    gso: Gso,
    sum: Option<Checksum>,
    node: NodeId,
    out: &mut Replicator<'_, I>,
) -> Result<usize, Fault> {
    let view = packet.view();
    let protocol = GsoProtocol::from(gso.kind);
    let header_offsets = header_offsets(view.bytes(), protocol, sum).ok_or(Fault::Bad)?;
    let (headers, size) = (
        header_offsets.l4 + header_offsets.l4_len,
        usize::from(gso.size),
    );
    let right = size > 0
        && headers == usize::from(gso.headers)
        && headers <= view.len().min(DATA)
        && view.len() <= size.saturating_mul(MOST) + headers;
    right.then_some(()).ok_or(Fault::Bad)?;
    let payload = view.len() - headers;
    if payload <= size {
        return Ok(0);
    }
    let cut = Segmenter {
        head: view.bytes().get(..headers).ok_or(Fault::Bad)?,
        protocol,
        header_offsets,
        len: view.len(),
        size,
    };
    let mut from = Payload::new(&view, headers).ok_or(Fault::Bad)?;
    let segments = payload.div_ceil(size);
    for number in 0..segments {
        let part = size.min(payload - number * size);
        let (mut copied, mut total) = (0, Sum::new());
        let made = out.build(&view, node, headers + part, |buffer| {
            let head = headers.saturating_sub(copied).min(buffer.len());
            buffer[..head].copy_from_slice(&cut.head[copied.min(headers)..][..head]);
            from.read(&mut buffer[head..], &mut total);
            copied += buffer.len();
        });
        let first = made.ok_or(Fault::NoBuffers)?;
        cut.dress(first, number, part, total, number + 1 == segments);
    }
    Ok(segments)
}
