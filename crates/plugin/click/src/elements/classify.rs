//! Classifier, IPClassifier, IPFilter.

use super::expression::{self, Test, View};
use crate::arguments::{Arguments, plain_words};
use crate::element::{Each, Fast, Made, Reason, Verdict};
use crate::packet::Ip;
use crate::spec::Need::Rest;
use crate::spec::{Kind, Spec, argument};
use std::sync::Arc;
use volley_graph::Packet;

/// Bytes at a place under a mask.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Clause {
    at: usize,
    value: Vec<u8>,
    mask: Vec<u8>,
    negated: bool,
}

impl Clause {
    fn holds(&self, bytes: &[u8]) -> bool {
        let found = bytes
            .get(self.at..self.at + self.value.len())
            .is_some_and(|bytes| {
                let masked = bytes.iter().zip(&self.mask).map(|(byte, mask)| byte & mask);
                masked.eq(self.value.iter().copied())
            });
        found != self.negated
    }
}

/// Sends packets to the output of the first pattern that they match.
#[derive(Clone)]
struct Classifier {
    patterns: Arc<[Vec<Clause>]>,
}

impl Classifier {
    /// EtherTypes of patterns, each with the output of all its packets: no byte but those of the type decides.
    fn ether_types(&self) -> Arc<[(u16, usize)]> {
        let type_of = |it: &Clause| match (it.at, it.negated, &it.mask[..], &it.value[..]) {
            (12, false, [0xff, 0xff], &[high, low]) => Some(u16::from_be_bytes([high, low])),
            _ => None,
        };
        let all = self.patterns.iter().flatten().filter_map(type_of);
        let decided = all.filter_map(|ether_type| {
            // The first pattern that packets of the type can match.
            let mut patterns = self.patterns.iter().enumerate();
            let can = |all: &[Clause]| {
                all.iter()
                    .all(|it| type_of(it).is_none_or(|t| t == ether_type))
            };
            let (port, all) = patterns.find(|(_, all)| can(all))?;
            let always = all.iter().all(|it| type_of(it).is_some());
            always.then_some((ether_type, port))
        });
        decided.collect()
    }
}

impl Each for Classifier {
    fn fast(&self) -> Fast {
        Fast::EtherTypes(self.ether_types())
    }

    fn packet(&mut self, packet: &mut Packet<'_>, _: u64) -> Verdict {
        let bytes = packet.bytes();
        let mut patterns = self.patterns.iter();
        let found = patterns.position(|all| all.iter().all(|it| it.holds(bytes)));
        found.map_or(Verdict::drop(Reason::Unmatched), Verdict::port)
    }
}

/// `12/0800`, `!14/4?%f0`
fn clause(text: &str) -> Option<Clause> {
    let (negated, text) = match text.strip_prefix('!') {
        Some(text) => (true, text),
        None => (false, text),
    };
    let (at, value) = text.split_once('/')?;
    let at = at.parse::<usize>().ok().filter(|at| *at < 2048)?;
    let (value, mask) = match value.split_once('%') {
        Some((value, mask)) => (value, Some(mask)),
        None => (value, None),
    };
    if value.is_empty() || value.len() % 2 != 0 || value.len() > 256 {
        return None;
    }
    let digits = |text: &str, wild: u8| -> Option<Vec<u8>> {
        text.bytes()
            .map(|digit| match digit {
                b'?' => Some(wild),
                other => (other as char).to_digit(16).map(|it| it as u8),
            })
            .collect()
    };
    let pairs = |digits: Vec<u8>| {
        digits
            .chunks(2)
            .map(|it| it[0] << 4 | it[1])
            .collect::<Vec<u8>>()
    };
    let wild: Vec<u8> = value
        .bytes()
        .map(|digit| if digit == b'?' { 0 } else { 15 })
        .collect();
    let mut bits = pairs(wild);
    if let Some(mask) = mask {
        if mask.len() != value.len() {
            return None;
        }
        let mask = pairs(digits(mask, 0)?);
        bits.iter_mut()
            .zip(mask)
            .for_each(|(bits, mask)| *bits &= mask);
    }
    let mut bytes = pairs(digits(value, 0)?);
    bytes
        .iter_mut()
        .zip(&bits)
        .for_each(|(byte, mask)| *byte &= mask);
    Some(Clause {
        at,
        value: bytes,
        mask: bits,
        negated,
    })
}

fn classifier(arguments: &Arguments) -> Result<Made, String> {
    let mut patterns = Vec::new();
    for text in arguments.rest() {
        let words = plain_words(text);
        if words == ["-"] {
            patterns.push(Vec::new());
            continue;
        }
        let clauses: Option<Vec<Clause>> = words.iter().map(|word| clause(word)).collect();
        let clauses = clauses.filter(|it| !it.is_empty()).ok_or_else(|| {
            format!(
                "'{text}' is no pattern: give place and hexadecimal digits, such as 12/0800, or -"
            )
        })?;
        patterns.push(clauses);
    }
    let outputs = patterns.len();
    match outputs {
        0 => Err("Classifier needs a pattern: give one such as 12/0800, or -".to_owned()),
        _ => Ok(Made::each(Classifier {
            patterns: patterns.into(),
        })
        .outputs(outputs)),
    }
}

/// Tests a packet of IP; the first rule that holds gives the output, none the drop.
#[derive(Clone)]
struct IpRules {
    rules: Arc<[(Test, Option<usize>)]>,
}

