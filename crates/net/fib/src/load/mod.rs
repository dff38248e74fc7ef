//! Whole tables from files: text or MRT dump, plain or compressed, and synthetic ones with realistic prefix lengths.
//!
//! Contract: a file is read and checked to its end before the FIB sees any of it; a bad file is an error with file, position
//! and reason, and has changed nothing. No content causes a panic, and memory is bounded by the content's length.

mod mrt;
mod parse;
mod synth;
mod text;

use std::io::BufRead;
use std::net::IpAddr;
use std::path::Path;

use crate::route_file::RouteFormat;
use hashbrown::HashMap;

use crate::error::FibError;
use crate::family::Af;
use parse::{AnyPrefix, file_error};

pub use synth::{
    NEXT_HOPS, V4_LENGTHS, V4_PREFIXES, V6_LENGTHS, V6_PREFIXES, networks4, synthetic4, synthetic6,
};
pub use text::{Update, UpdateKind, read_updates};

/// Routes of a file: prefixes of both families, each with the rank of its next hop.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Routes {
    /// IPv4: address, length, rank.
    pub v4: Vec<(u32, u8, u32)>,
    /// IPv6: address, length, rank.
    pub v6: Vec<(u128, u8, u32)>,
    /// Next hops that the ranks refer to.
    pub hops: Hops,
    only: Option<Af>,
    limit: Option<u64>,
}

/// Next hops of a file.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Hops {
    /// Addresses by rank, in the order of their first appearance; empty if the file has numbers.
    pub addresses: Vec<IpAddr>,
    ranks: HashMap<IpAddr, u32>,
    numbers: Option<u32>,
}

impl Hops {
    /// The largest rank plus one.
    pub fn count(&self) -> u64 {
        self.numbers
            .map_or(self.addresses.len() as u64, |n| u64::from(n) + 1)
    }

    /// Whether the file has numbers instead of addresses.
    pub fn are_numbers(&self) -> bool {
        self.numbers.is_some()
    }

    fn number(&mut self, n: u64) -> Result<u32, &'static str> {
        if !self.addresses.is_empty() {
            return Err("the next hop is a number where the lines before had addresses");
        }
        let rank =
            u32::try_from(n).map_err(|_| "the next hop's number is larger than 4294967295")?;
        self.numbers = Some(self.numbers.unwrap_or(0).max(rank));
        Ok(rank)
    }

    fn address(&mut self, addr: IpAddr) -> Result<u32, &'static str> {
        if self.numbers.is_some() {
            return Err("the next hop is an address where the lines before had numbers");
        }
        let next = self.addresses.len() as u32;
        Ok(*self.ranks.entry(addr).or_insert_with(|| {
            self.addresses.push(addr);
            next
        }))
    }
}

impl Routes {
    /// Routes of a synthetic table, whose ranks are numbers.
    pub fn made(v4: Vec<(u32, u8, u32)>, v6: Vec<(u128, u8, u32)>) -> Self {
        let ranks = v4.iter().map(|r| r.2).chain(v6.iter().map(|r| r.2));
        let hops = Hops {
            numbers: ranks.max(),
            ..Hops::default()
        };
        Self {
            v4,
            v6,
            hops,
            only: None,
            limit: None,
        }
    }

    /// Number of routes.
    pub fn len(&self) -> usize {
        self.v4.len() + self.v6.len()
    }

    /// Whether there are no routes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn wants_more(&self) -> bool {
        self.limit.is_none_or(|limit| (self.len() as u64) < limit)
    }

    /// Whether the family of the prefix is selected.
    fn takes(&self, prefix: AnyPrefix) -> bool {
        let af = match prefix {
            AnyPrefix::V4(..) => Af::V4,
            AnyPrefix::V6(..) => Af::V6,
        };
        self.only.is_none_or(|only| only == af)
    }

    fn push(&mut self, prefix: AnyPrefix, rank: u32) {
        match prefix {
            AnyPrefix::V4(addr, len) => self.v4.push((addr, len, rank)),
            AnyPrefix::V6(addr, len) => self.v6.push((addr, len, rank)),
        }
    }
}

/// Options for reading a file.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct ReadOptions {
    /// The format.
    pub format: RouteFormat,
    /// Only this family.
    pub only: Option<Af>,
    /// Stop after this many routes.
    pub limit: Option<u64>,
}

/// Reads a route file, plain or compressed.
pub fn read_routes(path: &Path, options: ReadOptions) -> Result<Routes, FibError> {
    let input = volley_input::open(path).map_err(|e| file_error(path, "", &e.to_string()))?;
    read_from(path, input, options)
}

/// Reads routes from bytes; `path` is the name in errors.
pub fn read_from(
    path: &Path,
    mut input: impl BufRead,
    options: ReadOptions,
) -> Result<Routes, FibError> {
    let mut out = Routes {
        only: options.only,
        limit: options.limit,
        ..Routes::default()
    };
    let head = input
        .fill_buf()
        .map_err(|e| file_error(path, "", &e.to_string()))?;
    let mrt = match options.format {
        RouteFormat::Text => false,
        RouteFormat::Mrt => true,
        RouteFormat::Auto => mrt::looks_like(head),
    };
    if mrt {
        mrt::read(path, input, &mut out)?;
    } else {
        text::read(path, input, &mut out)?;
    }
    Ok(out)
}

#[cfg(test)]
mod tests;
