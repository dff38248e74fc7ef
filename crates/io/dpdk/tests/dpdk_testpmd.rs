//! A DPDK program as peer: packets of testpmd arrive, and it returns packets unchanged.
#![cfg(feature = "dpdk")]

mod support;

use support::testpmd::{Testpmd, is_there, port};
use support::*;
use volley_linux::testbed::Daemon;

/// testpmd listens as a memif server; Volley's port is the client.
fn bench(queues: u32, id: u32, args: &[&str]) -> (tempfile::TempDir, Testpmd, Daemon) {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("pmd.sock");
    let queue = [format!("--rxq={queues}"), format!("--txq={queues}")];
    let mut all: Vec<&str> = queue.iter().map(String::as_str).collect();
    all.push("--port-topology=loop");
    all.extend(args);
    let pmd = Testpmd::start(&[port(0, "server", 3, &socket, "")], &all, || {
        std::thread::sleep(std::time::Duration::from_millis(5));
    });
    let mut daemon = daemon(None);
    let text = format!(
        "net_memif{id},role=client,id=3,socket={},socket-abstract=no",
        socket.display()
    );
    let mut spec = vdev(text);
    spec.queues = queues;
    daemon.must(create("pmd", spec));
    up(&mut daemon, "pmd");
    daemon.until("testpmd is there", |d| d.link_fault("pmd").is_none());
    (folder, pmd, daemon)
}

#[test]
fn what_testpmd_sends_arrives_on_all_queues() {
    if !is_there() {
        return;
    }
    for (queues, size, id) in [(1, 64, 20), (2, 1024, 21)] {
        let txpkts = format!("--txpkts={size}");
        let (_folder, mut pmd, mut daemon) = bench(queues, id, &["--forward-mode=txonly", &txpkts]);
        daemon.must(create("sink", vdev(format!("net_null{id},no-rx=1"))));
        one_way(&mut daemon, "pmd", "sink");
        up(&mut daemon, "sink");
        pmd.say("start");
        daemon.until("many packets come", |d| d.counts("pmd").rx_packets > 20_000);
        let stats = pmd.stop(|| std::thread::sleep(std::time::Duration::from_millis(5)));
        daemon.until("all came", |d| d.counts("pmd").rx_packets >= stats[0].tx);
        let counts = daemon.counts("pmd");
        assert_eq!(
            counts.rx_packets, stats[0].tx,
            "{queues} queues of {size} bytes"
        );
        assert_eq!(counts.rx_bytes, stats[0].tx * size);
        assert_eq!(counts.rx_errors, 0);
        let sink = daemon.counts("sink");
        assert_eq!(sink.tx_packets + sink.tx_errors, stats[0].tx);
        let text = hardware(&mut daemon, "pmd");
        assert!(
            text.contains(&format!("queue {}: rx", queues - 1)),
            "{text}"
        );
        daemon.stop();
    }
}

#[test]
fn what_testpmd_returns_is_unchanged() {
    if !is_there() {
        return;
    }
    let (folder, mut pmd, mut daemon) = bench(1, 22, &["--forward-mode=io"]);
    pmd.forward(|| std::thread::sleep(std::time::Duration::from_millis(5)));
    let frames: Vec<_> = (0..500).map(|n| frame(n, 60 + (n * 37) % 1455)).collect();
    let (from, to) = (
        folder.path().join("in.pcap"),
        folder.path().join("out.pcap"),
    );
    write_pcap(&from, &frames);
    daemon.must(create(
        "in",
        vdev(format!("net_pcap22,rx_pcap={}", from.display())),
    ));
    daemon.must(create(
        "out",
        vdev(format!("net_pcap23,tx_pcap={}", to.display())),
    ));
    one_way(&mut daemon, "in", "pmd");
    one_way(&mut daemon, "pmd", "out");
    up(&mut daemon, "out");
    up(&mut daemon, "in");
    daemon.until("all came back", |d| d.counts("out").tx_packets == 500);
    assert_eq!(daemon.counts("pmd").tx_packets, 500);
    daemon.stop();
    assert!(read_pcap(&to) == frames);
}

#[test]
fn a_killed_testpmd_takes_the_link_down_and_the_port_can_be_made_anew() {
    if !is_there() {
        return;
    }
    for _ in 0..3 {
        let (_folder, mut pmd, mut daemon) = bench(1, 24, &["--forward-mode=txonly"]);
        pmd.say("start");
        daemon.until("packets come", |d| d.counts("pmd").rx_packets > 1000);
        drop(pmd);
        daemon.until("the link is down", |d| d.link_fault("pmd").is_some());
        daemon.stop();
    }
}
