//! IPv4 packets of a vector: the checks of ip4-input, the lookup of routes, and what a route does to a packet.

use crate::batch::{Batch, Fault, lent, start_of_ip};
use crate::fields::ETHERNET;
use crate::masks;
use crate::sets::{Bits, NO_BITS};
use crate::tables::{Hop, NO_INTERFACE};
use crate::verdict::Verdict;
use std::net::Ipv4Addr;
use volley_sdk::kernel::{self, Kernel, all_equal};
use volley_sdk::lend::{LentPackets, Offsets};
use volley_sdk::prelude::*;
use volley_sdk::tables::lpm4::Lpm4View;
use volley_sdk::wire::ip4::Ip4Header;
use volley_sdk::wire::{Header, checksum, ethertype};

impl Batch {
    /// Check IPv4 packets as ip4-input does. Returns sets of those that may be forwarded, cut to their total length, and of those that
    /// are invalid. Packets with options and with a TTL of 0 or 1 are in neither, and neither are frames with another EtherType.
    pub(crate) fn check_ip4(&mut self, set: u32) -> Result<(u32, u32), Fault> {
        let mut ip = self.parse(set)?;
        let packets = lent(&mut self.packets)?;
        let n = packets.len();
        if !self.is_layer3 {
            let typed = self.parsed.with_type(self.level, n, ethertype::IP4);
            ip = masks::and(&ip, &typed);
        }
        let good = masks::and(&ip, self.parsed.good());
        let padded = masks::and(self.parsed.padded(), &good);
        if padded != NO_BITS {
            for row in masks::rows(&padded) {
                packets.packet(row).truncate(self.parsed.end(row, n));
            }
        }
        let bad = masks::and(&ip, self.parsed.bad());
        Ok((self.sets.put(set, &good)?, self.sets.put(set, &bad)?))
    }

    /// Look up the destinations of IPv4 packets. Returns the set of those whose route is complete and whose length the interface of
    /// the route can transmit. A packet that the script has sent and that has no route now is not sent.
    pub(crate) fn lookup(&mut self, set: u32, view: &Lpm4View, hops: &[Hop]) -> Result<u32, Fault> {
        let wanted = self.parse(set)?;
        let packets = lent(&mut self.packets)?;
        let n = packets.len();
        self.is_sent = false;
        let sent = self.has_sent.then_some(&mut self.verdicts[..n]);
        let lookup = Lookup {
            packets,
            table: (view, hops),
            wanted: &wanted,
            destinations: self.parsed.destinations(n),
            starts: (self.is_layer3, &self.framed[..n]),
            leaves: &mut self.leaves[..n],
            found: &mut self.hops,
            hop_of: &mut self.hop_of[..n],
            outputs: &mut self.outputs[..n],
            limits: &mut self.limits,
            sent,
        };
        let (complete, fit) = kernel::call(self.level, lookup);
        let others = masks::minus(&self.complete, &wanted);
        self.complete = masks::or(&others, &masks::and(&complete, &wanted));
        self.sets.put(set, &masks::and(&fit, &wanted))
    }

    /// Apply the routes of a lookup: decrement the TTL and write the Ethernet header.
    pub(crate) fn apply(&mut self, set: u32) -> Result<(), Fault> {
        lent(&mut self.packets)?;
        let wanted = self.sets.bits(set)?;
        self.apply_to(&wanted)
    }

    fn apply_to(&mut self, wanted: &Bits) -> Result<(), Fault> {
        let packets = lent(&mut self.packets)?;
        self.parsed.forget(wanted);
        let without = masks::minus(wanted, &self.complete);
        if let Some(row) = masks::rows(&without).next() {
            return Err(format!(
                "packet {} has no complete route: apply routes to the mask that `lookup` returns",
                row + 1
            ));
        }
        if self.is_layer3 {
            for row in masks::rows(wanted) {
                let is_framed = std::mem::replace(&mut self.framed[row], true);
                if !is_framed && !packets.packet(row).retreat(ETHERNET) {
                    self.framed[row] = false;
                    return Err(format!(
                        "packet {} has no room for an Ethernet header",
                        row + 1
                    ));
                }
                let [.., ttl] = packets.front::<{ ETHERNET + TTL + 1 }>(row);
                self.lowered[row] = self.lowered[row].saturating_add(u8::from(*ttl > 0));
            }
        }
        let apply = Apply {
            packets,
            room: &mut self.room,
            hops: (&self.hops, &self.hop_of),
            wanted,
        };
        kernel::call(self.level, apply);
        Ok(())
    }

