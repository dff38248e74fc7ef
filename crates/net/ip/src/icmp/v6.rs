//! ICMPv6 (RFC 4443).

use super::message::{ErrorMessage, ErrorReason, HOPS, LONGEST, Suppressed, be16, quote};
use super::protocol::Icmp;
use crate::extensions::{fragment_header, loose_upper, upper};
use std::net::Ipv6Addr;
use volley_fib::V6;
use volley_graph::PacketView;
use volley_wire::checksum;
use volley_wire::icmp6::{Icmp6Header, Icmp6Type, unreachable};
use volley_wire::ip6::Ip6Header;
use volley_wire::{Header, IntoBytes, IpProto, U16};

const HEADERS: usize = Ip6Header::LEN + Icmp6Header::LEN;
pub(crate) const PROTOCOL: u8 = IpProto::ICMP6.0;

fn is_one_host(source: u128) -> bool {
    let mapped = source >> 32 == 0xffff;
    source > 1 && source >> 120 != 0xff && !mapped
}

/// The packet's bytes, trimmed to the payload length and to the first segment.
fn cut<'a>(packet: &PacketView<'a>) -> &'a [u8] {
    let bytes = packet.bytes();
    let total = 40 + usize::from(be16(bytes, 4));
    &bytes[..bytes.len().min(total)]
}

/// Writes both headers before the message's body.
fn put(out: &mut [u8; LONGEST], header: &Ip6Header, message: &Icmp6Header) {
    out[..Ip6Header::LEN].copy_from_slice(header.as_bytes());
    out[Ip6Header::LEN..HEADERS].copy_from_slice(message.as_bytes());
}

