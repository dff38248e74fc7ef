//! The nodes at every vector length and instruction set: packets accepted, copied and rewritten.

use std::sync::Arc;
use volley_fib::columns::{DPO, GROUP_MTU};
use volley_fib::{Fib, V4, V6};
use volley_graph::harness::{In, LENGTHS, Out, run, run_once};
use volley_graph::{Col, Domain, Level};
use volley_iface::{Flag, IfIdx, IfTable};
use volley_mcast::node::ip_mfib_forward_lookup::Lookup;
use volley_mcast::node::ip_mfib_forward_rpf::Rpf;
use volley_mcast::node::ip_replicate::Replicate;
use volley_mcast::node::ip_rewrite_mcast::RewriteMcast;
use volley_mcast::table::{Mfib, Name};
use volley_wire::build::Packet;
use volley_wire::{MacAddr, checksum};

const GROUP: [u8; 4] = [239, 129, 2, 3];

/// Interfaces 1 to 5; 4 has an LCP tap, 5 is down.
fn table() -> Arc<IfTable> {
    let table = IfTable::new(1);
    for port in 1..=5 {
        table.set(IfIdx(port), Flag::Up, port < 5);
        table.set_mac(IfIdx(port), [2, 0, 0, 0, 0, port as u8]);
        table.set_mtu(IfIdx(port), 1500);
    }
    table.set_lcp_tap(IfIdx(4), Some(IfIdx(9)));
    table
}

/// One route: accepted on 1 and 2, forwarded to 1 to 5.
fn mfib(domain: &Arc<Domain>) -> Mfib<V4> {
    let mut mfib = Mfib::new(domain, 1);
    let name = Name {
        table: 0,
        group: u32::from_be_bytes(GROUP),
        len: 32,
        source: None,
    };
    mfib.set(name, vec![2, 1], vec![1, 2, 3, 4, 5]).unwrap();
    mfib.publish();
    mfib
}

fn packet(group: [u8; 4], ttl: u8, payload: usize) -> Vec<u8> {
    let packet = Packet::bare()
        .ip4([10, 0, 0, 9].into(), group.into())
        .ttl(ttl)
        .udp(1, 2)
        .payload(vec![7; payload]);
    packet.build()
}

fn outcome(out: &Out) -> &str {
    out.reason.as_deref().unwrap_or(&out.to)
}

#[test]
fn a_route_is_found_or_the_packet_goes_no_further() {
    let domain = Domain::new();
    let (fib, mfib) = (Fib::new(&domain), mfib(&domain));
    let (plane, snap, table) = (fib.dataplane4(), mfib.snap(), table());
    let mut padded = packet(GROUP, 2, 10);
    padded.extend([0; 8]);
    let other = [239, 1, 2, 4];
    let cases = [
        (In::new(&padded).rx(1), "ip4-mfib-forward-rpf"),
        (In::new(&packet(GROUP, 1, 10)).rx(1), "ttl-expired"),
        (In::new(&packet(GROUP, 0, 10)).rx(1), "ttl-expired"),
        (In::new(&packet(other, 9, 10)).rx(1), "no-mroute"),
        (In::new(&packet(other, 9, 10)).rx(4), "linux-cp-punt"),
        (In::new(&packet(GROUP, 9, 10)[..19]).rx(1), "no-mroute"),
    ];
    for (packet, want) in cases {
        let (plane, snap, table) = (plane.clone(), snap.clone(), table.clone());
        let out = run(&[packet], &domain, move |_| {
            Lookup::<V4>::new(plane.clone(), snap.clone(), table.clone())
        });
        assert_eq!(outcome(&out[0]), want);
        if want == "ip4-mfib-forward-rpf" {
            assert_eq!(out[0].bytes, padded[..38], "cut to its own length");
        }
    }
}

#[test]
fn only_accepting_interfaces_pass() {
    let domain = Domain::new();
    let mfib = mfib(&domain);
    let id = mfib
        .current()
        .find(0, 1, u32::from_be_bytes(GROUP))
        .unwrap();
    let snap = mfib.snap();
    for (rx, id, want) in [
        (1, id, "ip4-replicate"),
        (2, id, "ip4-replicate"),
        (3, id, "rpf-failure"),
        (1, id + 1, "mroute-gone"),
        (1, id ^ 1 << 20, "mroute-gone"),
    ] {
        let snap = snap.clone();
        let packet = In::new(&packet(GROUP, 9, 10)).rx(rx).column(DPO.col, id);
        let out = run(&[packet], &domain, move |_| Rpf::<V4>::new(snap.clone(), 0));
        assert_eq!(outcome(&out[0]), want, "{rx}");
    }
    let sums = mfib.iter().next().unwrap().1.counts.sums();
    assert!(sums.packets > 0 && sums.bytes == 38 * sums.packets && sums.packets == 2 * sums.wrong);
}

