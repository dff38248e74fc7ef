//! Neighbour solicitations and advertisements as frames (RFC 4861, 4.3 and 4.4), and the addresses of neighbour discovery.

use crate::link::Mac;
use std::net::Ipv6Addr;
use volley_wire::IpProto;
use volley_wire::checksum::Sum;
use volley_wire::icmp6::Icmp6Type;
use volley_wire::nd::{NA_OVERRIDE, NA_ROUTER, NA_SOLICITED};

/// All-routers group of a link (RFC 4291, 2.7.1).
pub const ALL_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);
/// All-nodes group of a link (RFC 4291, 2.7.1).
pub const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
/// Hop limit of neighbour discovery: a forwarded packet has a lower one.
pub const HOPS: u8 = 255;
/// Bytes of a frame with a solicitation or an advertisement with one option: Ethernet, IPv6, the message.
pub const FRAME: usize = 86;
/// Bytes of the longest frame: Ethernet and the minimum IPv6 link MTU.
pub const LONG: usize = 14 + 1280;
/// End of the IPv6 header in a frame.
const IP: usize = 14 + 40;

/// Solicited-node group of an address (RFC 4291, 2.7.1).
pub fn solicited_node(address: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b, c] = address.octets();
    Ipv6Addr::new(
        0xff02,
        0,
        0,
        0,
        0,
        1,
        0xff00 | u16::from(a),
        u16::from_be_bytes([b, c]),
    )
}

/// MAC address of a group (RFC 2464, 7).
pub fn group_mac(group: Ipv6Addr) -> Mac {
    let [.., a, b, c, d] = group.octets();
    [0x33, 0x33, a, b, c, d]
}

/// Link-local address formed from a MAC address (RFC 4291, appendix A).
pub fn link_local(mac: Mac) -> Ipv6Addr {
    volley_wire::MacAddr(mac).link_local()
}

/// An ND or MLD message as a frame; fills in its checksum.
pub fn frame(own: Mac, to_mac: Mac, from: Ipv6Addr, to: Ipv6Addr, mut message: Vec<u8>) -> Vec<u8> {
    let length = message.len() as u16;
    let pseudo = Sum::pseudo6(from, to, IpProto(58), u32::from(length));
    let sum = pseudo.bytes(&message).checksum();
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    let header = [
        &[0x86, 0xdd, 0x60, 0, 0, 0][..],
        &length.to_be_bytes(),
        &[58, HOPS],
    ]
    .concat();
    [
        &to_mac[..],
        &own,
        &header,
        &from.octets(),
        &to.octets(),
        &message,
    ]
    .concat()
}

/// Type of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NdMessageOut {
    /// A solicitation.
    Solicit,
    /// An advertisement for an address of this router.
    Advertise {
        /// Solicited flag.
        solicited: bool,
    },
    /// A proxy's answer to a solicitation.
    Proxy,
}

/// A message that the router originates.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    /// Type of the message.
    pub say: NdMessageOut,
    /// Target address.
    pub target: Ipv6Addr,
    /// Source address.
    pub from: Ipv6Addr,
    /// Destination address.
    pub to: Ipv6Addr,
    /// The MAC address of the interface.
    pub own: Mac,
    /// Destination MAC address.
    pub to_mac: Mac,
}

