//! Edits: changes of a field from packet to packet of a stream.
//!
//! As text: `ip4.dst increment 10.0.0.0 10.0.255.255 step 256`, `udp.sport random 1024 65535`,
//! `ip4[1].ttl list 1 2 3`, `offset 30 size 4 fixed 0x0a000001`, `ip6.dst file dst.txt`.

use super::layer::{LayerKind, Value};
use super::limits::EDIT_LIST;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use volley_model::SyntaxError;
use volley_object::{quote, syntax_field};
use volley_wire::field::{Field, FieldKind};

/// One edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The target of the change.
    pub target: EditTarget,
    /// The values.
    pub how: EditKind,
}

/// The target of an edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditTarget {
    /// A field of a layer of the template.
    Field(FieldPath),
    /// Bytes at an offset in the packet, big-endian.
    Bytes {
        /// First byte, from the start of the packet.
        offset: u16,
        /// Number of bytes, 1..=8.
        size: u8,
    },
}

impl EditTarget {
    /// The type of its values.
    pub fn kind(&self) -> FieldKind {
        match self {
            EditTarget::Field(path) => path.field.kind,
            EditTarget::Bytes { .. } => FieldKind::Number,
        }
    }

    /// The number of bits of its values.
    pub fn bits(&self) -> u8 {
        match self {
            EditTarget::Field(path) => path.field.bits,
            EditTarget::Bytes { size, .. } => size.saturating_mul(8),
        }
    }

    /// Parses a value for it.
    pub fn value(&self, text: &str) -> Result<Value, String> {
        let value = Value::of_kind(self.kind(), text)?;
        if self.bits() < 128 && value.to_u128() >> self.bits() != 0 {
            return Err(format!(
                "{value} does not fit in the {} bits of {self}",
                self.bits()
            ));
        }
        Ok(value)
    }
}

impl fmt::Display for EditTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EditTarget::Field(path) => write!(f, "{path}"),
            EditTarget::Bytes { offset, size } => write!(f, "offset {offset} size {size}"),
        }
    }
}

/// A field of a template: `ip4.dst`, or `ip4[1].dst` for the second IPv4 layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldPath {
    /// Layer.
    pub layer: LayerKind,
    /// Index among the layers of this type, from 0.
    pub nth: u8,
    /// Field of that layer.
    pub field: &'static Field,
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.nth {
            0 => write!(f, "{}.{}", self.layer, self.field.name),
            n => write!(f, "{}[{n}].{}", self.layer, self.field.name),
        }
    }
}

impl FromStr for FieldPath {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let shape =
            || format!("'{text}' is not a field: write LAYER.FIELD such as ip4.dst, or ip4[1].dst");
        let (layer, field) = text.split_once('.').ok_or_else(shape)?;
        let (layer, nth) = match layer.split_once('[') {
            Some((layer, nth)) => {
                let nth = nth.strip_suffix(']').and_then(|n| n.parse().ok());
                (layer, nth.ok_or_else(shape)?)
            }
            None => (layer, 0),
        };
        let kind = LayerKind::by_name(layer).ok_or_else(|| {
            let all = LayerKind::names();
            format!("'{layer}' is not a layer: there are {all}")
        })?;
        let unknown = || {
            let all: Vec<_> = kind.places().map(|f| f.name).collect();
            format!(
                "'{field}' is not a field of {kind} that can change: there are {}",
                all.join(", ")
            )
        };
        let field = kind.field(field).filter(|f| f.has_place());
        Ok(FieldPath {
            layer: kind,
            nth,
            field: field.ok_or_else(unknown)?,
        })
    }
}

syntax_field!(
    Edit,
    "an edit",
    Any,
    [
        "ip4.dst increment 10.0.0.0 10.0.0.255",
        "offset 30 size 4 fixed 7"
    ],
    "(<field> | offset <offset> size <size>) (fixed <value> | increment <value> <value> [step <n>] | \
     random <value> <value> | list <value> {<value>} | file <file>)"
);

/// The sequence of values of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditKind {
    /// The same value in every packet.
    Fixed(Value),
    /// `min`, `min + step`, ... up to `max`, repeated.
    Increment {
        /// First.
        min: Value,
        /// Upper limit.
        max: Value,
        /// Added from packet to packet, at least 1.
        step: u64,
    },
    /// Random, uniform in the range.
    Random {
        /// Smallest.
        min: Value,
        /// Largest.
        max: Value,
    },
    /// The values in order, repeated.
    List(Vec<Value>),
    /// The values of a file in order, repeated, one value per line.
    File(PathBuf),
}

