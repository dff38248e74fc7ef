//! A kernel namespace behind `net_tap` communicates with one behind a tap of Volley. Needs root.
#![cfg(feature = "dpdk")]

mod support;

use std::time::Duration;
use support::*;
use volley_linux::testbed::{Daemon, Testbed, datagrams, must, run};
use volley_object::Object;
use volley_tap::model::TapInterface;

/// A bridge of the kernel, deleted when dropped.
struct Bridge(String);

impl Drop for Bridge {
    fn drop(&mut self) {
        let _ = run(10, "ip", &["link", "del", &self.0]);
    }
}

/// Namespace 0 behind DPDK's tap, 1 behind Volley's tap, patched together.
fn joined(bed: &Testbed, number: u32, offload: bool) -> (Daemon, Bridge) {
    let mut daemon = daemon(None);
    let device = format!("vd{}x{number}", std::process::id() % 100_000);
    let mut spec = vdev(format!("net_tap{number},iface={device}"));
    spec.offload = offload;
    daemon.must(create("pmd", spec));
    up(&mut daemon, "pmd");
    // The driver finds its interface by name in this process's namespace, so the tap stays there; a bridge connects
    // namespace 0.
    let (bridge, veth) = (format!("{device}b"), bed.veth(0, "e", ""));
    for words in [
        format!("link add {bridge} type bridge"),
        format!("link set {bridge} up"),
        format!("link set {veth} master {bridge}"),
        format!("link set {device} master {bridge}"),
    ] {
        must(10, "ip", &words.split(' ').collect::<Vec<_>>());
    }
    let bridge = Bridge(bridge);
    bed.ip(0, "addr add 10.0.0.1/24 dev e");
    let tap = TapInterface {
        host: Some("e".into()),
        namespace: Some(bed.name(1).into()),
        host_addresses: vec!["10.0.0.2/24".parse().unwrap()],
        ..TapInterface::default()
    };
    daemon.create("own", tap.instance().unwrap(), None);
    daemon.patch("pmd", "own");
    daemon.until("link", |d| {
        d.link_fault("pmd").is_none() && d.link_fault("own").is_none()
    });
    (daemon, bridge)
}

#[test]
fn namespaces_ping_and_exchange_datagrams() {
    let Some(bed) = Testbed::new(2, &["ping"]) else {
        return;
    };
    let (daemon, _bridge) = joined(&bed, 30, true);
    assert!(
        bed.pings_soon(0, "10.0.0.2", 56),
        "{:?}",
        daemon.counts("pmd")
    );
    assert!(bed.pings_soon(1, "10.0.0.1", 1472));
    let wait = Duration::from_secs(2);
    let (a, b) = (bed.udp(0, "10.0.0.1", wait), bed.udp(1, "10.0.0.2", wait));
    datagrams(&a, &b, (18..1472).step_by(61));
    datagrams(&b, &a, (18..1472).step_by(61));
    drop((a, b));
    daemon.stop();
}

#[test]
fn tcp_passes_with_the_ports_offloads_and_without() {
    for (number, offload) in [(31, true), (32, false)] {
        let Some(bed) = Testbed::new(2, &["ping", "iperf3"]) else {
            return;
        };
        let (mut daemon, _bridge) = joined(&bed, number, offload);
        let text = hardware(&mut daemon, "pmd");
        assert_eq!(text.contains("does: checksum"), offload, "{text}");
        assert!(bed.pings_soon(0, "10.0.0.2", 56));
        for (server, client, to) in [(0, 1, "10.0.0.1"), (1, 0, "10.0.0.2")] {
            let _server = bed.start(server, 12, "iperf3 -s -1");
            std::thread::sleep(Duration::from_millis(300));
            let out = bed.exec(client, 10, &format!("iperf3 -c {to} -t 1 -f m"));
            let message = String::from_utf8_lossy(&out.stdout).into_owned();
            assert!(out.status.success(), "{message}");
            let line = message.lines().find(|l| l.contains("receiver"));
            println!("{offload:?}, towards {to}: {}", line.unwrap_or_default());
            assert!(mbits(&message) > 20.0, "{message}");
        }
        let counts = daemon.counts("pmd");
        // Super-segments that the kernel sends by Volley's tap are segmented before the port.
        assert!(
            counts.tx_bytes / counts.tx_packets.max(1) <= 1514,
            "{counts:?}"
        );
        daemon.stop();
    }
}

/// The receiver's rate in Mbit/s.
fn mbits(message: &str) -> f64 {
    let line = message.lines().find(|l| l.contains("receiver"));
    let before = line.and_then(|l| l.split(" Mbits/sec").next());
    let word = before.and_then(|b| b.split_whitespace().last());
    word.and_then(|w| w.parse().ok()).unwrap_or(0.0)
}
