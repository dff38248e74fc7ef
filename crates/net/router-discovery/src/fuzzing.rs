//! What the fuzz targets in `fuzz/` need of this crate.

use crate::mld::packet::{self, Heard};
use std::net::Ipv6Addr;

/// Reads a message for a listener (RFC 3810): the group that it is about, and in how many milliseconds it wants an answer.
pub fn mld_message(message: &[u8]) -> Option<(Option<Ipv6Addr>, u32)> {
    packet::read(message).map(|heard| match heard {
        Heard::Query {
            group, within_ms, ..
        } => (group, within_ms),
        Heard::Report(group) => (Some(group), 0),
    })
}

/// The frame by which an old listener reports a group.
pub fn mld_report(group: Ipv6Addr) -> Vec<u8> {
    packet::old_report([2, 0, 0, 0, 0, 1], group, true)
}
