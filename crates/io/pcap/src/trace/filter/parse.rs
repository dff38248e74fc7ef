//! Parses filters: splits the text into words with columns, then emits the program by recursive descent over `or`, `and`, `not`
//! and tests.

use super::fields::Field;
use super::{Compare, DEPTH, Op};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use volley_model::{Mac, SyntaxError};
use volley_wire::IpProto;
use volley_wire::field::{self, ARP, FieldKind, HeaderFields, IP4, IP6};

type Word<'a> = (usize, &'a str);
type Parsed<T> = Result<T, SyntaxError>;

/// Signs, longest first.
const SIGNS: [&str; 11] = ["==", "!=", "<=", ">=", "&&", "||", "<", ">", "(", ")", "!"];

/// Words and signs with their start columns, counted in characters from 1.
fn words(text: &str) -> Parsed<Vec<Word<'_>>> {
    let mut words = Vec::new();
    let (mut rest, mut column) = (text, 1);
    while let Some(first) = rest.chars().next() {
        let of_word = |c: char| c.is_ascii_alphanumeric() || "._:/-".contains(c);
        let len = if first.is_whitespace() {
            first.len_utf8()
        } else if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            sign.len()
        } else {
            rest.find(|c| !of_word(c)).unwrap_or(rest.len())
        };
        if len == 0 {
            let message = format!("'{}' means nothing here", first.escape_debug());
            let hint = if first == '=' { ": write ==" } else { "" };
            return Err(SyntaxError::new(column, message + hint));
        }
        let (word, behind) = rest.split_at(len);
        if !first.is_whitespace() {
            words.push((column, word));
        }
        column += word.chars().count();
        rest = behind;
    }
    Ok(words)
}

/// Parses a filter.
pub(super) fn parse(text: &str) -> Parsed<Vec<Op>> {
    let words = words(text)?;
    let mut parser = Parser {
        words: &words,
        end: text.chars().count() + 1,
        depth: 0,
        program: Vec::new(),
    };
    parser.either()?;
    match parser.words.first() {
        None => Ok(parser.program),
        Some((column, word)) => {
            let message = format!("expected 'and', 'or' or the end, not '{word}'");
            Err(SyntaxError::new(*column, message))
        }
    }
}

struct Parser<'a> {
    words: &'a [Word<'a>],
    end: usize,
    depth: usize,
    program: Vec<Op>,
}

