use super::*;
use volley_graph::harness::{In, run};
use volley_graph::{Checksum, Domain, NodeId, Offload};
use volley_iface::{Flag, IfIdx, TagKind, Tags};

fn table() -> Arc<IfTable> {
    let table = IfTable::new(1);
    let subs = [
        (1024, 3, TagKind::Dot1q, 100, None),
        (1025, 3, TagKind::Dot1q, 101, None),
        (1026, 4, TagKind::Dot1ad, 200, Some(7)),
    ];
    for (index, parent, kind, vlan, inner) in subs {
        let tags = Tags { kind, vlan, inner };
        let parent = IfIdx(parent);
        table.set_sub(IfIdx(index), Some(Sub { parent, tags }));
        table.set(IfIdx(index), Flag::Up, true);
        table.set_tx_node(parent, NodeId(u16::MAX));
    }
    table
}

fn packet(tx: u32, last: u8) -> In {
    let mut bytes: Vec<u8> = (0..64).collect();
    bytes[63] = last;
    In::new(&bytes).column(Col::TX, tx)
}

/// Parent and frame of each packet, or its drop reason.
fn outcome(packets: &[In]) -> Vec<(String, Vec<u8>)> {
    let table = table();
    let out = run(packets, &Domain::new(), move |worker| {
        VlanOutput::new(table.clone(), worker, 256)
    });
    let one = |out: &volley_graph::harness::Out| match &out.reason {
        Some(reason) => (reason.clone(), Vec::new()),
        None => {
            let tx = out.columns[&Col::TX];
            (tx.to_string(), out.bytes.clone())
        }
    };
    let mut all: Vec<_> = out.iter().map(one).collect();
    all.sort();
    all
}

fn want(tx: u32, last: u8) -> (String, Vec<u8>) {
    let (parent, tags): (_, &[u8]) = match tx {
        1024 => ("3", &[0x81, 0, 0, 100]),
        1025 => ("3", &[0x81, 0, 0, 101]),
        1026 => ("4", &[0x88, 0xa8, 0, 200, 0x81, 0, 0, 7]),
        _ => return ("no-sub-interface".to_owned(), Vec::new()),
    };
    let bytes = packet(tx, last).bytes;
    let frame = [&bytes[..12], tags, &bytes[12..]].concat();
    (parent.to_owned(), frame)
}

#[test]
fn every_frame_gets_the_tags_of_its_sub_interface() {
    let mixes: [&[u32]; 7] = [
        &[1024],
        &[1026],
        &[1030],
        &[1024, 1025],
        &[1024, 1026, 1025],
        &[1030, 1024, 1030, 1025],
        &[1026, 1030, 1024],
    ];
    for mix in mixes {
        let number = |(n, &tx): (usize, &u32)| (tx, n as u8);
        let rows: Vec<(u32, u8)> = mix.iter().enumerate().map(number).collect();
        let packets: Vec<In> = rows.iter().map(|&(tx, n)| packet(tx, n)).collect();
        let mut wanted: Vec<_> = rows.iter().map(|&(tx, n)| want(tx, n)).collect();
        wanted.sort();
        assert_eq!(outcome(&packets), wanted, "{mix:?}");
    }
}

#[test]
fn checksums_to_be_finished_keep_their_place_and_bytes_are_counted_without_tags() {
    let sum = |start| Offload {
        checksum: Some(Checksum { start, offset: 16 }),
        gso: None,
    };
    let table = table();
    let counts = table.clone();
    let packets = [packet(1024, 0), packet(1026, 0)].map(|p| p.offload(sum(34)));
    let out = run(&packets, &Domain::new(), move |worker| {
        VlanOutput::new(table.clone(), worker, 256)
    });
    let mut places: Vec<_> = out.iter().map(|out| out.offload).collect();
    places.sort_by_key(|offload| offload.checksum.map(|sum| sum.start));
    assert_eq!(places, [sum(38), sum(42)]);
    for index in [1024, 1026] {
        let counts = counts.counts(IfIdx(index));
        assert!(counts.tx_packets > 0);
        assert_eq!(counts.tx_bytes, 64 * counts.tx_packets);
    }
}
