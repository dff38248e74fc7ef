//! Connected networks of interfaces that are down: next hops in them are unreachable for that reason.

use hashbrown::{HashMap, HashSet};
use std::net::IpAddr;

use crate::family::{Af, wide};

/// A connected network whose interface is down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct DownNet {
    /// IP version.
    pub af: Af,
    /// Index of the table that has the network.
    pub table: u32,
    /// First address of the network.
    pub first: u128,
    /// Last address of the network.
    pub last: u128,
}

impl DownNet {
    /// Mask of the host bits.
    fn host_mask(&self) -> u128 {
        self.last - self.first
    }
}

/// The connected networks of all interfaces that are down. An interface counts a network once for each of its addresses in it.
#[derive(Default)]
pub(crate) struct DownNets {
    /// Networks of each interface, with the number of its addresses in the network.
    of_iface: HashMap<u32, HashMap<DownNet, u32>>,
    /// Number of interfaces that have the network.
    nets: HashMap<DownNet, u32>,
    /// Number of networks for each host mask: a lookup tries these masks only.
    masks: HashMap<(Af, u128), u32>,
}

/// Increments the count of a key; true if it was zero.
fn add<K: std::hash::Hash + Eq>(map: &mut HashMap<K, u32>, key: K) -> bool {
    let count = map.entry(key).or_default();
    *count += 1;
    *count == 1
}

/// Decrements the count of a key; true if it is now zero.
fn del<K: std::hash::Hash + Eq>(map: &mut HashMap<K, u32>, key: &K) -> bool {
    let Some(count) = map.get_mut(key) else {
        return false;
    };
    *count -= 1;
    let last = *count == 0;
    if last {
        map.remove(key);
    }
    last
}

impl DownNets {
    /// Adds an address of the interface in the network.
    pub fn add(&mut self, iface: u32, net: DownNet) {
        let of_iface = self.of_iface.entry(iface).or_default();
        if add(of_iface, net) && add(&mut self.nets, net) {
            add(&mut self.masks, (net.af, net.host_mask()));
        }
    }

    /// Removes an address of the interface in the network.
    pub fn del(&mut self, iface: u32, net: DownNet) {
        let Some(of_iface) = self.of_iface.get_mut(&iface) else {
            return;
        };
        let gone = del(of_iface, &net);
        if of_iface.is_empty() {
            self.of_iface.remove(&iface);
        }
        if gone && del(&mut self.nets, &net) {
            del(&mut self.masks, &(net.af, net.host_mask()));
        }
    }

    /// Removes and returns the networks of an interface.
    pub fn clear(&mut self, iface: u32) -> Vec<DownNet> {
        let nets = self.of_iface.remove(&iface).unwrap_or_default();
        for net in nets.keys() {
            if del(&mut self.nets, net) {
                del(&mut self.masks, &(net.af, net.host_mask()));
            }
        }
        nets.into_keys().collect()
    }

    /// The networks of an interface.
    pub fn of(&self, iface: u32) -> HashSet<DownNet> {
        let nets = self.of_iface.get(&iface);
        nets.into_iter().flat_map(|n| n.keys().copied()).collect()
    }

    /// Whether an address is in a network of an interface that is down.
    pub fn has(&self, addr: IpAddr, table: u32) -> bool {
        let (af, addr) = (Af::of(addr), wide(addr));
        let mut masks = self.masks.keys().filter(|(of, _)| *of == af);
        masks.any(|&(_, hosts)| {
            let first = addr & !hosts;
            let last = first | hosts;
            self.nets.contains_key(&DownNet {
                af,
                table,
                first,
                last,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn net(first: u128, bits: u32) -> DownNet {
        let (af, table) = (Af::V4, 3);
        let last = first + (1 << bits) - 1;
        DownNet {
            af,
            table,
            first,
            last,
        }
    }

    #[test]
    fn a_network_is_down_until_the_last_address_of_the_last_interface_leaves() {
        let mut nets = DownNets::default();
        let [inside, outside] = ["10.0.0.9", "10.0.1.9"].map(|a| a.parse::<IpAddr>().unwrap());
        let small = net(wide("10.0.0.0".parse().unwrap()), 8);
        let large = net(wide("10.0.0.0".parse().unwrap()), 16);
        for iface in [1, 1, 2] {
            nets.add(iface, small);
        }
        assert_eq!(
            (
                nets.has(inside, 3),
                nets.has(outside, 3),
                nets.has(inside, 4)
            ),
            (true, false, false)
        );
        nets.add(2, large);
        assert!(nets.has(outside, 3));
        nets.del(1, small);
        assert_eq!(nets.of(1).len(), 1);
        assert_eq!(nets.clear(2).len(), 2);
        assert_eq!((nets.has(inside, 3), nets.has(outside, 3)), (true, false));
        nets.del(1, small);
        assert!(!nets.has(inside, 3) && nets.masks.is_empty() && nets.of_iface.is_empty());
    }
}
