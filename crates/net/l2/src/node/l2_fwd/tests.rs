use super::*;
use crate::stations::{FILTERED, key};
use crate::testbed::{ALL, Bed, mac};
use volley_graph::harness::{In, Out, run};

fn to(dst: [u8; 6], rx: u32) -> In {
    let key = key(dst, 1);
    let (high, low) = ((key >> 32) as u32, key as u32);
    In::new(&dst)
        .rx(rx)
        .column(DST_HIGH.col, high)
        .column(DST_LOW.col, low)
}

fn through(bed: &Bed, packets: &[In]) -> Vec<Out> {
    let snaps = bed.snaps();
    run(packets, &bed.domain, move |_| {
        L2Fwd::new(snaps.clone(), 0, 256)
    })
}

fn outcome(out: &Out) -> String {
    match (&out.reason, &out.to[..]) {
        (Some(reason), _) => reason.clone(),
        (None, "interface-output") => format!("port {}", out.columns[&Col::TX]),
        (None, to) => to.to_owned(),
    }
}

fn check(bed: &Bed, cases: &[(In, &str)]) {
    for (packet, want) in cases {
        let out = through(bed, std::slice::from_ref(packet));
        assert_eq!(outcome(&out[0]), *want, "{packet:02x?}");
        assert_eq!(out[0].bytes, packet.bytes);
    }
    let all: Vec<In> = cases.iter().map(|(packet, _)| packet.clone()).collect();
    let mut got: Vec<String> = through(bed, &all).iter().map(outcome).collect();
    let mut want: Vec<&str> = cases.iter().map(|case| case.1).collect();
    got.sort_unstable();
    want.sort_unstable();
    assert_eq!(got, want, "a mixed vector gives the same verdicts");
}

#[test]
fn frames_go_where_their_destination_is() {
    let mut bed = Bed::new(ALL).known();
    bed.stations.fix(key(mac(7), 1), FILTERED).unwrap();
    bed.stations.fix(key(mac(8), 1), 9).unwrap();
    bed.stations.fix(key(mac(9), 1), 3).unwrap();
    check(
        &bed,
        &[
            (to(mac(2), 1), "port 2"),
            (to(mac(3), 1), "port 3"),
            (to(mac(9), 1), "port 3"),
            (to(mac(1), 2), "port 1"),
            (to(mac(4), 1), "port 4"),
            (to(mac(1), 4), "port 1"),
            (to(mac(1), 1), "same-port"),
            (to(mac(5), 4), "split-horizon"),
            (to(mac(7), 1), "l2fib-filter"),
            (to(mac(8), 1), "not-bridged"),
            (to(mac(60), 1), "l2-flood"),
            (to([0xff; 6], 1), "l2-flood"),
            (to([1, 0x80, 0xc2, 0, 0, 0], 1), "reserved-group"),
            (to([1, 0x80, 0xc2, 0, 0, 15], 1), "reserved-group"),
            (to([1, 0x80, 0xc2, 0, 0, 3], 1), "l2-flood"),
            (to([1, 0x80, 0xc2, 0, 0, 16], 1), "l2-flood"),
            (to([1, 0, 0x5e, 0, 0, 1], 4), "l2-flood"),
        ],
    );
    // One receiving port, and all packets forwarded: this uses the fast path.
    check(
        &bed,
        &[
            (to(mac(2), 1), "port 2"),
            (to(mac(3), 1), "port 3"),
            (to(mac(4), 1), "port 4"),
        ],
    );
    check(
        &bed,
        &[(to(mac(1), 2), "port 1"), (to(mac(1), 3), "port 1")],
    );
}

#[test]
fn a_domain_does_what_it_is_told() {
    let bed = Bed::new(ALL & !FORWARD).known();
    check(
        &bed,
        &[
            (to(mac(2), 1), "no-forward"),
            (to(mac(60), 1), "l2-flood"),
            (to([0xff; 6], 1), "l2-flood"),
        ],
    );
    let bed = Bed::new(ALL & !UU_FLOOD).known();
    check(
        &bed,
        &[
            (to(mac(2), 1), "port 2"),
            (to(mac(60), 1), "no-uu-flood"),
            (to([0xff; 6], 1), "l2-flood"),
        ],
    );
    let bed = Bed::new(ALL & !FLOOD).known();
    check(
        &bed,
        &[
            (to(mac(2), 1), "port 2"),
            (to(mac(60), 1), "l2-flood"),
            (to([0xff; 6], 1), "no-flood"),
        ],
    );
}
