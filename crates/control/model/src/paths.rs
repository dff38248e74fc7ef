//! Protocols that the path batcher is taught.

use crate::error::ModelError;
use crate::error::ObjectKind;
use crate::limits;
use crate::name::check_name;
use crate::request::Request;
use crate::validate::within;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

type Check = Result<(), ModelError>;

/// Where a header follows another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct HeaderLink {
    /// The value of the field that says so.
    pub value: u64,
    /// The other header.
    pub header: String,
    /// It begins a packet within the packet.
    pub inner: bool,
}

/// A field of a header: bits from its start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct HeaderField {
    /// Its name.
    pub name: String,
    /// First bit, counted from the header's first.
    pub bit: u32,
    /// How many bits, 1 to 64.
    pub bits: u32,
}

/// A protocol that the parser learns at run time.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PathHeader {
    /// Its name.
    pub name: String,
    /// Bytes, those besides the variable part.
    pub length: u32,
    /// Byte whose bits say how much longer it is; none = it has one length.
    #[serde(default)]
    pub length_at: Option<u32>,
    /// Which bits of that byte.
    #[serde(default)]
    pub length_mask: Option<u32>,
    /// Bytes for each unit of those bits.
    #[serde(default)]
    pub length_scale: Option<u32>,
    /// Byte where the field begins that says what follows; none = nothing is known to follow.
    #[serde(default)]
    pub next_at: Option<u32>,
    /// Bytes of that field: 1, 2 or 4 (2).
    #[serde(default)]
    pub next_bytes: Option<u32>,
    /// What follows.
    #[serde(default)]
    pub next: Vec<HeaderLink>,
    /// What it follows: header, and the value of that header's next field.
    #[serde(default)]
    pub after: Vec<HeaderLink>,
    /// Fields that rules may name.
    #[serde(default)]
    pub fields: Vec<HeaderField>,
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None if text.starts_with(|c: char| c.is_ascii_digit()) => text.parse().ok(),
        None => None,
    }
}

/// Whether a text can be the name of a header or of a field.
pub fn is_header_name(text: &str) -> bool {
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

macro_rules! as_text {
    ($($kind:ty),+) => { $(
        impl TryFrom<String> for $kind {
            type Error = String;
            fn try_from(text: String) -> Result<Self, String> {
                text.parse()
            }
        }
        impl From<$kind> for String {
            fn from(value: $kind) -> String {
                value.to_string()
            }
        }
    )+ };
}

as_text!(HeaderLink, HeaderField);

/// What a header of the operator's is called: like the built-in ones.
pub(crate) fn header_name(name: &str) -> Check {
    check_name(ObjectKind::PathHeader, name)?;
    if is_header_name(name) && name != "path" {
        return Ok(());
    }
    let why = "use lower-case letters, digits and dashes, a letter first";
    Err(ModelError::invalid(format!("header {name}"), why))
}

impl PathHeader {
    pub(crate) fn validate(&self) -> Check {
        header_name(&self.name)?;
        let of = |what: &str| format!("{what} of header {}", self.name);
        within("length", self.length, 0..=256)?;
        within("length-at", self.length_at.unwrap_or(0), 0..=255)?;
        within("length-mask", self.length_mask.unwrap_or(1), 1..=255)?;
        within("length-scale", self.length_scale.unwrap_or(1), 1..=64)?;
        within("next-at", self.next_at.unwrap_or(0), 0..=255)?;
        within("headers that follow", self.next.len(), 0..=64)?;
        within("headers that it follows", self.after.len(), 0..=16)?;
        within("fields", self.fields.len(), 0..=32)?;
        if !matches!(self.next_bytes, None | Some(1 | 2 | 4)) {
            return Err(ModelError::invalid(of("next-bytes"), "choose 1, 2 or 4"));
        }
        if self.next_at.is_none() && !self.next.is_empty() {
            return Err(ModelError::invalid(of("next"), "say next-at, too"));
        }
        for (at, field) in self.fields.iter().enumerate() {
            within("first bit", field.bit, 0..=2047)?;
            within("bits", field.bits, 1..=64)?;
            if self.fields[..at].iter().any(|f| f.name == field.name) {
                let what = format!("field {}", field.name);
                return Err(ModelError::invalid(of(&what), "it is there twice"));
            }
        }
        Ok(())
    }
}

fn opt(f: &mut Formatter<'_>, word: &str, value: Option<u32>) -> fmt::Result {
    value.map_or(Ok(()), |value| write!(f, " {word} {value}"))
}

impl Display for PathHeader {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "set path-batcher header {} length {}",
            self.name, self.length
        )?;
        opt(f, "length-at", self.length_at)?;
        opt(f, "length-mask", self.length_mask)?;
        opt(f, "length-scale", self.length_scale)?;
        opt(f, "next-at", self.next_at)?;
        opt(f, "next-bytes", self.next_bytes)?;
        for (word, links) in [("next", &self.next), ("after", &self.after)] {
            links
                .iter()
                .try_for_each(|link| write!(f, " {word} {link}"))?;
        }
        let mut fields = self.fields.iter();
        fields.try_for_each(|field| write!(f, " field {field}"))
    }
}

/// Checks requests of the path batcher; any other is fine here.
pub(crate) fn validate(request: &Request) -> Check {
    match request {
        Request::PathHeaderSet(it) => it.validate(),
        Request::PathHeaderDel { name } => header_name(name),
        _ => Ok(()),
    }
}

/// Spells requests of the path batcher.
pub(crate) fn spell(request: &Request, f: &mut Formatter<'_>) -> fmt::Result {
    match request {
        Request::PathHeaderSet(it) => write!(f, "{it}"),
        Request::PathHeaderDel { name } => write!(f, "delete path-batcher header {name}"),
        _ => Ok(()),
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
        let bad = PathHeader {
            name: "Nsh".into(),
            ..PathHeader::default()
        };
        assert!(bad.validate().is_err());
    }
}
