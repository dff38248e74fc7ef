//! Texts to tests, by the rules of Click's IPClassifier: qualifiers that a test leaves out are those of the test before it.

use super::names::{ICMP_TYPES, PORTS, PROTOCOLS, TCP_FLAGS, find};
use super::{Field, Side, Test, Wanted};
use crate::arguments::{mask, number, prefix};
use crate::packet::{ICMP, TCP, UDP};

/// Expressions inside each other.
const DEEPEST: usize = 32;
const COMPARISONS: [&str; 7] = ["=", "==", "!=", "<", ">", "<=", ">="];
/// Bytes that a test may compare.
const LONGEST: u8 = 4;

/// Read an expression.
pub(in crate::elements) fn parse(text: &str) -> Result<Test, String> {
    let words = words(text);
    if words == ["-"] {
        return Ok(Test::Always(true));
    }
    let mut parser = Parser {
        words,
        next: 0,
        depth: 0,
        last: Directive::default(),
    };
    let test = parser.expression()?;
    match parser.peek() {
        None => Ok(test),
        Some(word) => Err(format!(
            "'{word}' is not expected here: write and, or, or nothing"
        )),
    }
}

/// Words and signs.
fn words(text: &str) -> Vec<String> {
    const SIGNS: [&str; 14] = [
        "&&", "||", "!=", "==", "<=", ">=", "(", ")", "!", "<", ">", "=", "&", "?",
    ];
    let mut all = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign));
        let end = match sign {
            Some(sign) => sign.len(),
            None => rest
                .find(|c: char| c.is_whitespace() || "&|!=<>()?".contains(c))
                .unwrap_or(rest.len())
                .max(rest.chars().next().map_or(1, char::len_utf8)),
        };
        all.push(rest[..end].to_owned());
        rest = rest[end..].trim_start();
    }
    all
}

/// What a test is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Address,
    Port,
    Flag,
    Number(Field),
}

/// The words in front of the value of a test.
#[derive(Clone, Copy, Debug, Default)]
struct Directive {
    what: Option<What>,
    side: Option<Side>,
    protocol: Option<u8>,
}

/// A comparison of a test with a value.
struct Comparison {
    mask: u32,
    sign: String,
}

