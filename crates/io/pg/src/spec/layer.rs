//! Layers of a packet template: their types, their fields, and the defaults of fields.
//!
//! The fields of headers are those of [`volley_wire::field`]: template text, edits and the packet builder read that table.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;
use volley_model::Mac;
use volley_wire::ethertype;
use volley_wire::field::{self, Field, FieldKind, HeaderFields};
use volley_wire::icmp4::Icmp4Type;
use volley_wire::icmp6::Icmp6Type;
use volley_wire::tcp;

/// The type of a layer.
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

/// The default of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldDefault {
    /// This number.
    Is(u64),
    /// Computed: lengths, checksums, type of the next layer.
    Auto,
}

/// The bytes behind the last header, for which no standard defines fields.
static PAYLOAD: HeaderFields = HeaderFields {
    name: "payload",
    aliases: &[],
    text: "bytes",
    len: 0,
    fields: &[
        property("size", FieldKind::Number, "number of bytes"),
        property(
            "fill",
            FieldKind::Number,
            "value of each byte; else 0, 1, 2, ...",
        ),
        property("hex", FieldKind::Bytes, "the bytes themselves"),
    ],
};

/// A property of the payload: a field without a position.
const fn property(name: &'static str, kind: FieldKind, text: &'static str) -> Field {
    Field {
        name,
        aliases: &[],
        bit: 0,
        bits: 0,
        kind,
        overlaps: false,
        text,
    }
}

/// Computed fields: lengths, checksums, and types of the next header.
const COMPUTED: [&str; 10] = [
    "bottom", "ihl", "offset", "length", "checksum", "proto", "next", "options", "fill", "hex",
];

/// Defaults of fields that are neither computed nor 0.
const USUAL: &[(LayerKind, &str, u64)] = &[
    (LayerKind::Arp, "htype", 1),
    (LayerKind::Arp, "ptype", ethertype::IP4 as u64),
    (LayerKind::Arp, "hlen", 6),
    (LayerKind::Arp, "plen", 4),
    (LayerKind::Arp, "op", 1),
    (LayerKind::Mpls, "ttl", 64),
    (LayerKind::Ip4, "version", 4),
    (LayerKind::Ip4, "ttl", 64),
    (LayerKind::Ip6, "version", 6),
    (LayerKind::Ip6, "hops", 64),
    (LayerKind::Icmp, "type", Icmp4Type::ECHO_REQUEST.0 as u64),
    (LayerKind::Icmp6, "type", Icmp6Type::ECHO_REQUEST.0 as u64),
    (LayerKind::Udp, "sport", 1),
    (LayerKind::Udp, "dport", 1),
    (LayerKind::Tcp, "sport", 1),
    (LayerKind::Tcp, "dport", 1),
    (LayerKind::Tcp, "flags", tcp::flag::ACK as u64),
    (LayerKind::Tcp, "window", 65_535),
];

impl LayerKind {
    /// All types.
    pub const ALL: [LayerKind; 15] = [
        LayerKind::Eth,
        LayerKind::Vlan,
        LayerKind::Qinq,
        LayerKind::Arp,
        LayerKind::Mpls,
        LayerKind::Ip4,
        LayerKind::Ip6,
        LayerKind::Ip6Hbh,
        LayerKind::Ip6Dst,
        LayerKind::Ip6Frag,
        LayerKind::Icmp,
        LayerKind::Icmp6,
        LayerKind::Udp,
        LayerKind::Tcp,
        LayerKind::Payload,
    ];

