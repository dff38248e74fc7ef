//! Verifies the output: a sample of packets is captured on reception and on transmission, and compared with the output of
//! the plain reference model for the received ones. Lost and duplicated packets are detected too.

use super::BenchError;
use super::scenario::{Bench, L2_DST, TX};
use super::scratch::Scratch;
use std::collections::HashMap;
use std::path::Path;
use volley_model::Request;
use volley_pcap::{PcapTraceOff, PcapTraceOn};
use volley_pg::PgCapture;

/// Number of rounds whose packets are compared.
const ROUNDS: usize = 8;

/// Run a sample through and compare; returns how many packets were received.
pub fn sample(bench: &mut Bench) -> Result<usize, BenchError> {
    let folder = Scratch::new()?;
    let (rx, tx) = (folder.file("rx.pcap"), folder.file("tx.pcap"));
    let capture = PcapTraceOn {
        rx: true,
        tx: false,
        drop: false,
        interface: None,
        max: 1_000_000,
        max_bytes_per_packet: None,
        file: rx.clone(),
        filter: None,
    };
    bench.apply(Request::of(&capture)?)?;
    let sent = PgCapture {
        interface: TX.to_owned(),
        file: Some(tx.clone()),
        count: None,
        off: false,
    };
    bench.apply(Request::of(&sent)?)?;
    bench.enable(true)?;
    for _ in 0..ROUNDS {
        bench.step();
        bench.stack.drain();
    }
    bench.enable(false)?;
    bench.stack.drain();
    bench.apply(Request::of(&PcapTraceOff)?)?;
    bench.apply(Request::of(&PgCapture { off: true, ..sent })?)?;
    let received = packets(&rx)?;
    compare(bench, &received, &packets(&tx)?)?;
    Ok(received.len())
}

fn packets(path: &Path) -> Result<Vec<Vec<u8>>, BenchError> {
    if !path.exists() {
        // A capture creates its file with its first packet.
        return Ok(Vec::new());
    }
    let failed = |e: volley_pcap::PcapError| BenchError::File {
        path: path.display().to_string(),
        why: e.to_string(),
    };
    Ok(volley_pcap::read_packets(path)
        .map_err(failed)?
        .packets
        .into_iter()
        .map(|p| p.data)
        .collect())
}

fn compare(bench: &Bench, received: &[Vec<u8>], sent: &[Vec<u8>]) -> Result<(), BenchError> {
    if received.is_empty() {
        return Err(BenchError::Wrong("no packet was received".into()));
    }
    let mut open: HashMap<&[u8], i64> = HashMap::new();
    for frame in sent {
        *open.entry(frame).or_default() += 1;
    }
    let mut missing = 0;
    for frame in received {
        let expected = if bench.is_bridge || frame.starts_with(&L2_DST) {
            vec![frame.clone()]
        } else {
            let here = bench.reference.expect(frame).filter(|(tx, _)| tx == TX);
            here.map_or_else(Vec::new, |(_, frames)| frames)
        };
        for expected in expected {
            match open.get_mut(expected.as_slice()) {
                Some(count) if *count > 0 => *count -= 1,
                _ => missing += 1,
            }
        }
    }
    let stray: i64 = open.values().sum();
    if missing > 0 || stray > 0 {
        let text = format!(
            "of {} packets received, {missing} did not leave as the reference says, and {stray} left that it does not know",
            received.len()
        );
        return Err(BenchError::Wrong(text));
    }
    Ok(())
}
