//! The routes of a benchmark, and destinations for them.

use super::BenchError;
use super::args::Destinations;
use std::path::Path;
use volley_fib::RouteFormat;
use volley_fib::load::{ReadOptions, networks4, read_routes, synthetic4, synthetic6};

/// Routes of one family: address, length, rank of the next hop.
pub type Rows<A> = Vec<(A, u8, u32)>;

/// A small random generator (splitmix64) for test data, so that a seed gives the same data on every machine and version.
pub struct Random(pub u64);

impl Random {
    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next()) * n.max(1) as u128) >> 64) as usize
    }
}

fn read(path: &Path) -> Result<volley_fib::load::Routes, BenchError> {
    let options = ReadOptions {
        format: RouteFormat::Auto,
        only: None,
        limit: None,
    };
    Ok(read_routes(path, options)?)
}

/// IPv4 routes from a file, synthetic ones (of one length, or of the lengths of a real table), or a single one.
pub fn rows4(
    file: Option<&Path>,
    prefixes: Option<usize>,
    length: Option<u8>,
    seed: u64,
) -> Result<Rows<u32>, BenchError> {
    match (file, prefixes, length) {
        (Some(path), _, _) => Ok(read(path)?.v4),
        (None, Some(count), Some(length)) => Ok(networks4(length, count, seed)),
        (None, Some(count), None) => Ok(synthetic4(count, seed)),
        (None, None, _) => Ok(vec![(0x1400_0000, 8, 0)]),
    }
}

/// IPv6 routes from a file, synthetic ones, or a single one.
pub fn rows6(
    file: Option<&Path>,
    prefixes: Option<usize>,
    seed: u64,
) -> Result<Rows<u128>, BenchError> {
    match (file, prefixes) {
        (Some(path), _) => Ok(read(path)?.v6),
        (None, Some(count)) => Ok(synthetic6(count, seed)),
        (None, None) => Ok(vec![(0x2001_0db8_u128 << 96, 32, 0)]),
    }
}

/// An IP family as the destination generator needs it.
pub trait Addr: Copy + PartialEq {
    /// Bits of an address.
    const BITS: u32;
    /// An address from 128 random bits.
    fn from_bits(bits: u128) -> Self;
    /// The address as 128 bits.
    fn to_bits(self) -> u128;
    /// Whether a router forwards to the address.
    fn is_forwarded(self) -> bool;
}

impl Addr for u32 {
    const BITS: u32 = 32;
    fn from_bits(bits: u128) -> u32 {
        bits as u32
    }
    fn to_bits(self) -> u128 {
        u128::from(self)
    }
    fn is_forwarded(self) -> bool {
        !matches!(self >> 24, 0 | 127 | 224..) && self >> 16 != 0xa9fe
    }
}

impl Addr for u128 {
    const BITS: u32 = 128;
    fn from_bits(bits: u128) -> u128 {
        bits
    }
    fn to_bits(self) -> u128 {
        self
    }
    fn is_forwarded(self) -> bool {
        self > 1 && self >> 120 != 0xff && self >> 118 != 0x3fa
    }
}

/// A random address inside a prefix.
fn inside<A: Addr>(row: &(A, u8, u32), random: &mut Random) -> A {
    let bits = u128::from(random.next()) << 64 | u128::from(random.next());
    let host = bits
        & 1u128
            .checked_shl(A::BITS - u32::from(row.1))
            .map_or(u128::MAX, |s| s - 1);
    A::from_bits(row.0.to_bits() | host)
}

/// `count` destinations in a table.
pub fn destinations<A: Addr>(
    rows: &[(A, u8, u32)],
    which: Destinations,
    count: usize,
    seed: u64,
) -> Vec<A> {
    let mut random = Random(seed);
    let mut out = Vec::with_capacity(count);
    let mut tries = 0;
    while out.len() < count && tries < 64 * count + 64 {
        let dst = match which {
            Destinations::Static => inside(&rows[0], &mut Random(seed)),
            Destinations::RoundRobin => inside(&rows[tries % rows.len()], &mut random),
            Destinations::Uniform => inside(&rows[random.below(rows.len())], &mut random),
            Destinations::Any => {
                A::from_bits(u128::from(random.next()) << 64 | u128::from(random.next()))
            }
        };
        tries += 1;
        if dst.is_forwarded() {
            out.push(dst);
        }
        if which == Destinations::Static && !out.is_empty() {
            break;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destinations_lie_inside_the_table() {
        let rows: Rows<u32> = vec![(0x0a00_0000, 8, 0), (0xc000_0200, 24, 1)];
        for which in [
            Destinations::Static,
            Destinations::RoundRobin,
            Destinations::Uniform,
        ] {
            let all = destinations(&rows, which, 100, 7);
            assert_eq!(
                all.len(),
                if which == Destinations::Static {
                    1
                } else {
                    100
                }
            );
            assert!(all.iter().all(|d| d >> 24 == 10 || d >> 8 == 0x00c0_0002));
        }
        let any: Vec<u128> = destinations(&[(0u128, 0, 0)], Destinations::Any, 50, 7);
        assert!(any.len() == 50 && any.iter().all(|a| a.is_forwarded()));
    }
}
