//! Protocols that an operator describes: headers of the path batcher.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;
use volley_model::limits;
use volley_object::{FieldError, Object, refuse, text_field};

/// Most headers that follow a header.
const NEXT: usize = 64;
/// Most headers that a header follows.
const AFTER: usize = 16;
/// Most fields of a header.
const FIELDS: usize = 32;

/// Header of the path batcher: a protocol with its length, the headers that follow it, those that it follows, and its fields.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "path_header", file = "[[path_header]]", check = PathHeader::check)]
#[object(formerly = "path-header-set")]
#[object(
    set = "set path-batcher header <name> length <length> {length-at <length_at> | length-mask <length_mask> \
           | length-scale <length_scale> | next-at <next_at> | next-bytes <next_bytes> | next <next> | after <after> \
           | field~s <fields>}"
)]
#[object(unset = "delete path-batcher header <name>")]
#[object(
    example = "set path-batcher header tag length 4 next-at 2 next 0x800 ip4 after 0x88b5 ethernet field color 8 8"
)]
pub struct PathHeader {
    /// Name of the header, as rules have it.
    #[object(key)]
    pub name: String,
    /// Bytes of the header besides its variable part.
    #[object(range = 0u32..=256)]
    pub length: u32,
    /// Byte whose bits say how much longer the header is; a header without it has one length.
    #[object(range = 0u32..=255)]
    pub length_at: Option<u32>,
    /// Bits of that byte; 255 where it is not set.
    #[object(range = 1u32..=255)]
    pub length_mask: Option<u32>,
    /// Bytes for each unit of those bits; 1 where it is not set.
    #[object(range = 1u32..=64)]
    pub length_scale: Option<u32>,
    /// Byte where the field begins that says what follows.
    #[object(range = 0u32..=255)]
    pub next_at: Option<u32>,
    /// Bytes of that field: 1, 2 or 4; 2 where it is not set.
    #[object(range = 1u32..=4)]
    pub next_bytes: Option<u32>,
    /// Header that follows, and the value of the field that says so, 64 at most.
    pub next: Vec<HeaderLink>,
    /// Header that this one follows, and the value of that header's next field, 16 at most.
    pub after: Vec<HeaderLink>,
    /// Field that rules may name: name, first bit and number of bits, 32 at most.
    pub fields: Vec<HeaderField>,
}

/// A link from one header to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderLink {
    /// Value of the next field that selects the header.
    pub value: u64,
    /// Name of the linked header.
    pub header: String,
    /// The linked header begins an inner packet (tunnel).
    pub inner: bool,
}

/// A field of a header, by its bits from the header's start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderField {
    /// Name of the field.
    pub name: String,
    /// First bit, counted from the first bit of the header.
    pub bit: u32,
    /// Number of bits, 1 to 64.
    pub bits: u32,
}

text_field!(
    HeaderLink,
    "a value and a header",
    Any,
    ["0x800 ip4", "0x1 ethernet inner"],
    "<value> <header> [inner]"
);
text_field!(
    HeaderField,
    "a name, a first bit and a number of bits",
    Any,
    ["spi 32 24"],
    "<name> <bit> <bits>"
);

pub(crate) fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None if text.starts_with(|c: char| c.is_ascii_digit()) => text.parse().ok(),
        None => None,
    }
}

/// Whether a text is a valid name of a header or a field.
pub(crate) fn is_header_name(text: &str) -> bool {
    let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_".contains(&b);
    (1..=limits::NAME_LEN).contains(&text.len())
        && text.bytes().all(fits)
        && text.starts_with(|c: char| c.is_ascii_lowercase())
}

impl FromStr for HeaderLink {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad =
            || format!("'{text}' is not a value and a header: write one such as '0x894f ethernet'");
        let mut words = text.split_whitespace();
        let value = words.next().and_then(number).ok_or_else(bad)?;
        let header = words
            .next()
            .filter(|h| is_header_name(h))
            .ok_or_else(bad)?
            .to_owned();
        let inner = match words.next() {
            None => false,
            Some("inner") => true,
            Some(_) => return Err(bad()),
        };
        words.next().is_none().then_some(()).ok_or_else(bad)?;
        Ok(HeaderLink {
            value,
            header,
            inner,
        })
    }
}

