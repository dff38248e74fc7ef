//! Listeners: nodes of features that receive the packets of a protocol, which is an EtherType, or an IP protocol or UDP port of the
//! router. The nodes of Ethernet and of IP look them up here, so that they name no feature and features do not depend on their crates.
//!
//! A listener of an EtherType receives frames to the interface's MAC address and to groups, with the position behind the
//! Ethernet header. A listener of a UDP port receives packets with the position at the IP header; the UDP header fits the
//! packet, its checksum is right, and its offset from the position is in the column `ip-upper-offset` of `volley-fib`. That of an IP
//! protocol other than ICMP, TCP and UDP receives packets in the same way, with the offset of what is behind the IP headers.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use volley_graph::NodeId;
use volley_model::Family;
use volley_wire::{IpProto, ethertype};

/// Most listeners at once.
const LISTENERS: usize = 32;

/// The protocol of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listened {
    /// An EtherType.
    EtherType(u16),
    /// An IP protocol.
    Ip(Family, u8),
    /// A UDP port.
    Udp(Family, u16),
}

impl Listened {
    /// Type and number in the high bits, which are not zero; the node is in the low 16.
    fn key(self) -> u64 {
        let (kind, number) = match self {
            Listened::EtherType(number) => (2, number),
            Listened::Ip(Family::V4, number) => (5, u16::from(number)),
            Listened::Ip(Family::V6, number) => (7, u16::from(number)),
            Listened::Udp(Family::V4, port) => (4, port),
            Listened::Udp(Family::V6, port) => (6, port),
        };
        kind << 32 | u64::from(number) << 16
    }

    /// Whether the router has its own node for the protocol, so that a listener would receive nothing.
    fn is_own(self) -> bool {
        let is_one_of = |number, all: &[IpProto]| all.contains(&IpProto(number));
        match self {
            Listened::EtherType(number) => {
                matches!(number, ethertype::IP4 | ethertype::IP6) || ethertype::is_tag(number)
            }
            Listened::Ip(Family::V4, number) => {
                is_one_of(number, &[IpProto::ICMP, IpProto::TCP, IpProto::UDP])
            }
            // Extension headers are passed over.
            Listened::Ip(Family::V6, number) => is_one_of(
                number,
                &[
                    IpProto::ICMP6,
                    IpProto::TCP,
                    IpProto::UDP,
                    IpProto::HOP_BY_HOP,
                    IpProto::ROUTING,
                    IpProto::FRAGMENT,
                    IpProto::NO_NEXT,
                    IpProto::DEST_OPTS,
                ],
            ),
            Listened::Udp(..) => false,
        }
    }
}

impl fmt::Display for Listened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Listened::EtherType(number) => write!(f, "frames of EtherType 0x{number:04x}"),
            Listened::Ip(_, number) => write!(f, "packets of IP protocol {number}"),
            Listened::Udp(_, port) => write!(f, "datagrams on UDP port {port}"),
        }
    }
}

/// A node that cannot listen to a protocol.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ListenError {
    /// Another node listens to it.
    #[error("another feature receives the {0}: remove that feature first")]
    InUse(Listened),
    /// The router has its own node for it.
    #[error("the router receives the {0} itself: listen to another protocol, or to a UDP port")]
    Own(Listened),
    /// More listeners than the table has slots.
    #[error(
        "{0} protocols have listeners, which is the limit: remove a feature that listens first"
    )]
    TooMany(usize),
}

/// The listeners, written by the control thread.
#[derive(Default)]
pub(crate) struct Listeners([AtomicU64; LISTENERS]);

impl Listeners {
    /// The node that listens to a protocol.
    #[inline(always)]
    pub(crate) fn node(&self, protocol: Listened) -> Option<NodeId> {
        let key = protocol.key();
        let mut words = self.0.iter().map(|slot| slot.load(Relaxed));
        let found = words.find(|word| word & !0xffff == key)?;
        Some(NodeId(found as u16))
    }

