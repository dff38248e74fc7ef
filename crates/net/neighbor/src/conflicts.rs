//! Which conflicts of addresses were noticed, and when the operator and the link were last told of one.

use crate::entry::SECOND;
use crate::table::Key;
use std::collections::BTreeMap;

/// Between two defences of an address (RFC 5227, 2.4), and two messages about it.
const DEFEND: u64 = 10 * SECOND;
/// Addresses whose conflicts are remembered.
const CONFLICTS: usize = 64;
/// Between two messages about a station with an interface's MAC address.
const OWN_MAC: u64 = 60 * SECOND;

/// Stations that sent with the MAC address of an interface.
#[derive(Clone, Copy, Debug, Default)]
struct SameMac {
    /// Their messages.
    heard: u64,
    /// Until then the operator is not told again.
    quiet_until: u64,
}

/// Stations that have an address of ours: an IP address or a MAC address.
#[derive(Default)]
pub(crate) struct Conflicts {
    told: BTreeMap<Key, u64>,
    same_macs: BTreeMap<u32, SameMac>,
}

impl Conflicts {
    /// Another station has an address of ours. True when the link and the operator are to be told.
    pub(crate) fn address(&mut self, key: Key, now: u64) -> bool {
        if self.told.get(&key).is_some_and(|at| now < at + DEFEND) {
            return false;
        }
        self.told.retain(|_, at| now < *at + DEFEND);
        if self.told.len() >= CONFLICTS {
            return false;
        }
        self.told.insert(key, now);
        true
    }

    /// A station sends with the MAC address of an interface. True when the operator is to be told.
    pub(crate) fn mac(&mut self, iface: u32, now: u64) -> bool {
        let it = self.same_macs.entry(iface).or_default();
        it.heard += 1;
        if now < it.quiet_until {
            return false;
        }
        it.quiet_until = now + OWN_MAC;
        true
    }

    /// Messages that an interface received with its own MAC address as their source; none where there was none.
    pub(crate) fn same_macs(&self, iface: u32) -> Option<u64> {
        self.same_macs.get(&iface).map(|same| same.heard)
    }

    /// An interface has gone.
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
        let told: Vec<bool> = [0, 1, OWN_MAC].map(|at| conflicts.mac(3, at)).into();
        assert_eq!(
            (told, conflicts.same_macs(3)),
            (vec![true, false, true], Some(3))
        );
        conflicts.forget(3);
        assert_eq!(conflicts.same_macs(3), None);
    }
}
