//! Queries and reports that the router receives as a listener of groups (RFC 3810): any bytes, and what the router sends.
#![no_main]

use libfuzzer_sys::fuzz_target;
use volley_router_discovery::fuzzing::{mld_message, mld_report};

/// Ethernet, IPv6 and hop-by-hop header.
const BEFORE: usize = 14 + 40 + 8;
/// The longest delay that a query can request (RFC 3810, 5.1.3).
const LONGEST_MS: u32 = 0x1fff << 10;

fuzz_target!(|bytes: &[u8]| {
    let Some((group, within_ms)) = mld_message(bytes) else {
        return;
    };
    assert!(within_ms <= LONGEST_MS);
    if let Some(group) = group {
        assert!(group.is_multicast());
        let frame = mld_report(group);
        assert_eq!(mld_message(&frame[BEFORE..]), Some((Some(group), 0)));
    }
});
