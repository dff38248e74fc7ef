//! Requests as JSON, also with the names of earlier versions: parsed requests, written and parsed again, are the same.
#![no_main]

#[path = "../src/classes.rs"]
mod classes;

use libfuzzer_sys::fuzz_target;
use volley_model::Request;

fuzz_target!(|bytes: &[u8]| {
    classes::register();
    let Ok(request) = serde_json::from_slice::<Request>(bytes) else {
        return;
    };
    let text = serde_json::to_string(&request).expect("it was read");
    let again = serde_json::from_str::<Request>(&text);
    assert!(again.is_ok_and(|same| same == request), "{text}");
    let _ = (
        request.validate(),
        request.to_string(),
        request.is_configuration(),
    );
});
