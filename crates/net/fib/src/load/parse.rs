//! Lines and prefixes of text tables, parsed as bytes: a million lines in well under a tenth of a second.

use std::io::{BufRead, Read};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use crate::error::FibError;

/// Longest line of a text file.
const MAX_LINE: u64 = 4096;

/// A prefix of either family; host bits are zero.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum AnyPrefix {
    V4(u32, u8),
    V6(u128, u8),
}

/// The lines of a file with their numbers, without comments (`#`) and empty lines.
pub(crate) struct Lines<R> {
    input: R,
    path: PathBuf,
    line: Vec<u8>,
    number: u64,
}

impl<R: BufRead> Lines<R> {
    pub fn new(path: &Path, input: R) -> Self {
        Self {
            input,
            path: path.to_owned(),
            line: Vec::with_capacity(128),
            number: 0,
        }
    }

    /// The next line, without surrounding blanks.
    pub fn next(&mut self) -> Result<Option<&[u8]>, FibError> {
        loop {
            self.line.clear();
            let mut bounded = self.input.by_ref().take(MAX_LINE);
            let got = bounded.read_until(b'\n', &mut self.line);
            let got = got.map_err(|e| file_error(&self.path, "", &e.to_string()))?;
            if got == 0 {
                return Ok(None);
            }
            self.number += 1;
            if got as u64 == MAX_LINE && self.line.last() != Some(&b'\n') {
                return Err(self.fault("the line is longer than 4096 bytes: this is no route file"));
            }
            let line = self.line.trim_ascii();
            if !line.is_empty() && line[0] != b'#' {
                // Trimmed a second time: the borrow checker does not allow the loop to return its slice.
                return Ok(Some(self.line.trim_ascii()));
            }
        }
    }

    /// An error at the current line.
    pub fn fault(&self, why: &str) -> FibError {
        file_error(&self.path, &format!("line {}", self.number), why)
    }
}

pub(crate) fn file_error(path: &Path, place: &str, why: &str) -> FibError {
    FibError::File {
        path: path.display().to_string(),
        place: place.into(),
        why: why.into(),
    }
}

/// The first word of a line and the rest.
pub(crate) fn word(line: &[u8]) -> (&[u8], &[u8]) {
    let end = line
        .iter()
        .position(u8::is_ascii_whitespace)
        .unwrap_or(line.len());
    let (word, rest) = line.split_at(end);
    (word, rest.trim_ascii())
}

/// Parses a prefix.
pub(crate) fn prefix(text: &[u8]) -> Result<AnyPrefix, &'static str> {
    let bad = "this is no prefix: write one such as 192.0.2.0/24 or 2001:db8::/32";
    let slash = text.iter().rposition(|b| *b == b'/').ok_or(bad)?;
    let (addr, len) = (&text[..slash], number(&text[slash + 1..]).ok_or(bad)?);
    let (any, first, bits) = match address(addr).ok_or(bad)? {
        IpAddr::V4(a) => {
            let n = a.to_bits();
            let len = len.min(33) as u8;
            (
                AnyPrefix::V4(n, len),
                n.checked_shl(u32::from(len)).unwrap_or(0) == 0,
                32,
            )
        }
        IpAddr::V6(a) => {
            let n = a.to_bits();
            let len = len.min(129) as u8;
            (
                AnyPrefix::V6(n, len),
                n.checked_shl(u32::from(len)).unwrap_or(0) == 0,
                128,
            )
        }
    };
    match (len <= bits, first) {
        (false, _) => Err("the prefix length is longer than the address"),
        (_, false) => Err("bits are set behind the prefix length"),
        _ => Ok(any),
    }
}

/// Parses an address.
pub(crate) fn address(text: &[u8]) -> Option<IpAddr> {
    IpAddr::parse_ascii_bytes(text)
}

/// A decimal number of up to ten digits.
pub(crate) fn number(text: &[u8]) -> Option<u64> {
    let digits = !text.is_empty() && text.len() <= 10 && text.iter().all(u8::is_ascii_digit);
    digits.then(|| text.iter().fold(0, |n, d| n * 10 + u64::from(d - b'0')))
}

/// `IpAddr::from_str` over bytes, with a faster parser for dotted quads.
trait ParseAscii: Sized {
    fn parse_ascii_bytes(text: &[u8]) -> Option<Self>;
}

impl ParseAscii for IpAddr {
    fn parse_ascii_bytes(text: &[u8]) -> Option<Self> {
        quad(text).or_else(|| std::str::from_utf8(text).ok()?.parse().ok())
    }
}

/// Four decimal numbers without leading zeros.
fn quad(text: &[u8]) -> Option<IpAddr> {
    let mut bits = 0u32;
    let mut parts = 0;
    for part in text.split(|b| *b == b'.') {
        let strange = part.len() > 3 || part.len() > 1 && part[0] == b'0';
        let n = number(part).filter(|n| *n < 256 && !strange)?;
        bits = bits << 8 | n as u32;
        parts += 1;
    }
    (parts == 4).then(|| IpAddr::V4(bits.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn prefixes_read_and_faults_are_told_apart() {
        assert_eq!(prefix(b"1.2.3.0/24"), Ok(AnyPrefix::V4(0x0102_0300, 24)));
        assert_eq!(prefix(b"0.0.0.0/0"), Ok(AnyPrefix::V4(0, 0)));
        assert_eq!(
            prefix(b"255.255.255.255/32"),
            Ok(AnyPrefix::V4(u32::MAX, 32))
        );
        assert_eq!(
            prefix(b"2001:db8::/32"),
            Ok(AnyPrefix::V6(0x2001_0db8 << 96, 32))
        );
        assert_eq!(prefix(b"::1/128"), Ok(AnyPrefix::V6(1, 128)));
        for bad in [
            "",
            "/",
            "1.2.3.0",
            "1.2.3.0/",
            "1.2.3/24",
            "1.2.3.0/-1",
            "1.2.3.0/+8",
            "x/8",
            "1.2.3.400/8",
            "01.2.3.0/24",
        ] {
            assert!(
                prefix(bad.as_bytes()).unwrap_err().contains("no prefix"),
                "{bad}"
            );
        }
        for bad in ["1.2.3.0/33", "1.2.3.0/9999999999", "::/129"] {
            assert!(
                prefix(bad.as_bytes()).unwrap_err().contains("longer"),
                "{bad}"
            );
        }
        assert!(prefix(b"1.2.3.1/24").unwrap_err().contains("behind"));
        assert!(prefix(b"::1/127").unwrap_err().contains("behind"));
    }

    proptest! {
        #[test]
        fn addresses_agree_with_the_standard_library(text in "[0-9.:a-f]{1,20}") {
            prop_assert_eq!(address(text.as_bytes()), text.parse().ok());
        }
        #[test]
        fn every_quad_reads(n: u32) {
            let ip = std::net::Ipv4Addr::from_bits(n);
            prop_assert_eq!(address(ip.to_string().as_bytes()), Some(IpAddr::V4(ip)));
        }
    }
}
