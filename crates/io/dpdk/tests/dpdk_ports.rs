//! DPDK's virtual ports under Volley: packets pass unchanged, and every buffer returns.
#![cfg(feature = "dpdk")]

mod support;

use std::path::Path;
use std::time::Duration;
use support::*;
use volley_dpdk::model::{DpdkInterface, PciDevice};
use volley_iface::RxMode;
use volley_iface::{MacAddress, Mtu, Promiscuous, ReceiveMode};
use volley_linux::testbed::Daemon;
use volley_memif::model::{Memif, MemifRole};
use volley_model::Request;
use volley_object::Object;

/// A port that plays `frames`, and the name of the file that another port records to.
fn player(folder: &Path, frames: &[Vec<u8>]) -> (String, String) {
    let (from, to) = (folder.join("in.pcap"), folder.join("out.pcap"));
    write_pcap(&from, frames);
    (
        format!("net_pcap_in,rx_pcap={}", from.display()),
        format!("net_pcap_out,tx_pcap={}", to.display()),
    )
}

fn received(daemon: &Daemon, name: &str) -> u64 {
    daemon.counts(name).rx_packets
}

fn sent(daemon: &Daemon, name: &str) -> u64 {
    daemon.counts(name).tx_packets
}

/// Play frames through interfaces `enter` and `leave` into a file, which must then have the same frames.
fn play(daemon: &mut Daemon, tag: &str, frames: &[Vec<u8>], enter: &str, leave: &str) {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = player(folder.path(), frames);
    let (from, to) = (
        from.replace("net_pcap_in", &format!("net_pcap_in{tag}")),
        to.replace("net_pcap_out", &format!("net_pcap_out{tag}")),
    );
    daemon.must(create_mtu("in", vdev(from), 9000));
    daemon.must(create_mtu("out", vdev(to), 9000));
    up(daemon, "out");
    one_way(daemon, "in", enter);
    one_way(daemon, leave, "out");
    up(daemon, "in");
    let all = frames.len() as u64;
    daemon.until("all frames are recorded", |d| sent(d, "out") == all);
    for name in ["in", "out"] {
        let counts = daemon.counts(name);
        assert_eq!((counts.rx_errors, counts.tx_errors), (0, 0), "{name}");
        delete(daemon, name);
    }
    // The port writes its last packets when it is closed, a moment later.
    let path = folder.path().join("out.pcap");
    daemon.until("the file is whole", |_| {
        path.exists() && std::fs::metadata(&path).is_ok_and(|m| m.len() > 24)
    });
    std::thread::sleep(Duration::from_millis(50));
    let got = read_pcap(&path);
    assert_eq!(got.len(), frames.len());
    assert!(got == frames, "frames are as they were");
}

#[test]
fn frames_of_all_sizes_pass_from_a_capture_to_another() {
    let folder = tempfile::tempdir().unwrap();
    let sizes = [60, 64, 65, 1500, 1514, 2047, 2048, 2049, 4096, 4097, 9014];
    let frames: Vec<_> = (0..220).map(|n| frame(n, sizes[n % sizes.len()])).collect();
    let (from, to) = player(folder.path(), &frames);
    let mut daemon = daemon(None);
    daemon.must(create_mtu("a", vdev(from), 9000));
    daemon.must(create_mtu("b", vdev(to), 9000));
    one_way(&mut daemon, "a", "b");
    up(&mut daemon, "b");
    up(&mut daemon, "a");
    daemon.until("all are sent", |d| sent(d, "b") == 220);
    assert_eq!(received(&daemon, "a"), 220);
    let text = hardware(&mut daemon, "b");
    assert!(
        text.contains("driver net_pcap") && text.contains("tx 220 packets"),
        "{text}"
    );
    daemon.stop();
    assert!(read_pcap(&folder.path().join("out.pcap")) == frames);
}

#[test]
fn a_ring_gives_back_the_very_buffers() {
    let mut daemon = daemon(None);
    daemon.must(create("ring", vdev("net_ring0")));
    up(&mut daemon, "ring");
    let frames: Vec<_> = (0..400).map(|n| frame(n, 60 + n % 1400)).collect();
    play(&mut daemon, "r", &frames, "ring", "ring");
    let counts = daemon.counts("ring");
    assert_eq!((counts.tx_packets, counts.rx_packets), (400, 400));
    daemon.stop();
}

#[test]
fn several_queues_of_null_ports_run_and_come_back() {
    let mut daemon = daemon(None);
    let mut spec = vdev("net_null0,size=128");
    spec.queues = 2;
    daemon.must(create("n0", spec));
    daemon.must(create("n1", vdev("net_null1,no-rx=1")));
    up(&mut daemon, "n1");
    one_way(&mut daemon, "n0", "n1");
    up(&mut daemon, "n0");
    daemon.until("many packets pass", |d| sent(d, "n1") > 200_000);
    let text = hardware(&mut daemon, "n0");
    assert!(text.contains("rx 2 of"), "{text}");
    for queue in 0..2 {
        let of = format!("port counts, queue {queue}: rx ");
        assert!(text.contains(&of), "{text}");
    }
    let counts = daemon.counts("n1");
    assert_eq!(
        (counts.tx_errors, counts.tx_bytes),
        (0, counts.tx_packets * 128)
    );
    // Deleted and created again under traffic, more often than the buffers would allow if any were lost.
    for _ in 0..10 {
        delete(&mut daemon, "n0");
        daemon.must(create("n0", vdev("net_null0")));
        one_way(&mut daemon, "n0", "n1");
        up(&mut daemon, "n0");
    }
    let before = sent(&daemon, "n1");
    daemon.until("packets pass again", |d| sent(d, "n1") > before + 1000);
    daemon.stop();
}

