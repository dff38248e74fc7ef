use super::*;
use crate::checksum;
use crate::eth;
use crate::icmp4::Icmp4;
use crate::icmp6::Icmp6;
use crate::ip4::Ip4;
use crate::ip6::Ip6;
use crate::tcp::{Tcp, flag};
use crate::udp::Udp;

fn base() -> Packet {
    Packet::eth(MacAddr::local(2), MacAddr::local(1))
}

fn v4(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, last)
}

fn v6(last: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last)
}

/// The expected bytes are literals, both checksums included.
#[test]
fn a_udp_packet_byte_by_byte() {
    let bytes = base()
        .vlan(5)
        .ip4(v4(1), v4(2))
        .ttl(9)
        .dont_fragment()
        .udp(1, 2)
        .payload([7])
        .build();
    let mut expected = Vec::from([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x81, 0, 0, 5, 8, 0]);
    expected.extend([
        0x45, 0, 0, 29, 0, 0, 0x40, 0, 9, 17, 0x5d, 0xce, 10, 0, 0, 1, 10, 0, 0, 2,
    ]);
    expected.extend([0, 1, 0, 2, 0, 9, 0xe4, 0xd6, 7]);
    assert_eq!(bytes, expected);
}

#[test]
fn everything_is_right_unless_told_otherwise() {
    let bytes = base()
        .ip4(v4(1), v4(2))
        .options(&[148, 4, 0, 0, 1])
        .tcp(1, 2, flag::SYN)
        .options(&[2, 4, 5, 0xb4])
        .build();
    let frame = eth::frame(&bytes).unwrap();
    let ip = Ip4::parse(frame.payload).unwrap();
    assert!(ip.checksum_ok());
    assert_eq!((ip.options.len(), ip.header.protocol), (8, IpProto::TCP));
    let tcp = Tcp::parse(ip.payload).unwrap();
    assert_eq!(tcp.mss(), Some(1460));
    assert!(checksum::is_valid4(v4(1), v4(2), IpProto::TCP, ip.payload));

    let bytes = base()
        .ip4(v4(1), v4(2))
        .echo4(1, 2)
        .payload(b"ping")
        .build();
    let ip = Ip4::parse(&bytes[14..]).unwrap();
    assert!(Icmp4::parse(ip.payload).unwrap().checksum_ok());
}

#[test]
fn ip6_with_all_extension_headers() {
    let packet = base()
        .ip6(v6(1), v6(2))
        .ttl(3)
        .tos(0x20)
        .flow_label(0xabcde);
    let packet = packet
        .hop_by_hop(&[5, 2, 0, 0])
        .routing(0, 0, 1)
        .dest_options(&[0x1e, 1, 9])
        .fragment6(0, true, 7);
    let bytes = packet.udp(1, 2).payload(b"data").build();
    let ip = Ip6::parse(&bytes[14..]).unwrap();
    assert_eq!(
        (
            ip.header.hop_limit,
            ip.header.traffic_class(),
            ip.header.flow_label()
        ),
        (3, 0x20, 0xabcde)
    );
    let kinds: Vec<_> = ip.extensions().map(|e| e.unwrap().kind).collect();
    assert_eq!(
        kinds,
        [
            IpProto::HOP_BY_HOP,
            IpProto::ROUTING,
            IpProto::DEST_OPTS,
            IpProto::FRAGMENT
        ]
    );
    for ext in ip.extensions().flatten() {
        assert_eq!(ext.bytes.len() % 8, 0);
        ext.options().check().unwrap();
    }
    let upper = ip.upper().unwrap();
    assert_eq!(upper.proto, IpProto::UDP);
    assert!(
        Udp::parse(upper.payload)
            .unwrap()
            .checksum_ok6(v6(1), v6(2))
    );

    let bytes = base().ip6(v6(1), v6(2)).echo6(1, 2).build();
    let ip = Ip6::parse(&bytes[14..]).unwrap();
    assert!(
        Icmp6::parse(ip.payload)
            .unwrap()
            .checksum_ok(ip.header.pseudo(IpProto::ICMP6, 8))
    );
}

