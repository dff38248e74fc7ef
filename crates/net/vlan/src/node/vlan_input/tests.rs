use super::*;
use crate::table::TagTable;
use std::rc::Rc;
use volley_graph::Domain;
use volley_graph::harness::{In, run};
use volley_graph::{Checksum, Gso, Offload};
use volley_iface::{GsoProtocol, IfIdx, Sub};

const MACS: [u8; 12] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 9];

/// A frame with these words after its MAC addresses, then a payload; `len` bytes in total.
fn frame(words: &[u16], len: usize) -> Vec<u8> {
    let mut bytes = MACS.to_vec();
    words.iter().for_each(|w| bytes.extend(w.to_be_bytes()));
    bytes.extend((0..100).map(|n| n as u8));
    bytes.truncate(len);
    bytes
}

fn sub(kind: TagKind, vlan: u16, inner: Option<u16>) -> Sub {
    let tags = Tags { kind, vlan, inner };
    let parent = IfIdx(3);
    Sub { parent, tags }
}

/// Sub-interfaces of interface 3: 1024 to 1027, the last one down.
fn world(domain: &Arc<Domain>) -> (Arc<IfTable>, Rc<TagTable>) {
    let (table, mut tags) = (IfTable::new(1), TagTable::new(domain));
    let subs = [
        sub(TagKind::Dot1q, 100, None),
        sub(TagKind::Dot1ad, 200, Some(7)),
        sub(TagKind::Dot1q, 100, Some(4094)),
        sub(TagKind::Dot1q, 300, None),
    ];
    for (n, sub) in subs.into_iter().enumerate() {
        let index = IfIdx(1024 + n as u32);
        table.set_sub(index, Some(sub));
        table.set(index, Flag::Up, n != 3);
        tags.insert(sub, index);
    }
    (table, Rc::new(tags))
}

/// Result for packets of interface 3: interface, removed bytes, frame; or the drop reason.
fn outcome(packets: &[In]) -> Vec<(String, Vec<u8>)> {
    let domain = Domain::new();
    let (table, tags) = world(&domain);
    let snap = tags.snap();
    let out = run(packets, &domain, move |worker| {
        VlanInput::new(table.clone(), snap.clone(), worker, 256)
    });
    let one = |out: &volley_graph::harness::Out| match &out.reason {
        Some(reason) => (reason.clone(), Vec::new()),
        None => {
            let word = |col| out.columns.get(&col).copied().unwrap_or(0);
            (word(Col::RX).to_string(), out.bytes.clone())
        }
    };
    out.iter().map(one).collect()
}

