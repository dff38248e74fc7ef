//! What the fuzz targets in `fuzz/` need of this crate.

use crate::node::nd_input;
use std::net::Ipv6Addr;

/// Reads a neighbour solicitation or advertisement: its target, and the MAC address that it has.
pub fn nd_message(packet: &[u8]) -> Option<(Ipv6Addr, Option<[u8; 6]>)> {
    let found = nd_input::parse(packet).ok()?;
    Some((found.target, found.mac))
}
