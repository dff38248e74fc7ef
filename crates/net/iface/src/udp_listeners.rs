//! UDP listeners: nodes of features that receive the datagrams for the router on a port. The nodes of IP look a port up here,
//! so that they name no feature and features do not depend on the crate of IP.
//!
//! A listener's node receives packets with the position at the IP header; the UDP header fits the packet, its checksum is right,
//! and its offset from the position is in the column `ip-upper-offset` of `volley-fib`.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use volley_graph::NodeId;
use volley_model::Family;

/// Most listeners at once.
const LISTENERS: usize = 16;

/// A node that cannot listen on a UDP port.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ListenError {
    /// Another node listens there.
    #[error("another feature receives the datagrams on UDP port {port}: remove that feature first")]
    PortInUse {
        /// The port.
        port: u16,
    },
    /// More listeners than the table has slots.
    #[error(
        "{0} UDP ports have listeners, which is the limit: remove a feature that listens first"
    )]
    TooMany(usize),
}

/// The listeners, written by the control thread.
#[derive(Default)]
pub(crate) struct UdpListeners([AtomicU64; LISTENERS]);

/// Family and port in the high bits, which are not zero; the node in the low 16.
fn key(family: Family, port: u16) -> u64 {
    let version = match family {
        Family::V4 => 4,
        Family::V6 => 6,
    };
    version << 32 | u64::from(port) << 16
}

impl UdpListeners {
    /// The node that listens on a port.
    #[inline(always)]
    pub(crate) fn node(&self, family: Family, port: u16) -> Option<NodeId> {
        let key = key(family, port);
        let mut words = self.0.iter().map(|slot| slot.load(Relaxed));
        let found = words.find(|word| word & !0xffff == key)?;
        Some(NodeId(found as u16))
    }

    /// The listener of a port as one bit of a word; 0 when no node listens there.
    pub(crate) fn bit(&self, family: Family, port: u16) -> u32 {
        let key = key(family, port);
        let mut words = self.0.iter().map(|slot| slot.load(Relaxed));
        let at = words.position(|word| word & !0xffff == key);
        at.map_or(0, |at| 1 << at)
    }

    /// Sets or removes the listener of a port. An error when another node listens there, or there are too many.
    pub(crate) fn set(
        &self,
        family: Family,
        port: u16,
        node: NodeId,
        on: bool,
    ) -> Result<(), ListenError> {
        let (key, own) = (key(family, port), u64::from(node.0));
        let at = |want: u64| {
            let same = |slot: &&AtomicU64| slot.load(Relaxed) & !0xffff == want;
            self.0.iter().find(same)
        };
        match (at(key), on) {
            (Some(slot), _) if slot.load(Relaxed) != key | own => {
                Err(ListenError::PortInUse { port })
            }
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
    fn a_port_has_one_listener_of_each_family() {
        let all = UdpListeners::default();
        let (four, six, other) = (NodeId(0), NodeId(7), NodeId(9));
        assert_eq!(all.node(Family::V4, 0), None);
        all.set(Family::V4, 67, four, true).unwrap();
        all.set(Family::V6, 67, six, true).unwrap();
        all.set(Family::V4, 67, four, true).unwrap();
        assert_eq!(all.node(Family::V4, 67), Some(four));
        assert_eq!(all.node(Family::V6, 67), Some(six));
        assert_eq!(all.node(Family::V6, 68), None);
        for on in [true, false] {
            let refused = all.set(Family::V4, 67, other, on);
            assert!(matches!(refused, Err(ListenError::PortInUse { port: 67 })));
        }
        all.set(Family::V4, 67, four, false).unwrap();
        assert_eq!(all.node(Family::V4, 67), None);
        all.set(Family::V4, 67, four, false).unwrap();
        for port in 1..LISTENERS as u16 {
            all.set(Family::V4, port, four, true).unwrap();
        }
        let full = all.set(Family::V4, 99, four, true);
        assert!(matches!(full, Err(ListenError::TooMany(16))));
    }
}