    /// The header in the table of fields.
    pub fn header(self) -> &'static HeaderFields {
        match self {
            LayerKind::Eth => &field::ETH,
            LayerKind::Vlan => &field::VLAN,
            LayerKind::Qinq => &field::QINQ,
            LayerKind::Arp => &field::ARP,
            LayerKind::Mpls => &field::MPLS,
            LayerKind::Ip4 => &field::IP4,
            LayerKind::Ip6 => &field::IP6,
            LayerKind::Ip6Hbh => &field::IP6_HBH,
            LayerKind::Ip6Dst => &field::IP6_DST,
            LayerKind::Ip6Frag => &field::IP6_FRAG,
            LayerKind::Icmp => &field::ICMP,
            LayerKind::Icmp6 => &field::ICMP6,
            LayerKind::Udp => &field::UDP,
            LayerKind::Tcp => &field::TCP,
            LayerKind::Payload => &PAYLOAD,
        }
    }

    /// The name in templates and edits.
    pub fn name(self) -> &'static str {
        self.header().name
    }

    /// The names of all types, for error messages.
    pub fn names() -> String {
        LayerKind::ALL.map(LayerKind::name).join(", ")
    }

    /// The type with this name.
    pub fn by_name(name: &str) -> Option<LayerKind> {
        let mut all = LayerKind::ALL.into_iter();
        all.find(|kind| kind.header().is_called(name))
    }

    /// The fields, without those that cover others.
    pub fn fields(self) -> impl Iterator<Item = &'static Field> {
        self.header().fields.iter().filter(|field| !field.overlaps)
    }

    /// The fields with a position in the header, which edits can change.
    pub fn places(self) -> impl Iterator<Item = &'static Field> {
        self.fields().filter(|field| field.has_place())
    }

    /// The field with this name.
    pub fn field(self, name: &str) -> Option<&'static Field> {
        self.fields().find(|field| field.is_called(name))
    }

    /// The default of a field.
    pub fn default_of(self, field: &Field) -> FieldDefault {
        let tagged = matches!(self, LayerKind::Eth | LayerKind::Vlan | LayerKind::Qinq);
        if COMPUTED.contains(&field.name) || tagged && field.name == "type" {
            return FieldDefault::Auto;
        }
        let usual = USUAL.iter().find(|it| (it.0, it.1) == (self, field.name));
        FieldDefault::Is(usual.map_or(0, |it| it.2))
    }

    /// Length of the fixed header in bytes (without options; 0 for the payload).
    pub fn header_len(self) -> usize {
        self.header().len.into()
    }
}

impl fmt::Display for LayerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One layer of a template: its type, and the given fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// Type of the layer.
    pub kind: LayerKind,
    /// Fields with a value, each at most once.
    pub fields: Vec<FieldValue>,
}

impl Layer {
    /// The given value of a field.
    pub fn value(&self, name: &str) -> Option<&Value> {
        let found = self.fields.iter().find(|f| f.field.name == name);
        found.map(|f| &f.value)
    }
}

/// A field with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldValue {
    /// The field of the layer.
    pub field: &'static Field,
    /// The value, of the field's type and width.
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
    /// Parses a value for a field; an error shows the valid form.
    pub fn parse(field: &Field, text: &str) -> Result<Value, String> {
        let value = Value::of_kind(field.kind, text)?;
        match value {
            Value::Uint(n) if !fits(n, field.bits) => Err(format!(
                "{n} does not fit in the {} bits of {}",
                field.bits, field.name
            )),
            value => Ok(value),
        }
    }

    /// Parses a value of a type.
    pub fn of_kind(kind: FieldKind, text: &str) -> Result<Value, String> {
        match kind {
            FieldKind::Number => number(text)
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

    /// The type of fields that it fits.
    pub fn kind(&self) -> FieldKind {
        match self {
            Value::Uint(_) => FieldKind::Number,
            Value::Mac(_) => FieldKind::Mac,
            Value::Ip4(_) => FieldKind::Ip4,
            Value::Ip6(_) => FieldKind::Ip6,
            Value::Bytes(_) => FieldKind::Bytes,
        }
    }

    /// The value as a number, most significant byte first; bytes beyond 16 are ignored.
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

/// Whether a number has at most `bits` bits; 0 bits means "no field", where any number fits.
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

    /// Parses any type: MAC address, IPv4, IPv6, number, and hexadecimal bytes last.
    fn from_str(text: &str) -> Result<Self, String> {
        let kinds = [
            FieldKind::Mac,
            FieldKind::Ip4,
            FieldKind::Ip6,
            FieldKind::Number,
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
    fn kinds_have_their_names_and_known_defaults() {
        for kind in LayerKind::ALL {
            assert_eq!(LayerKind::by_name(kind.name()), Some(kind));
        }
        for (kind, name, _) in USUAL {
            assert!(kind.field(name).is_some(), "{kind}.{name}");
        }
        for name in COMPUTED {
            assert!(
                LayerKind::ALL.iter().any(|kind| kind.field(name).is_some()),
                "{name}"
            );
        }
        assert!(
            LayerKind::Ip4.field("tos").is_none(),
            "DSCP and ECN are given apart"
        );
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
