//! Types of values: which values a field accepts, how they are parsed, and which Rust type they have.

use crate::packing::{Packed, Packing};
use crate::table::TextTable;
use crate::value::{Value, shown};
use serde_json::Value as Json;
use std::collections::BTreeSet;
use std::fmt::{self, Display, Formatter};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

/// The type of a field's value.
#[derive(Clone, Debug, Default)]
pub enum Kind {
    /// On or off.
    #[default]
    Bool,
    /// A whole number within bounds.
    Number {
        /// Minimum.
        min: u64,
        /// Maximum.
        max: u64,
        /// A unit or exponent is allowed, such as 250k, 1.5M or 1e6.
        scaled: bool,
    },
    /// One word of a list, each with its meaning.
    Choice(Arc<[(&'static str, &'static str)]>),
    /// Text with a syntax.
    Text(TextKind),
    /// A list of values of one type.
    List(Box<Kind>),
}

/// The noun of a text without a syntax.
const ANY_TEXT: &str = "a text";

/// A syntax of text.
#[derive(Clone, Copy, Debug)]
pub struct TextKind {
    /// The noun for the text: `a MAC address`.
    pub noun: &'static str,
    /// The form of a word of this syntax.
    pub shape: Shape,
    /// Sample texts: examples for users, values for tests.
    pub samples: &'static [&'static str],
    /// The words of a text that has several words on the command line, such as `<value> <header> [inner]`; else empty.
    pub parts: &'static str,
    /// The fields of a text that is a table in the file and in JSON.
    pub table: Option<&'static TextTable>,
    /// How texts are packed, if they are.
    pub packing: Option<&'static Packing>,
    /// Checks a text and returns its normal form.
    pub check: fn(&str) -> Result<String, TextError>,
}

impl TextKind {
    /// A syntax of texts that are one word, and neither tables nor packed.
    pub fn new(
        noun: &'static str,
        shape: Shape,
        samples: &'static [&'static str],
        check: fn(&str) -> Result<String, TextError>,
    ) -> TextKind {
        TextKind {
            noun,
            shape,
            samples,
            parts: "",
            table: None,
            packing: None,
            check,
        }
    }
}

/// An error in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextError {
    /// Position in characters from 1; `None`: the text as a whole.
    pub column: Option<usize>,
    /// The error and what is allowed.
    pub why: String,
}

impl From<String> for TextError {
    fn from(why: String) -> TextError {
        TextError { column: None, why }
    }
}

impl Display for TextError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.column {
            Some(column) => write!(f, "column {column}: {}", self.why),
            None => f.write_str(&self.why),
        }
    }
}

/// The form of a word, by which a command line distinguishes it from a keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shape {
    /// Any word.
    Any,
    /// An IP address with a length.
    Prefix,
    /// An IP address.
    Address,
    /// An IP address, with or without a length.
    Network,
    /// A MAC address.
    Mac,
    /// Numbers with separators, such as 0-3; also a single number.
    Numbers,
    /// A file: a client makes the name absolute.
    File,
    /// The rest of the line; in quotes, one word.
    Rest,
    /// Several words: in braces or quotes.
    Block,
}

impl Shape {
    /// Whether a word of this form can look like a keyword.
    pub fn is_any(self) -> bool {
        matches!(
            self,
            Shape::Any | Shape::Numbers | Shape::File | Shape::Rest
        )
    }
}

impl Kind {
    /// The accepted values, as used in errors.
    pub fn describe(&self) -> String {
        match self {
            Kind::Bool => "on or off".to_owned(),
            Kind::Number { min, max, scaled } => {
                let such = if *scaled {
                    " such as 250k, 1.5M or 1e6"
                } else {
                    ""
                };
                format!("a number from {min} to {max}{such}")
            }
            Kind::Choice(all) => {
                let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
                match names.split_last() {
                    Some((last, [])) => (*last).to_owned(),
                    Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
                    None => String::new(),
                }
            }
            Kind::Text(text) => match text.samples.first() {
                // Samples of a text without a syntax are not useful as examples.
                Some(sample) if text.noun != ANY_TEXT => format!("{} such as {sample}", text.noun),
                _ => text.noun.to_owned(),
            },
            Kind::List(inner) => format!("a list, each {}", inner.describe()),
        }
    }

