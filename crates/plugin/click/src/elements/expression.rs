//! The expressions of IPClassifier and IPFilter: `tcp && dst port 80`, `src net 10.0.0.0/8 and not icmp`.

use crate::arguments::{mask, number, prefix};
use crate::packet::{ICMP, TCP, UDP, dst, is_first, protocol, src, u16_at};

/// A condition on a packet of IP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Test {
    /// Always, or never.
    Always(bool),
    /// All of these.
    And(Vec<Test>),
    /// One of these.
    Or(Vec<Test>),
    /// The contrary.
    Not(Box<Test>),
    /// A number of the packet is in this range.
    Field(Field, u32, u32),
    /// An address of the packet has these bits under this mask.
    Address(Side, u32, u32),
    /// A port of TCP or UDP is in this range.
    Port(Side, u16, u16),
    /// A flag of TCP is set.
    TcpFlag(u8),
    /// A fragment.
    Fragment,
}

/// A number in a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Protocol,
    Ttl,
    Tos,
    Dscp,
    Version,
    HeaderLength,
    Id,
    Length,
    IcmpType,
}

/// Source, destination, one of them, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Src,
    Dst,
    Either,
    Both,
}

impl Side {
    fn holds(self, src: bool, dst: bool) -> bool {
        match self {
            Side::Src => src,
            Side::Dst => dst,
            Side::Either => src || dst,
            Side::Both => src && dst,
        }
    }
}

/// A packet as tests read it: its IP header, and the bytes behind it.
pub(super) struct View<'a> {
    pub(super) header: &'a [u8],
    pub(super) payload: &'a [u8],
}

impl Test {
    /// Whether the condition holds.
    pub(super) fn holds(&self, view: &View<'_>) -> bool {
        match self {
            Test::Always(value) => *value,
            Test::And(all) => all.iter().all(|it| it.holds(view)),
            Test::Or(any) => any.iter().any(|it| it.holds(view)),
            Test::Not(it) => !it.holds(view),
            Test::Field(field, low, high) => view
                .field(*field)
                .is_some_and(|value| (*low..=*high).contains(&value)),
            Test::Address(side, address, mask) => {
                let fits = |it: u32| it & mask == *address;
                side.holds(fits(src(view.header)), fits(dst(view.header)))
            }
            Test::Port(side, low, high) => {
                let has_ports = [TCP, UDP].contains(&protocol(view.header));
                if !has_ports || !is_first(view.header) || view.payload.len() < 4 {
                    return false;
                }
                let fits = |at| (*low..=*high).contains(&u16_at(view.payload, at));
                side.holds(fits(0), fits(2))
            }
            Test::TcpFlag(flag) => {
                protocol(view.header) == TCP
                    && is_first(view.header)
                    && view.payload.get(13).is_some_and(|flags| flags & flag != 0)
            }
            Test::Fragment => u16_at(view.header, 6) & 0x3fff != 0,
        }
    }
}

impl View<'_> {
    fn field(&self, field: Field) -> Option<u32> {
        let byte = |at: usize| self.header.get(at).map(|it| u32::from(*it));
        match field {
            Field::Protocol => byte(9),
            Field::Ttl => byte(8),
            Field::Tos => byte(1),
            Field::Dscp => byte(1).map(|it| it >> 2),
            Field::Version => byte(0).map(|it| it >> 4),
            Field::HeaderLength => byte(0).map(|it| it & 15),
            Field::Id => Some(u32::from(u16_at(self.header, 4))),
            Field::Length => Some(u32::from(u16_at(self.header, 2))),
            Field::IcmpType => {
                let is_icmp = protocol(self.header) == ICMP && is_first(self.header);
                self.payload
                    .first()
                    .filter(|_| is_icmp)
                    .map(|it| u32::from(*it))
            }
        }
    }
}

/// Expressions in parentheses inside each other.
const DEEPEST: usize = 32;

