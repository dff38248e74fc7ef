use super::*;
use volley_graph::harness::{In, Out, run};
use volley_graph::{Domain, NodeId};
use volley_iface::IfIdx;
use volley_model::Family;

/// A node that the harness does not know: it reports the node's packets under the name `LISTENER`, without a drop reason.
const NO_NODE: NodeId = NodeId(u16::MAX);
const LISTENER: &str = "error-drop";

fn table() -> Arc<IfTable> {
    let table = IfTable::new(1);
    for kind in [0x0806, 0x22f0] {
        table.listen_ethertype(kind, NO_NODE, true).unwrap();
    }
    for (index, flag) in [(0, Flag::Up), (2, Flag::Promiscuous)] {
        table.set(IfIdx(index), flag, true);
        table.set_mac(IfIdx(index), [2, 0, 0, 0, 0, 1]);
    }
    table.set(IfIdx(3), Flag::Ip6, true);
    table.set_lcp_tap(IfIdx(4), Some(IfIdx(9)));
    for group in [6, 7, 8] {
        table.set(IfIdx(group), Flag::Multicast, true);
    }
    table.set(IfIdx(7), Flag::Ip6, true);
    table.set_lcp_tap(IfIdx(8), Some(IfIdx(9)));
    table.set(IfIdx(5), Flag::HasSubInterfaces, true);
    table.set_mac(IfIdx(5), [2, 0, 0, 0, 0, 1]);
    table
}

fn frame(dst: [u8; 6], kind: u16, len: usize) -> Vec<u8> {
    let mut bytes = [&dst[..], &[2, 0, 0, 0, 0, 9], &kind.to_be_bytes()].concat();
    bytes.resize(len, 0xaa);
    bytes
}

fn tagged(dst: [u8; 6], kind: u16, tci: u16, len: usize) -> Vec<u8> {
    let mut bytes = frame(dst, kind, 14);
    bytes.extend(tci.to_be_bytes());
    bytes.resize(len, 0xaa);
    bytes
}

fn outcome(out: &Out) -> &str {
    out.reason.as_deref().unwrap_or(&out.to)
}

/// An IP frame to a multicast group.
fn to_group(mac: [u8; 6], kind: u16, group: &str) -> In {
    let mut bytes = frame(mac, kind, 80);
    match group.parse().unwrap() {
        std::net::IpAddr::V4(a) => bytes[30..34].copy_from_slice(&a.octets()),
        std::net::IpAddr::V6(a) => bytes[38..54].copy_from_slice(&a.octets()),
    }
    In::new(&bytes)
}

#[test]
fn groups_that_may_be_routed_pass_where_they_are_taken() {
    const FOUR: [u8; 6] = [1, 0, 0x5e, 0, 0, 5];
    const SIX: [u8; 6] = [0x33, 0x33, 0, 0, 0, 5];
    let four = |group| to_group(FOUR, 0x0800, group);
    let six = |group| to_group(SIX, 0x86dd, group);
    let cases = [
        (four("239.0.0.5").rx(6), "ip4-input"),
        (four("239.0.0.5").rx(3), "group-mac"),
        (four("224.0.0.5").rx(6), "group-mac"),
        (four("224.0.0.5").rx(8), "linux-cp-punt"),
        (four("239.0.0.5").rx(8), "ip4-input"),
        (four("10.0.0.5").rx(6), "group-mac"),
        (to_group([0xff; 6], 0x0800, "239.0.0.5").rx(6), "group-mac"),
        (to_group(SIX, 0x0800, "239.0.0.5").rx(6), "group-mac"),
        (to_group(FOUR, 0x86dd, "ff05::5").rx(6), "group-mac"),
        (In::new(&frame(FOUR, 0x0800, 33)).rx(6), "group-mac"),
        (six("ff05::5").rx(6), "ip6-input"),
        (six("ff05::5").rx(7), "ip6-input"),
        (six("ff05::5").rx(3), "nd-input"),
        (six("ff02::5").rx(6), "group-mac"),
        (six("ff02::5").rx(7), "nd-input"),
        (six("2001:db8::5").rx(7), "nd-input"),
        (
            to_group([0x33, 0x33, 0, 0, 0, 5], 0x86dd, "ff1e::5").rx(7),
            "ip6-input",
        ),
    ];
    for (packet, want) in &cases {
        let table = table();
        let out = run(std::slice::from_ref(packet), &Domain::new(), move |_| {
            EthernetInput::new(table.clone(), 256)
        });
        assert_eq!(outcome(&out[0]), *want, "{packet:02x?}");
    }
}

