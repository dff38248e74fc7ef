//! Any bytes as a compressed file: an error or content, never more than the limit.
#![no_main]

use std::io::{Cursor, Read};

use libfuzzer_sys::fuzz_target;
use volley_input::Limits;

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits {
        output: 1 << 20,
        memory: 16 << 20,
    };
    let Ok(mut input) = volley_input::wrap(Cursor::new(bytes.to_vec()), "fuzz", limits) else {
        return;
    };
    let mut content = Vec::new();
    if let Err(error) = input.read_to_end(&mut content) {
        assert!(error.to_string().starts_with("fuzz: "), "{error}");
    }
    assert!(content.len() as u64 <= limits.output);
});
