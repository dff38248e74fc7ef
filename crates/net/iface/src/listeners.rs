//! Listeners: nodes of features that receive the packets of a protocol, which is an EtherType, or a UDP port of the router. The
//! nodes of Ethernet and of IP look them up here, so that they name no feature and features do not depend on their crates.
//!
//! A listener of an EtherType receives frames to the interface's MAC address and to groups, with the position behind the
//! Ethernet header. A listener of a UDP port receives packets with the position at the IP header; the UDP header fits the
//! packet, its checksum is right, and its offset from the position is in the column `ip-upper-offset` of `volley-fib`.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use volley_graph::NodeId;
use volley_model::Family;

/// Most listeners at once.
const LISTENERS: usize = 32;

/// The protocol of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listened {
    /// An EtherType.
    EtherType(u16),
    /// A UDP port.
    Udp(Family, u16),
}

impl Listened {
    /// Type and number in the high bits, which are not zero; the node is in the low 16.
    fn key(self) -> u64 {
        let (kind, number) = match self {
            Listened::EtherType(number) => (2, number),
            Listened::Udp(Family::V4, port) => (4, port),
            Listened::Udp(Family::V6, port) => (6, port),
        };
        kind << 32 | u64::from(number) << 16
    }
}

impl fmt::Display for Listened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Listened::EtherType(number) => write!(f, "frames of EtherType 0x{number:04x}"),
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

    /// Sets or removes the listener of a protocol. An error if another node listens to it, or there are too many.
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