/// Read an expression.
pub(super) fn parse(text: &str) -> Result<Test, String> {
    let words = words(text);
    if let [word] = words.as_slice()
        && ["-", "all", "any", "true"].contains(&word.as_str())
    {
        return Ok(Test::Always(true));
    }
    let mut parser = Parser {
        words,
        next: 0,
        depth: 0,
    };
    let test = parser.any()?;
    match parser.peek() {
        None => Ok(test),
        Some(word) => Err(format!(
            "'{word}' is not expected here: write and, or, or nothing"
        )),
    }
}

/// Words and signs.
fn words(text: &str) -> Vec<String> {
    const SIGNS: [&str; 12] = [
        "&&", "||", "!=", "==", "<=", ">=", "(", ")", "!", "<", ">", "=",
    ];
    let mut all = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign));
        let end = match sign {
            Some(sign) => sign.len(),
            None => rest
                .find(|c: char| c.is_whitespace() || "&|!=<>()".contains(c))
                .unwrap_or(rest.len())
                .max(rest.chars().next().map_or(1, char::len_utf8)),
        };
        all.push(rest[..end].to_owned());
        rest = rest[end..].trim_start();
    }
    all
}

struct Parser {
    words: Vec<String>,
    next: usize,
    depth: usize,
}

/// Protocols by name.
const PROTOCOLS: [(&str, u8); 7] = [
    ("icmp", ICMP),
    ("igmp", 2),
    ("ipip", 4),
    ("tcp", TCP),
    ("udp", UDP),
    ("gre", 47),
    ("esp", 50),
];

/// Ports by name.
const PORTS: [(&str, u16); 12] = [
    ("ftp", 21),
    ("ssh", 22),
    ("telnet", 23),
    ("smtp", 25),
    ("dns", 53),
    ("domain", 53),
    ("http", 80),
    ("www", 80),
    ("ntp", 123),
    ("snmp", 161),
    ("bgp", 179),
    ("https", 443),
];

const ICMP_TYPES: [(&str, u32); 6] = [
    ("echo-reply", 0),
    ("unreachable", 3),
    ("redirect", 5),
    ("echo", 8),
    ("timeexceeded", 11),
    ("parameterproblem", 12),
];

const TCP_FLAGS: [(&str, u8); 6] = [
    ("fin", 1),
    ("syn", 2),
    ("rst", 4),
    ("psh", 8),
    ("ack", 16),
    ("urg", 32),
];

impl Parser {
    fn peek(&self) -> Option<&str> {
        self.words.get(self.next).map(String::as_str)
    }

    fn take(&mut self) -> Option<String> {
        let word = self.words.get(self.next).cloned();
        self.next += 1;
        word
    }

    fn take_if(&mut self, words: &[&str]) -> bool {
        let found = self.peek().is_some_and(|word| words.contains(&word));
        self.next += usize::from(found);
        found
    }

    fn any(&mut self) -> Result<Test, String> {
        let mut all = vec![self.all()?];
        while self.take_if(&["or", "||"]) {
            all.push(self.all()?);
        }
        Ok(one_or(all, Test::Or))
    }

    fn all(&mut self) -> Result<Test, String> {
        let mut all = vec![self.not()?];
        loop {
            let joined = self.take_if(&["and", "&&"]);
            let ends = self
                .peek()
                .is_none_or(|word| ["or", "||", ")"].contains(&word));
            if !joined && ends {
                return Ok(one_or(all, Test::And));
            }
            // Tests without a word between them are joined by and.
            all.push(self.not()?);
        }
    }

