//! Interfaces and neighbours as the FIB knows them.

use std::net::Ipv6Addr;

use volley_model::{IfAddress, Prefix as Network};

/// Interface attributes that the FIB needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IfInfo {
    /// Interface index; small, since tables are indexed by it.
    pub index: u32,
    /// Interface name, for queries and errors.
    pub name: String,
    /// MAC address of the interface, the source address of sent frames.
    pub mac: [u8; 6],
    /// Largest IP packet in bytes.
    pub mtu: u16,
    /// Administratively up.
    pub up: bool,
}

/// Entry of a neighbour.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Neighbor {
    /// MAC address of the neighbour.
    pub mac: [u8; 6],
    /// Whether the neighbour may have a host route (false = "no fib entry").
    pub host_route: bool,
    /// Whether the address was learned from packets instead of configured.
    pub learned: bool,
}

impl Neighbor {
    /// A configured neighbour with a host route.
    pub fn new(mac: [u8; 6]) -> Self {
        Self {
            mac,
            host_route: true,
            learned: false,
        }
    }

    /// A learned neighbour with a host route.
    pub fn learned(mac: [u8; 6]) -> Self {
        Self {
            learned: true,
            ..Self::new(mac)
        }
    }
}

/// State that an interface gets from routers of its link.
#[derive(Clone, Debug, Default)]
pub(crate) struct Automatic {
    pub addresses: Vec<IfAddress>,
    pub on_link: Vec<Network>,
    /// Default routers and their preferences; the smallest is used.
    pub routers: Vec<(Ipv6Addr, u8)>,
}
