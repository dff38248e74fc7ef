use super::*;
use crate::arp::ArpPacket;
use crate::build::Packet;
use crate::icmp4::{Icmp4Header, Icmp4Type, unreachable};
use crate::icmp6::{Icmp6Header, Icmp6Type};
use crate::tcp::flag;
use crate::vlan::Tci;
use crate::{IpProto, MacAddr};
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;
use core::net::{Ipv4Addr, Ipv6Addr};

const MACS: &str = "02:00:00:00:00:01 -> 02:00:00:00:00:02";

fn base() -> Packet {
    Packet::eth(MacAddr::local(2), MacAddr::local(1))
}

fn ip4() -> Packet {
    base().ip4(Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 1, 0, 1))
}

fn ip6() -> Packet {
    let addr = |n| Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, n);
    base().ip6(addr(1), addr(2))
}

#[test]
fn one_line_per_kind_of_packet() {
    for (packet, name, rest) in ip4_cases().into_iter().chain(other_cases()) {
        assert_eq!(
            one_line(&packet.build()),
            alloc::format!("{name}: {MACS}{rest}")
        );
    }
}

type Case = (Packet, &'static str, &'static str);

fn ip4_cases() -> Vec<Case> {
    let quoted = Packet::bare()
        .ip4([10, 1, 0, 1].into(), [10, 9, 0, 1].into())
        .ttl(1)
        .udp(7, 8)
        .build();
    let quoted = Packet::payload(ip4(), quoted);
    let unreachable = |p: Packet| {
        p.icmp4(Icmp4Header::new(
            Icmp4Type::UNREACHABLE,
            unreachable::HOST,
            [0; 4],
        ))
    };
    vec![
        (
            ip4().udp(1234, 80).payload([0; 18]),
            "IP4",
            " / UDP 10.0.0.1 -> 10.1.0.1 ttl 64 len 46 / ports 1234 -> 80",
        ),
        (
            ip4()
                .tos(4)
                .dont_fragment()
                .options(&[148, 4, 0, 0])
                .tcp(1, 2, flag::SYN)
                .options(&[2, 4, 5, 0xb4]),
            "IP4",
            " / TCP 10.0.0.1 -> 10.1.0.1 ttl 64 len 48 tos 0x04 DF options router-alert / ports 1 -> 2 SYN seq 0 ack 0 win 65535 mss 1460",
        ),
        (
            ip4()
                .fragment4(16, true, 5)
                .proto(IpProto::UDP)
                .payload([1; 8]),
            "IP4",
            " / UDP 10.0.0.1 -> 10.1.0.1 ttl 64 len 28 fragment id 5 offset 16 more",
        ),
        (
            unreachable(quoted),
            "IP4",
            " / ICMP 10.0.0.1 -> 10.1.0.1 ttl 64 len 56 / unreachable code 1 / quoted UDP 10.1.0.1 -> 10.9.0.1 ttl 1 ports 7 -> 8",
        ),
    ]
}

