//! Headers of IPv4.

use super::{check, fragment, options};
use crate::columns::{self, FIX_SRC};
use crate::element::{Each, Fast, Made, Reason, Verdict};
use crate::packet::{Ip, change16, change32, fill_checksum, put, u16_at, u32_at};
use crate::spec::Need::{Keyword, Optional, Required};
use crate::spec::{Argument, Kind, Spec, argument};
use std::net::Ipv4Addr;
use volley_graph::Packet;
use volley_wire::checksum::Sum;
use volley_wire::ip4::Ip4Header;
use volley_wire::udp::UdpHeader;
use volley_wire::{Header, IntoBytes, IpProto};

/// Changes the header of a packet; without a mark the packet is dropped.
fn with_header(
    packet: &mut Packet<'_>,
    body: impl FnOnce(&mut Packet<'_>, Ip) -> Verdict,
) -> Verdict {
    match Ip::of(&packet.view()) {
        Some(ip) => body(packet, ip),
        None => Verdict::drop(Reason::NoIpHeader),
    }
}

#[derive(Clone)]
struct MarkIpHeader(usize);

impl Each for MarkIpHeader {
    fn packet(&mut self, packet: &mut Packet<'_>, _: u64) -> Verdict {
        columns::set_net(packet, self.0);
        Verdict::port(0)
    }
}

#[derive(Clone)]
struct DecIpTtl {
    active: bool,
    multicast: bool,
}

impl Each for DecIpTtl {
    fn fast(&self) -> Fast {
        match (self.active, self.multicast) {
            (false, _) => Fast::Pass,
            (true, true) => Fast::Ttl,
            (true, false) => Fast::None,
        }
    }

    fn packet(&mut self, packet: &mut Packet<'_>, _: u64) -> Verdict {
        if !self.active {
            return Verdict::port(0);
        }
        with_header(packet, |packet, ip| {
            let bytes = packet.bytes_mut();
            let is_group = bytes[ip.at + 16] >> 4 == 14;
            if is_group && !self.multicast {
                return Verdict::port(0);
            }
            let ttl = bytes[ip.at + 8];
            if ttl <= 1 {
                return Verdict::port_or(1, Reason::TtlExpired);
            }
            let word = u16_at(bytes, ip.at + 8);
            change16(bytes, ip.at, 8, word - 0x100);
            Verdict::port(0)
        })
    }
}

#[derive(Clone)]
struct GetIpAddress(usize);

impl Each for GetIpAddress {
    fn packet(&mut self, packet: &mut Packet<'_>, _: u64) -> Verdict {
        if packet.bytes().len() < self.0 + 4 {
            return Verdict::drop(Reason::TooShort);
        }
        let address = u32_at(packet.bytes(), self.0);
        columns::set_dst(packet, address);
        Verdict::port(0)
    }
}

#[derive(Clone)]
struct SetIpAddress(u32);

impl Each for SetIpAddress {
    fn packet(&mut self, packet: &mut Packet<'_>, _: u64) -> Verdict {
        columns::set_dst(packet, self.0);
        Verdict::port(0)
    }
}

#[derive(Clone)]
struct SetIpChecksum;

impl Each for SetIpChecksum {
    fn packet(&mut self, packet: &mut Packet<'_>, _: u64) -> Verdict {
        with_header(packet, |packet, ip| {
            fill_checksum(&mut packet.bytes_mut()[ip.at..], ip.header);
            Verdict::port(0)
        })
    }
}

#[derive(Clone)]
struct FixIpSrc(u32);

impl Each for FixIpSrc {
    fn fast(&self) -> Fast {
        Fast::NoBits(FIX_SRC)
    }

    fn packet(&mut self, packet: &mut Packet<'_>, _: u64) -> Verdict {
        if columns::note(packet) & FIX_SRC == 0 {
            return Verdict::port(0);
        }
        columns::set_note(packet, FIX_SRC, 0);
        with_header(packet, |packet, ip| {
            change32(packet.bytes_mut(), ip.at, 12, self.0);
            Verdict::port(0)
        })
    }
}

#[derive(Clone)]
struct SetIpDscp(u8);

impl Each for SetIpDscp {
    fn packet(&mut self, packet: &mut Packet<'_>, _: u64) -> Verdict {
        with_header(packet, |packet, ip| {
            let bytes = packet.bytes_mut();
            let word = u16_at(bytes, ip.at) & !0xfc | u16::from(self.0) << 2;
            change16(bytes, ip.at, 0, word);
            Verdict::port(0)
        })
    }
}

#[derive(Clone)]
struct StripIpHeader;

impl Each for StripIpHeader {
    fn packet(&mut self, packet: &mut Packet<'_>, _: u64) -> Verdict {
        with_header(packet, |packet, ip| {
            packet.advance(ip.at + ip.header);
            Verdict::port(0)
        })
    }
}

/// Puts an IPv4 header, and one of UDP, in front of packets.
#[derive(Clone)]
struct Encap {
    protocol: u8,
    src: u32,
    dst: u32,
    ttl: u8,
    /// Source and destination port.
    udp: Option<(u16, u16)>,
    /// The UDP checksum is set.
    checksum: bool,
    id: u16,
}

impl Each for Encap {
    fn packet(&mut self, packet: &mut Packet<'_>, _: u64) -> Verdict {
        let udp = if self.udp.is_some() {
            UdpHeader::LEN
        } else {
            0
        };
        let payload = packet.len() + udp;
        if payload + Ip4Header::LEN > usize::from(u16::MAX) {
            return Verdict::drop(Reason::BadHeader);
        }
        let (src, dst) = (Ipv4Addr::from_bits(self.src), Ipv4Addr::from_bits(self.dst));
        if let Some((source, target)) = self.udp {
            let data = crate::packet::sum(&packet.view(), 0, packet.len()).folded();
            let mut header = UdpHeader::new(source, target, payload - udp);
            let sum = Sum::pseudo4(src, dst, IpProto(17), payload as u16);
            let sum = sum.bytes(header.as_bytes()).word(data);
            if self.checksum {
                header.checksum = volley_wire::U16::new(sum.checksum_udp());
            }
            if !packet.retreat(udp) {
                return Verdict::drop(Reason::NoRoom);
            }
            put(packet.bytes_mut(), 0, header.as_bytes());
        }
        let mut header = Ip4Header::new(src, dst, IpProto(self.protocol), self.ttl, payload);
        header.id = volley_wire::U16::new(self.id);
        header.fill_checksum(&[]);
        self.id = self.id.wrapping_add(1);
        if !packet.retreat(Ip4Header::LEN) {
            return Verdict::drop(Reason::NoRoom);
        }
        put(packet.bytes_mut(), 0, header.as_bytes());
        columns::set_net(packet, 0);
        columns::set_dst(packet, self.dst);
        Verdict::port(0)
    }
}

const ENCAP: &[Argument] = &[
    argument(
        Required,
        "PROTO",
        Kind::Number(0, 255),
        "protocol of the payload",
    ),
    argument(Required, "SRC", Kind::Address, "source address"),
    argument(Required, "DST", Kind::Address, "destination address"),
    argument(Keyword, "TTL", Kind::Number(1, 255), "TTL, 250 by default"),
];

/// Arguments of elements that write UDP headers.
pub(super) const SPORT: Argument =
    argument(Required, "SPORT", Kind::Number(0, 0xffff), "source port");
pub(super) const DPORT: Argument = argument(
    Required,
    "DPORT",
    Kind::Number(0, 0xffff),
    "destination port",
);
pub(super) const CHECKSUM: Argument = argument(
    Optional,
    "CHECKSUM",
    Kind::Bool,
    "whether the UDP checksum is set, true by default",
);

const UDP_ENCAP: &[Argument] = &[
    argument(Required, "SRC", Kind::Address, "source address"),
    SPORT,
    argument(Required, "DST", Kind::Address, "destination address"),
    DPORT,
    CHECKSUM,
];

const MARK: Spec = Spec {
    name: "MarkIPHeader",
    ports: "1/1",
    modes: "a/a",
    arguments: &[argument(
        Optional,
        "OFFSET",
        Kind::Number(0, 2047),
        "place of the IP header, 0 by default",
    )],
    handlers: &[],
    text: "Marks where the IP header is, without a check.",
    make: |arguments, _| {
        Ok(Made::each(MarkIpHeader(
            arguments.number("OFFSET").unwrap_or(0) as usize,
        )))
    },
};

pub(super) const SPECS: &[Spec] = &[
    check::SPEC,
    check::WITHOUT_CHECKSUM,
    MARK,
    Spec {
        name: "DecIPTTL",
        ports: "1/1-2",
        modes: "a/ah",
        arguments: &[
            argument(
                Keyword,
                "ACTIVE",
                Kind::Bool,
                "whether packets are changed, true by default",
            ),
            argument(
                Keyword,
                "MULTICAST",
                Kind::Bool,
                "whether packets for groups are changed, true by default",
            ),
        ],
        text: "Decrements the TTL; packets whose TTL has expired go to output 1.",
        make: |arguments, _| {
            Ok(Made::each(DecIpTtl {
                active: arguments.flag("ACTIVE").unwrap_or(true),
                multicast: arguments.flag("MULTICAST").unwrap_or(true),
            }))
        },
        ..MARK
    },
    fragment::SPEC,
    options::SPEC,
    Spec {
        name: "GetIPAddress",
        arguments: &[argument(
            Required,
            "OFFSET",
            Kind::Number(0, 2044),
            "place of the address, such as 16 for the destination",
        )],
        text: "Notes an address in the packet as its destination.",
        make: |arguments, _| {
            Ok(Made::each(GetIpAddress(
                arguments.number("OFFSET").unwrap_or(0) as usize,
            )))
        },
        ..MARK
    },
    Spec {
        name: "SetIPAddress",
        arguments: &[argument(Required, "IP", Kind::Address, "the address")],
        text: "Notes an address as the destination of packets.",
        make: |arguments, _| {
            Ok(Made::each(SetIpAddress(
                arguments.address("IP").unwrap_or(0),
            )))
        },
        ..MARK
    },
    Spec {
        name: "SetIPChecksum",
        arguments: &[],
        text: "Sets the checksum of the IP header.",
        make: |_, _| Ok(Made::each(SetIpChecksum)),
        ..MARK
    },
    Spec {
        name: "SetIPDSCP",
        arguments: &[argument(
            Required,
            "DSCP",
            Kind::Number(0, 63),
            "the code point",
        )],
        text: "Sets the DSCP of the IP header.",
        make: |arguments, _| {
            Ok(Made::each(SetIpDscp(
                arguments.number("DSCP").unwrap_or(0) as u8
            )))
        },
        ..MARK
    },
    Spec {
        name: "FixIPSrc",
        arguments: &[argument(
            Required,
            "IPADDR",
            Kind::Address,
            "address of the interface",
        )],
        text: "Sets the source address of packets that the router made, such as those of ICMPError.",
        make: |arguments, _| {
            Ok(Made::each(FixIpSrc(
                arguments.address("IPADDR").unwrap_or(0),
            )))
        },
        ..MARK
    },
    Spec {
        name: "StripIPHeader",
        arguments: &[],
        text: "Removes the IP header.",
        make: |_, _| Ok(Made::each(StripIpHeader)),
        ..MARK
    },
    Spec {
        name: "IPEncap",
        arguments: ENCAP,
        text: "Puts an IPv4 header in front of packets.",
        make: |arguments, _| {
            Ok(Made::each(Encap {
                protocol: arguments.number("PROTO").unwrap_or(0) as u8,
                src: arguments.address("SRC").unwrap_or(0),
                dst: arguments.address("DST").unwrap_or(0),
                ttl: arguments.number("TTL").unwrap_or(250) as u8,
                udp: None,
                checksum: false,
                id: 0,
            }))
        },
        ..MARK
    },
    Spec {
        name: "UDPIPEncap",
        arguments: UDP_ENCAP,
        text: "Puts an IPv4 and a UDP header in front of packets.",
        make: |arguments, _| {
            let port = |name| arguments.number(name).unwrap_or(0) as u16;
            Ok(Made::each(Encap {
                protocol: 17,
                src: arguments.address("SRC").unwrap_or(0),
                dst: arguments.address("DST").unwrap_or(0),
                ttl: 250,
                udp: Some((port("SPORT"), port("DPORT"))),
                checksum: arguments.flag("CHECKSUM").unwrap_or(true),
                id: 0,
            }))
        },
        ..MARK
    },
];
