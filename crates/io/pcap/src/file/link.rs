//! The layer-3 packet of a captured packet, also for link types without an Ethernet header.

use super::{LinkType, PacketRef};
use volley_wire::{EtherType, Header, vlan::VlanTag};

/// `DLT_RAW` of systems that have no registered number for it.
const RAW_BSD: [LinkType; 2] = [LinkType(12), LinkType(14)];

impl<'a> PacketRef<'a> {
    /// The type of the layer-3 packet and its bytes, without link-layer header and VLAN tags; none if there is no such
    /// packet or the link type is unknown (tcpdump.org's link-layer type registry). A packet of Ethernet has its header.
    pub fn layer3(&self) -> Option<(EtherType, &'a [u8])> {
        let data = self.data;
        let word = |at: usize| {
            Some(EtherType::new(u16::from_be_bytes(
                *data.get(at..)?.first_chunk()?,
            )))
        };
        let (kind, packet) = match self.linktype {
            LinkType::ETHERNET => (word(12)?, data.get(14..)?),
            LinkType::NULL | LinkType::LOOP => {
                return by_version(data.get(4..)?, Some(family(data)?));
            }
            LinkType::LINUX_SLL => (word(14)?, data.get(16..)?),
            LinkType::LINUX_SLL2 => (word(0)?, data.get(20..)?),
            LinkType::IPV4 => return by_version(data, Some(4)),
            LinkType::IPV6 => return by_version(data, Some(6)),
            raw if raw == LinkType::RAW || RAW_BSD.contains(&raw) => return by_version(data, None),
            _ => return None,
        };
        let (kind, packet) = untagged(kind, packet)?;
        // Lower numbers are lengths of 802.3, and Linux's numbers for other protocols than Ethernet II.
        (!kind.is_length()).then_some((kind, packet))
    }
}

/// Removes VLAN tags.
fn untagged(mut kind: EtherType, mut packet: &[u8]) -> Option<(EtherType, &[u8])> {
    while kind.is_vlan() {
        let (tag, rest) = VlanTag::split(packet).ok()?;
        (kind, packet) = (tag.ether_type, rest);
    }
    Some((kind, packet))
}

/// The IP version of an address family, in the byte order of the capturing machine: the numbers of all systems are below
/// 256.
fn family(data: &[u8]) -> Option<u8> {
    let number = match data.first_chunk::<4>()? {
        [0, 0, 0, number] | [number, 0, 0, 0] => *number,
        _ => return None,
    };
    match number {
        2 => Some(4),
        // Linux, NetBSD and OpenBSD, FreeBSD, macOS
        10 | 24 | 28 | 30 => Some(6),
        _ => None,
    }
}

/// An IP packet by its version field, which must have the wanted value.
fn by_version(packet: &[u8], wanted: Option<u8>) -> Option<(EtherType, &[u8])> {
    let version = packet.first()? >> 4;
    let kind = match version {
        4 => EtherType::IP4,
        6 => EtherType::IP6,
        _ => return None,
    };
    wanted
        .is_none_or(|wanted| wanted == version)
        .then_some((kind, packet))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Packet;

    const IP4: [u8; 4] = [0x45, 0, 0, 20];
    const IP6: [u8; 4] = [0x60, 0, 0, 0];

    fn found(linktype: u16, parts: &[&[u8]]) -> Option<(u16, Vec<u8>)> {
        let packet = Packet {
            linktype: LinkType(linktype),
            ..Packet::ethernet(0, parts.concat())
        };
        let (kind, bytes) = packet.as_ref().layer3()?;
        Some((kind.value(), bytes.to_vec()))
    }

    #[test]
    fn the_packet_behind_each_link_header() {
        let (four, six) = (Some((0x800, IP4.to_vec())), Some((0x86dd, IP6.to_vec())));
        for raw in [101, 12, 14] {
            assert_eq!(found(raw, &[&IP4]), four);
            assert_eq!(found(raw, &[&IP6]), six);
        }
        assert_eq!(
            (found(228, &[&IP4]), found(229, &[&IP6])),
            (four.clone(), six.clone())
        );
        for (linktype, head, want) in [
            (0, [2, 0, 0, 0], &four),
            (0, [0, 0, 0, 2], &four),
            (0, [30, 0, 0, 0], &six),
            (108, [0, 0, 0, 24], &six),
        ] {
            let bytes = if *want == four { IP4 } else { IP6 };
            assert_eq!(found(linktype, &[&head, &bytes]), *want);
        }
        let sll = [0, 0, 3, 4, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(found(113, &[&sll, &[8, 0], &IP4]), four);
        assert_eq!(found(113, &[&sll, &[0x81, 0, 0, 7, 0x86, 0xdd], &IP6]), six);
        let sll2 = [0; 18];
        assert_eq!(found(276, &[&[8, 0], &sll2, &IP4]), four);
        assert_eq!(found(276, &[&[8, 6], &sll2, &[1]]), Some((0x806, vec![1])));
        let macs = [0; 12];
        assert_eq!(
            found(1, &[&macs, &[0x88, 0xa8, 0, 1, 0x81, 0, 0, 2, 8, 0], &IP4]),
            four
        );
    }

    #[test]
    fn what_carries_no_packet_of_layer_3() {
        let sll = [0; 14];
        for (linktype, bytes) in [
            (113, [&sll[..], &[0, 4], &IP4].concat()),
            (113, sll.to_vec()),
            (276, vec![8, 0, 0]),
            (101, vec![0x15, 0]),
            (101, vec![]),
            (228, IP6.to_vec()),
            (0, [&[30, 0, 0, 0], &IP4[..]].concat()),
            (0, [&[77, 0, 0, 0], &IP4[..]].concat()),
            (105, IP4.to_vec()),
            (1, vec![0; 13]),
        ] {
            assert_eq!(found(linktype, &[&bytes]), None, "{linktype} {bytes:?}");
        }
    }
}
