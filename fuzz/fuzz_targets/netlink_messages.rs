//! Bytes of a netlink socket: never more messages than fit, and an unreadable message is the last one.
#![no_main]

use libfuzzer_sys::fuzz_target;
use volley_netlink::fuzzing::messages;

/// Bytes of `nlmsghdr`.
const HEADER: usize = 16;

fuzz_target!(|bytes: &[u8]| {
    let (all, odd) = messages(bytes, None);
    assert!(all <= bytes.len() / HEADER + 1 && odd <= all);
    // For replies to one request: at most one message more for each, which says that the dump was interrupted.
    let (answers, _) = messages(bytes, Some(7));
    assert!(answers <= 2 * all);
});
