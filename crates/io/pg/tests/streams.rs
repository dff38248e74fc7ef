//! Streams in a real graph, whose workers the test steps.

mod bench;

use bench::{bench, stream};
use volley_iface::AdminState;
use volley_model::*;
use volley_pg::{Edit, Preload, Sizes, StreamSpec};
use volley_wire::ip4::Ip4;
use volley_wire::ip6::Ip6;
use volley_wire::{IpProto, checksum, tcp::Tcp, udp::Udp};

const UDP: &str = "eth src 02:00:00:00:00:01 dst 02:00:00:00:00:02 / ip4 src 10.0.0.1 dst 10.1.0.1 / udp sport 1 dport 2 / payload size 22";

/// Check every checksum of an IPv4 or IPv6 packet behind `at` bytes.
fn check(packet: &[u8], at: usize) {
    let bytes = &packet[at..];
    if bytes[0] >> 4 == 4 {
        let ip = Ip4::parse(bytes).unwrap();
        assert!(ip.checksum_ok(), "{packet:02x?}");
        let (src, dst) = (ip.header.src(), ip.header.dst());
        match ip.header.protocol {
            IpProto::ICMP => assert!(checksum::is_valid(ip.payload)),
            proto => assert!(
                checksum::is_valid4(src, dst, proto, ip.payload),
                "{packet:02x?}"
            ),
        }
        return;
    }
    let ip = Ip6::parse(bytes).unwrap();
    let (src, dst) = (ip.header.src(), ip.header.dst());
    let upper = ip.upper().unwrap();
    assert!(
        checksum::is_valid6(src, dst, upper.proto, upper.payload),
        "{packet:02x?}"
    );
}

#[test]
fn the_seed_decides_and_the_vector_size_does_not() {
    let edits = [
        "ip4.dst random 10.0.0.0 10.255.255.255",
        "udp.sport random 1024 65535",
    ];
    let play = |size, seed| {
        let mut spec = stream("s", UDP, &edits);
        spec.seed = seed;
        spec.size = Some(Sizes::Random { min: 64, max: 400 });
        bench(size, 4096).play(spec)
    };
    let first = play(256, Some(7));
    assert_eq!(first.len(), 100);
    assert_eq!(first, play(4, Some(7)));
    assert_ne!(first, play(256, Some(8)));
    assert_eq!(
        play(16, None),
        play(64, None),
        "no seed: still the same from run to run"
    );
}

#[test]
fn streams_are_interleaved_packet_by_packet() {
    for size in [4, 7, 256] {
        let mut b = bench(size, 4096);
        for (name, interface, limit) in [("a", "pg0", 50), ("b", "pg1", 50), ("c", "pg2", 20)] {
            let mut spec = stream(name, UDP, &[]);
            spec.interface = Some(interface.into());
            spec.limit = limit;
            b.add(spec);
        }
        assert_eq!(b.enable(None), 3);
        b.run();
        let order: Vec<u32> = b.seen.lock().unwrap().iter().map(|(rx, _)| *rx).collect();
        assert_eq!(order.len(), 120);
        // Round robin while all three have packets, then over the two that are left.
        assert!(
            order[..60].chunks(3).all(|c| c == [0, 1, 2]),
            "{size}: {order:?}"
        );
        assert!(
            order[60..].chunks(2).all(|c| c == [0, 1]),
            "{size}: {order:?}"
        );
        assert_eq!(b.counts("pg1").rx_packets, 50);
        assert_eq!(b.counts("pg2").tx_bytes, 20 * 64);
        assert_eq!(b.in_use(), 0);
    }
}

/// A stream of a test of several: they differ in interface, length, edits, number of packets; every fourth one has packets of different
/// sizes if `mixed`, so that it cannot be made in strips.
fn one_of_several(nth: usize, mixed: bool) -> StreamSpec {
    let edits = [
        &["udp.sport random 1024 65535"][..],
        &["ip4.dst random 10.0.0.0 10.255.255.255"],
        &[],
    ];
    let mut spec = stream(&format!("s{nth}"), UDP, edits[nth % 3]);
    spec.interface = Some(format!("pg{}", nth % 3));
    spec.limit = [300, 17, 64, 120, 1][nth % 5];
    spec.seed = Some(nth as u64);
    spec.size = Some(match nth % 4 {
        1 if mixed => Sizes::Random { min: 64, max: 400 },
        other => Sizes::Fixed(64 + 10 * other as u32),
    });
    spec
}

