//! The parser: walks the headers of a packet and extracts the wanted fields.
//!
//! - On entry: arbitrary bytes.
//! - On exit: every header counted as seen lies completely inside the bytes; values belong to headers that were seen.
//! - The parser stops when no wanted header can follow, and behind [`MOST`] headers.

use crate::headers::{Extra, HeaderType, NextField, built_in, own};
use crate::memo::Trail;
use crate::model::PathHeader;

/// Largest number of headers of one packet.
const MOST: usize = 16;
/// Levels of tunnels that rules can name.
pub(crate) const LEVELS: usize = 4;
/// Largest number of different fields in all rules together.
pub(crate) const SLOTS: usize = 16;
/// Largest number of pairs of header and level in all rules together.
const WANTS: usize = 64;

/// Parser result for one packet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Features {
    /// Wanted headers that were seen.
    pub(crate) seen: u64,
    /// Values by slot; a slot is valid if its header was seen.
    pub(crate) values: [u128; SLOTS],
    /// The headers in order, one byte each (1 + number of the type), the first in the lowest byte; 0 if the walk did not reach
    /// the end.
    pub(crate) path: u64,
}

impl Features {
    /// Sets the value of a slot.
    #[inline(always)]
    pub(crate) fn set(&mut self, slot: u8, value: u128) {
        self.values[slot as usize % SLOTS] = value;
    }
}

/// A field to extract.
#[derive(Clone, Copy, Debug)]
struct Extract {
    slot: u8,
    bit: u16,
    bits: u8,
}

/// What rules want of one header at one level.
#[derive(Clone, Debug, Default)]
struct Want {
    /// Bit in [`Features::seen`]; 0 if the header is not wanted.
    bit: u64,
    fields: Vec<Extract>,
}

#[derive(Clone, Debug)]
struct Type {
    name: String,
    length: u16,
    extra: Extra,
    least: u16,
    stop: Option<(u8, u16)>,
    next: Option<NextField>,
    /// Sorted by value: value, type, whether it begins an inner packet.
    links: Vec<(u32, u8, bool)>,
}

/// Reason why a field cannot be wanted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum WantError {
    /// The header does not exist; the existing headers.
    NoHeader(Vec<String>),
    /// The header has no such field; the existing fields.
    NoField(Vec<String>),
    /// Too many different fields or headers.
    TooMany,
}

/// A header, and possibly a field, that a rule names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// Bit of the header in [`Features::seen`].
    pub(crate) bit: u64,
    /// Slot and width of the field.
    pub(crate) field: Option<(u8, u8)>,
}

/// The table of header types, compiled for parsing.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    types: Vec<Type>,
    sources: Vec<HeaderType>,
    /// By level, then type.
    wants: Vec<Vec<Want>>,
    /// Wanted bits that can still be seen from a type on, itself included; by level, then type.
    reach: Vec<Vec<u64>>,
    all: u64,
    bits: u32,
    slots: Vec<(usize, usize, String)>,
    /// Headers are always walked to the end, because a rule or a learned path tests the whole path.
    pub(crate) whole: bool,
}

/// Index of a header type, by its name, otherwise by an alternative name.
fn place(types: &[HeaderType], name: &str) -> Option<usize> {
    let exact = types.iter().position(|it| it.name == name);
    exact.or_else(|| types.iter().position(|it| it.is_called(name)))
}

impl Program {
    /// A program of the built-in types and the operator's. Links to unknown headers have no effect: see [`Program::missing`].
    pub(crate) fn new(own_headers: &[PathHeader]) -> Program {
        let mut sources = built_in();
        sources.extend(own_headers.iter().map(own));
        for header in own_headers {
            for after in &header.after {
                if let Some(at) = place(&sources, &after.header) {
                    let parent = &mut sources[at];
                    parent.links.retain(|l| u64::from(l.0) != after.value);
                    let link = (after.value as u32, header.name.clone(), after.inner);
                    parent.links.push(link);
                }
            }
        }
        let types: Vec<Type> = sources
            .iter()
            .map(|t| {
                let known = |(v, name, inner): &(u32, String, bool)| {
                    place(&sources, name).map(|at| (*v, at as u8, *inner))
                };
                let mut links: Vec<_> = t.links.iter().filter_map(known).collect();
                links.sort_by_key(|l| l.0);
                Type {
                    name: t.name.clone(),
                    length: t.length,
                    extra: t.extra,
                    least: t.least,
                    stop: t.stop,
                    next: t.next,
                    links,
                }
            })
            .collect();
        let n = types.len();
        Program {
            types,
            sources,
            wants: vec![vec![Want::default(); n]; LEVELS],
            reach: vec![vec![0; n]; LEVELS],
            all: 0,
            bits: 0,
            slots: Vec::new(),
            whole: false,
        }
    }

