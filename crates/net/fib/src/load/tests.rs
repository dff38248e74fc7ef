//! File contents as bytes: valid, truncated and inconsistent ones.

use std::io::Cursor;
use std::path::Path;

use crate::RouteFormat;
use proptest::prelude::*;

use super::*;

fn read(bytes: &[u8], options: ReadOptions) -> Result<Routes, String> {
    read_from(Path::new("t"), Cursor::new(bytes), options).map_err(|e| e.to_string())
}

fn auto(bytes: &[u8]) -> Result<Routes, String> {
    read(bytes, ReadOptions::default())
}

#[test]
fn a_text_table_with_numbers_comments_and_both_families() {
    let r = auto(b"# a table\n1.2.0.0/16 7\n\n  2001:db8::/32\t0 \r\n0.0.0.0/0 7").unwrap();
    assert_eq!(r.v4, [(0x0102_0000, 16, 7), (0, 0, 7)]);
    assert_eq!(r.v6, [(0x2001_0db8 << 96, 32, 0)]);
    assert_eq!((r.hops.count(), r.hops.are_numbers()), (8, true));
}

#[test]
fn next_hop_addresses_are_ranked_by_first_appearance() {
    let r = auto(b"1.0.0.0/8 9.9.9.9\n2.0.0.0/8 8.8.8.8\n3.0.0.0/8 9.9.9.9\n").unwrap();
    assert_eq!(r.v4.iter().map(|r| r.2).collect::<Vec<_>>(), [0, 1, 0]);
    assert_eq!(
        r.hops.addresses,
        [
            "9.9.9.9".parse::<IpAddr>().unwrap(),
            "8.8.8.8".parse().unwrap()
        ]
    );
}

#[test]
fn limit_and_family_are_obeyed() {
    let text = b"1.0.0.0/8 1\n::/0 2\n2.0.0.0/8 3\n3.0.0.0/8 junk";
    let limit = ReadOptions {
        limit: Some(3),
        ..ReadOptions::default()
    };
    assert_eq!(read(text, limit).unwrap().len(), 3);
    let only = ReadOptions {
        only: Some(Af::V6),
        ..ReadOptions::default()
    };
    assert_eq!(read(&text[..31], only).unwrap().v4, []);
}

#[test]
fn bad_lines_are_named() {
    for (text, want) in [
        (
            "1.0.0.0/8 1\n1.0.0.0/8",
            "t, line 2: the next hop is missing: write PREFIX NEXTHOP",
        ),
        (
            "1.0.0.0/8 1 2",
            "t, line 1: there is something behind the next hop: write PREFIX NEXTHOP",
        ),
        (
            "1.0.0.0/8 x",
            "t, line 1: the next hop is neither an address nor a number",
        ),
        (
            "1.0.0.0/8 1\n2.0.0.0/8 1.1.1.1",
            "t, line 2: the next hop is an address where the lines before had numbers",
        ),
        (
            "2.0.0.0/8 1.1.1.1\n1.0.0.0/8 1",
            "t, line 2: the next hop is a number where the lines before had addresses",
        ),
        (
            "1.0.0.1/8 1",
            "t, line 1: bits are set behind the prefix length",
        ),
        (
            "1.0.0.0/8 9999999999",
            "t, line 1: the next hop's number is larger than 4294967295",
        ),
    ] {
        assert_eq!(auto(text.as_bytes()).unwrap_err(), want);
    }
    let long = vec![b'x'; 10_000];
    assert!(auto(&long).unwrap_err().contains("longer than 4096"));
}

/// One MRT record.
fn record(subtype: u16, body: &[u8]) -> Vec<u8> {
    let mut r = vec![0, 0, 0, 1, 0, 13];
    r.extend(subtype.to_be_bytes());
    r.extend((body.len() as u32).to_be_bytes());
    r.extend(body);
    r
}

