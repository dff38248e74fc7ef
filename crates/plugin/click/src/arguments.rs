//! Arguments of elements: texts to values, by the declaration of the class.

use crate::names::{Names, Wanted};
use crate::spec::{Argument, Kind, Need, Spec};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use volley_click_lang::{bytes, hint, unquote, words};

/// The value of an argument.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    Number(u64),
    Integer(i64),
    Fraction(f64),
    Prefix(u32, u8),
    Ethernet([u8; 6]),
    Bytes(Vec<u8>),
    Text(String),
}

/// The arguments of an element.
#[derive(Debug, Default)]
pub struct Arguments {
    values: BTreeMap<&'static str, Value>,
    /// Those of [`Need::Rest`].
    rest: Vec<String>,
    names: Names,
}

impl Arguments {
    /// Read arguments by the declaration of a class.
    pub fn read(spec: &Spec, texts: &[String], names: &Names) -> Result<Arguments, String> {
        let mut all = Arguments {
            names: names.clone(),
            ..Arguments::default()
        };
        let mut by_position = spec
            .arguments
            .iter()
            .filter(|it| matches!(it.need, Need::Required | Need::Optional));
        let has_rest = spec.arguments.iter().any(|it| it.need == Need::Rest);
        for text in texts {
            if let Some((argument, value)) = keyword(spec, text) {
                all.put(spec, argument, value)?;
            } else if is_misspelt(spec, text) {
                return Err(surplus(spec, text));
            } else if let Some(argument) = by_position.next() {
                // An empty text leaves an argument out.
                if !text.is_empty() {
                    all.put(spec, argument, text)?;
                }
            } else if has_rest {
                let wanted = match spec.arguments.iter().any(|it| it.kind == Kind::Stations) {
                    true => Wanted::Both,
                    false => Wanted::Address,
                };
                all.rest.push(names.spread(text, wanted));
            } else {
                return Err(surplus(spec, text));
            }
        }
        all.add_mac(spec, texts);
        let missing = spec
            .arguments
            .iter()
            .find(|it| it.need == Need::Required && !all.values.contains_key(it.name));
        match missing {
            Some(it) => Err(format!(
                "{} needs the argument {}: give {}",
                spec.name,
                it.name,
                it.kind.describe()
            )),
            None => Ok(all),
        }
    }

    /// A name of AddressInfo that gives an address gives the MAC address too, where that is missing.
    fn add_mac(&mut self, spec: &Spec, texts: &[String]) {
        let mut macs = spec.arguments.iter();
        let missing = macs.find(|it| {
            it.kind == Kind::Ethernet
                && it.need == Need::Required
                && !self.values.contains_key(it.name)
        });
        let found = texts.iter().find_map(|text| self.names.mac_of(text.trim()));
        if let (Some(argument), Some(mac)) = (missing, found.as_deref().and_then(ethernet)) {
            self.values.insert(argument.name, Value::Ethernet(mac));
        }
    }

    fn put(&mut self, spec: &Spec, argument: &Argument, text: &str) -> Result<(), String> {
        let named = match argument.kind {
            Kind::Address => self.names.address_of(text),
            Kind::Prefix => self.names.prefix_of(text),
            Kind::Ethernet => self.names.mac_of(text),
            Kind::Device => self.names.mac_of_address_info(text),
            Kind::Words => Some(self.names.spread(text, Wanted::Address)),
            _ => None,
        };
        let value = value(argument.kind, named.as_deref().unwrap_or(text)).ok_or_else(|| {
            format!(
                "the argument {} of {} must be {}, not '{text}'",
                argument.name,
                spec.name,
                argument.kind.describe()
            )
        })?;
        match self.values.insert(argument.name, value) {
            None => Ok(()),
            Some(_) => Err(format!(
                "the argument {} of {} is given twice: remove one",
                argument.name, spec.name
            )),
        }
    }