/// Packets of the streams, alone, taken round robin from those that have packets left.
fn round_robin(alone: &[Vec<Vec<u8>>]) -> Vec<(u32, Vec<u8>)> {
    let mut left: Vec<_> = alone.iter().map(|packets| packets.iter()).collect();
    let (mut order, mut at) = (Vec::new(), 0);
    let all: usize = alone.iter().map(Vec::len).sum();
    while order.len() < all {
        if let Some(packet) = left[at].next() {
            order.push((at as u32 % 3, packet.clone()));
        }
        at = (at + 1) % left.len();
    }
    order
}

#[test]
fn several_streams_make_the_packets_that_each_makes_alone() {
    for (streams, mixed) in [
        (2, false),
        (3, false),
        (5, false),
        (8, false),
        (10, false),
        (5, true),
    ] {
        let specs: Vec<_> = (0..streams).map(|nth| one_of_several(nth, mixed)).collect();
        let alone: Vec<_> = specs
            .iter()
            .map(|spec| bench(64, 4096).play(spec.clone()))
            .collect();
        let expected = round_robin(&alone);
        for (size, ahead) in [
            (1, false),
            (5, false),
            (16, true),
            (64, false),
            (64, true),
            (256, true),
        ] {
            let mut b = bench(size, 4096);
            for spec in &specs {
                if ahead {
                    b.pg.preloaded(spec, Preload { packets: 200 }).unwrap();
                } else {
                    b.add(spec.clone());
                }
            }
            b.enable(None);
            b.run();
            let seen = std::mem::take(&mut *b.seen.lock().unwrap());
            assert!(
                seen == expected,
                "{streams} streams, vectors of {size}, ahead: {ahead}"
            );
            let bytes = |rx: u32| {
                let of_rx = expected.iter().filter(|(at, _)| *at == rx);
                of_rx.map(|(_, packet)| packet.len() as u64).sum::<u64>()
            };
            assert_eq!(
                [b.counts("pg0").rx_bytes, b.counts("pg1").rx_bytes],
                [bytes(0), bytes(1)]
            );
            assert_eq!(b.in_use(), 0);
        }
    }
}

#[test]
fn maxframe_bounds_a_streams_part_of_a_vector() {
    let mut b = bench(256, 4096);
    for (name, interface, most) in [("a", "pg0", 3), ("b", "pg1", 10)] {
        let mut spec = stream(name, UDP, &[]);
        spec.interface = Some(interface.into());
        spec.max_frame = Some(most);
        b.add(spec);
    }
    b.enable(None);
    assert_eq!(b.worker.step(), 13);
    let seen = std::mem::take(&mut *b.seen.lock().unwrap());
    let order: String = seen.iter().map(|(rx, _)| rx.to_string()).collect();
    assert_eq!(order, "0101011111111");
}

#[test]
fn the_rate_follows_the_clock() {
    let mut b = bench(256, 4096);
    let mut spec = stream("s", UDP, &[]);
    (spec.rate, spec.limit) = (Some(1000), 0);
    b.add(spec);
    b.enable(None);
    assert_eq!(b.worker.step(), 0, "nothing is due at once");
    for (after_us, packets) in [
        (999, 0),
        (1, 1),
        (9_000, 9),
        (500, 0),
        (500, 1),
        (1_000_000, 256),
    ] {
        b.clock.advance(after_us * 1000);
        assert_eq!(b.worker.step(), packets, "{after_us} us later");
    }
    b.run();
    assert_eq!(b.row("s").sent, 1011, "what is overdue is made up for");
    assert!(b.row("s").enabled, "it is endless");
}

