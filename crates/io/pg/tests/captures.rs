//! Captures of the packets that a packet-generator interface transmits.

mod bench;

use bench::{bench, stream};
use volley_model::*;
use volley_pcap::read_packets;
use volley_pg::{PgCapture, Sizes};

fn on(interface: &str, file: &std::path::Path, count: Option<u64>) -> Request {
    let (file, off) = (Some(file.into()), false);
    let interface = interface.into();
    Request::of(&PgCapture {
        interface,
        file,
        count,
        off,
    })
    .unwrap()
}

fn off(interface: &str) -> Request {
    let (file, count, off) = (None, None, true);
    let interface = interface.into();
    Request::of(&PgCapture {
        interface,
        file,
        count,
        off,
    })
    .unwrap()
}

const TEMPLATE: &str = "eth / ip4 / udp / payload size 100";

#[test]
fn a_capture_holds_what_was_sent() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["out.pcap", "out.pcapng"] {
        let path = dir.path().join(name);
        let mut b = bench(256, 4096);
        b.ask(on("pg0", &path, None)).unwrap();
        b.clock.advance(5_000_000_000);
        let mut spec = stream("s", TEMPLATE, &["ip4.id increment 0 65535"]);
        (spec.limit, spec.size) = (5000, Some(Sizes::Random { min: 60, max: 5000 }));
        let sent = b.play(spec);
        assert_eq!(b.report().captures[0].packets, 5000);
        let done = b.ask(off("pg0")).unwrap();
        assert_eq!(
            done.notes,
            [format!("5000 packets in {}, 0 lost", path.display())]
        );
        let capture = read_packets(&path).unwrap();
        assert_eq!(capture.packets.len(), 5000);
        assert!(capture.packets.iter().zip(&sent).all(|(c, s)| c.data == *s));
        assert_eq!(capture.packets[0].timestamp_ns, 5_000_000_000);
        assert!(b.report().captures.is_empty());
        assert_eq!(b.in_use(), 0);
    }
}

#[test]
fn the_count_ends_it_and_a_file_is_made_with_the_first_packet_only() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out.pcap");
    let mut b = bench(64, 4096);
    b.ask(on("pg1", &path, Some(30))).unwrap();
    assert!(!path.exists());
    let error = b
        .ask(on("pg1", &dir.path().join("other"), None))
        .unwrap_err();
    assert!(error.to_string().starts_with("capture pg1 exists already"));
    b.play(stream("s", TEMPLATE, &[]));
    assert!(!path.exists(), "pg0 sent, not pg1");
    b.delete("s").unwrap();
    let mut spec = stream("s", TEMPLATE, &[]);
    spec.interface = Some("pg1".into());
    b.play(spec);
    b.ask(off("pg1")).unwrap();
    assert_eq!(read_packets(&path).unwrap().packets.len(), 30);
    let error = b.ask(on("pg1", &path, None)).unwrap_err().to_string();
    assert!(error.ends_with("it exists already: delete it first or choose another name"));
    assert_eq!(
        b.counter("pg1-tx", "capture-lost"),
        0,
        "more than asked for is not lost"
    );
    assert_eq!(b.ask(off("pg1")).unwrap().changed, 0);
}

#[test]
fn a_capture_that_is_not_written_loses_packets_and_counts_them() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out.pcap");
    let mut b = bench(256, 4096);
    b.ask(on("pg0", &path, None)).unwrap();
    let mut spec = stream("s", TEMPLATE, &["ip4.id increment 0 65535"]);
    spec.limit = 5000;
    b.add(spec);
    b.enable(None);
    while b.worker.step() > 0 {}
    let lost = b.counter("pg0-tx", "capture-lost");
    assert!(lost > 0);
    assert_eq!(
        b.counts("pg0").tx_packets,
        5000,
        "all were sent all the same"
    );
    b.ask(Request::InterfaceDelete { name: "pg0".into() })
        .unwrap_err();
    b.delete("s").unwrap();
    b.ask(Request::InterfaceDelete { name: "pg0".into() })
        .unwrap();
    let kept = read_packets(&path).unwrap().packets;
    assert_eq!(kept.len() as u64 + lost, 5000);
    let sent = b.packets();
    assert!(
        kept.iter().zip(&sent).all(|(k, s)| k.data == *s),
        "the first ones, in order"
    );
    assert_eq!(b.in_use(), 0);
}