    /// Linked headers that do not exist.
    pub(crate) fn missing(&self, header: &PathHeader) -> Vec<String> {
        let links = header.next.iter().chain(&header.after);
        let unknown = links.filter(|l| place(&self.sources, &l.header).is_none());
        unknown.map(|l| l.header.clone()).collect()
    }

    /// The number of a type in a path.
    pub(crate) fn number(&self, name: &str) -> Option<u8> {
        place(&self.sources, name).map(|at| at as u8 + 1)
    }

    /// The text of a path.
    pub(crate) fn path_text(&self, path: u64) -> String {
        let names = path.to_le_bytes().into_iter().take_while(|b| *b != 0);
        let name = |b: u8| {
            self.types
                .get(b as usize - 1)
                .map_or("?", |t| t.name.as_str())
        };
        names.map(name).collect::<Vec<_>>().join("/")
    }

    /// Registers `header`, `header@N`, `header.field` or `header@N.field` as wanted.
    pub(crate) fn want(&mut self, name: &str) -> Result<Wanted, WantError> {
        let (header, field) = match name.split_once('.') {
            Some((header, field)) => (header, Some(field)),
            None => (name, None),
        };
        let (header, level) = header.split_once('@').unwrap_or((header, "1"));
        let level = level.parse::<usize>().unwrap_or(1).clamp(1, LEVELS) - 1;
        let known = || self.types.iter().map(|t| t.name.clone()).collect();
        let at = place(&self.sources, header);
        let at = at.ok_or_else(|| WantError::NoHeader(known()))?;
        let found = match field {
            None => None,
            Some(field) => {
                let of = &self.sources[at];
                let unknown = || WantError::NoField(of.field_names());
                Some(of.field(field).ok_or_else(unknown)?)
            }
        };
        if self.wants[level][at].bit == 0 {
            if self.bits as usize == WANTS {
                return Err(WantError::TooMany);
            }
            self.wants[level][at].bit = 1 << self.bits;
            self.bits += 1;
        }
        let field = match found {
            None => None,
            Some((name, bit, bits)) => Some((self.slot(level, at, name, bit, bits)?, bits)),
        };
        self.all |= self.wants[level][at].bit;
        let bit = self.wants[level][at].bit;
        Ok(Wanted { bit, field })
    }

    fn slot(
        &mut self,
        level: usize,
        at: usize,
        name: String,
        bit: u16,
        bits: u8,
    ) -> Result<u8, WantError> {
        let key = (level, at, name);
        if let Some(slot) = self.slots.iter().position(|s| *s == key) {
            return Ok(slot as u8);
        }
        if self.slots.len() == SLOTS {
            return Err(WantError::TooMany);
        }
        let slot = self.slots.len() as u8;
        self.slots.push(key);
        self.wants[level][at]
            .fields
            .push(Extract { slot, bit, bits });
        Ok(slot)
    }

    /// Computes `reach`. Called after all calls of [`Program::want`].
    pub(crate) fn finish(&mut self) {
        loop {
            let mut changed = false;
            for level in (0..LEVELS).rev() {
                for at in 0..self.types.len() {
                    let links = self.types[at].links.iter();
                    let behind = links.filter_map(|&(_, to, inner)| {
                        let level = level + usize::from(inner);
                        self.reach.get(level).map(|l| l[to as usize])
                    });
                    let now = behind.fold(self.wants[level][at].bit, |all, b| all | b);
                    changed |= now != self.reach[level][at];
                    self.reach[level][at] = now;
                }
            }
            if !changed {
                return;
            }
        }
    }

