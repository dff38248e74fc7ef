use super::*;
use crate::testbed::{ALL, Bed, frame, mac};
use volley_graph::Col;
use volley_graph::harness::{In, LENGTHS, Out, run_once};
use volley_graph::{Checksum, Level, Offload};
use volley_iface::IfIdx;

/// Runs the packets at every vector length and instruction set. There are more output packets than input packets.
fn through(bed: &Bed, packets: &[In]) -> Vec<Out> {
    let mut reference: Option<Vec<Out>> = None;
    for level in Level::available() {
        for size in LENGTHS {
            let (plane, table) = (bed.snaps().0, bed.table.clone());
            let make = move |_| L2Flood::new(plane.clone(), table.clone());
            let out = run_once(level, size, packets, &bed.domain, make).unwrap();
            let first = reference.get_or_insert_with(|| out.clone());
            assert_eq!(*first, out, "{level}, vectors of {size}");
        }
    }
    reference.unwrap()
}

fn ports(out: &[Out]) -> Vec<u32> {
    out.iter().map(|o| o.columns[&Col::TX]).collect()
}

#[test]
fn every_other_port_gets_one() {
    let bed = Bed::new(ALL);
    let packet = In::new(&frame([0xff; 6], mac(1))).rx(2);
    let out = through(&bed, std::slice::from_ref(&packet));
    assert_eq!(ports(&out), [1, 3, 4, 5]);
    assert!(
        out.iter()
            .all(|o| o.bytes == packet.bytes && o.to == "interface-output")
    );
    let split = through(&bed, &[packet.rx(4)]);
    assert_eq!(ports(&split), [1, 2, 3], "5 is of the same group");
    bed.table.set(IfIdx(3), Flag::Up, false);
    let out = through(&bed, &[In::new(&[1; 60]).rx(4)]);
    assert_eq!(ports(&out), [1, 2]);
    (1..=3).for_each(|n| bed.table.set(IfIdx(n), Flag::Up, false));
    let out = through(&bed, &[In::new(&[1; 60]).rx(4)]);
    assert_eq!(out[0].reason.as_deref(), Some("no-port"));
}

#[test]
fn order_is_kept_and_long_packets_are_copied_whole() {
    let bed = Bed::new(ALL);
    let packet = |n: u8| In::new(&vec![n; 60 + 40 * usize::from(n)]).rx(1);
    let packets: Vec<In> = (0..200).map(packet).collect();
    let out = through(&bed, &packets);
    for port in 2..=5 {
        let mine = out.iter().filter(|o| o.columns[&Col::TX] == port);
        let bytes: Vec<&Vec<u8>> = mine.map(|o| &o.bytes).collect();
        let want: Vec<&Vec<u8>> = packets.iter().map(|p| &p.bytes).collect();
        assert_eq!(bytes, want, "port {port}");
    }
}

#[test]
fn what_is_left_to_be_done_is_left_for_every_copy() {
    let bed = Bed::new(ALL);
    let checksum = Some(Checksum {
        start: 34,
        offset: 6,
    });
    let offload = Offload {
        checksum,
        gso: None,
    };
    let out = through(&bed, &[In::new(&[7; 80]).rx(1).offload(offload)]);
    assert_eq!(
        (
            out.len(),
            out.iter().filter(|o| o.offload == offload).count()
        ),
        (4, 4)
    );
}
