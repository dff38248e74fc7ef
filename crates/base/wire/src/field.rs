//! Fields of headers by name: one table with the position, the width and the type of each field.
//!
//! Templates of the packet generator, filters of traces and captures, rules of the path batcher, and the text of headers in
//! packet traces use this table, so that a field has one name everywhere. A position is a number of bits from the start of the
//! header, most significant bit first, as in the diagrams of the RFCs.

use crate::{EtherType, IpProto, udp};

/// The type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// A number.
    Number,
    /// A MAC address.
    Mac,
    /// An IPv4 address.
    Ip4,
    /// An IPv6 address.
    Ip6,
    /// Bytes behind the fixed part of the header; a length field determines their number.
    Bytes,
}

/// A field of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// The name, unique in its header.
    pub name: &'static str,
    /// Other names of the field.
    pub aliases: &'static [&'static str],
    /// First bit.
    pub bit: u16,
    /// Number of bits; 0 for [`FieldKind::Bytes`], which have no fixed position.
    pub bits: u8,
    /// The type of the value.
    pub kind: FieldKind,
    /// The field covers or is covered by other fields of the table, such as the whole TOS byte beside DSCP and ECN. Code that
    /// writes a header leaves such a field out.
    pub overlaps: bool,
    /// The meaning of the field, without a full stop.
    pub text: &'static str,
}

impl Field {
    /// Whether this is the field's name or one of its aliases.
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }

    /// Whether the field has a fixed position in the header.
    pub fn has_place(&self) -> bool {
        self.bits > 0
    }

    /// The value in a header at the start of these bytes, most significant bit first; none if the bytes end before the field,
    /// and for a field without a fixed position.
    pub fn read(&self, header: &[u8]) -> Option<u128> {
        if !self.has_place() {
            return None;
        }
        let (first, end) = (
            usize::from(self.bit),
            usize::from(self.bit) + usize::from(self.bits),
        );
        let bytes = header.get(first / 8..end.div_ceil(8))?;
        let word = bytes
            .iter()
            .fold(0, |word, byte| word << 8 | u128::from(*byte));
        let behind = end.next_multiple_of(8) - end;
        let ones = u128::MAX
            .checked_shr(128 - u32::from(self.bits))
            .unwrap_or(0);
        Some(word >> behind & ones)
    }
}

/// A header whose fields have names.
#[derive(Debug, PartialEq, Eq)]
pub struct HeaderFields {
    /// The name.
    pub name: &'static str,
    /// Other names of the header.
    pub aliases: &'static [&'static str],
    /// The purpose of the header, and the document that defines it.
    pub text: &'static str,
    /// Length of the fixed part in bytes.
    pub len: u16,
    /// The fields in order.
    pub fields: &'static [Field],
}

impl HeaderFields {
    /// Whether this is the header's name or one of its aliases.
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }

    /// The field with this name or alias.
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.is_called(name))
    }
}

/// The header with this name or alias.
pub fn header(name: &str) -> Option<&'static HeaderFields> {
    HEADERS.into_iter().find(|header| header.is_called(name))
}

/// The header of an EtherType.
pub fn of_ether_type(ether_type: EtherType) -> Option<&'static HeaderFields> {
    Some(match ether_type {
        EtherType::ARP => &ARP,
        EtherType::IP4 => &IP4,
        EtherType::IP6 => &IP6,
        EtherType::MPLS | EtherType::MPLS_MCAST => &MPLS,
        EtherType::PPPOE => &PPPOE,
        _ => return None,
    })
}

/// The header behind a UDP header with this destination port.
pub fn of_udp_port(port: u16) -> Option<&'static HeaderFields> {
    Some(match port {
        udp::port::VXLAN => &VXLAN,
        udp::port::GENEVE => &GENEVE,
        udp::port::GTPU => &GTPU,
        _ => return None,
    })
}