    /// Parses a packet. `whole`: walk to the end even if no wanted header can follow. `trail` gets the bits that the result
    /// depends on.
    pub(crate) fn parse(&self, packet: &[u8], whole: bool, out: &mut Features, trail: &mut Trail) {
        let whole = whole || self.whole;
        (out.seen, out.path) = (0, 0);
        let (mut at, mut level, mut left) = (0usize, 0usize, self.all);
        let mut bytes = packet;
        for step in 0..MOST {
            if !whole && left & self.reach[level][at] == 0 {
                return;
            }
            let of = &self.types[at];
            let start = packet.len() - bytes.len();
            let mut ask = |at: usize, mask: u8| trail.asked(start + at, mask);
            let Some(length) = length(of, bytes, &mut ask) else {
                return trail.cut();
            };
            trail.passed(start + length);
            if step < 8 {
                out.path |= (at as u64 + 1) << (8 * step);
            }
            let want = &self.wants[level][at];
            if left & want.bit != 0 {
                left &= !want.bit;
                out.seen |= want.bit;
                for field in &want.fields {
                    out.set(field.slot, bits(bytes, field.bit, field.bits));
                    trail.took(field.slot, 8 * start + usize::from(field.bit), field.bits);
                }
            }
            let mut ask = |at: usize, mask: u8| trail.asked(start + at, mask);
            let follows = follows(of, &bytes[..length], bytes, &mut ask);
            let NextHeader::Header(to, inner) = follows else {
                if matches!(follows, NextHeader::Cut) {
                    trail.cut();
                }
                return;
            };
            level += usize::from(inner);
            if level == LEVELS {
                return;
            }
            (at, bytes) = (to as usize, &bytes[length..]);
        }
    }
}

/// Length of the header that begins here; none if it is incomplete. `ask` is called for each byte that the length depends on.
fn length(of: &Type, bytes: &[u8], ask: &mut impl FnMut(usize, u8)) -> Option<usize> {
    if let Extra::Scaled { at, mask, .. }
    | Extra::Flags { at, mask, .. }
    | Extra::Any { at, mask, .. } = of.extra
    {
        ask(at as usize, mask);
    }
    let byte = |at: u8| bytes.get(at as usize).map(|b| usize::from(*b));
    let extra = match of.extra {
        Extra::None => 0,
        Extra::Scaled { at, mask, scale } => {
            let units = (byte(at)? & mask as usize) >> mask.trailing_zeros();
            units * scale as usize
        }
        Extra::Flags { at, mask, each } => {
            (byte(at)? & mask as usize).count_ones() as usize * each as usize
        }
        Extra::Any { at, mask, bytes } => {
            if byte(at)? & mask as usize != 0 {
                bytes as usize
            } else {
                0
            }
        }
    };
    let length = of.length as usize + extra;
    (length >= of.least as usize && length <= bytes.len()).then_some(length)
}

/// Next header.
#[derive(Clone, Copy)]
enum NextHeader {
    /// Type of the next header, and whether it begins an inner packet.
    Header(u8, bool),
    /// No known header.
    Nothing,
    /// The packet ends before the next field.
    Cut,
}

/// The next header. The next field may lie behind the header (a version nibble), so all bytes are read if the header is
/// empty.
fn follows(of: &Type, header: &[u8], all: &[u8], ask: &mut impl FnMut(usize, u8)) -> NextHeader {
    let Some(next) = of.next else {
        return NextHeader::Nothing;
    };
    let within = if header.is_empty() { all } else { header };
    if let Some((at, mask)) = of.stop {
        let at = at as usize;
        let Some(word) = within.get(at..at + 2) else {
            return NextHeader::Cut;
        };
        let [high, low] = mask.to_be_bytes();
        ask(at, high);
        ask(at + 1, low);
        if u16::from_be_bytes([word[0], word[1]]) & mask != 0 {
            return NextHeader::Nothing;
        }
    }
    let (at, bytes) = (next.at as usize, next.bytes as usize);
    let Some(field) = within.get(at..at + bytes) else {
        return NextHeader::Cut;
    };
    for k in 0..bytes {
        let above = 8 * (bytes - 1 - k) as u32;
        ask(at + k, next.mask.checked_shr(above).unwrap_or(0) as u8);
    }
    let value = field.iter().fold(0u32, |all, b| all << 8 | u32::from(*b)) & next.mask;
    match of.links.binary_search_by_key(&value, |l| l.0) {
        Ok(at) => NextHeader::Header(of.links[at].1, of.links[at].2),
        Err(_) => NextHeader::Nothing,
    }
}

/// `count` bits from bit `first` on; bits behind the end are 0.
#[inline(always)]
pub(crate) fn bits(bytes: &[u8], first: u16, count: u8) -> u128 {
    let (from, shift) = (first as usize / 8, first as u32 % 8);
    let needed = (shift + u32::from(count)).div_ceil(8) as usize;
    let field = bytes.get(from..from + needed).unwrap_or(&[]);
    // At most 17 bytes; 17 only for a 128-bit field that is not byte-aligned, which no type has.
    let value = field
        .iter()
        .take(16)
        .fold(0u128, |all, b| all << 8 | u128::from(*b));
    let below = (8 * field.len() as u32).saturating_sub(shift + u32::from(count));
    let value = value >> below.min(127);
    if count >= 128 {
        value
    } else {
        value & ((1 << count) - 1)
    }
}

#[cfg(test)]
mod tests;