#[test]
fn a_limit_ends_a_stream_and_enabling_starts_it_anew() {
    let mut b = bench(64, 4096);
    b.add(stream("s", UDP, &["ip4.id increment 1 65535"]));
    assert!(!b.row("s").enabled && b.pg.is_quiet());
    assert_eq!(b.enable(Some("s")), 1);
    assert_eq!(b.enable(Some("s")), 0, "it is so already");
    assert_eq!((b.worker.step(), b.worker.step()), (64, 36));
    assert!(
        b.row("s").enabled,
        "only the next poll knows that all were processed"
    );
    b.run();
    assert!(!b.row("s").enabled && b.pg.is_quiet());
    let first = b.packets();
    b.enable(None);
    b.run();
    assert_eq!(first, b.packets(), "it begins with the first packet again");
    assert_eq!(b.row("s").sent, 100);
    b.enable(None);
    b.worker.step();
    b.disable(None);
    b.enable(None);
    b.run();
    assert_eq!(
        b.packets().len(),
        64 + 100,
        "off and on again before the worker looked"
    );
}

type EditCase = (&'static str, usize, Vec<&'static str>);

fn udp_and_tcp_edits() -> Vec<EditCase> {
    vec![
        (
            UDP,
            14,
            vec![
                "ip4.dst increment 10.0.0.0 10.0.0.255 step 7",
                "udp.dport list 1 2 65535",
            ],
        ),
        (
            UDP,
            14,
            vec![
                "ip4.src random 0.0.0.0 255.255.255.255",
                "ip4.ttl random 1 255",
                "ip4.dscp random 0 63",
            ],
        ),
        (
            UDP,
            14,
            vec![
                "ip4.ecn list 1 2 3",
                "ip4.dscp increment 0 63",
                "ip4.frag fixed 5",
                "eth.src random 02:00:00:00:00:00 02:00:00:ff:ff:ff",
            ],
        ),
        (
            UDP,
            14,
            vec![
                "offset 47 size 8 random 0 18446744073709551615",
                "offset 60 size 3 increment 0 16777215 step 99",
            ],
        ),
        (
            "eth / ip4 / tcp / payload size 3",
            14,
            vec![
                "tcp.seq random 0 4294967295",
                "offset 56 size 1 random 0 255",
            ],
        ),
    ]
}

fn other_edits() -> Vec<EditCase> {
    vec![
        (
            "eth / ip4 options 07 / icmp / payload size 5",
            14,
            vec![
                "icmp.seq increment 0 65535",
                "ip4.dst random 1.0.0.0 2.0.0.0",
            ],
        ),
        (
            "eth / vlan id 3 / ip6 src ::1 dst ::2 / udp / payload size 1",
            18,
            vec![
                "ip6.dst random :: ffff::",
                "vlan.id random 1 4094",
                "ip6.flow random 0 1048575",
            ],
        ),
        (
            "eth / vlan id 3 / ip6 src ::1 dst ::2 / ip6-hbh / icmp6 / payload hex ff",
            18,
            vec![
                "ip6.src increment ::1 ::ffff step 3",
                "icmp6.id random 0 65535",
            ],
        ),
    ]
}

#[test]
fn edits_keep_checksums_right() {
    let sizes = [
        None,
        Some(Sizes::Fixed(301)),
        Some("imix".parse().unwrap()),
        Some(Sizes::Increment { min: 68, max: 150 }),
        Some(Sizes::Random { min: 68, max: 2500 }),
    ];
    for (template, at, edits) in udp_and_tcp_edits().into_iter().chain(other_edits()) {
        for sizes in &sizes {
            let mut spec = stream("s", template, &edits);
            (spec.size, spec.limit) = (sizes.clone(), 300);
            let packets = bench(256, 4096).play(spec);
            assert_eq!(packets.len(), 300);
            packets.iter().for_each(|p| check(p, at));
            let distinct: std::collections::BTreeSet<_> = packets.iter().collect();
            assert!(distinct.len() > 3, "{template} {edits:?} {sizes:?}");
        }
    }
}

