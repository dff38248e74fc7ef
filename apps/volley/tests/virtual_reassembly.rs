//! Fragments in transit: two next hops with a kernel host behind each, which reassemble the datagrams. The Linux kernel and
//! scapy (`tests/reassembly/transit.py`) fragment the packets.
//!
//! Needs root, `ip`, `ping` and Python, scapy for a part; without them the tests say so and pass.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use support::bed::{Bed, Space, counter, has_scapy, must, run, wait_until_up};
use support::fragments::{Flood, part, three_workers};
use support::traffic::{stream, ways};
use support::{Daemon, oracle, text};

/// The router between hosts a and b, and a third host c beside b: routes to 203.0.113.0/24 and 2001:db8:99::/48 have paths to
/// both.
struct Fork {
    bed: Bed,
    _c: Space,
    daemon: Daemon,
}

impl Fork {
    fn new() -> Option<Fork> {
        let bed = Bed::new()?;
        let c = Space::new(bed.name("c"))?;
        let (r, there) = (bed.name("r"), bed.name("c"));
        must(&format!(
            "ip -n {r} link add other type veth peer name e netns {there}"
        ));
        bed.ip("r", "link set other up");
        bed.ip("c", "link set e up");
        wait_until_up(&format!("-n {r}"), "other");
        wait_until_up(&format!("-n {there}"), "e");
        let mut daemon = bed.router();
        for line in [
            &format!("create host-interface name other as other netns {r}")[..],
            "set interface ip address other 10.79.0.1/16",
            "set interface ip6 address other 2001:db8:79::1/64",
            "set interface state other up",
            "ip route add 203.0.113.0/24 via 10.78.0.2 right via 10.79.0.2 other",
            "ip6 route add 2001:db8:99::/48 via 2001:db8:78::2 right via 2001:db8:79::2 other",
        ] {
            daemon.ok(line);
        }
        for line in [
            "addr add 10.79.0.2/16 dev e",
            "addr add 2001:db8:79::2/64 dev e nodad",
            "route add default via 10.79.0.1",
            "-6 route add default via 2001:db8:79::1",
            "link set lo up",
        ] {
            bed.ip("c", line);
        }
        for at in ["b", "c"] {
            bed.ip(at, "addr add 203.0.113.1/32 dev lo");
            bed.ip(at, "addr add 2001:db8:99::1/128 dev lo nodad");
        }
        daemon.wait_for("all links", |d| {
            let all = d.json("show interface")["interfaces"].clone();
            all.as_array().unwrap().iter().all(|i| i["link"] == "up")
        });
        for (at, to) in [("b", "10.77.0.2"), ("c", "10.77.0.2")] {
            assert!(bed.pings(at, to, 3, "0.1") > 0, "{at}");
        }
        for (at, to) in [("b", "2001:db8:77::2"), ("c", "2001:db8:77::2")] {
            assert!(bed.pings(at, to, 3, "0.1") > 0, "{at}");
        }
        let _c = c;
        Some(Fork { bed, _c, daemon })
    }

    fn program(&self, at: &str, words: &[&str]) -> Child {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/reassembly/transit.py");
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", &self.bed.name(at)])
            .arg(oracle::python().unwrap())
            .arg(file)
            .args(words);
        command.stdout(Stdio::piped()).spawn().unwrap()
    }

    /// The hosts that received each complete datagram: how it was sent, IP version, flow.
    fn went(&self, words: &[&str]) -> BTreeMap<(char, u8, u16), BTreeSet<&'static str>> {
        let mut receivers = ["b", "c"].map(|at| (at, self.program(at, &["receive"])));
        for (_, receiver) in &mut receivers {
            let mut ready = [0; 6];
            let out = receiver.stdout.as_mut().unwrap();
            out.read_exact(&mut ready).unwrap();
        }
        let sent = self.program("a", words).wait().unwrap();
        assert!(sent.success(), "{words:?}");
        std::thread::sleep(std::time::Duration::from_millis(700));
        let mut all = BTreeMap::<_, BTreeSet<_>>::new();
        for (at, receiver) in receivers {
            let _ = run(5, &["kill", &receiver.id().to_string()]);
            let message = text(&receiver.wait_with_output().unwrap().stdout);
            for line in message.lines() {
                let words: Vec<&str> = line.split(' ').collect();
                let [kind, version, flow, whole] = words[..] else {
                    panic!("{line}")
                };
                assert_eq!(whole, "whole", "{line}");
                let kind = kind.chars().next().unwrap();
                let key = (kind, version.parse().unwrap(), flow.parse().unwrap());
                assert!(all.entry(key).or_default().insert(at), "twice: {line}");
            }
        }
        all
    }

    fn count(&self, name: &str) -> u64 {
        let of = |node| counter(&self.daemon, node, name);
        of("ip4-sv-reassembly") + of("ip6-sv-reassembly")
    }
}

