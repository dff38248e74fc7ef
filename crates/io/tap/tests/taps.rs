//! Taps and tuns in separate namespaces, connected by Volley.

use std::time::Duration;
use volley_linux::testbed::{Daemon, Testbed, datagrams};
use volley_model::{InterfaceSpec, Mac, Request};
use volley_object::Object;
use volley_tap::model::{TapInterface, TapMode};

fn daemon() -> Daemon {
    Daemon::new(8192, None, |registry| {
        volley_l2::register(registry)?;
        volley_tap::register(registry)
    })
}

fn spec(bed: &Testbed, at: usize) -> TapInterface {
    TapInterface {
        host: Some("e".into()),
        namespace: Some(bed.name(at).into()),
        // A fixed address: after the tap is created again, its neighbour's cache entry stays valid.
        host_mac: Some(Mac([2, 0, 0, 0, 0, at as u8 + 1])),
        host_addresses: vec![format!("10.0.0.{}/24", at + 1).parse().unwrap()],
        ..TapInterface::default()
    }
}

/// Namespaces 0 and 1, each with `e` (10.0.0.1 and 10.0.0.2), connected by `a` and `b`.
fn joined(bed: &Testbed, mtu: u32, change: impl Fn(&mut TapInterface)) -> Daemon {
    let mut daemon = daemon();
    for (at, name) in ["a", "b"].into_iter().enumerate() {
        let mut tap = spec(bed, at);
        change(&mut tap);
        daemon.create(name, tap.instance().unwrap(), Some(mtu));
    }
    daemon.patch("a", "b");
    daemon.until("link", |d| {
        d.link_fault("a").is_none() && d.link_fault("b").is_none()
    });
    daemon
}

fn exchange(bed: &Testbed, largest: usize) {
    assert!(bed.pings_soon(0, "10.0.0.2", 56));
    assert!(bed.pings_soon(1, "10.0.0.1", largest));
    let wait = Duration::from_secs(2);
    let (a, b) = (bed.udp(0, "10.0.0.1", wait), bed.udp(1, "10.0.0.2", wait));
    datagrams(&a, &b, (18..largest).step_by(61));
    datagrams(
        &b,
        &a,
        [18, 1472, 2006, 2007, 4054, 4055, largest]
            .into_iter()
            .filter(|n| *n <= largest),
    );
}

#[test]
fn two_namespaces_ping_and_exchange_datagrams_of_all_sizes() {
    let Some(bed) = Testbed::new(2, &["ping"]) else {
        return;
    };
    let daemon = joined(&bed, 9000, |_| {});
    exchange(&bed, 8972);
    let counts = daemon.counts("a");
    assert_eq!((counts.rx_errors, counts.tx_errors), (0, 0));
    daemon.stop();
}

#[test]
fn without_offload_and_with_several_queues() {
    let Some(bed) = Testbed::new(2, &["ping"]) else {
        return;
    };
    let daemon = joined(&bed, 1500, |tap| {
        tap.offload = false;
        tap.queues = 4;
    });
    for _ in 0..4 {
        exchange(&bed, 1472);
    }
    daemon.stop();
}

#[test]
fn tuns_carry_ip() {
    let Some(bed) = Testbed::new(2, &["ping"]) else {
        return;
    };
    let daemon = joined(&bed, 1500, |tap| tap.mode = TapMode::Tun);
    exchange(&bed, 1472);
    daemon.stop();
}

fn stream(bed: &Testbed) {
    let _server = bed.start(1, 12, "iperf3 -s -1");
    std::thread::sleep(Duration::from_millis(300));
    let out = bed.exec(0, 10, "iperf3 -c 10.0.0.2 -t 2 -f g");
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success(), "{text}");
    println!("{text}");
}

