//! Connected networks whose interfaces are down: next hops there are not reached because of that.

use hashbrown::{HashMap, HashSet};
use std::net::IpAddr;

use super::resolver::wide;
use crate::family::Af;

/// A connected network whose interface is down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct DownNet {
    /// IP version.
    pub af: Af,
    /// Index of the table.
    pub table: u32,
    /// Its first address.
    pub first: u128,
    /// Its last one.
    pub last: u128,
}

impl DownNet {
    /// Bits that are set in no first address of a network of this size.
    fn hosts(&self) -> u128 {
        self.last - self.first
    }
}

/// All of them. An interface has a network as often as it has addresses there.
#[derive(Default)]
pub(crate) struct DownNets {
    of_iface: HashMap<u32, HashMap<DownNet, u32>>,
    /// Interfaces that have the network.
    nets: HashMap<DownNet, u32>,
    /// Networks of each size, so that a lookup tries these sizes only.
    sizes: HashMap<(Af, u128), u32>,
}

/// One more.
fn add<K: std::hash::Hash + Eq>(map: &mut HashMap<K, u32>, key: K) -> bool {
    let count = map.entry(key).or_default();
    *count += 1;
    *count == 1
}

/// One less; whether it was the last.
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
    /// An address of the interface lies in the network.
    pub fn add(&mut self, iface: u32, net: DownNet) {
        let of_iface = self.of_iface.entry(iface).or_default();
        if add(of_iface, net) && add(&mut self.nets, net) {
            add(&mut self.sizes, (net.af, net.hosts()));
        }
    }

    /// One address of the interface less is in the network.
    pub fn del(&mut self, iface: u32, net: DownNet) {
        let Some(of_iface) = self.of_iface.get_mut(&iface) else {
            return;
        };
        let gone = del(of_iface, &net);
        if of_iface.is_empty() {
            self.of_iface.remove(&iface);
        }
        if gone && del(&mut self.nets, &net) {
            del(&mut self.sizes, &(net.af, net.hosts()));
        }
    }

    /// Forgets the networks of an interface, and returns them.
    pub fn clear(&mut self, iface: u32) -> Vec<DownNet> {
        let nets = self.of_iface.remove(&iface).unwrap_or_default();
        for net in nets.keys() {
            if del(&mut self.nets, net) {
                del(&mut self.sizes, &(net.af, net.hosts()));
            }
        }
        nets.into_keys().collect()
    }

    /// The networks of an interface.
    pub fn of(&self, iface: u32) -> HashSet<DownNet> {
        let nets = self.of_iface.get(&iface);
        nets.into_iter().flat_map(|n| n.keys().copied()).collect()
    }

    /// Whether an address is in one of them.
    pub fn has(&self, addr: IpAddr, table: u32) -> bool {
        let (af, addr) = (Af::of(addr), wide(addr));
        let mut sizes = self.sizes.keys().filter(|(of, _)| *of == af);
        sizes.any(|&(_, hosts)| {
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
        assert!(!nets.has(inside, 3) && nets.sizes.is_empty() && nets.of_iface.is_empty());
    }
}