/// The header of an IP protocol number.
pub fn of_protocol(protocol: IpProto) -> Option<&'static HeaderFields> {
    Some(match protocol {
        IpProto::HOP_BY_HOP => &IP6_HBH,
        IpProto::ICMP => &ICMP,
        IpProto::TCP => &TCP,
        IpProto::UDP => &UDP,
        IpProto::ROUTING => &IP6_ROUTING,
        IpProto::FRAGMENT => &IP6_FRAG,
        IpProto::GRE => &GRE,
        IpProto::ESP => &ESP,
        IpProto::AH => &AH,
        IpProto::ICMP6 => &ICMP6,
        IpProto::DEST_OPTS => &IP6_DST,
        IpProto::SCTP => &SCTP,
        _ => return None,
    })
}

const fn field(
    name: &'static str,
    bit: u16,
    bits: u8,
    kind: FieldKind,
    text: &'static str,
) -> Field {
    Field {
        name,
        aliases: &[],
        bit,
        bits,
        kind,
        overlaps: false,
        text,
    }
}

const fn number(name: &'static str, bit: u16, bits: u8, text: &'static str) -> Field {
    field(name, bit, bits, FieldKind::Number, text)
}

const fn mac(name: &'static str, bit: u16, text: &'static str) -> Field {
    field(name, bit, 48, FieldKind::Mac, text)
}

const fn ip4(name: &'static str, bit: u16, text: &'static str) -> Field {
    field(name, bit, 32, FieldKind::Ip4, text)
}

const fn ip6(name: &'static str, bit: u16, text: &'static str) -> Field {
    field(name, bit, 128, FieldKind::Ip6, text)
}

const fn bytes(name: &'static str, bit: u16, text: &'static str) -> Field {
    field(name, bit, 0, FieldKind::Bytes, text)
}

impl Field {
    const fn or(self, aliases: &'static [&'static str]) -> Field {
        Field { aliases, ..self }
    }

    const fn beside_others(self) -> Field {
        Field {
            overlaps: true,
            ..self
        }
    }
}

/// Fields of a VLAN tag of either EtherType.
const VLAN_TAG: [Field; 4] = [
    number("pcp", 0, 3, "priority").or(&["priority"]),
    number("dei", 3, 1, "drop eligible"),
    number("id", 4, 12, "VLAN identifier"),
    number("type", 16, 16, "EtherType of what follows"),
];

/// Fields of an extension header that has options.
const IP6_OPTIONS: [Field; 3] = [
    number("next", 0, 8, "next header"),
    number("length", 8, 8, "length in 8 bytes, less one").or(&["len"]),
    bytes("options", 16, "options, padded to 8 bytes"),
];

/// Fields of a message of ICMP and ICMPv6.
const ICMP_MESSAGE: [Field; 5] = [
    number("type", 0, 8, "type"),
    number("code", 8, 8, "code"),
    number("checksum", 16, 16, "checksum"),
    number("id", 32, 16, "identifier of an echo"),
    number("seq", 48, 16, "sequence number of an echo"),
];

/// Defines headers, and the list of all of them.
macro_rules! headers {
    ($($id:ident, $name:literal $(| $alias:literal)*, $len:literal, $text:literal, $fields:expr;)*) => {
        $(
            #[doc = $text]
            pub static $id: HeaderFields = HeaderFields {
                name: $name,
                aliases: &[$($alias),*],
                text: $text,
                len: $len,
                fields: $fields,
            };
        )*

        /// Every header, from the link layer on.
        pub static HEADERS: [&HeaderFields; [$($name),*].len()] = [$(&$id),*];
    };
}