#[test]
fn every_way_out_that_is_up_gets_one_but_not_the_one_in() {
    let domain = Domain::new();
    let mfib = mfib(&domain);
    let id = mfib
        .current()
        .find(0, 1, u32::from_be_bytes(GROUP))
        .unwrap();
    // Longer than a buffer: copies are buffer chains too.
    let long = packet(GROUP, 9, 5000);
    let one = In::new(&long).rx(2).column(DPO.col, id);
    let many = vec![one; 9];
    for level in Level::available() {
        for size in LENGTHS {
            let (snap, table) = (mfib.snap(), table());
            let make = move |_| Replicate::<V4>::new(snap.clone(), table.clone());
            let out = run_once(level, size, &many, &domain, make).unwrap();
            let ports: Vec<u32> = out.iter().map(|o| o.columns[&Col::TX]).collect();
            assert_eq!(ports, [1, 3, 4].repeat(9), "{level} {size}");
            assert!(
                out.iter()
                    .all(|o| o.bytes == long && o.to == "ip4-rewrite-mcast")
            );
        }
    }
    let unknown = In::new(&long).rx(2).column(DPO.col, id + 1);
    let (snap, table) = (mfib.snap(), table());
    let out = run(&[unknown], &domain, move |_| {
        Replicate::<V4>::new(snap.clone(), table.clone())
    });
    assert_eq!(outcome(&out[0]), "no-receiver");
}

fn rewritten4(packet: In) -> Out {
    let table = table();
    let out = run(&[packet], &Domain::new(), move |_| {
        RewriteMcast::<V4>::new(table.clone())
    });
    out.into_iter().next().unwrap()
}

#[test]
fn a_copy_leaves_for_the_group_s_own_address_with_one_hop_less() {
    let sent = packet(GROUP, 9, 30);
    let out = rewritten4(In::new(&sent).column(Col::TX, 3));
    assert_eq!(out.to, "interface-output");
    // RFC 1112, 6.4: the low 23 bits.
    let header = [1, 0, 0x5e, 1, 2, 3, 2, 0, 0, 0, 0, 3, 8, 0];
    assert_eq!(out.bytes[..14], header);
    assert_eq!((out.bytes[22], &out.bytes[34..]), (8, &sent[20..]));
    assert!(checksum::is_valid(&out.bytes[14..34]));
    let group = "ff05::1:2:3".parse().unwrap();
    let sent = Packet::bare()
        .ip6("2001:db8::9".parse().unwrap(), group)
        .udp(1, 2)
        .ttl(9)
        .payload([5; 9])
        .build();
    let table = table();
    let packet = In::new(&sent).column(Col::TX, 2);
    let out = run(&[packet], &Domain::new(), move |_| {
        RewriteMcast::<V6>::new(table.clone())
    });
    let mac = MacAddr::for_ip6_multicast(group).0;
    assert_eq!(out[0].bytes[..6], mac);
    assert_eq!(mac, [0x33, 0x33, 0, 2, 0, 3]);
    assert_eq!(out[0].bytes[6..14], [2, 0, 0, 0, 0, 2, 0x86, 0xdd]);
    assert_eq!((out[0].bytes[21], &out[0].bytes[22..]), (8, &sent[8..]));
}

#[test]
fn what_does_not_fit_is_cut_dropped_or_told_of() {
    let long = |payload| In::new(&packet(GROUP, 9, payload)).column(Col::TX, 3);
    assert_eq!(rewritten4(long(1472)).to, "interface-output");
    assert_eq!(rewritten4(long(1473)).to, "ip4-frag");
    let mut whole = packet(GROUP, 9, 1473);
    whole[6] = 0x40;
    let out = rewritten4(In::new(&whole).column(Col::TX, 3));
    assert_eq!(
        (outcome(&out), out.to.as_str()),
        ("frag-needed", "error-drop")
    );
    let sent = Packet::bare()
        .ip6("2001:db8::9".parse().unwrap(), "ff05::1".parse().unwrap())
        .udp(1, 2)
        .payload(vec![5; 1453])
        .build();
    let table = table();
    let out = run(
        &[In::new(&sent).column(Col::TX, 2)],
        &Domain::new(),
        move |_| RewriteMcast::<V6>::new(table.clone()),
    );
    assert_eq!(out[0].to, "ip6-icmp-error");
    assert_eq!(out[0].columns[&GROUP_MTU.col], 1500);
}
