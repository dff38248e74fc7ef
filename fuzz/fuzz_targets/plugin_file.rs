//! Files of plugins, before any of their code runs: bytes that are no plugin of this router are refused with a sentence.
#![no_main]

use libfuzzer_sys::fuzz_target;
use volley_plugin_abi::Fingerprint;
use volley_plugin_host::{check_file, check_parts};

fuzz_target!(|bytes: &[u8]| {
    for refused in [check_file(bytes), check_parts(bytes)] {
        let text = refused.err().map(|it| it.to_string());
        assert!(text.is_none_or(|it| !it.is_empty() && !it.contains('\n')));
    }
    let magic = b"volley plugin  1";
    let fingerprint = [&magic[..], bytes].concat();
    if let Err(refused) = Fingerprint::HERE.check(&fingerprint) {
        let text = refused.to_string();
        assert!(!text.contains('\n'), "{text}");
    }
});