headers! {
    ETH, "eth" | "ether" | "ethernet", 14, "Ethernet II (IEEE 802.3)", &[
        mac("dst", 0, "destination MAC address"),
        mac("src", 48, "source MAC address"),
        number("type", 96, 16, "EtherType"),
    ];
    VLAN, "vlan", 4, "802.1Q tag (IEEE 802.1Q)", &VLAN_TAG;
    QINQ, "qinq", 4, "802.1ad tag (IEEE 802.1ad)", &VLAN_TAG;
    ARP, "arp", 28, "ARP for IPv4 over Ethernet (RFC 826)", &[
        number("htype", 0, 16, "hardware type"),
        number("ptype", 16, 16, "protocol type"),
        number("hlen", 32, 8, "hardware address length"),
        number("plen", 40, 8, "protocol address length"),
        number("op", 48, 16, "operation: 1 request, 2 reply"),
        mac("sha", 64, "sender MAC address"),
        ip4("spa", 112, "sender IPv4 address").or(&["src"]),
        mac("tha", 144, "target MAC address"),
        ip4("tpa", 192, "target IPv4 address").or(&["dst"]),
    ];
    MPLS, "mpls", 4, "MPLS label (RFC 3032)", &[
        number("label", 0, 20, "label"),
        number("tc", 20, 3, "traffic class").or(&["class"]),
        number("bottom", 23, 1, "bottom of stack"),
        number("ttl", 24, 8, "time to live"),
    ];
    PPPOE, "pppoe", 8, "PPPoE session with the PPP protocol field (RFC 2516)", &[
        number("version", 0, 4, "version"),
        number("type", 4, 4, "type"),
        number("code", 8, 8, "code"),
        number("session", 16, 16, "session identifier"),
        number("length", 32, 16, "length of the payload"),
        number("proto", 48, 16, "PPP protocol"),
    ];
    IP4, "ip4", 20, "IPv4 (RFC 791)", &[
        number("version", 0, 4, "version"),
        number("ihl", 4, 4, "header length in 32-bit words"),
        number("tos", 8, 8, "type of service: DSCP and ECN").beside_others(),
        number("dscp", 8, 6, "differentiated services"),
        number("ecn", 14, 2, "congestion notification"),
        number("length", 16, 16, "total length").or(&["len"]),
        number("id", 32, 16, "identification"),
        number("rf", 48, 1, "reserved flag"),
        number("df", 49, 1, "do not fragment"),
        number("mf", 50, 1, "more fragments"),
        number("frag", 51, 13, "fragment offset in 8 bytes"),
        number("ttl", 64, 8, "time to live"),
        number("proto", 72, 8, "protocol").or(&["protocol"]),
        number("checksum", 80, 16, "header checksum"),
        ip4("src", 96, "source address"),
        ip4("dst", 128, "destination address"),
        bytes("options", 160, "options, padded to 32-bit words"),
    ];
    IP6, "ip6", 40, "IPv6 (RFC 8200)", &[
        number("version", 0, 4, "version"),
        number("tc", 4, 8, "traffic class").or(&["class"]),
        number("dscp", 4, 6, "differentiated services").beside_others(),
        number("ecn", 10, 2, "congestion notification").beside_others(),
        number("flow", 12, 20, "flow label"),
        number("length", 32, 16, "payload length").or(&["len"]),
        number("next", 48, 8, "next header"),
        number("hops", 56, 8, "hop limit"),
        ip6("src", 64, "source address"),
        ip6("dst", 192, "destination address"),
    ];
    IP6_HBH, "ip6-hbh" | "ip6-hop", 2, "IPv6 hop-by-hop options (RFC 8200, 4.3)", &IP6_OPTIONS;
    IP6_ROUTING, "ip6-routing", 4, "IPv6 routing header (RFC 8200, 4.4)", &[
        number("next", 0, 8, "next header"),
        number("length", 8, 8, "length in 8 bytes, less one").or(&["len"]),
        number("type", 16, 8, "routing type"),
        number("left", 24, 8, "segments left"),
    ];
    IP6_DST, "ip6-dst" | "ip6-options", 2, "IPv6 destination options (RFC 8200, 4.6)", &IP6_OPTIONS;
    IP6_FRAG, "ip6-frag" | "ip6-fragment", 8, "IPv6 fragment header (RFC 8200, 4.5)", &[
        number("next", 0, 8, "next header"),
        number("frag", 16, 13, "fragment offset in 8 bytes"),
        number("mf", 31, 1, "more fragments"),
        number("id", 32, 32, "identification"),
    ];
    AH, "ah", 12, "authentication header (RFC 4302)", &[
        number("next", 0, 8, "next header"),
        number("length", 8, 8, "length in 4 bytes, less two").or(&["len"]),
        number("spi", 32, 32, "security parameters index"),
        number("seq", 64, 32, "sequence number"),
    ];
    ESP, "esp", 8, "encapsulating security payload (RFC 4303)", &[
        number("spi", 0, 32, "security parameters index"),
        number("seq", 32, 32, "sequence number"),
    ];
    ICMP, "icmp", 8, "ICMP (RFC 792)", &ICMP_MESSAGE;
    ICMP6, "icmp6", 8, "ICMPv6 (RFC 4443)", &ICMP_MESSAGE;
    UDP, "udp", 8, "UDP (RFC 768)", &[
        number("sport", 0, 16, "source port").or(&["src"]),
        number("dport", 16, 16, "destination port").or(&["dst"]),
        number("length", 32, 16, "length").or(&["len"]),
        number("checksum", 48, 16, "checksum"),
    ];
    TCP, "tcp", 20, "TCP (RFC 9293)", &[
        number("sport", 0, 16, "source port").or(&["src"]),
        number("dport", 16, 16, "destination port").or(&["dst"]),
        number("seq", 32, 32, "sequence number"),
        number("ack", 64, 32, "acknowledgement number"),
        number("offset", 96, 4, "header length in 32-bit words"),
        number("flags", 104, 8, "flags (0x02 SYN, 0x10 ACK)"),
        number("window", 112, 16, "window"),
        number("checksum", 128, 16, "checksum"),
        number("urgent", 144, 16, "urgent pointer"),
        bytes("options", 160, "options, padded to 32-bit words"),
    ];
    SCTP, "sctp", 12, "SCTP (RFC 9260)", &[
        number("sport", 0, 16, "source port").or(&["src"]),
        number("dport", 16, 16, "destination port").or(&["dst"]),
        number("tag", 32, 32, "verification tag"),
        number("checksum", 64, 32, "checksum (CRC32c)"),
    ];
    GRE, "gre", 4, "GRE (RFC 2784, RFC 2890)", &[
        number("c", 0, 1, "a checksum is there"),
        number("k", 2, 1, "a key is there"),
        number("s", 3, 1, "a sequence number is there"),
        number("version", 13, 3, "version"),
        number("type", 16, 16, "EtherType of what follows"),
    ];
    VXLAN, "vxlan", 8, "VXLAN (RFC 7348)", &[
        number("flags", 0, 8, "flags (0x08: the network identifier is there)"),
        number("vni", 32, 24, "network identifier"),
    ];
    GENEVE, "geneve", 8, "Geneve (RFC 8926)", &[
        number("version", 0, 2, "version"),
        number("length", 2, 6, "length of the options in 4 bytes").or(&["len"]),
        number("oam", 8, 1, "control packet"),
        number("critical", 9, 1, "critical options are there"),
        number("type", 16, 16, "EtherType of what follows"),
        number("vni", 32, 24, "network identifier"),
    ];
    GTPU, "gtpu", 8, "GTP-U (3GPP TS 29.281)", &[
        number("version", 0, 3, "version"),
        number("type", 8, 8, "message type (255 G-PDU)"),
        number("length", 16, 16, "length behind the first 8 bytes").or(&["len"]),
        number("teid", 32, 32, "tunnel endpoint identifier"),
    ];
}

#[cfg(test)]
mod tests;