#[test]
fn tunnels_and_arp() {
    let bytes = base()
        .ip6(v6(1), v6(2))
        .ip4(v4(1), v4(2))
        .ttl(5)
        .udp(1, 2)
        .build();
    let ip = Ip6::parse(&bytes[14..]).unwrap();
    assert_eq!(
        (ip.header.next_header, ip.header.hop_limit),
        (IpProto::IP4, 64)
    );
    let inner = Ip4::parse(ip.payload).unwrap();
    assert_eq!(inner.header.ttl, 5);
    assert!(
        Udp::parse(inner.payload)
            .unwrap()
            .checksum_ok4(v4(1), v4(2))
    );
    let arp = ArpPacket::request(MacAddr::local(1), v4(1), v4(2));
    let bytes = Packet::eth(MacAddr::BROADCAST, MacAddr::local(1))
        .arp(arp)
        .build();
    let frame = eth::frame(&bytes).unwrap();
    assert_eq!(
        (frame.ether_type, ArpPacket::parse(frame.payload)),
        (EtherType::ARP, Ok(&arp))
    );
}

#[test]
fn made_wrong_on_purpose() {
    let bytes = base()
        .ether_type(EtherType::IP6)
        .ip4(v4(1), v4(2))
        .proto(IpProto::SCTP)
        .udp(1, 2)
        .build();
    let frame = eth::frame(&bytes).unwrap();
    assert_eq!(frame.ether_type, EtherType::IP6);
    assert_eq!(
        Ip4::parse(frame.payload).unwrap().header.protocol,
        IpProto::SCTP
    );
    let bytes = base()
        .ip4(v4(1), v4(2))
        .udp(1, 2)
        .zero_transport_checksums()
        .build();
    assert_eq!(Udp::parse(&bytes[34..]).unwrap().header.checksum.get(), 0);
}

#[test]
fn fragments_of_both_families() {
    let bytes = base()
        .ip4(v4(1), v4(2))
        .fragment4(1480, true, 9)
        .proto(IpProto::UDP)
        .payload([0; 8])
        .build();
    let ip = Ip4::parse(&bytes[14..]).unwrap();
    assert_eq!(
        (
            ip.header.fragment_offset(),
            ip.header.more_fragments(),
            ip.header.id.get()
        ),
        (1480, true, 9)
    );
    let bytes = base()
        .ip6(v6(1), v6(2))
        .fragment6(1448, false, 9)
        .proto(IpProto::UDP)
        .payload([0; 8])
        .build();
    let upper = Ip6::parse(&bytes[14..]).unwrap().upper().unwrap();
    assert_eq!(
        (upper.fragment.unwrap().offset(), upper.proto),
        (1448, IpProto::UDP)
    );
}

proptest::proptest! {
    #[test]
    fn frame_len_holds(len in 0usize..2000, payload: Vec<u8>) {
        let packet = base().ip4(v4(1), v4(2)).udp(1, 2).payload(payload).frame_len(len);
        let bytes = packet.build();
        proptest::prop_assert_eq!(bytes.len(), len.max(packet.headers_len()));
        let ip = Ip4::parse(&bytes[14..]).unwrap();
        proptest::prop_assert!(Udp::parse(ip.payload).unwrap().checksum_ok4(v4(1), v4(2)));
    }

    #[test]
    fn extension_headers_are_whole(content in proptest::collection::vec(0u8.., 0..2100), kind in 0usize..3) {
        let kind = [IpProto::HOP_BY_HOP, IpProto::DEST_OPTS, IpProto::ROUTING][kind];
        let bytes = Packet::bare().ip6(v6(1), v6(2)).extension(kind, &content).udp(1, 2).build();
        let upper = Ip6::parse(&bytes).unwrap().upper().unwrap();
        proptest::prop_assert_eq!((upper.proto, upper.payload.len()), (IpProto::UDP, 8));
    }
}
