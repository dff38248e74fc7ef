//! Tests of the node as a stage, with a manual clock: fragments in, datagrams out.

use super::*;
use crate::ReassemblySettings;
use crate::testing::fragments::{self, body};
use crate::testing::line::{Line, Plan};
use volley_fib::{Fib, V4, V6};
use volley_graph::Level;
use volley_model::Family;

const SECOND_NS: u64 = 1_000_000_000;

fn bench<F: Icmp>(level: Level, size: usize, plane: fn(&Fib) -> DataPlane<F>) -> Line {
    let ends = [F::LOCAL, F::ICMP_ERROR];
    let mut plan = Plan::new::<F, Count>(level, (size, ETHERNET.len()), &ends);
    let (plane, mine) = (plane(&Fib::new(&plan.domain)), plan.switches.clone());
    let make =
        move |worker| FullReassembly::<F>::new(plane.clone(), mine.clone(), worker, size.max(4));
    plan.engine.add_stage("under-test", make).unwrap();
    plan.build()
}

const ETHERNET: [u8; 14] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];

fn over_ethernet(packet: &[u8]) -> Vec<u8> {
    [&ETHERNET, packet].concat()
}

fn ip4(id: u16, body: &[u8], from: usize, to: usize) -> Vec<u8> {
    over_ethernet(&fragments::ip4(id, body, from, to))
}

fn ip6(id: u32, body: &[u8], from: usize, to: usize) -> Vec<u8> {
    over_ethernet(&fragments::ip6(id, body, from, to))
}

fn all_of(len: usize, part: usize, one: impl Fn(&[u8], usize, usize) -> Vec<u8>) -> Vec<Vec<u8>> {
    fragments::all_of(&body(len), part, one)
}

#[test]
fn datagrams_are_whole_again_at_every_size_and_level() {
    for level in Level::available() {
        for size in [1, 7, 256] {
            for (len, part) in [(20, 8), (3000, 1480), (65_515, 1480)] {
                let mut bench = bench::<V4>(level, size, Fib::dataplane4);
                let mut fragments = all_of(len, part, |b, from, to| ip4(7, b, from, to));
                fragments.reverse();
                let out = bench.give(fragments);
                let mut want = ip4(7, &body(len), 0, len);
                want[18..20].copy_from_slice(&7u16.to_be_bytes());
                assert_eq!(out.len(), 1, "{level} {size} {len}");
                assert_eq!((out[0].0, out[0].3), ("ip4-local", None));
                assert!(out[0].1 == want, "{level} {size} {len}");
                assert_eq!(bench.pool.report().in_use(), 0);
            }
        }
    }
}

#[test]
fn ip6_datagrams_lose_their_fragment_headers() {
    let mut bench = bench::<V6>(Level::detect(), 64, Fib::dataplane6);
    let out = bench.give(all_of(65_535, 1232, |b, from, to| ip6(7, b, from, to)));
    assert_eq!((out.len(), out[0].0), (1, "ip6-local"));
    let got = &out[0].1;
    assert_eq!(got[14..22], [0x60, 0, 0, 0, 0xff, 0xff, 17, 64]);
    assert!(got[54..] == body(65_535));
    assert_eq!(bench.pool.report().in_use(), 0);
}

#[test]
fn when_time_is_over_only_the_first_fragment_is_told_of() {
    let mut bench = bench::<V4>(Level::detect(), 64, Fib::dataplane4);
    let parts = all_of(4000, 1480, |b, from, to| ip4(9, b, from, to));
    assert!(bench.give(parts[..2].to_vec()).is_empty());
    assert_eq!(bench.pool.report().in_use(), 2);
    let late = all_of(4000, 1480, |b, from, to| ip4(10, b, from, to));
    assert!(bench.at(SECOND_NS).is_empty());
    assert!(bench.give(late[1..2].to_vec()).is_empty());
    assert!(bench.at(30 * SECOND_NS - 1).is_empty());
    let out = bench.at(30 * SECOND_NS);
    let want = [
        ("ip4-icmp-error", parts[0].clone(), 0, Some("timeout")),
        ("error-drop", parts[1].clone(), 0, Some("timeout")),
    ];
    let mut out: Vec<_> = out.into_iter().collect();
    out.sort_by_key(|it| it.0 == "error-drop");
    assert_eq!(out, want);
    let out = bench.at(31 * SECOND_NS);
    assert_eq!(
        (out.len(), out[0].0),
        (1, "error-drop"),
        "no first fragment"
    );
    assert_eq!(bench.pool.report().in_use(), 0);
}

