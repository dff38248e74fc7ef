//! Address conflicts: which ones were seen, and when the operator and the link were last notified.

use crate::entry::SECOND;
use crate::table::Key;
use std::collections::BTreeMap;

/// Least time between two defences of an address (RFC 5227, 2.4), and between two log messages about it.
const DEFEND: u64 = 10 * SECOND;
/// Most addresses whose conflicts are remembered.
const CONFLICTS: usize = 64;
/// Least time between two log messages about a host with an interface's MAC address.
const OWN_MAC: u64 = 60 * SECOND;

/// Frames that an interface received with its own MAC address as their source.
#[derive(Clone, Copy, Debug, Default)]
struct SameMac {
    /// Number of such frames.
    heard: u64,
    /// No further log message before this time.
    quiet_until: u64,
}

/// Hosts that use an IP address or a MAC address of this router.
#[derive(Default)]
pub(crate) struct Conflicts {
    reported: BTreeMap<Key, u64>,
    same_macs: BTreeMap<u32, SameMac>,
}

impl Conflicts {
    /// Records that another host uses an address of this router. True if the operator and the link are to be notified.
    pub(crate) fn address(&mut self, key: Key, now: u64) -> bool {
        if self.reported.get(&key).is_some_and(|at| now < at + DEFEND) {
            return false;
        }
        self.reported.retain(|_, at| now < *at + DEFEND);
        if self.reported.len() >= CONFLICTS {
            return false;
        }
        self.reported.insert(key, now);
        true
    }

    /// Records that a host sends with the MAC address of an interface. True if the operator is to be notified.
    pub(crate) fn mac(&mut self, iface: u32, now: u64) -> bool {
        let it = self.same_macs.entry(iface).or_default();
        it.heard += 1;
        if now < it.quiet_until {
            return false;
        }
        it.quiet_until = now + OWN_MAC;
        true
    }

    /// Number of messages that an interface received with its own MAC address as their source; none if there were none.
    pub(crate) fn same_macs(&self, iface: u32) -> Option<u64> {
        self.same_macs.get(&iface).map(|same| same.heard)
    }

    /// Removes the state of a deleted interface.
    pub(crate) fn forget(&mut self, iface: u32) {
        self.same_macs.remove(&iface);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_defended_once_in_a_while_and_a_flood_is_bounded() {
        let mut conflicts = Conflicts::default();
        let key = |n: u8| (1, [192, 0, 2, n].into());
        assert!(conflicts.address(key(0), 0));
        assert!(!conflicts.address(key(0), DEFEND - 1));
        assert!(conflicts.address(key(0), DEFEND));
        let new = (1..=200).filter(|n| conflicts.address(key(*n), DEFEND));
        assert_eq!(new.count(), CONFLICTS - 1);
        assert!(
            conflicts.address(key(201), 2 * DEFEND),
            "the others are over"
        );
    }

    #[test]
    fn a_station_with_our_mac_address_is_told_of_once_a_minute() {
        let mut conflicts = Conflicts::default();
        assert_eq!(conflicts.same_macs(3), None);
        let reported: Vec<bool> = [0, 1, OWN_MAC].map(|at| conflicts.mac(3, at)).into();
        assert_eq!(
            (reported, conflicts.same_macs(3)),
            (vec![true, false, true], Some(3))
        );
        conflicts.forget(3);
        assert_eq!(conflicts.same_macs(3), None);
    }
}
