//! Flows of packets built by scapy (`tests/data/flows.py`), and of arbitrary bytes.

use super::*;
use proptest::prelude::*;

/// Frames by scapy, each with its outer and inner flow.
const FRAMES: &str = include_str!("../../tests/data/flows.txt");

struct Case<'a> {
    name: &'a str,
    frame: Vec<u8>,
    outer: Vec<u8>,
    inner: Vec<u8>,
}

fn hex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().as_chunks::<2>().0;
    let byte = |two: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap();
    digits.iter().map(byte).collect()
}

fn cases() -> Vec<Case<'static>> {
    let lines = FRAMES.lines().filter(|l| !l.starts_with('#'));
    let case = |line: &'static str| {
        let words: Vec<&str> = line.split('|').collect();
        Case {
            name: words[0],
            frame: hex(words[1]),
            outer: hex(words[2]),
            inner: hex(words[3]),
        }
    };
    lines.map(case).collect()
}

fn bytes(flow: Option<Flow>) -> Vec<u8> {
    flow.map_or(Vec::new(), |flow| flow.bytes().to_vec())
}

#[test]
fn flows_are_what_scapy_says() {
    let cases = cases();
    assert!(cases.len() >= 20);
    for case in cases {
        assert_eq!(bytes(flow(&case.frame, false)), case.outer, "{}", case.name);
        assert_eq!(
            bytes(flow(&case.frame, true)),
            case.inner,
            "{}, inner",
            case.name
        );
    }
}

#[test]
fn both_directions_are_one_symmetric_flow() {
    let (a, b) = ([10, 0, 0, 1], [10, 0, 0, 2]);
    for ports in [Some((5, 7)), Some((7, 7)), None] {
        let there = Flow::between(&a, &b, ports);
        let back = Flow::between(&b, &a, ports.map(|(x, y)| (y, x)));
        assert_ne!(there, back);
        assert_eq!(there.symmetric(), back.symmetric());
    }
    let (there, back) = ((9, 3), (3, 9));
    let same = |ports| Flow::between(&a, &a, Some(ports)).symmetric();
    assert_eq!(same(there), same(back), "a host that talks to itself");
}

proptest! {
    /// A truncated or modified frame causes no panic, and its flow consists of bytes of the frame.
    #[test]
    fn damaged_frames_do_no_harm(
        case in 0usize..20, cut in 0usize..200, at in 0usize..200, byte: u8, inner: bool,
    ) {
        let cases = cases();
        let mut frame = cases[case % cases.len()].frame.clone();
        frame.truncate(cut.max(1));
        let at = at % frame.len();
        frame[at] = byte;
        let found = bytes(flow(&frame, inner));
        prop_assert!([0, 8, 12, 32, 36].contains(&found.len()));
    }
}
