//! All stages against the frames that scapy built (`tests/frames.py`), at every vector length and instruction-set level.

use crate::header::pair;
use crate::model::Writer;
use crate::node::ip_in_ip_columns::Columns;
use crate::node::ip_in_ip_one::One;
use crate::node::ip_in_ip_prefetch::Prefetch;
use crate::node::ip_in_ip_split::Split;
use crate::node::ip_in_ip_unroll::Unroll;
use crate::node::ip_in_ip_vector::Whole;
use crate::pairs::Pairs;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use volley_sdk::harness::{Domain, In, Out, run};
use volley_sdk::prelude::*;
use volley_sdk::tables::Snap;

/// The longest vector of the harness, with which the nodes are made.
const SIZE: usize = 256;

fn address(text: &str) -> u32 {
    text.parse::<Ipv4Addr>().unwrap().to_bits()
}

/// The table that `frames.py` expects.
fn table(domain: &Arc<Domain>) -> Writer {
    let mut writer = Writer::new(domain);
    for d in (0..256).step_by(2) {
        let (local, remote) = (format!("192.0.2.{d}"), format!("198.51.{d}.7"));
        let to = pair(address(&local), address(&remote));
        writer.set(address(&format!("10.1.0.{d}")), to);
    }
    writer
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2);
    let byte = |two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap();
    digits.map(byte).collect()
}

/// The frames, and for each edge and reason what leaves, in order.
fn frames() -> (Vec<In>, BTreeMap<Option<String>, Vec<Vec<u8>>>) {
    let (mut frames, mut expected) = (Vec::new(), BTreeMap::<_, Vec<_>>::new());
    for (at, line) in include_str!("../tests/frames.txt").lines().enumerate() {
        let (frame, outcome) = line.split_once(' ').unwrap();
        let rx = 3 + at as u32 % 2;
        frames.push(In::new(&bytes(frame)).rx(rx));
        match outcome.starts_with("not-") {
            true => expected
                .entry(Some(outcome.to_owned()))
                .or_default()
                .push(bytes(frame)),
            false => expected.entry(None).or_default().push(bytes(outcome)),
        }
    }
    (frames, expected)
}

fn verify<N: Node>(make: impl Fn(Snap<Pairs>) -> N + Copy + 'static) {
    let domain = Domain::new();
    let writer = table(&domain);
    let snap = writer.snap();
    let (frames, expected) = frames();
    let out = run(&frames, &domain, move |_worker| make(snap.clone()));
    let mut got = BTreeMap::<_, Vec<_>>::new();
    for it in &out {
        match &it.reason {
            Some(_) => assert_eq!(it.to, "error-drop"),
            None => assert_eq!((it.to.as_str(), tx(it)), ("interface-output", rx(it))),
        }
        got.entry(it.reason.clone())
            .or_default()
            .push(it.bytes.clone());
    }
    assert_eq!(got, expected, "{}", N::NAME);
    assert!(expected.len() == 3 && expected.values().all(|it| it.len() > 5));
}

fn tx(it: &Out) -> Option<&u32> {
    it.columns.get(&Col::TX)
}

fn rx(it: &Out) -> Option<&u32> {
    it.columns.get(&Col::RX)
}

#[test]
fn one_packet_at_a_time_as_scapy() {
    verify(One::new);
}

#[test]
fn whole_vectors_as_scapy() {
    verify(Whole::new);
}

#[test]
fn prefetched_rows_as_scapy() {
    verify(|pairs| Prefetch::new(pairs, SIZE));
}

#[test]
fn unrolled_rows_as_scapy() {
    verify(|pairs| Unroll::new(pairs, SIZE));
}

#[test]
fn a_split_without_branches_as_scapy() {
    verify(|pairs| Split::new(pairs, SIZE));
}

#[test]
fn columns_as_scapy() {
    verify(|pairs| Columns::new(pairs, SIZE));
}

#[test]
fn the_table_finds_what_was_set_and_nothing_else() {
    let domain = Domain::new();
    let mut writer = Writer::new(&domain);
    let snap = writer.snap();
    let reader = domain.register();
    let destination = |n: u32| n.wrapping_mul(0x0100_0193);
    for n in 0..10_000 {
        writer.set(destination(n), u64::from(n) + 1);
    }
    for n in (0..10_000).step_by(3) {
        writer.set(destination(n), 0);
    }
    for n in (0..10_000).step_by(6) {
        writer.set(destination(n), 7);
    }
    writer.set(destination(10_001), 0);
    let pairs = snap.read(reader.guard());
    for n in 0..20_000u32 {
        let expected = match n {
            0..10_000 if n.is_multiple_of(6) => 7,
            0..10_000 if !n.is_multiple_of(3) => u64::from(n) + 1,
            _ => 0,
        };
        assert_eq!(pairs.find(destination(n)), expected, "{n}");
        assert_eq!(pairs.find_straight(destination(n)), expected, "{n}");
    }
}
