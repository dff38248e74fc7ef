//! Everything at once: traffic, commits and rollbacks, memif and vhost-user peers that come, shrink their memory and go, floods
//! of fragments, scans and expired packets, API clients. No packet of the traffic is lost outside named drops, every request is
//! answered in time, and the memory of the daemon stays flat.
//!
//! Runs for 10 seconds, or for `VOLLEY_SOAK_SECONDS`. `cargo xtask show hostile --long --only soak` runs it for two hours. It
//! takes about half of one core, so that a long run leaves the machine to other work; with `VOLLEY_SOAK_LOAD=full` it takes more
//! than one.

mod support;

use serde_json::{Value, json};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use support::fragments::part;
use support::http::Http;
use support::kept::Kept;
use support::oracle;
use support::peers::{Guest, Slave};
use volley_pcap::Packet;

/// The traffic goes from `rx` to `tx`; the floods come by `fl`.
const CONFIG: &str = r#"
[[interface]]
name = "rx"
kind = "pg"
mac = "02:fe:00:00:00:01"
addresses = ["192.0.2.1/24"]
[[interface]]
name = "tx"
kind = "pg"
addresses = ["198.51.100.1/24"]
[[interface]]
name = "fl"
kind = "pg"
mac = "02:fe:00:00:00:00"
addresses = ["10.0.0.1/8"]
[[neighbor]]
interface = "tx"
address = "198.51.100.2"
mac = "02:fe:00:00:00:02"
[[route]]
prefix = "99.0.0.0/8"
via = "198.51.100.2"
interface = "tx"
"#;

/// How much of everything happens.
#[derive(Clone, Copy)]
struct Load {
    /// Packets of the traffic, and of the floods, a second.
    rate: u32,
    flood: u32,
    /// The pauses of commits, peers and clients are so many times as long.
    pause: u32,
    /// Whether the worker sleeps between packets.
    sleeps: bool,
}

const HALF: Load = Load {
    rate: 4_000,
    flood: 2_000,
    pause: 2,
    sleeps: true,
};
const FULL: Load = Load {
    rate: 10_000,
    flood: 3_000,
    pause: 1,
    sleeps: false,
};

fn load() -> Load {
    match std::env::var("VOLLEY_SOAK_LOAD").as_deref() {
        Ok("full") => FULL,
        Ok("half") | Err(_) => HALF,
        Ok(other) => panic!("VOLLEY_SOAK_LOAD is {other}: give half or full"),
    }
}

fn pause(ms: u64) {
    std::thread::sleep(Duration::from_millis(ms) * load().pause);
}

/// Longest time of an answer of the HTTP interface, with other programs on the machine.
const ANSWER: Duration = Duration::from_secs(5);
/// The part of the time after which memory must not grow any more, in percent.
const WARM_UP: u64 = 25;
/// Most growth of private memory by the line of least squares, from the end of the warm-up on, in KiB.
const GROWTH_KIB: f64 = 8192.0;
/// Runs that are shorter are not judged by their memory.
const JUDGED: Duration = Duration::from_secs(600);
/// Bytes of the memory of a peer.
const SHARED: u64 = 4 << 20;

/// What the parts have done.
#[derive(Default, Debug)]
struct Done {
    commits: AtomicU64,
    rollbacks: AtomicU64,
    guests: AtomicU64,
    slaves: AtomicU64,
    answers: AtomicU64,
    /// The longest time of an answer, in microseconds.
    longest_us: AtomicU64,
}

fn seconds() -> u64 {
    let asked = std::env::var("VOLLEY_SOAK_SECONDS").ok();
    asked.map_or(10, |text| text.parse().unwrap())
}

/// An IPv4 packet from 10.0.0.2 to an address.
fn to(address: [u8; 4], ttl: u8) -> Vec<u8> {
    let mut packet = part(7, (17, address), &[7; 32], 0, false);
    packet[22] = ttl;
    packet[24..26].fill(0);
    let sum = volley_wire::checksum::checksum(&packet[14..34]);
    packet[24..26].copy_from_slice(&sum.to_be_bytes());
    packet
}

/// Fragments of separate datagrams for the router and for an unused address, a scan, expired packets, packets without a route.
fn flood() -> Vec<Vec<u8>> {
    let each = |n: u16| {
        let [high, low] = n.to_be_bytes();
        [
            part(n, (17, [10, 0, 0, 1]), &[1; 64], 0, true),
            part(n, (17, [10, 8, 0, 1]), &[1; 64], 32, false),
            to([10, 9, high, low], 64),
            to([99, 1, high, low], 1),
            to([203, 0, 113, low], 64),
        ]
    };
    (0..4000).flat_map(each).collect()
}

