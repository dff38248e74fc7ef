//! Rates of interfaces of the kernel, compared with the Linux bridge in the same run. No speed is asserted: run it by
//! `cargo test --release -p volley-af-xdp --test speed -- --ignored --nocapture --test-threads=1`.
//!
//! Namespace 0 sends frames as fast as it can (a packet generator over a packet socket, pinned to core 0), namespace 1
//! counts received frames. Between them is either the bridge, or Volley pinned to core 1.
//!
//! Two rates are reported. *Seen*: packets per second of wall-clock time, which depends on the other load of the machine.
//! *By CPU*: packets per second of processor time of the busier of the two threads (the bridge runs in the sender's),
//! which is the rate on two idle cores.
//!
//! The sender's packet socket is slower than either way of receiving, so this measurement cannot show the savings of XDP
//! sockets. In a second measurement the kernel generates raw XDP frames on core 0 (no socket, no skb; GRO is on, so that
//! a veth without a program accepts them too). It reports the cost of AF_PACKET and AF_XDP for Volley's worker: the
//! cycles of all its nodes per packet, including their system calls and interrupts, as the packets that one core can
//! receive in a second. Slices of 20 ms are measured and the lower quartile is reported, because the machine is shared.
//! *Received* packets are dropped; *forwarded* ones leave by the second interface, for which the kernel allocates an skb
//! either way.

use std::time::{Duration, Instant};
use volley_af_packet::model::HostInterface;
use volley_af_xdp::model::{XdpInterface, XdpMode};
use volley_cli::{Action, parse_line};
use volley_linux::testbed::{Daemon, Testbed, must};
use volley_object::{Instance, Object};
use volley_tap::model::TapInterface;

const ROUNDS: usize = 3;
const ROUND: Duration = Duration::from_millis(700);
const SLICES: usize = 60;
const SLICE: Duration = Duration::from_millis(20);

#[derive(Clone, Copy, PartialEq, Debug)]
enum Between {
    Bridge,
    AfPacket,
    Tap,
    XdpNative,
    XdpGeneric,
}

const ALL: [Between; 5] = [
    Between::Bridge,
    Between::AfPacket,
    Between::Tap,
    Between::XdpNative,
    Between::XdpGeneric,
];

fn ask(daemon: &mut Daemon, line: &str) {
    match parse_line(line)
        .unwrap_or_else(|e| panic!("{line}: {e}"))
        .action
    {
        Action::Request(request) => daemon.must(*request),
        other => panic!("{line}: {other:?}"),
    }
}

/// Packets that an interface in a namespace has received.
fn received(bed: &Testbed, at: usize) -> u64 {
    let text = bed.exec(at, 5, "cat /proc/net/dev").stdout;
    let text = String::from_utf8_lossy(&text).into_owned();
    let line = text
        .lines()
        .find(|l| l.trim_start().starts_with("e:"))
        .unwrap();
    line.split_whitespace().nth(2).unwrap().parse().unwrap()
}

fn kind(between: Between, host: &str, bed: &Testbed, at: usize) -> Instance {
    let host = host.to_owned();
    let xdp = |mode| {
        XdpInterface {
            host: host.clone(),
            mode,
            queues: Some(1),
            ..XdpInterface::default()
        }
        .instance()
        .unwrap()
    };
    match between {
        Between::AfPacket | Between::Bridge => HostInterface {
            host,
            ..HostInterface::default()
        }
        .instance()
        .unwrap(),
        Between::Tap => TapInterface {
            host: Some("e".into()),
            namespace: Some(bed.name(at).into()),
            ..TapInterface::default()
        }
        .instance()
        .unwrap(),
        Between::XdpNative => xdp(XdpMode::Native),
        Between::XdpGeneric => xdp(XdpMode::Generic),
    }
}

/// Two namespaces, connected by `between`.
fn setup(between: Between) -> Option<(Testbed, Option<Daemon>)> {
    let bed = Testbed::new(2, &["iperf3", "ethtool"])?;
    let mut daemon = (between != Between::Bridge).then(|| {
        Daemon::new(16_384, Some(1), |registry| {
            volley_l2::register(registry)?;
            volley_tap::register(registry)?;
            volley_af_packet::register(registry)?;
            volley_af_xdp::register(registry)
        })
    });
    let bridge = format!("vb{}", std::process::id() % 100_000);
    if daemon.is_none() {
        must(5, "ip", &["link", "add", &bridge, "type", "bridge"]);
        must(5, "ip", &["link", "set", &bridge, "up"]);
    }
    for (at, name) in ["a", "b"].into_iter().enumerate() {
        let host = match between {
            Between::Tap => String::new(),
            _ => bed.veth(at, "e", ""),
        };
        match &mut daemon {
            None => drop(must(5, "ip", &["link", "set", &host, "master", &bridge])),
            Some(daemon) => daemon.create(name, kind(between, &host, &bed, at), None),
        }
        bed.ip(at, &format!("addr add 10.0.0.{}/24 dev e", at + 1));
    }
    if let Some(daemon) = &mut daemon {
        daemon.patch("a", "b");
        daemon.until("link", |d| {
            d.link_fault("a").is_none() && d.link_fault("b").is_none()
        });
    }
    Some((bed, daemon))
}

