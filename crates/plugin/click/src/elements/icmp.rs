//! ICMPPingResponder and ICMPError.

use crate::arguments::{Arguments, mask, plain_words, prefix};
use crate::columns::{self, BROADCAST, FIX_SRC, MULTICAST, PAINT, POINTER_SHIFT, TYPE};
use crate::element::{Build, Each, Emit, Made, PacketAction, Reason, Verdict};
use crate::packet::{ICMP, Ip, change16, dst, is_first, protocol, put, src, u16_at};
use crate::spec::Need::{Keyword, Optional, Required};
use crate::spec::{Kind, Spec, argument};
use std::sync::Arc;
use volley_graph::Packet;
use volley_wire::checksum::Sum;
use volley_wire::icmp4::Icmp4Type;
use volley_wire::ip4::Ip4Header;
use volley_wire::ip4::option::{LOOSE_SOURCE_ROUTE, STRICT_SOURCE_ROUTE};
use volley_wire::{IntoBytes, IpProto};

/// The longest error (RFC 1812, 4.3.2.3).
const LONGEST: usize = 576;
const HEADERS: usize = 20 + 8;
/// TTL of packets that the router makes.
pub(super) const TTL: u8 = 255;

const UNREACHABLE: u8 = Icmp4Type::UNREACHABLE.0;
const REDIRECT: u8 = Icmp4Type::REDIRECT.0;
const TIME_EXCEEDED: u8 = Icmp4Type::TIME_EXCEEDED.0;
const PARAMETER_PROBLEM: u8 = Icmp4Type::PARAMETER_PROBLEM.0;

#[derive(Clone)]
struct PingResponder;

impl Each for PingResponder {
    fn packet(&mut self, packet: &mut Packet<'_>, _: u64) -> Verdict {
        let Some(ip) = Ip::of(&packet.view()) else {
            return Verdict::drop(Reason::NoIpHeader);
        };
        let header = ip.bytes(packet.bytes());
        let echo = ip.at + ip.header;
        let is_request = protocol(header) == ICMP
            && is_first(header)
            && ip.total >= ip.header + 8
            && packet.bytes().get(echo) == Some(&8);
        if !is_request {
            return Verdict::port_or(1, Reason::Unmatched);
        }
        let (from, to) = (src(header), dst(header));
        let ttl = u16_at(header, 8) & 0xff | u16::from(TTL) << 8;
        let bytes = packet.bytes_mut();
        // Exchanging the addresses keeps the checksum.
        put(bytes, ip.at + 12, &to.to_be_bytes());
        put(bytes, ip.at + 16, &from.to_be_bytes());
        change16(bytes, ip.at, 8, ttl);
        let sum = u16_at(bytes, echo + 2);
        let word = u16_at(bytes, echo);
        let sum = volley_wire::checksum::update(sum, word, word & 0xff);
        bytes[echo] = 0;
        put(bytes, echo + 2, &sum.to_be_bytes());
        columns::set_dst(packet, from);
        columns::set_note(packet, PAINT | TYPE, 0);
        Verdict::port(0)
    }
}

#[derive(Clone)]
struct IcmpError {
    src: u32,
    kind: u8,
    code: u8,
    /// The packet is no source of an error if one of these is its source.
    bad: Arc<[u32]>,
    mtu: u16,
    pointer: u8,
    id: u16,
}

/// Whether an option of the packet routes it by its source.
fn is_source_routed(options: &[u8]) -> bool {
    let mut at = 0;
    while at < options.len() {
        match options[at] {
            0 => return false,
            1 => at += 1,
            LOOSE_SOURCE_ROUTE | STRICT_SOURCE_ROUTE => return true,
            _ => match options.get(at + 1) {
                Some(&len) if len >= 2 => at += usize::from(len),
                _ => return false,
            },
        }
    }
    false
}