const FLOWS: std::ops::Range<u16> = 20000..20024;

#[test]
fn fragments_take_the_path_of_their_flow_s_other_packets() {
    let Some(fork) = Fork::new() else { return };
    let off = fork.went(&["kernel"]);
    for version in [4, 6] {
        let small = |flow: u16| &off[&('s', version, flow)];
        let hosts: BTreeSet<_> = FLOWS.map(small).collect();
        assert_eq!(hosts.len(), 2, "flows take both paths: {off:?}");
        // The ports of fragments are not read, so all take one path, which for some is not the path of their flow.
        let strays = FLOWS.filter(|flow| off[&('k', version, *flow)] != *small(*flow));
        assert!(strays.count() > 0, "{off:?}");
    }
    assert_eq!(fork.count("known"), 0, "off unless it is asked for");
    fork.daemon
        .ok("set interface ip virtual-reassembly left on");
    for family in ["ip4", "ip6"] {
        fork.daemon
            .ok(&format!("set {family} reassembly virtual-timeout 3000"));
    }
    let same = |kinds: usize, on: BTreeMap<(char, u8, u16), BTreeSet<&str>>| {
        assert_eq!(on.len(), kinds * 2 * FLOWS.len(), "{on:?}");
        for ((kind, version, flow), hosts) in &on {
            let want = &on[&('s', *version, *flow)];
            assert_eq!(hosts, want, "{kind} {version} {flow}");
        }
    };
    same(2, fork.went(&["kernel"]));
    let in_order = 3 * 2 * FLOWS.len() as u64;
    let count = |name| fork.count(name);
    assert_eq!((count("known"), count("held")), (in_order, 0));
    if !has_scapy() {
        println!("no scapy: nobody cut in other orders");
        return;
    }
    let shown = fork.daemon.json("show interface left")["interfaces"][0].clone();
    let words = ["scapy", "e", shown["mac"].as_str().unwrap()];
    same(3, fork.went(&words));
    let errors = fork.daemon.ok("show errors");
    // Of each datagram in reverse order, all fragments but the one with offset 0 were held.
    assert!(count("held") > (6 + 3) * FLOWS.len() as u64, "{errors}");
    assert_eq!(count("held"), count("released"), "{errors}");
    for name in ["timeout", "evicted", "overlap", "no-room", "tiny-fragment"] {
        assert_eq!(count(name), 0, "{name}: {errors}");
    }
    for family in ["ip4", "ip6"] {
        let shown = fork.daemon.json(&format!("show {family}-sv-reassembly"));
        let worker = &shown["workers"][0];
        assert_eq!(
            (&worker["awaited"], &worker["buffers"]),
            (&0.into(), &0.into())
        );
        assert!(worker["fragments_known"].as_u64() > Some(0), "{shown}");
        assert_eq!(shown["timeout_ms"], 3000, "{shown}");
    }
    fork.daemon
        .ok("set interface ip virtual-reassembly left off");
    let known = count("known");
    fork.went(&["kernel"]);
    assert_eq!(count("known"), known, "and off again");
}

#[test]
fn a_flood_of_later_fragments_is_bounded_and_transit_goes_on() {
    let Some(bed) = Bed::new() else { return };
    let daemon = bed.router();
    daemon.ok("set ip4 reassembly max-reassemblies 300 max-buffers 200 virtual-timeout 500");
    daemon.ok("set interface ip virtual-reassembly left on");
    daemon.ok("set interface ip virtual-reassembly right on");
    assert!(bed.pings("a", "10.78.0.2", 3, "0.1") > 0);
    // Later fragments to the other side, whose first one never comes.
    let flood = Flood::start(&bed, &daemon, "0x2000|(n%100+1)", [10, 78, 0, 2]);
    for to in ["10.77.0.2", "2001:db8:77::2"] {
        assert!(bed.pings("b", to, 20, "0.1") >= 19, "{to}");
    }
    // Large packets, whose requests and replies are fragments in order.
    let words = [
        "-c",
        "10",
        "-i",
        "0.1",
        "-W",
        "3",
        "-s",
        "4000",
        "10.77.0.2",
    ];
    let received = bed.pings_with("b", &words);
    assert!(received >= 8, "{received}\n{}", daemon.ok("show errors"));
    let shown = daemon.json("show ip4-sv-reassembly");
    for worker in shown["workers"].as_array().unwrap() {
        let number = |key: &str| worker[key].as_u64().unwrap();
        assert!(number("buffers") <= 200, "{shown}");
        assert!(number("known") + number("awaited") <= 300, "{shown}");
    }
    let sent = flood.sent();
    let count = |name| counter(&daemon, "ip4-sv-reassembly", name);
    let errors = daemon.ok("show errors");
    println!("{sent} sent, {} waited", count("held"));
    assert!(count("held") > 1000, "{errors}");
    let mut daemon = daemon;
    daemon.wait_for("what waits is dropped", |d| {
        d.json("show ip4-sv-reassembly")["workers"][0]["buffers"] == 0
    });
    let count = |name| counter(&daemon, "ip4-sv-reassembly", name);
    let gone = count("evicted") + count("timeout") + count("released");
    assert_eq!(count("held"), gone, "{}", daemon.ok("show errors"));
}

