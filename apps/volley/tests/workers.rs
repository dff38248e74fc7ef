//! Several workers transmit the same packets as one worker, in order within each flow, with the same totals.
//!
//! The captures are those of the shared data; the oracle judges the result of one worker (`replay.rs`). Without them the tests
//! say so and pass.

mod support;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use support::replay::{self, BURST, CONFIG, Outcome, flow, flows, packets, shared};
use support::{Daemon, frames, oracle};
use volley_pcap::Packet;

/// The worker of a packet: one for each flow, by a hash of the flow's bytes.
fn worker_of(frame: &[u8], workers: usize) -> usize {
    let key = frame.get(14..).map(flow).unwrap_or_default();
    let mix = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    let hash = key.iter().fold(0x811c_9dc5, mix);
    (hash >> 8) as usize % workers
}

/// Sends a burst, each worker its share by a separate stream, and waits until every packet is in a capture.
fn burst(daemon: &mut Daemon, n: usize, burst: &[Packet], workers: usize, sent: usize) {
    let mut shares: BTreeMap<usize, Vec<Packet>> = BTreeMap::new();
    for packet in burst {
        let worker = worker_of(&packet.data, workers);
        shares.entry(worker).or_default().push(packet.clone());
    }
    for (worker, share) in &shares {
        let file = daemon.folder.file(&format!("burst{n}-{worker}.pcap"));
        oracle::write(&file, share);
        daemon.ok(&format!(
            "packet-generator new name b{worker} interface pg0 worker {worker} limit {} pcap {}",
            share.len(),
            file.display()
        ));
    }
    daemon.ok("packet-generator enable");
    daemon.wait_for("every packet in a capture", |d| {
        let generator = d.json("show packet-generator");
        let left = generator["captures"][0]["packets"].as_u64().unwrap_or(0);
        let mut streams = generator["streams"].as_array().unwrap().iter();
        let made = streams.all(|stream| stream["enabled"] == false);
        let trace = d.json("show pcap trace");
        assert_eq!(trace["lost"], 0);
        made && left + trace["packets"].as_u64().unwrap_or(0) >= sent as u64
    });
    for worker in shares.keys() {
        daemon.ok(&format!("packet-generator delete b{worker}"));
    }
}

/// The counters of an interface: packets and bytes in each direction, drops.
fn totals(daemon: &Daemon) -> Vec<serde_json::Value> {
    let shown = daemon.json("show interface");
    let of = |i: &serde_json::Value| {
        serde_json::json!([
            i["name"],
            i["rx"],
            i["tx"],
            i["drops"],
            i["rx_errors"],
            i["tx_errors"]
        ])
    };
    shown["interfaces"]
        .as_array()
        .unwrap()
        .iter()
        .map(of)
        .collect()
}

struct Run {
    outcome: Outcome,
    flows: BTreeMap<Vec<u8>, Vec<Vec<u8>>>,
    totals: Vec<serde_json::Value>,
}

fn run(packets: &[Packet], workers: usize) -> Run {
    let mut daemon = Daemon::start(CONFIG, &["--workers", &workers.to_string()]);
    let runtime = daemon.json("show runtime");
    assert_eq!(runtime["workers"].as_array().unwrap().len(), workers);
    let drops = daemon.folder.file("drops.pcapng");
    daemon.ok(&format!(
        "pcap trace drop max 1000000 file {}",
        drops.display()
    ));
    let mut sent = 0;
    for (n, share) in packets.chunks(BURST).enumerate() {
        sent += share.len();
        burst(&mut daemon, n, share, workers, sent);
    }
    daemon.wait_for("every buffer back", |d| {
        d.json("show buffers")["arenas"][0]["used"] == 0
    });
    let totals = totals(&daemon);
    daemon.stop("TERM");
    Run {
        outcome: Outcome::of(&daemon),
        flows: flows(replay::sent(&daemon)),
        totals,
    }
}