/// A frame, its destination or drop reason, and the number of removed bytes.
type Case = (Vec<u8>, &'static str, usize);

fn cases() -> Vec<Case> {
    let mut all = vec![
        (frame(&[0x8100, 100, 0x800], 64), "1024", 4),
        // Priority and drop eligibility are not part of the VLAN identifier.
        (frame(&[0x8100, 0xf064, 0x86dd], 64), "1024", 4),
        (frame(&[0x8100, 100, 0x800], 18), "1024", 4),
        (frame(&[0x88a8, 200, 0x8100, 7, 0x800], 64), "1025", 8),
        (
            frame(&[0x88a8, 0xe0c8, 0x8100, 0xa007, 0x806], 22),
            "1025",
            8,
        ),
        (frame(&[0x8100, 100, 0x8100, 4094, 0x800], 64), "1026", 8),
        (frame(&[0x8100, 300, 0x800], 64), "sub-interface-down", 0),
        // Priority-tagged without a VLAN: the frame belongs to the parent.
        (frame(&[0x8100, 0xe000, 0x800], 64), "3", 4),
        (frame(&[0x88a8, 0, 0x86dd], 64), "3", 4),
    ];
    for (words, len) in [
        (&[0x8100, 100, 0x800][..], 14),
        (&[0x8100, 100, 0x800], 17),
        (&[0x88a8, 200, 0x8100, 7, 0x800], 18),
        (&[0x88a8, 200, 0x8100, 7, 0x800], 21),
    ] {
        all.push((frame(words, len), "truncated-tag", 0));
    }
    let nobodys = nobodys().into_iter();
    all.extend(nobodys.map(|(words, why)| (frame(words, 64), why, 0)));
    all
}

fn nobodys() -> Vec<(&'static [u16], &'static str)> {
    vec![
        (&[0x8100, 0, 0x8100, 100, 0x800], "unknown-vlan"),
        (&[0x8100, 101, 0x800], "unknown-vlan"),
        (&[0x8100, 4095, 0x800], "unknown-vlan"),
        (&[0x88a8, 100, 0x800], "unknown-vlan"),
        (&[0x88a8, 300, 0x8100, 7, 0x800], "unknown-vlan"),
        (&[0x88a8, 200, 0x800], "unknown-inner-vlan"),
        (&[0x88a8, 200, 0x8100, 8, 0x800], "unknown-inner-vlan"),
        (&[0x88a8, 200, 0x8100, 0, 0x800], "unknown-inner-vlan"),
        (&[0x88a8, 200, 0x88a8, 7, 0x800], "unknown-inner-vlan"),
        (&[0x88a8, 200, 0x9100, 7, 0x800], "unknown-inner-vlan"),
        (&[0x8100, 300, 0x8100, 7, 0x800], "unknown-inner-vlan"),
        (&[0x8100, 100, 0x8100, 4094, 0x8100, 1], "too-many-tags"),
        (&[0x88a8, 200, 0x8100, 7, 0x88a8, 1], "too-many-tags"),
        (&[0x88a8, 1, 0x88a8, 2, 0x9100, 3], "too-many-tags"),
    ]
}

#[test]
fn tags_are_told_apart_and_taken_off() {
    let wanted = |bytes: &[u8], tags: usize| [&MACS, &bytes[12 + tags..]].concat();
    for (bytes, want, tags) in cases() {
        let got = outcome(&[In::new(&bytes).rx(3).advance(14.min(bytes.len()))]);
        let want_bytes = if tags > 0 {
            wanted(&bytes, tags)
        } else {
            Vec::new()
        };
        assert_eq!(got, [(want.to_owned(), want_bytes)], "{bytes:02x?}");
    }
    let all: Vec<In> = cases()
        .iter()
        .map(|(bytes, ..)| In::new(bytes).rx(3).advance(14))
        .collect();
    let mut got = outcome(&all);
    let mut want: Vec<(String, Vec<u8>)> = cases()
        .iter()
        .map(|(bytes, want, tags)| {
            let bytes = if *tags > 0 {
                wanted(bytes, *tags)
            } else {
                Vec::new()
            };
            ((*want).to_owned(), bytes)
        })
        .collect();
    got.sort();
    want.sort();
    assert_eq!(got, want, "a mixed vector gives the same verdicts");
}

#[test]
fn what_is_left_to_be_done_keeps_its_place() {
    let bytes = frame(&[0x8100, 100, 0x800], 90);
    let offload = |at: u16| Offload {
        checksum: Some(Checksum {
            start: 38 - at,
            offset: 16,
        }),
        gso: Some(Gso {
            kind: GsoProtocol::Tcp4.into(),
            size: 10,
            headers: 58 - at,
        }),
    };
    let domain = Domain::new();
    let (table, tags) = world(&domain);
    let (counts, snap) = (table.clone(), tags.snap());
    let packet = In::new(&bytes).rx(3).offload(offload(0)).advance(14);
    let make = move |worker| VlanInput::new(table.clone(), snap.clone(), worker, 256);
    let out = run(&[packet], &domain, make);
    assert_eq!(out[0].offload, offload(4));
    let counts = counts.counts(IfIdx(1024));
    assert_eq!(counts.rx_bytes, 86 * counts.rx_packets, "without the tag");
    assert!(counts.rx_packets > 0);
}
