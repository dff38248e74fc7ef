//! IPv4 packets of a vector: the checks of ip4-input, the lookup of routes, and what a route does to a packet.

use crate::batch::{Batch, Fault, lent, start_of_ip};
use crate::fields::ETHERNET;
use crate::masks;
use crate::parsed::{BAD, GOOD};
use crate::sets::NO_BITS;
use crate::tables::{Hop, NO_INTERFACE};
use crate::verdict::Verdict;
use std::net::Ipv4Addr;
use volley_sdk::tables::lpm4::Lpm4View;
use volley_sdk::wire::ip4::Ip4Header;
use volley_sdk::wire::{Header, checksum};

impl Batch {
    /// Check IPv4 packets as ip4-input does. Returns sets of those that may be forwarded, cut to their total length, and of those that
    /// are invalid. Packets with options and with a TTL of 0 or 1 are in neither.
    pub(crate) fn check_ip4(&mut self, set: u32) -> Result<(u32, u32), Fault> {
        self.parse(set)?;
        let good = self.sets.select(set, &self.parsed.with(GOOD))?;
        let bad = self.sets.select(set, &self.parsed.with(BAD))?;
        let (mut padded, good_bits) = (self.parsed.padded(), self.sets.bits(good)?);
        padded
            .iter_mut()
            .zip(good_bits)
            .for_each(|(to, of)| *to &= of);
        if padded != NO_BITS {
            let packets = lent(&mut self.packets)?;
            for row in masks::rows(&padded) {
                packets.packet(row).truncate(self.parsed.end(row));
            }
        }
        Ok((good, bad))
    }

    /// Look up the destinations of IPv4 packets. Returns the set of those whose route is complete and whose length the interface of
    /// the route can transmit. A packet that the script has sent and that has no route now is not sent.
    pub(crate) fn lookup(&mut self, set: u32, view: &Lpm4View, hops: &[Hop]) -> Result<u32, Fault> {
        self.parse(set)?;
        let packets = lent(&mut self.packets)?;
        let (framed, is_layer3) = (&self.framed, self.is_layer3);
        let (found, verdicts) = (&mut self.hops, &mut self.verdicts);
        // The results of packets that are not in the set are not read.
        let leaves = &mut self.leaves[..packets.len()];
        view.lookup_batch(self.parsed.destinations(leaves.len()), leaves);
        let mut bits = NO_BITS;
        self.sets.get(set)?.for_each(|row| {
            let hop = (leaves[row] as usize).checked_sub(1);
            let hop = hop.and_then(|at| hops.get(at)).unwrap_or(&Hop::NONE);
            found[row] = *hop;
            if hop.interface == NO_INTERFACE && verdicts[row] == Verdict::Send {
                verdicts[row] = Verdict::Next;
            }
            let net = start_of_ip(is_layer3, framed, row);
            let length = packets.view(row).len().saturating_sub(net);
            if hop.is_complete && length <= hop.mtu as usize {
                masks::insert(&mut bits, row);
            }
        });
        self.sets.put(set, &bits)
    }

    /// Apply the routes of a lookup: decrement the TTL and write the Ethernet header.
    pub(crate) fn apply(&mut self, set: u32) -> Result<(), Fault> {
        let packets = lent(&mut self.packets)?;
        self.parsed.forget(&self.sets.bits(set)?);
        let (hops, framed, is_layer3) = (&self.hops, &mut self.framed, self.is_layer3);
        let lowered = &mut self.lowered;
        self.sets.get(set)?.each(|row| {
            let hop = &hops[row];
            if !hop.is_complete {
                return Err(format!(
                    "packet {} has no complete route: apply routes to the mask that `lookup` returns",
                    row + 1
                ));
            }
            let net = start_of_ip(is_layer3, framed, row);
            if net == 0 && !packets.packet(row).retreat(ETHERNET) {
                return Err(format!(
                    "packet {} has no room for an Ethernet header",
                    row + 1
                ));
            }
            // The position is at the Ethernet header now.
            let bytes = packets.bytes_mut(row);
            lowered[row] = lowered[row].saturating_add(u8::from(decrement_ttl(bytes, ETHERNET)));
            if let Some(bytes) = bytes.first_chunk_mut::<ETHERNET>() {
                *bytes = hop.ethernet;
            }
            framed[row] = true;
            Ok(())
        })
    }