#[test]
fn tcp_with_offloads_on() {
    let Some(bed) = Testbed::new(2, &["iperf3"]) else {
        return;
    };
    for mode in [TapMode::Tap, TapMode::Tun] {
        let daemon = joined(&bed, 1500, |tap| tap.mode = mode);
        stream(&bed);
        let counts = daemon.counts("a");
        assert!(
            counts.rx_bytes / counts.rx_packets.max(1) > 3000,
            "no super-segments came: {counts:?}"
        );
        daemon.stop();
    }
}

#[test]
fn it_comes_and_goes_under_traffic_and_leaves_nothing_behind() {
    let Some(bed) = Testbed::new(2, &["ping"]) else {
        return;
    };
    let mut daemon = joined(&bed, 1500, |_| {});
    for _ in 0..10 {
        let flood = bed.start(1, 20, "ping -q -i 0.001 10.0.0.1");
        daemon.must(Request::InterfaceDelete { name: "a".into() });
        assert!(
            !bed.ip(0, "-o link").contains(" e:"),
            "the kernel's end is gone at once"
        );
        daemon.create("a", spec(&bed, 0).instance().unwrap(), None);
        daemon.patch("a", "b");
        drop(flood);
    }
    // The kernel reports the carrier a little later than the interface.
    daemon.until("a has a link", |d| d.link_fault("a").is_none());
    assert!(bed.pings_soon(1, "10.0.0.1", 56));
    daemon.must(Request::InterfaceDelete { name: "a".into() });
    daemon.must(Request::InterfaceDelete { name: "b".into() });
    assert!(!bed.ip(0, "-o link").contains(" e:") && !bed.ip(1, "-o link").contains(" e:"));
    daemon.stop();
}

#[test]
fn the_kernels_end_goes_down_and_vanishes() {
    let Some(bed) = Testbed::new(2, &["ping"]) else {
        return;
    };
    let mut daemon = joined(&bed, 1500, |_| {});
    let flood = bed.start(1, 20, "ping -q -i 0.001 10.0.0.1");
    bed.ip(0, "link set e down");
    daemon.until("down", |d| {
        d.link_fault("a").is_some_and(|w| w.contains("e is down"))
    });
    bed.ip(0, "link set e up");
    daemon.until("up", |d| d.link_fault("a").is_none());
    assert!(
        bed.pings_soon(1, "10.0.0.1", 56),
        "it goes on after it was down"
    );
    bed.ip(0, "link del e");
    daemon.until("gone", |d| {
        d.link_fault("a").is_some_and(|w| w.contains("gone"))
    });
    std::thread::sleep(Duration::from_millis(100));
    daemon.must(Request::InterfaceDelete { name: "a".into() });
    drop(flood);
    daemon.stop();
}

#[test]
fn what_cannot_be_is_refused_in_a_sentence() {
    let Some(bed) = Testbed::new(1, &[]) else {
        return;
    };
    let mut daemon = daemon();
    let mut refused = |name: &str, change: &dyn Fn(&mut TapInterface), part: &str| {
        let mut tap = TapInterface {
            name: name.into(),
            ..spec(&bed, 0)
        };
        change(&mut tap);
        let error = match InterfaceSpec::of(&tap) {
            Err(error) => error.to_string(),
            Ok(spec) => {
                let refused = daemon.ask(Request::InterfaceCreate(spec));
                refused.unwrap_err().to_string()
            }
        };
        assert!(error.contains(part), "{error}");
    };
    refused(
        "x",
        &|t| t.host = Some("lo".into()),
        "has an interface lo in namespace",
    );
    refused(
        "a-name-that-is-too-long",
        &|t| t.host = None,
        "1 to 15 characters",
    );
    refused(
        "x",
        &|t| t.namespace = Some("nowhere".into()),
        "cannot be entered",
    );
    refused("x", &|t| t.host_mtu = Some(65_535), "MTU");
    assert!(
        !bed.ip(0, "-o link").contains(" e"),
        "nothing half-made stays"
    );
    daemon.stop();
}