#[test]
fn datagrams_to_all_hosts_pass_where_a_feature_listens() {
    let table = table();
    let node = NodeId(1);
    table.listen_udp(Family::V4, 67, node, true).unwrap();
    table.listen_udp(Family::V6, 547, node, true).unwrap();
    for rx in [1, 3, 4, 9] {
        table.hear_link(IfIdx(rx), Family::V4, 67, true);
        table.hear_link(IfIdx(rx), Family::V6, 547, rx != 4);
    }
    let four = |to: [u8; 4], proto, port: u16| {
        let mut bytes = frame([0xff; 6], 0x0800, 80);
        (bytes[14], bytes[23]) = (0x45, proto);
        bytes[30..34].copy_from_slice(&to);
        bytes[36..38].copy_from_slice(&port.to_be_bytes());
        In::new(&bytes)
    };
    let six = |to: &str, port: u16| {
        let mut packet = to_group([0x33, 0x33, 0, 1, 0, 2], 0x86dd, to);
        packet.bytes[20] = 17;
        packet.bytes[56..58].copy_from_slice(&port.to_be_bytes());
        packet
    };
    let all = [255; 4];
    let mut cut = four(all, 17, 67).rx(9);
    cut.bytes.truncate(37);
    let cases = [
        (four(all, 17, 67).rx(9), "ip4-input"),
        (four(all, 17, 67).rx(2), "group-mac"),
        (four(all, 17, 68).rx(9), "group-mac"),
        (four(all, 6, 67).rx(9), "group-mac"),
        (four([10, 0, 0, 255], 17, 67).rx(9), "group-mac"),
        (four(all, 17, 67).rx(4), "ip4-input"),
        (four(all, 17, 68).rx(4), "linux-cp-punt"),
        (cut, "group-mac"),
        (six("ff02::1:2", 547).rx(9), "ip6-input"),
        (six("ff02::1:2", 546).rx(9), "group-mac"),
        (six("ff05::1:3", 547).rx(9), "group-mac"),
        (six("ff02::1:2", 547).rx(3), "ip6-input"),
        (six("ff02::1:2", 546).rx(3), "nd-input"),
        (six("ff02::1:2", 547).rx(7), "nd-input"),
        (six("ff02::1:2", 547).rx(4), "linux-cp-punt"),
    ];
    for (packet, want) in &cases {
        let table = table.clone();
        let out = run(std::slice::from_ref(packet), &Domain::new(), move |_| {
            EthernetInput::new(table.clone(), 256)
        });
        assert_eq!(outcome(&out[0]), *want, "{packet:02x?}");
    }
    table.listen_udp(Family::V4, 67, node, false).unwrap();
    assert!(table.has(9, Flag::LinkUdp), "for IPv6");
    table.listen_udp(Family::V6, 547, node, false).unwrap();
    assert!(!table.has(9, Flag::LinkUdp));
}