fn other_cases() -> Vec<Case> {
    let ns = Icmp6Header::new(Icmp6Type::NEIGHBOUR_SOLICITATION, 0, [0; 4]);
    let ns_body = [
        &"fe80::9".parse::<Ipv6Addr>().unwrap().octets()[..],
        &[1, 1, 2, 0, 0, 0, 0, 1],
    ]
    .concat();
    let arp = ArpPacket::request(
        MacAddr::local(1),
        [10, 0, 0, 1].into(),
        [10, 0, 0, 2].into(),
    );
    vec![
        (
            ip6()
                .flow_label(0x1)
                .hop_by_hop(&[5, 2, 0, 0])
                .fragment6(0, true, 9)
                .udp(1, 2),
            "IP6",
            " / UDP 2001:db8::1 -> 2001:db8::2 hop-limit 64 len 24 flow 0x00001 [hop-by-hop] [fragment id 9 offset 0 more] / ports 1 -> 2",
        ),
        (
            ip6().ttl(255).icmp6(ns).payload(ns_body),
            "IP6",
            " / ICMP6 2001:db8::1 -> 2001:db8::2 hop-limit 255 len 32 / neighbour-solicitation code 0 who-has fe80::9 source 02:00:00:00:00:01",
        ),
        (
            ip6()
                .ip4([1, 1, 1, 1].into(), [2, 2, 2, 2].into())
                .echo4(3, 4),
            "IP6",
            " / IP4 2001:db8::1 -> 2001:db8::2 hop-limit 64 len 28 / ICMP 1.1.1.1 -> 2.2.2.2 ttl 64 len 28 / echo-request code 0 id 3 seq 4",
        ),
        (
            base().tag(EtherType::QINQ, Tci::new(7, 3)).vlan(8).arp(arp),
            "ARP",
            " svlan 7 pcp 3 vlan 8 / request who-has 10.0.0.2 tell 10.0.0.1",
        ),
        (
            base().ether_type(EtherType::LLDP).payload([0; 9]),
            "LLDP",
            " / 9 bytes",
        ),
        (
            base().ether_type(EtherType::new(60)).payload([0; 60]),
            "802.3",
            " len 60",
        ),
    ]
}

#[test]
fn one_layer_per_line() {
    let text = multi_line(&ip4().udp(1, 2).build());
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(
        lines,
        [
            "IP4: ".to_string() + MACS,
            "  UDP 10.0.0.1 -> 10.1.0.1 ttl 64 len 28".into(),
            "  ports 1 -> 2".into()
        ]
    );
}

#[test]
fn faults_are_named_where_they_are() {
    let bytes = ip4().udp(1, 2).payload([0; 8]).build();
    let tail = |bytes: &[u8]| one_line(bytes).split(" / ").last().unwrap().to_string();
    assert_eq!(
        tail(&bytes[..9]),
        "Ethernet header cut short: needs 14 bytes, has 9"
    );
    assert_eq!(
        tail(&bytes[..30]),
        "IPv4 header cut short: needs 20 bytes, has 16"
    );
    assert_eq!(
        tail(&bytes[..45]),
        "IPv4 total length field is 36, more than the 31 bytes there are"
    );
    let mut wrong = bytes.clone();
    wrong[24] ^= 1;
    assert!(
        one_line(&wrong).contains(" bad header checksum 0x"),
        "{}",
        one_line(&wrong)
    );
    let mut wrong = bytes.clone();
    wrong[49] ^= 1;
    assert!(
        tail(&wrong).starts_with("ports 1 -> 2 bad checksum 0x"),
        "{}",
        one_line(&wrong)
    );
    let mut wrong = bytes;
    wrong[14] = 0x65;
    assert_eq!(tail(&wrong), "IPv4 header says version 6");
}

#[test]
fn starts_other_than_ethernet() {
    let bytes = ip4().udp(1, 2).build();
    let text = packet(&bytes[14..], From::Ip).to_string();
    assert_eq!(
        text,
        "UDP 10.0.0.1 -> 10.1.0.1 ttl 64 len 28 / ports 1 -> 2"
    );
    assert_eq!(
        packet(&bytes[14..], From::Type(EtherType::IP4)).to_string(),
        text
    );
    assert!(
        packet(&ip6().udp(1, 2).build()[14..], From::Ip)
            .to_string()
            .starts_with("UDP 2001:db8::1")
    );
    assert_eq!(
        packet(&[], From::Ip).to_string(),
        "IPv4 header cut short: needs 20 bytes, has 0"
    );
}

#[test]
fn nesting_is_bounded() {
    let mut packet = base();
    for _ in 0..100 {
        packet = packet.ip4([1, 1, 1, 1].into(), [2, 2, 2, 2].into());
    }
    let text = one_line(&packet.udp(1, 2).build());
    assert_eq!(text.split(" / ").count(), MAX_LAYERS + 1);
    assert!(text.ends_with(" / ..."), "{text}");
    let tags = (0..50).fold(base(), |p, n| p.vlan(n));
    assert!(one_line(&tags.build()).contains("vlan 7 and 42 tags more"));
}

