//! Decoding of router advertisements (RFC 4861, 4.2 and 6.1.2), and encoding of router solicitations (4.1).

use super::received::{PREFIXES, PrefixOffer, ReceivedAdvert};
use crate::link::Mac;
use crate::nd::{self, ALL_ROUTERS};
use std::net::Ipv6Addr;
use volley_wire::MacAddr;
use volley_wire::icmp6::Icmp6Type;
use volley_wire::nd::{NdBody, NdMessage, NdOption};

/// L flag of a prefix: on-link.
const ON_LINK: u8 = 0x80;
/// A flag of a prefix: hosts form addresses from it.
const AUTONOMOUS: u8 = 0x40;
/// M flag of a router: hosts get addresses by DHCPv6.
const MANAGED: u8 = 0x80;
/// O flag of a router: hosts get other configuration by DHCPv6.
const OTHER: u8 = 0x40;
/// Bits of the router preference (RFC 4191, 2.2).
const PREFERENCE: u8 = 0x18;

/// Whether a packet has the message type of a router advertisement.
pub fn is_one(packet: &[u8]) -> bool {
    let kind = Icmp6Type::ROUTER_ADVERTISEMENT.0;
    packet.get(6) == Some(&58) && packet.get(40) == Some(&kind)
}

/// The router preference; the reserved value counts as medium.
fn preference(flags: u8) -> u8 {
    match (flags & PREFERENCE) >> 3 {
        0b01 => 0,
        0b11 => 2,
        _ => 1,
    }
}

pub(super) fn read(source: Ipv6Addr, nd: &NdMessage<'_>) -> Option<ReceivedAdvert> {
    let NdBody::RouterAdvertisement {
        hop_limit,
        flags,
        lifetime_s,
        times,
    } = nd.body
    else {
        return None;
    };
    let mut output = ReceivedAdvert {
        router: source,
        mac: Mac::default(),
        lifetime_s,
        preference: preference(flags),
        managed: flags & MANAGED != 0,
        other: flags & OTHER != 0,
        hop_limit,
        reachable_ms: times.reachable_ms.get(),
        retransmit_ms: times.retransmit_ms.get(),
        mtu: None,
        offers: [PrefixOffer::default(); PREFIXES],
        count: 0,
        more: 0,
    };
    for option in nd.options() {
        match option {
            NdOption::SourceMac(MacAddr(mac)) => output.mac = mac,
            NdOption::Mtu(mtu) => output.mtu = Some(mtu),
            NdOption::Prefix(it) => {
                let offer = PrefixOffer {
                    prefix: u128::from_be_bytes(it.prefix),
                    len: it.prefix_len,
                    on_link: it.flags & ON_LINK != 0,
                    autonomous: it.flags & AUTONOMOUS != 0,
                    valid_s: it.valid_s.get(),
                    preferred_s: it.preferred_s.get(),
                };
                match output.offers.get_mut(usize::from(output.count)) {
                    Some(place) => {
                        *place = offer;
                        output.count += 1;
                    }
                    None => output.more = output.more.saturating_add(1),
                }
            }
            _ => {}
        }
    }
    Some(output)
}