impl IcmpError {
    /// Whether an error about the packet may be sent (RFC 1812, 4.3.2.7).
    fn may_answer(&self, packet: &Packet<'_>, ip: &Ip) -> bool {
        let header = ip.bytes(packet.bytes());
        let kind = columns::note(packet) & TYPE;
        let (from, to) = (src(header), dst(header));
        let is_error = protocol(header) == ICMP && {
            let kind = packet.bytes().get(ip.at + ip.header).copied().unwrap_or(3);
            // Echo, timestamp, information and mask are queries; unknown types are treated as errors.
            ![0, 8, 9, 10, 13, 14, 15, 16, 17, 18].contains(&kind)
        };
        is_first(header)
            && !is_error
            && kind != BROADCAST
            && kind != MULTICAST
            && to >> 28 < 14
            && from >> 28 < 14
            && from >> 24 != 0
            && from >> 24 != 127
            && !self.bad.contains(&from)
            && !is_source_routed(&header[20..])
    }

    /// The second word of the ICMP header.
    fn rest(&self, packet: &Packet<'_>) -> [u8; 4] {
        match self.kind {
            PARAMETER_PROBLEM if self.code == 0 => {
                let noted = (columns::note(packet) >> POINTER_SHIFT) as u8;
                [if noted != 0 { noted } else { self.pointer }, 0, 0, 0]
            }
            REDIRECT => columns::dst(packet).to_be_bytes(),
            _ => {
                let [high, low] = self.mtu.to_be_bytes();
                [0, 0, high, low]
            }
        }
    }
}

impl Build for IcmpError {
    fn packet(&mut self, packet: &mut Packet<'_>, to: &mut dyn Emit, _: u64) -> PacketAction {
        let Some(ip) = Ip::of(&packet.view()) else {
            return PacketAction::Go(Verdict::drop(Reason::NoIpHeader));
        };
        if !self.may_answer(packet, &ip) {
            return PacketAction::Go(Verdict::drop(Reason::NoError));
        }
        let target = src(ip.bytes(packet.bytes()));
        let quoted = &packet.bytes()[ip.at..];
        let quoted = &quoted[..quoted.len().min(ip.total).min(LONGEST - HEADERS)];
        let mut quote = [0; LONGEST];
        put(&mut quote, 0, quoted);
        let len = quoted.len();
        let rest = self.rest(packet);
        let mut icmp = [
            self.kind, self.code, 0, 0, rest[0], rest[1], rest[2], rest[3],
        ];
        let sum = Sum::new().bytes(&icmp).bytes(&quote[..len]).checksum();
        put(&mut icmp, 2, &sum.to_be_bytes());
        let mut header =
            Ip4Header::new(self.src.into(), target.into(), IpProto(ICMP), TTL, 8 + len);
        // RFC 1812, 4.3.2.5: precedence of the answered packet, or of internetwork control.
        header.tos = 0xc0;
        header.id = volley_wire::U16::new(self.id);
        header.fill_checksum(&[]);
        self.id = self.id.wrapping_add(1);
        columns::set_dst(packet, target);
        columns::set_note(packet, u32::MAX, FIX_SRC);
        let made = to.build(packet, 0, (HEADERS + len, 0), &mut |bytes| {
            put(bytes, 0, header.as_bytes());
            put(bytes, 20, &icmp);
            put(bytes, HEADERS, &quote[..len]);
        });
        match made {
            true => PacketAction::Replaced,
            false => PacketAction::Go(Verdict::drop(Reason::NoBuffer)),
        }
    }
}

const TYPES: [(&str, u8); 4] = [
    ("unreachable", UNREACHABLE),
    ("redirect", REDIRECT),
    ("timeexceeded", TIME_EXCEEDED),
    ("parameterproblem", PARAMETER_PROBLEM),
];

