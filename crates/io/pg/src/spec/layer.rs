//! Layers of a packet template: which there are, which fields they have, and where those lie in the header.
//!
//! The field table is the only place that knows field names: template text, edits, completion and the packet builder
//! read it. A field's place is a bit offset from the start of its header, most significant bit first.

use super::fields::*;
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;
use volley_model::Mac;

/// Kinds of layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LayerKind {
    /// Ethernet II.
    Eth,
    /// 802.1Q tag (type 0x8100 in the layer before).
    Vlan,
    /// 802.1ad tag (type 0x88a8 in the layer before).
    Qinq,
    /// ARP for IPv4 over Ethernet.
    Arp,
    /// MPLS label.
    Mpls,
    /// IPv4.
    Ip4,
    /// IPv6.
    Ip6,
    /// IPv6 hop-by-hop options.
    Ip6Hbh,
    /// IPv6 destination options.
    Ip6Dst,
    /// IPv6 fragment header.
    Ip6Frag,
    /// ICMP.
    Icmp,
    /// ICMPv6.
    Icmp6,
    /// UDP.
    Udp,
    /// TCP.
    Tcp,
    /// Bytes.
    Payload,
}

/// What a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// A number of at most `bits` bits.
    Uint,
    /// A MAC address.
    Mac,
    /// An IPv4 address.
    Ip4,
    /// An IPv6 address.
    Ip6,
    /// Any number of bytes, in hex, behind the fixed header.
    Bytes,
}

/// What a field is when the template does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldDefault {
    /// This number.
    Is(u64),
    /// Computed: lengths, checksums, type of the next layer.
    Auto,
}

/// One field of a layer.
#[derive(Debug, PartialEq, Eq)]
pub struct FieldDef {
    /// Name in templates and edits.
    pub name: &'static str,
    /// Offset in the header, in bits.
    pub at_bit: u16,
    /// Width in bits; 0 for [`FieldKind::Bytes`] and for properties that are no field (payload's).
    pub bits: u8,
    /// What it holds.
    pub kind: FieldKind,
    /// Without a value in the template.
    pub default: FieldDefault,
    /// One line for `?`.
    pub text: &'static str,
}

impl FieldDef {
    /// True when an edit can address it: a field with a place in the header.
    pub fn is_editable(&self) -> bool {
        self.bits > 0
    }
}

impl LayerKind {
    /// Every kind with its name.
    pub const ALL: [(&'static str, LayerKind); 15] = [
        ("eth", LayerKind::Eth),
        ("vlan", LayerKind::Vlan),
        ("qinq", LayerKind::Qinq),
        ("arp", LayerKind::Arp),
        ("mpls", LayerKind::Mpls),
        ("ip4", LayerKind::Ip4),
        ("ip6", LayerKind::Ip6),
        ("ip6-hbh", LayerKind::Ip6Hbh),
        ("ip6-dst", LayerKind::Ip6Dst),
        ("ip6-frag", LayerKind::Ip6Frag),
        ("icmp", LayerKind::Icmp),
        ("icmp6", LayerKind::Icmp6),
        ("udp", LayerKind::Udp),
        ("tcp", LayerKind::Tcp),
        ("payload", LayerKind::Payload),
    ];

    /// Name in templates and edits.
    pub fn name(self) -> &'static str {
        LayerKind::ALL[self as usize].0
    }

    /// The kind of this name.
    pub fn by_name(name: &str) -> Option<LayerKind> {
        let found = LayerKind::ALL.iter().find(|(n, _)| *n == name);
        found.map(|(_, kind)| *kind)
    }

