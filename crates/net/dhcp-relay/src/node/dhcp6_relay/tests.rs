use super::*;
use crate::testing::{datagram, fib, table};
use volley_fib::columns::DPO;
use volley_graph::Domain;
use volley_graph::harness::{In, Out, run};
use volley_tables::Publisher;

fn ip(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

fn relay(iface: u32, name: &str, server: &str) -> Relay6 {
    Relay6 {
        iface,
        name: name.into(),
        servers: vec![ip(server).to_bits()],
        table: 0,
        source: None,
    }
}

fn bench(six: Vec<Relay6>, packet: In) -> Out {
    let domain = Domain::new();
    let fib = fib(&domain);
    let relays = Relays {
        four: Vec::new(),
        six,
    };
    let published = Publisher::new(&domain, relays);
    let (snap, plane, table) = (published.snap(), fib.dataplane6(), table());
    let make = move |_| Dhcp6Relay::new(snap.clone(), plane.clone(), table.clone());
    run(&[packet], &domain, make).swap_remove(0)
}

fn reason(packet: In) -> String {
    let six = vec![
        relay(0, "lan0", "2001:db8:b::9"),
        relay(1, "lan1", "2001:db8:ffff::9"),
        relay(3, "lan3", "2001:db8:b::9"),
    ];
    let out = bench(six, packet);
    out.reason.unwrap_or(out.to)
}

fn datagram6(from: &str, to: &str, message: &[u8], rx: u32) -> In {
    let header = header6((ip(from), CLIENT6), (ip(to), SERVER6), 1, message);
    datagram(&header, message, rx)
}

const SOLICIT: [u8; 4] = [1, 0xab, 0xcd, 0xef];

/// A Relay-reply message.
fn reply(link: &str, peer: &str, options: &[u8]) -> Vec<u8> {
    [
        &[13, 0][..],
        &ip(link).octets(),
        &ip(peer).octets(),
        options,
    ]
    .concat()
}

#[test]
fn a_solicitation_is_forwarded_from_the_address_of_the_interface() {
    let packet = datagram6("fe80::9", "ff02::1:2", &SOLICIT, 0);
    let out = bench(vec![relay(0, "lan0", "2001:db8:b::9")], packet);
    assert_eq!((&out.to[..], out.reason), ("ip6-lookup", None));
    let (header, message) = out.bytes.split_at(48);
    let (from, to) = (ip("2001:db8:a::1"), ip("2001:db8:b::9"));
    assert_eq!(header, header6((from, 547), (to, 547), 65, message));
    assert_eq!(message[..2], [12, 0]);
    assert_eq!(message[2..18], from.octets());
    assert_eq!(message[18..34], ip("fe80::9").octets());
    let options = [&[0, 18, 0, 4][..], b"lan0", &[0, 9, 0, 4], &SOLICIT].concat();
    assert_eq!(message[34..], options);
}

#[test]
fn messages_that_go_no_further_have_a_reason() {
    let to_all = |message: &[u8], rx| datagram6("fe80::9", "ff02::1:2", message, rx);
    let to_us = |message: &[u8], rx| datagram6("2001:db8:b::9", "2001:db8:a::1", message, rx);
    let named = [0, 18, 0, 1, b'x', 0, 9, 0, 4, 7, 0, 0, 0];
    let answer = [0, 9, 0, 4, 7, 0, 0, 0];
    let link = "2001:db8:a::1";
    let mut forward = reply("::", "fe80::1", &[]);
    (forward[0], forward[1]) = (12, 8);
    for (packet, why) in [
        (to_all(&SOLICIT, 5), "no-relay"),
        (to_all(&SOLICIT, 9), "linux-cp-punt"),
        (to_all(&SOLICIT, 1), "no-route-to-server"),
        (to_all(&SOLICIT, 3), "no-address"),
        (to_all(&[1, 2], 0), "too-short"),
        (to_all(&[2, 0, 0, 0], 0), "unexpected-type"),
        (to_all(&forward, 0), "hop-limit-exceeded"),
        (
            to_all(&reply(link, "fe80::9", &answer), 0),
            "unexpected-type",
        ),
        (to_all(&[1; 2010], 0), "too-long"),
        (
            to_us(&reply(link, "fe80::9", &named), 1),
            "unknown-interface",
        ),
        (
            to_us(&reply("2001:db8:a::2", "fe80::9", &answer), 1),
            "unknown-interface",
        ),
        (
            to_us(&reply(link, "fe80::9", &answer), 2),
            "unknown-interface",
        ),
        (to_us(&reply(link, "fe80::9", &answer), 9), "ip6-glean"),
        (to_us(&reply("::", "fe80::9", &answer), 9), "linux-cp-punt"),
        (to_us(&reply(link, "fe80::9", &[0]), 1), "bad-option"),
        (to_us(&reply(link, "fe80::9", &[]), 1), "no-relay-message"),
        (
            to_us(&reply(link, "ff02::9", &answer), 1),
            "bad-peer-address",
        ),
    ] {
        assert_eq!(reason(packet), why);
    }
}

#[test]
fn a_reply_goes_to_the_peer_on_its_link() {
    let answer = [
        &[0, 18, 0, 4][..],
        b"lan0",
        &[0, 9, 0, 4, 7, 0xab, 0xcd, 0xef],
    ]
    .concat();
    let six = || vec![relay(0, "lan0", "2001:db8:b::9")];
    let message = reply("::", "fe80::9", &answer);
    let out = bench(
        six(),
        datagram6("2001:db8:b::9", "2001:db8:a::1", &message, 1),
    );
    assert_eq!(out.to, "ip6-glean");
    let from = ip("fe80::ff:fe00:10");
    let header = header6(
        (from, 547),
        (ip("fe80::9"), 546),
        64,
        &[7, 0xab, 0xcd, 0xef],
    );
    assert_eq!(out.bytes[..48], header);
    let on_lan0 = Dpo::new(DpoKind::Glean, 0).0;
    assert_eq!(out.columns[&DPO.col], on_lan0);
    // Another relay agent on the interface gets a Relay-reply message, through the lookup.
    let nested = reply("::", "fe80::7", &[0, 9, 0, 4, 7, 0, 0, 0]);
    let option = [&[0, 9, 0, nested.len() as u8][..], &nested].concat();
    let message = reply("2001:db8:a::1", "2001:db8:a::7", &option);
    let out = bench(
        six(),
        datagram6("2001:db8:b::9", "2001:db8:a::1", &message, 1),
    );
    assert_eq!((&out.to[..], out.columns[&Col::RX]), ("ip6-lookup", 0));
    let (from, to) = (ip("2001:db8:a::1"), ip("2001:db8:a::7"));
    let header = header6((from, 547), (to, 547), 65, &nested);
    assert_eq!(out.bytes, [&header[..], &nested].concat());
}
