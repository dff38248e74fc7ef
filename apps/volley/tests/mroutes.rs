//! More multicast routes than the table has space for, in one transaction: it fails, at little cost, and the routes from before
//! forward.

mod support;

use serde_json::{Value, json};
use std::net::Ipv4Addr;
use std::time::Instant;
use support::Daemon;
use support::bed::interface;
use support::http::Http;
use support::traffic::run_out;

const CONFIG: &str = r#"
[[interface]]
name = "pg0"
kind = "pg"
addresses = ["10.0.0.1/24"]

[[interface]]
name = "pg1"
kind = "pg"

[[interface]]
name = "pg2"
kind = "pg"

[[mroute]]
group = "239.0.0.1"
accept = ["pg0"]
forward = ["pg1"]
"#;

/// Most multicast routes of one IP version.
const MOST: u32 = 16_384;
/// Longest time of the transaction, in seconds.
const SECONDS: f64 = 10.0;
/// Most memory that the transaction may need at any time, in KiB.
const KIB: u64 = 300 << 10;

/// The route of group `n`, which forwards by pg2.
fn route(n: u32) -> Value {
    let group = Ipv4Addr::from(u32::from(Ipv4Addr::new(239, 0, 0, 0)) + n);
    json!({"set": {"class": "mroute", "group": group, "accept": ["pg0"], "forward": ["pg2"]}})
}

/// Resident memory of a process, and the highest since [`forget_peak`].
fn memory(pid: u32) -> (u64, u64) {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let [now, peak] = ["VmRSS:", "VmHWM:"].map(|name| {
        let line = status.lines().find(|l| l.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    });
    (now, peak)
}

/// Sets the highest resident memory of a process to the present one.
fn forget_peak(pid: u32) {
    std::fs::write(format!("/proc/{pid}/clear_refs"), "5").unwrap();
}

/// Sends 10 packets to the group, and returns how many pg1 and pg2 have sent since the start.
fn forwarded(daemon: &mut Daemon, name: &str) -> [u64; 2] {
    daemon.ok(&format!(
        "packet-generator new name {name} interface pg0 limit 10 template {{ eth dst 01:00:5e:00:00:01 / \
         ip4 src 10.0.0.9 dst 239.0.0.1 ttl 9 / udp sport 7 dport 9 / payload 100 }}"
    ));
    run_out(daemon, name, 10);
    ["pg1", "pg2"].map(|name| interface(daemon, name)["tx"]["packets"].as_u64().unwrap())
}

#[test]
fn a_transaction_with_too_many_multicast_routes_costs_little_and_changes_nothing() {
    let mut daemon = Daemon::start(CONFIG, &[]);
    assert_eq!(forwarded(&mut daemon, "a"), [10, 0]);
    let mut http = Http::connect(&daemon.folder.file("s.http.sock"));
    // The first request changes the route that exists; the last one finds the table full.
    let requests: Vec<Value> = (1..=MOST + 1).map(route).collect();
    forget_peak(daemon.pid());
    let (before, _) = memory(daemon.pid());
    let start = Instant::now();
    let (status, message) = http.post("/v1/transactions", &json!(requests));
    let took = start.elapsed().as_secs_f64();
    let (_, peak) = memory(daemon.pid());
    let more = peak - before;
    println!(
        "{} multicast routes, the last one refused: {took:.2} s, at most {SECONDS}; {} MiB more, at most {}",
        requests.len(),
        more >> 10,
        KIB >> 10
    );
    assert!(
        status >= 400 && message.to_string().contains("multicast routes"),
        "{status}: {message}"
    );
    assert!(took < SECONDS, "{took:.2} s");
    assert!(more < KIB, "{more} KiB more");
    let shown = daemon.json("show ip mroute");
    assert_eq!(shown["routes"].as_array().unwrap().len(), 1);
    assert_eq!(
        forwarded(&mut daemon, "b"),
        [20, 0],
        "the old route forwards"
    );
    // One request fewer fits, and a second transaction removes all.
    let start = Instant::now();
    let (status, message) = http.post("/v1/transactions", &json!(requests[..MOST as usize]));
    assert_eq!(status, 200, "{message}");
    println!(
        "{MOST} multicast routes: {:.2} s",
        start.elapsed().as_secs_f64()
    );
    assert_eq!(forwarded(&mut daemon, "c"), [20, 10]);
    let keys = requests[..MOST as usize].iter();
    let keys = keys.map(|it| json!({"unset": {"class": "mroute", "group": it["set"]["group"]}}));
    let start = Instant::now();
    let (status, message) = http.post("/v1/transactions", &json!(keys.collect::<Vec<_>>()));
    assert_eq!(status, 200, "{message}");
    println!("removed: {:.2} s", start.elapsed().as_secs_f64());
    assert_eq!(forwarded(&mut daemon, "d"), [20, 10], "no route is left");
}