impl fmt::Display for Edit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.target)?;
        match &self.how {
            EditKind::Fixed(v) => write!(f, "fixed {v}"),
            EditKind::Increment { min, max, step: 1 } => write!(f, "increment {min} {max}"),
            EditKind::Increment { min, max, step } => {
                write!(f, "increment {min} {max} step {step}")
            }
            EditKind::Random { min, max } => write!(f, "random {min} {max}"),
            EditKind::List(values) => {
                f.write_str("list")?;
                values.iter().try_for_each(|v| write!(f, " {v}"))
            }
            EditKind::File(path) => write!(f, "file {}", quote(&path.display().to_string())),
        }
    }
}

impl FromStr for Edit {
    type Err = SyntaxError;

    /// Parses words that are separated by blanks, or in quotes.
    fn from_str(text: &str) -> Result<Self, SyntaxError> {
        let words = quoted_words(text);
        let words: Vec<(usize, &str)> = words.iter().map(|(at, word)| (*at, &**word)).collect();
        Edit::from_words(&words, text.chars().count() + 1)
    }
}

/// Words with their columns; a word in quotes may contain blanks, and `\` before quotes and `\`.
fn quoted_words(text: &str) -> Vec<(usize, String)> {
    let mut chars = (1..).zip(text.chars()).peekable();
    let mut all = Vec::new();
    while let Some((column, first)) = chars.next() {
        if first.is_whitespace() {
            continue;
        }
        let mut word = String::new();
        if first != '"' {
            word.push(first);
            word.extend(std::iter::from_fn(|| {
                chars.next_if(|(_, c)| !c.is_whitespace()).map(|it| it.1)
            }));
        } else {
            while let Some((_, c)) = chars.next().filter(|(_, c)| *c != '"') {
                let escaped = chars.next_if(|(_, next)| c == '\\' && "\"\\".contains(*next));
                word.push(escaped.map_or(c, |(_, c)| c));
            }
        }
        all.push((column, word));
    }
    all
}

impl Edit {
    /// Parses words with their columns; `end` is the column for errors about missing words.
    fn from_words(words: &[(usize, &str)], end: usize) -> Result<Edit, SyntaxError> {
        let mut words = Words { words, end };
        let (column, first) = words.next("a field such as ip4.dst")?;
        let target = match first {
            "offset" => {
                let offset = words.number("the offset in bytes", u64::from(u16::MAX))?;
                words.keyword("size")?;
                let size = words.number("the size in bytes", 8)?;
                EditTarget::Bytes {
                    offset: offset as u16,
                    size: size.max(1) as u8,
                }
            }
            path => {
                let path = path
                    .parse()
                    .map_err(|e: String| SyntaxError::new(column, e))?;
                EditTarget::Field(path)
            }
        };
        let how = kind(&target, &mut words)?;
        if let Some((column, word)) = words.words.first() {
            let message = format!("'{word}' is behind the end of the edit");
            return Err(SyntaxError::new(*column, message));
        }
        let edit = Edit { target, how };
        edit.check().map_err(|e| SyntaxError::new(column, e))?;
        Ok(edit)
    }

    /// Checks the ranges; an error is a sentence.
    pub(super) fn check(&self) -> Result<(), String> {
        let wrong = |why: String| format!("edit of {} is not valid: {why}", self.target);
        match &self.how {
            EditKind::Random { min, max } | EditKind::Increment { min, max, .. }
                if min.to_u128() > max.to_u128() =>
            {
                let why = format!("{min} is larger than {max}: give the smaller first");
                Err(wrong(why))
            }
            EditKind::List(values) if values.len() > EDIT_LIST => {
                let why = format!("it has {} values, {EDIT_LIST} are the most", values.len());
                Err(wrong(why))
            }
            EditKind::File(path) if path.as_os_str().is_empty() => {
                Err(wrong("the path of its file is empty".to_owned()))
            }
            _ => Ok(()),
        }
    }
}