#[test]
fn edits_write_what_they_say() {
    let edits = [
        "ip4.dst list 10.9.9.9 10.8.8.8",
        "udp.sport increment 5 6",
        "eth.dst fixed 02:00:00:00:00:09",
        "offset 42 size 2 fixed 4660",
    ];
    let packets = bench(256, 4096).play(stream("s", UDP, &edits));
    for (i, packet) in packets.iter().enumerate() {
        let ip = Ip4::parse(&packet[14..]).unwrap();
        let udp = Udp::parse(ip.payload).unwrap();
        assert_eq!(
            ip.header.dst().octets(),
            [[10, 9, 9, 9], [10, 8, 8, 8]][i % 2]
        );
        assert_eq!(udp.header.src_port.get(), [5, 6][i % 2]);
        assert_eq!((packet[5], &udp.payload[..2]), (9, &[0x12, 0x34][..]));
    }
    let edits = ["ip4.checksum fixed 1", "tcp.checksum fixed 2"];
    let packets = bench(4, 4096).play(stream("s", "eth / ip4 / tcp", &edits));
    let ip = Ip4::parse(&packets[0][14..]).unwrap();
    assert_eq!(ip.header.checksum.get(), 1, "an edit of a checksum wins");
    assert_eq!(Tcp::parse(ip.payload).unwrap().header.checksum.get(), 2);
}

#[test]
fn a_mix_of_sizes_comes_as_seven_four_one() {
    let mut spec = stream("s", UDP, &[]);
    (spec.size, spec.limit) = (Some(Sizes::simple_imix()), 1200);
    let packets = bench(256, 4096).play(spec);
    let of = |len| packets.iter().filter(|p| p.len() == len).count();
    assert_eq!([of(64), of(594), of(1518)], [700, 400, 100]);
    packets.iter().for_each(|p| check(p, 14));
}

fn write(path: &std::path::Path, packets: &[Vec<u8>]) {
    let options = volley_pcap::WriterOptions::new(volley_pcap::FileFormat::for_path(path));
    let mut writer = volley_pcap::Writer::create(path, options).unwrap();
    for packet in packets {
        writer
            .write(volley_pcap::Packet::ethernet(0, packet.clone()).as_ref())
            .unwrap();
    }
    writer.finish().unwrap();
}

fn from_file(path: &std::path::Path, limit: u64) -> StreamSpec {
    let mut spec = stream("s", UDP, &[]);
    (spec.template, spec.pcap, spec.limit) = (None, Some(path.into()), limit);
    spec
}

#[test]
fn files_are_replayed_whatever_the_length_of_packets() {
    let dir = tempfile::tempdir().unwrap();
    let lens = [64, 1, 2047, 2048, 2049, 9000, 65_535, 14, 4096, 60];
    let made: Vec<Vec<u8>> = lens
        .iter()
        .map(|n| (0..*n).map(|i| (i * 7 + n) as u8).collect())
        .collect();
    for name in ["a.pcap", "a.pcapng"] {
        let path = dir.path().join(name);
        write(&path, &made);
        for size in [4, 5, 256] {
            let mut b = bench(size, 4096);
            assert_eq!(b.play(from_file(&path, 0)), made, "once through");
            assert_eq!(b.counts("pg0").tx_bytes, lens.iter().sum::<usize>() as u64);
            assert_eq!(b.in_use(), 0);
            let again = bench(size, 4096).play(from_file(&path, 23));
            assert!(
                again.iter().zip(made.iter().cycle()).all(|(a, b)| a == b) && again.len() == 23
            );
        }
    }
    let path = dir.path().join("small.pcap");
    write(&path, &made[..2]);
    let mut spec = from_file(&path, 0);
    spec.edits = vec!["offset 2 size 2 fixed 65535".parse().unwrap()];
    let packets = bench(4, 4096).play(spec);
    assert_eq!(
        (&packets[0][..6], packets[1].len()),
        (
            &[made[0][0], made[0][1], 255, 255, made[0][4], made[0][5]][..],
            1
        )
    );
}