    fn refuse<T>(&self, found: &str) -> Result<T, String> {
        let (what, shown) = (self.describe(), shown(found));
        Err(format!("must be {what}, not '{shown}'"))
    }

    /// Parses a word.
    pub fn read(&self, word: &str) -> Result<Value, String> {
        self.read_placed(word).map_err(|error| error.to_string())
    }

    /// Parses a word; the error contains the position, if known.
    pub fn read_placed(&self, word: &str) -> Result<Value, TextError> {
        match self {
            Kind::Text(text) => (text.check)(word).map(Value::text),
            Kind::List(inner) if !self.is_joined() => {
                let one = inner.read_placed(word)?;
                Ok(Value::List(Arc::from([one])))
            }
            _ => self.read_word(word).map_err(TextError::from),
        }
    }

    fn read_word(&self, word: &str) -> Result<Value, String> {
        match self {
            Kind::Bool => match word {
                "on" | "true" | "enable" => Ok(Value::Bool(true)),
                "off" | "false" | "disable" => Ok(Value::Bool(false)),
                _ => self.refuse(word),
            },
            Kind::Number { min, max, scaled } => {
                let digits = !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
                let number = word.parse().ok().filter(|_| digits);
                let number = number.or_else(|| scaled.then(|| scale(word)).flatten());
                let number = number.filter(|n| (min..=max).contains(&n));
                number.map_or_else(|| self.refuse(word), |n| Ok(Value::Number(n)))
            }
            Kind::Choice(all) => match all.iter().any(|(name, _)| *name == word) {
                true => Ok(Value::text(word)),
                false => self.refuse(word),
            },
            Kind::List(inner) if self.is_joined() => {
                let all: Result<Vec<Value>, String> =
                    word.split(',').map(|one| inner.read(one)).collect();
                all.map(|all| Value::List(all.into()))
            }
            Kind::Text(_) | Kind::List(_) => self.refuse(word),
        }
    }

    /// Checks a value that has a type already, and returns its normal form.
    pub fn check(&self, value: &Value) -> Result<Value, String> {
        match (self, value) {
            (Kind::Bool, Value::Bool(_)) => Ok(value.clone()),
            (Kind::Number { min, max, .. }, Value::Number(n)) if (min..=max).contains(&n) => {
                Ok(value.clone())
            }
            (Kind::Number { scaled: true, .. }, Value::Text(text)) => self.read(text),
            // A text in normal form is kept as it is: many objects may share it.
            (Kind::Choice(_), Value::Text(text)) => self.read(text).map(|_same| value.clone()),
            (Kind::Text(kind), Value::Text(text)) => match (kind.check)(text) {
                Ok(normal) if *normal == **text => Ok(value.clone()),
                Ok(normal) => Ok(Value::text(normal)),
                Err(error) => Err(error.to_string()),
            },
            (Kind::Text(text), Value::Number(n)) if text.shape == Shape::Numbers => {
                self.read(&n.to_string())
            }
            (Kind::List(_), Value::List(_))
                if self.table().is_some() && TextTable::is_remembered(value) =>
            {
                Ok(value.clone())
            }
            (Kind::List(inner), Value::List(all)) => {
                let checked = all.iter().map(|v| inner.check(v));
                let checked: Vec<Value> = checked.collect::<Result<_, String>>()?;
                Ok(match checked[..] == **all {
                    true => value.clone(),
                    false => Value::List(checked.into()),
                })
            }
            // JSON and files have their own booleans.
            (Kind::Bool, _) => Err(format!("must be true or false, not '{value}'")),
            _ => self.refuse(&value.to_string()),
        }
    }

    /// The IP version of an address or a prefix.
    pub(crate) fn ip_version(&self, text: &str) -> Option<u8> {
        match self {
            Kind::Text(kind)
                if [Shape::Address, Shape::Prefix, Shape::Network].contains(&kind.shape) =>
            {
                let address = text.split('/').next()?.parse().ok()?;
                Some(if matches!(address, IpAddr::V4(_)) {
                    4
                } else {
                    6
                })
            }
            _ => None,
        }
    }

