//! Multicast listener discovery, the listener's side (RFC 3810, version 2; RFC 2710, version 1): switches and routers of the
//! link are told which groups an interface listens to, so that solicitations for its addresses reach it.

pub(crate) mod groups;
pub(crate) mod packet;

use crate::control::Control;
use crate::lane::Frame;
use crate::nd;
use groups::MldReportOut;
use std::net::{IpAddr, Ipv6Addr};
use volley_iface::{Flag, IfIdx};

impl Control {
    /// Groups that an interface listens to: those of its addresses, also of such that are tried, and all routers'.
    fn wanted_groups(&self, iface: u32) -> Vec<Ipv6Addr> {
        let lcp_tap = self.interfaces.borrow().table().has(iface, Flag::HasLcpTap);
        let fib = self.fib.borrow();
        let six = |addr| match addr {
            IpAddr::V6(addr) => Some(addr),
            IpAddr::V4(_) => None,
        };
        // Those that are tried are not used yet; those that are another's are not its own.
        let own = fib.addresses(iface).iter().copied();
        let own = own.chain(fib.used_addresses(iface));
        let mut own: Vec<Ipv6Addr> = own.filter_map(|a| six(a.addr())).collect();
        // Where the kernel has a twin it listens for both.
        let link = self
            .links
            .get(&iface)
            .filter(|link| link.up && link.learns && !lcp_tap);
        let Some(link) = link.filter(|_| !own.is_empty()) else {
            return Vec::new();
        };
        own.push(nd::link_local(link.mac));
        let mut all: Vec<Ipv6Addr> = own.into_iter().map(nd::solicited_node).collect();
        all.push(nd::ALL_ROUTERS);
        all.sort();
        all.dedup();
        all
    }

    /// An interface came, went, or has changed.
    pub fn follow_groups(&mut self, iface: u32) {
        let (wanted, now) = (self.wanted_groups(iface), self.now());
        let there = self.links.get(&iface);
        if there.is_none_or(|link| !link.up) {
            // Nobody hears that it leaves.
            self.groups.remove(&iface);
        } else if !wanted.is_empty() || self.groups.contains_key(&iface) {
            self.groups.entry(iface).or_default().set(&wanted, now);
        }
        if there.is_some() {
            let interfaces = self.interfaces.borrow();
            interfaces
                .table()
                .set(IfIdx(iface), Flag::GroupMember, !wanted.is_empty());
        }
    }

    /// A message about groups was heard.
    pub fn hear_groups(&mut self, iface: u32, heard: packet::Heard, now: u64) {
        let chance = self.chance(iface);
        if let Some(groups) = self.groups.get_mut(&iface) {
            groups.hear(heard, now, chance);
        }
    }

    /// Say what is due.
    pub fn turn_groups(&mut self, now: u64) {
        let due = self
            .groups
            .iter()
            .filter(|(_, it)| it.next().is_some_and(|at| at <= now));
        let due: Vec<u32> = due.map(|(iface, _)| *iface).collect();
        for iface in due {
            let chance = self.chance(iface);
            let Some(own) = self.links.get(&iface).map(|link| link.mac) else {
                continue;
            };
            let said = self.groups.get_mut(&iface).map(|it| it.turn(now, chance));
            for say in said.unwrap_or_default() {
                let frame = match say {
                    MldReportOut::Records(records) => packet::report(own, &records),
                    MldReportOut::Old(group, listens) => packet::old_report(own, group, listens),
                };
                self.send_long(Frame::new(iface, &frame));
            }
        }
    }

    /// The groups that an interface listens to.
    pub fn group_rows(&self, iface: u32) -> Vec<Ipv6Addr> {
        let groups = self.groups.get(&iface);
        groups.map_or(Vec::new(), |it| it.iter().collect())
    }
}