    /// The listener of a protocol as one bit of a word; 0 if no node listens to it.
    pub(crate) fn bit(&self, protocol: Listened) -> u32 {
        let key = protocol.key();
        let mut words = self.0.iter().map(|slot| slot.load(Relaxed));
        let at = words.position(|word| word & !0xffff == key);
        at.map_or(0, |at| 1 << at)
    }

    /// Sets or removes the listener of a protocol. An error if another node listens to it, if the router has its own node for it, or
    /// if there are too many.
    pub(crate) fn set(
        &self,
        protocol: Listened,
        node: NodeId,
        on: bool,
    ) -> Result<(), ListenError> {
        let (key, own) = (protocol.key(), u64::from(node.0));
        let at = |want: u64| {
            let same = |slot: &&AtomicU64| slot.load(Relaxed) & !0xffff == want;
            self.0.iter().find(same)
        };
        match (at(key), on) {
            (Some(slot), _) if slot.load(Relaxed) != key | own => Err(ListenError::InUse(protocol)),
            (Some(_), true) | (None, false) => Ok(()),
            (Some(slot), false) => {
                slot.store(0, Relaxed);
                Ok(())
            }
            (None, true) if protocol.is_own() => Err(ListenError::Own(protocol)),
            (None, true) => match at(0) {
                Some(free) => {
                    free.store(key | own, Relaxed);
                    Ok(())
                }
                None => Err(ListenError::TooMany(LISTENERS)),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_protocol_with_a_node_of_the_router_has_no_listener() {
        let all = Listeners::default();
        let own = [
            Listened::EtherType(0x0800),
            Listened::EtherType(0x8100),
            Listened::Ip(Family::V4, 17),
            Listened::Ip(Family::V6, 58),
            Listened::Ip(Family::V6, 44),
        ];
        for protocol in own {
            let refused = all.set(protocol, NodeId(3), true);
            assert_eq!(refused, Err(ListenError::Own(protocol)));
            assert_eq!(all.node(protocol), None);
        }
        // ICMPv6 in IPv4 has no node.
        all.set(Listened::Ip(Family::V4, 58), NodeId(3), true)
            .unwrap();
    }

    #[test]
    fn a_protocol_has_one_listener() {
        let udp4 = |port| Listened::Udp(Family::V4, port);
        let udp6 = |port| Listened::Udp(Family::V6, port);
        let all = Listeners::default();
        let (four, six, other) = (NodeId(0), NodeId(7), NodeId(9));
        assert_eq!(all.node(udp4(0)), None);
        assert_eq!(all.node(Listened::EtherType(0)), None);
        all.set(udp4(67), four, true).unwrap();
        all.set(udp6(67), six, true).unwrap();
        all.set(udp4(67), four, true).unwrap();
        assert_eq!(all.node(udp4(67)), Some(four));
        assert_eq!(all.node(udp6(67)), Some(six));
        assert_eq!(all.node(udp6(68)), None);
        assert_eq!(all.node(Listened::EtherType(67)), None);
        for on in [true, false] {
            let refused = all.set(udp4(67), other, on);
            assert_eq!(refused, Err(ListenError::InUse(udp4(67))));
        }
        all.set(Listened::EtherType(67), other, true).unwrap();
        assert_eq!(all.node(Listened::EtherType(67)), Some(other));
        assert_eq!(all.node(udp4(67)), Some(four));
        all.set(Listened::Ip(Family::V6, 67), other, true).unwrap();
        assert_eq!(all.node(Listened::Ip(Family::V4, 67)), None);
        assert_eq!(all.node(Listened::Ip(Family::V6, 67)), Some(other));
        all.set(Listened::Ip(Family::V6, 67), other, false).unwrap();
        all.set(udp4(67), four, false).unwrap();
        assert_eq!(all.node(udp4(67)), None);
        all.set(udp4(67), four, false).unwrap();
        for port in 2..LISTENERS as u16 {
            all.set(udp4(port), four, true).unwrap();
        }
        let full = all.set(udp4(99), four, true);
        assert_eq!(full, Err(ListenError::TooMany(32)));
    }
}
