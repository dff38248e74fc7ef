//! Paths of routes inside the FIB (interfaces and tables by index), and their order.

use std::cmp::Ordering;
use std::net::IpAddr;

use crate::dataplane::DropWhy;
use crate::family::{Af, Family, Prefix};
use crate::source::Source;

/// Target of a path.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Via {
    /// A neighbour on an interface.
    NextHop {
        /// The neighbour.
        addr: IpAddr,
        /// Interface of the next hop.
        iface: u32,
    },
    /// The network is on the interface itself: each destination is its own next hop.
    Attached {
        /// The interface.
        iface: u32,
    },
    /// All hosts of a network on the interface.
    Broadcast {
        /// The interface.
        iface: u32,
    },
    /// An indirect next hop, resolved through its route.
    Recursive {
        /// The next hop.
        addr: IpAddr,
        /// Index of the table in which the next hop is resolved.
        table: u32,
    },
    /// Dropped, with the reason.
    Drop(DropWhy),
    /// Answered with "unreachable".
    Unreachable,
    /// Answered with "prohibited".
    Prohibit,
    /// Looked up again in another table (its index).
    LookupIn {
        /// The table.
        table: u32,
    },
    /// For this router.
    Local {
        /// The interface that owns the address, if one does.
        iface: Option<u32>,
    },
}

/// A path of a route.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Path {
    /// Target of the path.
    pub via: Via,
    /// Weight among paths of the same preference; 1 or more.
    pub weight: u8,
    /// Only usable paths of the smallest preference carry traffic.
    pub preference: u8,
    /// The operator or the kernel declares that the next hop is on the link of its interface.
    pub onlink: bool,
}

impl From<Via> for Path {
    fn from(via: Via) -> Self {
        Path {
            via,
            weight: 1,
            preference: 0,
            onlink: false,
        }
    }
}

impl Via {
    fn sort_key(&self) -> (u8, u8, u128, u32) {
        let host = |addr: &IpAddr| match addr {
            IpAddr::V4(a) => (0, u128::from(a.to_bits())),
            IpAddr::V6(a) => (1, a.to_bits()),
        };
        match self {
            Via::NextHop { addr, iface } => (0, host(addr).0, host(addr).1, *iface),
            Via::Attached { iface } => (1, 0, 0, *iface),
            Via::Broadcast { iface } => (1, 1, 0, *iface),
            Via::Recursive { addr, table } => (2, host(addr).0, host(addr).1, *table),
            Via::Drop(why) => (3, 0, 0, *why as u32),
            Via::Unreachable => (3, 1, 0, 0),
            Via::Prohibit => (3, 2, 0, 0),
            Via::LookupIn { table } => (5, 0, 0, *table),
            Via::Local { iface } => (7, 0, 0, iface.map_or(0, |i| i.saturating_add(1))),
        }
    }

    /// The interface that a path names explicitly.
    pub fn iface(&self) -> Option<u32> {
        match self {
            Via::NextHop { iface, .. } | Via::Attached { iface } | Via::Broadcast { iface } => {
                Some(*iface)
            }
            Via::Local { iface } => *iface,
            _ => None,
        }
    }
}

impl Path {
    /// Order of paths in a list: preference, type, next-hop protocol, next-hop address, interface.
    pub fn order(&self, other: &Path) -> Ordering {
        let key = |p: &Path| (p.preference, p.via.sort_key(), p.weight, p.onlink);
        key(self).cmp(&key(other))
    }

    /// Whether both have the same target, irrespective of weight and preference.
    pub fn same_way(&self, other: &Path) -> bool {
        self.via == other.via
    }
}

/// Key of a shared path list.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ListKey {
    pub af: Af,
    pub source: Source,
    /// Sorted by [`Path::order`], without duplicate targets.
    pub paths: Box<[Path]>,
}

impl ListKey {
    /// Sorts the paths; of two with the same target the later one is kept.
    pub fn new(af: Af, source: Source, paths: &[Path]) -> Self {
        let mut kept: Vec<Path> = Vec::with_capacity(paths.len());
        for path in paths {
            match kept.iter_mut().find(|k| k.same_way(path)) {
                Some(k) => *k = *path,
                None => kept.push(*path),
            }
        }
        kept.sort_by(Path::order);
        Self {
            af,
            source,
            paths: kept.into(),
        }
    }
}

/// The paths of a configured route: a host that is on an interface is its own next hop. Otherwise the route would hide the host
/// route of the neighbour entry.
pub(crate) fn host_paths<F: Family>(
    prefix: Prefix<F>,
    source: Source,
    paths: &[Path],
) -> Vec<Path> {
    let host = prefix.len() == F::BITS && source == Source::Static;
    let own = |path: &Path| match path.via {
        Via::Attached { iface } if host => Path {
            via: Via::NextHop {
                addr: F::ip(prefix.addr()),
                iface,
            },
            ..*path
        },
        _ => *path,
    };
    paths.iter().map(own).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(addr: &str, iface: u32) -> Path {
        Via::NextHop {
            addr: addr.parse().unwrap(),
            iface,
        }
        .into()
    }

    #[test]
    fn paths_sort_by_type_protocol_address_interface() {
        let paths = [
            Via::Recursive {
                addr: "10.0.0.1".parse().unwrap(),
                table: 0,
            }
            .into(),
            hop("::1", 0),
            hop("10.0.0.2", 1),
            hop("10.0.0.1", 9),
            hop("10.0.0.2", 0),
            Via::Attached { iface: 3 }.into(),
        ];
        let key = ListKey::new(Af::V4, Source::Static, &paths);
        let want = [paths[3], paths[4], paths[2], paths[1], paths[5], paths[0]];
        assert_eq!(&*key.paths, &want);
    }

    #[test]
    fn the_same_way_twice_is_one_path_with_the_later_weight() {
        let again = Path {
            weight: 7,
            ..hop("10.0.0.1", 1)
        };
        let key = ListKey::new(Af::V4, Source::Static, &[hop("10.0.0.1", 1), again]);
        assert_eq!(&*key.paths, &[again]);
    }
}