fn kind(target: &EditTarget, words: &mut Words<'_, '_>) -> Result<EditKind, SyntaxError> {
    let (column, how) = words.next("fixed, increment, random, list or file")?;
    Ok(match how {
        "fixed" => EditKind::Fixed(words.value(target)?),
        "increment" => EditKind::Increment {
            min: words.value(target)?,
            max: words.value(target)?,
            step: match words.words.first() {
                Some((_, "step")) => {
                    words.keyword("step")?;
                    words.number("the step", u64::MAX)?
                }
                _ => 1,
            },
        },
        "random" => EditKind::Random {
            min: words.value(target)?,
            max: words.value(target)?,
        },
        "list" => {
            let mut values = vec![words.value(target)?];
            while !words.words.is_empty() {
                values.push(words.value(target)?);
            }
            EditKind::List(values)
        }
        "file" => EditKind::File(words.next("the path of the file")?.1.into()),
        other => {
            let message = format!(
                "'{other}' is not a way to change a field: there are fixed, increment, random, list, file"
            );
            return Err(SyntaxError::new(column, message));
        }
    })
}

struct Words<'a, 'b> {
    words: &'b [(usize, &'a str)],
    end: usize,
}

impl<'a> Words<'a, '_> {
    fn next(&mut self, expected: &str) -> Result<(usize, &'a str), SyntaxError> {
        let missing = || SyntaxError::new(self.end, format!("{expected} is missing"));
        let (first, rest) = self.words.split_first().ok_or_else(missing)?;
        self.words = rest;
        Ok(*first)
    }

    fn keyword(&mut self, word: &str) -> Result<(), SyntaxError> {
        match self.next(&format!("'{word}'"))? {
            (_, w) if w == word => Ok(()),
            (column, w) => Err(SyntaxError::new(
                column,
                format!("expected '{word}', not '{w}'"),
            )),
        }
    }

    fn number(&mut self, what: &str, max: u64) -> Result<u64, SyntaxError> {
        let (column, word) = self.next(what)?;
        let value =
            Value::of_kind(FieldKind::Number, word).map_err(|e| SyntaxError::new(column, e))?;
        match value {
            Value::Uint(n) if (1..=max).contains(&n) || (n == 0 && what.contains("offset")) => {
                Ok(n)
            }
            _ => Err(SyntaxError::new(
                column,
                format!("{what} must be 1 to {max}, not {word}"),
            )),
        }
    }

    fn value(&mut self, target: &EditTarget) -> Result<Value, SyntaxError> {
        let (column, word) = self.next(&format!("a value for {target}"))?;
        target.value(word).map_err(|e| SyntaxError::new(column, e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_read_and_print_the_same() {
        for text in [
            "ip4.dst increment 10.0.0.0 10.0.255.255 step 256",
            "udp.sport random 1024 65535",
            "ip4[1].ttl list 1 2 3",
            "offset 0 size 4 fixed 167772161",
            "ip6.dst file dst.txt",
        ] {
            assert_eq!(text.parse::<Edit>().unwrap().to_string(), text);
        }
        let cases = [
            (
                "ip4.dst",
                "column 8: fixed, increment, random, list or file is missing",
            ),
            (
                "ip4.dst random 10.0.0.9 10.0.0.1",
                "column 1: edit of ip4.dst is not valid: 10.0.0.9 is larger",
            ),
            (
                "udp.sport fixed 70000",
                "column 17: 70000 does not fit in the 16 bits of udp.sport",
            ),
            (
                "offset 1 size 9 fixed 1",
                "column 15: the size in bytes must be 1 to 8, not 9",
            ),
            (
                "udp.sport fixed 7 8",
                "column 19: '8' is behind the end of the edit",
            ),
        ];
        for (text, error) in cases {
            let e = text.parse::<Edit>().unwrap_err().to_string();
            assert!(e.starts_with(error), "{text}: {e}");
        }
    }

    #[test]
    fn field_paths_read_and_print() {
        let p: FieldPath = "ip4[1].dst".parse().unwrap();
        assert_eq!((p.to_string().as_str(), p.nth), ("ip4[1].dst", 1));
        for bad in [
            "",
            "ip4",
            "ip4.",
            "ip4[.dst",
            "ip4[300].dst",
            "ip4.options",
            "x.dst",
            "[0].dst",
        ] {
            assert!(bad.parse::<FieldPath>().is_err(), "{bad}");
        }
    }

    #[test]
    fn values_must_fit_the_target() {
        let t = EditTarget::Bytes { offset: 3, size: 2 };
        assert_eq!(t.value("65535"), Ok(Value::Uint(65535)));
        assert_eq!(
            t.value("65536").unwrap_err(),
            "65536 does not fit in the 16 bits of offset 3 size 2"
        );
    }
}