#[test]
fn an_overlap_is_silent_and_takes_the_rest_along() {
    let mut bench = bench::<V6>(Level::detect(), 64, Fib::dataplane6);
    let body = body(64);
    let cut = |from, to| ip6(1, &body, from, to);
    let out = bench.give([cut(0, 32), cut(24, 40), cut(32, 64), cut(0, 32)]);
    let reasons: Vec<_> = out.iter().map(|it| (it.0, it.3.unwrap_or(""))).collect();
    let want = [
        ("error-drop", "overlap"),
        ("error-drop", "discarded"),
        ("error-drop", "discarded"),
        ("error-drop", "overlap"),
    ];
    assert_eq!(reasons, want);
    assert!(bench.at(60 * SECOND_NS).is_empty());
    assert_eq!(bench.give([cut(0, 32), cut(32, 64)]).len(), 1);
    assert_eq!(bench.pool.report().in_use(), 0);
}

#[test]
fn ip6_senders_are_told_of_what_is_wrong_with_a_fragment() {
    let mut bench = bench::<V6>(Level::detect(), 64, Fib::dataplane6);
    let long = body(64);
    let mut too_long = ip6(2, &long, 0, 8);
    too_long[56..58].copy_from_slice(&0xfff9u16.to_be_bytes());
    let out = bench.give([ip6(1, &long, 0, 9), too_long]);
    let reasons: Vec<_> = out.iter().map(|it| (it.0, it.3.unwrap_or(""))).collect();
    let want = [
        ("ip6-icmp-error", "bad-fragment-length"),
        ("ip6-icmp-error", "too-long"),
    ];
    assert_eq!(reasons, want);
}

#[test]
fn a_flood_holds_no_more_than_it_may() {
    let mut bench = bench::<V4>(Level::detect(), 256, Fib::dataplane4);
    bench.switches.set(&ReassemblySettings {
        max_reassemblies: 100,
        max_buffers: 150,
        ..ReassemblySettings::of_family(Family::V4)
    });
    let body = body(64);
    let mut dropped = 0;
    for id in 0..2000u16 {
        let out = bench.give([ip4(id, &body, 0, 16), ip4(id, &body, 24, 32)]);
        assert!(out.iter().all(|it| it.3 == Some("evicted")));
        dropped += out.len();
        assert!(bench.pool.report().in_use() <= 150);
    }
    assert_eq!(dropped + bench.pool.report().in_use(), 4000);
    // The newest is still stored, and is complete with its rest.
    let rest = [ip4(1999, &body, 16, 24), ip4(1999, &body, 32, 64)];
    let out = bench.give(rest);
    assert!(
        out.iter()
            .any(|it| it.0 == "ip4-local" && it.1[34..] == body[..])
    );
}

#[test]
fn the_share_of_the_pool_applies_whatever_is_configured() {
    let mut bench = bench::<V4>(Level::detect(), 256, Fib::dataplane4);
    bench.switches.set(&ReassemblySettings {
        max_reassemblies: 8192,
        max_buffers: 8192,
        ..ReassemblySettings::of_family(Family::V4)
    });
    let (body, mut dropped) = (body(64), 0);
    for id in 0..3000u16 {
        dropped += bench.give([ip4(id, &body, 0, 16)]).len();
        assert!(bench.pool.report().in_use() <= 1024, "{id}");
    }
    let share = bench.engine.shares().remove(0);
    assert_eq!(
        (share.name, share.limit, share.held),
        ("ip4-full-reassembly", 1024, 1024)
    );
    assert_eq!(
        (share.evicted as usize, dropped),
        (3000 - 1024, 3000 - 1024)
    );
}
