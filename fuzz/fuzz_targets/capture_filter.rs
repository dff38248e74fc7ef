//! Filters of captures and traces on any packet: a filter and its negation never agree.
#![no_main]

use libfuzzer_sys::fuzz_target;
use volley_pcap::trace::Filter;

fuzz_target!(|bytes: &[u8]| {
    // The first line is the filter, the rest the packet.
    let at = bytes
        .iter()
        .position(|b| *b == b'\n')
        .unwrap_or(bytes.len());
    let (text, packet) = bytes.split_at(at);
    let packet = packet.get(1..).unwrap_or_default();
    let Ok(text) = std::str::from_utf8(text) else {
        return;
    };
    match Filter::compile(text) {
        Ok(filter) => {
            let found = filter.matches(packet, packet.len());
            if let Ok(other) = Filter::compile(&format!("not ({text})")) {
                assert_ne!(found, other.matches(packet, packet.len()), "{text}");
            }
            let _ = filter.matches(packet, packet.len() + 1000);
        }
        Err(error) => {
            assert!(!error.message.is_empty());
            assert!(error.column <= text.chars().count() + 1, "{error:?}");
        }
    }
});
