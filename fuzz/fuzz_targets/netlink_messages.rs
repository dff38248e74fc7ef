//! What a netlink socket gives: never more messages than there is room for, and after one that cannot be read the end.
#![no_main]

use libfuzzer_sys::fuzz_target;
use volley_netlink::fuzzing::messages;

/// Bytes of `nlmsghdr`.
const HEADER: usize = 16;

fuzz_target!(|bytes: &[u8]| {
    let (all, odd) = messages(bytes, None);
    assert!(all <= bytes.len() / HEADER + 1 && odd <= all);
    // An answer to one request: at most one message more for each, that the dump was interrupted.
    let (answers, _) = messages(bytes, Some(7));
    assert!(answers <= 2 * all);
});
