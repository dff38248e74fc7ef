//! Interfaces of different kinds connected: offload work (checksums, super-segments) that one side leaves open and the
//! other does not support is done in software.

use std::time::Duration;
use volley_af_packet::model::HostInterface;
use volley_af_xdp::model::XdpInterface;
use volley_linux::testbed::{Daemon, Testbed, datagrams};
use volley_object::{Instance, Object};
use volley_tap::model::TapInterface;

fn end(bed: &Testbed, at: usize, kind: &str) -> Instance {
    let host = || bed.veth(at, "e", "");
    match kind {
        "tap" => TapInterface {
            host: Some("e".into()),
            namespace: Some(bed.name(at).into()),
            ..TapInterface::default()
        }
        .instance()
        .unwrap(),
        "packet" => HostInterface {
            host: host(),
            ..HostInterface::default()
        }
        .instance()
        .unwrap(),
        _ => XdpInterface {
            host: host(),
            ..XdpInterface::default()
        }
        .instance()
        .unwrap(),
    }
}

#[test]
fn every_kind_with_every_other() {
    for (left, right) in [("tap", "xdp"), ("packet", "xdp"), ("tap", "packet")] {
        let Some(bed) = Testbed::new(2, &["ping", "iperf3"]) else {
            return;
        };
        let mut daemon = Daemon::new(8192, None, |registry| {
            volley_l2::register(registry)?;
            volley_tap::register(registry)?;
            volley_af_packet::register(registry)?;
            volley_af_xdp::register(registry)
        });
        for (at, (name, kind)) in [("a", left), ("b", right)].into_iter().enumerate() {
            daemon.create(name, end(&bed, at, kind), None);
            bed.ip(at, &format!("addr add 10.0.0.{}/24 dev e", at + 1));
        }
        daemon.patch("a", "b");
        daemon.until("link", |d| {
            d.link_fault("a").is_none() && d.link_fault("b").is_none()
        });
        assert!(bed.pings_soon(0, "10.0.0.2", 1472), "{left} {right}");
        let wait = Duration::from_secs(2);
        let (a, b) = (bed.udp(0, "10.0.0.1", wait), bed.udp(1, "10.0.0.2", wait));
        datagrams(&a, &b, (18..1472).step_by(97));
        datagrams(&b, &a, (18..1472).step_by(97));
        for direction in ["", " -R"] {
            let _server = bed.start(1, 12, "iperf3 -s -1");
            std::thread::sleep(Duration::from_millis(300));
            let out = bed.exec(0, 10, &format!("iperf3 -c 10.0.0.2 -t 1 -f m{direction}"));
            let text = String::from_utf8_lossy(&out.stdout).into_owned();
            let line = text.lines().find(|l| l.contains("receiver")).unwrap_or("");
            println!("{left} {right}{direction}: {line}");
            let words: Vec<&str> = line.split_whitespace().collect();
            let at = words
                .iter()
                .position(|w| *w == "Mbits/sec")
                .unwrap_or_default();
            let rate: f64 = words
                .get(at.wrapping_sub(1))
                .and_then(|w| w.parse().ok())
                .unwrap_or(0.0);
            assert!(
                out.status.success() && rate > 20.0,
                "{left} {right}{direction}: {text}"
            );
        }
        daemon.stop();
    }
}
