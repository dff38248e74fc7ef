//! Functions for the fuzz targets in `fuzz/`.

use crate::mld::packet::{self, Heard};
use std::net::Ipv6Addr;

/// Parses an MLD query (RFC 3810): its group and its maximum response delay in milliseconds.
pub fn mld_message(message: &[u8]) -> Option<(Option<Ipv6Addr>, u32)> {
    packet::read(message).map(|heard| match heard {
        Heard::Query {
            group, within_ms, ..
        } => (group, within_ms),
        Heard::Report(group) => (Some(group), 0),
    })
}

/// The frame of an MLDv1 report for a group.
pub fn mld_report(group: Ipv6Addr) -> Vec<u8> {
    packet::old_report([2, 0, 0, 0, 0, 1], group, true)
}
