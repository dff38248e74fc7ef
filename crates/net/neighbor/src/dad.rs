//! Duplicate address detection: before an interface uses an address, it probes the link for another host with the same address
//! (RFC 4862, 5.4; for IPv4 by ARP, RFC 5227, 2.1). The FIB uses neither tentative nor duplicate addresses.

pub(crate) mod state;

use crate::control::Control;
use crate::entry::{Mac, SECOND};
use crate::lane::Frame;
use crate::show::AddressRow;
use state::{Act, Probing, State};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use volley_iface::{Flag, IfIdx};
use volley_model::IfAddress;
use volley_router_discovery::AddressState;
use volley_router_discovery::nd;
use volley_wire::MacAddr;
use volley_wire::icmp6::Icmp6Type;

/// Longest random delay before the first probe (MAX_RTR_SOLICITATION_DELAY, PROBE_WAIT).
const FIRST: u64 = SECOND;
/// A neighbour solicitation from the unspecified address (RFC 4862, 5.4.2).
pub(crate) fn solicitation(own: Mac, target: Ipv6Addr) -> Vec<u8> {
    let group = nd::solicited_node(target);
    let mut message = vec![Icmp6Type::NEIGHBOUR_SOLICITATION.0, 0, 0, 0, 0, 0, 0, 0];
    message.extend(target.octets());
    let to_mac = nd::group_mac(group);
    nd::frame(own, to_mac, Ipv6Addr::UNSPECIFIED, group, message)
}

impl Control {
    /// Sets how many probes an interface sends for an address before the interface uses it; with 0 the interface uses it at
    /// once.
    pub fn probe_addresses(&mut self, iface: u32, probes: u32) {
        self.probes.configured.insert(iface, probes);
        self.renew_probes(iface);
    }

    /// Recomputes the number of probes: the configured number, and at least one on an interface with SLAAC (RFC 4862, 5.4).
    pub(crate) fn renew_probes(&mut self, iface: u32) {
        let asked = self.probes.configured.get(&iface).copied().unwrap_or(0);
        let probes = asked.max(u32::from(self.discovery.autoconf.is_on(iface)));
        self.fib.borrow_mut().set_careful(iface, probes > 0);
        if probes > 0 {
            // An address that is already in use stays in use.
            let fib = self.fib.borrow();
            let good = fib.addresses(iface).iter().map(|a| (*a, State::Good));
            let new = || Probing {
                probes,
                states: good.collect(),
            };
            self.probes
                .interfaces
                .entry(iface)
                .or_insert_with(new)
                .probes = probes;
        } else if self.probes.interfaces.remove(&iface).is_some() {
            let all = self.fib.borrow().addresses(iface).to_vec();
            all.iter().for_each(|a| self.use_address(iface, *a));
        }
        self.follow_addresses(iface);
        self.mark_probing(iface);
    }

    /// Makes workers report messages about the interface's own addresses while some are tentative.
    fn mark_probing(&self, iface: u32) {
        let on = self.probes.is_tentative(iface);
        if self.fib.borrow().interface(iface).is_some() {
            let interfaces = self.interfaces.borrow();
            interfaces
                .table()
                .set(IfIdx(iface), Flag::DuplicateAddressDetection, on);
        }
    }

    fn use_address(&mut self, iface: u32, address: IfAddress) {
        let done = self.fib.borrow_mut().set_usable(iface, address, true);
        self.tally.no_room += u64::from(done.is_err());
    }

    /// Updates the detection after a change of an interface or its addresses, before any other component reads them.
    pub fn follow_addresses(&mut self, iface: u32) {
        if !self.probes.interfaces.contains_key(&iface) {
            return;
        }
        let (now, chance) = (self.now(), self.chance(iface));
        let (up, all) = {
            let fib = self.fib.borrow();
            let Some(info) = fib.interface(iface) else {
                self.probes.interfaces.remove(&iface);
                return;
            };
            (info.up, fib.addresses(iface).to_vec())
        };
        let learns = self.learns(iface);
        let Some(it) = self.probes.interfaces.get_mut(&iface) else {
            return;
        };
        it.states.retain(|a, _| all.contains(a));
        if !up {
            // A host with the same address may join the link meanwhile: all addresses are tested again.
            it.states.clear();
        }
        let left = it.probes;
        let new: Vec<IfAddress> = all
            .into_iter()
            .filter(|a| !it.states.contains_key(a))
            .collect();
        if up {
            let at = now + chance % FIRST;
            let state = if learns {
                State::Tentative { left, at }
            } else {
                State::Good
            };
            it.states.extend(new.iter().map(|a| (*a, state)));
        }
        for address in new {
            if up && !learns {
                self.use_address(iface, address);
            } else {
                let _ = self.fib.borrow_mut().set_usable(iface, address, false);
            }
        }
        self.mark_probing(iface);
    }

    /// Sends due probes, and takes into use the addresses whose detection has ended without a conflict.
    pub fn turn_probes(&mut self, now: u64) {
        for (iface, address) in self.probes.due(now) {
            let chance = self.chance(iface);
            match self.probes.step(iface, address, now, chance) {
                Some(Act::Probe) => self.probe(iface, address.addr()),
                Some(Act::Use) => {
                    self.use_address(iface, address);
                    self.mark_probing(iface);
                }
                None => {}
            }
        }
    }

    fn probe(&mut self, iface: u32, address: IpAddr) {
        let Some(own) = self.links.get(&iface).map(|link| link.mac) else {
            return;
        };
        match address {
            IpAddr::V4(target) => self.arp(iface, own, None, Ipv4Addr::UNSPECIFIED, target),
            IpAddr::V6(target) => {
                let frame = solicitation(own, target);
                self.send(Frame::new(iface, &frame));
            }
        }
    }

    /// Another host claims an address, or sends a probe for it.
    pub fn claimed(&mut self, iface: u32, addr: IpAddr, mac: Mac) {
        let own = self.links.get(&iface).map(|link| link.mac);
        if own == Some(mac) || !self.probes.claim(iface, addr, mac) {
            return;
        }
        self.tally.duplicates += 1;
        self.mark_probing(iface);
        let what = format!(
            "the address {addr} is not used, for another station ({}) has it: give one of them another address",
            MacAddr(mac)
        );
        self.tell(iface, &what);
        self.discover(|it, moment| it.autoconf.disown(iface, addr, moment));
    }

    /// Number of probes that an interface sends for an address.
    pub fn probes_of(&self, iface: u32) -> u32 {
        self.probes.interfaces.get(&iface).map_or(0, |it| it.probes)
    }

    /// An interface's addresses and the states of their detection.
    pub fn address_rows(&self, iface: u32) -> Vec<AddressRow> {
        let (fib, probing) = (self.fib.borrow(), self.probes.interfaces.get(&iface));
        let state = |address: &IfAddress| match probing.and_then(|it| it.states.get(address)) {
            Some(State::Tentative { .. }) => AddressState::Tentative,
            Some(State::Duplicate(_)) => AddressState::Duplicate,
            _ if self.discovery.autoconf.is_deprecated(iface, *address) => AddressState::Deprecated,
            _ => AddressState::Preferred,
        };
        let row = |address: &IfAddress| AddressRow {
            address: *address,
            state: state(address),
        };
        let borrowed = fib.numbered(iface).map(|_| fib.used_addresses(iface));
        let own = fib.addresses(iface).iter().copied();
        let all = own.chain(borrowed.into_iter().flatten());
        all.map(|address| row(&address)).collect()
    }
}