#[test]
fn one_to_four_workers_do_the_same() {
    for name in ["valid", "mix4k-snabb", "odd", "malformed", "jumbo"] {
        let Some(path) = shared(name) else {
            println!("SKIP {name}: the shared data is not there");
            continue;
        };
        let packets = packets(name, &path);
        let one = run(&packets, 1);
        for workers in 2..=4 {
            let some = run(&packets, workers);
            assert!(
                some.outcome == one.outcome,
                "{name}: {workers} workers do something else than one"
            );
            assert_eq!(some.totals, one.totals, "{name}: {workers} workers");
            for (flow, frames) in &one.flows {
                assert_eq!(
                    some.flows.get(flow),
                    Some(frames),
                    "{name}: {workers} workers, out of order: {flow:02x?}"
                );
            }
        }
        println!("{name}: {} packets", packets.len());
    }
}

#[test]
fn one_generator_on_each_worker_and_all_of_it_arrives() {
    let config = "[engine]\nworkers = 4\n\
        [[interface]]\nname = \"pg0\"\nkind = \"pg\"\n\
        [[interface]]\nname = \"pg1\"\nkind = \"pg\"\n\
        [[l2patch]]\nrx = \"pg0\"\ntx = \"pg1\"\n";
    let mut daemon = Daemon::start(config, &[]);
    for worker in 0..4 {
        daemon.ok(&format!(
            "packet-generator new name s{worker} interface pg0 worker {worker} limit 100000 template {{ eth / ip4 dst 10.0.0.1 / udp / payload 20 }}"
        ));
    }
    daemon.ok("packet-generator enable");
    daemon.wait_for("the last packet", |d| {
        let shown = d.json("show packet-generator");
        let mut streams = shown["streams"].as_array().unwrap().iter();
        streams.all(|stream| stream["enabled"] == false)
    });
    let totals = totals(&daemon);
    for (at, way) in [(0, 1), (1, 2)] {
        assert_eq!(totals[at][way]["packets"], 400_000, "{totals:?}");
    }
    let nodes = daemon.json("show runtime");
    for worker in nodes["workers"].as_array().unwrap() {
        assert_eq!(worker["rx_packets"], 100_000, "{worker}");
    }
    assert_eq!(
        daemon.refused(
            "packet-generator new name x interface pg0 worker 4 template { eth / payload 50 }"
        ),
        "volley: worker 4 is not valid: there is none of that number; there are: 0, 1, 2, 3\n"
    );
    daemon.stop("TERM");
}

#[test]
fn a_faulty_number_of_workers_is_refused() {
    for (engine, why) in [
        ("workers = 65", "workers"),
        ("workers = 0", "workers"),
        (
            "workers = 3\nmax_workers = 2",
            "there are 3 workers to begin with",
        ),
        (
            "worker_core = 0\nworker_cores = [1]",
            "leave worker_core away",
        ),
        ("worker_cores = [1, 1]", "core 1 is named twice"),
    ] {
        let folder = support::Folder::new();
        let file = folder.file("volley.toml");
        std::fs::write(&file, format!("[engine]\n{engine}\n")).unwrap();
        let output = support::volley(&["run", "-c", &file.display().to_string()]);
        let error = support::text(&output.stderr);
        assert!(
            !output.status.success() && error.contains(why),
            "{engine}: {error}"
        );
    }
}

/// A generator that transmits by two memif rings.
const NEAR: &str = r#"
[[memif_socket]]
id = 1
filename = "SOCKET"
[[interface]]
name = "pg0"
kind = "pg"
[[interface]]
name = "near"
kind = "memif"
memif = { id = 0, socket = 1, role = "slave", ring_size = 8192, tx_queues = 2 }
[[l2patch]]
rx = "pg0"
tx = "near"
"#;

/// The daemon at the other end, whose workers receive from these rings.
const FAR: &str = r#"
[engine]
workers = 3
[[memif_socket]]
id = 1
filename = "@/m.sock"
[[interface]]
name = "pg1"
kind = "pg"
capture = "@/out.pcap"
[[interface]]
name = "far"
kind = "memif"
memif = { id = 0, socket = 1, role = "master" }
rx_placement = [{ queue = 1, worker = 2 }]
[[l2patch]]
rx = "far"
tx = "pg1"
"#;