/// A router solicitation as a frame; from the unspecified address while the interface has no address.
pub fn solicitation(own: Mac, from: Option<Ipv6Addr>) -> Vec<u8> {
    let mut message = vec![Icmp6Type::ROUTER_SOLICITATION.0, 0, 0, 0, 0, 0, 0, 0];
    if from.is_some() {
        message.extend([1, 1]);
        message.extend(own);
    }
    let from = from.unwrap_or(Ipv6Addr::UNSPECIFIED);
    nd::frame(own, nd::group_mac(ALL_ROUTERS), from, ALL_ROUTERS, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use volley_wire::IpProto;
    use volley_wire::checksum::Sum;
    use volley_wire::icmp6::Icmp6;

    const OWN: Mac = [2, 0, 0, 0, 0, 1];

    fn parsed(message: &[u8]) -> Option<ReceivedAdvert> {
        let icmp = Icmp6::parse(message).ok()?;
        let nd = NdMessage::parse(&icmp)?.ok()?;
        read("fe80::9".parse().unwrap(), &nd)
    }

    fn prefix(out: &mut Vec<u8>, len: u8, flags: u8, address: &str) {
        out.extend([3, 4, len, flags, 0, 0, 0, 200, 0, 0, 0, 100, 0, 0, 0, 0]);
        out.extend(address.parse::<Ipv6Addr>().unwrap().octets());
    }

    #[test]
    fn every_field_is_read() {
        let mut bytes = vec![134, 0, 0, 0, 61, 0x48, 1, 2, 0, 0, 0, 5, 0, 0, 0, 6];
        bytes.extend([1, 1, 2, 0, 0, 0, 0, 9, 5, 1, 0, 0, 0, 0, 5, 120]);
        prefix(&mut bytes, 64, 0xc0, "2001:db8:1::");
        prefix(&mut bytes, 56, 0x40, "2001:db8:2::");
        // An unknown option.
        bytes.extend([99, 1, 0, 0, 0, 0, 0, 0]);
        let output = parsed(&bytes).unwrap();
        assert_eq!(output.router, "fe80::9".parse::<Ipv6Addr>().unwrap());
        assert_eq!((output.mac, output.mtu), ([2, 0, 0, 0, 0, 9], Some(1400)));
        assert_eq!((output.lifetime_s, output.preference), (258, 0));
        assert!(!output.managed && output.other);
        assert_eq!(
            (output.hop_limit, output.reachable_ms, output.retransmit_ms),
            (61, 5, 6)
        );
        let [a, b] = output.offers() else {
            panic!("{output:?}");
        };
        assert!(a.on_link && a.autonomous && !b.on_link && b.autonomous);
        assert_eq!((a.len, a.valid_s, a.preferred_s, b.len), (64, 200, 100, 56));
        assert_eq!(a.prefix.to_be_bytes()[..6], [0x20, 1, 0xd, 0xb8, 0, 1]);
    }

    #[test]
    fn what_is_reserved_is_medium_and_what_does_not_fit_is_counted() {
        assert_eq!([0, 0x08, 0x10, 0x18].map(preference), [1, 0, 1, 2]);
        let mut bytes = vec![134, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        for _ in 0..20 {
            prefix(&mut bytes, 64, 0xc0, "2001:db8:1::");
        }
        let output = parsed(&bytes).unwrap();
        assert_eq!((output.offers().len(), output.more), (PREFIXES, 4));
        // An option of length 0, and a truncated one.
        bytes.extend([1, 0, 0, 0, 0, 0, 0, 0]);
        assert!(parsed(&bytes).is_none());
        bytes.truncate(bytes.len() - 9);
        assert!(parsed(&bytes).is_none());
    }

    #[test]
    fn solicitations_are_read_by_the_wire_crate() {
        let local = nd::link_local(OWN);
        for from in [Some(local), None] {
            let frame = solicitation(OWN, from);
            assert_eq!(
                frame[..14],
                [0x33, 0x33, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x86, 0xdd]
            );
            assert_eq!(frame[21], 255);
            let icmp = Icmp6::parse(&frame[54..]).unwrap();
            let length = frame.len() as u32 - 54;
            let source = from.unwrap_or(Ipv6Addr::UNSPECIFIED);
            assert!(icmp.checksum_ok(Sum::pseudo6(source, ALL_ROUTERS, IpProto(58), length)));
            let nd = NdMessage::parse(&icmp).unwrap().unwrap();
            assert_eq!(nd.body, NdBody::RouterSolicitation);
            let options: Vec<NdOption<'_>> = nd.options().collect();
            let want = from.map(|_| NdOption::SourceMac(MacAddr(OWN)));
            assert_eq!(options, want.into_iter().collect::<Vec<_>>());
        }
    }
}