/// Starts the daemon with traffic, floods and interfaces for peers; returns two versions of its configuration.
fn start(it: &mut Kept) -> [String; 2] {
    let base = it.file("base.toml", CONFIG);
    it.start(&["-c", &base]);
    let file = it.folder.file("flood.pcap");
    let packet = |data| Packet::ethernet(0, data);
    oracle::write(&file, &flood().into_iter().map(packet).collect::<Vec<_>>());
    let [vhost, memif] = ["v", "m"].map(|name| it.folder.file(name).display().to_string());
    let Load {
        rate,
        flood,
        sleeps,
        ..
    } = load();
    let mode = if sleeps { "interrupt" } else { "adaptive" };
    for line in [
        format!("create vhost-user socket {vhost} server name v0"),
        format!("create memif socket id 1 filename {memif}"),
        "create interface memif id 0 socket-id 1 master name m0".into(),
        "set interface state v0 up".into(),
        "set interface state m0 up".into(),
        format!(
            "packet-generator new name s interface rx rate {rate} template {{ eth dst 02:fe:00:00:00:01 / \
             ip4 src 192.0.2.9 dst 99.0.0.1 / udp / payload 20 }}"
        ),
        format!(
            "packet-generator new name f interface fl rate {flood} pcap {}",
            file.display()
        ),
        "packet-generator enable".into(),
    ] {
        it.ctl(&line);
    }
    for name in ["rx", "fl", "v0", "m0"] {
        it.ctl(&format!("set interface rx-mode {name} {mode}"));
    }
    let one = it.config(&["show"]).unwrap();
    let route = |n: u32| format!("[[route]]\nprefix = \"20.{n}.0.0/16\"\naction = \"drop\"\n");
    let two = one.clone() + &(0..200).map(route).collect::<String>();
    [it.file("one.toml", &one), it.file("two.toml", &two)]
}

/// Commits of either version, and rollbacks.
fn commit(it: &Kept, versions: &[String; 2], end: Instant, done: &Done) {
    for n in 1.. {
        if Instant::now() > end {
            return;
        }
        it.config(&["commit", &versions[n % 2]]).unwrap();
        done.commits.fetch_add(1, Relaxed);
        if n % 3 == 0 {
            let before = done.commits.load(Relaxed) + done.rollbacks.load(Relaxed);
            it.config(&["rollback", &(before - 1).to_string()]).unwrap();
            done.rollbacks.fetch_add(1, Relaxed);
        }
        pause(100);
    }
}

/// Peers that exchange packets, shrink their memory now and then, and go.
fn peers(it: &Kept, end: Instant, done: &Done) {
    let [vhost, memif] = ["v", "m"].map(|name| it.folder.file(name));
    for n in 0u64.. {
        if Instant::now() > end {
            return;
        }
        let mut guest = Guest::new(&vhost, SHARED);
        guest.offer();
        done.guests
            .fetch_add(u64::from(guest.send_pages(0)), Relaxed);
        let mut slave = Slave::new(&memif, 0, SHARED);
        slave.offer();
        done.slaves
            .fetch_add(u64::from(slave.send_pages(0)), Relaxed);
        if n.is_multiple_of(4) {
            rustix::fs::ftruncate(&guest.file, 4096).unwrap();
            rustix::fs::ftruncate(&slave.file, 4096).unwrap();
        }
        pause(50);
    }
}

/// A client of the HTTP interface: questions, changes, and nonsense.
fn ask(socket: &Path, client: u64, end: Instant, done: &Done) {
    let mut http = Http::connect(socket);
    for n in 0u64.. {
        if Instant::now() > end {
            return;
        }
        let prefix = format!("77.{client}.{}.0/24", n % 200);
        let add = json!({"route-add": {"prefix": prefix, "paths": [{"target": "drop"}]}});
        let gone = json!({"routes": {"family": "ip4", "gone": [prefix]}});
        let start = Instant::now();
        let (status, body) = match n % 6 {
            0 => http.call("GET", "/v1/show/interfaces", b""),
            1 => http.call("GET", "/v1/show/fib?family=ip4&summary=on", b""),
            2 => http.call("GET", "/v1/show/drops", b""),
            3 => http.call("POST", "/v1/transactions", &body_of(&add)),
            4 => http.call("POST", "/v1/transactions", &body_of(&gone)),
            _ => http.call("POST", "/v1/transactions", b"[{\"nonsense\": 1}]"),
        };
        let took = start.elapsed();
        let text = String::from_utf8_lossy(&body).into_owned();
        assert!(status < 500, "{status}: {text}");
        assert!(took < ANSWER, "an answer took {took:?}: {text}");
        done.answers.fetch_add(1, Relaxed);
        done.longest_us.fetch_max(took.as_micros() as u64, Relaxed);
        if n.is_multiple_of(50) {
            // Clients that come and say nothing.
            let idle: Vec<Http> = (0..5).map(|_| Http::connect(socket)).collect();
            std::thread::sleep(Duration::from_millis(20));
            drop(idle);
            http = Http::connect(socket);
        }
        pause(5);
    }
}

