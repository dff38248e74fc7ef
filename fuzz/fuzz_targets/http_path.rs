//! Keys of objects in paths of the HTTP interface: a parsed key, written as a path, parses to the same key.
#![no_main]

#[path = "../src/classes.rs"]
mod classes;

use libfuzzer_sys::fuzz_target;
use volley_http::fuzzing::object_path;

fuzz_target!(|text: &str| {
    classes::register();
    match object_path(&format!("/v1/{text}")) {
        Some(Ok((class, values))) => {
            let words: String = values
                .iter()
                .map(|word| format!("/{}", escaped(word)))
                .collect();
            let again = object_path(&format!("/v1/{class}{words}"));
            assert_eq!(again, Some(Ok((class, values))), "{text:?}");
        }
        Some(Err(message)) => assert!(
            !message.is_empty() && !message.chars().any(char::is_control),
            "{message:?}"
        ),
        None => {}
    }
});

fn escaped(word: &str) -> String {
    word.bytes().map(|b| format!("%{b:02X}")).collect()
}
