//! Built-in header types of the parser, as a table of facts from their standards.
//!
//! A type has the length of its header and the position of the next field. The fields that rules may name are those of
//! [`volley_wire::field`]. The operator's types ([`PathHeader`]) are rows of the same table.

use crate::model::PathHeader;
use volley_wire::udp::port;
use volley_wire::{ethertype, field};

/// Variable part of a header's length.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Extra {
    /// No variable part.
    #[default]
    None,
    /// The masked bits of a byte, shifted down to their lowest, times `scale`.
    Scaled { at: u8, mask: u8, scale: u8 },
    /// `each` bytes for every masked bit that is set.
    Flags { at: u8, mask: u8, each: u8 },
    /// `bytes` bytes if any masked bit is set.
    Any { at: u8, mask: u8, bytes: u8 },
}

/// The field that selects the next header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NextField {
    pub(crate) at: u8,
    pub(crate) bytes: u8,
    pub(crate) mask: u32,
}

/// A header type.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeaderType {
    pub(crate) name: String,
    pub(crate) length: u16,
    pub(crate) extra: Extra,
    /// Least length of a valid header.
    pub(crate) least: u16,
    /// Byte offset and mask of a 16-bit word: if any of these bits is set, the next header is unknown (fragments).
    pub(crate) stop: Option<(u8, u16)>,
    pub(crate) next: Option<NextField>,
    /// Links: value, header, whether it begins an inner packet.
    pub(crate) links: Vec<(u32, String, bool)>,
    /// Fields of a header that an operator defined: name, first bit, bits.
    pub(crate) own: Vec<(String, u16, u8)>,
    /// Fields of a built-in header.
    pub(crate) table: Option<&'static field::HeaderFields>,
}

impl HeaderType {
    /// Whether `name` is a name of the header in rules.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        self.name == name || self.table.is_some_and(|table| table.is_called(name))
    }

    /// The field of this name: name, first bit, bits.
    pub(crate) fn field(&self, name: &str) -> Option<(String, u16, u8)> {
        let own = self.own.iter().find(|field| field.0 == name).cloned();
        let known = || self.table?.field(name).filter(|field| field.has_place());
        own.or_else(|| known().map(|field| (field.name.to_owned(), field.bit, field.bits)))
    }

    /// The names of the header's fields.
    pub(crate) fn field_names(&self) -> Vec<String> {
        let own = self.own.iter().map(|field| field.0.clone());
        let table = self.table.into_iter().flat_map(|table| table.fields);
        let table = table.filter(|field| field.has_place());
        own.chain(table.map(|field| field.name.to_owned()))
            .collect()
    }
}

type Links = &'static [(u32, &'static str)];

struct Row {
    name: &'static str,
    length: u16,
    extra: Extra,
    least: u16,
    stop: Option<(u8, u16)>,
    next: Option<(u8, u8, u32)>,
    links: Links,
    inner: Links,
}

const ROW: Row = Row {
    name: "",
    length: 0,
    extra: Extra::None,
    least: 0,
    stop: None,
    next: None,
    links: &[],
    inner: &[],
};

const TYPES: Links = &[
    (ethertype::IP4 as u32, "ip4"),
    (ethertype::ARP as u32, "arp"),
    (ethertype::VLAN as u32, "vlan"),
    (ethertype::IP6 as u32, "ip6"),
    (ethertype::MPLS as u32, "mpls"),
    (ethertype::MPLS_MCAST as u32, "mpls"),
    (ethertype::PPPOE as u32, "pppoe"),
    (ethertype::QINQ as u32, "vlan"),
    (ethertype::QINQ_OLD as u32, "vlan"),
];
const PROTOCOLS: Links = &[
    (0, "ip6-hop"),
    (1, "icmp"),
    (6, "tcp"),
    (17, "udp"),
    (43, "ip6-routing"),
    (44, "ip6-fragment"),
    (47, "gre"),
    (50, "esp"),
    (51, "ah"),
    (58, "icmp6"),
    (60, "ip6-options"),
    (132, "sctp"),
];
const IP_IN_IP: Links = &[(4, "ip4"), (41, "ip6")];
const TUNNELLED: Links = &[
    (ethertype::IP4 as u32, "ip4"),
    (ethertype::TEB as u32, "ethernet"),
    (ethertype::IP6 as u32, "ip6"),
];
const VERSIONS: Links = &[(0x40, "ip4"), (0x60, "ip6")];
/// IPv6 extension headers: a length in units of 8 bytes behind the first 8 (RFC 8200, 4).
const EXTENSION: Row = Row {
    length: 8,
    extra: Extra::Scaled {
        at: 1,
        mask: 0xff,
        scale: 8,
    },
    least: 8,
    next: Some((0, 1, 0xff)),
    links: PROTOCOLS,
    inner: IP_IN_IP,
    ..ROW
};

