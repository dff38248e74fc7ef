//! pcapng: sections of blocks.
//!
//! This module reads and checks the frame of a block (type, and length at both ends); the library parses the fields inside.
//! Times are computed here: the library does not support resolutions in powers of two and adds offsets unchecked.

use pcap_parser::pcapng as lib;

use super::Fault;
use super::classic::without_fcs;
use super::source::{Located, Source};
use super::{LinkType, MAX_BLOCK, MAX_PACKET, PcapError};

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;

const OPTION_COMMENT: u16 = 1;
const OPTION_TIME_RESOLUTION: u16 = 9;
const OPTION_FCS_LEN: u16 = 13;
const OPTION_TIME_OFFSET: u16 = 14;

/// The section being read.
#[derive(Debug, Default)]
pub(super) struct Ng {
    big_endian: bool,
    interfaces: Vec<Interface>,
}

#[derive(Debug, Clone, Copy)]
struct Interface {
    linktype: LinkType,
    snaplen: u32,
    /// As in the option: a negative power of 10, or of 2 with the upper bit set.
    resolution: u8,
    offset_s: i64,
    fcs_len: usize,
}

/// Whether the four bytes are the type of a section header block, which is the same in both byte orders.
pub(super) fn is_magic(start: &[u8]) -> bool {
    start == SECTION.to_le_bytes()
}

/// The fields of a packet block of any of the three types.
struct Found {
    interface: u32,
    ticks: u64,
    captured: u32,
    original: u32,
    /// Offset of the packet's bytes in the block.
    at: usize,
    comment: Option<Vec<u8>>,
}

impl Ng {
    /// Link type of the section's first interface.
    pub(super) fn linktype(&self) -> Option<LinkType> {
        self.interfaces.first().map(|i| i.linktype)
    }

    /// Reads the first block, of which the reader has read four bytes.
    pub(super) fn start(&mut self, source: &mut Source) -> Result<(), PcapError> {
        source.append(4, "a block header")?;
        let kind = self.finish_block(source)?;
        self.describe(source, kind)
    }

    /// The next packet, or none at the end; its comment is stored in `comment`.
    pub(super) fn next(
        &mut self,
        source: &mut Source,
        comment: &mut String,
    ) -> Result<Option<Located>, PcapError> {
        let found = loop {
            source.begin();
            if source.at_end()? {
                return Ok(None);
            }
            source.append(8, "a block header")?;
            let kind = self.finish_block(source)?;
            match self.packet(source, kind)? {
                Some(found) => break found,
                None => self.describe(source, kind)?,
            }
        };
        self.locate(source, found, comment).map(Some)
    }

    /// Reads the rest of a block whose type and length are in the piece, and checks both lengths.
    fn finish_block(&mut self, source: &mut Source) -> Result<u32, PcapError> {
        let kind = word(&source.piece, 0, self.big_endian);
        let section = is_magic(source.piece.get(..4).unwrap_or(&[]));
        if section {
            source.append(4, "a section header")?;
            self.big_endian = byte_order(source)?;
        }
        let least = if section { 28 } else { 12 };
        let len = word(&source.piece, 4, self.big_endian);
        if !len.is_multiple_of(4) || len < least {
            return Err(source.malformed(Fault::BlockLength(len, least)));
        }
        if len as usize > MAX_BLOCK {
            return Err(source.too_long("block length", len, MAX_BLOCK));
        }
        source.append(len as usize - source.piece.len(), "a block")?;
        let again = word(&source.piece, len as usize - 4, self.big_endian);
        if again != len {
            return Err(source.malformed(Fault::BlockLengths(len, again)));
        }
        Ok(if section { SECTION } else { kind })
    }

    /// Records sections and interfaces; other blocks are skipped.
    fn describe(&mut self, source: &Source, kind: u32) -> Result<(), PcapError> {
        match kind {
            SECTION => {
                let Ok((_, section)) = lib::parse_sectionheaderblock(&source.piece) else {
                    return Err(source.malformed(Fault::Block("section header")));
                };
                let (major, minor) = (section.major_version, section.minor_version);
                if major != 1 {
                    return Err(source.malformed(Fault::Version("pcapng", major, minor)));
                }
                self.interfaces.clear();
            }
            INTERFACE => {
                let parse = if self.big_endian {
                    lib::parse_interfacedescriptionblock_be
                } else {
                    lib::parse_interfacedescriptionblock_le
                };
                let Ok((_, block)) = parse(&source.piece) else {
                    return Err(source.malformed(Fault::Block("interface description")));
                };
                self.interfaces
                    .push(Interface::new(&block, self.big_endian));
            }
            _ => {}
        }
        Ok(())
    }

