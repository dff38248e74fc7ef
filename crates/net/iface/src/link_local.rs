//! Link-local senders, for features that send their own frames on a link. The crate that has the addresses of interfaces
//! implements the sender; features get the sender at registration.

use std::net::{Ipv4Addr, Ipv6Addr};

/// An interface that is up, as the source of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkSource {
    /// The MAC address.
    pub mac: [u8; 6],
    /// The first IPv4 address.
    pub ip4: Option<Ipv4Addr>,
    /// The IPv6 link-local address, if the interface has IPv6.
    pub ip6: Option<Ipv6Addr>,
}

/// Sends frames, on the control thread.
pub trait LinkLocalSender {
    /// The interface as a source of frames; none while it is down.
    fn link_source(&self, iface: u32) -> Option<LinkSource>;

    /// Sends a frame of at most the minimum IPv6 MTU.
    fn send(&self, iface: u32, frame: &[u8]);
}
