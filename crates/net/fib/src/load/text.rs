//! Text tables (one `PREFIX NEXTHOP` per line) and update files (one `A PREFIX` or `W PREFIX` per line).

use std::io::BufRead;
use std::path::Path;

use super::Routes;
use super::parse::{self, AnyPrefix, Lines, file_error};
use crate::error::FibError;
use crate::source::Side;

/// Reads a text table. All next hops are addresses, or all are numbers.
pub(super) fn read(path: &Path, input: impl BufRead, out: &mut Routes) -> Result<(), FibError> {
    let mut lines = Lines::new(path, input);
    while out.wants_more() {
        let Some(line) = lines.next()? else { break };
        let done = row(line, out);
        done.map_err(|why| lines.fault(why))?;
    }
    Ok(())
}

fn row(line: &[u8], out: &mut Routes) -> Result<(), &'static str> {
    let (first, rest) = parse::word(line);
    let (hop, more) = parse::word(rest);
    if hop.is_empty() {
        return Err("the next hop is missing: write PREFIX NEXTHOP");
    }
    if !more.is_empty() {
        return Err("there is something behind the next hop: write PREFIX NEXTHOP");
    }
    let prefix = parse::prefix(first)?;
    if !out.takes(prefix) {
        return Ok(());
    }
    let rank = match parse::number(hop) {
        Some(n) => out.hops.number(n)?,
        None => {
            let addr = parse::address(hop);
            out.hops
                .address(addr.ok_or("the next hop is neither an address nor a number")?)?
        }
    };
    out.push(prefix, rank);
    Ok(())
}

/// One line of an update file.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Update<F: Side> {
    /// Type of the update.
    pub kind: UpdateKind,
    /// First address of the prefix (host bits zero).
    pub addr: F::Addr,
    /// Length of the prefix.
    pub len: u8,
}

/// Type of an update.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum UpdateKind {
    /// The prefix is announced (again).
    Announce,
    /// The prefix is withdrawn.
    Withdraw,
}

/// Reads an update file, plain or compressed; all lines must be of family `F`.
pub fn read_updates<F: Side>(path: &Path) -> Result<Vec<Update<F>>, FibError> {
    let input = volley_input::open(path).map_err(|e| file_error(path, "", &e.to_string()))?;
    let mut lines = Lines::new(path, input);
    let mut out = Vec::new();
    while let Some(line) = lines.next()? {
        let update = update(line).map_err(|why| lines.fault(why))?;
        out.push(update);
    }
    Ok(out)
}

fn update<F: Side>(line: &[u8]) -> Result<Update<F>, &'static str> {
    let (what, rest) = parse::word(line);
    let kind = match what {
        b"A" => UpdateKind::Announce,
        b"W" => UpdateKind::Withdraw,
        _ => return Err("an update begins with A (announce) or W (withdraw)"),
    };
    let (bits, wide, len) = match parse::prefix(rest)? {
        AnyPrefix::V4(a, len) => (32, u128::from(a), len),
        AnyPrefix::V6(a, len) => (128, a, len),
    };
    if bits != F::BITS {
        return Err("the prefix is of the other IP version");
    }
    Ok(Update {
        kind,
        addr: F::from_wide(wide),
        len,
    })
}