#[test]
fn running_out_of_buffers_drops_and_counts() {
    for len in [60u32, 9000] {
        // A lap of preloaded packets holds all buffers but a few; the generator must continue.
        let mut b = bench(256, 128);
        let mut spec = stream("s", UDP, &["ip4.id increment 0 65535"]);
        (spec.limit, spec.size) = (1000, Some(Sizes::Fixed(len)));
        let packets = b.play(spec);
        let lost = b.counter("pg-input", "no-buffers");
        assert!(lost > 0, "256 at a time from 128 buffers");
        assert_eq!(packets.len() as u64 + lost, 1000, "{len}");
        packets.iter().for_each(|p| check(p, 14));
        let counts = b.counts("pg0");
        assert_eq!(counts.rx_packets, packets.len() as u64);
        assert_eq!((counts.drops, counts.rx_errors), (lost, lost));
        assert_eq!(b.row("s").sent, 1000);
        assert!(!b.row("s").enabled);
        assert_eq!(b.in_use(), 0);
    }
}

#[test]
fn a_down_interface_receives_nothing() {
    let mut b = bench(64, 4096);
    b.state("pg0", AdminState::Down);
    let mut other = stream("other", UDP, &[]);
    other.interface = Some("pg1".into());
    b.add(other);
    assert_eq!(
        b.play(stream("s", UDP, &[])).len(),
        100,
        "the other stream's"
    );
    assert_eq!(b.counter("pg-input", "admin-down"), 100);
    let counts = b.counts("pg0");
    assert_eq!((counts.rx_packets, counts.drops), (0, 100));
    assert_eq!((b.in_use(), b.counts("pg1").drops), (0, 0));
}

#[test]
fn streams_enter_at_a_node_too() {
    let mut b = bench(64, 4096);
    let mut spec = stream("s", UDP, &[]);
    spec.interface = Some("pg1".into());
    spec.node = Some("error-drop".into());
    assert_eq!(b.play(spec.clone()).len(), 0);
    assert_eq!(b.counts("pg1").rx_packets, 100);
    assert_eq!(b.counts("pg1").drops, 100);
    spec.name = "t".into();
    spec.interface = None;
    assert_eq!(b.play(spec).len(), 0);
    assert_eq!(b.row("t").enters, "error-drop");
}

#[test]
fn preloaded_packets_are_the_same_and_are_given_back() {
    let edits = ["ip4.dst random 10.0.0.0 10.255.255.255"];
    for (size, packets, buffers) in [
        (4, 1, 4096),
        (64, 1000, 4096),
        (256, 1000, 512),
        (256, 3000, 4096),
    ] {
        let spec = |name: &str, interface: &str| {
            let mut spec = stream(name, UDP, &edits);
            spec.limit = 2500;
            spec.interface = Some(interface.into());
            spec
        };
        let mut live = bench(size, 4096);
        live.add(spec("a", "pg0"));
        live.add(spec("b", "pg1"));
        live.enable(None);
        live.run();
        let mut ahead = bench(size, buffers);
        ahead
            .pg
            .preloaded(&spec("a", "pg0"), Preload { packets })
            .unwrap();
        ahead
            .pg
            .preloaded(&spec("b", "pg1"), Preload { packets })
            .unwrap();
        ahead.enable(None);
        ahead.run();
        assert_eq!(
            *live.seen.lock().unwrap(),
            *ahead.seen.lock().unwrap(),
            "vectors of {size}, laps of {packets}"
        );
        assert_eq!(ahead.counts("pg1").rx_packets, 2500);
        assert_eq!(ahead.row("b").sent, 2500);
        assert_eq!(ahead.in_use(), 0);
    }
}

#[test]
fn disabling_and_deleting_give_set_aside_packets_back() {
    let mut b = bench(64, 4096);
    let mut spec = stream("s", UDP, &[]);
    spec.limit = 0;
    b.pg.preloaded(&spec, Preload { packets: 1000 }).unwrap();
    b.enable(None);
    b.worker.step();
    assert_eq!(b.in_use(), 1000 - 64);
    b.disable(Some("s"));
    assert!(b.row("s").enabled, "not yet");
    b.worker.step();
    assert_eq!((b.in_use(), b.row("s").enabled), (0, false));
    b.enable(None);
    b.worker.step();
    b.state("pg0", AdminState::Down);
    assert_eq!(b.worker.step(), 64);
    assert_eq!(b.counter("pg-input", "admin-down"), 64);
    assert_eq!(b.counts("pg0").drops, 64);
    b.delete("s").unwrap();
    assert_eq!(b.worker.step(), 0);
    assert_eq!(b.in_use(), 0);
    assert!(b.report().streams.is_empty());
    for _ in 0..300 {
        b.add(stream("s", UDP, &[]));
        b.delete("s").unwrap();
        b.worker.step();
    }
}

