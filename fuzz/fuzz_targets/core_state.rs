//! Any requests as a configuration: the requests that the core writes for an accepted state lead to the same state, without
//! difference.
#![no_main]

#[path = "../src/classes.rs"]
mod classes;

use libfuzzer_sys::fuzz_target;
use volley_control::{Core, requests};
use volley_model::Request;

fuzz_target!(|bytes: &[u8]| {
    classes::register();
    let Ok(all) = serde_json::from_slice::<Vec<Request>>(bytes) else {
        return;
    };
    let state = match Core::state_of(&all) {
        Ok(state) => state.lasting(),
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let written = requests(&state);
    let again = Core::state_of(&written).expect("what the core wrote");
    assert_eq!(Core::difference(&state, &again), Vec::<String>::new());
    assert!(again == state);
});
