//! Any bytes as the actions of a memif peer, client or server by the first byte: no crash, no access outside the shared
//! regions, and other interfaces continue. The script is `crates/io/memif/tests/support/hostile.rs`.
#![no_main]

#[path = "../../crates/io/memif/tests/support/mod.rs"]
mod support;

use libfuzzer_sys::fuzz_target;
use std::cell::RefCell;
use support::hostile::{Arena, attack_master, attack_slave};

thread_local! {
    static ARENA: RefCell<Arena> = RefCell::new(Arena::new());
}

fuzz_target!(|bytes: &[u8]| {
    let Some((first, script)) = bytes.split_first() else {
        return;
    };
    ARENA.with_borrow_mut(|arena| match first & 1 {
        0 => attack_master(arena, script),
        _ => attack_slave(arena, script),
    });
});