fn body_of(request: &Value) -> Vec<u8> {
    serde_json::to_vec(&[request]).unwrap()
}

/// Private memory of a process, in KiB: the memory of peers is not part of it.
fn private_kib(pid: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|l| l.starts_with("RssAnon:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Processor time of a process since its start, in seconds.
fn cpu_s(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    // Fields 14 and 15 of the line, in ticks of 10 ms; the name of the process is the second.
    let ticks = fields.split(' ').skip(11).take(2);
    ticks.map(|it| it.parse::<f64>().unwrap()).sum::<f64>() / 100.0
}

/// Samples of the private memory until the end, as seconds and KiB.
fn watch(pid: u32, end: Instant) -> Vec<(f64, f64)> {
    let start = Instant::now();
    let mut samples = Vec::new();
    while Instant::now() < end {
        samples.push((start.elapsed().as_secs_f64(), private_kib(pid)));
        std::thread::sleep(Duration::from_millis(250));
    }
    samples
}

/// The growth over the samples by the line of least squares.
fn growth(samples: &[(f64, f64)]) -> f64 {
    let count = samples.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| samples.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|it| it.0), mean(|it| it.1));
    let both: f64 = samples.iter().map(|it| (it.0 - x) * (it.1 - y)).sum();
    let square: f64 = samples.iter().map(|it| (it.0 - x).powi(2)).sum();
    let span = samples[samples.len() - 1].0 - samples[0].0;
    both / square * span
}

#[test]
fn growth_is_that_of_the_line() {
    let line: Vec<(f64, f64)> = (0..5)
        .map(|n| (f64::from(n), 100.0 + 3.0 * f64::from(n)))
        .collect();
    assert!((growth(&line) - 12.0).abs() < 1e-9);
    let flat = [(0.0, 5.0), (1.0, 9.0), (2.0, 5.0)];
    assert!(growth(&flat).abs() < 1e-9);
}

/// Packets that `rx` received, that it dropped by name, and that `tx` sent.
fn counted(it: &Kept) -> [u64; 3] {
    let shown: Value = serde_json::from_str(&it.ctl("show interfaces json")).unwrap();
    let rows = shown["interfaces"].as_array().unwrap();
    let of = |name: &str| rows.iter().find(|row| row["name"] == name).unwrap();
    let number = |value: &Value| value.as_u64().unwrap();
    [
        number(&of("rx")["rx"]["packets"]),
        number(&of("rx")["drops"]),
        number(&of("tx")["tx"]["packets"]),
    ]
}

#[test]
fn nothing_is_lost_and_memory_is_flat_under_everything_at_once() {
    if oracle::python().is_none() {
        return;
    }
    let mut it = Kept::new();
    let versions = start(&mut it);
    let (it, done) = (&it, Done::default());
    let pid = it.child.as_ref().unwrap().id();
    let span = Duration::from_secs(seconds());
    let end = Instant::now() + span;
    let http = it.folder.file("s.http.sock");
    let samples = std::thread::scope(|scope| {
        scope.spawn(|| commit(it, &versions, end, &done));
        scope.spawn(|| peers(it, end, &done));
        for client in 0..4 {
            let (http, done) = (&http, &done);
            scope.spawn(move || ask(http, client, end, done));
        }
        watch(pid, end)
    });
    let cores = cpu_s(pid) / span.as_secs_f64();
    it.ctl("packet-generator disable");
    std::thread::sleep(Duration::from_millis(500));
    let [received, dropped, sent] = counted(it);
    let warm = samples.len() * WARM_UP as usize / 100;
    let more = growth(&samples[warm..]);
    println!(
        "{} s: {received} packets in, {sent} out, {dropped} dropped by name; memory grew by {more:.0} KiB to {:.0}, at most {GROWTH_KIB}; \
         the daemon took {cores:.2} cores; {done:?}",
        span.as_secs(),
        samples[samples.len() - 1].1,
    );
    assert!(
        received > u64::from(load().rate) * seconds() / 20,
        "{received} packets"
    );
    assert_eq!(received, sent + dropped, "lost: {}", it.ctl("show drops"));
    // In a short run the growth is that of caches and of the allocator, which fill.
    if span >= JUDGED {
        assert!(more < GROWTH_KIB, "memory grew by {more:.0} KiB");
    }
    for count in [
        &done.commits,
        &done.rollbacks,
        &done.guests,
        &done.slaves,
        &done.answers,
    ] {
        assert!(count.load(Relaxed) > 0, "{done:?}");
    }
}
