//! Multicast and broadcast frames that are not dropped: routable groups, UDP ports on which a feature listens, and group
//! membership messages.

use crate::node::ethernet_input::{Count, Next};
use volley_graph::Counters;
use volley_iface::Flag;
use volley_model::Family;
use volley_wire::{IpProto, ethertype};

/// Protocol number of UDP.
const UDP: u8 = IpProto::UDP.0;
const IP4: u32 = ethertype::IP4 as u32;
const IP6: u32 = ethertype::IP6 as u32;

/// Whether a frame is for an IP multicast group that may be routed: its destination MAC address is a group address of the IP
/// version (RFC 1112, 6.4; RFC 2464, 7), and the group is not link-local (RFC 1812, 5.3.4 on other packets).
pub(crate) fn is_for_group(verdict: u32, kind: u32, frame: &[u8]) -> bool {
    let fine = verdict == 0 || verdict == Count::GroupMac.code();
    match (kind, frame) {
        _ if !fine => false,
        (IP4, [1, 0, 0x5e, _, _, _, ..]) => match frame.get(30..34) {
            Some(&[a, b, c, _]) => a >> 4 == 14 && [a, b, c] != [224, 0, 0],
            _ => false,
        },
        (IP6, [0x33, 0x33, ..]) => {
            matches!(frame.get(38..40), Some(&[0xff, scope]) if scope & 15 > 2)
        }
        _ => false,
    }
}

/// Whether a frame is a UDP datagram to all hosts of the link (255.255.255.255, or an IPv6 group of link scope), on a port
/// where a feature listens.
pub(crate) fn is_for_listener(
    verdict: u32,
    kind: u32,
    frame: &[u8],
    hears: impl Fn(Family, u16) -> bool,
) -> bool {
    let byte = |at: usize| frame.get(at).copied().unwrap_or(0);
    let (family, on_link, proto, at) = match kind {
        IP4 => {
            let all = frame.get(30..34) == Some(&[0xff; 4]);
            let udp_at = 14 + 4 * usize::from(byte(14) & 15);
            (Family::V4, all, byte(23), udp_at)
        }
        IP6 => {
            let group = byte(38) == 0xff && byte(39) & 15 == 2;
            (Family::V6, group, byte(20), 54)
        }
        _ => return false,
    };
    let fine = verdict == 0 || verdict == Count::GroupMac.code();
    let port = u16::from_be_bytes([byte(at + 2), byte(at + 3)]);
    fine && on_link && proto == UDP && hears(family, port)
}

/// The edge of IGMP (RFC 3376, 4), and of MLD after a hop-by-hop header (RFC 3810, 5), if it is enabled on the interface.
pub(crate) fn membership(flags: u32, verdict: u32, frame: &[u8]) -> Option<Next> {
    if verdict != 0 && verdict != Count::GroupMac.code() {
        return None;
    }
    let has_type = |kind: u16| frame.get(12..14) == Some(&kind.to_be_bytes());
    match frame {
        [1, 0, 0x5e, ..] if flags & Flag::Igmp as u32 != 0 => {
            let igmp = has_type(ethertype::IP4) && frame.get(23) == Some(&IpProto::IGMP.0);
            igmp.then_some(Next::Igmp)
        }
        [0x33, 0x33, ..] if flags & Flag::Mld as u32 != 0 => {
            let options = has_type(ethertype::IP6) && frame.get(20) == Some(&IpProto::HOP_BY_HOP.0);
            let at = 62 + 8 * usize::from(*frame.get(55)?);
            let mld = options && frame.get(54) == Some(&IpProto::ICMP6.0);
            let mld = mld && matches!(frame.get(at), Some(130..=132 | 143));
            mld.then_some(Next::Mld)
        }
        _ => None,
    }
}
