use super::*;
use crate::Header;
use crate::arp::ArpPacket;
use crate::eth::EthHeader;
use crate::icmp4::Icmp4Header;
use crate::icmp6::Icmp6Header;
use crate::ip4::Ip4Header;
use crate::ip6::Ip6Header;
use crate::ip6_ext::{ExtHeader, FragmentHeader, RoutingHeader};
use crate::tcp::TcpHeader;
use crate::udp::UdpHeader;
use crate::vlan::VlanTag;
use alloc::vec::Vec;
use proptest::prelude::*;

#[test]
fn names_are_unique_and_fields_are_inside_their_header_in_order() {
    let mut names = Vec::new();
    for header in HEADERS {
        names.push(header.name);
        names.extend(header.aliases);
        assert_eq!(super::header(header.name), Some(header));
        let (mut end, mut fields) = (0, Vec::new());
        for field in header.fields {
            fields.push(field.name);
            fields.extend(field.aliases);
            let last = field.bit + u16::from(field.bits);
            assert!(last <= 8 * header.len || !field.has_place(), "{field:?}");
            // A value in one word contains all bytes of the field.
            assert!(
                field.bits <= 120 || field.bit.is_multiple_of(8),
                "{field:?}"
            );
            if !field.overlaps {
                assert!(field.bit >= end, "{}.{} overlaps", header.name, field.name);
                end = last;
            }
        }
        let count = fields.len();
        fields.sort_unstable();
        fields.dedup();
        assert_eq!(fields.len(), count, "{}", header.name);
    }
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn a_field_behind_the_end_is_not_read() {
    let ttl = IP4.field("ttl").unwrap();
    let header: Vec<u8> = (0..20).collect();
    assert_eq!(ttl.read(&header), Some(8));
    assert_eq!(ttl.read(&header[..8]), None);
    let options = IP4.field("options").unwrap();
    assert_eq!((options.read(&[]), options.read(&[0; 60])), (None, None));
}

/// Checks that the table reads, from a header's bytes, the values that the struct of the header has.
fn check(
    header: &HeaderFields,
    bytes: &[u8],
    values: &[(&str, u128)],
) -> Result<(), TestCaseError> {
    for (name, value) in values {
        let field = header.field(name).unwrap();
        prop_assert_eq!(field.read(bytes), Some(*value), "{}.{}", header.name, name);
    }
    Ok(())
}

/// Parses bytes by a struct of this crate, which places its fields independently of the table.
fn of<H: Header>(bytes: &[u8]) -> H {
    H::read_from_bytes(&bytes[..H::LEN]).unwrap()
}

fn word<const N: usize>(bytes: [u8; N]) -> u128 {
    bytes
        .iter()
        .fold(0, |word, byte| word << 8 | u128::from(*byte))
}

proptest! {
    #[test]
    fn link_headers_agree_with_their_structs(bytes: [u8; 64]) {
        let h: EthHeader = of(&bytes);
        check(&ETH, &bytes, &[
            ("dst", word(h.dst.0)), ("src", word(h.src.0)), ("type", h.ether_type.0.get().into()),
        ])?;
        let h: VlanTag = of(&bytes);
        for header in [&VLAN, &QINQ] {
            check(header, &bytes, &[
                ("pcp", h.tci.priority().into()), ("dei", h.tci.drop_eligible().into()),
                ("id", h.tci.id().into()), ("type", h.ether_type.0.get().into()),
            ])?;
        }
        let h: ArpPacket = of(&bytes);
        check(&ARP, &bytes, &[
            ("htype", h.hardware.get().into()), ("ptype", h.protocol.0.get().into()),
            ("hlen", h.hardware_len.into()), ("plen", h.protocol_len.into()), ("op", h.operation.get().into()),
            ("sha", word(h.sender_mac.0)), ("src", word(h.sender_ip)),
            ("tha", word(h.target_mac.0)), ("tpa", word(h.target_ip)),
        ])?;
    }

    #[test]
    fn ip_headers_agree_with_their_structs(bytes: [u8; 64]) {
        let h: Ip4Header = of(&bytes);
        check(&IP4, &bytes, &[
            ("version", h.version().into()), ("ihl", (h.header_len() / 4) as u128), ("tos", h.tos.into()),
            ("dscp", (h.tos >> 2).into()), ("ecn", (h.tos & 3).into()), ("len", h.total_len.get().into()),
            ("id", h.id.get().into()), ("rf", (h.flags_fragment.get() >> 15).into()),
            ("df", h.dont_fragment().into()), ("mf", h.more_fragments().into()),
            ("frag", (h.fragment_offset() / 8) as u128), ("ttl", h.ttl.into()), ("protocol", h.protocol.0.into()),
            ("checksum", h.checksum.get().into()), ("src", word(h.src)), ("dst", word(h.dst)),
        ])?;
        let h: Ip6Header = of(&bytes);
        check(&IP6, &bytes, &[
            ("version", h.version().into()), ("tc", h.traffic_class().into()),
            ("dscp", (h.traffic_class() >> 2).into()), ("ecn", (h.traffic_class() & 3).into()),
            ("flow", h.flow_label().into()), ("length", h.payload_len.get().into()),
            ("next", h.next_header.0.into()), ("hops", h.hop_limit.into()),
            ("src", word(h.src)), ("dst", word(h.dst)),
        ])?;
        let h: ExtHeader = of(&bytes);
        for header in [&IP6_HBH, &IP6_DST, &IP6_ROUTING, &AH] {
            check(header, &bytes, &[("next", h.next_header.0.into()), ("length", h.len.into())])?;
        }
        let h: RoutingHeader = of(&bytes);
        check(&IP6_ROUTING, &bytes, &[("type", h.routing_type.into()), ("left", h.segments_left.into())])?;
        let h: FragmentHeader = of(&bytes);
        check(&IP6_FRAG, &bytes, &[
            ("next", h.next_header.0.into()), ("frag", (h.offset() / 8) as u128), ("mf", h.more().into()),
            ("id", h.id.get().into()),
        ])?;
    }

    #[test]
    fn transport_headers_agree_with_their_structs(bytes: [u8; 64]) {
        let h: UdpHeader = of(&bytes);
        check(&UDP, &bytes, &[
            ("sport", h.src_port.get().into()), ("dst", h.dst_port.get().into()), ("length", h.len.get().into()),
            ("checksum", h.checksum.get().into()),
        ])?;
        let h: TcpHeader = of(&bytes);
        check(&TCP, &bytes, &[
            ("src", h.src_port.get().into()), ("dport", h.dst_port.get().into()), ("seq", h.seq.get().into()),
            ("ack", h.ack.get().into()), ("flags", h.flags.into()), ("window", h.window.get().into()),
            ("checksum", h.checksum.get().into()), ("urgent", h.urgent.get().into()),
        ])?;
        let h: Icmp4Header = of(&bytes);
        let (id, seq) = h.echo();
        check(&ICMP, &bytes, &[
            ("type", h.kind.0.into()), ("code", h.code.into()), ("checksum", h.checksum.get().into()),
            ("id", id.into()), ("seq", seq.into()),
        ])?;
        let h: Icmp6Header = of(&bytes);
        let (id, seq) = h.echo();
        check(&ICMP6, &bytes, &[
            ("type", h.kind.0.into()), ("code", h.code.into()), ("checksum", h.checksum.get().into()),
            ("id", id.into()), ("seq", seq.into()),
        ])?;
    }
}
