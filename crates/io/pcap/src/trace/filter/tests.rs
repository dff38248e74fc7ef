use super::Filter;
use proptest::prelude::*;
use volley_wire::build::Packet;
use volley_wire::field::{self, FieldKind};
use volley_wire::{MacAddr, tcp};

fn udp() -> Vec<u8> {
    Packet::eth(MacAddr::local(2), MacAddr::local(1))
        .ip4([10, 0, 0, 1].into(), [10, 1, 0, 1].into())
        .ttl(9)
        .udp(1234, 53)
        .payload(b"hello")
        .build()
}

fn tcp6() -> Vec<u8> {
    Packet::eth(MacAddr::local(2), MacAddr::local(1))
        .vlan(7)
        .ip6(
            "2001:db8::1".parse().unwrap(),
            "2001:db8:1::2".parse().unwrap(),
        )
        .hop_by_hop(&[])
        .tcp(443, 50000, tcp::flag::SYN)
        .build()
}

fn hits(text: &str, packet: &[u8]) -> bool {
    Filter::compile(text).unwrap().matches(packet, packet.len())
}

#[test]
fn tests_of_fields() {
    let yes = [
        "ip4.dst == 10.0.0.0/8 and udp.dport == 53",
        "ether.type == 0x0800",
        "host 10.1.0.1",
        "net 10.0.0.0/16",
        "port 53",
        "port 1234 && proto udp",
        "not tcp and !ip6",
        "tcp or udp and ip4.ttl < 10",
        "(tcp or udp) and ip4.ttl >= 9",
        "ip4.src != 10.0.0.2",
        "len == 47",
        "eth.src == 02:00:00:00:00:01",
    ];
    for text in yes {
        assert!(hits(text, &udp()), "{text}");
    }
    let no = [
        "ip4.dst == 11.0.0.0/8",
        "port 54",
        "proto 6",
        "ip6.hops != 0",
        "vlan",
        "(tcp or udp) and ip4.ttl > 9",
        "not (udp and host 10.0.0.1)",
        "arp or icmp or icmp6",
    ];
    for text in no {
        assert!(!hits(text, &udp()), "{text}");
    }
}

#[test]
fn tags_and_extension_headers_are_passed_over() {
    for text in [
        "vlan.id == 7 and tcp",
        "ether.type == 0x86dd",
        "tcp.flags == 2 and port 443",
        "net 2001:db8:1::/48 and host 2001:db8::1",
        "ip6.next == 0",
    ] {
        assert!(hits(text, &tcp6()), "{text}");
    }
}

#[test]
fn every_field_of_the_table_with_a_place_can_be_tested() {
    let tunnels = ["qinq", "pppoe", "vxlan", "geneve", "gtpu"];
    for header in field::HEADERS {
        for field in header.fields {
            let value = match field.kind {
                FieldKind::Number | FieldKind::Bytes => "1",
                FieldKind::Mac => "02:00:00:00:00:01",
                FieldKind::Ip4 => "192.0.2.1",
                FieldKind::Ip6 => "2001:db8::1",
            };
            let text = format!("{}.{} == {value}", header.name, field.name);
            let can = field.has_place() && !tunnels.contains(&header.name);
            assert_eq!(Filter::compile(&text).is_ok(), can, "{text}");
        }
    }
}

#[test]
fn fields_of_extension_headers_are_found() {
    let first = Packet::eth(MacAddr::local(2), MacAddr::local(1))
        .vlan(7)
        .ip6(
            "2001:db8::1".parse().unwrap(),
            "2001:db8::2".parse().unwrap(),
        )
        .hop_by_hop(&[])
        .fragment6(0, true, 0xabcd)
        .tcp(443, 50000, tcp::flag::SYN)
        .build();
    for text in [
        "vlan.type == 0x86dd and vlan.pcp == 0",
        "ip6-hbh and ip6-hop.next == 44",
        "ip6-frag.id == 0xabcd and ip6-frag.mf == 1 and ip6-frag.frag == 0",
        "tcp.offset == 5 and tcp.src == 443 and tcp.dport == 50000",
        "ip6.tc == 0 and ip6.dscp == 0 and ip6.version == 6",
        "proto tcp and not ah and not ip6-dst and not mpls",
    ] {
        assert!(hits(text, &first), "{text}");
    }
    let later = Packet::eth(MacAddr::local(2), MacAddr::local(1))
        .ip6(
            "2001:db8::1".parse().unwrap(),
            "2001:db8::2".parse().unwrap(),
        )
        .fragment6(8, false, 0xabcd)
        .tcp(443, 50000, tcp::flag::SYN)
        .build();
    assert!(hits(
        "tcp and ip6-frag.frag == 1 and not port 443 and not tcp.sport >= 0",
        &later
    ));
    for text in ["ip4.options", "eth.nothing", "vxlan.vni"] {
        assert!(Filter::compile(text).is_err(), "{text}");
    }
}