    /// Converts JSON to a value without a check. An error says what is expected.
    pub(crate) fn read_json(&self, json: &Json) -> Result<Value, String> {
        let wrong = || format!("must be {}", self.describe());
        match (self, json) {
            (Kind::Text(text), Json::Object(map)) => {
                let table = text.table.ok_or_else(wrong)?;
                table.read(map).map(Value::text)
            }
            (Kind::List(inner), Json::Array(all)) => {
                let read = || {
                    let all = all.iter().map(|one| inner.read_json(one));
                    Ok(Value::List(all.collect::<Result<_, String>>()?))
                };
                match self.table() {
                    Some(table) => table.remembered(self, json, read),
                    None => read(),
                }
            }
            _ => Value::from_json(json).ok_or_else(wrong),
        }
    }

    /// A value in JSON.
    pub(crate) fn to_json(&self, value: &Value) -> Json {
        match (self.table(), value) {
            (Some(_), Value::List(all)) => all.iter().map(|one| self.to_json(one)).collect(),
            (Some(table), Value::Text(text)) => table.write(text).into(),
            _ => serde_json::to_value(value).unwrap_or_default(),
        }
    }

    /// How texts of this type are packed, if they are.
    pub(crate) fn packing(&self) -> Option<&'static Packing> {
        match self {
            Kind::Text(text) => text.packing,
            _ => None,
        }
    }

    /// The fields of a text, or of the texts in a list, if the text is a table in the file and in JSON.
    pub fn table(&self) -> Option<&'static TextTable> {
        match self.element() {
            Kind::Text(text) => text.table,
            _ => None,
        }
    }

    /// Whether a list is one word with commas on the command line: only texts may contain commas.
    pub fn is_joined(&self) -> bool {
        matches!(self, Kind::List(inner) if !matches!(**inner, Kind::Text(_)))
    }

    /// The type of a list's elements; for any other type, the type itself.
    pub fn element(&self) -> &Kind {
        match self {
            Kind::List(inner) => inner,
            other => other,
        }
    }

    /// The words of a text that has several words on the command line; empty for any other type.
    pub fn parts(&self) -> &'static str {
        match self.element() {
            Kind::Text(text) => text.parts,
            _ => "",
        }
    }

    /// Some values of the type, the extremes first.
    pub fn samples(&self) -> Vec<Value> {
        match self {
            Kind::Bool => vec![Value::Bool(false), Value::Bool(true)],
            Kind::Number { min, max, .. } => {
                let mut all = vec![*min, *max, min.saturating_add(1).min(*max)];
                all.dedup();
                all.into_iter().map(Value::Number).collect()
            }
            Kind::Choice(all) => all.iter().map(|(name, _)| Value::text(name)).collect(),
            Kind::Text(text) => {
                let read = text.samples.iter().filter_map(|t| (text.check)(t).ok());
                read.map(Value::text).collect()
            }
            Kind::List(inner) => {
                let all: Arc<[Value]> = inner.samples().into();
                vec![Value::List(Arc::from([])), Value::List(all)]
            }
        }
    }
}

/// A number with a suffix for thousand, million or billion, or with an exponent: 250k, 1.5M, 1e6.
fn scale(word: &str) -> Option<u64> {
    let scales = [('k', 1e3), ('K', 1e3), ('M', 1e6), ('G', 1e9)];
    let scale = scales.iter().find(|(unit, _)| word.ends_with(*unit));
    let (number, scale) = match scale {
        Some((unit, scale)) => (word.strip_suffix(*unit)?, *scale),
        None => (word, 1.0),
    };
    let is_digit = |c: char| c.is_ascii_digit();
    let plain = number.starts_with(is_digit) && number.ends_with(is_digit);
    let number = number.parse::<f64>().ok().filter(|_| plain)? * scale;
    let number = number.round();
    // Larger floating-point numbers are not exact.
    (number <= 9e15).then_some(number as u64)
}

/// A Rust type that a field can have.
pub trait FieldType: Sized {
    /// The type of the field's value.
    fn kind() -> Kind;

    /// Converts from a value of that type.
    fn from_value(value: &Value) -> Option<Self>;

    /// Converts to a value of that type.
    fn to_value(&self) -> Value;

    /// Whether the field may be absent.
    const OPTIONAL: bool = false;

