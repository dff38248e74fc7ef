//! Neighbours in state INCOMPLETE whose address a received packet chose, not a route or this router: a scan of unused addresses
//! creates any number of them (RFC 6583). They are grouped by the worker that has the packet and by the network of the address.
//! Above the limit the oldest neighbour of the largest group is deleted, so a scan of one network takes no entries of others.

use super::Key;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::net::IpAddr;

/// A network of an interface: the interface, the first address and the prefix length.
pub type Net = (u32, IpAddr, u8);

/// A network with at most this many entries is treated like trusted addresses.
const FEW: usize = 16;
/// Most addresses that are remembered because they answered once.
const REMEMBERED: usize = 4096;

/// Origin of a packet that waits for a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The network of its next hop.
    pub net: Net,
    /// The worker that received the packet.
    pub worker: usize,
    /// Whether a route or this router named the next hop, not the packet.
    pub trusted: bool,
}

/// Interface, worker, first address and prefix length.
pub(super) type Group = (u32, usize, IpAddr, u8);

impl Origin {
    pub(super) fn group(&self) -> Group {
        let (iface, first, bits) = self.net;
        (iface, self.worker, first, bits)
    }
}

/// Addresses by group, in order of age.
#[derive(Debug, Default)]
pub(super) struct Groups(BTreeMap<Group, BTreeSet<(u64, IpAddr)>>);

impl Groups {
    pub fn insert(&mut self, group: Group, since: u64, addr: IpAddr) {
        self.0.entry(group).or_default().insert((since, addr));
    }

    pub fn remove(&mut self, group: Group, since: u64, addr: IpAddr) {
        let Some(all) = self.0.get_mut(&group) else {
            return;
        };
        all.remove(&(since, addr));
        if all.is_empty() {
            self.0.remove(&group);
        }
    }

    /// The oldest address of the largest group among the groups that `counts` accepts.
    pub fn oldest_of_largest(&self, counts: impl Fn(&Group) -> bool) -> Option<Key> {
        let groups = self.0.iter().filter(|(group, _)| counts(group));
        let (group, all) = groups.max_by_key(|(_, all)| all.len())?;
        let (_, addr) = all.first()?;
        Some((group.0, *addr))
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.0.values().map(BTreeSet::len).sum()
    }
}

/// All untrusted neighbours in state INCOMPLETE.
#[derive(Debug, Default)]
pub(super) struct Incomplete {
    pub all: Groups,
    /// The entries with waiting packets.
    pub waiting: Groups,
    on: HashMap<u32, usize>,
    by_net: HashMap<Net, usize>,
}

fn net((iface, _, first, bits): Group) -> Net {
    (iface, first, bits)
}

impl Incomplete {
    pub fn insert(&mut self, group: Group, since: u64, addr: IpAddr) {
        self.all.insert(group, since, addr);
        *self.on.entry(group.0).or_default() += 1;
        *self.by_net.entry(net(group)).or_default() += 1;
    }

    pub fn remove(&mut self, group: Group, since: u64, addr: IpAddr) {
        self.all.remove(group, since, addr);
        self.waiting.remove(group, since, addr);
        take_one(&mut self.on, group.0);
        take_one(&mut self.by_net, net(group));
    }

    /// Number of entries on an interface.
    pub fn on(&self, iface: u32) -> usize {
        self.on.get(&iface).copied().unwrap_or(0)
    }

    /// Whether the network of this group has at most [`FEW`] entries.
    pub fn are_few(&self, group: Group) -> bool {
        self.by_net.get(&net(group)).is_none_or(|n| *n <= FEW)
    }
}

fn take_one<K: std::hash::Hash + Eq>(counts: &mut HashMap<K, usize>, key: K) {
    if let Some(n) = counts.get_mut(&key) {
        *n -= 1;
        if *n == 0 {
            counts.remove(&key);
        }
    }
}

/// The newest deleted addresses that answered once.
#[derive(Debug, Default)]
pub(super) struct Memory {
    all: HashSet<Key>,
    order: VecDeque<Key>,
}

impl Memory {
    pub fn insert(&mut self, key: Key) {
        if !self.all.insert(key) {
            return;
        }
        self.order.push_back(key);
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.all.remove(&oldest);
        }
    }

    pub fn has(&self, key: &Key) -> bool {
        self.all.contains(key)
    }

    pub fn forget_interface(&mut self, iface: u32) {
        self.all.retain(|(on, _)| *on != iface);
        self.order.retain(|(on, _)| *on != iface);
    }
}