    fn not(&mut self) -> Result<Test, String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(format!(
                "the expression is nested more than {DEEPEST} deep: simplify it"
            ));
        }
        let test = if self.take_if(&["not", "!"]) {
            Test::Not(Box::new(self.not()?))
        } else if self.take_if(&["("]) {
            let test = self.any()?;
            if !self.take_if(&[")"]) {
                return Err("a parenthesis is not closed: write )".to_owned());
            }
            test
        } else {
            self.test()?
        };
        self.depth -= 1;
        Ok(test)
    }

    fn test(&mut self) -> Result<Test, String> {
        self.take_if(&["ip"]);
        let side = self.side();
        let Some(word) = self.take() else {
            return Err(
                "the expression ends too early: write a test such as tcp or src host 10.0.0.1"
                    .to_owned(),
            );
        };
        if let Some(side) = side
            && !["host", "net", "port", "udp", "tcp"].contains(&word.as_str())
        {
            return self.address(side, &word);
        }
        let side = side.unwrap_or(Side::Either);
        let protocol = PROTOCOLS.iter().find(|(name, _)| *name == word);
        if let Some((name, protocol)) = protocol {
            let test = Test::Field(Field::Protocol, u32::from(*protocol), u32::from(*protocol));
            return self.of_protocol(name, side, test);
        }
        match word.as_str() {
            "host" | "net" => self.compared(|it| {
                let address = it.word("an address")?;
                it.address(side, &address)
            }),
            "port" => self.port(side),
            "proto" => self.compared(|it| {
                let word = it.word("a protocol")?;
                let named = PROTOCOLS.iter().find(|(name, _)| *name == word);
                let value = named
                    .map(|it| u64::from(it.1))
                    .or(number(&word))
                    .filter(|it| *it < 256);
                let value = value.ok_or_else(|| {
                    format!("'{word}' is no protocol: give a name or a number up to 255")
                })?;
                Ok(Test::Field(Field::Protocol, value as u32, value as u32))
            }),
            "ttl" => self.number(Field::Ttl),
            "tos" => self.number(Field::Tos),
            "dscp" => self.number(Field::Dscp),
            "vers" => self.number(Field::Version),
            "hl" => self.number(Field::HeaderLength),
            "id" => self.number(Field::Id),
            "len" => self.number(Field::Length),
            "frag" => Ok(Test::Fragment),
            "unfrag" => Ok(Test::Not(Box::new(Test::Fragment))),
            "true" | "all" | "any" => Ok(Test::Always(true)),
            "false" | "none" => Ok(Test::Always(false)),
            other if prefix(other).is_some() => self.address(side, other),
            other => {
                let known = [
                    "host", "net", "port", "proto", "src", "dst", "tcp", "udp", "icmp", "ttl",
                    "tos", "frag", "unfrag",
                ];
                let hint = volley_click_lang::hint(
                    other,
                    known,
                    &format!("write one of {}", known.join(", ")),
                );
                Err(format!("there is no test '{other}'{hint}"))
            }
        }
    }

    /// `tcp port 80`, `tcp opt syn`, `icmp type echo`, or the protocol alone.
    fn of_protocol(&mut self, name: &str, side: Side, test: Test) -> Result<Test, String> {
        let more = match (name, self.peek()) {
            ("tcp" | "udp", Some("port" | "src" | "dst")) => {
                let side = self.side().unwrap_or(side);
                if !self.take_if(&["port"]) {
                    return Err(format!("the word port is missing behind {name}: write it"));
                }
                self.port(side)?
            }
            ("tcp", Some("opt")) => {
                self.take();
                let word = self.word("a flag of TCP")?;
                let flag = TCP_FLAGS.iter().find(|(name, _)| *name == word);
                let flag = flag.ok_or_else(|| {
                    format!("'{word}' is no flag of TCP: give fin, syn, rst, psh, ack or urg")
                })?;
                Test::TcpFlag(flag.1)
            }
            ("icmp", Some("type")) => {
                self.take();
                self.compared(|it| {
                    let word = it.word("a type of ICMP")?;
                    let named = ICMP_TYPES
                        .iter()
                        .find(|(name, _)| *name == word)
                        .map(|it| it.1);
                    let value = named.or(word.parse().ok()).filter(|it| *it < 256);
                    let value = value.ok_or_else(|| {
                        format!("'{word}' is no type of ICMP: give a number up to 255")
                    })?;
                    Ok(Test::Field(Field::IcmpType, value, value))
                })?
            }
            _ => return Ok(test),
        };
        Ok(Test::And(vec![test, more]))
    }

    /// `src`, `dst`, `src or dst`, `src and dst`
    fn side(&mut self) -> Option<Side> {
        let is_src = match self.peek()? {
            "src" => true,
            "dst" => false,
            _ => return None,
        };
        let at = |it: &Self, n: usize| it.words.get(it.next + n).cloned().unwrap_or_default();
        let joined = [at(self, 1), at(self, 2)];
        let other = if is_src { "dst" } else { "src" };
        self.next += 1;
        let side = match joined[0].as_str() {
            "or" | "||" if joined[1] == other => Side::Either,
            "and" | "&&" if joined[1] == other => Side::Both,
            _ => return Some(if is_src { Side::Src } else { Side::Dst }),
        };
        self.next += 2;
        Some(side)
    }

    fn word(&mut self, what: &str) -> Result<String, String> {
        self.take()
            .ok_or_else(|| format!("the expression ends too early: write {what}"))
    }

    /// A value behind `=`, `==` or `!=`, or behind none of these.
    fn compared(
        &mut self,
        value: impl FnOnce(&mut Self) -> Result<Test, String>,
    ) -> Result<Test, String> {
        let negated = self.take_if(&["!="]);
        if !negated {
            self.take_if(&["=", "=="]);
        }
        let test = value(self)?;
        Ok(if negated {
            Test::Not(Box::new(test))
        } else {
            test
        })
    }

    fn address(&mut self, side: Side, word: &str) -> Result<Test, String> {
        let (address, len) = prefix(word)
            .ok_or_else(|| format!("'{word}' is no IPv4 address and no prefix: correct it"))?;
        // `net 10.0.0.0 mask 255.0.0.0`
        let mask = match self.take_if(&["mask"]) {
            true => {
                let word = self.word("a mask")?;
                let mask = word.parse::<std::net::Ipv4Addr>();
                mask.map_err(|_| format!("'{word}' is no mask: write four numbers"))?
                    .to_bits()
            }
            false => mask(len),
        };
        Ok(Test::Address(side, address & mask, mask))
    }

    fn port(&mut self, side: Side) -> Result<Test, String> {
        self.ranged(u64::from(u16::MAX), "a port", |word| {
            let named = PORTS.iter().find(|(name, _)| *name == word).map(|it| it.1);
            named.map(u64::from).or(number(word))
        })
        .map(|(low, high, negated)| {
            let test = Test::Port(side, low as u16, high as u16);
            if negated {
                Test::Not(Box::new(test))
            } else {
                test
            }
        })
    }

    fn number(&mut self, field: Field) -> Result<Test, String> {
        let (low, high, negated) = self.ranged(u64::from(u32::MAX), "a number", number)?;
        let test = Test::Field(field, low as u32, high as u32);
        Ok(if negated {
            Test::Not(Box::new(test))
        } else {
            test
        })
    }

    /// A comparison with a number: the range, and whether the contrary is meant.
    fn ranged(
        &mut self,
        most: u64,
        what: &str,
        read: impl Fn(&str) -> Option<u64>,
    ) -> Result<(u64, u64, bool), String> {
        let sign = match self.peek() {
            Some("=" | "==" | "!=" | "<" | ">" | "<=" | ">=") => self.take().unwrap_or_default(),
            _ => String::new(),
        };
        let word = self.word(what)?;
        let value = |word: &str| {
            read(word)
                .filter(|it| *it <= most)
                .ok_or_else(|| format!("'{word}' is not {what}: give a number up to {most}"))
        };
        let (low, high) = match word.split_once('-') {
            Some((low, high)) if read(&word).is_none() => (value(low)?, value(high)?),
            _ => (value(&word)?, value(&word)?),
        };
        Ok(match sign.as_str() {
            // A number below 0 is that of no packet.
            "<" if low == 0 => (1, 0, false),
            "<" => (0, low - 1, false),
            "<=" => (0, low, false),
            ">" if high == most => (1, 0, false),
            ">" => (high + 1, most, false),
            ">=" => (low, most, false),
            "!=" => (low, high, true),
            _ => (low, high, false),
        })
    }
}

fn one_or(mut all: Vec<Test>, join: fn(Vec<Test>) -> Test) -> Test {
    match all.len() {
        1 => all.remove(0),
        _ => join(all),
    }
}
