//! The ways to scatter a batch: natively and by the scripts of the benchmark, all with the same packets in the same order.

use super::*;
use crate::node::scatter::{Arrays, DropOut, Masks, SCRIPTS, Scatter, Way};

/// Frames of which about this share in percent is complex, and one that is invalid.
fn frames(share: u16) -> Vec<In> {
    let one = |n: u16| {
        let mut it = frame(1, [10, 0, 1, (n % 250) as u8], 64);
        let port = match n * 37 % 100 < share {
            true => n,
            false => 1000 + n,
        };
        it.bytes[34..36].copy_from_slice(&port.to_be_bytes());
        if n == 13 {
            it.bytes[24] ^= 1;
        }
        it
    };
    (0..200).map(one).collect()
}

fn native<W: Way>(packets: &[In]) -> Vec<Out> {
    volley_sdk::harness::run(packets, &Domain::new(), |_| Scatter::<W>::new(256))
}

/// What the model makes of a frame; none if it is invalid.
fn expected(frame: &In) -> Option<Vec<u8>> {
    let mut bytes = frame.bytes.clone();
    volley_sdk::wire::checksum::is_valid(&bytes[14..34]).then_some(())?;
    let port = u16::from_be_bytes([bytes[34], bytes[35]]);
    (bytes[22], bytes[15]) = if port < 1000 { (62, 32) } else { (63, 16) };
    // Without the padding behind the total length.
    bytes.truncate(14 + usize::from(u16::from_be_bytes([bytes[16], bytes[17]])));
    bytes[24..26].fill(0);
    let sum = volley_sdk::wire::checksum::checksum(&bytes[14..34]);
    bytes[24..26].copy_from_slice(&sum.to_be_bytes());
    Some(bytes)
}

#[test]
fn all_ways_have_the_same_packets_in_the_same_order() {
    for share in [0, 1, 25, 75, 100] {
        let packets = frames(share);
        let valid: Vec<Vec<u8>> = packets.iter().filter_map(expected).collect();
        assert_eq!(valid.len() + 1, packets.len());
        let check = |name: &str, out: Vec<Out>| {
            assert_eq!(out.len(), packets.len(), "{name}");
            // The bench puts dropped packets behind the others.
            let (on, dropped) = out.split_at(valid.len());
            for (out, bytes) in on.iter().zip(&valid) {
                assert_eq!((&out.bytes, &out.reason), (bytes, &None), "{name}");
            }
            for out in dropped {
                assert_eq!(out.reason.as_deref(), Some("invalid"), "{name}");
            }
        };
        check("arrays", native::<Arrays>(&packets));
        check("masks", native::<Masks>(&packets));
        check("drop-out", native::<DropOut>(&packets));
        for (name, text) in SCRIPTS {
            let bench = Bench::new(text);
            check(name, bench.run(&packets));
            assert_eq!(bench.errors(), Vec::<String>::new(), "{name}");
        }
    }
}