    /// Whether the type is a set: unordered values without duplicates.
    const SET: bool = false;

    /// Converts from the optional value in an object.
    fn from_slot(slot: Option<&Value>) -> Option<Self> {
        slot.and_then(Self::from_value)
    }

    /// Converts to the optional value in an object.
    fn to_slot(&self) -> Option<Value> {
        Some(self.to_value())
    }

    /// The default if the definition gives none.
    fn usual() -> Option<Value> {
        None
    }

    /// Converts from the packed form of a value, if the type has one.
    fn unpack(_packed: &Packed) -> Option<Self> {
        None
    }
}

impl FieldType for bool {
    fn kind() -> Kind {
        Kind::Bool
    }

    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Bool(it) => Some(*it),
            _ => None,
        }
    }

    fn to_value(&self) -> Value {
        Value::Bool(*self)
    }
}

macro_rules! numbers {
    ($($ty:ty),*) => {$(
        impl FieldType for $ty {
            fn kind() -> Kind {
                Kind::Number { min: 0, max: u64::from(<$ty>::MAX), scaled: false }
            }

            fn from_value(value: &Value) -> Option<Self> {
                match value {
                    Value::Number(n) => <$ty>::try_from(*n).ok(),
                    _ => None,
                }
            }

            fn to_value(&self) -> Value {
                Value::Number(u64::from(*self))
            }
        }
    )*};
}

numbers!(u8, u16, u32, u64);

impl<T: FieldType> FieldType for Option<T> {
    const OPTIONAL: bool = true;
    const SET: bool = T::SET;

    fn kind() -> Kind {
        T::kind()
    }

    fn from_value(value: &Value) -> Option<Self> {
        T::from_value(value).map(Some)
    }

    fn to_value(&self) -> Value {
        // Only called for a value that is present: `to_slot` handles `None`.
        self.as_ref().map_or(Value::Bool(false), T::to_value)
    }

    fn from_slot(slot: Option<&Value>) -> Option<Self> {
        match slot {
            Some(value) => T::from_value(value).map(Some),
            None => Some(None),
        }
    }

    fn to_slot(&self) -> Option<Value> {
        self.as_ref().map(T::to_value)
    }
}

impl<T: FieldType> FieldType for Vec<T> {
    fn kind() -> Kind {
        Kind::List(Box::new(T::kind()))
    }

    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::List(all) => all.iter().map(T::from_value).collect(),
            _ => None,
        }
    }

    fn to_value(&self) -> Value {
        Value::List(self.iter().map(T::to_value).collect())
    }

    fn usual() -> Option<Value> {
        Some(Value::List(Arc::from([])))
    }
}

impl<T: FieldType + Ord> FieldType for BTreeSet<T> {
    const SET: bool = true;

    fn kind() -> Kind {
        Vec::<T>::kind()
    }

    fn from_value(value: &Value) -> Option<Self> {
        Vec::<T>::from_value(value).map(|all| all.into_iter().collect())
    }

    fn to_value(&self) -> Value {
        Value::List(self.iter().map(T::to_value).collect())
    }

    fn usual() -> Option<Value> {
        Vec::<T>::usual()
    }
}

/// Implements [`FieldType`] for a type that `FromStr` parses and `Display` writes. With parts, a text of several words, such as
/// `"<value> <header> [inner]"`.
#[macro_export]
macro_rules! text_field {
    ($ty:ty, $noun:literal, $shape:ident, $samples:tt) => {
        $crate::text_field!($ty, $noun, $shape, $samples, "");
    };
    ($ty:ty, $noun:literal, $shape:ident, $samples:tt, $parts:literal) => {
        $crate::text_field!(@ $ty, $noun, $shape, $samples, $parts, None, |text, error| {
            let shown = $crate::shown(text);
            $crate::TextError::from(format!("must be {}, not '{shown}': {error}", $noun))
        });
    };
    (@ $ty:ty, $noun:literal, $shape:ident, $samples:tt, $parts:literal, $table:expr,
        |$text:ident, $error:ident| $wrong:expr) => {
        impl $crate::FieldType for $ty {
            fn kind() -> $crate::Kind {
                let check = |$text: &str| {
                    let read: Result<$ty, _> = $text.parse();
                    read.map(|it| it.to_string()).map_err(|$error| $wrong)
                };
                $crate::Kind::Text($crate::TextKind {
                    parts: $parts,
                    table: $table,
                    ..$crate::TextKind::new($noun, $crate::Shape::$shape, &$samples, check)
                })
            }

            fn from_value(value: &$crate::Value) -> Option<Self> {
                value.as_text().and_then(|text| text.parse().ok())
            }

            fn to_value(&self) -> $crate::Value {
                $crate::Value::text(self.to_string())
            }
        }
    };
}