    /// A number.
    pub fn number(&self, name: &str) -> Option<u64> {
        match self.values.get(name)? {
            Value::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// A whole number.
    pub fn integer(&self, name: &str) -> Option<i64> {
        match self.values.get(name)? {
            Value::Integer(number) => Some(*number),
            _ => None,
        }
    }

    /// A fraction.
    pub fn fraction(&self, name: &str) -> Option<f64> {
        match self.values.get(name)? {
            Value::Fraction(number) => Some(*number),
            _ => None,
        }
    }

    /// `true` or `false`.
    pub fn flag(&self, name: &str) -> Option<bool> {
        self.number(name).map(|it| it != 0)
    }

    /// An address.
    pub fn address(&self, name: &str) -> Option<u32> {
        self.prefix(name).map(|(address, _)| address)
    }

    /// A prefix.
    pub fn prefix(&self, name: &str) -> Option<(u32, u8)> {
        match self.values.get(name)? {
            Value::Prefix(address, len) => Some((*address, *len)),
            _ => None,
        }
    }

    /// A MAC address.
    pub fn ethernet(&self, name: &str) -> Option<[u8; 6]> {
        match self.values.get(name)? {
            Value::Ethernet(address) => Some(*address),
            _ => None,
        }
    }

    /// A text.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.values.get(name)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Bytes.
    pub fn bytes(&self, name: &str) -> Option<&[u8]> {
        match self.values.get(name)? {
            Value::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The further arguments.
    pub fn rest(&self) -> &[String] {
        &self.rest
    }
}

/// The argument that a text names, and its value.
fn keyword<'a>(spec: &Spec, text: &'a str) -> Option<(&'static Argument, &'a str)> {
    let (name, value) = text.split_once(char::is_whitespace)?;
    let argument = spec.arguments.iter().find(|it| it.name == name)?;
    (argument.need != Need::Rest).then_some((argument, value.trim()))
}

/// Whether a text begins with a word that is similar to the name of an argument, with a value behind it.
fn is_misspelt(spec: &Spec, text: &str) -> bool {
    let Some((name, _)) = text.split_once(char::is_whitespace) else {
        return false;
    };
    let names = spec.arguments.iter().map(|it| it.name);
    let is_name = name.len() > 1 && name.bytes().all(|b| b.is_ascii_uppercase() || b == b'_');
    is_name && !volley_click_lang::nearest(name, names).is_empty()
}

/// The error for an argument that does not belong to a class.
fn surplus(spec: &Spec, text: &str) -> String {
    let first = text.split_whitespace().next().unwrap_or_default();
    let is_keyword = first.bytes().all(|b| b.is_ascii_uppercase() || b == b'_');
    let names = spec.arguments.iter().map(|it| it.name);
    if is_keyword && !first.is_empty() {
        let known: Vec<&str> = names.clone().collect();
        let otherwise = match known.is_empty() {
            true => "it has no arguments".to_owned(),
            false => format!("its arguments are {}", known.join(", ")),
        };
        let hint = hint(first, names, &otherwise);
        return format!("{} has no argument {first}{hint}", spec.name);
    }
    let most = spec
        .arguments
        .iter()
        .filter(|it| it.need != Need::Keyword)
        .count();
    match most {
        0 => format!(
            "{} has no arguments by position: remove '{text}'",
            spec.name
        ),
        n => format!(
            "{} has at most {n} arguments by position: remove '{text}'",
            spec.name
        ),
    }
}

fn value(kind: Kind, text: &str) -> Option<Value> {
    let plain = unquote(text);
    let text = match kind {
        Kind::Words | Kind::Bytes => text,
        _ => plain.as_str(),
    };
    Some(match kind {
        Kind::Bool => Value::Number(u64::from(boolean(text)?)),
        Kind::Number(low, high) => {
            Value::Number(number(text).filter(|n| (low..=high).contains(n))?)
        }
        Kind::Integer => Value::Integer(text.parse().ok()?),
        Kind::Fraction => Value::Fraction(fraction(text)?),
        Kind::Rate => Value::Fraction(scaled(text, &["/s", "pps", ""])?),
        Kind::Bandwidth => Value::Fraction(bandwidth(text)?),
        Kind::Time => Value::Fraction(seconds(text)?),
        Kind::Address => Value::Prefix(text.parse::<Ipv4Addr>().ok()?.to_bits(), 32),
        Kind::Prefix => {
            let (address, len) = prefix(text)?;
            Value::Prefix(address, len)
        }
        Kind::Ethernet => Value::Ethernet(ethernet(text)?),
        Kind::Text | Kind::Device => Value::Text(text.to_owned()),
        Kind::Words | Kind::Stations => Value::Text(text.to_owned()),
        Kind::Bytes => Value::Bytes(bytes(text)),
    })
}

/// `true`, `false` and their short forms.
pub(crate) fn boolean(text: &str) -> Option<bool> {
    match text {
        "true" | "1" | "yes" | "on" => Some(true),
        "false" | "0" | "no" | "off" => Some(false),
        _ => None,
    }
}

/// A number in decimal, hexadecimal or octal digits.
pub(crate) fn number(text: &str) -> Option<u64> {
    if let Some(digits) = text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        return u64::from_str_radix(digits, 16).ok();
    }
    text.parse().ok()
}

fn fraction(text: &str) -> Option<f64> {
    let value = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().ok()? / 100.0,
        None => text.parse::<f64>().ok()?,
    };
    (0.0..=1.0).contains(&value).then_some(value)
}

/// A positive number with a decimal prefix such as k, in front of one of these units.
fn scaled(text: &str, units: &[&str]) -> Option<f64> {
    let unit = units.iter().find(|unit| text.ends_with(**unit))?;
    let text = text[..text.len() - unit.len()].trim();
    let (digits, factor) = match text.bytes().last()? {
        b'k' | b'K' => (&text[..text.len() - 1], 1e3),
        b'M' => (&text[..text.len() - 1], 1e6),
        b'G' => (&text[..text.len() - 1], 1e9),
        _ => (text, 1.0),
    };
    let value = digits.trim().parse::<f64>().ok()? * factor;
    (value.is_finite() && value >= 0.0).then_some(value)
}

/// Bytes a second.
fn bandwidth(text: &str) -> Option<f64> {
    match text.ends_with("bps") || text.ends_with("b/s") || text.ends_with("baud") {
        true => scaled(text, &["bps", "b/s", "baud"]).map(|bits| bits / 8.0),
        false => scaled(text, &["B/s", "Bps", ""]),
    }
}

/// Seconds.
pub(crate) fn seconds(text: &str) -> Option<f64> {
    const UNITS: [(&str, f64); 8] = [
        ("usec", 1e-6),
        ("msec", 1e-3),
        ("sec", 1.0),
        ("us", 1e-6),
        ("ms", 1e-3),
        ("ns", 1e-9),
        ("min", 60.0),
        ("s", 1.0),
    ];
    let unit = UNITS.iter().find(|(unit, _)| text.ends_with(unit));
    let (digits, factor) = unit.map_or((text, 1.0), |(unit, factor)| {
        (&text[..text.len() - unit.len()], *factor)
    });
    let value = digits.trim().parse::<f64>().ok()? * factor;
    (value.is_finite() && value >= 0.0).then_some(value)
}

/// A prefix: `10.0.0.0/8`, `10.0.0.0/255.0.0.0` or an address alone. The bits behind the length are kept.
pub(crate) fn prefix(text: &str) -> Option<(u32, u8)> {
    let Some((address, len)) = text.split_once('/') else {
        return Some((text.parse::<Ipv4Addr>().ok()?.to_bits(), 32));
    };
    // `10/8`: bytes that are left out are 0.
    let missing = 3_usize.saturating_sub(address.matches('.').count());
    let whole = format!("{address}{}", ".0".repeat(missing));
    let address = whole.parse::<Ipv4Addr>().ok()?.to_bits();
    if let Ok(len) = len.parse::<u8>() {
        return (len <= 32).then_some((address, len));
    }
    let mask = len.parse::<Ipv4Addr>().ok()?.to_bits();
    (mask.leading_ones() + mask.trailing_zeros() == 32 || mask == 0)
        .then_some((address, mask.leading_ones() as u8))
}

/// The mask of a prefix length.
pub(crate) fn mask(len: u8) -> u32 {
    u32::MAX
        .checked_shl(32 - u32::from(len.min(32)))
        .unwrap_or(0)
}

/// A MAC address, with colons or dashes.
pub(crate) fn ethernet(text: &str) -> Option<[u8; 6]> {
    let parts: Vec<&str> = text.split([':', '-']).collect();
    let parts: [&str; 6] = parts.try_into().ok()?;
    let mut address = [0; 6];
    for (byte, part) in address.iter_mut().zip(parts) {
        if part.is_empty() || part.len() > 2 {
            return None;
        }
        *byte = u8::from_str_radix(part, 16).ok()?;
    }
    Some(address)
}

/// Rates in rising order, for an element that has an output for each.
pub(crate) fn rates(kind: Kind, texts: &[String]) -> Result<Vec<f64>, String> {
    let mut all: Vec<f64> = Vec::new();
    for text in texts {
        match value(kind, text) {
            Some(Value::Fraction(rate)) if all.last().is_none_or(|last| *last < rate) => {
                all.push(rate)
            }
            Some(_) => {
                return Err(format!(
                    "the rates must rise, but '{text}' does not: sort them"
                ));
            }
            None => return Err(format!("'{text}' is not {}", kind.describe())),
        }
    }
    match all.is_empty() {
        true => Err(format!("a rate is missing: give {}", kind.describe())),
        false => Ok(all),
    }
}

/// The words of a text without their quotes.
pub(crate) fn plain_words(text: &str) -> Vec<String> {
    words(text).iter().map(|word| unquote(word)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_become_values() {
        assert_eq!(bandwidth("8Mbps"), Some(1e6));
        assert_eq!(bandwidth("2kB/s"), Some(2000.0));
        assert_eq!(seconds("10ms"), Some(0.01));
        assert_eq!(seconds("1.5"), Some(1.5));
        assert_eq!(scaled("2k", &["/s", ""]), Some(2000.0));
        assert_eq!(prefix("10.1.2.3/255.255.0.0"), Some((0x0a01_0203, 16)));
        assert_eq!(prefix("1.2.3.4"), Some((0x0102_0304, 32)));
        assert_eq!(prefix("1.2.3.4/255.0.255.0"), None);
        assert_eq!(ethernet("0-1-2-3-4-fF"), Some([0, 1, 2, 3, 4, 255]));
        assert_eq!(fraction("25%"), Some(0.25));
        assert_eq!(number("0x800"), Some(2048));
        assert_eq!((mask(0), mask(8), mask(32)), (0, 0xff00_0000, u32::MAX));
    }
}