/// The two fragments of a UDP datagram, and an unfragmented packet of the same flow.
fn parts(id: u16) -> [Vec<u8>; 3] {
    let port = 1000 + id;
    let flow = (17, [20, 0, 0, 1]);
    [(0, true), (32, false), (0, false)].map(|(from, more)| {
        let mut udp = port.to_be_bytes().to_vec();
        let length = if from == 0 && !more { 32u16 } else { 64 };
        udp.extend([0, 53]);
        udp.extend(length.to_be_bytes());
        udp.resize(64, id as u8);
        part(id, flow, &udp, from, more)
    })
}

#[test]
fn fragments_that_come_by_different_workers_take_one_path() {
    let mut daemon = three_workers();
    ways(&daemon, 2);
    // Workers have handoff rings after an interface uses RSS.
    daemon.ok("set interface rss pg2 on");
    daemon.wait_for_answer("show rss", "; spread");
    daemon.ok("set ip4 reassembly virtual-timeout 10000");
    daemon.ok("set interface ip virtual-reassembly pg0 on");
    let captures = [1, 2].map(|n| {
        let file = daemon.folder.file(&format!("out{n}.pcap"));
        let line = format!("packet-generator capture pg{n} pcap {}", file.display());
        daemon.ok(&line);
        file
    });
    let all: Vec<[Vec<u8>; 3]> = (1..=200).map(parts).collect();
    for part in 0..3 {
        let packets: Vec<Vec<u8>> = all.iter().map(|it| it[part].clone()).collect();
        stream(&daemon, &format!("part{part}"), part as u32, &packets);
    }
    let count = |d: &Daemon, name| counter(d, "ip4-sv-reassembly", name);
    daemon.ok("trace add pg-input 5");
    daemon.ok("packet-generator enable part1");
    daemon.wait_for("later halves", |d| count(d, "held") == 200);
    let traced = daemon.ok("show trace");
    assert!(traced.contains("fragment of datagram 0x"), "{traced}");
    let shown = daemon.json("show ip4-sv-reassembly");
    let number = |worker: &serde_json::Value| worker["awaited"].as_u64().unwrap();
    let awaited: Vec<u64> = shown["workers"]
        .as_array()
        .unwrap()
        .iter()
        .map(number)
        .collect();
    assert_eq!(awaited.iter().sum::<u64>(), 200, "{shown}");
    assert!(
        awaited.iter().all(|n| *n > 0),
        "all workers take part: {shown}"
    );
    daemon.ok("packet-generator enable part2");
    daemon.ok("packet-generator enable part0");
    daemon.wait_for("all", |d| {
        count(d, "released") == 200 && count(d, "known") == 200
    });
    let handed = counter(&daemon, "ip4-sv-reassembly-handoff", "handed");
    assert!(handed > 200, "{handed}");
    daemon.wait_for("all packets", |d| {
        let sent = |row: &serde_json::Value| row["tx"]["packets"].as_u64().unwrap_or(0);
        let rows = d.json("show interface")["interfaces"].clone();
        rows.as_array().unwrap().iter().map(sent).sum::<u64>() >= 600
    });
    let mut ways = BTreeMap::<u8, Vec<usize>>::new();
    for (n, file) in captures.iter().enumerate() {
        daemon.ok(&format!("packet-generator capture pg{} disable", n + 1));
        for frame in support::frames(file) {
            ways.entry(frame[19]).or_default().push(n);
        }
    }
    assert_eq!(ways.len(), 200);
    assert!(ways.values().all(|it| *it == [it[0]; 3]), "{ways:?}");
    let first = ways.values().filter(|it| it[0] == 0).count();
    assert!((20..180).contains(&first), "both paths: {first}");
    daemon.stop("TERM");
}