const ROWS: [Row; 24] = [
    Row {
        name: "ethernet",
        length: 14,
        next: Some((12, 2, 0xffff)),
        links: TYPES,
        ..ROW
    },
    Row {
        name: "vlan",
        length: 4,
        next: Some((2, 2, 0xffff)),
        links: TYPES,
        ..ROW
    },
    Row {
        name: "arp",
        length: 28,
        ..ROW
    },
    // RFC 3032: the label stack ends where bit S is set; the first four bits behind it select the next header.
    Row {
        name: "mpls",
        length: 4,
        next: Some((2, 1, 0x01)),
        links: &[(0, "mpls"), (1, "mpls-payload")],
        ..ROW
    },
    Row {
        name: "mpls-payload",
        next: Some((0, 1, 0xf0)),
        links: VERSIONS,
        ..ROW
    },
    // RFC 2516 with the PPP protocol field.
    Row {
        name: "pppoe",
        length: 8,
        next: Some((6, 2, 0xffff)),
        links: &[(0x0021, "ip4"), (0x0057, "ip6")],
        ..ROW
    },
    // RFC 791; only the first fragment has layer 4.
    Row {
        name: "ip4",
        extra: Extra::Scaled {
            at: 0,
            mask: 0x0f,
            scale: 4,
        },
        least: 20,
        stop: Some((6, 0x1fff)),
        next: Some((9, 1, 0xff)),
        links: PROTOCOLS,
        inner: IP_IN_IP,
        ..ROW
    },
    Row {
        name: "ip6",
        length: 40,
        next: Some((6, 1, 0xff)),
        links: PROTOCOLS,
        inner: IP_IN_IP,
        ..ROW
    },
    Row {
        name: "ip6-hop",
        ..EXTENSION
    },
    Row {
        name: "ip6-routing",
        ..EXTENSION
    },
    Row {
        name: "ip6-options",
        ..EXTENSION
    },
    Row {
        name: "ip6-fragment",
        length: 8,
        stop: Some((2, 0xfff8)),
        next: Some((0, 1, 0xff)),
        links: PROTOCOLS,
        inner: IP_IN_IP,
        ..ROW
    },
    // RFC 4302: a length in words of 4 bytes, less two.
    Row {
        name: "ah",
        length: 8,
        extra: Extra::Scaled {
            at: 1,
            mask: 0xff,
            scale: 4,
        },
        least: 12,
        next: Some((0, 1, 0xff)),
        links: PROTOCOLS,
        inner: IP_IN_IP,
        ..ROW
    },
    Row {
        name: "esp",
        length: 8,
        ..ROW
    },
    Row {
        name: "tcp",
        extra: Extra::Scaled {
            at: 12,
            mask: 0xf0,
            scale: 4,
        },
        least: 20,
        ..ROW
    },
    Row {
        name: "udp",
        length: 8,
        next: Some((2, 2, 0xffff)),
        links: &[
            (port::GTPU as u32, "gtpu"),
            (port::VXLAN as u32, "vxlan"),
            (port::GENEVE as u32, "geneve"),
        ],
        ..ROW
    },
    Row {
        name: "sctp",
        length: 12,
        ..ROW
    },
    Row {
        name: "icmp",
        length: 4,
        ..ROW
    },
    Row {
        name: "icmp6",
        length: 4,
        ..ROW
    },
    // RFC 2784, RFC 2890: checksum, key and sequence number are present if their bits are set.
    Row {
        name: "gre",
        length: 4,
        extra: Extra::Flags {
            at: 0,
            mask: 0xb0,
            each: 4,
        },
        next: Some((2, 2, 0xffff)),
        inner: TUNNELLED,
        ..ROW
    },
    // RFC 7348.
    Row {
        name: "vxlan",
        length: 8,
        next: Some((0, 1, 0)),
        inner: &[(0, "ethernet")],
        ..ROW
    },
    // RFC 8926.
    Row {
        name: "geneve",
        length: 8,
        extra: Extra::Scaled {
            at: 0,
            mask: 0x3f,
            scale: 4,
        },
        next: Some((2, 2, 0xffff)),
        inner: TUNNELLED,
        ..ROW
    },
    // TS 29.281: four bytes more if any of E, S and PN is set; a G-PDU (255) contains a packet.
    Row {
        name: "gtpu",
        length: 8,
        extra: Extra::Any {
            at: 0,
            mask: 0x07,
            bytes: 4,
        },
        next: Some((1, 1, 0xff)),
        links: &[(255, "gtpu-payload")],
        ..ROW
    },
    Row {
        name: "gtpu-payload",
        next: Some((0, 1, 0xf0)),
        inner: VERSIONS,
        ..ROW
    },
];

/// The built-in types; the first is the start of every packet.
pub(crate) fn built_in() -> Vec<HeaderType> {
    ROWS.iter().map(from_row).collect()
}

fn from_row(row: &Row) -> HeaderType {
    let link = |inner: bool| move |(v, h): &(u32, &str)| (*v, (*h).to_owned(), inner);
    let outer = row.links.iter().map(link(false));
    HeaderType {
        name: row.name.to_owned(),
        length: row.length,
        extra: row.extra,
        least: row.least,
        stop: row.stop,
        next: row
            .next
            .map(|(at, bytes, mask)| NextField { at, bytes, mask }),
        links: outer.chain(row.inner.iter().map(link(true))).collect(),
        own: Vec::new(),
        table: field::header(row.name),
    }
}

/// The type for a header that the operator defined.
pub(crate) fn own(header: &PathHeader) -> HeaderType {
    let byte = |value: Option<u32>, usual: u32| value.unwrap_or(usual) as u8;
    let bytes = header.next_bytes.unwrap_or(2);
    let field = |at: u32| NextField {
        at: at as u8,
        bytes: bytes as u8,
        mask: u32::MAX >> (32 - 8 * bytes),
    };
    let links = header.next.iter();
    HeaderType {
        name: header.name.clone(),
        length: header.length as u16,
        extra: header.length_at.map_or(Extra::None, |at| Extra::Scaled {
            at: at as u8,
            mask: byte(header.length_mask, 0xff),
            scale: byte(header.length_scale, 1),
        }),
        least: 0,
        stop: None,
        next: header.next_at.map(field),
        links: links
            .map(|l| (l.value as u32, l.header.clone(), l.inner))
            .collect(),
        own: header
            .fields
            .iter()
            .map(|f| (f.name.clone(), f.bit as u16, f.bits as u8))
            .collect(),
        table: None,
    }
}
