//! Synthetic routing tables as text files, for measurements of whole daemons.

use crate::error::LabError;
use std::fmt::Write as _;
use std::io::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;
use volley_fib::load::{synthetic4, synthetic6};

/// Start value of the random numbers.
const SEED: u64 = 1;

/// Write a table of each family with so many prefixes: `PREFIX RANK`, one a line.
///
/// # Errors
/// If a file cannot be written.
pub fn write(v4: &Path, count4: usize, v6: &Path, count6: usize) -> Result<(), LabError> {
    let mut text = String::new();
    for (address, length, rank) in synthetic4(count4, SEED) {
        let _ = writeln!(text, "{}/{length} {rank}", Ipv4Addr::from_bits(address));
    }
    store(v4, &text)?;
    text.clear();
    for (address, length, rank) in synthetic6(count6, SEED) {
        let _ = writeln!(text, "{}/{length} {rank}", Ipv6Addr::from_bits(address));
    }
    store(v6, &text)
}

fn store(file: &Path, text: &str) -> Result<(), LabError> {
    let made = volley_file::create(file).and_then(|mut out| out.write_all(text.as_bytes()));
    made.map_err(|e| LabError::file(file, e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_prefix_with_a_rank() {
        let folder = tempfile::tempdir().unwrap();
        let (v4, v6) = (folder.path().join("4"), folder.path().join("6"));
        write(&v4, 500, &v6, 300).unwrap();
        for (file, count) in [(v4, 500), (v6, 300)] {
            let text = std::fs::read_to_string(file).unwrap();
            assert_eq!(text.lines().count(), count);
            for line in text.lines() {
                let (prefix, rank) = line.split_once(' ').unwrap();
                assert!(prefix.parse::<volley_model::Prefix>().is_ok(), "{line}");
                assert!(rank.parse::<u32>().is_ok(), "{line}");
            }
        }
    }
}
