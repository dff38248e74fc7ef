//! Adjacencies on the control side: users and slot of each neighbour.
//!
//! An adjacency exists as long as a path list uses it; whether it is complete depends on the neighbour table alone. A change of
//! its facts (MAC address of the neighbour, MAC address or MTU of the interface) allocates a new slot; the old one stays
//! readable until [`Adjs::bury`], after the load balances have moved.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use volley_tables::Domain;
use volley_wire::ethertype;

use super::facts::IfInfo;
use crate::dataplane::{
    ADJ_COMPLETE, ADJ_ETHERNET, AdjData, AdjSnap, Adjacencies, Dpo, DpoKind, MAX_REWRITE,
};
use crate::family::Af;

/// Key of an adjacency: a neighbour on an interface, for packets of one family.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct AdjKey {
    pub iface: u32,
    pub addr: IpAddr,
    pub af: Af,
}

pub(crate) struct Adj {
    pub key: AdjKey,
    pub slot: u32,
    pub complete: bool,
    /// Path lists that use the adjacency.
    pub lists: HashSet<u32>,
}

impl Adj {
    pub fn dpo(&self) -> Dpo {
        let kind = if self.complete {
            DpoKind::Adj
        } else {
            DpoKind::Incomplete
        };
        Dpo::new(kind, self.slot)
    }
}

impl AdjKey {
    /// Key of the broadcast adjacency of an interface.
    pub fn broadcast(iface: u32) -> Self {
        AdjKey {
            iface,
            addr: Ipv4Addr::BROADCAST.into(),
            af: Af::V4,
        }
    }

    /// MAC address of the neighbour, if known.
    fn mac(&self, macs: &Macs) -> Option<[u8; 6]> {
        if *self == Self::broadcast(self.iface) {
            return Some([0xff; 6]);
        }
        macs.get(&(self.iface, self.addr)).copied()
    }
}

/// MAC addresses of neighbours by interface and address.
pub(crate) type Macs = HashMap<(u32, IpAddr), [u8; 6]>;

pub(crate) struct Adjs {
    slots: Adjacencies,
    by_key: HashMap<AdjKey, Adj>,
    by_slot: HashMap<u32, AdjKey>,
    dead: Vec<u32>,
}

impl Adjs {
    pub fn new(domain: &Arc<Domain>) -> Self {
        Self {
            slots: Adjacencies::new(domain),
            by_key: HashMap::new(),
            by_slot: HashMap::new(),
            dead: Vec::new(),
        }
    }

    /// The adjacency of a key, with the path list as its user; created if it is new.
    pub fn hold(&mut self, key: AdjKey, list: u32, info: &IfInfo, macs: &Macs) -> Dpo {
        if !self.by_key.contains_key(&key) {
            let mac = key.mac(macs);
            let slot = self.slots.publish(&rewrite(&key, info, mac.as_ref()));
            self.by_slot.insert(slot, key);
            let adj = Adj {
                key,
                slot,
                complete: mac.is_some(),
                lists: HashSet::new(),
            };
            self.by_key.insert(key, adj);
        }
        self.by_key.get_mut(&key).map_or(Dpo::NO_ROUTE, |adj| {
            adj.lists.insert(list);
            adj.dpo()
        })
    }

    /// Whether a path list uses the adjacency.
    pub fn has(&self, key: &AdjKey) -> bool {
        self.by_key.contains_key(key)
    }

    /// Removes a path list from the users of an adjacency.
    pub fn let_go(&mut self, key: AdjKey, list: u32) {
        let Some(adj) = self.by_key.get_mut(&key) else {
            return;
        };
        adj.lists.remove(&list);
        if adj.lists.is_empty() {
            let slot = adj.slot;
            self.by_key.remove(&key);
            self.dead.push(slot);
        }
    }

    /// Writes an adjacency into a new slot after its facts changed; returns the path lists that must move to the new slot.
    pub fn renew(&mut self, key: AdjKey, info: &IfInfo, macs: &Macs) -> Vec<u32> {
        let Some(adj) = self.by_key.get_mut(&key) else {
            return Vec::new();
        };
        let mac = key.mac(macs);
        self.dead.push(adj.slot);
        adj.slot = self.slots.publish(&rewrite(&key, info, mac.as_ref()));
        adj.complete = mac.is_some();
        self.by_slot.insert(adj.slot, key);
        adj.lists.iter().copied().collect()
    }

    /// Keys of the adjacencies of an interface.
    pub fn of_iface(&self, iface: u32) -> Vec<AdjKey> {
        self.by_key
            .keys()
            .filter(|k| k.iface == iface)
            .copied()
            .collect()
    }

    /// Frees the slots that no load balance names any more; call this after all load balances have moved.
    pub fn bury(&mut self) {
        for slot in self.dead.drain(..) {
            self.by_slot.remove(&slot);
            self.slots.free(slot);
        }
    }

    pub fn by_slot(&self, slot: u32) -> Option<&Adj> {
        self.by_slot.get(&slot).and_then(|key| self.by_key.get(key))
    }

    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    pub fn snap(&self) -> AdjSnap {
        self.slots.snap()
    }

    pub fn reclaim(&mut self) {
        self.slots.reclaim();
    }

    pub fn waiting(&self) -> usize {
        self.slots.waiting()
    }

    pub fn bytes(&self) -> usize {
        self.slots.bytes()
    }
}

/// Ethernet header for a known neighbour; for an unknown one its address in place of the rewrite.
fn rewrite(key: &AdjKey, info: &IfInfo, mac: Option<&[u8; 6]>) -> AdjData {
    let mut bytes = Vec::with_capacity(MAX_REWRITE);
    let next_hop = match key.addr {
        IpAddr::V4(a) => a.to_ipv6_mapped(),
        IpAddr::V6(a) => a,
    };
    let flags = match mac {
        Some(mac) => {
            bytes.extend_from_slice(mac);
            bytes.extend_from_slice(&info.mac);
            let kind = if key.af == Af::V4 {
                ethertype::IP4
            } else {
                ethertype::IP6
            };
            bytes.extend_from_slice(&kind.to_be_bytes());
            ADJ_COMPLETE | ADJ_ETHERNET
        }
        None => {
            bytes.extend_from_slice(&next_hop.octets());
            0
        }
    };
    AdjData {
        rewrite: bytes,
        next_hop: next_hop.octets(),
        tx_if: key.iface,
        mtu: info.mtu,
        flags,
    }
}
