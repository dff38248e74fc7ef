//! Multicast listener discovery, the listener's side (RFC 3810, version 2; RFC 2710, version 1): because of the reports of the
//! groups that an interface listens to, switches and routers of the link forward solicitations for its addresses to it.

mod groups;
pub(crate) mod packet;

use crate::moment::{Effect, Moment};
use crate::nd;
use crossbeam_queue::ArrayQueue;
use groups::{Groups, MldReportOut};
use packet::Heard;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use volley_iface::Flag;

/// Capacity of a worker's queue to the control thread.
const HEARD: usize = 256;

/// Queue of received MLD messages from one worker to the control thread, each with the receiving interface.
pub struct MldQueue(ArrayQueue<(u32, Heard)>);

impl Default for MldQueue {
    fn default() -> Self {
        MldQueue(ArrayQueue::new(HEARD))
    }
}

impl MldQueue {
    /// Worker: adds a message; false if the queue is full.
    pub(crate) fn push(&self, iface: u32, heard: Heard) -> bool {
        self.0.push((iface, heard)).is_ok()
    }
}

/// Interfaces that listen to groups.
#[derive(Default)]
pub struct Listeners(BTreeMap<u32, Groups>);

/// Groups that an interface listens to: the solicited-node groups of its addresses, tentative ones included, and all-routers.
/// None if the interface has an LCP tap (`lcp_tap`): the kernel then reports the groups of both.
fn wanted(iface: u32, lcp_tap: bool, moment: &Moment<'_>) -> Vec<Ipv6Addr> {
    let six = |addr| match addr {
        IpAddr::V6(addr) => Some(addr),
        IpAddr::V4(_) => None,
    };
    // `addresses` has tentative addresses, which are not in use yet; `used_addresses` has those of another interface
    // (unnumbered).
    let own = moment.fib.addresses(iface).iter().copied();
    let own = own.chain(moment.fib.used_addresses(iface));
    let mut own: Vec<Ipv6Addr> = own.filter_map(|a| six(a.addr())).collect();
    let link = moment.links.get(&iface);
    let link = link.filter(|link| link.up && link.learns && !lcp_tap);
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

impl Listeners {
    /// Follows an interface that was added, deleted or changed.
    pub fn follow(&mut self, iface: u32, lcp_tap: bool, moment: &mut Moment<'_>) {
        let wanted = wanted(iface, lcp_tap, moment);
        let there = moment.links.get(&iface);
        if there.is_none_or(|link| !link.up) {
            // The interface cannot send reports: its groups are dropped without one.
            self.0.remove(&iface);
        } else if !wanted.is_empty() || self.0.contains_key(&iface) {
            self.0.entry(iface).or_default().set(&wanted, moment.now);
        }
        if there.is_some() {
            moment.mark(iface, Flag::GroupMember, !wanted.is_empty());
        }
    }

    /// Reads at most `limit` messages of a worker. True if there was one.
    pub fn read(&mut self, queue: &MldQueue, limit: usize, moment: &mut Moment<'_>) -> bool {
        let mut some = false;
        for (iface, heard) in std::iter::from_fn(|| queue.0.pop()).take(limit) {
            some = true;
            let chance = moment.chance(iface);
            if let Some(groups) = self.0.get_mut(&iface) {
                groups.hear(heard, moment.now, chance);
            }
        }
        some
    }

    /// Sends the reports that are due.
    pub fn turn(&mut self, moment: &mut Moment<'_>) {
        let now = moment.now;
        let due = self.0.iter();
        let due = due.filter(|(_, it)| it.next().is_some_and(|at| at <= now));
        let due: Vec<u32> = due.map(|(iface, _)| *iface).collect();
        for iface in due {
            let chance = moment.chance(iface);
            let Some(own) = moment.links.get(&iface).map(|link| link.mac) else {
                continue;
            };
            let message = self.0.get_mut(&iface).map(|it| it.turn(now, chance));
            for say in message.unwrap_or_default() {
                let frame = match say {
                    MldReportOut::Records(records) => packet::report(own, &records),
                    MldReportOut::Old(group, listens) => packet::old_report(own, group, listens),
                };
                moment.effects.push(Effect::Send(iface, frame));
            }
        }
    }

    /// Groups that an interface listens to.
    pub fn groups(&self, iface: u32) -> Vec<Ipv6Addr> {
        let groups = self.0.get(&iface);
        groups.map_or(Vec::new(), |it| it.iter().collect())
    }
}
