//! What the FIB knows of an interface and of a neighbour.

use std::net::Ipv6Addr;

use volley_model::{IfAddress, Prefix as Network};

/// An interface as the FIB needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IfInfo {
    /// Its index; small, since tables are indexed by it.
    pub index: u32,
    /// Its name, for shows and errors.
    pub name: String,
    /// Its MAC address, the source of what leaves.
    pub mac: [u8; 6],
    /// Largest IP packet in bytes.
    pub mtu: u16,
    /// Administratively up.
    pub up: bool,
}

/// What is known of a neighbour.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Neighbor {
    /// Its MAC address.
    pub mac: [u8; 6],
    /// Whether it may have a host route (false = "no fib entry").
    pub host_route: bool,
    /// Whether the address was learned from packets, and not configured.
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

/// What an interface has from the routers of its link.
#[derive(Clone, Debug, Default)]
pub(crate) struct Automatic {
    pub addresses: Vec<IfAddress>,
    pub on_link: Vec<Network>,
    /// Default routers, and their preferences: the smallest is used.
    pub routers: Vec<(Ipv6Addr, u8)>,
}