    /// The block as a packet, if it is one.
    fn packet(&self, source: &Source, kind: u32) -> Result<Option<Found>, PcapError> {
        let fields = |n: usize| word(&source.piece, 8 + 4 * n, self.big_endian);
        let bad = |what| source.malformed(Fault::Block(what));
        match kind {
            ENHANCED_PACKET => self.enhanced(source).map(Some),
            SIMPLE_PACKET if source.piece.len() < 16 => Err(bad("simple packet")),
            SIMPLE_PACKET => {
                let snaplen = self.interfaces.first().map_or(0, |i| i.snaplen);
                let limit = if snaplen == 0 { u32::MAX } else { snaplen };
                let captured = fields(0).min(limit);
                Ok(Some(Found {
                    interface: 0,
                    ticks: 0,
                    captured,
                    original: fields(0),
                    at: 12,
                    comment: None,
                }))
            }
            OBSOLETE_PACKET if source.piece.len() < 32 => Err(bad("packet")),
            OBSOLETE_PACKET => {
                let interface = if self.big_endian {
                    fields(0) >> 16
                } else {
                    fields(0) & 0xffff
                };
                let ticks = u64::from(fields(1)) << 32 | u64::from(fields(2));
                let (captured, original) = (fields(3), fields(4));
                Ok(Some(Found {
                    interface,
                    ticks,
                    captured,
                    original,
                    at: 28,
                    comment: None,
                }))
            }
            _ => Ok(None),
        }
    }

    fn enhanced(&self, source: &Source) -> Result<Found, PcapError> {
        let parse = if self.big_endian {
            lib::parse_enhancedpacketblock_be
        } else {
            lib::parse_enhancedpacketblock_le
        };
        let Ok((_, block)) = parse(&source.piece) else {
            return Err(source.malformed(Fault::Block("enhanced packet")));
        };
        Ok(Found {
            interface: block.if_id,
            ticks: u64::from(block.ts_high) << 32 | u64::from(block.ts_low),
            captured: block.caplen,
            original: block.origlen,
            at: 28,
            comment: option(&block.options, OPTION_COMMENT).map(<[u8]>::to_vec),
        })
    }

    /// Checks a packet's fields against its block and its section.
    fn locate(
        &self,
        source: &Source,
        found: Found,
        comment: &mut String,
    ) -> Result<Located, PcapError> {
        let number = found.interface as usize;
        let Some(interface) = self.interfaces.get(number) else {
            return Err(source.malformed(Fault::Interface(found.interface, self.interfaces.len())));
        };
        if found.captured as usize > MAX_PACKET {
            return Err(source.too_long("captured length", found.captured, MAX_PACKET));
        }
        if found.at + found.captured as usize + 4 > source.piece.len() {
            return Err(source.malformed(Fault::Block("packet")));
        }
        comment.clear();
        let commented = found.comment.is_some();
        comment.push_str(&String::from_utf8_lossy(&found.comment.unwrap_or_default()));
        let (len, orig_len) =
            without_fcs(found.captured as usize, found.original, interface.fcs_len);
        Ok(Located {
            timestamp_ns: interface.nanoseconds(found.ticks),
            orig_len,
            interface: found.interface,
            linktype: interface.linktype,
            data: found.at..found.at + len,
            commented,
        })
    }
}

impl Interface {
    fn new(block: &lib::InterfaceDescriptionBlock<'_>, big_endian: bool) -> Interface {
        let first = |code| option(&block.options, code).and_then(|v| v.first().copied());
        let offset =
            option(&block.options, OPTION_TIME_OFFSET).and_then(|v| <[u8; 8]>::try_from(v).ok());
        let offset = offset.map(|v| {
            if big_endian {
                i64::from_be_bytes(v)
            } else {
                i64::from_le_bytes(v)
            }
        });
        Interface {
            // the field has 16 bits; the library widens it
            linktype: LinkType(block.linktype.0 as u16),
            snaplen: block.snaplen,
            resolution: first(OPTION_TIME_RESOLUTION).unwrap_or(6),
            offset_s: offset.unwrap_or(0),
            fcs_len: first(OPTION_FCS_LEN).unwrap_or(0).into(),
        }
    }

    /// Converts ticks to nanoseconds since 1970; values outside 64 bits are clamped.
    fn nanoseconds(&self, ticks: u64) -> u64 {
        let ticks = u128::from(ticks);
        let exponent = u32::from(self.resolution & 0x7f);
        let ns = if self.resolution & 0x80 != 0 {
            (ticks * 1_000_000_000) >> exponent
        } else if exponent <= 9 {
            ticks * 10u128.pow(9 - exponent)
        } else {
            ticks / 10u128.checked_pow(exponent - 9).unwrap_or(u128::MAX)
        };
        let offset = i128::from(self.offset_s) * 1_000_000_000;
        let total = i128::try_from(ns)
            .unwrap_or(i128::MAX)
            .saturating_add(offset);
        u64::try_from(total.max(0)).unwrap_or(u64::MAX)
    }
}

/// The value of the first option with this number, without padding.
fn option<'a>(options: &'a [lib::PcapNGOption<'_>], code: u16) -> Option<&'a [u8]> {
    let found = options.iter().find(|o| o.code.0 == code)?;
    found.value.get(..usize::from(found.len))
}

fn word(bytes: &[u8], at: usize, big_endian: bool) -> u32 {
    let Some(bytes) = bytes.get(at..).and_then(|b| b.first_chunk::<4>()) else {
        return 0;
    };
    if big_endian {
        u32::from_be_bytes(*bytes)
    } else {
        u32::from_le_bytes(*bytes)
    }
}

/// Whether the section is in big-endian order, by its byte-order mark.
fn byte_order(source: &Source) -> Result<bool, PcapError> {
    let mark = word(&source.piece, 8, false);
    match mark {
        BYTE_ORDER => Ok(false),
        _ if mark.swap_bytes() == BYTE_ORDER => Ok(true),
        _ => Err(source.malformed(Fault::ByteOrder(mark))),
    }
}