#[expect(private_interfaces, reason = "the trait is sealed by its types")]
impl Icmp for V6 {
    const ICMP_ERROR: &'static str = "ip6-icmp-error";
    const FRAGMENT: &'static str = "ip6-frag";
    const ICMP_INPUT: &'static str = "ip6-icmp-input";
    const ICMP_ECHO: &'static str = "ip6-icmp-echo-request";
    const ICMP_EDGES: &'static [&'static str] = &[
        "error-drop",
        Self::ICMP_ECHO,
        "ping-input",
        "linux-cp-punt",
        "nd-input",
    ];
    const ECHO_REQUEST: u8 = Icmp6Type::ECHO_REQUEST.0;
    const ECHO_REPLY: u8 = Icmp6Type::ECHO_REPLY.0;
    const PARAMETER_PROBLEM: u8 = Icmp6Type::PARAMETER_PROBLEM.0;

    fn ends(header: &[u8]) -> Option<(u128, u128)> {
        let number = |at: usize| {
            let bytes: [u8; 16] = header.get(at..at + 16)?.try_into().ok()?;
            Some(u128::from_be_bytes(bytes))
        };
        Some((number(8)?, number(24)?))
    }

    fn silence(packet: &PacketView<'_>) -> Option<Suppressed> {
        let bytes = cut(packet);
        let (source, _) = Self::ends(bytes)?;
        if !is_one_host(source) {
            return Some(Suppressed::BadSource);
        }
        let upper = loose_upper(bytes)?;
        if upper.proto != PROTOCOL {
            return None;
        }
        if upper.later_fragment {
            return Some(Suppressed::AboutFragment);
        }
        let message = bytes.get(upper.at).copied();
        message
            .is_none_or(Self::is_error)
            .then_some(Suppressed::AboutError)
    }

    /// RFC 4443, 2.4 (e.3): packet too big, and an option whose two top bits are 10.
    fn tells_of_groups(why: ErrorReason, say: ErrorMessage, packet: &[u8]) -> bool {
        let at = u32::from_be_bytes(say.rest) as usize;
        let option = packet.get(at).map(|kind| kind >> 6);
        why == ErrorReason::TooBig
            || why == ErrorReason::Problem && say.code == 2 && option == Some(2)
    }

    fn say(why: ErrorReason, packet: &PacketView<'_>, mtu: u16) -> Option<ErrorMessage> {
        let say = |kind: Icmp6Type, code, rest: u32| ErrorMessage {
            kind: kind.0,
            code,
            rest: rest.to_be_bytes(),
        };
        let lost = |code| say(Icmp6Type::UNREACHABLE, code, 0);
        Some(match why {
            ErrorReason::Expired => say(Icmp6Type::TIME_EXCEEDED, 0, 0),
            ErrorReason::Reassembly => say(Icmp6Type::TIME_EXCEEDED, 1, 0),
            // RFC 8200, 4.5: pointer to the payload length, or to the fragment offset; RFC 7112, 5: pointer 0.
            ErrorReason::FragmentLength => say(Icmp6Type::PARAMETER_PROBLEM, 0, 4),
            ErrorReason::FragmentOffset => {
                let (at, _) = fragment_header(cut(packet))?;
                say(Icmp6Type::PARAMETER_PROBLEM, 0, at as u32 + 2)
            }
            ErrorReason::HeaderChain => say(Icmp6Type::PARAMETER_PROBLEM, 3, 0),
            ErrorReason::NoRoute => lost(unreachable::NO_ROUTE),
            ErrorReason::Unreachable => lost(unreachable::ADDRESS),
            ErrorReason::Prohibited => lost(unreachable::PROHIBITED),
            ErrorReason::Port => lost(unreachable::PORT),
            ErrorReason::TooBig => say(Icmp6Type::PACKET_TOO_BIG, 0, mtu.into()),
            ErrorReason::Protocol => {
                // Neither an extension header nor a supported protocol: the pointer is at the next-header field with its
                // number.
                let named_at = upper(cut(packet)).map_or_else(|f| f.at, |u| u.named_at);
                say(Icmp6Type::PARAMETER_PROBLEM, 1, named_at as u32)
            }
            ErrorReason::Problem => {
                let fault = upper(cut(packet)).err()?;
                say(Icmp6Type::PARAMETER_PROBLEM, fault.code?, fault.at as u32)
            }
        })
    }

    const REDIRECT: &'static str = "ip6-redirect";

    fn mapped(octets: [u8; 16]) -> Option<u128> {
        let address = Ipv6Addr::from(octets);
        let is_ours = address.to_ipv4_mapped().is_none();
        is_ours.then(|| address.to_bits())
    }

    /// RFC 4861, 4.5: the link-local address, which every interface derives from its MAC address (RFC 4291, appendix A).
    fn redirects_from(own: &[(u128, u8)], mac: u64, _near: u128) -> u128 {
        let mut local = own.iter().map(|(address, _)| *address);
        let by_mac = || {
            let mac = u128::from(mac);
            let id = (mac >> 24 ^ 0x02_0000) << 40 | 0xff_fe00_0000 | mac & 0xff_ffff;
            0xfe80 << 112 | id
        };
        local
            .find(|own| !Self::is_routable(*own))
            .unwrap_or_else(by_mac)
    }

    /// RFC 4861, 8.2: the link-local address of a router, or the destination itself.
    fn is_first_hop(hop: u128, destination: u128) -> bool {
        hop == destination || !Self::is_routable(hop)
    }

    /// RFC 4861, 4.5.
    fn write_redirect(
        out: &mut [u8; LONGEST],
        (hop, mac): (u128, Option<[u8; 6]>),
        (from, to): (u128, u128),
        packet: &PacketView<'_>,
    ) -> usize {
        out[48..64].copy_from_slice(&hop.to_be_bytes());
        out[64..80].copy_from_slice(packet.bytes().get(24..40).unwrap_or(&[0; 16]));
        let mut len = 80;
        if let Some(mac) = mac {
            out[len..len + 2].copy_from_slice(&[2, 1]);
            out[len + 2..len + 8].copy_from_slice(&mac);
            len += 8;
        }
        // As much of the packet as fits, in multiples of 8 bytes.
        let total = (40 + usize::from(be16(packet.bytes(), 4))).min(packet.len());
        let room = total.min(LONGEST - len - 8);
        let end = len + 8 + quote(&mut out[len + 8..len + 8 + room], packet) / 8 * 8;
        out[len..len + 8].fill(0);
        (out[len], out[len + 1]) = (4, ((end - len) / 8) as u8);
        let payload = end - 40;
        // Hop limit 255 on the wire shows that no router forwarded the redirect: the rewrite decrements 0, which wraps.
        let header = Ip6Header::new(from.into(), to.into(), IpProto::ICMP6, 0, payload);
        let mut message = Icmp6Header::new(Icmp6Type::REDIRECT, 0, [0; 4]);
        message.fill_checksum(header.pseudo(IpProto::ICMP6, payload), &out[HEADERS..end]);
        put(out, &header, &message);
        end
    }

    fn is_routable(own: u128) -> bool {
        own >> 118 != 0x3fa
    }

    fn write(
        out: &mut [u8; LONGEST],
        say: ErrorMessage,
        (from, to): (u128, u128),
        packet: &PacketView<'_>,
    ) -> usize {
        let total = (40 + usize::from(be16(packet.bytes(), 4))).min(packet.len());
        let room = total.min(LONGEST - HEADERS);
        let payload = 8 + quote(&mut out[HEADERS..HEADERS + room], packet);
        let header = Ip6Header::new(from.into(), to.into(), IpProto::ICMP6, HOPS, payload);
        let mut message = Icmp6Header::new(Icmp6Type(say.kind), say.code, say.rest);
        let len = Ip6Header::LEN + payload;
        message.fill_checksum(header.pseudo(IpProto::ICMP6, payload), &out[HEADERS..len]);
        put(out, &header, &message);
        len
    }

    fn echo(packet: &mut [u8]) -> Option<usize> {
        let at = upper(packet).ok().filter(|u| u.proto == PROTOCOL)?.at;
        if packet.len() < at + 8 || packet[at] != Icmp6Type::ECHO_REQUEST.0 {
            return None;
        }
        let (src, dst) = packet[8..40].split_at_mut(16);
        src.swap_with_slice(dst);
        let before = be16(packet, at);
        packet[at] = Icmp6Type::ECHO_REPLY.0;
        let sum = checksum::update(be16(packet, at + 2), before, be16(packet, at));
        packet[at + 2..at + 4].copy_from_slice(&sum.to_be_bytes());
        // The reply has no extension headers: the fixed header moves up to the message.
        let skip = at - 40;
        packet.copy_within(..40, skip);
        let header = &mut packet[skip..];
        let payload = be16(header, 4).saturating_sub(skip as u16);
        let (header, _) = Ip6Header::split_mut(header).ok()?;
        header.set_class_flow(0, 0);
        header.payload_len = U16::new(payload);
        (header.next_header, header.hop_limit) = (IpProto::ICMP6, HOPS);
        Some(skip)
    }

    fn is_neighbor(kind: u8) -> bool {
        let kind = Icmp6Type(kind);
        kind == Icmp6Type::NEIGHBOUR_SOLICITATION || kind == Icmp6Type::NEIGHBOUR_ADVERTISEMENT
    }

    /// RFC 4443, 2.4 (e): the type of a redirect is not in the range of errors.
    fn is_error(kind: u8) -> bool {
        Icmp6Type(kind).is_error() || Icmp6Type(kind) == Icmp6Type::REDIRECT
    }

    fn kind(packet: &[u8]) -> Option<(u8, u8)> {
        let at = upper(packet).ok()?.at;
        let message = packet.get(at..at + 8)?;
        Some((message[0], message[1]))
    }
}
