//! MRT table dumps (RFC 6396, TABLE_DUMP_V2; section 4.3, and RFC 8050 for ADD-PATH).
//!
//! The reader takes from each RIB record the prefix and the next hop of its first entry. Every length in the file is checked: a
//! truncated record, a length beyond its end, or left-over bytes are an error with the record's number, never a shorter table.
//! (Existing MRT crates silently stop a record at its first bad entry; hence this reader.)

use std::io::{BufRead, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

use super::Routes;
use super::parse::{AnyPrefix, file_error};
use crate::error::FibError;

const TABLE_DUMP_V2: u16 = 13;
/// Longest record: 65,535 entries of a few hundred bytes.
const MAX_RECORD: u32 = 64 << 20;

/// Whether the bytes begin like an MRT record of a known type.
pub(super) fn looks_like(head: &[u8]) -> bool {
    let Some(head) = head.first_chunk::<12>() else {
        return false;
    };
    let kind = u16::from_be_bytes([head[4], head[5]]);
    matches!(kind, 11..=13 | 16 | 17 | 32 | 33 | 48 | 49) && head[8] < 4
}

/// Reads a dump.
pub(super) fn read(path: &Path, mut input: impl BufRead, out: &mut Routes) -> Result<(), FibError> {
    let mut record = Vec::new();
    let mut peers = None;
    for number in 1u64.. {
        if !out.wants_more() {
            break;
        }
        let at = |why: &str| file_error(path, &format!("record {number}"), why);
        let Some((kind, subtype)) = next(&mut input, &mut record).map_err(|why| at(&why))? else {
            break;
        };
        if kind != TABLE_DUMP_V2 {
            return Err(at(&format!(
                "MRT type {kind} is not TABLE_DUMP_V2 (13): give a table dump, not updates"
            )));
        }
        take(subtype, &record, &mut peers, out).map_err(at)?;
    }
    if peers.is_none() {
        return Err(file_error(
            path,
            "",
            "the file has no peer index table: it is no table dump",
        ));
    }
    Ok(())
}

/// Reads the next record into `record`; returns type and subtype. `None` at a clean end.
fn next(input: &mut impl BufRead, record: &mut Vec<u8>) -> Result<Option<(u16, u16)>, String> {
    let mut head = Vec::with_capacity(12);
    let got = input
        .by_ref()
        .take(12)
        .read_to_end(&mut head)
        .map_err(|e| e.to_string())?;
    let Some(h) = head.first_chunk::<12>() else {
        return match got {
            0 => Ok(None),
            n => Err(format!("the file ends {n} bytes into a record header")),
        };
    };
    let len = u32::from_be_bytes([h[8], h[9], h[10], h[11]]);
    if len > MAX_RECORD {
        return Err(format!(
            "the record claims {len} bytes, the most taken is {MAX_RECORD}"
        ));
    }
    record.clear();
    let got = input
        .by_ref()
        .take(u64::from(len))
        .read_to_end(record)
        .map_err(|e| e.to_string())?;
    if got < len as usize {
        return Err(format!("the file ends {got} bytes into a record of {len}"));
    }
    Ok(Some((
        u16::from_be_bytes([h[4], h[5]]),
        u16::from_be_bytes([h[6], h[7]]),
    )))
}

fn take(
    subtype: u16,
    body: &[u8],
    peers: &mut Option<u16>,
    out: &mut Routes,
) -> Result<(), &'static str> {
    let mut body = Bytes(body);
    match subtype {
        1 => {
            *peers = Some(peer_table(&mut body)?);
            Ok(())
        }
        2 | 4 | 8 | 10 => {
            let peers = peers.ok_or("a RIB record precedes the peer index table")?;
            let (prefix, hop) = rib(&mut body, matches!(subtype, 4 | 10), subtype >= 8, peers)?;
            if out.takes(prefix) {
                let rank = out.hops.address(hop)?;
                out.push(prefix, rank);
            }
            Ok(())
        }
        // Multicast, generic and geo-location records have no unicast routes.
        3 | 5 | 6 | 7 | 9 | 11 | 12 => Ok(()),
        _ => Err("the TABLE_DUMP_V2 subtype is unknown"),
    }
}

