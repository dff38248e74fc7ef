//! Functions for the fuzz targets in `fuzz/`.

use crate::node::nd_input;
use std::net::Ipv6Addr;

/// Parses a neighbour solicitation or advertisement: its target, and the MAC address in its option.
pub fn nd_message(packet: &[u8]) -> Option<(Ipv6Addr, Option<[u8; 6]>)> {
    let found = nd_input::parse(packet).ok()?;
    Some((found.target, found.mac))
}
