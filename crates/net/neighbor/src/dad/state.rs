//! State of duplicate address detection for the addresses of an interface.

use crate::entry::{Mac, SECOND};
use std::collections::BTreeMap;
use std::net::IpAddr;
use volley_model::IfAddress;

/// Interval between IPv6 probes, and the time after the last one (RETRANS_TIMER).
const BETWEEN: u64 = SECOND;
/// Random addition to the interval for IPv4 (PROBE_MIN to PROBE_MAX).
const MORE4: u64 = SECOND;
/// Time after the last IPv4 probe (ANNOUNCE_WAIT).
const WAIT4: u64 = 2 * SECOND;

/// State of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// `left` probes remain to be sent; the next step is due at `at`.
    Tentative { left: u32, at: u64 },
    /// Another host, with this MAC address, uses the address.
    Duplicate(Mac),
    /// No other host has answered.
    Good,
}

/// Addresses of one interface that duplicate address detection tests.
#[derive(Debug)]
pub(crate) struct Probing {
    pub probes: u32,
    pub states: BTreeMap<IfAddress, State>,
}

/// Addresses of all interfaces that duplicate address detection tests.
#[derive(Debug, Default)]
pub(crate) struct AddressProbes {
    /// Configured numbers of probes, by interface.
    pub configured: BTreeMap<u32, u32>,
    pub interfaces: BTreeMap<u32, Probing>,
}

/// What the caller is to do with an address.
pub(crate) enum Act {
    Probe,
    Use,
}

impl AddressProbes {
    /// Whether an interface has tentative addresses.
    pub fn is_tentative(&self, iface: u32) -> bool {
        self.interfaces
            .get(&iface)
            .is_some_and(Probing::is_tentative)
    }

    /// Tentative addresses whose next step is due.
    pub fn due(&self, now: u64) -> Vec<(u32, IfAddress)> {
        let mut due = Vec::new();
        for (iface, it) in &self.interfaces {
            for (address, state) in &it.states {
                if matches!(state, State::Tentative { at, .. } if *at <= now) {
                    due.push((*iface, *address));
                }
            }
        }
        due
    }

    /// The next step of a tentative address; `chance` is a random number.
    pub fn step(&mut self, iface: u32, address: IfAddress, now: u64, chance: u64) -> Option<Act> {
        let state = self.interfaces.get_mut(&iface)?.states.get_mut(&address)?;
        let State::Tentative { left, at } = state else {
            return None;
        };
        if *left == 0 {
            *state = State::Good;
            return Some(Act::Use);
        }
        *left -= 1;
        *at = now
            + match (address.addr().is_ipv4(), *left) {
                (false, _) => BETWEEN,
                (true, 0) => WAIT4,
                (true, _) => BETWEEN + chance % MORE4,
            };
        Some(Act::Probe)
    }

    /// A host with this MAC address claims an address. True if the address was tentative; it becomes a duplicate.
    pub fn claim(&mut self, iface: u32, addr: IpAddr, mac: Mac) -> bool {
        let Some(it) = self.interfaces.get_mut(&iface) else {
            return false;
        };
        let mine = it.states.iter_mut().find(|(a, _)| a.addr() == addr);
        match mine.filter(|(_, s)| matches!(s, State::Tentative { .. })) {
            Some((_, state)) => *state = State::Duplicate(mac),
            None => return false,
        }
        true
    }
}

impl Probing {
    pub fn is_tentative(&self) -> bool {
        let mut states = self.states.values();
        states.any(|s| matches!(s, State::Tentative { .. }))
    }
}