/// Section 4.3.1: number of peers.
fn peer_table(body: &mut Bytes) -> Result<u16, &'static str> {
    body.skip(4)?;
    let name = body.u16()?;
    body.skip(name.into())?;
    let count = body.u16()?;
    for _ in 0..count {
        let kind = body.u8()?;
        let addr = if kind & 1 == 0 { 4 } else { 16 };
        let asn = if kind & 2 == 0 { 2 } else { 4 };
        body.skip(4 + addr + asn)?;
    }
    body.end()?;
    Ok(count)
}

/// Section 4.3.2: prefix, and next hop of the first entry.
fn rib(
    body: &mut Bytes,
    v6: bool,
    add_path: bool,
    peers: u16,
) -> Result<(AnyPrefix, IpAddr), &'static str> {
    body.skip(4)?;
    let prefix = prefix(body, v6)?;
    let count = body.u16()?;
    let mut first = None;
    for _ in 0..count {
        if body.u16()? >= peers {
            return Err("an entry names a peer that the peer index table does not have");
        }
        body.skip(if add_path { 8 } else { 4 })?;
        let len = body.u16()?;
        let hop = next_hop(Bytes(body.slice(len.into())?))?;
        first = first.or(hop);
    }
    body.end()?;
    Ok((
        prefix,
        first.ok_or("no entry of the record has a next hop")?,
    ))
}

fn prefix(body: &mut Bytes, v6: bool) -> Result<AnyPrefix, &'static str> {
    let len = body.u8()?;
    let bits = if v6 { 128 } else { 32 };
    if len > bits {
        return Err("the prefix length is longer than the address");
    }
    let mut octets = [0u8; 16];
    let given = body.slice(usize::from(len).div_ceil(8))?;
    octets[..given.len()].copy_from_slice(given);
    let n = u128::from_be_bytes(octets);
    let n = n & !u128::MAX.checked_shr(len.into()).unwrap_or(0);
    Ok(match v6 {
        true => AnyPrefix::V6(n, len),
        false => AnyPrefix::V4((n >> 96) as u32, len),
    })
}

/// The next hop in BGP path attributes (RFC 4271, section 4.3): NEXT_HOP, or MP_REACH_NLRI in its short form (RFC 6396, section
/// 4.3.4) or in the full form that some collectors write.
fn next_hop(mut attrs: Bytes) -> Result<Option<IpAddr>, &'static str> {
    let (mut plain, mut multi) = (None, None);
    while !attrs.0.is_empty() {
        let (flags, kind) = (attrs.u8()?, attrs.u8()?);
        let len = if flags & 0x10 == 0 {
            attrs.u8()?.into()
        } else {
            attrs.u16()?
        };
        let value = attrs.slice(len.into())?;
        match kind {
            3 => {
                let octets: [u8; 4] = value
                    .try_into()
                    .map_err(|_| "NEXT_HOP does not have 4 bytes")?;
                plain = Some(Ipv4Addr::from(octets).into());
            }
            14 => multi = Some(mp_next_hop(Bytes(value))?),
            _ => {}
        }
    }
    Ok(multi.or(plain))
}

fn mp_next_hop(mut value: Bytes) -> Result<IpAddr, &'static str> {
    // An address family number begins with 0, a next-hop length does not.
    if value.0.first() == Some(&0) {
        value.skip(3)?;
    }
    let len = value.u8()?;
    let hop = value.slice(len.into())?;
    match (len, hop.first_chunk::<16>(), hop.first_chunk::<4>()) {
        (16 | 32, Some(octets), _) => Ok(Ipv6Addr::from(*octets).into()),
        (4, _, Some(octets)) => Ok(Ipv4Addr::from(*octets).into()),
        _ => Err("the next hop in MP_REACH_NLRI does not have 4, 16 or 32 bytes"),
    }
}

/// The unread part of a record.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn slice(&mut self, n: usize) -> Result<&'a [u8], &'static str> {
        let (head, rest) = self
            .0
            .split_at_checked(n)
            .ok_or("a length in the record is larger than what is left of it")?;
        self.0 = rest;
        Ok(head)
    }
    fn skip(&mut self, n: usize) -> Result<(), &'static str> {
        self.slice(n).map(drop)
    }
    fn u8(&mut self) -> Result<u8, &'static str> {
        self.slice(1).map(|b| b[0])
    }
    fn u16(&mut self) -> Result<u16, &'static str> {
        self.slice(2).map(|b| u16::from_be_bytes([b[0], b[1]]))
    }
    fn end(&self) -> Result<(), &'static str> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err("bytes are left over at the end of the record")
        }
    }
}