#[test]
fn frames_are_told_apart_in_the_order_of_the_rules() {
    const ME: [u8; 6] = [2, 0, 0, 0, 0, 1];
    const OTHER: [u8; 6] = [2, 0, 0, 0, 0, 2];
    const GROUP: [u8; 6] = [0xff; 6];
    const GROUP6: [u8; 6] = [0x33, 0x33, 0xff, 0, 0, 1];
    let cases = [
        (In::new(&frame(ME, 0x0800, 13)), "too-short"),
        (In::new(&[]), "too-short"),
        (In::new(&frame(ME, 0x0800, 60)), "ip4-input"),
        (In::new(&frame(ME, 0x86dd, 60)), "ip6-input"),
        (In::new(&frame(OTHER, 0x0800, 60)), "not-my-mac"),
        (In::new(&frame(OTHER, 0x0806, 60)), "not-my-mac"),
        (In::new(&frame(OTHER, 0x86dd, 60)).rx(2), "ip6-input"),
        (In::new(&frame(ME, 0x8100, 60)), "unknown-vlan"),
        (In::new(&frame(ME, 0x88a8, 60)), "unknown-vlan"),
        (In::new(&frame(GROUP, 0x9100, 60)), "unknown-vlan"),
        (In::new(&tagged(ME, 0x8100, 0xf000, 18)), "vlan-input"),
        (In::new(&tagged(ME, 0x88a8, 0, 60)), "vlan-input"),
        (In::new(&tagged(OTHER, 0x8100, 0, 60)), "not-my-mac"),
        (In::new(&tagged(ME, 0x8100, 0, 17)), "unknown-vlan"),
        (In::new(&tagged(ME, 0x9100, 0, 60)), "unknown-vlan"),
        (In::new(&tagged(ME, 0x8100, 7, 60)).rx(5), "vlan-input"),
        (In::new(&tagged(GROUP, 0x88a8, 7, 14)).rx(5), "vlan-input"),
        (In::new(&tagged(OTHER, 0x8100, 7, 60)).rx(5), "not-my-mac"),
        (In::new(&tagged(ME, 0x9100, 7, 60)).rx(5), "unknown-vlan"),
        (In::new(&frame(ME, 0x0800, 60)).rx(5), "ip4-input"),
        (In::new(&frame(GROUP, 0x0806, 60)), LISTENER),
        (In::new(&frame(ME, 0x0806, 60)), LISTENER),
        (In::new(&frame(ME, 0x88cc, 60)), "unknown-ethertype"),
        (In::new(&frame(ME, 0x22f0, 60)), LISTENER),
        (In::new(&frame(GROUP, 0x22f0, 60)).rx(4), LISTENER),
        (In::new(&frame(OTHER, 0x22f0, 60)), "not-my-mac"),
        (In::new(&frame(GROUP, 0x0800, 60)), "group-mac"),
        (In::new(&frame(GROUP6, 0x86dd, 60)), "group-mac"),
        (In::new(&frame(GROUP6, 0x86dd, 60)).rx(3), "nd-input"),
        (In::new(&frame(GROUP6, 0x0800, 60)).rx(3), "group-mac"),
        (In::new(&frame(GROUP, 0x86dd, 60)).rx(3), "group-mac"),
        (In::new(&frame(GROUP, 0x0800, 60)).rx(4), "linux-cp-punt"),
        (In::new(&frame(GROUP6, 0x86dd, 60)).rx(4), "linux-cp-punt"),
        (In::new(&frame(GROUP, 0x88cc, 60)).rx(4), "linux-cp-punt"),
        (In::new(&frame(GROUP, 0x0806, 60)).rx(4), LISTENER),
        (In::new(&frame(OTHER, 0x0800, 60)).rx(4), "not-my-mac"),
        (In::new(&frame(GROUP, 0x8100, 60)).rx(4), "unknown-vlan"),
        (In::new(&frame(OTHER, 0x88cc, 12)), "too-short"),
    ];
    for (packet, want) in &cases {
        let table = table();
        let out = run(std::slice::from_ref(packet), &Domain::new(), move |_| {
            EthernetInput::new(table.clone(), 256)
        });
        assert_eq!(outcome(&out[0]), *want, "{packet:02x?}");
        let stripped = if out[0].reason.is_some() { 0 } else { 14 };
        assert_eq!(out[0].bytes, packet.bytes[stripped..]);
    }
    let all: Vec<In> = cases.iter().map(|(p, _)| p.clone()).collect();
    let table = table();
    let mixed = run(&all, &Domain::new(), move |_| {
        EthernetInput::new(table.clone(), 256)
    });
    let mut got: Vec<&str> = mixed.iter().map(outcome).collect();
    let mut want: Vec<&str> = cases.iter().map(|c| c.1).collect();
    got.sort_unstable();
    want.sort_unstable();
    assert_eq!(got, want, "a mixed vector gives the same verdicts");
}