/// Names of codes, each with the type.
const CODES: [(u8, &str, u8); 16] = [
    (UNREACHABLE, "net", 0),
    (UNREACHABLE, "host", 1),
    (UNREACHABLE, "protocol", 2),
    (UNREACHABLE, "port", 3),
    (UNREACHABLE, "needfrag", 4),
    (UNREACHABLE, "srcroutefail", 5),
    (UNREACHABLE, "filterprohibited", 13),
    (REDIRECT, "net", 0),
    (REDIRECT, "host", 1),
    (REDIRECT, "tosnet", 2),
    (REDIRECT, "toshost", 3),
    (TIME_EXCEEDED, "transit", 0),
    (TIME_EXCEEDED, "reassembly", 1),
    (PARAMETER_PROBLEM, "erroratptr", 0),
    (PARAMETER_PROBLEM, "missingopt", 1),
    (PARAMETER_PROBLEM, "length", 2),
];

fn error(arguments: &Arguments) -> Result<Made, String> {
    let text = arguments.text("TYPE").unwrap_or_default();
    let named = TYPES
        .iter()
        .find(|(name, _)| *name == text)
        .map(|(_, kind)| *kind);
    let kind = named.or(text.parse().ok()).ok_or_else(|| {
        let names = TYPES.iter().map(|(name, _)| *name);
        let known: Vec<&str> = names.clone().collect();
        let otherwise = format!("give {} or a number", known.join(", "));
        let hint = volley_click_lang::hint(text, names, &otherwise);
        format!("ICMPError has no type '{text}'{hint}")
    })?;
    let text = arguments.text("CODE").unwrap_or("0");
    let of_type = CODES.iter().filter(|(of, ..)| *of == kind);
    let named = of_type
        .clone()
        .find(|(_, name, _)| *name == text)
        .map(|it| it.2);
    let code = named.or(text.parse().ok()).ok_or_else(|| {
        let known: Vec<&str> = of_type.map(|it| it.1).collect();
        format!(
            "ICMPError has no code '{text}' for this type: give {} or a number",
            known.join(", ")
        )
    })?;
    let mut bad = vec![0, u32::MAX];
    for word in plain_words(arguments.text("BADADDRS").unwrap_or_default()) {
        let (address, len) = prefix(&word).ok_or_else(|| {
            format!("'{word}' is not an IPv4 address or prefix: correct BADADDRS")
        })?;
        bad.push(if len == 32 {
            address
        } else {
            address | !mask(len)
        });
    }
    Ok(Made::build(IcmpError {
        src: arguments.address("SRC").unwrap_or(0),
        kind,
        code,
        bad: bad.into(),
        mtu: arguments.number("MTU").unwrap_or(0) as u16,
        pointer: arguments.number("POINTER").unwrap_or(0) as u8,
        id: 0,
    }))
}

pub(super) const RESPONDER: Spec = Spec {
    name: "ICMPPingResponder",
    ports: "1/1-2",
    modes: "a/ah",
    arguments: &[],
    handlers: &[],
    text: "Answers echo requests of ICMP; other packets go to output 1.",
    make: |_, _| Ok(Made::each(PingResponder)),
};

pub(super) const ERROR: Spec = Spec {
    name: "ICMPError",
    ports: "1/1",
    modes: "h/h",
    arguments: &[
        argument(
            Required,
            "SRC",
            Kind::Address,
            "source address, which FixIPSrc may replace",
        ),
        argument(Required, "TYPE", Kind::Text, "type, by name or number"),
        argument(
            Optional,
            "CODE",
            Kind::Text,
            "code, by name or number, 0 by default",
        ),
        argument(
            Optional,
            "BADADDRS",
            Kind::Words,
            "addresses that get no errors; a prefix means its broadcast address",
        ),
        argument(
            Keyword,
            "MTU",
            Kind::Number(0, 0xffff),
            "MTU of the next hop, for needfrag",
        ),
        argument(
            Keyword,
            "POINTER",
            Kind::Number(0, 255),
            "place of the fault if no element noted one",
        ),
    ],
    handlers: &[],
    text: "Replaces packets by an ICMP error to their source, where RFC 1812 allows one.",
    make: |arguments, _| error(arguments),
};
