//! Objects of the path batcher: its defaults, queues, rules, and the interfaces whose packets wait in it.

pub use crate::header::PathHeader;
use crate::header::{is_header_name as is_name, number};
use crate::show::ShowPathBatcher;
use std::fmt::{self, Display, Formatter};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;
use volley_model::Mac;
use volley_object::{Class, DefinitionError, FieldError, Object, Query, Verb, refuse, text_field};

/// Headers of one packet that the path batcher reads.
const HEADERS: usize = 8;
/// Largest number of tests of a rule.
const TESTS: usize = 16;
/// Largest number of fields that distinguish learned paths.
const LEARN_FIELDS: usize = 4;

/// Defaults of the path batcher's queues, and learning: the heaviest paths that no rule names get queues of their own.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "path_batcher", file = "[path_batcher]", check = BatcherSettings::check, after = "path_header")]
#[object(group(
    "set path-batcher",
    "The path batcher: queues, rules, headers, defaults."
))]
#[object(group(
    "delete path-batcher",
    "Remove headers, queues and rules of the path batcher."
))]
#[object(set = "set path-batcher defaults {fields}")]
#[object(example = "set path-batcher defaults batch 64 timeout 100 learn 2")]
pub struct BatcherSettings {
    /// Packets of a full batch.
    #[object(default = 128, range = 1u32..=1024)]
    pub batch: u32,
    /// Longest wait of a packet.
    #[object(default = 50, range = 1u32..=1_000_000, unit = "us")]
    pub timeout: u32,
    /// Full batches of a queue that wait for each other.
    #[object(default = 1, range = 1u32..=16)]
    pub gather: u32,
    /// Queues for learned paths; 0 = no learning.
    #[object(default = 0, range = 0u32..=32)]
    pub learn: u32,
    /// Learning: one of so many packets is sampled.
    #[object(default = 16, range = 1u32..=65_536)]
    pub learn_sample: u32,
    /// Learning: time between two decisions.
    #[object(default = 100, range = 10u32..=60_000, unit = "ms")]
    pub learn_interval: u32,
    /// Learning: by how much a path must outweigh the path whose queue it takes.
    #[object(default = 25, range = 0u32..=1000, unit = "percent")]
    pub learn_margin: u32,
    /// Learning: fields that tell paths apart besides the headers, 4 at most.
    #[object(example = "vlan.id")]
    pub learn_field: Vec<String>,
}

impl BatcherSettings {
    /// The settings if learning is enabled.
    pub fn learning(&self) -> Option<&Self> {
        (self.learn > 0).then_some(self)
    }

    /// Whether other settings learn paths in the same way.
    pub(crate) fn learns_as(&self, other: &Self) -> bool {
        let of = |it: &Self| {
            let numbers = [
                it.learn,
                it.learn_sample,
                it.learn_interval,
                it.learn_margin,
            ];
            it.learning().map(|it| (numbers, it.learn_field.clone()))
        };
        of(self) == of(other)
    }

    fn check(&self) -> Result<(), FieldError> {
        let usual = BatcherSettings {
            learn: 0,
            batch: self.batch,
            timeout: self.timeout,
            gather: self.gather,
            ..BatcherSettings::default()
        };
        if self.learn == 0 && *self != usual {
            let why = "must be given, as the other settings of learning are: 1 to 32 queues";
            return refuse("learn", why);
        }
        if self.learn_field.len() > LEARN_FIELDS {
            let why = format!(
                "must be {LEARN_FIELDS} at most, not {}",
                self.learn_field.len()
            );
            return refuse("learn_field", why);
        }
        let bad = |field: &&String| !is_field(field) || !field.contains('.');
        match self.learn_field.iter().find(bad) {
            Some(bad) => {
                let why = format!("must be a field of a header such as vlan.id, not '{bad}'");
                refuse("learn_field", why)
            }
            None => Ok(()),
        }
    }
}

/// Queue of the path batcher. Queue 0, for packets that no rule names, always exists.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "path_queue", file = "[[path_queue]]")]
#[object(set = "set path-batcher queue <id> {fields}")]
#[object(unset = "delete path-batcher queue <id>")]
#[object(example = "set path-batcher queue 1 batch 128 timeout 50")]
pub struct PathQueue {
    /// Number of the queue.
    #[object(key, range = 1u32..=63)]
    pub id: u32,
    /// Packets of a full batch; the batcher's default where it is not set.
    #[object(range = 1u32..=1024)]
    pub batch: Option<u32>,
    /// Longest wait of a packet; the batcher's default where it is not set.
    #[object(range = 1u32..=1_000_000, unit = "us")]
    pub timeout: Option<u32>,
    /// Full batches that wait for each other; the batcher's default where it is not set.
    #[object(range = 1u32..=16)]
    pub gather: Option<u32>,
    /// Batches in one turn of the queue, never fewer than were gathered; 1 where it is not set.
    #[object(range = 1u32..=64)]
    pub weight: Option<u32>,
    /// Strict priority, lower numbers first: full and overdue batches take precedence over queues that take turns.
    #[object(range = 1u32..=255)]
    pub strict: Option<u32>,
}

