//! Tests of the feature, the handoff and the stage on an arc, with a manual clock: fragments in, the same fragments out with
//! the hash of their flow.

mod bench;

use super::*;
use crate::ReassemblySettings;
use crate::hash::{hash4, hash6};
use crate::testing::fragments::{self, all_of, ip4, ip6};
use crate::testing::line::Arrived;
use bench::{ARC, bench, counted, shown};
use volley_fib::Fib;
use volley_graph::Level;
use volley_model::Family;

const MS_NS: u64 = 1_000_000;

/// The first bytes of a UDP datagram, with the ports of the flow.
fn body(port: u16, len: usize) -> Vec<u8> {
    let mut body = fragments::body(len);
    body[..2].copy_from_slice(&port.to_be_bytes());
    body[2..4].copy_from_slice(&53u16.to_be_bytes());
    body
}

/// An unfragmented packet of the same flow.
fn whole6(body: &[u8]) -> Vec<u8> {
    let mut p = ip6(0, body, 0, body.len());
    p.drain(40..48);
    p[4..6].copy_from_slice(&(body.len() as u16).to_be_bytes());
    p[6] = 17;
    p
}

fn reasons(out: &Arrived) -> Vec<&'static str> {
    out.iter().map(|it| it.3.unwrap_or(it.0)).collect()
}

#[test]
fn every_fragment_has_its_flow_s_hash_at_every_size_and_level() {
    for level in Level::available() {
        for size in [1, 7, 256] {
            for reverse in [false, true] {
                let (mut bench, behind) = counted::<V4>(level, size, Fib::dataplane4);
                let mut want = Vec::new();
                let mut packets = Vec::new();
                for (id, port) in (1u16..).zip(4000..4020u16) {
                    let body = body(port, 4000);
                    let whole = ip4(id, &body[..100], 0, 100);
                    let hash = hash4(&whole, 0);
                    let mut parts = all_of(&body, 1480, |b, from, to| ip4(id, b, from, to));
                    if reverse {
                        parts.reverse();
                    }
                    want.extend(parts.iter().cloned().map(|p| ("end", p, hash, None)));
                    // An unfragmented packet has no hash.
                    want.push(("end", whole.clone(), 0, None));
                    packets.extend(parts);
                    packets.push(whole);
                }
                let n = packets.len();
                let mut out = bench.give(packets);
                out.sort();
                want.sort();
                assert!(out == want, "{level} {size} {reverse}");
                assert_eq!(*behind.lock().unwrap(), n as u64, "the arc goes on");
                assert_eq!(bench.pool.report().in_use(), 0);
                assert_eq!(shown(&bench), [0, 0, 0], "all datagrams are over");
            }
        }
    }
}

#[test]
fn ip6_fragments_have_the_hash_of_whole_packets() {
    let mut bench = bench::<V6>(Level::detect(), 64, Fib::dataplane6);
    let body = body(4000, 3000);
    let hash = hash6(&whole6(&body[..100]), 0);
    let mut parts = all_of(&body, 1232, |b, from, to| ip6(7, b, from, to));
    parts.rotate_left(1);
    // An atomic fragment (RFC 6946), and an unfragmented packet.
    parts.push(ip6(7, &body[..96], 0, 96));
    parts.push(whole6(&body[..100]));
    let out = bench.give(parts.clone());
    let hashes = |packet: &Vec<u8>| out.iter().find(|it| it.1 == *packet).unwrap().2;
    assert_eq!(out.len(), 5);
    for part in &parts[..4] {
        assert_eq!(hashes(part), hash);
    }
    assert_eq!(hashes(&parts[4]), 0);
    assert_eq!(shown(&bench), [0, 0, 0]);
}

#[test]
fn fragments_wait_for_their_first_and_follow_it_in_order() {
    let mut bench = bench::<V4>(Level::detect(), 64, Fib::dataplane4);
    let body = body(9, 4000);
    let parts = all_of(&body, 800, |b, from, to| ip4(3, b, from, to));
    let early = [3, 1, 4].map(|at| parts[at].clone());
    assert!(bench.give(early.clone()).is_empty());
    assert_eq!(
        (shown(&bench), bench.pool.report().in_use()),
        ([0, 1, 3], 3)
    );
    assert!(bench.at(99 * MS_NS).is_empty());
    let out = bench.give([parts[0].clone()]);
    let got: Vec<_> = out.iter().map(|it| &it.1).collect();
    assert_eq!(got, [&parts[0], &early[0], &early[1], &early[2]]);
    assert_eq!(shown(&bench), [1, 0, 0]);
    // The last fragment comes late; its flow stays known as long again.
    assert!(bench.at(198 * MS_NS).is_empty());
    let out = bench.give([parts[2].clone()]);
    assert_eq!(
        (out.len(), out[0].2),
        (1, hash4(&ip4(3, &body, 0, 4000), 0))
    );
    assert_eq!(shown(&bench), [0, 0, 0]);
}

