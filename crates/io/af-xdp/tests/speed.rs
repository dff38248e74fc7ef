//! How fast interfaces of the kernel are, against the Linux bridge in the same run. Not a test that asserts speed: run it
//! by `cargo test --release -p volley-af-xdp --test speed -- --ignored --nocapture`.
//!
//! Namespace 0 sends frames as fast as it can (a packet generator of ours over a packet socket, pinned to core 0),
//! namespace 1 counts what arrives. Between them is either the bridge, or Volley pinned to core 1.
//!
//! Two rates are told. *Seen*: packets per second of wall clock, which depends on what else the machine does. *By CPU*:
//! packets per second of processor time of the busier of the two threads (the bridge runs in the sender's), which is the
//! rate on two idle cores.

use std::time::{Duration, Instant};
use volley_cli::{Action, parse_line};
use volley_linux::testbed::{Daemon, Testbed, must};
use volley_model::{InterfaceKind, PacketSpec, TapSpec, XdpMode, XdpSpec};

const ROUNDS: usize = 3;
const ROUND: Duration = Duration::from_millis(700);

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

fn kind(between: Between, host: &str, bed: &Testbed, at: usize) -> InterfaceKind {
    let host = host.to_owned();
    let xdp = |mode| {
        InterfaceKind::AfXdp(XdpSpec {
            host: host.clone(),
            mode,
            queues: Some(1),
            ..XdpSpec::default()
        })
    };
    match between {
        Between::AfPacket | Between::Bridge => InterfaceKind::HostInterface(PacketSpec {
            host,
            ..PacketSpec::default()
        }),
        Between::Tap => InterfaceKind::Tap(TapSpec {
            host: Some("e".into()),
            namespace: Some(bed.name(at).into()),
            ..TapSpec::default()
        }),
        Between::XdpNative => xdp(XdpMode::Native),
        Between::XdpGeneric => xdp(XdpMode::Generic),
    }
}

/// Two namespaces, and what is between them; none is the bridge.
fn setup(between: Between) -> Option<(Testbed, Option<Daemon>)> {
    let bed = Testbed::new(2, &["iperf3"])?;
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

/// Seconds of processor time that each worker's thread in this process has had, interrupts served in it included.
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

/// Packets that arrive, by second of wall clock and by second of the busier thread.
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
        InterfaceKind::HostInterface(PacketSpec {
            host: "e".into(),
            namespace: Some(bed.name(0).into()),
            ring: 64,
            ..PacketSpec::default()
        }),
        None,
    );
    source.must(volley_model::Request::L2PatchAdd {
        rx: "pg0".into(),
        tx: "e".into(),
    });
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

/// Gigabits per second of one TCP stream.
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