impl Each for IpRules {
    fn packet(&mut self, packet: &mut Packet<'_>, _: u64) -> Verdict {
        let Some(ip) = Ip::of(&packet.view()) else {
            return Verdict::drop(Reason::NoIpHeader);
        };
        let bytes = packet.bytes();
        let end = bytes.len().min(ip.at + ip.total);
        let view = View {
            header: ip.bytes(bytes),
            payload: bytes.get(ip.at + ip.header..end).unwrap_or_default(),
        };
        match self.rules.iter().find(|(test, _)| test.holds(&view)) {
            Some((_, Some(port))) => Verdict::port(*port),
            Some((_, None)) => Verdict::drop(Reason::Refused),
            None => Verdict::drop(Reason::Unmatched),
        }
    }
}

fn rules(rules: Vec<(Test, Option<usize>)>, outputs: usize) -> Made {
    Made::each(IpRules {
        rules: rules.into(),
    })
    .outputs(outputs)
}

fn ip_classifier(arguments: &Arguments) -> Result<Made, String> {
    let mut all = Vec::new();
    for (port, text) in arguments.rest().iter().enumerate() {
        let test = expression::parse(text).map_err(|why| format!("in '{text}': {why}"))?;
        all.push((test, Some(port)));
    }
    match all.len() {
        0 => Err("IPClassifier needs an expression: give one such as tcp, or -".to_owned()),
        n => Ok(rules(all, n)),
    }
}

fn ip_filter(arguments: &Arguments) -> Result<Made, String> {
    let mut all = Vec::new();
    for text in arguments.rest() {
        let (action, test) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let port = match action {
            "allow" | "accept" => Some(0),
            "deny" | "drop" | "reject" => None,
            number => Some(number.parse::<usize>().ok().filter(|it| *it < 1024).ok_or_else(|| {
                format!("'{action}' is no action: write allow, deny or the number of an output in front of the expression")
            })?),
        };
        let test = expression::parse(test).map_err(|why| format!("in '{text}': {why}"))?;
        all.push((test, port));
    }
    let outputs = all
        .iter()
        .filter_map(|(_, port)| *port)
        .max()
        .map_or(1, |port| port + 1);
    match all.is_empty() {
        true => Err("IPFilter needs a rule: give one such as allow tcp".to_owned()),
        false => Ok(rules(all, outputs).outputs_from(outputs)),
    }
}

const CLASSIFIER: Spec = Spec {
    name: "Classifier",
    ports: "1/-",
    modes: "h/h",
    arguments: &[argument(
        Rest,
        "PATTERNS",
        Kind::Words,
        "for each output: clauses PLACE/DIGITS[%MASK], with ! for the contrary and ? for any digit; - matches all",
    )],
    handlers: &[],
    text: "Sends packets to the output of the first pattern that they match.",
    make: |arguments, _| classifier(arguments),
};

pub(super) const SPECS: &[Spec] = &[
    CLASSIFIER,
    Spec {
        name: "IPClassifier",
        arguments: &[argument(
            Rest,
            "EXPRESSIONS",
            Kind::Words,
            "for each output: tests such as `src net 10.0.0.0/8 and tcp port 80`; - matches all",
        )],
        text: "Sends packets of IP to the output of the first expression that holds.",
        make: |arguments, _| ip_classifier(arguments),
        ..CLASSIFIER
    },
    Spec {
        name: "IPFilter",
        arguments: &[argument(
            Rest,
            "RULES",
            Kind::Words,
            "allow, deny or an output, and an expression as of IPClassifier",
        )],
        text: "Sends packets of IP to the output of the first rule whose expression holds, or drops them.",
        make: |arguments, _| ip_filter(arguments),
        ..CLASSIFIER
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_that_decide_alone() {
        let types = |patterns: &[&str]| {
            let all = patterns.iter().map(|text| {
                let words = text.split(' ').filter(|it| *it != "-");
                words.map(|it| clause(it).unwrap()).collect()
            });
            let classifier = Classifier {
                patterns: all.collect(),
            };
            classifier.ether_types().to_vec()
        };
        let usual = ["12/0806 20/0001", "12/0806 20/0002", "12/0800", "-"];
        assert_eq!(types(&usual), [(0x800, 2)]);
        assert_eq!(types(&["14/45", "12/0800"]), []);
        assert_eq!(types(&["!12/0800", "12/0800"]), []);
        assert_eq!(types(&["12/0800%ff00", "12/0806", "12/0806"]), []);
        assert_eq!(types(&["-", "12/0800"]), [(0x800, 0)]);
    }

    #[test]
    fn clauses_have_masks_and_wild_cards() {
        let holds = |text: &str, bytes: &[u8]| clause(text).is_some_and(|it| it.holds(bytes));
        assert!(holds("1/0a?f", &[0, 10, 0x3f]) && !holds("1/0a?f", &[0, 10, 0x3e]));
        assert!(holds("0/40%f0", &[0x45]) && !holds("0/40%f0", &[0x55]));
        assert!(holds("!0/08", &[9]) && holds("!0/08", &[]) && !holds("0/08", &[]));
        let wrong = ["0/8", "x/08", "0/0g", "0/08%f", "0/", "08"];
        assert!(wrong.iter().all(|text| clause(text).is_none()));
    }
}