    /// Apply the routes of a lookup, and send the packets on the interfaces of their routes. Returns whether these are all packets of
    /// the script.
    pub(crate) fn forward(&mut self, set: u32) -> Result<bool, Fault> {
        lent(&mut self.packets)?;
        let wanted = self.sets.bits(set)?;
        self.apply_to(&wanted)?;
        self.send_packets(set, &wanted, None)
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

/// A lookup of a vector's packets: which of them have a complete route, and which of these are not too long for its interface. What it
/// returns of packets that are not wanted has no meaning.
struct Lookup<'a> {
    packets: &'a LentPackets,
    /// Leaves by prefix, and hops by leaf less one.
    table: (&'a Lpm4View, &'a [Hop]),
    wanted: &'a Bits,
    destinations: &'a [u32],
    /// Where the IP headers start: see [`start_of_ip`].
    starts: (bool, &'a [bool]),
    leaves: &'a mut [u32],
    /// The hops that were found, and the place of each packet's hop.
    found: &'a mut Vec<Hop>,
    hop_of: &'a mut [u32],
    outputs: &'a mut [u32],
    /// The maximum length of each packet from its position, and 1 for packets that are longer.
    limits: &'a mut [Column; 2],
    /// The verdicts, if the script has sent packets.
    sent: Option<&'a mut [Verdict]>,
}

impl Kernel for Lookup<'_> {
    type Out = (Bits, Bits);

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) -> (Bits, Bits) {
        let Lookup {
            packets,
            table: (view, hops),
            wanted,
            destinations,
            starts: (is_layer3, framed),
            leaves,
            found,
            hop_of,
            outputs,
            limits: [limits, longer],
            sent,
        } = self;
        let n = packets.len();
        view.lookup_batch(destinations, leaves);
        let limits_of = limits.words_mut(n);
        let is_alike = masks::is_first(wanted, n) && !is_layer3 && all_equal(leaves);
        let one = is_alike.then(|| leaves.first());
        if let Some(&leaf) = one.flatten() {
            let hop = hop_of_leaf(hops, leaf);
            hop_of.fill(found.len() as u32);
            found.push(*hop);
            outputs.fill(hop.interface);
            let limit = limit(hop, ETHERNET);
            let lens = packets.column(Col::LEN).iter();
            let longest = lens.fold(0, |longest, &len| longest.max(len as i32));
            if hop.is_complete && longest <= limit as i32 {
                // A complete route names an interface: packets that were sent stay so.
                return (*wanted, *wanted);
            }
            limits_of.fill(limit);
        } else {
            let mut last = None;
            for row in masks::rows(wanted) {
                let (leaf, hop) = (leaves[row], hop_of_leaf(hops, leaves[row]));
                if last != Some(leaf) {
                    last = Some(leaf);
                    found.push(*hop);
                }
                hop_of[row] = found.len() as u32 - 1;
                outputs[row] = hop.interface;
                limits_of[row] = limit(hop, start_of_ip(is_layer3, framed, row));
            }
        }
        if let Some(verdicts) = sent {
            for row in masks::rows(wanted) {
                if outputs[row] == NO_INTERFACE && verdicts[row] == Verdict::Send {
                    verdicts[row] = Verdict::Next;
                }
            }
        }
        let longer = longer.words_mut(n);
        let lens = packets.column(Col::LEN).iter();
        for ((longer, len), limit) in longer.iter_mut().zip(lens).zip(&*limits_of) {
            *longer = u32::from(*len as i32 > *limit as i32);
        }
        let incomplete = isa.rows_equal(limits_of, 0);
        (
            *incomplete.inverted().words(),
            *isa.rows_equal(longer, 0).words(),
        )
    }
}

/// Decrement the TTL and write the Ethernet header of the packets in a mask, whose positions are at the Ethernet header.
struct Apply<'a> {
    packets: &'a mut LentPackets,
    room: &'a mut Offsets,
    /// The hops that were found, and the place of each packet's hop.
    hops: (&'a [Hop], &'a [u32]),
    wanted: &'a Bits,
}

impl Kernel for Apply<'_> {
    type Out = ();

    #[inline(always)]
    fn run<I: Isa>(self, _: I) {
        let n = self.packets.len();
        let (hops, hop_of) = (self.hops.0, &self.hops.1[..n]);
        if !masks::is_first(self.wanted, n) {
            for row in masks::rows(self.wanted) {
                let header = hops[hop_of[row] as usize].header();
                rewrite(self.packets.front(row), header);
            }
            return;
        }
        match hop_of.first() {
            Some(&hop) if all_equal(hop_of) => {
                let header = hops[hop as usize].header();
                self.packets
                    .apply(self.room, |_, frame| rewrite(frame, header));
            }
            _ => self.packets.apply(self.room, |row, frame| {
                rewrite(frame, hops[hop_of[row] as usize].header());
            }),
        }
    }
}

/// The hop of a leaf.
#[inline(always)]
fn hop_of_leaf(hops: &[Hop], leaf: u32) -> &Hop {
    let at = (leaf as usize).checked_sub(1);
    at.and_then(|at| hops.get(at)).unwrap_or(&Hop::NONE)
}

/// The maximum length of a packet with this hop from its position, whose IP header starts at `net`; 0 without a complete route.
#[inline(always)]
fn limit(hop: &Hop, net: usize) -> u32 {
    match hop.is_complete {
        true => hop.mtu.saturating_add(net as u32).clamp(1, i32::MAX as u32),
        false => 0,
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

/// Place of the TTL in an IPv4 header.
const TTL: usize = std::mem::offset_of!(Ip4Header, ttl);

/// Decrement the TTL behind an Ethernet header, and write that header: its bytes 0..8 and 6..14. A TTL of 0 stays.
#[inline(always)]
fn rewrite(frame: &mut [u8; ETHERNET + Ip4Header::LEN], [head, tail]: [u64; 2]) {
    if let Ok((header, _)) = Ip4Header::split_mut(&mut frame[ETHERNET..])
        && header.ttl > 0
    {
        header.decrement_ttl();
    }
    frame[..8].copy_from_slice(&head.to_ne_bytes());
    frame[6..ETHERNET].copy_from_slice(&tail.to_ne_bytes());
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
