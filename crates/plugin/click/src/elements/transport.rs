//! Checksums of TCP, UDP and ICMP.

use super::check::{DETAILS, VERBOSE};
use super::rewrite;
use crate::element::{Each, Made, Reason, Verdict};
use crate::packet::{ICMP, Ip, TCP, UDP, is_first, protocol, put, sum, transport_sum, u16_at};
use crate::spec::Need::Keyword;
use crate::spec::{Kind, Spec, argument};
use volley_graph::Packet;

/// The place of the checksum of a protocol in its header, and the length of the shortest header.
fn place(protocol: u8) -> (usize, usize) {
    match protocol {
        TCP => (16, 20),
        UDP => (6, 8),
        _ => (2, 8),
    }
}

/// The IP header of a packet of a protocol that is not fragmented and whose transport header is complete.
fn transport(packet: &Packet<'_>, wanted: u8) -> Result<Ip, Reason> {
    let ip = Ip::of(&packet.view()).ok_or(Reason::NoIpHeader)?;
    let header = ip.bytes(packet.bytes());
    if protocol(header) != wanted || !is_first(header) {
        return Err(Reason::Unmatched);
    }
    let complete = ip.total - ip.header >= place(wanted).1
        && packet.bytes().len() >= ip.at + ip.header + place(wanted).1;
    match complete {
        true => Ok(ip),
        false => Err(Reason::TooShort),
    }
}

#[derive(Clone)]
struct SetChecksum(u8);

impl Each for SetChecksum {
    fn packet(&mut self, packet: &mut Packet<'_>, _: u64) -> Verdict {
        let ip = match transport(packet, self.0) {
            Ok(ip) => ip,
            Err(reason) => return Verdict::port_or(1, reason),
        };
        let at = ip.at + ip.header + place(self.0).0;
        put(packet.bytes_mut(), at, &[0, 0]);
        let sum = !transport_sum(&packet.view(), &ip);
        // RFC 768: 0 means no checksum.
        let sum = if self.0 == UDP && sum == 0 {
            0xffff
        } else {
            sum
        };
        put(packet.bytes_mut(), at, &sum.to_be_bytes());
        Verdict::port(0)
    }
}

#[derive(Clone)]
struct CheckHeader {
    protocol: u8,
    checksum: bool,
}

impl CheckHeader {
    fn check(&self, packet: &Packet<'_>) -> Result<(), Reason> {
        let ip = transport(packet, self.protocol)?;
        let at = ip.at + ip.header;
        let bytes = packet.bytes();
        let payload = ip.total - ip.header;
        match self.protocol {
            TCP => {
                let len = usize::from(bytes[at + 12] >> 4) * 4;
                if len < 20 || len > payload {
                    return Err(Reason::BadHeader);
                }
            }
            UDP => {
                let len = usize::from(u16_at(bytes, at + 4));
                if len < 8 || len > payload {
                    return Err(Reason::BadHeader);
                }
                if u16_at(bytes, at + 6) == 0 {
                    return Ok(());
                }
            }
            _ => {}
        }
        if !self.checksum {
            return Ok(());
        }
        let sum = match self.protocol {
            ICMP => sum(&packet.view(), at, payload).folded(),
            _ => transport_sum(&packet.view(), &ip),
        };
        match sum == 0xffff {
            true => Ok(()),
            false => Err(Reason::BadChecksum),
        }
    }
}

impl Each for CheckHeader {
    fn packet(&mut self, packet: &mut Packet<'_>, _: u64) -> Verdict {
        match self.check(packet) {
            Ok(()) => Verdict::port(0),
            Err(reason) => Verdict::port_or(1, reason),
        }
    }
}

const SET_TCP: Spec = Spec {
    name: "SetTCPChecksum",
    ports: "1/1-2",
    modes: "a/ah",
    arguments: &[argument(
        Keyword,
        "FIXOFF",
        Kind::Bool,
        "accepted and ignored",
    )],
    handlers: &[],
    text: "Sets the checksum of TCP; other packets go to output 1.",
    make: |_, _| Ok(Made::each(SetChecksum(TCP))),
};

const CHECK_TCP: Spec = Spec {
    name: "CheckTCPHeader",
    arguments: &[
        argument(
            Keyword,
            "CHECKSUM",
            Kind::Bool,
            "whether the checksum is checked, true by default",
        ),
        VERBOSE,
        DETAILS,
    ],
    text: "Checks the header of TCP; wrong packets go to output 1.",
    make: |arguments, _| Ok(Made::each(check(arguments, TCP))),
    ..SET_TCP
};

fn check(arguments: &crate::arguments::Arguments, protocol: u8) -> CheckHeader {
    CheckHeader {
        protocol,
        checksum: arguments.flag("CHECKSUM").unwrap_or(true),
    }
}

pub(super) const SPECS: &[Spec] = &[
    SET_TCP,
    Spec {
        name: "SetUDPChecksum",
        arguments: &[],
        text: "Sets the checksum of UDP; other packets go to output 1.",
        make: |_, _| Ok(Made::each(SetChecksum(UDP))),
        ..SET_TCP
    },
    CHECK_TCP,
    Spec {
        name: "CheckUDPHeader",
        text: "Checks the header of UDP; wrong packets go to output 1.",
        make: |arguments, _| Ok(Made::each(check(arguments, UDP))),
        ..CHECK_TCP
    },
    Spec {
        name: "CheckICMPHeader",
        text: "Checks the header of ICMP; wrong packets go to output 1.",
        make: |arguments, _| Ok(Made::each(check(arguments, ICMP))),
        ..CHECK_TCP
    },
    rewrite::PORTS,
    rewrite::TCP_ONLY,
    rewrite::UDP_ONLY,
    rewrite::ADDRESSES,
];