impl<'a> Parser<'a> {
    fn next(&mut self, expected: &str) -> Parsed<Word<'a>> {
        let missing = || SyntaxError::new(self.end, format!("{expected} is missing"));
        let (first, rest) = self.words.split_first().ok_or_else(missing)?;
        self.words = rest;
        Ok(*first)
    }

    fn take(&mut self, any: &[&str]) -> Option<usize> {
        let (column, word) = *self.words.first()?;
        let found = any.contains(&word);
        if found {
            self.words = &self.words[1..];
        }
        found.then_some(column)
    }

    fn either(&mut self) -> Parsed<()> {
        self.both()?;
        while self.take(&["or", "||"]).is_some() {
            self.both()?;
            self.program.push(Op::Or);
        }
        Ok(())
    }

    fn both(&mut self) -> Parsed<()> {
        self.not()?;
        while self.take(&["and", "&&"]).is_some() {
            self.not()?;
            self.program.push(Op::And);
        }
        Ok(())
    }

    fn not(&mut self) -> Parsed<()> {
        if let Some(column) = self.take(&["not", "!"]) {
            self.deeper(column, Self::not)?;
            self.program.push(Op::Not);
            return Ok(());
        }
        let Some(column) = self.take(&["("]) else {
            return self.test();
        };
        self.deeper(column, Self::either)?;
        match self.next("')'")? {
            (_, ")") => Ok(()),
            (column, word) => Err(SyntaxError::new(
                column,
                format!("expected ')', not '{word}'"),
            )),
        }
    }

    fn deeper(&mut self, column: usize, inner: fn(&mut Self) -> Parsed<()>) -> Parsed<()> {
        if self.depth == DEPTH {
            let message = format!("more than {DEPTH} parentheses and 'not' inside each other");
            return Err(SyntaxError::new(column, message));
        }
        self.depth += 1;
        let done = inner(self);
        self.depth -= 1;
        done
    }

    fn test(&mut self) -> Parsed<()> {
        let (column, word) = self.next("a test such as ip4.dst == 10.0.0.0/8")?;
        match word {
            "host" | "net" => self.host(word),
            "port" => self.port(),
            "proto" => self.proto(),
            _ => self.field(column, word),
        }
    }

    fn is(&mut self, field: Field, mask: u128, value: u128) {
        self.program.push(Op::Test {
            field,
            mask,
            compare: Compare::Equal,
            value,
        });
    }

    fn host(&mut self, what: &str) -> Parsed<()> {
        let expected = if what == "host" {
            "an address"
        } else {
            "a prefix"
        };
        let (column, word) = self.next(expected)?;
        if what == "host" && word.contains('/') {
            let message = format!("host takes one address: write net {word}");
            return Err(SyntaxError::new(column, message));
        }
        let v6 = word.contains(':');
        let (value, mask) = address(
            column,
            word,
            if v6 { FieldKind::Ip6 } else { FieldKind::Ip4 },
        )?;
        let ends: &[(&'static HeaderFields, [&str; 2])] = match v6 {
            true => &[(&IP6, ["src", "dst"])],
            false => &[(&IP4, ["src", "dst"]), (&ARP, ["spa", "tpa"])],
        };
        let ends = ends
            .iter()
            .flat_map(|(header, names)| names.map(|name| (*header, name)));
        let of =
            |(header, name): (&'static HeaderFields, &str)| -> Option<(_, &'static field::Field)> {
                Some((header, header.field(name)?))
            };
        for (nth, (header, field)) in ends.filter_map(of).enumerate() {
            self.is(Field::Of(header, field), mask, value);
            if nth > 0 {
                self.program.push(Op::Or);
            }
        }
        Ok(())
    }

    fn port(&mut self) -> Parsed<()> {
        let (column, word) = self.next("a port")?;
        let port = number(column, word)?;
        if port > 65_535 {
            return Err(SyntaxError::new(
                column,
                format!("{port} is no port: 0 to 65535"),
            ));
        }
        self.is(Field::Sport, u128::MAX, port);
        self.is(Field::Dport, u128::MAX, port);
        self.program.push(Op::Or);
        Ok(())
    }

    fn proto(&mut self) -> Parsed<()> {
        let (column, word) = self.next("an IP protocol such as udp or 47")?;
        let named = IpProto::NAMED.iter().find(|proto| {
            let header = field::of_protocol(**proto);
            header.is_some_and(|header| header.is_called(word))
        });
        let proto = match named {
            Some(proto) => proto.0.into(),
            None => number(column, word)?,
        };
        self.is(Field::Proto, u128::MAX, proto);
        Ok(())
    }

    fn field(&mut self, column: usize, word: &str) -> Parsed<()> {
        let unknown = || {
            let near = Field::names_like(word).join(", ");
            let message = format!("'{word}' is nothing to test: there are {near}");
            SyntaxError::new(column, message)
        };
        let field = Field::by_name(word).ok_or_else(unknown)?;
        let name = word;
        let Some((at, compare)) = self.compare() else {
            self.program.push(Op::Has(field));
            return Ok(());
        };
        let (mask, value) = match field.kind() {
            None => {
                let message = format!("{name} is a header and has no value: write '{name}' alone");
                return Err(SyntaxError::new(at, message));
            }
            Some(FieldKind::Number | FieldKind::Bytes) => {
                let (column, word) = self.next(&format!("a number for {name}"))?;
                (u128::MAX, number(column, word)?)
            }
            Some(kind) => {
                if !matches!(compare, Compare::Equal | Compare::NotEqual) {
                    let message = format!("{name} is an address: compare it with == or !=");
                    return Err(SyntaxError::new(at, message));
                }
                let (column, word) = self.next(&format!("an address for {name}"))?;
                let (value, mask) = address(column, word, kind)?;
                (mask, value)
            }
        };
        self.program.push(Op::Test {
            field,
            mask,
            compare,
            value,
        });
        Ok(())
    }

    fn compare(&mut self) -> Option<(usize, Compare)> {
        let (column, word) = *self.words.first()?;
        let compare = match word {
            "==" => Compare::Equal,
            "!=" => Compare::NotEqual,
            "<" => Compare::Less,
            "<=" => Compare::LessOrEqual,
            ">" => Compare::Greater,
            ">=" => Compare::GreaterOrEqual,
            _ => return None,
        };
        self.words = &self.words[1..];
        Some((column, compare))
    }
}

fn number(column: usize, word: &str) -> Parsed<u128> {
    let number = match word.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => word.parse().ok(),
    };
    let bad = || {
        let message = format!("'{word}' is not a number: write one such as 64 or 0x40");
        SyntaxError::new(column, message)
    };
    number.map(u128::from).ok_or_else(bad)
}

/// An address or prefix as value and mask.
fn address(column: usize, word: &str, kind: FieldKind) -> Parsed<(u128, u128)> {
    if kind == FieldKind::Mac {
        let mac: Mac = word
            .parse()
            .map_err(|e| SyntaxError::new(column, format!("{e}")))?;
        let value = mac.0.iter().fold(0, |n, b| n << 8 | u128::from(*b));
        return Ok((value, u128::MAX));
    }
    let (addr, len) = match word.split_once('/') {
        Some((addr, len)) => (addr, Some(len)),
        None => (word, None),
    };
    let bits = if kind == FieldKind::Ip4 { 32 } else { 128 };
    let addr: Option<IpAddr> = match kind {
        FieldKind::Ip4 => addr.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
        _ => addr.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
    };
    let len = len.map_or(Some(bits), |l| l.parse::<u32>().ok().filter(|l| *l <= bits));
    let (Some(addr), Some(len)) = (addr, len) else {
        let example = if bits == 32 {
            "10.0.0.0/8"
        } else {
            "2001:db8::/32"
        };
        let family = if bits == 32 { "IPv4" } else { "IPv6" };
        let message =
            format!("'{word}' is not an {family} address or prefix: write one such as {example}");
        return Err(SyntaxError::new(column, message));
    };
    let value = match addr {
        IpAddr::V4(a) => u128::from(a.to_bits()),
        IpAddr::V6(a) => a.to_bits(),
    };
    let mask = u128::MAX.checked_shl(bits - len).unwrap_or(0);
    if value & !mask & (u128::MAX >> (128 - bits)) != 0 {
        let message = format!("'{word}' has bits behind its prefix length: clear them");
        return Err(SyntaxError::new(column, message));
    }
    Ok((value, mask))
}