    /// Its fields.
    pub fn fields(self) -> &'static [FieldDef] {
        match self {
            LayerKind::Eth => &ETH,
            LayerKind::Vlan | LayerKind::Qinq => &VLAN,
            LayerKind::Arp => &ARP,
            LayerKind::Mpls => &MPLS,
            LayerKind::Ip4 => &IP4,
            LayerKind::Ip6 => &IP6,
            LayerKind::Ip6Hbh | LayerKind::Ip6Dst => &IP6_OPTIONS,
            LayerKind::Ip6Frag => &IP6_FRAG,
            LayerKind::Icmp => &ICMP,
            LayerKind::Icmp6 => &ICMP6,
            LayerKind::Udp => &UDP,
            LayerKind::Tcp => &TCP,
            LayerKind::Payload => &PAYLOAD,
        }
    }

    /// The field of this name.
    pub fn field(self, name: &str) -> Option<&'static FieldDef> {
        self.fields().iter().find(|f| f.name == name)
    }

    /// Bytes of the fixed header (without options; 0 for the payload).
    pub fn header_len(self) -> usize {
        match self {
            LayerKind::Eth => 14,
            LayerKind::Vlan | LayerKind::Qinq | LayerKind::Mpls => 4,
            LayerKind::Ip6Hbh | LayerKind::Ip6Dst => 2,
            LayerKind::Arp => 28,
            LayerKind::Ip4 | LayerKind::Tcp => 20,
            LayerKind::Ip6 => 40,
            LayerKind::Ip6Frag | LayerKind::Icmp | LayerKind::Icmp6 | LayerKind::Udp => 8,
            LayerKind::Payload => 0,
        }
    }
}

impl fmt::Display for LayerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One layer of a template: its kind, and the fields that are given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// Kind.
    pub kind: LayerKind,
    /// Fields with a value, each at most once.
    pub fields: Vec<FieldValue>,
}

impl Layer {
    /// Value given for a field.
    pub fn value(&self, name: &str) -> Option<&Value> {
        let found = self.fields.iter().find(|f| f.field.name == name);
        found.map(|f| &f.value)
    }
}

/// A field with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldValue {
    /// Which field of its layer.
    pub field: &'static FieldDef,
    /// Its value, of the field's kind and width.
    pub value: Value,
}

/// A value of a field.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// A number.
    Uint(u64),
    /// A MAC address.
    Mac(Mac),
    /// An IPv4 address.
    Ip4(Ipv4Addr),
    /// An IPv6 address.
    Ip6(Ipv6Addr),
    /// Bytes.
    Bytes(Vec<u8>),
}

impl Value {
    /// Reads a value for a field; the error says what would be right.
    pub fn parse(field: &FieldDef, text: &str) -> Result<Value, String> {
        let value = Value::of_kind(field.kind, text)?;
        match value {
            Value::Uint(n) if !fits(n, field.bits) => Err(format!(
                "{n} does not fit in the {} bits of {}",
                field.bits, field.name
            )),
            value => Ok(value),
        }
    }

    /// Reads a value of a kind.
    pub fn of_kind(kind: FieldKind, text: &str) -> Result<Value, String> {
        match kind {
            FieldKind::Uint => number(text)
                .map(Value::Uint)
                .ok_or_else(|| format!("'{text}' is not a number: write one such as 64 or 0x40")),
            FieldKind::Mac => text.parse().map(Value::Mac).map_err(|e| format!("{e}")),
            FieldKind::Ip4 => text.parse().map(Value::Ip4).map_err(|_| {
                format!("'{text}' is not an IPv4 address: write one such as 192.0.2.1")
            }),
            FieldKind::Ip6 => text.parse().map(Value::Ip6).map_err(|_| {
                format!("'{text}' is not an IPv6 address: write one such as 2001:db8::1")
            }),
            FieldKind::Bytes => bytes(text).map(Value::Bytes).ok_or_else(|| {
                format!("'{text}' is not hex: write pairs of digits such as 0a1b2c")
            }),
        }
    }

    /// Kind of field it fits.
    pub fn kind(&self) -> FieldKind {
        match self {
            Value::Uint(_) => FieldKind::Uint,
            Value::Mac(_) => FieldKind::Mac,
            Value::Ip4(_) => FieldKind::Ip4,
            Value::Ip6(_) => FieldKind::Ip6,
            Value::Bytes(_) => FieldKind::Bytes,
        }
    }