    /// Undo [`Batch::apply`] for the packets that are not sent, on the arc of IPv4 packets: the nodes behind expect the position at
    /// the IP header, and the router decrements the TTL of what it forwards.
    pub(crate) fn take_back(&mut self) {
        let Some(packets) = self.packets.as_mut().filter(|_| self.is_layer3) else {
            return;
        };
        for row in 0..packets.len() {
            if !self.framed[row] || self.verdicts[row] == Verdict::Send {
                continue;
            }
            self.framed[row] = false;
            packets.packet(row).advance(ETHERNET);
            raise_ttl(packets.bytes_mut(row), self.lowered[row]);
        }
    }
}

/// The verdict on an IPv4 packet.
pub(crate) enum Valid4 {
    /// The packet may be forwarded; the length of the packet without padding, from its position.
    Good(usize),
    /// A rule of RFC 1812 forbids to forward it.
    Bad,
    /// The packet has options, or its TTL ends here.
    Slow,
}

/// Whether an address is none that a host on the wire may have (RFC 1812, 5.3.7): of this network, loopback, or from 224 on a group,
/// reserved or the limited broadcast address.
#[inline(always)]
pub(crate) fn is_reserved(address: Ipv4Addr) -> bool {
    let first = address.octets()[0];
    first == 0 || first == 127 || first >= 224
}

/// The IPv4 header that starts at `net`.
#[inline(always)]
pub(crate) fn header(bytes: &[u8], net: usize) -> Option<&Ip4Header> {
    Some(Ip4Header::split(bytes.get(net..)?).ok()?.0)
}

/// Check an IPv4 packet of `length` bytes whose header starts at `net`, in the order of ip4-input (`docs/forwarding-rules.md`).
#[inline(always)]
pub(crate) fn valid(header: Option<&Ip4Header>, bytes: &[u8], net: usize, length: usize) -> Valid4 {
    let Some(header) = header else {
        return Valid4::Bad;
    };
    let (ihl, total) = (header.header_len(), usize::from(header.total_len.get()));
    if header.version() != 4 || ihl < Ip4Header::LEN || total < ihl || net + total > length {
        return Valid4::Bad;
    }
    // Nearly all headers have the shortest length, which the compiler unrolls.
    let is_right = match ihl {
        Ip4Header::LEN => bytes[net..]
            .first_chunk::<{ Ip4Header::LEN }>()
            .is_some_and(|header| checksum::is_valid(header)),
        _ => bytes.get(net..net + ihl).is_some_and(checksum::is_valid),
    };
    if !is_right {
        return Valid4::Bad;
    }
    let (src, dst) = (header.src(), header.dst());
    if is_reserved(dst) || src.is_link_local() || dst.is_link_local() {
        return Valid4::Bad;
    }
    match header.ttl {
        // The TTL is judged before the source.
        0 | 1 => Valid4::Slow,
        _ if is_reserved(src) => Valid4::Bad,
        _ if ihl > Ip4Header::LEN => Valid4::Slow,
        _ => Valid4::Good(net + total),
    }
}

/// Decrement the TTL and correct the checksum; whether that was done: a TTL of 0 stays.
#[inline(always)]
fn decrement_ttl(bytes: &mut [u8], net: usize) -> bool {
    let header = bytes.get_mut(net..).map(Ip4Header::split_mut);
    match header {
        Some(Ok((header, _))) if header.ttl > 0 => {
            header.decrement_ttl();
            true
        }
        _ => false,
    }
}

/// Raise the TTL of the IPv4 header at the position, and correct the checksum.
fn raise_ttl(bytes: &mut [u8], by: u8) {
    if let Ok((header, _)) = Ip4Header::split_mut(bytes) {
        let word = |ttl: u8| u16::from_be_bytes([ttl, header.protocol.0]);
        let ttl = header.ttl.saturating_add(by);
        let sum = checksum::update(header.checksum.get(), word(header.ttl), word(ttl));
        (header.ttl, header.checksum) = (ttl, sum.into());
    }
}

/// Write the checksum of an IPv4 header.
pub(crate) fn fill_checksum(bytes: &mut [u8], net: usize) {
    let header = bytes.get_mut(net..).map(Ip4Header::split_mut);
    if let Some(Ok((header, behind))) = header
        && let Some(options) = header.header_len().checked_sub(Ip4Header::LEN)
        && let Some(options) = behind.get(..options)
    {
        header.fill_checksum(options);
    }
}
