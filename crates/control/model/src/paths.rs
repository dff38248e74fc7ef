//! The path batcher: what belongs together, where it waits, and for how long.

use crate::addr::Mac;
use crate::error::ModelError;
use crate::error::ObjectKind;
use crate::limits;
use crate::name::check_name;
use crate::request::Request;
use crate::validate::within;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Formatter};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

type Check = Result<(), ModelError>;

/// What holds for queues that do not say otherwise, and learning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PathBatcher {
    /// Packets of a full batch.
    pub batch: u32,
    /// The longest that a packet waits for its batch to fill, in microseconds.
    pub timeout_us: u32,
    /// Full batches of a queue that wait for each other and then go one after the other: so their path's code and tables are
    /// fetched once for all of them.
    pub gather: u32,
    /// Learning; none = off.
    pub learn: Option<PathLearning>,
}

impl Default for PathBatcher {
    fn default() -> Self {
        PathBatcher {
            batch: 128,
            timeout_us: 50,
            gather: 1,
            learn: None,
        }
    }
}

/// Gives queues of their own to the heaviest paths that no rule names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PathLearning {
    /// How many queues there are to give away.
    pub queues: u32,
    /// One of so many packets is looked at.
    pub sample: u32,
    /// Milliseconds between two decisions.
    pub interval_ms: u32,
    /// By how many percent a path must outweigh the one whose queue it takes.
    pub margin_percent: u32,
    /// Fields that tell paths apart, besides the headers.
    pub fields: Vec<String>,
}

impl Default for PathLearning {
    fn default() -> Self {
        PathLearning {
            queues: 2,
            sample: 16,
            interval_ms: 100,
            margin_percent: 25,
            fields: Vec::new(),
        }
    }
}

/// A queue. Queue 0, where packets wait that no rule names, is always there.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PathQueue {
    /// Its number, 1 to 63.
    pub id: u32,
    /// Packets of a full batch; none = as the batcher says.
    #[serde(default)]
    pub batch: Option<u32>,
    /// The longest wait in microseconds; none = as the batcher says.
    #[serde(default)]
    pub timeout_us: Option<u32>,
    /// Full batches that wait for each other; none = as the batcher says.
    #[serde(default)]
    pub gather: Option<u32>,
    /// Batches that it may give in its turn; none = 1, and never fewer than were gathered.
    #[serde(default)]
    pub weight: Option<u32>,
    /// Full and overdue batches of strict queues go before all others, lower numbers first; none = takes turns.
    #[serde(default)]
    pub strict: Option<u32>,
}

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

/// A path: packets that match go to a queue.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PathRule {
    /// Its name.
    pub name: String,
    /// Queue, 0 to 63.
    pub queue: u32,
    /// Of several rules that match the highest counts; among equals the first by name.
    #[serde(default)]
    pub priority: u32,
    /// All of these; none = every packet.
    #[serde(default, rename = "match")]
    pub matches: Vec<PathMatch>,
}

/// One test of a rule: `ip6` (there is such a header), `udp.dst=53`, `ip4.dst=10.0.0.0/8`, `tcp.dst=0-1023`,
/// `ip4.tos=0xb8&0xfc`, `path=ethernet/ip4/udp`. `@2` behind a header's name means within the first tunnel.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
pub struct PathMatch {
    /// Header, or header and field; `path`.
    pub field: String,
    /// What its value must be.
    pub test: PathTest,
}

/// What a field's value must be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PathTest {
    /// It is there.
    Present,
    /// This value.
    Is(Literal),
    /// The first bits are those of this value.
    Prefix(Literal, u8),
    /// From one value to another.
    Range(Literal, Literal),
    /// The bits of the second are those of the first.
    Mask(Literal, u128),
    /// These headers in order, and no others.
    Path(Vec<String>),
}

/// A value as it was written.
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
    /// Its bits.
    pub fn bits(self) -> u128 {
        match self {
            Literal::Number(n) => n.into(),
            Literal::Ip4(a) => a.to_bits().into(),
            Literal::Ip6(a) => a.to_bits(),
            Literal::Mac(m) => m.iter().fold(0, |all, b| all << 8 | u128::from(*b)),
        }
    }
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None if text.starts_with(|c: char| c.is_ascii_digit()) => text.parse().ok(),
        None => None,
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

