//! Configuration files: no panic; every error has a sentence; an accepted file passes the checks of its requests.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    // A table that is read at start.
    volley_log::classes().unwrap();
    match volley_config::parse(text) {
        Ok(config) => {
            for request in &config.requests {
                assert!(request.validate().is_ok(), "{request}");
            }
        }
        Err(errors) => assert!(!errors.to_string().is_empty()),
    }
});
