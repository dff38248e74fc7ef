//! The fields of every layer and where they lie in its header.

use super::layer::FieldDefault::{self, Auto, Is};
use super::layer::FieldKind as K;
use super::layer::{FieldDef, FieldKind};

const fn f(
    name: &'static str,
    at_bit: u16,
    bits: u8,
    kind: FieldKind,
    default: FieldDefault,
    text: &'static str,
) -> FieldDef {
    FieldDef {
        name,
        at_bit,
        bits,
        kind,
        default,
        text,
    }
}

pub(super) static ETH: [FieldDef; 3] = [
    f("dst", 0, 48, K::Mac, Is(0), "destination MAC"),
    f("src", 48, 48, K::Mac, Is(0), "source MAC"),
    f("type", 96, 16, K::Uint, Auto, "ethertype"),
];
pub(super) static VLAN: [FieldDef; 4] = [
    f("pcp", 0, 3, K::Uint, Is(0), "priority"),
    f("dei", 3, 1, K::Uint, Is(0), "drop eligible"),
    f("id", 4, 12, K::Uint, Is(0), "VLAN id"),
    f("type", 16, 16, K::Uint, Auto, "ethertype of what follows"),
];
pub(super) static ARP: [FieldDef; 9] = [
    f("htype", 0, 16, K::Uint, Is(1), "hardware type"),
    f("ptype", 16, 16, K::Uint, Is(0x800), "protocol type"),
    f("hlen", 32, 8, K::Uint, Is(6), "hardware address length"),
    f("plen", 40, 8, K::Uint, Is(4), "protocol address length"),
    f("op", 48, 16, K::Uint, Is(1), "1 request, 2 reply"),
    f("sha", 64, 48, K::Mac, Is(0), "sender MAC"),
    f("spa", 112, 32, K::Ip4, Is(0), "sender IPv4 address"),
    f("tha", 144, 48, K::Mac, Is(0), "target MAC"),
    f("tpa", 192, 32, K::Ip4, Is(0), "target IPv4 address"),
];
pub(super) static MPLS: [FieldDef; 4] = [
    f("label", 0, 20, K::Uint, Is(0), "label"),
    f("tc", 20, 3, K::Uint, Is(0), "traffic class"),
    f("bottom", 23, 1, K::Uint, Auto, "bottom of stack"),
    f("ttl", 24, 8, K::Uint, Is(64), "time to live"),
];
pub(super) static IP4: [FieldDef; 16] = [
    f("version", 0, 4, K::Uint, Is(4), "version"),
    f("ihl", 4, 4, K::Uint, Auto, "header length in 32-bit words"),
    f("dscp", 8, 6, K::Uint, Is(0), "differentiated services"),
    f("ecn", 14, 2, K::Uint, Is(0), "congestion notification"),
    f("length", 16, 16, K::Uint, Auto, "total length"),
    f("id", 32, 16, K::Uint, Is(0), "identification"),
    f("rf", 48, 1, K::Uint, Is(0), "reserved flag"),
    f("df", 49, 1, K::Uint, Is(0), "do not fragment"),
    f("mf", 50, 1, K::Uint, Is(0), "more fragments"),
    f("frag", 51, 13, K::Uint, Is(0), "fragment offset in 8 bytes"),
    f("ttl", 64, 8, K::Uint, Is(64), "time to live"),
    f("proto", 72, 8, K::Uint, Auto, "protocol"),
    f("checksum", 80, 16, K::Uint, Auto, "header checksum"),
    f("src", 96, 32, K::Ip4, Is(0), "source address"),
    f("dst", 128, 32, K::Ip4, Is(0), "destination address"),
    f(
        "options",
        160,
        0,
        K::Bytes,
        Auto,
        "options, padded to 32-bit words",
    ),
];
pub(super) static IP6: [FieldDef; 8] = [
    f("version", 0, 4, K::Uint, Is(6), "version"),
    f("tc", 4, 8, K::Uint, Is(0), "traffic class"),
    f("flow", 12, 20, K::Uint, Is(0), "flow label"),
    f("length", 32, 16, K::Uint, Auto, "payload length"),
    f("next", 48, 8, K::Uint, Auto, "next header"),
    f("hops", 56, 8, K::Uint, Is(64), "hop limit"),
    f("src", 64, 128, K::Ip6, Is(0), "source address"),
    f("dst", 192, 128, K::Ip6, Is(0), "destination address"),
];
pub(super) static IP6_OPTIONS: [FieldDef; 3] = [
    f("next", 0, 8, K::Uint, Auto, "next header"),
    f("length", 8, 8, K::Uint, Auto, "length in 8 bytes, less one"),
    f(
        "options",
        16,
        0,
        K::Bytes,
        Auto,
        "options, padded to 8 bytes",
    ),
];
pub(super) static IP6_FRAG: [FieldDef; 4] = [
    f("next", 0, 8, K::Uint, Auto, "next header"),
    f("frag", 16, 13, K::Uint, Is(0), "fragment offset in 8 bytes"),
    f("mf", 31, 1, K::Uint, Is(0), "more fragments"),
    f("id", 32, 32, K::Uint, Is(0), "identification"),
];
pub(super) static ICMP: [FieldDef; 5] = [
    f("type", 0, 8, K::Uint, Is(8), "type"),
    f("code", 8, 8, K::Uint, Is(0), "code"),
    f("checksum", 16, 16, K::Uint, Auto, "checksum"),
    f("id", 32, 16, K::Uint, Is(0), "identifier"),
    f("seq", 48, 16, K::Uint, Is(0), "sequence number"),
];
pub(super) static ICMP6: [FieldDef; 5] = [
    f("type", 0, 8, K::Uint, Is(128), "type"),
    f("code", 8, 8, K::Uint, Is(0), "code"),
    f("checksum", 16, 16, K::Uint, Auto, "checksum"),
    f("id", 32, 16, K::Uint, Is(0), "identifier"),
    f("seq", 48, 16, K::Uint, Is(0), "sequence number"),
];
pub(super) static UDP: [FieldDef; 4] = [
    f("sport", 0, 16, K::Uint, Is(1), "source port"),
    f("dport", 16, 16, K::Uint, Is(1), "destination port"),
    f("length", 32, 16, K::Uint, Auto, "length"),
    f("checksum", 48, 16, K::Uint, Auto, "checksum"),
];
pub(super) static TCP: [FieldDef; 10] = [
    f("sport", 0, 16, K::Uint, Is(1), "source port"),
    f("dport", 16, 16, K::Uint, Is(1), "destination port"),
    f("seq", 32, 32, K::Uint, Is(0), "sequence number"),
    f("ack", 64, 32, K::Uint, Is(0), "acknowledgement number"),
    f(
        "offset",
        96,
        4,
        K::Uint,
        Auto,
        "header length in 32-bit words",
    ),
    f(
        "flags",
        104,
        8,
        K::Uint,
        Is(0x10),
        "flags (0x02 SYN, 0x10 ACK)",
    ),
    f("window", 112, 16, K::Uint, Is(65535), "window"),
    f("checksum", 128, 16, K::Uint, Auto, "checksum"),
    f("urgent", 144, 16, K::Uint, Is(0), "urgent pointer"),
    f(
        "options",
        160,
        0,
        K::Bytes,
        Auto,
        "options, padded to 32-bit words",
    ),
];
pub(super) static PAYLOAD: [FieldDef; 3] = [
    f("size", 0, 0, K::Uint, Is(0), "number of bytes"),
    f(
        "fill",
        0,
        0,
        K::Uint,
        Auto,
        "value of each byte; else 0, 1, 2, ...",
    ),
    f("hex", 0, 0, K::Bytes, Auto, "the bytes themselves"),
];