struct Parser {
    words: Vec<String>,
    next: usize,
    depth: usize,
    /// The directive of the test before.
    last: Directive,
}

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

    fn word(&mut self, what: &str) -> Result<String, String> {
        self.take()
            .ok_or_else(|| format!("the expression ends too early: write {what}"))
    }

    /// Whether no word follows that could be one of the same test.
    fn is_end(&self) -> bool {
        const BEHIND: [&str; 7] = ["or", "||", "and", "&&", ")", "?", ":"];
        self.peek().is_none_or(|word| BEHIND.contains(&word))
    }

    fn deeper(&mut self) -> Result<(), String> {
        self.depth += 1;
        match self.depth > DEEPEST {
            true => Err(format!(
                "the expression is nested more than {DEEPEST} deep: simplify it"
            )),
            false => Ok(()),
        }
    }

    /// `a ? b : c`, which binds least.
    fn expression(&mut self) -> Result<Test, String> {
        self.deeper()?;
        let condition = self.any()?;
        let test = match self.take_if(&["?"]) {
            true => {
                let yes = self.expression()?;
                if !self.take_if(&[":"]) {
                    return Err(
                        "a test behind ? has no other one: write : with spaces around it, and a test"
                            .to_owned(),
                    );
                }
                let no = self.expression()?;
                Test::If(Box::new([condition, yes, no]))
            }
            false => condition,
        };
        self.depth -= 1;
        Ok(test)
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
            if !joined && self.is_end() {
                return Ok(one_or(all, Test::And));
            }
            // Tests without a word between them are joined by and.
            all.push(self.not()?);
        }
    }

    fn not(&mut self) -> Result<Test, String> {
        self.deeper()?;
        let test = if self.take_if(&["not", "!"]) {
            Test::Not(Box::new(self.not()?))
        } else if self.take_if(&["("]) {
            let test = self.expression()?;
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
        let is_ip = self.take_if(&["ip"]);
        let mut given = Directive {
            side: self.side(),
            ..Directive::default()
        };
        let protocol = self.peek().and_then(|word| find(&PROTOCOLS, word));
        if let Some(protocol) = protocol {
            let name = self.take().unwrap_or_default();
            let (behind, own) = (self.next, given.side);
            given.side = own.or_else(|| self.side());
            if !self.goes_on(protocol) {
                self.next = behind;
                return match own {
                    None => Ok(is_protocol(protocol)),
                    Some(_) => Err(format!("the word port is missing behind {name}: write it")),
                };
            }
            given.protocol = Some(protocol);
        }
        if given.side.is_none() && protocol.is_none() {
            let whole = self.peek().and_then(without_value);
            if let Some(test) = whole {
                self.take();
                return Ok(test);
            }
        }
        if let Some(what) = self.what()? {
            self.take();
            given.what = Some(what);
        } else if is_ip && given.protocol.is_none() && given.side.is_none() {
            let word = self.word("a field of the IP header, such as ttl")?;
            return Err(unknown(&word));
        }
        self.compared(given)
    }

    /// Whether the next word belongs to a test of this protocol's packets: tests without a word between them are joined by and.
    fn goes_on(&self, protocol: u8) -> bool {
        let Some(word) = self.peek() else {
            return false;
        };
        match protocol {
            TCP | UDP if word == "port" || find(&PORTS, word).is_some() => true,
            TCP => ["opt", "win"].contains(&word) || find(&TCP_FLAGS, word).is_some(),
            ICMP => word == "type" || find(&ICMP_TYPES, word).is_some(),
            _ => false,
        }
    }

    /// What the next word says that a test is about; none if it is a value.
    fn what(&self) -> Result<Option<What>, String> {
        let Some(word) = self.peek() else {
            return Ok(None);
        };
        Ok(Some(match word {
            "host" | "net" => What::Address,
            "port" => What::Port,
            "opt" => What::Flag,
            "proto" => What::Number(Field::Protocol),
            "type" => What::Number(Field::IcmpType),
            "win" => What::Number(Field::TcpWindow),
            "ttl" => What::Number(Field::Ttl),
            "tos" => What::Number(Field::Tos),
            "dscp" => What::Number(Field::Dscp),
            "vers" => What::Number(Field::Version),
            "hl" => What::Number(Field::HeaderLength),
            "id" => What::Number(Field::Id),
            "len" => What::Number(Field::Length),
            "sum" => What::Number(Field::Checksum),
            other => match bytes_of(other)? {
                Some(field) => What::Number(field),
                None => return Ok(None),
            },
        }))
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

    /// `& 0xf0 == 16`, `!= 5`, `> 1023`, or the value alone.
    fn comparison(&mut self) -> Result<Comparison, String> {
        let mask = match self.take_if(&["&"]) {
            true => {
                let word = self.word("a mask")?;
                let mask = number(&word).and_then(|it| u32::try_from(it).ok());
                mask.ok_or_else(|| format!("'{word}' is no mask: give a number"))?
            }
            false => u32::MAX,
        };
        let sign = match self.peek() {
            Some(sign) if COMPARISONS.contains(&sign) => self.take().unwrap_or_default(),
            _ => String::new(),
        };
        Ok(Comparison { mask, sign })
    }

    /// The comparison of a test, and its value.
    fn compared(&mut self, given: Directive) -> Result<Test, String> {
        let comparison = self.comparison()?;
        if comparison.mask != u32::MAX && comparison.sign.is_empty() && self.is_end() {
            // A mask without a value: one of its bits is set.
            let any = Wanted {
                mask: comparison.mask,
                low: 1,
                high: u32::MAX,
            };
            return self.numbered(given, any, false);
        }
        let word = self.word("a test such as tcp or src host 10.0.0.1")?;
        let given = match given.what {
            Some(_) => given,
            None => self.completed(given, &word)?,
        };
        self.last = given;
        match given.what {
            Some(What::Address) => self.address(given, &comparison, &word),
            Some(What::Flag) => {
                let flag = find(&TCP_FLAGS, &word).ok_or_else(|| {
                    format!("'{word}' is no flag of TCP: give fin, syn, rst, psh, ack or urg")
                })?;
                Ok(Test::TcpFlag(flag))
            }
            _ => {
                let (wanted, negated) = ranged(&comparison, given.what, &word)?;
                self.numbered(given, wanted, negated)
            }
        }
    }

    /// The directive of a value without one, by the value and the test before.
    fn completed(&self, given: Directive, word: &str) -> Result<Directive, String> {
        let last = self.last;
        let is_port = find(&PORTS, word).is_some();
        let is_type = find(&ICMP_TYPES, word).is_some();
        let about_icmp = given.protocol == Some(ICMP)
            || given.protocol.is_none() && last.what == Some(What::Number(Field::IcmpType));
        let about_ports = [Some(TCP), Some(UDP)].contains(&given.protocol)
            || given.side.is_some()
            || last.what == Some(What::Port);
        let what = if prefix(word).is_some() {
            What::Address
        } else if find(&TCP_FLAGS, word).is_some() {
            What::Flag
        } else if is_type && about_icmp {
            What::Number(Field::IcmpType)
        } else if is_port && (about_ports || !is_type) {
            What::Port
        } else if is_port {
            return Err(format!(
                "'{word}' is a port and a type of ICMP: write port {word} or icmp type {word}"
            ));
        } else if is_type {
            What::Number(Field::IcmpType)
        } else if word.starts_with(|c: char| c.is_ascii_digit()) {
            match last.what {
                Some(what @ (What::Port | What::Number(_))) => what,
                _ => {
                    return Err(format!(
                        "'{word}' is a value without a field: write what it is, such as port {word}"
                    ));
                }
            }
        } else {
            return Err(unknown(word));
        };
        let goes_on = last.what == Some(what);
        Ok(Directive {
            what: Some(what),
            side: given.side.or(last.side.filter(|_| goes_on)),
            protocol: given.protocol.or(last.protocol.filter(|_| goes_on)),
        })
    }

    fn address(
        &mut self,
        given: Directive,
        comparison: &Comparison,
        word: &str,
    ) -> Result<Test, String> {
        let (address, len) = prefix(word)
            .ok_or_else(|| format!("'{word}' is no IPv4 address and no prefix: correct it"))?;
        // `net 10.0.0.0 mask 255.0.0.0`
        let of_word = match self.take_if(&["mask"]) {
            true => {
                let word = self.word("a mask")?;
                let mask = word.parse::<std::net::Ipv4Addr>();
                mask.map_err(|_| format!("'{word}' is no mask: write four numbers"))?
                    .to_bits()
            }
            false => mask(len),
        };
        let mask = of_word & comparison.mask;
        let test = Test::Address(given.side.unwrap_or(Side::Either), address & mask, mask);
        match comparison.sign.as_str() {
            "" | "=" | "==" => Ok(test),
            "!=" => Ok(Test::Not(Box::new(test))),
            sign => Err(format!(
                "addresses have no order: write == or != instead of {sign}"
            )),
        }
    }

    /// The test of a number. A packet without the number does not hold, also where another one is wanted.
    fn numbered(&self, given: Directive, wanted: Wanted, negated: bool) -> Result<Test, String> {
        let of = |wanted| match given.what {
            Some(What::Number(field)) => Ok(Test::Field(field, wanted)),
            Some(What::Port) => Ok(Test::Port(given.side.unwrap_or(Side::Either), wanted)),
            _ => Err("a mask needs a field: write one such as ip tos in front of it".to_owned()),
        };
        let mut all = Vec::new();
        if let Some(protocol) = given.protocol {
            all.push(is_protocol(protocol));
        }
        if negated {
            all.push(of(Wanted::ANY)?);
            all.push(Test::Not(Box::new(of(wanted)?)));
        } else {
            all.push(of(wanted)?);
        }
        Ok(one_or(all, Test::And))
    }
}

/// A test that is one word.
fn without_value(word: &str) -> Option<Test> {
    let ecn = |low, high| {
        let bits = Wanted { mask: 3, low, high };
        Test::Field(Field::Tos, bits)
    };
    Some(match word {
        "true" | "all" | "any" => Test::Always(true),
        "false" | "none" => Test::Always(false),
        "frag" => Test::Fragment,
        "unfrag" => Test::Not(Box::new(Test::Fragment)),
        // RFC 3168, section 5: ECT(1), ECT(0) and CE; CE alone.
        "ect" => ecn(1, 3),
        "ce" => ecn(3, 3),
        _ => return None,
    })
}

fn is_protocol(protocol: u8) -> Test {
    Test::Field(Field::Protocol, Wanted::one(protocol.into()))
}

fn unknown(word: &str) -> String {
    let known = [
        "host", "net", "port", "proto", "src", "dst", "tcp", "udp", "icmp", "ttl", "tos", "frag",
        "unfrag",
    ];
    let otherwise = format!("write one of {}", known.join(", "));
    let hint = volley_click_lang::hint(word, known, &otherwise);
    format!("there is no test '{word}'{hint}")
}

/// `ip[6:2]`, `transp[0]`, `tcp[13]`
fn bytes_of(word: &str) -> Result<Option<Field>, String> {
    let Some((name, place)) = word.split_once('[') else {
        return Ok(None);
    };
    let wrong = || {
        format!(
            "'{word}' is no field: write ip, transp or a protocol with place and 1 to {LONGEST} bytes, such as ip[6:2]"
        )
    };
    let place = place.strip_suffix(']').ok_or_else(wrong)?;
    let (at, length) = place.split_once(':').unwrap_or((place, "1"));
    let at: u16 = at.trim().parse().map_err(|_| wrong())?;
    let length: u8 = length.trim().parse().map_err(|_| wrong())?;
    if !(1..=LONGEST).contains(&length) {
        return Err(wrong());
    }
    match (name, find(&PROTOCOLS, name)) {
        ("ip", _) => Ok(Some(Field::Header(at, length))),
        ("transp", _) => Ok(Some(Field::Payload(None, at, length))),
        (_, Some(protocol)) => Ok(Some(Field::Payload(Some(protocol), at, length))),
        _ => Err(wrong()),
    }
}

/// The numbers that a comparison wants, and whether the contrary is meant.
fn ranged(
    comparison: &Comparison,
    what: Option<What>,
    word: &str,
) -> Result<(Wanted, bool), String> {
    let (most, name, named): (u32, &str, Option<u32>) = match what {
        Some(What::Port) => {
            let named = find(&PORTS, word).map(u32::from);
            (u16::MAX.into(), "a port", named)
        }
        Some(What::Number(Field::Protocol)) => {
            let named = find(&PROTOCOLS, word).map(u32::from);
            (u8::MAX.into(), "a protocol", named)
        }
        Some(What::Number(Field::IcmpType)) => {
            let named = find(&ICMP_TYPES, word).map(u32::from);
            (u8::MAX.into(), "a type of ICMP", named)
        }
        _ => (u32::MAX, "a number", None),
    };
    let value = |word: &str| {
        let value = number(word).and_then(|it| u32::try_from(it).ok());
        value
            .filter(|it| *it <= most)
            .ok_or_else(|| format!("'{word}' is not {name}: give a number up to {most}"))
    };
    let (low, high) = match (named, word.split_once('-')) {
        (Some(value), _) => (value, value),
        (None, Some((low, high))) => (value(low)?, value(high)?),
        (None, None) => (value(word)?, value(word)?),
    };
    let (low, high, negated) = match comparison.sign.as_str() {
        // A number below 0 is that of no packet.
        "<" if low == 0 => (1, 0, false),
        "<" => (0, low - 1, false),
        "<=" => (0, low, false),
        ">" if high == most => (1, 0, false),
        ">" => (high + 1, u32::MAX, false),
        ">=" => (low, u32::MAX, false),
        "!=" => (low, high, true),
        _ => (low, high, false),
    };
    let mask = comparison.mask;
    Ok((Wanted { mask, low, high }, negated))
}

fn one_or(mut all: Vec<Test>, join: fn(Vec<Test>) -> Test) -> Test {
    match all.len() {
        1 => all.remove(0),
        _ => join(all),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(short: &str, long: &str) {
        assert_eq!(parse(short), parse(long), "{short}");
        assert!(parse(long).is_ok(), "{long}: {:?}", parse(long));
    }

    #[test]
    fn words_that_can_be_left_out() {
        same("www", "port 80");
        same("syn", "tcp opt syn");
        same("tcp syn", "tcp opt syn");
        same("10.0.0.0/24", "net 10.0.0.0/24");
        same("10/8 or 0/0", "net 10.0.0.0/8 or net 0.0.0.0/0");
        same("unfrag", "ip unfrag");
        same("tcp", "ip proto tcp");
        same("icmp echo-reply", "icmp type 0");
        same("icmp type echo or timestamp", "icmp type 8 or icmp type 13");
        same("src port 80 or 81", "src port 80 or src port 81");
        same(
            "dst tcp port 8000 or 8080",
            "dst tcp port 8000 or dst tcp port 8080",
        );
        same(
            "dst tcp www or https",
            "dst tcp port 80 or dst tcp port 443",
        );
        same("src or dst port dns", "port 53");
        same(
            "src 10.0.0.1 or 10.0.0.2",
            "src host 10.0.0.1 or src host 10.0.0.2",
        );
        same("src host 10.0.0.1 and www", "src host 10.0.0.1 and port 80");
        same("fin ack", "tcp opt fin and tcp opt ack");
        same("tcp udp", "tcp and udp");
        same("tcp src host 10.0.0.1", "tcp and src host 10.0.0.1");
        same("tcp src port 1", "src tcp port 1");
        same("tcp[13] 2", "tcp[13:1] == 2");
        same("ip[6:2] & 0x1fff", "ip[6:2] & 0x1fff > 0");
    }

    #[test]
    fn a_test_and_its_contrary() {
        let both = parse("tcp ? dst port 80 : icmp").unwrap();
        assert!(matches!(both, Test::If(_)));
        same(
            "tcp ? dst port 80 : icmp ? true : false",
            "tcp ? (dst port 80) : (icmp ? true : false)",
        );
        // A packet without ports has no other port than 5.
        same("port != 5", "(port >= 0) and not port 5");
    }

    #[test]
    fn wrong_words_are_named() {
        for (text, part) in [
            ("echo", "port echo or icmp type echo"),
            ("80", "such as port 80"),
            ("dst tcp", "the word port is missing behind tcp"),
            ("prot tcp", "there is no test 'prot'"),
            ("ip[6:5] 1", "1 to 4 bytes"),
            ("tcp ? udp", "write :"),
            ("src host > 10.0.0.1", "no order"),
            ("tcp opt sin", "no flag of TCP"),
            ("icmp type 256", "up to 255"),
            ("tcp or", "ends too early"),
            ("(tcp", "not closed"),
            ("& 3", "a mask needs a field"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