/// Rule of the path batcher: packets that match wait in a queue.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "path_rule", file = "[[path_rule]]", check = PathRule::check, recreate, after = "path_header")]
#[object(set = "set path-batcher rule <name> queue <queue> {priority <priority> | match <match>}")]
#[object(unset = "delete path-batcher rule <name>")]
#[object(example = "set path-batcher rule dns queue 1 priority 10 match udp.dst=53")]
pub struct PathRule {
    /// Name of the rule.
    #[object(key)]
    pub name: String,
    /// Queue; 0 is the default queue.
    #[object(needs = "path_queue", range = 0u32..=63)]
    pub queue: u32,
    /// Of several rules that match the one with the highest priority is used; among equals the first by name.
    #[object(default = 0, range = 0u32..=65_535)]
    pub priority: u32,
    /// Tests that all must match, 16 at most; without one the rule matches every packet.
    pub r#match: Vec<PathMatch>,
}

impl PathRule {
    fn check(&self) -> Result<(), FieldError> {
        match self.r#match.len() {
            0..=TESTS => Ok(()),
            many => refuse(
                "match",
                format!("must be {TESTS} tests at most, not {many}"),
            ),
        }
    }

    /// The tests in canonical order.
    pub(crate) fn sorted(&self) -> Vec<PathMatch> {
        let mut all = self.r#match.clone();
        all.sort();
        all.dedup();
        all
    }
}

/// Packets that the interface receives wait in the path batcher.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "interface_path_batcher", file = "interface.path_batcher")]
#[object(set = "set interface path-batcher <enabled> <interface>")]
#[object(example = "set interface path-batcher on pg0")]
pub struct InterfaceBatcher {
    /// Receiving interface.
    #[object(key, part_of = "interface")]
    pub interface: String,
    /// Collect packets of one path.
    #[object(default = false)]
    pub enabled: bool,
}

/// Set counters of the path batcher back.
#[derive(Clone, Debug, PartialEq, Eq, Verb)]
#[verb(name = "path-batcher-clear", command = "clear path-batcher")]
#[verb(example = "clear path-batcher")]
pub struct PathBatcherClear;

/// The classes of this crate.
pub fn classes() -> Result<Vec<Class>, DefinitionError> {
    ShowPathBatcher::query()?;
    PathBatcherClear::verb()?;
    Ok(vec![
        PathHeader::class()?,
        BatcherSettings::class()?,
        PathQueue::class()?,
        PathRule::class()?,
        InterfaceBatcher::class()?,
    ])
}

text_field!(
    PathMatch,
    "a match",
    Any,
    ["udp.dst=53", "ip6", "ip4.dst=10.0.0.0/8"]
);

/// One test of a rule: `ip6` (the header is present), `udp.dst=53`, `ip4.dst=10.0.0.0/8`, `tcp.dst=0-1023`,
/// `ip4.tos=0xb8&0xfc`, `path=ethernet/ip4/udp`. `@2` behind a header's name means within the first tunnel.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathMatch {
    /// Header, or header and field; `path`.
    pub field: String,
    /// Test of the value.
    pub test: PathTest,
}

/// Test of a field's value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PathTest {
    /// The header is present.
    Present,
    /// Equal to this value.
    Is(Literal),
    /// The first bits equal those of this value.
    Prefix(Literal, u8),
    /// Within a range, ends included.
    Range(Literal, Literal),
    /// The value, masked by the second number, equals the first.
    Mask(Literal, u128),
    /// Exactly these headers in order.
    Path(Vec<String>),
}

/// A value in the notation of the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Literal {
    /// A number.
    Number(u64),
    /// An IPv4 address.
    Ip4(Ipv4Addr),
    /// An IPv6 address.
    Ip6(Ipv6Addr),
    /// A MAC address.
    Mac([u8; 6]),
}

impl Literal {
    /// The value as a number.
    pub fn bits(self) -> u128 {
        match self {
            Literal::Number(n) => n.into(),
            Literal::Ip4(a) => a.to_bits().into(),
            Literal::Ip6(a) => a.to_bits(),
            Literal::Mac(m) => m.iter().fold(0, |all, b| all << 8 | u128::from(*b)),
        }
    }
}

impl Literal {
    /// Largest number of bits of a value of this type.
    fn width(self) -> u8 {
        match self {
            Literal::Number(_) => 64,
            Literal::Ip4(_) => 32,
            Literal::Ip6(_) => 128,
            Literal::Mac(_) => 48,
        }
    }
}

impl FromStr for Literal {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("'{text}' is not a number, MAC or IP address");
        number(text)
            .map(Literal::Number)
            .or_else(|| text.parse().map(Literal::Ip4).ok())
            .or_else(|| text.parse::<Mac>().map(|m| Literal::Mac(m.0)).ok())
            .or_else(|| text.parse().map(Literal::Ip6).ok())
            .ok_or_else(bad)
    }
}