#[test]
fn what_waits_in_vain_is_dropped_when_time_is_over() {
    let mut bench = bench::<V4>(Level::detect(), 64, Fib::dataplane4);
    bench.switches.set(&ReassemblySettings {
        virtual_timeout: 40,
        ..ReassemblySettings::of_family(Family::V4)
    });
    let body = body(9, 4000);
    let parts = all_of(&body, 1480, |b, from, to| ip4(3, b, from, to));
    assert!(bench.give(parts[1..].to_vec()).is_empty());
    assert!(bench.at(40 * MS_NS - 1).is_empty());
    assert_eq!(reasons(&bench.at(40 * MS_NS)), ["timeout", "timeout"]);
    assert_eq!(bench.pool.report().in_use(), 0);
    // A known flow times out too: another datagram may have its identification by then.
    assert_eq!(bench.give(parts[..1].to_vec()).len(), 1);
    assert_eq!(shown(&bench), [1, 0, 0]);
    assert!(bench.at(80 * MS_NS).is_empty());
    assert_eq!(shown(&bench), [0, 0, 0]);
    assert!(bench.give(parts[1..2].to_vec()).is_empty());
}

#[test]
fn what_is_wrong_with_a_fragment_is_named() {
    let mut bench = bench::<V4>(Level::detect(), 64, Fib::dataplane4);
    let body = body(9, 200);
    let tcp = |mut packet: Vec<u8>| {
        packet[9] = 6;
        packet
    };
    let mut too_long = ip4(1, &body, 64, 128);
    too_long[6..8].copy_from_slice(&0x1fffu16.to_be_bytes());
    let mut short = ip4(2, &body, 64, 128);
    short[2] = 1;
    let out = bench.give([
        tcp(ip4(3, &body, 0, 16)),
        tcp(ip4(3, &body, 8, 72)),
        ip4(4, &body, 0, 9),
        too_long,
        short,
        ip4(5, &body, 64, 64),
        // An overlap with the first fragment, whose ports were used.
        ip4(6, &body, 0, 64),
        ip4(6, &body, 8, 72),
    ]);
    let want = [
        "tiny-fragment",
        "tiny-fragment",
        "bad-fragment-length",
        "too-long",
        "malformed",
        "empty-fragment",
        "overlap",
        "end",
    ];
    let mut got = reasons(&out);
    got.sort_by_key(|it| *it == "end");
    assert_eq!(got, want);
    // An overlap of fragments that came before the first.
    assert!(bench.give([ip4(7, &body, 8, 72)]).is_empty());
    assert_eq!(
        reasons(&bench.give([ip4(7, &body, 0, 64)])),
        ["end", "overlap"]
    );
}

#[test]
fn a_flood_holds_no_more_than_it_may_and_flows_go_on() {
    let mut bench = bench::<V4>(Level::detect(), 256, Fib::dataplane4);
    bench.switches.set(&ReassemblySettings {
        max_reassemblies: 100,
        max_buffers: 50,
        ..ReassemblySettings::of_family(Family::V4)
    });
    let body = body(9, 4000);
    let flow = all_of(&body, 1480, |b, from, to| ip4(3, b, from, to));
    assert_eq!(bench.give(flow[..1].to_vec()).len(), 1);
    let mut dropped = 0;
    for id in 10..2000u16 {
        let out = bench.give([ip4(id, &body, 1480, 2960)]);
        assert!(out.iter().all(|it| it.3 == Some("evicted")));
        dropped += out.len();
        assert!(bench.pool.report().in_use() <= 50);
        assert!(shown(&bench)[0] == 1 && shown(&bench)[1] <= 99);
    }
    assert_eq!(dropped + bench.pool.report().in_use(), 1990);
    let rest = bench.give(flow[1..].to_vec());
    assert_eq!(reasons(&rest), ["end", "end"]);
}

#[test]
fn what_waits_finds_its_way_when_features_are_switched_meanwhile() {
    let (mut bench, behind) = counted::<V4>(Level::detect(), 64, Fib::dataplane4);
    let body = body(9, 4000);
    for (id, off) in [(1, "later"), (2, V4::SV_FEATURE)] {
        let parts = all_of(&body, 1480, |b, from, to| ip4(id, b, from, to));
        assert!(bench.give(parts[1..].to_vec()).is_empty());
        bench.engine.set_feature(ARC, off, 0, false).unwrap();
        let out = bench.give(parts[..1].to_vec());
        let ends = out.iter().filter(|it| it.0 == "end").count();
        // Without the feature the first fragment is not recorded, and waiting fragments time out.
        assert_eq!(ends, if id == 1 { 3 } else { 1 });
    }
    assert_eq!(reasons(&bench.at(100 * MS_NS)), ["timeout", "timeout"]);
    assert_eq!(*behind.lock().unwrap(), 0);
}
