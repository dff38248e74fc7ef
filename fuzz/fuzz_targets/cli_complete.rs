//! Completion and help for any line, with the classes of the features and names that need quotes: candidates begin with the
//! word of the line, and a completed line can be completed further.
#![no_main]

#[path = "../src/classes.rs"]
mod classes;

use libfuzzer_sys::fuzz_target;
use volley_cli::{Names, complete, help};

struct Odd;

impl Names for Odd {
    fn names(&self, _: &str) -> Vec<String> {
        ["pg0", "a b", "\"", "", "show", "ü"]
            .map(String::from)
            .into()
    }
}

fuzz_target!(|line: &str| {
    classes::register();
    let _ = help(line, &Odd);
    let found = complete(line, &Odd);
    let length = line.chars().count();
    assert!(found.start <= length, "{line:?}");
    for candidate in found.candidates.iter().take(3) {
        assert!(!candidate.text.is_empty());
        let begun: String = line.chars().take(found.start).collect();
        let next = format!("{begun}{} ", candidate.text);
        let _ = complete(&next, &Odd);
    }
});
