//! Heads and commits of the journal: parsed data, written and parsed again, is the same; other bytes give an error with a
//! sentence.
#![no_main]

#[path = "../src/classes.rs"]
mod classes;

use libfuzzer_sys::fuzz_target;
use volley_control::journal::{Commit, Head};

fuzz_target!(|bytes: &[u8]| {
    classes::register();
    both(bytes);
    for format in ["volley-commit-2", "volley-head-2"] {
        both(&sealed(format, bytes));
    }
    // A large commit: the first line is the head.
    let head = bytes
        .iter()
        .position(|b| *b == b'\n')
        .map_or(0, |at| at + 1);
    let (head, requests) = bytes.split_at(head);
    both(
        &[
            sealed("volley-commit-3", head),
            sealed("volley-requests-3", requests),
        ]
        .concat(),
    );
});

fn sealed(format: &str, bytes: &[u8]) -> Vec<u8> {
    let line = format!("{format} {} {:08x}\n", bytes.len(), crc32fast::hash(bytes));
    [line.as_bytes(), bytes].concat()
}

fn both(bytes: &[u8]) {
    match Head::read(bytes) {
        Ok(head) => assert_eq!(Head::read(&head.bytes()), Ok(head)),
        Err(fault) => assert!(!fault.to_string().is_empty()),
    }
    match Commit::read(bytes) {
        Ok(commit) => assert_eq!(Commit::read(&commit.bytes()), Ok(commit)),
        Err(fault) => assert!(!fault.to_string().is_empty()),
    }
}