impl Display for HeaderLink {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let inner = if self.inner { " inner" } else { "" };
        write!(f, "{:#x} {}{inner}", self.value, self.header)
    }
}

impl FromStr for HeaderField {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || {
            format!(
                "'{text}' is not a field: write its name, its first bit and how many, such as 'spi 32 24'"
            )
        };
        let words: Vec<&str> = text.split_whitespace().collect();
        let [name, bit, bits] = words[..] else {
            return Err(bad());
        };
        let (bit, bits) = (bit.parse().ok(), bits.parse().ok());
        let (Some(bit), Some(bits), true) = (bit, bits, is_header_name(name)) else {
            return Err(bad());
        };
        let name = name.to_owned();
        Ok(HeaderField { name, bit, bits })
    }
}

impl Display for HeaderField {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.name, self.bit, self.bits)
    }
}

impl PathHeader {
    fn check(&self) -> Result<(), FieldError> {
        if !is_header_name(&self.name) || self.name == "path" {
            let why = "must be lower-case letters, digits and dashes, a letter first, and not path";
            return refuse("name", format!("{why}, not '{}'", self.name.escape_debug()));
        }
        for (field, len, most) in [
            ("next", self.next.len(), NEXT),
            ("after", self.after.len(), AFTER),
            ("fields", self.fields.len(), FIELDS),
        ] {
            if len > most {
                return refuse(
                    field,
                    format!("must be given {most} times at most, not {len}"),
                );
            }
        }
        if self.next_bytes == Some(3) {
            return refuse("next_bytes", "must be 1, 2 or 4, not 3");
        }
        if self.next_at.is_none() && !self.next.is_empty() {
            return refuse("next_at", "must be given where a header follows");
        }
        for (at, field) in self.fields.iter().enumerate() {
            if field.bit > 2047 || !(1..=64).contains(&field.bits) {
                let why = "must have a first bit from 0 to 2047 and 1 to 64 bits, not";
                return refuse("fields", format!("{why} '{field}'"));
            }
            if self.fields[..at].iter().any(|f| f.name == field.name) {
                return refuse("fields", format!("must not be given twice: {}", field.name));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_there_and_back() {
        for text in ["0x894f ethernet", "0x4 ip4 inner"] {
            assert_eq!(text.parse::<HeaderLink>().unwrap().to_string(), text);
        }
        assert_eq!(
            "spi 32 24".parse::<HeaderField>().unwrap().to_string(),
            "spi 32 24"
        );
        for bad in ["", "1", "x ip4", "1 ip4 outer", "1 ip4 inner 2"] {
            assert!(bad.parse::<HeaderLink>().is_err(), "{bad}");
        }
    }

    #[test]
    fn headers_have_bounds() {
        let header = |name: &str| PathHeader {
            name: name.into(),
            length: 4,
            length_at: None,
            length_mask: None,
            length_scale: None,
            next_at: None,
            next_bytes: None,
            next: Vec::new(),
            after: Vec::new(),
            fields: Vec::new(),
        };
        header("nsh").instance().unwrap();
        let refused = |header: PathHeader| header.instance().unwrap_err().field;
        assert_eq!(refused(header("Nsh")), "name");
        assert_eq!(refused(header("path")), "name");
        let mut three = header("a");
        three.next_bytes = Some(3);
        assert_eq!(refused(three), "next_bytes");
        let mut next = header("a");
        next.next = vec!["0x800 ip4".parse().unwrap()];
        assert_eq!(refused(next), "next_at");
        let mut twice = header("a");
        twice.fields = vec!["x 0 8".parse().unwrap(), "x 8 8".parse().unwrap()];
        assert_eq!(refused(twice), "fields");
        let mut wide = header("a");
        wide.fields = vec!["x 0 65".parse().unwrap()];
        assert_eq!(refused(wide), "fields");
    }
}