/// The worker of each receive queue of an interface.
fn placement(daemon: &Daemon, interface: &str) -> Vec<u64> {
    let shown = daemon.json(&format!("show interface rx-placement {interface}"));
    let rows = shown["placement"].as_array().unwrap();
    let mut rows: Vec<(u64, u64)> = rows
        .iter()
        .map(|r| (r["queue"].as_u64().unwrap(), r["worker"].as_u64().unwrap()))
        .collect();
    rows.sort_unstable();
    rows.into_iter().map(|(_, worker)| worker).collect()
}

#[test]
fn receive_queues_move_under_traffic_and_every_packet_keeps_its_place() {
    let mut daemon = Daemon::start(FAR, &[]);
    let socket = daemon.folder.file("m.sock").display().to_string();
    let mut near = Daemon::start(&NEAR.replace("SOCKET", &socket), &[]);
    daemon.wait_for("link", |d| placement(d, "far").len() == 2);
    assert_eq!(placement(&daemon, "far")[1], 2, "the file says so");
    let packets = 20_000;
    near.ok(&format!(
        "packet-generator new name s interface pg0 limit {packets} rate 4000 \
         template {{ eth / ip4 dst 10.0.0.1 / udp / payload 20 }} edit offset 42 size 4 increment 0 4294967295"
    ));
    near.wait_for_answer("show interface near", "up");
    near.ok("packet-generator enable");
    let mut moves = 0;
    loop {
        let shown = near.json("show packet-generator");
        if shown["streams"][0]["enabled"] == false {
            break;
        }
        let (queue, worker) = (moves % 2, (moves * 7 / 2) % 3);
        daemon.ok(&format!(
            "set interface rx-placement far queue {queue} worker {worker}"
        ));
        assert_eq!(placement(&daemon, "far")[queue], worker as u64);
        moves += 1;
    }
    assert!(moves > 10, "{moves} moves");
    daemon.wait_for("the last packet", |d| {
        d.json("show interface pg1")["interfaces"][0]["tx"]["packets"] == packets
    });
    // The worker does not exist: the queue is not moved.
    let before = placement(&daemon, "far");
    daemon.ok("set interface rx-placement far queue 0 worker 6");
    assert_eq!(placement(&daemon, "far"), before);
    let refused = daemon.refused("set interface rx-placement far queue 0 worker 8");
    assert!(refused.contains("there may be 8 at a time"), "{refused}");
    assert!(
        daemon
            .ok("config export toml")
            .contains("rx_placement = [{ queue = 0, worker = 6 }, { queue = 1")
    );
    near.stop("TERM");
    daemon.stop("TERM");
    let numbers: Vec<u32> = frames(&daemon.folder.file("out.pcap"))
        .iter()
        .map(|frame| u32::from_be_bytes(frame[42..46].try_into().unwrap()))
        .collect();
    assert_eq!(numbers.len(), packets);
    assert!(
        numbers.iter().zip(0..).all(|(n, at)| *n == at),
        "a packet was overtaken, lost or doubled"
    );
}

/// Pseudo-random numbers.
struct Rng(u64);