#[test]
fn the_first_bytes_of_a_packet_are_no_faulty_packet() {
    let udp = ip4().udp(5, 6).payload([0; 600]).build();
    let cut = |bytes: &[u8], at: usize| frame(&bytes[..at]).of(bytes.len()).to_string();
    assert_eq!(
        cut(&udp, 128),
        alloc::format!("IP4: {MACS} / UDP 10.0.0.1 -> 10.1.0.1 ttl 64 len 628 / ports 5 -> 6")
    );
    assert_ne!(one_line(&udp[..128]), cut(&udp, 128));
    let tcp = ip6().tcp(7, 8, flag::SYN).payload([0; 600]).build();
    let reported = cut(&tcp, 128);
    assert!(
        reported.contains("hop-limit 64 len 620 / ports 7 -> 8"),
        "{reported}"
    );
    assert!(!reported.contains("bad"), "{reported}");
    assert_eq!(
        cut(&udp, 20),
        alloc::format!("IP4: {MACS} (20 of 642 bytes kept)")
    );
    assert_eq!(
        cut(&udp, 38),
        alloc::format!(
            "IP4: {MACS} / UDP 10.0.0.1 -> 10.1.0.1 ttl 64 len 628 (38 of 642 bytes kept)"
        )
    );
    assert_eq!(cut(&udp, 9), "(9 of 642 bytes kept)");
    for (packet, name, rest) in ip4_cases().into_iter().chain(other_cases()) {
        let (bytes, whole) = (packet.build(), alloc::format!("{name}: {MACS}{rest}"));
        for at in 0..=bytes.len() {
            let text = cut(&bytes, at);
            let reported =
                text.replace(&alloc::format!(" ({at} of {} bytes kept)", bytes.len()), "");
            let faulty = [
                "bad",
                "cut short",
                "length field",
                "not allow",
                "says version",
            ];
            assert!(!faulty.iter().any(|f| text.contains(f)), "{at}: {text}");
            assert!(
                whole.starts_with(&reported) || at < 22 || rest.contains('['),
                "{at}: {reported}"
            );
        }
    }
}

/// A length that exceeds the whole packet is wrong, whatever part of the packet is available.
#[test]
fn lengths_are_judged_against_the_whole_packet() {
    let bytes = ip4().udp(5, 6).payload([0; 600]).build();
    let short = |kept: usize, len: usize| frame(&bytes[..kept]).of(len).to_string();
    for kept in 34..100 {
        let text = short(kept, 600);
        let fault = "IPv4 total length field is 628, more than the 586 bytes there are";
        assert!(text.ends_with(fault), "{kept}: {text}");
    }
    let mut lies = bytes.clone();
    lies[38] = 9; // UDP length 0x0968
    let text = frame(&lies[..80]).of(lies.len()).to_string();
    assert!(
        text.ends_with("UDP length field is 2400, more than the 608 bytes there are"),
        "{text}"
    );
    let bytes = ip6().tcp(5, 6, flag::SYN).payload([0; 600]).build();
    let text = frame(&bytes[..80]).of(100).to_string();
    let fault = "IPv6 payload length field is 620, more than the 46 bytes there are";
    assert!(text.ends_with(fault), "{text}");
}

/// A kernel stores the sum of the pseudo-header in the checksum field.
#[test]
fn a_checksum_to_be_finished_is_not_a_bad_one() {
    for (packet, start) in [
        (ip4().udp(1, 2).payload([7; 90]), 34),
        (ip4().tcp(1, 2, flag::SYN).payload([7; 90]), 34),
        (ip6().tcp(1, 2, flag::SYN).payload([7; 90]), 54),
    ] {
        let mut bytes = packet.build();
        let at = start + if bytes.len() == start + 98 { 6 } else { 16 };
        bytes[at] ^= 0x55;
        for kept in start + 20..=bytes.len() {
            let packet = frame(&bytes[..kept]).of(bytes.len());
            let reported = packet.offloaded(Some(start)).to_string();
            assert!(
                reported.ends_with(" checksum offloaded"),
                "{kept}: {reported}"
            );
            let bad = packet.to_string().contains("bad checksum");
            assert_eq!(bad, kept == bytes.len(), "{kept}: {packet}");
        }
    }
}

