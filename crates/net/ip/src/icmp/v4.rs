//! ICMP (RFC 792, 1122, 1191, 1812).

use super::message::{ErrorMessage, ErrorReason, HOPS, LONGEST, Suppressed, be16, quote};
use super::protocol::Icmp;
use crate::options4;
use volley_fib::V4;
use volley_graph::PacketView;
use volley_wire::checksum;
use volley_wire::icmp4::{Icmp4Header, Icmp4Type, unreachable};
use volley_wire::ip4::{FLAG_DONT_FRAGMENT, Ip4Header};
use volley_wire::{Header, IntoBytes, IpProto, U16};

/// Largest error (RFC 1812, 4.3.2.3), with its headers.
const MOST: usize = 576;
const HEADERS: usize = Ip4Header::LEN + Icmp4Header::LEN;
const PROTOCOL: u8 = IpProto::ICMP.0;

/// Length of the IPv4 header.
fn header_len(packet: &[u8]) -> usize {
    packet.first().map_or(0, |b| usize::from(b & 15) * 4)
}

fn is_one_host(source: u32) -> bool {
    let first = source >> 24;
    first != 0 && first != 127 && first < 224
}

#[expect(private_interfaces, reason = "the trait is sealed by its types")]
impl Icmp for V4 {
    const ICMP_ERROR: &'static str = "ip4-icmp-error";
    const FRAGMENT: &'static str = "ip4-frag";
    const ICMP_INPUT: &'static str = "ip4-icmp-input";
    const ICMP_ECHO: &'static str = "ip4-icmp-echo-request";
    const ICMP_EDGES: &'static [&'static str] =
        &["error-drop", Self::ICMP_ECHO, "ping-input", "linux-cp-punt"];
    const ECHO_REQUEST: u8 = Icmp4Type::ECHO_REQUEST.0;
    const ECHO_REPLY: u8 = Icmp4Type::ECHO_REPLY.0;
    const PARAMETER_PROBLEM: u8 = Icmp4Type::PARAMETER_PROBLEM.0;

    const REDIRECT: &'static str = "ip4-redirect";

    fn mapped(octets: [u8; 16]) -> Option<u32> {
        let address = std::net::Ipv6Addr::from(octets).to_ipv4_mapped();
        address.map(|address| address.to_bits())
    }

    fn redirects_from(_own: &[(u32, u8)], _mac: u64, near: u32) -> u32 {
        near
    }

    fn is_first_hop(_hop: u32, _destination: u32) -> bool {
        true
    }

    /// RFC 1812, 5.2.7.2: host redirects only, no network redirects.
    fn write_redirect(
        out: &mut [u8; LONGEST],
        (hop, _): (u32, Option<[u8; 6]>),
        ends: (u32, u32),
        packet: &PacketView<'_>,
    ) -> usize {
        let say = ErrorMessage {
            kind: Icmp4Type::REDIRECT.0,
            code: 1,
            rest: hop.to_be_bytes(),
        };
        Self::write(out, say, ends, packet)
    }

    fn ends(header: &[u8]) -> Option<(u32, u32)> {
        let word = |at: usize| {
            let bytes: [u8; 4] = header.get(at..at + 4)?.try_into().ok()?;
            Some(u32::from_be_bytes(bytes))
        };
        Some((word(12)?, word(16)?))
    }

    fn silence(packet: &PacketView<'_>) -> Option<Suppressed> {
        let bytes = packet.bytes();
        let (source, _) = Self::ends(bytes)?;
        if !is_one_host(source) {
            return Some(Suppressed::BadSource);
        }
        if be16(bytes, 6) & 0x1fff != 0 {
            return Some(Suppressed::AboutFragment);
        }
        let message = bytes.get(header_len(bytes)).copied();
        let about_error = bytes[9] == PROTOCOL && message.is_none_or(Self::is_error);
        about_error.then_some(Suppressed::AboutError)
    }

    /// RFC 1812, 4.3.2.7.
    fn tells_of_groups(_: ErrorReason, _: ErrorMessage, _: &[u8]) -> bool {
        false
    }

    fn say(why: ErrorReason, packet: &PacketView<'_>, mtu: u16) -> Option<ErrorMessage> {
        let say = |kind: Icmp4Type, code, rest| ErrorMessage {
            kind: kind.0,
            code,
            rest,
        };
        let lost = |code| say(Icmp4Type::UNREACHABLE, code, [0; 4]);
        Some(match why {
            ErrorReason::Expired => say(Icmp4Type::TIME_EXCEEDED, 0, [0; 4]),
            ErrorReason::Reassembly => say(Icmp4Type::TIME_EXCEEDED, 1, [0; 4]),
            // ICMP for IPv4 has no codes for these.
            ErrorReason::FragmentLength
            | ErrorReason::FragmentOffset
            | ErrorReason::HeaderChain => return None,
            ErrorReason::NoRoute => lost(unreachable::NET),
            ErrorReason::Unreachable => lost(unreachable::HOST),
            ErrorReason::Prohibited => lost(unreachable::PROHIBITED),
            ErrorReason::Protocol => lost(unreachable::PROTOCOL),
            ErrorReason::Port => lost(unreachable::PORT),
            ErrorReason::TooBig => {
                let [high, low] = mtu.to_be_bytes();
                let code = unreachable::FRAGMENTATION_NEEDED;
                say(Icmp4Type::UNREACHABLE, code, [0, 0, high, low])
            }
            ErrorReason::Problem => {
                let bytes = packet.bytes();
                let options = bytes.get(20..header_len(bytes))?;
                let (_, at) = options4::read(options).err()?;
                let pointer = [20 + at as u8, 0, 0, 0];
                say(Icmp4Type::PARAMETER_PROBLEM, 0, pointer)
            }
        })
    }

    fn is_routable(_own: u32) -> bool {
        true
    }

    fn write(
        out: &mut [u8; LONGEST],
        say: ErrorMessage,
        (from, to): (u32, u32),
        packet: &PacketView<'_>,
    ) -> usize {
        let bytes = packet.bytes();
        let total = usize::from(be16(bytes, 2)).min(packet.len());
        let room = total.min(MOST - HEADERS);
        let len = HEADERS + quote(&mut out[HEADERS..HEADERS + room], packet);
        let class = bytes.get(1).map_or(0, |tos| tos & 0x1e);
        // RFC 1812, 4.3.2.5: TOS of the packet, precedence "internetwork control". RFC 6864: with "don't fragment" the
        // identification has no meaning, and the error fits every link.
        let mut header = Ip4Header::new(
            from.into(),
            to.into(),
            IpProto(PROTOCOL),
            HOPS,
            len - Ip4Header::LEN,
        );
        header.tos = 0xc0 | class;
        header.flags_fragment = U16::new(FLAG_DONT_FRAGMENT);
        header.fill_checksum(&[]);
        let mut message = Icmp4Header::new(Icmp4Type(say.kind), say.code, say.rest);
        message.fill_checksum(&out[HEADERS..len]);
        out[..Ip4Header::LEN].copy_from_slice(header.as_bytes());
        out[Ip4Header::LEN..HEADERS].copy_from_slice(message.as_bytes());
        len
    }

    fn echo(packet: &mut [u8]) -> Option<usize> {
        let at = header_len(packet);
        if at < 20 || packet.len() < at + 8 || packet[at] != Icmp4Type::ECHO_REQUEST.0 {
            return None;
        }
        // Swapped addresses do not change the checksum.
        let (src, dst) = packet[12..20].split_at_mut(4);
        src.swap_with_slice(dst);
        let before = be16(packet, 8);
        packet[8] = HOPS;
        let sum = checksum::update(be16(packet, 10), before, be16(packet, 8));
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        let before = be16(packet, at);
        packet[at] = Icmp4Type::ECHO_REPLY.0;
        let sum = checksum::update(be16(packet, at + 2), before, be16(packet, at));
        packet[at + 2..at + 4].copy_from_slice(&sum.to_be_bytes());
        Some(0)
    }

    /// RFC 1122, 3.2.2.
    fn is_neighbor(_kind: u8) -> bool {
        false
    }

    fn is_error(kind: u8) -> bool {
        [
            Icmp4Type::UNREACHABLE,
            Icmp4Type::SOURCE_QUENCH,
            Icmp4Type::REDIRECT,
            Icmp4Type::TIME_EXCEEDED,
            Icmp4Type::PARAMETER_PROBLEM,
        ]
        .contains(&Icmp4Type(kind))
    }

    fn kind(packet: &[u8]) -> Option<(u8, u8)> {
        let at = header_len(packet);
        let message = packet.get(at..at + 8)?;
        Some((message[0], message[1]))
    }
}
