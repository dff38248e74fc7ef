//! What a filter can ask of a packet.

use std::ops::Range;
use volley_wire::ethertype;

/// A field of a packet, or the presence of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    Len,
    Eth,
    EthDst,
    EthSrc,
    EthType,
    Vlan,
    Arp,
    ArpOp,
    ArpSpa,
    ArpTpa,
    Ip4,
    Ip4Tos,
    Ip4Length,
    Ip4Id,
    Ip4Frag,
    Ip4Ttl,
    Ip4Proto,
    Ip4Src,
    Ip4Dst,
    Ip6,
    Ip6Flow,
    Ip6Length,
    Ip6Next,
    Ip6Hops,
    Ip6Src,
    Ip6Dst,
    Proto,
    Sport,
    Dport,
    Udp,
    UdpSport,
    UdpDport,
    UdpLength,
    Tcp,
    TcpSport,
    TcpDport,
    TcpFlags,
    Icmp,
    IcmpType,
    IcmpCode,
    Icmp6,
    Icmp6Type,
    Icmp6Code,
}

/// What a field's values look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Nothing to compare: it is there or not.
    Header,
    Number,
    Mac,
    Ip4,
    Ip6,
}

use Field as F;
use Kind as K;

/// Every name a filter knows. Aliases share a field.
pub(crate) const NAMES: &[(&str, Field, Kind)] = &[
    ("len", F::Len, K::Number),
    ("eth", F::Eth, K::Header),
    ("eth.dst", F::EthDst, K::Mac),
    ("eth.src", F::EthSrc, K::Mac),
    ("eth.type", F::EthType, K::Number),
    ("ether.dst", F::EthDst, K::Mac),
    ("ether.src", F::EthSrc, K::Mac),
    ("ether.type", F::EthType, K::Number),
    ("vlan", F::Vlan, K::Header),
    ("vlan.id", F::Vlan, K::Number),
    ("arp", F::Arp, K::Header),
    ("arp.op", F::ArpOp, K::Number),
    ("arp.spa", F::ArpSpa, K::Ip4),
    ("arp.tpa", F::ArpTpa, K::Ip4),
    ("ip4", F::Ip4, K::Header),
    ("ip4.tos", F::Ip4Tos, K::Number),
    ("ip4.length", F::Ip4Length, K::Number),
    ("ip4.id", F::Ip4Id, K::Number),
    ("ip4.frag", F::Ip4Frag, K::Number),
    ("ip4.ttl", F::Ip4Ttl, K::Number),
    ("ip4.proto", F::Ip4Proto, K::Number),
    ("ip4.src", F::Ip4Src, K::Ip4),
    ("ip4.dst", F::Ip4Dst, K::Ip4),
    ("ip6", F::Ip6, K::Header),
    ("ip6.flow", F::Ip6Flow, K::Number),
    ("ip6.length", F::Ip6Length, K::Number),
    ("ip6.next", F::Ip6Next, K::Number),
    ("ip6.hops", F::Ip6Hops, K::Number),
    ("ip6.src", F::Ip6Src, K::Ip6),
    ("ip6.dst", F::Ip6Dst, K::Ip6),
    ("udp", F::Udp, K::Header),
    ("udp.sport", F::UdpSport, K::Number),
    ("udp.dport", F::UdpDport, K::Number),
    ("udp.length", F::UdpLength, K::Number),
    ("tcp", F::Tcp, K::Header),
    ("tcp.sport", F::TcpSport, K::Number),
    ("tcp.dport", F::TcpDport, K::Number),
    ("tcp.flags", F::TcpFlags, K::Number),
    ("icmp", F::Icmp, K::Header),
    ("icmp.type", F::IcmpType, K::Number),
    ("icmp.code", F::IcmpCode, K::Number),
    ("icmp6", F::Icmp6, K::Header),
    ("icmp6.type", F::Icmp6Type, K::Number),
    ("icmp6.code", F::Icmp6Code, K::Number),
];

/// Where the headers of a packet are.
pub(crate) struct Packet<'a> {
    bytes: &'a [u8],
    len: usize,
    /// Behind the tags, if any.
    ether_type: Option<u16>,
    tag: Option<u16>,
    l3: usize,
    /// Protocol of the transport layer and where it begins (nowhere in later fragments).
    l4: Option<(u8, Option<usize>)>,
}

impl<'a> Packet<'a> {
    pub(crate) fn new(bytes: &'a [u8], len: usize) -> Self {
        let mut packet = Packet {
            bytes,
            len,
            ether_type: None,
            tag: None,
            l3: 14,
            l4: None,
        };
        packet.ether_type = packet.half(12);
        while packet.ether_type.is_some_and(ethertype::is_tag) && packet.l3 <= 22 {
            packet.tag = packet.tag.or(packet.half(packet.l3).map(|tci| tci & 0xfff));
            packet.ether_type = packet.half(packet.l3 + 2);
            packet.l3 += 4;
        }
        packet.l4 = match packet.ether_type {
            Some(ethertype::IP4) => packet.l4_of_ip4(),
            Some(ethertype::IP6) => packet.l4_of_ip6(),
            _ => None,
        };
        packet
    }