/// A first fragment may end inside the transport header: the rest of the header is in the next fragment.
#[test]
fn a_small_fragment_is_no_faulty_packet() {
    for proto in [IpProto::UDP, IpProto::TCP, IpProto::ICMP] {
        let fragment = ip4().fragment4(0, true, 5).proto(proto).payload([1; 8]);
        let text = one_line(&fragment.build());
        assert!(!text.contains("cut short"), "{text}");
        let whole = one_line(&ip4().proto(proto).payload([1; 4]).build());
        assert!(whole.contains("cut short"), "{whole}");
    }
}

/// Every truncation of every type of packet, and every single-bit error in their headers, results in a text of bounded length.
#[test]
fn cuts_and_flips() {
    let packets = [
        ip4()
            .options(&[7, 7, 4, 1, 1, 1, 1])
            .tcp(1, 2, 0xff)
            .options(&[2, 4, 1, 1])
            .build(),
        ip6()
            .hop_by_hop(&[])
            .routing(0, 1, 1)
            .dest_options(&[9, 1, 1])
            .fragment6(0, false, 1)
            .udp(1, 2)
            .build(),
        ip6()
            .icmp6(Icmp6Header::new(Icmp6Type::ROUTER_ADVERTISEMENT, 0, [0; 4]))
            .payload([3u8; 40])
            .build(),
        base()
            .vlan(1)
            .vlan(2)
            .ip4([1, 1, 1, 1].into(), [2, 2, 2, 2].into())
            .echo4(1, 1)
            .build(),
    ];
    for bytes in packets {
        for cut in 0..=bytes.len() {
            assert!(one_line(&bytes[..cut]).len() < 2000);
        }
        for bit in 0..bytes.len() * 8 {
            let mut wrong = bytes.clone();
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert!(multi_line(&wrong).len() < 2000);
        }
    }
}

proptest::proptest! {
    #[test]
    fn any_bytes_give_a_text(bytes: Vec<u8>, which in 0usize..4) {
        let from = [From::Ethernet, From::Ip, From::Type(EtherType::ARP), From::Type(EtherType::IP6)][which];
        proptest::prop_assert!(packet(&bytes, from).to_string().len() < 4000);
    }

    #[test]
    fn any_payload_behind_a_right_header(bytes: Vec<u8>, proto: u8) {
        let text = one_line(&ip4().proto(IpProto(proto)).payload(&bytes).build());
        proptest::prop_assert!(!text.contains("bad header checksum"));
        let _ = one_line(&ip6().proto(IpProto(proto)).payload(&bytes).build());
    }
}

/// The bytes of a text of hexadecimal digits.
fn hex(text: &str) -> Vec<u8> {
    let digit = |at| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(digit).collect()
}

const TO: &str = "020000000002020000000001";
const INNER: &str = "4500001c000100004011f6ccc0000201c00002020001000200087bd7";
const INNER_TEXT: &str = "UDP 192.0.2.1 -> 192.0.2.2 ttl 64 len 28 / ports 1 -> 2";
const FRAME: &str = "0200000000040200000000030800";
const FRAME_TEXT: &str = "IP4: 02:00:00:00:00:03 -> 02:00:00:00:00:04";