/// A peer index table with an IPv4 peer (2-byte AS) and an IPv6 peer (4-byte AS).
fn peers() -> Vec<u8> {
    let mut b = vec![10, 0, 0, 1, 0, 3, b'r', b'i', b's', 0, 2];
    b.extend([0, 1, 1, 1, 1, 9, 9, 9, 9, 0x0d, 0x05]);
    b.extend([3, 2, 2, 2, 2]);
    b.extend([0x20; 16]);
    b.extend([0, 0, 0x0d, 0x05]);
    record(1, &b)
}

fn entry(peer: u16, path_id: Option<u32>, attrs: &[u8]) -> Vec<u8> {
    let mut e = peer.to_be_bytes().to_vec();
    e.extend([0, 0, 0, 9]);
    e.extend(path_id.into_iter().flat_map(u32::to_be_bytes));
    e.extend((attrs.len() as u16).to_be_bytes());
    e.extend(attrs);
    e
}

fn rib(subtype: u16, prefix: &[u8], entries: &[Vec<u8>]) -> Vec<u8> {
    let mut b = vec![0, 0, 0, 5];
    b.extend(prefix);
    b.extend((entries.len() as u16).to_be_bytes());
    b.extend(entries.concat());
    record(subtype, &b)
}

const ORIGIN: [u8; 4] = [0x40, 1, 1, 0];
const HOP4: [u8; 7] = [0x40, 3, 4, 192, 0, 2, 1];

