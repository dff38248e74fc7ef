//! Replies and errors for the router's pings: identifier and sequence number are bytes of the packet.
#![no_main]

use libfuzzer_sys::fuzz_target;
use volley_ping::fuzzing::{answer, is_reply};

fuzz_target!(|bytes: &[u8]| {
    if let Some((id, number)) = answer(bytes) {
        let wanted = [id.to_be_bytes(), number.to_be_bytes()].concat();
        assert!(bytes.windows(4).any(|four| four == wanted));
    }
    if is_reply(bytes) {
        assert!(matches!(bytes[0] >> 4, 4 | 6));
    }
});
