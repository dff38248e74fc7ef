//! Files of plugins, before any of their code runs: bytes that are no plugin of this router are refused with a sentence.
#![no_main]

use libfuzzer_sys::fuzz_target;
use volley_plugin_abi::Fingerprint;
use volley_plugin_host::check_file;

fuzz_target!(|bytes: &[u8]| {
    if let Err(refused) = check_file(bytes) {
        let text = refused.to_string();
        assert!(!text.is_empty() && !text.contains('\n'), "{text}");
    }
    let magic = b"volley plugin  1";
    let fingerprint = [&magic[..], bytes].concat();
    if let Err(refused) = Fingerprint::HERE.check(&fingerprint) {
        let text = refused.to_string();
        assert!(!text.contains('\n'), "{text}");
    }
});