fn unbridge() {
    let bridge = format!("vb{}", std::process::id() % 100_000);
    let _ = volley_linux::testbed::run(5, "ip", &["link", "del", &bridge]);
}

/// Processor time in seconds of each worker's thread in this process, including interrupts served in it.
fn worker_seconds() -> Vec<(u64, f64)> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let seconds = |path: std::path::PathBuf| {
        let name = std::fs::read_to_string(path.join("comm")).ok()?;
        let stat = std::fs::read_to_string(path.join("schedstat")).ok()?;
        let nanoseconds: f64 = stat.split(' ').next()?.parse().ok()?;
        let id = path.file_name()?.to_str()?.parse().ok()?;
        name.starts_with("volley-w")
            .then_some((id, nanoseconds / 1e9))
    };
    let mut all: Vec<(u64, f64)> = tasks.filter_map(|t| seconds(t.path())).collect();
    all.sort_unstable_by_key(|(id, _)| *id);
    all
}

/// Packets that arrive, per second of wall-clock time and per second of the busier thread.
fn packets(bed: &Testbed, size: usize) -> [f64; 2] {
    let mut source = Daemon::new(8192, Some(0), |registry| {
        volley_l2::register(registry)?;
        volley_af_packet::register(registry)?;
        volley_pg::register(registry).map(drop)
    });
    ask(&mut source, "create packet-generator interface pg0");
    ask(&mut source, "set interface state pg0 up");
    source.create(
        "e",
        HostInterface {
            host: "e".into(),
            namespace: Some(bed.name(0).into()),
            ring: 64,
            ..HostInterface::default()
        }
        .instance()
        .unwrap(),
        None,
    );
    source.patch_one_way("pg0", "e");
    ask(
        &mut source,
        &format!(
            "packet-generator new name s interface pg0 size {size} template {{ eth src 02:00:00:00:00:01 dst 02:00:00:00:00:99 \
             / ip4 src 10.0.0.1 dst 10.0.0.2 / udp sport 1000 dport 9 / payload 18 }}"
        ),
    );
    ask(&mut source, "packet-generator enable s");
    std::thread::sleep(Duration::from_millis(200));
    let (start, before, worked) = (Instant::now(), received(bed, 1), worker_seconds());
    std::thread::sleep(ROUND);
    let (after, span, now) = (received(bed, 1), start.elapsed(), worker_seconds());
    let busiest = now
        .iter()
        .zip(&worked)
        .map(|((_, now), (_, then))| now - then);
    let busiest = busiest.fold(1e-9, f64::max);
    ask(&mut source, "packet-generator disable s");
    ask(&mut source, "packet-generator delete s");
    std::thread::sleep(Duration::from_millis(50));
    source.stop();
    let arrived = (after - before) as f64 / 1e6;
    [arrived / span.as_secs_f64(), arrived / busiest]
}

/// Rate of one TCP stream in Gbit/s.
fn stream(bed: &Testbed) -> f64 {
    let _server = bed.start(1, 12, "iperf3 -s -1");
    std::thread::sleep(Duration::from_millis(300));
    let out = bed.exec(0, 10, "iperf3 -c 10.0.0.2 -t 1 -f m");
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let line = text.lines().find(|l| l.contains("receiver")).unwrap_or("");
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = words.iter().position(|w| *w == "Mbits/sec").unwrap_or(1);
    words
        .get(at - 1)
        .and_then(|w| w.parse::<f64>().ok())
        .unwrap_or(0.0)
        / 1000.0
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

#[test]
#[ignore = "a measurement: it takes a minute and two cores"]
fn against_the_linux_bridge() {
    let mut results: Vec<[Vec<f64>; 5]> = ALL.iter().map(|_| Default::default()).collect();
    for _ in 0..ROUNDS {
        for (at, between) in ALL.into_iter().enumerate() {
            let Some((bed, daemon)) = setup(between) else {
                return;
            };
            let (small, large) = (packets(&bed, 64), packets(&bed, 1500));
            let figures = [small[0], small[1], large[0], large[1], stream(&bed)];
            results[at]
                .iter_mut()
                .zip(figures)
                .for_each(|(all, one)| all.push(one));
            match daemon {
                Some(daemon) => daemon.stop(),
                None => unbridge(),
            }
        }
    }
    let medians: Vec<[f64; 5]> = results.into_iter().map(|r| r.map(median)).collect();
    let titles = [
        "64 B seen",
        "64 B by CPU",
        "1500 B seen",
        "1500 B by CPU",
        "TCP Gbit/s",
    ];
    println!(
        "{:<12} {}",
        "Mpps",
        titles.map(|t| format!("{t:>18}")).join(" ")
    );
    for (between, row) in ALL.iter().zip(&medians) {
        let cells = row.iter().zip(medians[0]);
        let cells: Vec<String> = cells
            .map(|(v, bridge)| format!("{v:>10.3} ({:>4.2}x)", v / bridge))
            .collect();
        println!("{:<12} {}", format!("{between:?}"), cells.join(" "));
    }
    let ratio = |at: usize| medians[3][at] / medians[1][at];
    println!(
        "AF_XDP native / AF_PACKET at 64 B: {:.2}x seen, {:.2}x by CPU",
        ratio(0),
        ratio(1)
    );
}

/// An Ethernet frame of 64 bytes with an IPv4 header whose checksum is correct.
fn frame() -> Vec<u8> {
    let mut frame = vec![0; 64];
    frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 0x99, 2, 0, 0, 0, 0, 1, 8, 0]);
    let header = [
        0x45, 0, 0, 50, 0, 0, 0, 0, 64, 17, 0x66, 0xb9, 10, 0, 0, 1, 10, 0, 0, 2,
    ];
    frame[14..34].copy_from_slice(&header);
    frame[34..42].copy_from_slice(&[3, 232, 0, 9, 0, 30, 0, 0]);
    frame
}

