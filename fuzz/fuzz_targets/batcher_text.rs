//! Rules and headers of the path batcher in text: parsed text, displayed and parsed again, gives the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::fmt::{Debug, Display};
use std::str::FromStr;
use volley_batcher::{HeaderField, HeaderLink, PathMatch};

fuzz_target!(|text: &str| {
    both_ways::<HeaderLink>(text);
    both_ways::<HeaderField>(text);
    both_ways::<PathMatch>(text);
});

fn both_ways<T: FromStr + Display + PartialEq + Debug>(text: &str)
where
    T::Err: Display,
{
    match text.parse::<T>() {
        Ok(value) => {
            let again = value.to_string();
            assert!(
                again.parse::<T>().is_ok_and(|same| same == value),
                "{text:?} -> {again:?}"
            );
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