/// Tunnels and transport headers of the table of fields; scapy 2.5 wrote the bytes.
#[test]
fn headers_of_the_field_table_and_what_they_carry() {
    let link = [
        (
            "884700064009 00011b08 INNER",
            "MPLS: MACS / mpls label 100 ttl 9 / mpls label 17 tc 5 bottom 1 ttl 8 / INNER_TEXT",
        ),
        (
            "88470006410900000000 61626364",
            "MPLS: MACS / mpls label 100 bottom 1 ttl 9",
        ),
        (
            "886411000007001e0021 INNER",
            "PPPoE: MACS / pppoe version 1 type 0x1 session 7 length 30 proto 0x21 / INNER_TEXT",
        ),
    ];
    let ip = [
        (
            "34000100 0040 2f6698 00000800 INNER",
            "GRE 10.0.0.1 -> 10.1.0.1 ttl 64 len 52 / gre type 0x800 / INNER_TEXT",
        ),
        (
            "4a000100 0040 2f6682 30006558 00000005 00000003 FRAME INNER",
            "GRE 10.0.0.1 -> 10.1.0.1 ttl 64 len 74 / gre k 1 s 1 type 0x6558 / FRAME_TEXT / INNER_TEXT",
        ),
        (
            "4e000100 0040 11669c 000512b5003a1ad1 0c00000300002a00 FRAME INNER",
            "UDP 10.0.0.1 -> 10.1.0.1 ttl 64 len 78 / ports 5 -> 4789 / vxlan flags 0xc vni 42 / FRAME_TEXT / INNER_TEXT",
        ),
        (
            "44000100 0040 1166a6 000517c1003047e3 0100080000000700 00000000 INNER",
            "UDP 10.0.0.1 -> 10.1.0.1 ttl 64 len 68 / ports 5 -> 6081 / geneve length 1 type 0x800 vni 7 / INNER_TEXT",
        ),
        (
            "40000100 0040 1166aa 00050868002c3620 30ff001c00000009 INNER",
            "UDP 10.0.0.1 -> 10.1.0.1 ttl 64 len 64 / ports 5 -> 2152 / gtpu version 1 type 0xff length 28 teid 0x9 / INNER_TEXT",
        ),
        (
            "20000100 0040 846657 00010002000000030928b319",
            "SCTP 10.0.0.1 -> 10.1.0.1 ttl 64 len 32 / sctp sport 1 dport 2 tag 3 checksum 0x928b319",
        ),
        (
            "24000100 0040 3266a5 00001234000000066162636465666768",
            "ESP 10.0.0.1 -> 10.1.0.1 ttl 64 len 36 / esp spi 0x1234 seq 6",
        ),
        (
            "34000100 0040 336694 11040000 00000001 00000002 000000000000000000000000 0001000200080000",
            "AH 10.0.0.1 -> 10.1.0.1 ttl 64 len 52 / ah next 17 length 4 spi 0x1 seq 2 / ports 1 -> 2",
        ),
    ];
    let link = link.map(|(bytes, text)| (alloc::format!("{TO} {bytes}"), text.to_string()));
    let ip = ip.map(|(bytes, text)| {
        let (total, rest) = bytes.split_at(2);
        let (head, payload) = rest.split_at("000100 0040 2f6698".len());
        let bytes = alloc::format!("{TO} 0800 450000{total} {head} 0a0000010a010001 {payload}");
        (bytes, alloc::format!("IP4: MACS / {text}"))
    });
    for (bytes, text) in link.into_iter().chain(ip) {
        let bytes = bytes.replace("INNER", INNER).replace("FRAME", FRAME);
        let text = text.replace("INNER_TEXT", INNER_TEXT);
        let text = text.replace("FRAME_TEXT", FRAME_TEXT).replace("MACS", MACS);
        let bytes = hex(&bytes.replace(' ', ""));
        assert_eq!(one_line(&bytes), text);
        for cut in 14..bytes.len() {
            let reported = alloc::format!("{}", frame(&bytes[..cut]).of(bytes.len()));
            let shown = reported.split(" (").next().unwrap_or_default();
            assert!(text.starts_with(shown), "{cut}: {reported}");
        }
    }
}

/// The payload length of an authentication header includes its fixed part (RFC 4302, 2.2).
#[test]
fn an_authentication_header_is_not_shorter_than_its_fixed_part() {
    let bytes = alloc::format!(
        "{TO}0800 45000034000100004033669 40a0000010a010001 1100000000000001000000020000000000000000000000000001000200080000"
    );
    let text = one_line(&hex(&bytes.replace(' ', "")));
    let fault = "ah length field is 8, less than the least of 12";
    assert!(text.ends_with(fault), "{text}");
}
