//! Speaking on a link unasked: what a feature needs that sends frames of its own. The crate that knows the addresses of
//! interfaces implements it; features that want it get it when they are registered.

use std::net::{Ipv4Addr, Ipv6Addr};

/// An interface that is up, as one who speaks on it sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkSource {
    /// Its MAC address.
    pub mac: [u8; 6],
    /// Its first address of IPv4.
    pub ip4: Option<Ipv4Addr>,
    /// Its link-local address, where it has IPv6.
    pub ip6: Option<Ipv6Addr>,
}

/// Has frames sent, on the control thread.
pub trait LinkLocalSender {
    /// An interface; none while it is down.
    fn link_source(&self, iface: u32) -> Option<LinkSource>;

    /// Have a frame sent, of up to what every link of IPv6 carries.
    fn send(&self, iface: u32, frame: &[u8]);
}