impl Message {
    /// Writes the whole frame.
    pub fn write(&self, out: &mut [u8; FRAME]) {
        let (kind, flags, option) = match self.say {
            NdMessageOut::Solicit => (Icmp6Type::NEIGHBOUR_SOLICITATION, 0, 1),
            NdMessageOut::Proxy => (Icmp6Type::NEIGHBOUR_ADVERTISEMENT, NA_SOLICITED, 2),
            NdMessageOut::Advertise { solicited } => {
                let asked = if solicited { NA_SOLICITED } else { 0 };
                let flags = NA_ROUTER | NA_OVERRIDE | asked;
                (Icmp6Type::NEIGHBOUR_ADVERTISEMENT, flags, 2)
            }
        };
        out.fill(0);
        out[..6].copy_from_slice(&self.to_mac);
        out[6..12].copy_from_slice(&self.own);
        out[12..16].copy_from_slice(&[0x86, 0xdd, 0x60, 0]);
        let length = (FRAME - IP) as u8;
        out[19..22].copy_from_slice(&[length, 58, HOPS]);
        out[22..38].copy_from_slice(&self.from.octets());
        out[38..IP].copy_from_slice(&self.to.octets());
        out[IP] = kind.0;
        out[IP + 4] = flags;
        out[IP + 8..IP + 24].copy_from_slice(&self.target.octets());
        out[IP + 24..IP + 26].copy_from_slice(&[option, 1]);
        out[IP + 26..].copy_from_slice(&self.own);
        let pseudo = Sum::pseudo6(self.from, self.to, IpProto(58), u32::from(length));
        let sum = pseudo.bytes(&out[IP..]).checksum();
        out[IP + 2..IP + 4].copy_from_slice(&sum.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use volley_wire::MacAddr;
    use volley_wire::icmp6::Icmp6;
    use volley_wire::nd::{NdBody, NdMessage, NdOption};

    #[test]
    fn addresses_are_those_of_the_rfcs() {
        let address: Ipv6Addr = "2001:db8::02:8c0e:1234".parse().unwrap();
        let group = solicited_node(address);
        assert_eq!(group, "ff02::1:ff0e:1234".parse::<Ipv6Addr>().unwrap());
        assert_eq!(group_mac(group), [0x33, 0x33, 0xff, 0x0e, 0x12, 0x34]);
        assert_eq!(group_mac(ALL_NODES), [0x33, 0x33, 0, 0, 0, 1]);
        let own = link_local([0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde]);
        assert_eq!(
            own,
            "fe80::3656:78ff:fe9a:bcde".parse::<Ipv6Addr>().unwrap()
        );
    }

    #[test]
    fn messages_are_read_by_the_wire_crate() {
        let (from, target) = (
            "2001:db8::1".parse().unwrap(),
            "2001:db8::9".parse().unwrap(),
        );
        let own = [2, 0, 0, 0, 0, 1];
        for (say, want) in [
            (
                NdMessageOut::Solicit,
                NdBody::NeighbourSolicitation { target },
            ),
            (
                NdMessageOut::Advertise { solicited: true },
                NdBody::NeighbourAdvertisement {
                    target,
                    flags: 0xe0,
                },
            ),
            (
                NdMessageOut::Proxy,
                NdBody::NeighbourAdvertisement {
                    target,
                    flags: 0x40,
                },
            ),
            (
                NdMessageOut::Advertise { solicited: false },
                NdBody::NeighbourAdvertisement {
                    target,
                    flags: 0xa0,
                },
            ),
        ] {
            let (to, to_mac) = (solicited_node(target), group_mac(solicited_node(target)));
            let mut frame = [0xee; FRAME];
            let message = Message {
                say,
                target,
                from,
                to,
                own,
                to_mac,
            };
            message.write(&mut frame);
            assert_eq!(frame[..14], [&to_mac[..], &own, &[0x86, 0xdd]].concat());
            assert_eq!(frame[14..22], [0x60, 0, 0, 0, 0, 32, 58, 255]);
            let icmp = Icmp6::parse(&frame[54..]).unwrap();
            assert!(icmp.checksum_ok(Sum::pseudo6(from, to, IpProto(58), 32)));
            let nd = NdMessage::parse(&icmp).unwrap().unwrap();
            assert_eq!(nd.body, want);
            let mac = MacAddr(own);
            let option = match say {
                NdMessageOut::Solicit => NdOption::SourceMac(mac),
                NdMessageOut::Advertise { .. } | NdMessageOut::Proxy => NdOption::TargetMac(mac),
            };
            assert_eq!(nd.options().collect::<Vec<_>>(), [option]);
        }
    }
}