/// Cycles used by the worker's nodes, and packets received by `a`.
fn spent(daemon: &Daemon) -> (u64, u64) {
    let nodes = daemon.registry.engine.borrow().runtime(0);
    let clocks = nodes.iter().map(|node| node.clocks).sum();
    (clocks, daemon.counts("a").rx_packets)
}

/// Cycles of the worker per packet that the kernel generates; `None` if the test bed cannot be created.
fn cost(between: Between, is_forwarding: bool) -> Option<f64> {
    let (bed, daemon) = setup(between)?;
    let mut daemon = daemon?;
    if !is_forwarding {
        for (rx, tx) in [("a", "b"), ("b", "a")] {
            let (rx, tx) = (rx.into(), tx.into());
            let patch = volley_l2::model::L2Patch { rx, tx };
            daemon.must(volley_model::Request::unset(&patch).unwrap());
        }
    }
    let all = must(5, "ip", &["-o", "link", "show", "type", "veth"]);
    let names = all.lines().filter_map(|line| line.split([' ', '@']).nth(1));
    for name in
        names.filter(|name| name.starts_with(&format!("v{}x", std::process::id() % 100_000)))
    {
        must(5, "ethtool", &["-K", name, "gro", "on"]);
    }
    let source = bed.live_frames(0, "e", 0, frame());
    std::thread::sleep(Duration::from_millis(200));
    let mut costs = Vec::new();
    let mut last = spent(&daemon);
    for _ in 0..SLICES {
        std::thread::sleep(SLICE);
        let now = spent(&daemon);
        let packets = now.1 - last.1;
        if packets >= 256 {
            costs.push((now.0 - last.0) as f64 / packets as f64);
        }
        last = now;
    }
    drop(source);
    daemon.stop();
    assert!(
        costs.len() > SLICES / 4,
        "packets arrived in {} slices",
        costs.len()
    );
    costs.sort_by(f64::total_cmp);
    Some(costs[costs.len() / 4])
}

#[test]
#[ignore = "a measurement: it takes a minute and two cores"]
fn xdp_against_packet_sockets() {
    const KINDS: [Between; 2] = [Between::AfPacket, Between::XdpNative];
    let mut costs: [[Vec<f64>; 2]; 2] = Default::default();
    for _ in 0..ROUNDS {
        for (at, between) in KINDS.into_iter().enumerate() {
            for (way, is_forwarding) in [false, true].into_iter().enumerate() {
                let Some(cost) = cost(between, is_forwarding) else {
                    return;
                };
                costs[at][way].push(cost);
            }
        }
    }
    let costs = costs.map(|kind| kind.map(median));
    let mpps =
        costs.map(|kind| kind.map(|cycles| volley_graph::cycles_per_second() / cycles / 1e6));
    println!("Mpps that a core could take   received  forwarded");
    for (at, between) in KINDS.into_iter().enumerate() {
        let ([received, forwarded], cycles) = (mpps[at], costs[at]);
        println!(
            "Live{between:?} {received:.3} {forwarded:.3} ({:.0} and {:.0} cycles a packet)",
            cycles[0], cycles[1]
        );
    }
    println!(
        "AF_XDP native / AF_PACKET: {:.2}x received, {:.2}x forwarded",
        mpps[1][0] / mpps[0][0],
        mpps[1][1] / mpps[0][1]
    );
}