#[test]
fn and_binds_tighter_than_or_and_not_tightest() {
    let t = "ip4";
    let f = "ip6";
    for (text, expect) in [
        (format!("{t} or {f} and {f}"), true),
        (format!("({t} or {f}) and {f}"), false),
        (format!("not {f} or {t} and {f}"), true),
        (format!("not ({t} or {f})"), false),
        (format!("not not {t}"), true),
        (format!("{f} or {f} or {t}"), true),
        (format!("{t} and {t} and {f}"), false),
    ] {
        assert_eq!(hits(&text, &udp()), expect, "{text}");
    }
}

#[test]
fn errors_have_a_column() {
    let deep = "(".repeat(40);
    for (text, error) in [
        (
            "",
            "column 1: a test such as ip4.dst == 10.0.0.0/8 is missing",
        ),
        (
            "ip4.dst = 1.2.3.4",
            "column 9: '=' means nothing here: write ==",
        ),
        ("ip4.dst ==", "column 11: an address for ip4.dst is missing"),
        ("udp.dport == x", "column 14: 'x' is not a number"),
        (
            "ip4.dst == 10.0.0.1/8",
            "column 12: '10.0.0.1/8' has bits behind",
        ),
        ("ip4.dst == ::1", "column 12: '::1' is not an IPv4 address"),
        ("ip4.dst < 10.0.0.1", "column 9: ip4.dst is an address"),
        ("tcp == 1", "column 5: tcp is a header and has no value"),
        (
            "udp.foo",
            "column 1: 'udp.foo' is nothing to test: there are udp, udp.sport",
        ),
        (
            "foo",
            "column 1: 'foo' is nothing to test: there are len, eth, vlan",
        ),
        ("(tcp", "column 5: ')' is missing"),
        (
            "tcp udp",
            "column 5: expected 'and', 'or' or the end, not 'udp'",
        ),
        ("tcp and é", "column 9: 'é' means nothing here"),
        ("host 10.0.0.0/8", "column 6: host takes one address"),
        ("port 65536", "column 6: 65536 is no port"),
        (deep.as_str(), "column 33: more than 32 parentheses"),
    ] {
        let e = Filter::compile(text).unwrap_err().to_string();
        assert!(e.starts_with(error), "{text}: {e}");
    }
}

#[test]
fn the_deepest_filter_evaluates_right() {
    // Each level leaves a result open: `ip4 and (ip4 and (...))`.
    let text = "ip4 and (".repeat(32) + "udp" + &")".repeat(32);
    assert!(hits(&text, &udp()));
    assert!(!hits(&text.replace("udp", "tcp"), &udp()));
}

/// Filters made of the words of the language, most of them invalid.
fn words() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "ip4",
        "ip6",
        "udp",
        "tcp",
        "vlan.id",
        "ip4.dst",
        "ip6.src",
        "len",
        "eth.src",
        "==",
        "!=",
        "<",
        ">=",
        "and",
        "or",
        "not",
        "(",
        ")",
        "!",
        "&&",
        "host",
        "net",
        "port",
        "proto",
        "10.0.0.0/8",
        "10.0.0.1",
        "::/0",
        "53",
        "0x800",
        "02:00:00:00:00:01",
        "arp",
        "icmp6.type",
    ]);
    prop::collection::vec(word, 0..24).prop_map(|w| w.join(" "))
}

proptest! {
    #[test]
    fn any_text_gives_a_filter_or_a_place(text in "\\PC{0,200}") {
        if let Err(e) = Filter::compile(&text) {
            prop_assert!((1..=text.chars().count() + 1).contains(&e.column));
        }
    }

    #[test]
    fn any_filter_takes_any_packet(text in words(), bytes: Vec<u8>, cut in 0usize..80) {
        if let Ok(filter) = Filter::compile(&text) {
            filter.matches(&bytes, bytes.len());
            for packet in [udp(), tcp6()] {
                filter.matches(&packet[..cut.min(packet.len())], packet.len());
            }
        }
    }

    #[test]
    fn not_turns_every_answer_round(text in words(), bytes: Vec<u8>) {
        if let (Ok(plain), Ok(not)) = (Filter::compile(&text), Filter::compile(&format!("not ({text})"))) {
            prop_assert_ne!(plain.matches(&bytes, bytes.len()), not.matches(&bytes, bytes.len()));
        }
    }
}