/// Volley's memif and DPDK's memif in the same process.
fn joined(folder: &Path, role: MemifRole, theirs: &str, tag: &str) -> Daemon {
    let socket = folder.join("m.sock");
    let mut daemon = daemon(Some(&socket));
    let text = format!(
        "net_memif{tag},role={theirs},id=7,socket={},socket-abstract=no",
        socket.display()
    );
    let ours = Memif {
        id: 7,
        role,
        ..Memif::default()
    }
    .instance();
    let ours = ours.unwrap();
    // The listening side is created first.
    if role == MemifRole::Master {
        daemon.create("ours", ours, None);
        daemon.must(create("pmd", vdev(text)));
    } else {
        daemon.must(create("pmd", vdev(text)));
        daemon.create("ours", ours, None);
    }
    up(&mut daemon, "pmd");
    daemon.until("both have a link", |d| {
        d.link_fault("ours").is_none() && d.link_fault("pmd").is_none()
    });
    daemon
}

#[test]
fn dpdks_memif_and_our_own_exchange_frames_both_ways() {
    for (role, theirs, tag) in [
        (MemifRole::Master, "client", "7"),
        (MemifRole::Slave, "server", "8"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut daemon = joined(folder.path(), role, theirs, tag);
        let sizes = [60, 64, 512, 1514, 2048, 2049, 5000];
        let frames: Vec<_> = (0..210).map(|n| frame(n, sizes[n % 7])).collect();
        play(&mut daemon, &format!("m{tag}"), &frames, "ours", "pmd");
        play(&mut daemon, &format!("n{tag}"), &frames, "pmd", "ours");
        daemon.stop();
    }
}

#[test]
fn a_peer_that_goes_takes_the_link_down() {
    let folder = tempfile::tempdir().unwrap();
    let mut daemon = joined(folder.path(), MemifRole::Master, "client", "9");
    delete(&mut daemon, "ours");
    daemon.until("the link is down", |d| d.link_fault("pmd").is_some());
    assert_eq!(daemon.link_fault("pmd").unwrap(), "the port has no link");
    daemon.stop();
}

#[test]
fn settings_are_asked_of_the_port() {
    let mut daemon = daemon(None);
    daemon.must(create("n", vdev("net_null5")));
    let name = || "n".to_owned();
    let mac = MacAddress {
        interface: name(),
        mac: "02:00:00:00:00:77".parse().unwrap(),
    };
    daemon.must(Request::set(&mac).unwrap());
    let mtu = |mtu| {
        let interface = name();
        Request::set(&Mtu { interface, mtu }).unwrap()
    };
    let mode = |mode| {
        let interface = name();
        Request::set(&ReceiveMode { interface, mode }).unwrap()
    };
    daemon.must(mtu(9000));
    daemon.must(mode(RxMode::Polling));
    let refusal = refused(&mut daemon, mode(RxMode::Interrupt));
    assert!(refusal.contains("use adaptive"), "{refusal}");
    let promiscuous = Promiscuous {
        interface: name(),
        enabled: true,
    };
    match daemon.ask(Request::set(&promiscuous).unwrap()) {
        Ok(_) => {}
        Err(error) => assert!(error.to_string().contains("cannot do that"), "{error}"),
    }
    daemon.stop();
}

#[test]
fn what_cannot_be_is_one_sentence_and_leaves_nothing() {
    let mut daemon = daemon(None);
    let mut queues = vdev("net_ring7");
    queues.queues = 64;
    let cases = [
        (vdev("net_nonsense0"), "DPDK has no such device"),
        (
            vdev("net_pcap7,rx_pcap=/nowhere/x.pcap"),
            "DPDK has no such device",
        ),
        (vdev("net_null7,size"), "DPDK has no such device"),
        (queues, "receive queues, and 64 are requested"),
        (
            vdev("net_memif7,zero-copy=yes,role=client"),
            "leave zero-copy=yes out",
        ),
        (
            DpdkInterface {
                dev: Some(PciDevice("0000:ff:1f.7".into())),
                vdev: None,
                ..vdev("")
            },
            "DPDK has no such device",
        ),
    ];
    for (spec, part) in cases {
        let text = refused(&mut daemon, create("x", spec));
        println!("{text}");
        assert!(text.contains(part) && !text.contains('\n'), "{text}");
        assert!(daemon.registry.interfaces.borrow().by_name("x").is_none());
        assert!(daemon.registry.engine.borrow().node("x-tx").is_err());
    }
    // Devices of refused requests are free.
    daemon.must(create("r", vdev("net_ring7")));
    let text = refused(&mut daemon, create("r", vdev("net_null8")));
    assert!(text.contains("exists already"), "{text}");
    let text = refused(&mut daemon, create("s", vdev("net_ring7")));
    assert!(text.contains("in use by another interface"), "{text}");
    let text = refused(
        &mut daemon,
        set(&volley_dpdk::model::DpdkEal {
            memory: Some(77),
            ..Default::default()
        }),
    );
    assert!(text.contains("DPDK runs already"), "{text}");
    daemon.stop();
}