/// Implements [`FieldType`] for a type that `FromStr` parses and `Display` writes, where the error of `FromStr` is a
/// [`TextError`], or converts to one, and is a whole sentence. The arguments after the noun are those of [`text_field`]; after
/// the parts, optionally the table that the text is in the file and in JSON.
#[macro_export]
macro_rules! syntax_field {
    ($ty:ty, $noun:literal, $shape:ident, $samples:tt, $parts:literal) => {
        $crate::syntax_field!($ty, $noun, $shape, $samples, $parts, None);
    };
    ($ty:ty, $noun:literal, $shape:ident, $samples:tt, $parts:literal, $table:expr) => {
        $crate::text_field!(@ $ty, $noun, $shape, $samples, $parts, $table, |text, error| {
            $crate::TextError::from(error)
        });
    };
}

text_field!(
    IpAddr,
    "an IP address",
    Address,
    ["192.0.2.1", "2001:db8::1"]
);
text_field!(Ipv4Addr, "an IPv4 address", Address, ["192.0.2.1"]);
text_field!(Ipv6Addr, "an IPv6 address", Address, ["2001:db8::1"]);
text_field!(
    SocketAddr,
    "an address and a port",
    Any,
    ["192.0.2.1:8443", "[2001:db8::1]:8443"]
);

impl FieldType for PathBuf {
    fn kind() -> Kind {
        let samples = &["/run/a.sock", "@b 1"];
        let check = |text: &str| match text.is_empty() || text.contains('\0') {
            true => Err("must be the path of a file".to_owned().into()),
            false => Ok(text.to_owned()),
        };
        Kind::Text(TextKind::new("a file", Shape::File, samples, check))
    }

    fn from_value(value: &Value) -> Option<Self> {
        value.as_text().map(PathBuf::from)
    }

    fn to_value(&self) -> Value {
        Value::text(self.to_string_lossy())
    }
}

impl FieldType for String {
    fn kind() -> Kind {
        let check = |text: &str| match text.chars().any(char::is_control) {
            true => Err("must not have control characters".to_owned().into()),
            false => Ok(text.to_owned()),
        };
        Kind::Text(TextKind::new(ANY_TEXT, Shape::Any, &["a", "b1"], check))
    }

    fn from_value(value: &Value) -> Option<Self> {
        value.as_text().map(str::to_owned)
    }

    fn to_value(&self) -> Value {
        Value::text(self)
    }
}

/// An enum whose variants are the values of a field; implemented by `#[derive(Choice)]`. Each variant has a doc comment, which
/// is its help in every interface, and a name: its own with dashes, or `#[object(name = "...")]`.
pub trait Choice: Sized + Copy + PartialEq + 'static {
    /// Name, meaning and value of each variant.
    const ALL: &'static [(&'static str, &'static str, Self)];
}

impl<T: Choice> FieldType for T {
    fn kind() -> Kind {
        Kind::Choice(T::ALL.iter().map(|(name, doc, _)| (*name, *doc)).collect())
    }

    fn from_value(value: &Value) -> Option<Self> {
        let name = value.as_text()?;
        T::ALL.iter().find(|it| it.0 == name).map(|it| it.2)
    }

    fn to_value(&self) -> Value {
        Value::text(choice_name(self))
    }
}

/// The [`Choice`] with a name. An error lists the choices.
pub fn choice_named<T: Choice>(name: &str) -> Result<T, String> {
    let found = T::from_value(&Value::text(name));
    found.ok_or_else(|| format!("choose {}", T::kind().describe()))
}

/// The name of a [`Choice`].
pub fn choice_name<T: Choice>(it: &T) -> &'static str {
    T::ALL.iter().find(|one| one.2 == *it).map_or("", |it| it.0)
}