impl Rng {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

const CHURN: &str = r#"
[engine]
workers = 2
max_workers = 5
[[interface]]
name = "pg0"
kind = "pg"
mac = "02:fe:00:00:00:00"
addresses = ["198.18.0.1/24"]
[[interface]]
name = "pg1"
kind = "pg"
addresses = ["198.18.1.1/24"]
[[interface]]
name = "pg2"
kind = "pg"
[[neighbor]]
interface = "pg1"
address = "198.18.1.10"
mac = "02:aa:00:00:00:0a"
[[route]]
prefix = "10.0.0.0/8"
via = "198.18.1.10"
interface = "pg1"
"#;

/// The objects that were added and must be removed, by type.
#[derive(Default)]
struct There {
    routes: Vec<u64>,
    neighbors: Vec<u64>,
    interfaces: Vec<u64>,
    streams: Vec<u64>,
}

/// Removes an object or adds a new one; returns its number, and whether it is added.
fn toggle(list: &mut Vec<u64>, rng: &mut Rng, most: usize) -> (u64, bool) {
    if list.len() >= most || !list.is_empty() && rng.roll(2) == 0 {
        let at = rng.roll(list.len() as u64) as usize;
        return (list.swap_remove(at), false);
    }
    let mut new = rng.roll(200);
    while list.contains(&new) {
        new = (new + 1) % 200;
    }
    list.push(new);
    (new, true)
}

/// A random change.
fn change(daemon: &Daemon, rng: &mut Rng, there: &mut There) {
    let on = |yes: bool| if yes { "on" } else { "off" };
    let line = match rng.roll(10) {
        0 => {
            let (n, add) = toggle(&mut there.routes, rng, 40);
            let way = if add { "add" } else { "del" };
            format!("ip route {way} 172.16.{n}.0/24 via 198.18.1.10 pg1")
        }
        1 => {
            let (n, add) = toggle(&mut there.neighbors, rng, 40);
            match add {
                true => format!("set ip neighbor pg1 198.18.1.{} 02:aa:00:00:01:00", n + 20),
                false => format!("set ip neighbor del pg1 198.18.1.{}", n + 20),
            }
        }
        2 => match toggle(&mut there.interfaces, rng, 10) {
            (n, true) => format!("create packet-generator interface x{n}"),
            (n, false) => format!("delete interface x{n}"),
        },
        3 => match toggle(&mut there.streams, rng, 10) {
            (n, true) => format!(
                "packet-generator new name t{n} interface pg2 limit 100 template {{ eth / payload 50 }}"
            ),
            (n, false) => format!("packet-generator delete t{n}"),
        },
        4 => format!("set interface path-batcher {} pg0", on(rng.roll(2) == 0)),
        5 => {
            let disable = ["", " disable"][rng.roll(2) as usize];
            format!("set interface feature pg2 ip4-not-enabled arc ip4-unicast{disable}")
        }
        6 => format!("set interface mtu {} pg2", 1400 + rng.roll(200)),
        8 => format!("set vector-size {}", 1 + rng.roll(1024)),
        7 => format!("set interface promiscuous {} pg0", on(rng.roll(2) == 0)),
        _ => return worker_set(daemon, rng),
    };
    daemon.ok(&line);
}

/// Adds or removes a worker.
fn worker_set(daemon: &Daemon, rng: &mut Rng) {
    let shown = daemon.json("show workers");
    let rows = shown["workers"].as_array().unwrap();
    let workers: Vec<u64> = rows.iter().map(|w| w["worker"].as_u64().unwrap()).collect();
    if workers.len() == 1 || workers.len() < 5 && rng.roll(2) == 0 {
        daemon.ok("workers add");
    } else {
        let which = workers[rng.roll(workers.len() as u64) as usize];
        daemon.ok(&format!("workers del {which}"));
    }
}

/// The fewest changes of a run.
const CHANGES: u32 = 20;

/// Random changes under traffic for this time: no packet is lost, and every buffer is freed.
fn churn(span: Duration, rate: u64) {
    let mut daemon = Daemon::start(CHURN, &[]);
    for worker in 0..2 {
        daemon.ok(&format!(
            "packet-generator new name s{worker} interface pg0 worker {worker} rate {rate} template {{ \
             eth dst 02:fe:00:00:00:00 / ip4 src 198.18.0.{} dst 10.1.2.3 ttl 64 / udp / payload 20 }}",
            worker + 2
        ));
    }
    daemon.ok("packet-generator enable");
    let (start, mut changes) = (Instant::now(), 0);
    let (mut rng, mut there) = (Rng(0x9e37_79b9_7f4a_7c15), There::default());
    // On a busy machine this many changes take longer than the time.
    while start.elapsed() < span || changes <= CHANGES && start.elapsed() < 8 * span {
        change(&daemon, &mut rng, &mut there);
        changes += 1;
    }
    let workers = daemon.json("show workers");
    assert!(
        workers["workers"].as_array().unwrap().len() <= 5 && changes > CHANGES,
        "{changes} changes: {workers}"
    );
    println!("{changes} changes\n{}", daemon.ok("show pauses"));
    daemon.ok("packet-generator disable");
    let of = |d: &Daemon, way: usize| totals(d)[way].clone();
    daemon.wait_for("the last packet", |d| {
        of(d, 0)[1]["packets"] == of(d, 1)[2]["packets"]
    });
    assert_eq!(of(&daemon, 0)[3], 0, "drops: {}", daemon.ok("show drops"));
    let received = of(&daemon, 0)[1]["packets"].as_u64().unwrap();
    assert!(received > rate, "only {received} packets");
    daemon.wait_for("every buffer back", |d| {
        d.json("show buffers")["arenas"][0]["used"] == 0
    });
    daemon.stop("TERM");
}

#[test]
fn changes_of_every_kind_lose_no_packet() {
    churn(Duration::from_secs(8), 20_000);
}

/// The same for `VOLLEY_SOAK` seconds (900 for the quarter of an hour).
#[test]
fn soak() {
    let Some(seconds) = std::env::var("VOLLEY_SOAK")
        .ok()
        .and_then(|s| s.parse().ok())
    else {
        println!("SKIP: VOLLEY_SOAK does not say for how many seconds");
        return;
    };
    churn(Duration::from_secs(seconds), 50_000);
}

#[test]
fn what_workers_do_is_shown() {
    let config = "[engine]\nworkers = 2\n\
        [[interface]]\nname = \"pg0\"\nkind = \"pg\"\n\
        [[interface]]\nname = \"pg1\"\nkind = \"pg\"\n\
        [[l2patch]]\nrx = \"pg0\"\ntx = \"pg1\"\n";
    let mut daemon = Daemon::start(config, &[]);
    daemon.ok("packet-generator new name s interface pg0 worker 1 template { eth / payload 50 }");
    daemon.ok("packet-generator enable");
    daemon.wait_for("a load", |d| {
        let shown = d.json("show load");
        let load = |w: usize| shown["workers"][w]["load_percent"].as_f64().unwrap();
        load(1) > 50.0 && load(0) < load(1)
    });
    let shown = daemon.json("show workers");
    let busy = &shown["workers"][1];
    assert_eq!(shown["places"], 8);
    assert!(
        busy["packets_per_round"].as_f64().unwrap() > 100.0,
        "{busy}"
    );
    assert!(shown["imbalance"].as_f64().unwrap() > 10.0, "{shown}");
    daemon.ok("set vector-size 16");
    daemon.ok("clear runtime");
    daemon.wait_for("small vectors", |d| {
        let busy = &d.json("show workers")["workers"][1];
        let packets = busy["packets_per_round"].as_f64().unwrap();
        packets > 8.0 && packets <= 16.0
    });
    assert_eq!(daemon.json("show version")["vector_size"], 16);
    let refused = daemon.refused("set vector-size 0");
    assert!(
        refused.contains("must be a number from 1 to 1024"),
        "{refused}"
    );
    daemon.ok("set vector-size 256");
    let added = daemon.ok("workers add core 0");
    assert_eq!(added.trim_end(), "worker 2");
    assert_eq!(daemon.json("show workers")["workers"][2]["core"], 0);
    let refused = daemon.refused("workers add core 0");
    assert!(refused.contains("core 0 has worker 2"), "{refused}");
    assert!(
        daemon
            .refused("workers add core 999")
            .contains("there is no core 999")
    );
    // Its counts stay in the totals, and the stream continues on another worker.
    let before = daemon.json("show interface pg0")["interfaces"][0]["rx"]["packets"].as_u64();
    daemon.ok("workers del 1");
    let after =
        |d: &Daemon| d.json("show interface pg0")["interfaces"][0]["rx"]["packets"].as_u64();
    daemon.wait_for("more packets", |d| after(d) > before);
    let shown = daemon.json("show workers");
    let numbers: Vec<_> = shown["workers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|w| &w["worker"])
        .collect();
    assert_eq!(numbers, [0, 2]);
    let pauses = daemon.json("show pauses");
    for worker in pauses["workers"].as_array().unwrap() {
        let gaps = worker["gaps"].as_array().unwrap();
        assert!(gaps.len() as u64 <= worker["over"].as_u64().unwrap());
        let least = gaps.iter().map(|g| g["gap_us"].as_f64().unwrap());
        assert!(least.fold(f64::MAX, f64::min) >= 49.0, "{worker}");
    }
    daemon.ok("clear runtime");
    daemon.stop("TERM");
}

/// Stops one thread of a process for a while.
const FREEZE: &str = "import ctypes, os, sys, time\n\
    pid, name = sys.argv[1:3]\n\
    task = next(t for t in os.listdir(f'/proc/{pid}/task')\n\
    \x20           if open(f'/proc/{pid}/task/{t}/comm').read().strip() == name)\n\
    call = ctypes.CDLL(None, use_errno=True).ptrace\n\
    call.argtypes = [ctypes.c_long] * 4\n\
    assert call(0x4206, int(task), 0, 0) == 0, os.strerror(ctypes.get_errno())\n\
    assert call(0x4207, int(task), 0, 0) == 0\n\
    time.sleep(3)\n";

#[test]
fn a_worker_that_stands_still_is_reported_with_its_node() {
    let Some(python) = oracle::python() else {
        println!("SKIP: Python is not there");
        return;
    };
    let config = "[engine]\nworkers = 2\n[[interface]]\nname = \"pg0\"\nkind = \"pg\"\n\
        [[interface]]\nname = \"pg1\"\nkind = \"pg\"\n\
        [[l2patch]]\nrx = \"pg0\"\ntx = \"pg1\"\n";
    let mut daemon = Daemon::start(config, &[]);
    daemon.ok("packet-generator new name s interface pg0 worker 1 template { eth / payload 50 }");
    daemon.ok("packet-generator enable");
    let pid = daemon.pid().to_string();
    let frozen = std::process::Command::new(python)
        .args(["-c", FREEZE, &pid, "volley-w1"])
        .output()
        .unwrap();
    if !frozen.status.success() {
        println!(
            "SKIP: a thread cannot be stopped here: {}",
            support::text(&frozen.stderr)
        );
        return;
    }
    let log = daemon.log();
    let line = log.lines().find(|l| l.contains("has not gone round"));
    let line = line.unwrap_or_else(|| panic!("nothing was said: {log}"));
    assert!(
        line.contains("worker 1 has not gone round for 1000 ms: it is in node "),
        "{line}"
    );
    let names = [
        "pg-input",
        "l2-patch",
        "interface-output",
        "interface-tx",
        "pg1-tx",
    ];
    assert!(
        names.iter().any(|n| line.contains(n))
            || line.contains("-input")
            || line.contains("-output"),
        "{line}"
    );
    daemon.wait_for("it to go on", |d| {
        d.log().contains("worker 1 goes round again")
    });
    // The signal for the stack sample was pending: the worker reports its calls now.
    daemon.wait_for("its calls", |d| d.log().contains("worker 1 stood still in"));
    let shown = daemon.json("show workers");
    assert_eq!(shown["workers"][1]["stalls"], 1);
    let calls = shown["workers"][1]["stalled_in"].as_array().unwrap().iter();
    let calls: Vec<&str> = calls.map(|c| c.as_str().unwrap()).collect();
    // The outermost calls may be functions of the standard library.
    let place = "crates/base/graph/src/worker/threads.rs:";
    assert!(calls.iter().any(|c| c.contains(place)), "{calls:#?}");
    let last = calls.last().unwrap();
    assert!(calls.iter().any(|c| c.starts_with("round ")), "{calls:#?}");
    assert!(daemon.ok("show workers").contains(&format!("  {last}\n")));
    daemon.stop("TERM");
}
