use super::*;
use crate::stations::{FILTERED, key};
use crate::testbed::{ALL, Bed, frame, mac};
use volley_graph::harness::{In, Out, run};

fn through(bed: &Bed, packets: &[In]) -> Vec<Out> {
    let (snaps, lane) = (bed.snaps(), bed.lane.clone());
    run(packets, &bed.domain, move |_| {
        L2Learn::new(snaps.clone(), 0, lane.clone(), 256)
    })
}

fn outcome(out: &Out) -> &str {
    out.reason.as_deref().unwrap_or(&out.to)
}

#[test]
fn frames_are_judged_in_the_order_of_the_rules() {
    let mut bed = Bed::new(ALL).known();
    bed.stations.fix(key(mac(6), 1), 3).unwrap();
    bed.stations.fix(key(mac(7), 1), FILTERED).unwrap();
    let cases = [
        (In::new(&frame(mac(2), mac(1))[..13]).rx(1), "too-short"),
        (In::new(&frame(mac(2), mac(1))).rx(9), "not-bridged"),
        (
            In::new(&frame(mac(2), [3, 0, 0, 0, 0, 1])).rx(1),
            "bad-source",
        ),
        (In::new(&frame(mac(2), [0; 6])).rx(1), "bad-source"),
        (In::new(&frame(mac(2), mac(1))).rx(1), "l2-fwd"),
        (In::new(&frame(mac(1), mac(1))).rx(1), "to-itself"),
        (In::new(&frame(mac(60), mac(60))).rx(2), "to-itself"),
        (In::new(&frame([0xff; 6], mac(1))).rx(1), "l2-fwd"),
        (In::new(&frame(mac(2), mac(6))).rx(3), "l2-fwd"),
        (In::new(&frame(mac(2), mac(6))).rx(1), "static-move"),
        (In::new(&frame(mac(2), mac(7))).rx(1), "l2fib-filter"),
        (In::new(&frame(mac(2), mac(50))).rx(2), "l2-fwd"),
        (In::new(&frame(mac(2), mac(1))).rx(2), "l2-fwd"),
    ];
    for (packet, want) in &cases {
        let out = through(&bed, std::slice::from_ref(packet));
        assert_eq!(outcome(&out[0]), *want, "{packet:02x?}");
        assert_eq!(out[0].bytes, packet.bytes, "the frame stays as it is");
    }
    // The node drops in two passes, so a mixed vector changes the order of the drops: the cases are tested per pass.
    for late in [false, true] {
        let kind = |c: &&(In, &str)| {
            c.1 == "l2-fwd" || late == ["static-move", "l2fib-filter", "to-itself"].contains(&c.1)
        };
        let chosen: Vec<_> = cases.iter().filter(kind).collect();
        let all: Vec<In> = chosen.iter().map(|case| case.0.clone()).collect();
        let mixed = through(&bed, &all);
        let mut got: Vec<&str> = mixed.iter().map(outcome).collect();
        let mut want: Vec<&str> = chosen.iter().map(|case| case.1).collect();
        got.sort_unstable();
        want.sort_unstable();
        assert_eq!(got, want, "a mixed vector gives the same verdicts");
        let fine = chosen.iter().filter(|case| case.1 == "l2-fwd");
        let passed = mixed.iter().filter(|o| o.to == "l2-fwd");
        for ((packet, _), out) in fine.zip(passed) {
            let [a, b, c, d, e, f] = packet.bytes[..6].try_into().unwrap();
            let key = (
                u32::from_be_bytes([a, b, c, d]),
                u32::from_be_bytes([e, f, 0, 1]),
            );
            let got = (out.columns[&DST_HIGH.col], out.columns[&DST_LOW.col]);
            assert_eq!(got, key);
        }
    }
}

#[test]
fn new_and_moved_stations_are_told_of_once() {
    let bed = Bed::new(ALL).known();
    let packets = [
        In::new(&frame(mac(2), mac(1))).rx(1),
        In::new(&frame(mac(2), mac(50))).rx(1),
        In::new(&frame(mac(2), mac(3))).rx(2),
    ];
    let (snaps, lane) = (bed.snaps(), bed.lane.clone());
    let many: Vec<In> = packets.iter().cycle().take(90).cloned().collect();
    let out = volley_graph::harness::run_once(
        volley_graph::Level::available().next().unwrap(),
        8,
        &many,
        &bed.domain,
        move |_| L2Learn::new(snaps.clone(), 0, lane.clone(), 256),
    );
    assert_eq!(out.unwrap().len(), 90);
    let heard: Vec<LearnedMac> = std::iter::from_fn(|| bed.lane.new_macs.pop()).collect();
    let want = [(50, 1), (3, 2)].map(|(n, rx)| LearnedMac {
        key: key(mac(n), 1),
        rx,
    });
    assert_eq!(heard, want);
}

#[test]
fn a_domain_that_does_not_learn_tells_of_nobody() {
    let bed = Bed::new(ALL & !LEARN);
    for dst in [mac(2), mac(50)] {
        let out = through(&bed, &[In::new(&frame(dst, mac(50))).rx(1)]);
        assert_eq!((&out[0].to[..], bed.lane.new_macs.len()), ("l2-fwd", 0));
    }
}

#[test]
fn a_full_queue_loses_news_and_no_packet() {
    let bed = Bed::new(ALL);
    let full = LearnedMac { key: 1, rx: 1 };
    while bed.lane.new_macs.push(full).is_ok() {}
    let out = through(&bed, &[In::new(&frame(mac(2), mac(50))).rx(1)]);
    assert_eq!(out[0].to, "l2-fwd");
    assert_eq!(
        std::iter::from_fn(|| bed.lane.new_macs.pop())
            .filter(|h| *h != full)
            .count(),
        0
    );
}

#[test]
fn sources_leave_marks() {
    let mut bed = Bed::new(ALL).known();
    let sent = [
        In::new(&frame(mac(2), mac(1))).rx(1),
        In::new(&frame(mac(2), mac(3))).rx(3),
    ];
    through(&bed, &sent);
    // A marked entry gets the time of the sweep that finds the mark.
    bed.stations.sweep(9_000_000_000);
    let heard = |n| bed.stations.get(key(mac(n), 1)).unwrap().last_seen_ns;
    assert_eq!([1, 2, 3].map(heard), [9_000_000_000, 0, 9_000_000_000]);
}