fn mp_short() -> Vec<u8> {
    let mut a = vec![0x80, 14, 17, 16];
    a.extend([0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    a
}

/// The full RFC 4760 form with a global and a link-local next hop, after an extended length.
fn mp_long() -> Vec<u8> {
    let mut a = vec![0x90, 14, 0, 37, 0, 2, 1, 32];
    a.extend([0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    a.extend([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0]);
    a
}

fn dump() -> Vec<u8> {
    let hop4 = [ORIGIN.as_slice(), &HOP4].concat();
    let other = [0x40, 3, 4, 192, 0, 2, 77];
    [
        peers(),
        rib(
            2,
            &[24, 1, 2, 3],
            &[entry(0, None, &hop4), entry(1, None, &other)],
        ),
        // The last octet has bits beyond the prefix, whose values RFC 4271 leaves open.
        rib(2, &[9, 10, 0xff], &[entry(1, None, &other)]),
        rib(2, &[0], &[entry(0, None, &HOP4)]),
        rib(3, &[4, 224], &[]),
        rib(
            4,
            &[32, 0x20, 1, 0x0d, 0xb8],
            &[entry(1, None, &mp_short())],
        ),
        rib(10, &[1, 0x80], &[entry(1, Some(7), &mp_long())]),
        rib(
            8,
            &[8, 44],
            &[entry(0, Some(1), &HOP4), entry(0, Some(2), &other)],
        ),
    ]
    .concat()
}

#[test]
fn an_mrt_dump_by_hand_reads_back() {
    let r = auto(&dump()).unwrap();
    assert_eq!(
        r.v4,
        [
            (0x0102_0300, 24, 0),
            (0x0a80_0000, 9, 1),
            (0, 0, 0),
            (44 << 24, 8, 0)
        ]
    );
    assert_eq!(r.v6, [(0x2001_0db8 << 96, 32, 2), (1 << 127, 1, 3)]);
    let hops = ["192.0.2.1", "192.0.2.77", "2001:db8::1", "2001:db8::2"];
    assert_eq!(r.hops.addresses, hops.map(|h| h.parse::<IpAddr>().unwrap()));
}

#[test]
fn every_cut_of_a_dump_is_an_error_unless_it_falls_between_records() {
    let whole = dump();
    let mrt = ReadOptions {
        format: RouteFormat::Mrt,
        ..ReadOptions::default()
    };
    let mut ends = vec![];
    let mut at = 0;
    while at < whole.len() {
        let len = u32::from_be_bytes(whole[at + 8..at + 12].try_into().unwrap()) as usize;
        at += 12 + len;
        ends.push(at);
    }
    for cut in 0..whole.len() {
        let got = read(&whole[..cut], mrt);
        assert_eq!(got.is_ok(), ends.contains(&cut), "cut at {cut}: {got:?}");
    }
    assert!(
        read(&whole[..ends[1] + 20], mrt)
            .unwrap_err()
            .starts_with("t, record 3: the file ends")
    );
}

#[test]
fn lies_inside_a_record_are_errors() {
    let bad = |subtype, prefix: &[u8], entries: &[Vec<u8>]| {
        auto(&[peers(), rib(subtype, prefix, entries)].concat()).unwrap_err()
    };
    assert!(bad(2, &[33, 1, 2, 3, 4, 5], &[]).contains("longer than the address"));
    assert!(bad(2, &[8, 1], &[entry(2, None, &HOP4)]).contains("a peer that"));
    assert!(bad(2, &[8, 1], &[entry(0, None, &ORIGIN)]).contains("no entry"));
    assert!(bad(2, &[8, 1], &[entry(0, None, &[0x40, 3, 5, 1, 2, 3, 4, 5])]).contains("4 bytes"));
    assert!(bad(2, &[8, 1], &[entry(0, None, &[0x40, 3, 9, 1, 2, 3, 4])]).contains("what is left"));
    assert!(
        bad(
            4,
            &[8, 1],
            &[entry(0, None, &[0x80, 14, 6, 5, 1, 2, 3, 4, 5])]
        )
        .contains("4, 16 or 32")
    );
    let spare = [entry(0, None, &HOP4), vec![0]].concat();
    assert!(bad(2, &[8, 1], &[spare]).contains("left over"));
    let two = [0, 0, 0, 5, 8, 1, 0, 2]
        .into_iter()
        .chain(entry(0, None, &HOP4))
        .collect::<Vec<_>>();
    assert!(
        auto(&[peers(), record(2, &two)].concat())
            .unwrap_err()
            .contains("what is left")
    );
    assert!(
        auto(&rib(2, &[8, 1], &[entry(0, None, &HOP4)]))
            .unwrap_err()
            .contains("precedes the peer")
    );
    let huge = [0, 0, 0, 1, 0, 13, 0, 2, 0x7f, 0xff, 0xff, 0xff];
    let mrt = ReadOptions {
        format: RouteFormat::Mrt,
        ..ReadOptions::default()
    };
    assert!(
        read(&huge, mrt)
            .unwrap_err()
            .contains("claims 2147483647 bytes")
    );
    let update = [0, 0, 0, 1, 0, 16, 0, 4, 0, 0, 0, 0];
    assert!(auto(&update).unwrap_err().contains("MRT type 16"));
}

proptest! {
    #[test]
    fn flipped_bytes_never_panic(flips in prop::collection::vec((0usize..400, any::<u8>()), 1..6)) {
        let mut bytes = dump();
        for (at, value) in flips {
            let at = at % bytes.len();
            bytes[at] = value;
        }
        for format in [RouteFormat::Auto, RouteFormat::Text, RouteFormat::Mrt] {
            let _ = read(&bytes, ReadOptions { format, ..ReadOptions::default() });
        }
    }

    #[test]
    fn a_table_written_as_text_reads_back(seed: u64) {
        let v4 = synthetic4(200, seed);
        let v6 = synthetic6(100, seed);
        let text: String = v4.iter().map(|r| format!("{}/{} {}\n", std::net::Ipv4Addr::from_bits(r.0), r.1, r.2))
            .chain(v6.iter().map(|r| format!("{}/{} {}\n", std::net::Ipv6Addr::from_bits(r.0), r.1, r.2)))
            .collect();
        let back = auto(text.as_bytes()).unwrap();
        prop_assert_eq!((back.v4, back.v6), (v4, v6));
    }
}