/// Name of a header or field, with `@N` behind a header.
fn is_name(text: &str) -> bool {
    let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_".contains(&b);
    (1..=limits::NAME_LEN).contains(&text.len())
        && text.bytes().all(fits)
        && text.starts_with(|c: char| c.is_ascii_lowercase())
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
            let most = match value {
                Literal::Number(_) => 64,
                Literal::Ip4(_) => 32,
                Literal::Ip6(_) => 128,
                Literal::Mac(_) => 48,
            };
            let bits = bits.filter(|b| *b <= most);
            let bits = bits.ok_or_else(|| format!("'{text}' has no length from 0 to {most}"))?;
            return Ok(PathTest::Prefix(value, bits));
        }
        if let Some((value, mask)) = text.split_once('&') {
            return Ok(PathTest::Mask(
                value.parse()?,
                mask.parse::<Literal>()?.bits(),
            ));
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
                if headers.len() > limits::PATH_HEADERS || !headers.iter().all(|h| is_name(h)) {
                    let most = limits::PATH_HEADERS;
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

impl FromStr for HeaderLink {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad =
            || format!("'{text}' is not a value and a header: write one such as '0x894f ethernet'");
        let mut words = text.split_whitespace();
        let value = words.next().and_then(number).ok_or_else(bad)?;
        let header = words
            .next()
            .filter(|h| is_name(h))
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
        let (Some(bit), Some(bits), true) = (bit, bits, is_name(name)) else {
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

as_text!(PathMatch, HeaderLink, HeaderField);

fn times(batch: u32, timeout_us: u32) -> Check {
    within("batch", batch, limits::PATH_BATCH)?;
    within("timeout", timeout_us, limits::PATH_TIMEOUT_US)
}

impl PathBatcher {
    pub(crate) fn validate(&self) -> Check {
        times(self.batch, self.timeout_us)?;
        within("gather", self.gather, limits::PATH_GATHER)?;
        let Some(learn) = &self.learn else {
            return Ok(());
        };
        within("learn", learn.queues, 1..=32)?;
        within("learn-sample", learn.sample, 1..=65_536)?;
        within("learn-interval", learn.interval_ms, 10..=60_000)?;
        within("learn-margin", learn.margin_percent, 0..=1000)?;
        within("fields to learn by", learn.fields.len(), 0..=4)?;
        for field in &learn.fields {
            if !is_field(field) || !field.contains('.') {
                let why = "name a header's field such as vlan.id";
                return Err(ModelError::invalid(format!("learn-field {field}"), why));
            }
        }
        Ok(())
    }
}

impl PathQueue {
    pub(crate) fn validate(&self) -> Check {
        within("queue", self.id, 1..=limits::PATH_QUEUES - 1)?;
        times(self.batch.unwrap_or(1), self.timeout_us.unwrap_or(1))?;
        within("gather", self.gather.unwrap_or(1), limits::PATH_GATHER)?;
        within("weight", self.weight.unwrap_or(1), 1..=64)?;
        within("strict", self.strict.unwrap_or(1), 1..=255)
    }
}

/// What a header of the operator's is called: like the built-in ones.
pub(crate) fn header_name(name: &str) -> Check {
    check_name(ObjectKind::PathHeader, name)?;
    if is_name(name) && name != "path" {
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

impl PathRule {
    pub(crate) fn validate(&self) -> Check {
        check_name(ObjectKind::PathRule, &self.name)?;
        within("queue", self.queue, 0..=limits::PATH_QUEUES - 1)?;
        within("priority", self.priority, 0..=65_535)?;
        within("matches", self.matches.len(), 0..=16)
    }

    /// Its tests in order, as a rule of the same meaning has them.
    pub fn sorted(&self) -> Vec<PathMatch> {
        let mut all = self.matches.clone();
        all.sort();
        all.dedup();
        all
    }
}

fn opt(f: &mut Formatter<'_>, word: &str, value: Option<u32>) -> fmt::Result {
    value.map_or(Ok(()), |value| write!(f, " {word} {value}"))
}

impl Display for PathBatcher {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let usual = PathBatcher::default();
        let unless = |value: u32, usual: u32| (value != usual).then_some(value);
        f.write_str("set path-batcher defaults")?;
        opt(f, "batch", unless(self.batch, usual.batch))?;
        opt(f, "timeout", unless(self.timeout_us, usual.timeout_us))?;
        opt(f, "gather", unless(self.gather, usual.gather))?;
        let Some(learn) = &self.learn else {
            return Ok(());
        };
        let usual = PathLearning::default();
        write!(f, " learn {}", learn.queues)?;
        opt(f, "learn-sample", unless(learn.sample, usual.sample))?;
        opt(
            f,
            "learn-interval",
            unless(learn.interval_ms, usual.interval_ms),
        )?;
        opt(
            f,
            "learn-margin",
            unless(learn.margin_percent, usual.margin_percent),
        )?;
        let mut fields = learn.fields.iter();
        fields.try_for_each(|field| write!(f, " learn-field {field}"))
    }
}

impl Display for PathQueue {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "set path-batcher queue {}", self.id)?;
        opt(f, "batch", self.batch)?;
        opt(f, "timeout", self.timeout_us)?;
        opt(f, "gather", self.gather)?;
        opt(f, "weight", self.weight)?;
        opt(f, "strict", self.strict)
    }
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

impl Display for PathRule {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "set path-batcher rule {} queue {}",
            self.name, self.queue
        )?;
        opt(f, "priority", Some(self.priority).filter(|p| *p != 0))?;
        let mut matches = self.matches.iter();
        matches.try_for_each(|m| write!(f, " match {m}"))
    }
}

/// Checks requests of the path batcher; any other is fine here.
pub(crate) fn validate(request: &Request) -> Check {
    match request {
        Request::PathBatcherSet(it) => it.validate(),
        Request::PathHeaderSet(it) => it.validate(),
        Request::PathHeaderDel { name } => header_name(name),
        Request::PathQueueSet(it) => it.validate(),
        Request::PathQueueDel { id: 0 } => crate::validate::always_there("path-batcher queue 0"),
        Request::PathRuleSet(it) => it.validate(),
        Request::PathRuleDel { name } => check_name(ObjectKind::PathRule, name),
        _ => Ok(()),
    }
}

/// Spells requests of the path batcher.
pub(crate) fn spell(request: &Request, f: &mut Formatter<'_>) -> fmt::Result {
    match request {
        Request::PathBatcherSet(it) => write!(f, "{it}"),
        Request::PathHeaderSet(it) => write!(f, "{it}"),
        Request::PathQueueSet(it) => write!(f, "{it}"),
        Request::PathRuleSet(it) => write!(f, "{it}"),
        Request::PathHeaderDel { name } => write!(f, "delete path-batcher header {name}"),
        Request::PathQueueDel { id } => write!(f, "delete path-batcher queue {id}"),
        Request::PathRuleDel { name } => write!(f, "delete path-batcher rule {name}"),
        Request::InterfacePathBatcher { name, switch } => {
            write!(f, "set interface path-batcher {switch} {name}")
        }
        _ => Ok(()),
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