    /// As a number, most significant byte first; bytes beyond 16 are left out.
    pub fn to_u128(&self) -> u128 {
        let join = |acc: u128, b: &u8| acc << 8 | u128::from(*b);
        match self {
            Value::Uint(n) => u128::from(*n),
            Value::Mac(mac) => mac.0.iter().fold(0, join),
            Value::Ip4(a) => u128::from(a.to_bits()),
            Value::Ip6(a) => a.to_bits(),
            Value::Bytes(b) => b.iter().take(16).fold(0, join),
        }
    }
}

/// True when a number has at most `bits` bits; 0 bits stands for "no field", where any number fits.
fn fits(n: u64, bits: u8) -> bool {
    bits == 0 || bits >= 64 || n >> bits == 0
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) if hex.bytes().all(|b| b.is_ascii_hexdigit()) => {
            u64::from_str_radix(hex, 16).ok()
        }
        None if text.bytes().all(|b| b.is_ascii_digit()) => text.parse().ok(),
        _ => None,
    }
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    let text = text.strip_prefix("0x").unwrap_or(text);
    let digits = text.as_bytes();
    if digits.is_empty()
        || !digits.len().is_multiple_of(2)
        || digits.len() > 2 * super::limits::TEMPLATE_BYTES
    {
        return None;
    }
    let digit = |b: u8| (b as char).to_digit(16);
    let pair = |p: &[u8]| Some((digit(p[0])? << 4 | digit(p[1])?) as u8);
    digits.chunks_exact(2).map(pair).collect()
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Uint(n) => write!(f, "{n}"),
            Value::Mac(mac) => write!(f, "{mac}"),
            Value::Ip4(a) => write!(f, "{a}"),
            Value::Ip6(a) => write!(f, "{a}"),
            Value::Bytes(b) => {
                f.write_str("0x")?;
                b.iter().try_for_each(|b| write!(f, "{b:02x}"))
            }
        }
    }
}

impl FromStr for Value {
    type Err = String;

    /// Reads any kind: MAC address, IPv4, IPv6, number, and hex last.
    fn from_str(text: &str) -> Result<Self, String> {
        let kinds = [
            FieldKind::Mac,
            FieldKind::Ip4,
            FieldKind::Ip6,
            FieldKind::Uint,
            FieldKind::Bytes,
        ];
        let mut read = kinds
            .into_iter()
            .filter_map(|k| Value::of_kind(k, text).ok());
        let bad = || format!("'{text}' is not a number, MAC address, IP address or hex bytes");
        read.next().ok_or_else(bad)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_listed_in_their_order() {
        for (i, (name, kind)) in LayerKind::ALL.iter().enumerate() {
            assert_eq!(*kind as usize, i);
            assert_eq!(LayerKind::by_name(name), Some(*kind));
        }
    }

    #[test]
    fn fields_lie_inside_their_header_without_overlap() {
        for (name, kind) in LayerKind::ALL {
            let mut end = 0;
            for field in kind.fields().iter().filter(|f| f.is_editable()) {
                assert!(field.at_bit >= end, "{name}.{} overlaps", field.name);
                end = field.at_bit + u16::from(field.bits);
            }
            assert!(usize::from(end) <= 8 * kind.header_len(), "{name}");
        }
    }

    #[test]
    fn values_are_checked_against_the_field() {
        let ttl = LayerKind::Ip4.field("ttl").unwrap();
        assert_eq!(Value::parse(ttl, "0x40"), Ok(Value::Uint(64)));
        assert_eq!(
            Value::parse(ttl, "256").unwrap_err(),
            "256 does not fit in the 8 bits of ttl"
        );
        assert!(Value::parse(ttl, "").is_err());
        let options = LayerKind::Ip4.field("options").unwrap();
        assert_eq!(
            Value::parse(options, "0194"),
            Ok(Value::Bytes(vec![1, 0x94]))
        );
        assert!(Value::parse(options, "019").is_err());
    }
}
