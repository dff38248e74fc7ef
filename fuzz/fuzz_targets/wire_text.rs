//! Addresses and prefixes in text: no panic; parsed text, displayed and parsed again, gives the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::fmt::Display;
use std::str::FromStr;
use volley_wire::{EtherType, IfAddress, MacAddr, Prefix};

fuzz_target!(|text: &str| {
    both_ways::<MacAddr>(text);
    both_ways::<EtherType>(text);
    both_ways::<Prefix>(text);
    both_ways::<IfAddress>(text);
});

fn both_ways<T: FromStr + Display + PartialEq>(text: &str) {
    if let Ok(value) = text.parse::<T>() {
        assert!(
            value
                .to_string()
                .parse::<T>()
                .is_ok_and(|again| again == value),
            "{text} -> {value}"
        );
    }
}