impl Display for Literal {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Literal::Number(n) => write!(f, "{n}"),
            Literal::Ip4(a) => write!(f, "{a}"),
            Literal::Ip6(a) => write!(f, "{a}"),
            Literal::Mac(m) => write!(f, "{}", Mac(*m)),
        }
    }
}

/// `header`, `header@N`, with or without `.field`.
fn is_field(text: &str) -> bool {
    let (header, field) = match text.split_once('.') {
        Some((header, field)) => (header, Some(field)),
        None => (text, None),
    };
    let (name, level) = header.split_once('@').unwrap_or((header, "1"));
    let level = matches!(level.as_bytes(), [b'1'..=b'4']);
    is_name(name) && level && field.is_none_or(is_name)
}

impl FromStr for PathTest {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some((value, bits)) = text.split_once('/') {
            let (value, bits): (Literal, Option<u8>) = (value.parse()?, bits.parse().ok());
            let most = value.width();
            let bits = bits.filter(|b| *b <= most);
            let bits = bits.ok_or_else(|| format!("'{text}' has no length from 0 to {most}"))?;
            return Ok(PathTest::Prefix(value, bits));
        }
        if let Some((value, mask)) = text.split_once('&') {
            let (value, mask): (Literal, Literal) = (value.parse()?, mask.parse()?);
            let (width, mask) = (value.width(), mask.bits());
            return match 128 - mask.leading_zeros() <= u32::from(width) {
                true => Ok(PathTest::Mask(value, mask)),
                false => Err(format!("'{text}' has a mask of more than {width} bits")),
            };
        }
        if let Some((low, high)) = text.split_once('-') {
            let (low, high): (Literal, Literal) = (low.parse()?, high.parse()?);
            if low.bits() > high.bits() {
                return Err(format!("'{text}' ends before it begins"));
            }
            return Ok(PathTest::Range(low, high));
        }
        text.parse().map(PathTest::Is)
    }
}

impl FromStr for PathMatch {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (field, test) = match text.split_once('=') {
            None => (text, PathTest::Present),
            Some(("path", path)) => {
                let headers: Vec<String> = path.split('/').map(str::to_owned).collect();
                if headers.len() > HEADERS || !headers.iter().all(|h| is_name(h)) {
                    let most = HEADERS;
                    return Err(format!(
                        "'{path}' is not a path: write up to {most} headers such as ethernet/ip4/udp"
                    ));
                }
                ("path", PathTest::Path(headers))
            }
            Some((field, value)) => (field, value.parse()?),
        };
        let needs_value = field == "path" && test == PathTest::Present;
        if !is_field(field) || needs_value {
            return Err(format!(
                "'{text}' is not a match: write one such as ip6, udp.dst=53, ip4.dst=10.0.0.0/8, tcp.dst=0-1023 or path=ethernet/ip4/udp"
            ));
        }
        if test != PathTest::Present && !field.contains('.') && field != "path" {
            return Err(format!("'{field}' is a header: name one of its fields"));
        }
        let field = field.replace("@1", "");
        Ok(PathMatch { field, test })
    }
}

impl Display for PathMatch {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.field)?;
        match &self.test {
            PathTest::Present => Ok(()),
            PathTest::Is(value) => write!(f, "={value}"),
            PathTest::Prefix(value, bits) => write!(f, "={value}/{bits}"),
            PathTest::Range(low, high) => write!(f, "={low}-{high}"),
            PathTest::Mask(value, mask) => match value {
                Literal::Number(n) => write!(f, "={n:#x}&{mask:#x}"),
                Literal::Ip4(_) => write!(f, "={value}&{}", Ipv4Addr::from_bits(*mask as u32)),
                Literal::Ip6(_) => write!(f, "={value}&{}", Ipv6Addr::from_bits(*mask)),
                Literal::Mac(_) => write!(f, "={value}&{mask:#x}"),
            },
            PathTest::Path(headers) => write!(f, "={}", headers.join("/")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_there_and_back() {
        for text in [
            "ip6",
            "ip4@2",
            "udp.dst=53",
            "ip4.dst=10.0.0.0/8",
            "ip6.dst=2001:db8::/32",
            "tcp.dst=0-1023",
            "ip4.tos=0xb8&0xfc",
            "ethernet.dst=02:00:00:00:00:01",
            "path=ethernet/ip4/udp",
        ] {
            assert_eq!(text.parse::<PathMatch>().unwrap().to_string(), text);
        }
        for bad in [
            "",
            "=",
            "ip4=4",
            "ip4.dst=",
            "ip4.dst=10.0.0.0/33",
            // Found by the fuzz target batcher_text.
            "ip4.src=10.0.0.0&0xf04f000000",
            "udp.dst=9-1",
            "ip4@9.dst=1",
            "path",
            "path=",
            "udp.dst=53/x",
            "UDP.dst=1",
            "a.b.c=1",
        ] {
            assert!(bad.parse::<PathMatch>().is_err(), "{bad}");
        }
        assert_eq!("ip4@1.dst=1".parse::<PathMatch>().unwrap().field, "ip4.dst");
    }
}