    fn l4_of_ip4(&self) -> Option<(u8, Option<usize>)> {
        let ihl = usize::from(self.byte(self.l3)? & 0xf) * 4;
        let later = self.half(self.l3 + 6)? & 0x1fff != 0;
        let proto = self.byte(self.l3 + 9)?;
        Some((proto, (!later && ihl >= 20).then_some(self.l3 + ihl)))
    }

    fn l4_of_ip6(&self) -> Option<(u8, Option<usize>)> {
        let (mut next, mut at) = (self.byte(self.l3 + 6)?, self.l3 + 40);
        for _ in 0..8 {
            let len = match next {
                0 | 43 | 60 => (usize::from(self.byte(at + 1)?) + 1) * 8,
                44 if self.half(at + 2)? & 0xfff8 != 0 => {
                    return Some((self.byte(at)?, None));
                }
                44 => 8,
                _ => return Some((next, Some(at))),
            };
            next = self.byte(at)?;
            at += len;
        }
        Some((next, None))
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.bytes.get(at).copied()
    }

    fn half(&self, at: usize) -> Option<u16> {
        let [a, b] = *self.bytes.get(at..at + 2)?.as_array()?;
        Some(u16::from_be_bytes([a, b]))
    }

    fn number(&self, range: Range<usize>) -> Option<u128> {
        let bytes = self.bytes.get(range)?;
        Some(bytes.iter().fold(0, |n, b| n << 8 | u128::from(*b)))
    }

    /// A field `len` bytes long at `at` of the network header, where that is of type `ether_type`.
    fn l3(&self, ether_type: u16, at: usize, len: usize) -> Option<u128> {
        let at = self.l3 + at;
        (self.ether_type == Some(ether_type))
            .then(|| self.number(at..at + len))
            .flatten()
    }

    /// The same of the transport header, where that is of protocol `proto`.
    fn l4(&self, proto: u8, at: usize, len: usize) -> Option<u128> {
        let (_, start) = self.l4.filter(|(p, _)| *p == proto)?;
        let at = start? + at;
        self.number(at..at + len)
    }

    /// The presence of a transport header of protocol `proto`, also where it lies in an earlier fragment.
    fn carries(&self, proto: u8) -> Option<u128> {
        self.l4.filter(|(p, _)| *p == proto).map(|_| 1)
    }

    pub(crate) fn get(&self, field: Field) -> Option<u128> {
        match field {
            F::Len => Some(self.len as u128),
            F::Eth => self.ether_type.map(|_| 1),
            F::EthDst => self.number(0..6),
            F::EthSrc => self.number(6..12),
            F::EthType => self.ether_type.map(u128::from),
            F::Vlan => self.tag.map(u128::from),
            F::Arp | F::ArpOp => self.l3(ethertype::ARP, 6, 2),
            F::ArpSpa => self.l3(ethertype::ARP, 14, 4),
            F::ArpTpa => self.l3(ethertype::ARP, 24, 4),
            F::Udp => self.carries(17),
            F::Tcp => self.carries(6),
            F::Icmp => self.carries(1),
            F::Icmp6 => self.carries(58),
            F::Proto => self.l4.map(|(proto, _)| u128::from(proto)),
            F::Sport => self.l4(17, 0, 2).or_else(|| self.l4(6, 0, 2)),
            F::Dport => self.l4(17, 2, 2).or_else(|| self.l4(6, 2, 2)),
            F::UdpSport => self.l4(17, 0, 2),
            F::UdpDport => self.l4(17, 2, 2),
            F::UdpLength => self.l4(17, 4, 2),
            F::TcpSport => self.l4(6, 0, 2),
            F::TcpDport => self.l4(6, 2, 2),
            F::TcpFlags => self.l4(6, 13, 1),
            F::IcmpType => self.l4(1, 0, 1),
            F::IcmpCode => self.l4(1, 1, 1),
            F::Icmp6Type => self.l4(58, 0, 1),
            F::Icmp6Code => self.l4(58, 1, 1),
            _ => self.get_ip(field),
        }
    }

    fn get_ip(&self, field: Field) -> Option<u128> {
        let ip4 = |at, len| self.l3(ethertype::IP4, at, len);
        let ip6 = |at, len| self.l3(ethertype::IP6, at, len);
        match field {
            F::Ip4 => ip4(0, 1),
            F::Ip4Tos => ip4(1, 1),
            F::Ip4Length => ip4(2, 2),
            F::Ip4Id => ip4(4, 2),
            F::Ip4Frag => ip4(6, 2).map(|word| word & 0x1fff),
            F::Ip4Ttl => ip4(8, 1),
            F::Ip4Proto => ip4(9, 1),
            F::Ip4Src => ip4(12, 4),
            F::Ip4Dst => ip4(16, 4),
            F::Ip6 => ip6(0, 1),
            F::Ip6Flow => ip6(0, 4).map(|word| word & 0xf_ffff),
            F::Ip6Length => ip6(4, 2),
            F::Ip6Next => ip6(6, 1),
            F::Ip6Hops => ip6(7, 1),
            F::Ip6Src => ip6(8, 16),
            F::Ip6Dst => ip6(24, 16),
            _ => None,
        }
    }
}