#[test]
fn faults_are_told_and_change_nothing() {
    let mut b = bench(64, 4096);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cut.pcap");
    std::fs::write(&path, [0xd4, 0xc3, 0xb2, 0xa1, 2]).unwrap();
    let mut cases = Vec::new();
    let base = stream("s", UDP, &[]);
    let mut case = |change: &dyn Fn(&mut StreamSpec), error: &str| {
        let mut spec = base.clone();
        change(&mut spec);
        cases.push((spec, error.to_owned()));
    };
    let edit = |text: &str| text.parse::<Edit>().unwrap();
    case(
        &|s| s.edits = vec![edit("offset 63 size 2 fixed 1")],
        "edit of offset 63 size 2 is not valid: it ends at byte 65, the packet has 64",
    );
    case(
        &|s| s.interface = Some("pg9".into()),
        "there is no interface pg9; there are: pg0, pg1, pg2",
    );
    case(
        &|s| s.node = Some("nowhere".into()),
        "there is no node nowhere; there are: error-drop",
    );
    case(
        &|s| s.worker = Some(1),
        "worker 1 is not valid: there is none of that number; there are: 0",
    );
    case(
        &|s| (s.template, s.pcap) = (None, Some("/nowhere.pcap".into())),
        "/nowhere.pcap: cannot open /nowhere.pcap",
    );
    case(
        &|s| (s.template, s.pcap) = (None, Some(path.clone())),
        &format!("{}: ", path.display()),
    );
    case(
        &|s| s.edits = vec![edit("ip4.dst file /nowhere.txt")],
        "/nowhere.txt: No such file",
    );
    for (spec, error) in cases {
        let got = b.set(&spec).unwrap_err().to_string();
        assert!(got.starts_with(&error), "{got}");
    }
    assert!(b.report().streams.is_empty());
    b.add(base);
    let used = b
        .ask(Request::InterfaceDelete { name: "pg0".into() })
        .unwrap_err()
        .to_string();
    assert_eq!(
        used,
        "interface pg0 is in use by stream s: remove that first"
    );
    assert!(
        b.ask(Request::InterfaceDelete { name: "pg2".into() })
            .is_ok()
    );
}

#[test]
fn what_cannot_be_preloaded_is_refused() {
    let b = bench(64, 4096);
    let mut jumbo = stream("j", UDP, &[]);
    jumbo.size = Some(Sizes::Fixed(3000));
    let error =
        b.pg.preloaded(&jumbo, Preload { packets: 9 })
            .unwrap_err()
            .to_string();
    assert_eq!(
        error,
        "preload of stream j is not valid: its packets have up to 3000 bytes, one buffer holds 2048"
    );
}

/// The shared captures, if installed: every packet is sent unchanged.
#[test]
fn real_captures_are_replayed_byte_for_byte() {
    let there = std::env::var("VOLLEY_SHARED").map(std::path::PathBuf::from);
    let beside = || concat!(env!("CARGO_MANIFEST_DIR"), "/../../../../shared").into();
    let folder = there.unwrap_or_else(|_| beside()).join("data/captures");
    for name in ["malformed", "odd", "jumbo", "valid", "mix4k-snabb"] {
        let path = folder.join(format!("{name}.pcap.xz"));
        if !path.exists() {
            eprintln!("skipped: no {}", path.display());
            continue;
        }
        let packets = volley_pcap::read_packets(&path).unwrap().packets;
        let packets: Vec<_> = packets.into_iter().map(|p| p.data).collect();
        for size in [4, 256, 1024] {
            let mut b = bench(size, 65_536);
            assert_eq!(
                b.play(from_file(&path, 0)),
                packets,
                "{name}, vectors of {size}"
            );
            assert_eq!(b.in_use(), 0);
        }
    }
}
