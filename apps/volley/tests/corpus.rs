//! At least one packet for every row of `docs/forwarding-rules.md` (the oracle's corpus), through a daemon that is configured
//! as the corpus's router, and judged by the oracle. Needs Python; without it the test says so and passes.
//!
//! The corpus has a lookup loop of one table, here it is a loop of two, since a route may not look up in its own table.
//! Not here: pg7, which is promiscuous (there is no such setting yet).
//! Packets for pg3 are dropped before they get a buffer: they are counted, and in no capture.

mod support;

use std::path::PathBuf;
use std::process::Command;
use support::bed::counter;
use support::{Daemon, Folder, oracle};

/// The commands that configure `corpus.ROUTER`, after interfaces and their captures.
const ROUTER: &str = "\
ip table add 7
ip6 table add 7
set interface ip table pg4 7
set interface ip6 table pg4 7
set interface mtu 1280 pg2
set ip icmp rate 0 receiver-rate 0
set ip4 reassembly timeout 1
set ip6 reassembly timeout 1
set ip neighbor pg1 192.0.2.2 02:00:00:00:01:01
set ip neighbor pg1 192.0.2.3 02:00:00:00:01:02
set ip neighbor pg1 192.0.2.4 02:00:00:00:01:03
set ip neighbor pg1 192.0.2.7 02:00:00:00:01:07
set ip neighbor pg2 198.51.100.2 02:00:00:00:02:01
set ip neighbor pg2 198.51.100.3 02:00:00:00:02:02
set ip neighbor pg3 203.0.113.2 02:00:00:00:03:01
set ip neighbor pg3 203.0.113.3 02:00:00:00:03:03
set ip neighbor pg8 192.0.2.8 02:00:00:00:08:01
set ip neighbor pg10 192.0.2.10 02:00:00:00:0a:01
set ip6 neighbor pg10 2001:db8:ffff::10 02:00:00:00:0a:01
set ip6 neighbor pg1 2001:db8:ffff::2 02:00:00:00:01:01
set ip6 neighbor pg1 2001:db8:ffff::3 02:00:00:00:01:02
set ip6 neighbor pg1 2001:db8:ffff::7 02:00:00:00:01:07
set ip6 neighbor pg2 2001:db8:fffe::2 02:00:00:00:02:01
set ip6 neighbor pg2 2001:db8:fffe::3 02:00:00:00:02:02
ip route add 10.0.0.0/8 via 192.0.2.2 pg1
ip route add 10.2.0.0/16 via 198.51.100.2 pg2
ip route add 10.3.0.0/16 via 203.0.113.2 pg3
ip route add 10.4.0.0/16 via drop
ip route add 10.5.0.0/16 via unreachable
ip route add 10.6.0.0/16 via prohibit
ip route add 10.7.0.1/32 via local
ip route add 10.8.0.0/16 via pg1
ip route add 10.9.0.0/16 via 192.0.2.9 pg1
ip route add 10.10.0.0/16 via 198.51.100.3 pg2 via 192.0.2.3 pg1
ip route add 10.11.0.0/16 via lookup-in-table 7
ip table add 9
ip route add 10.12.0.0/16 via lookup-in-table 9
ip route add table 9 10.12.0.0/16 via lookup-in-table 0
ip route add 10.14.0.0/16 via 203.0.113.3 pg3 via 192.0.2.4 pg1
ip route add 10.15.0.0/16 via 192.0.2.8 pg8
ip route add 10.17.0.0/16 via 192.0.2.10 pg10
ip route add 10.18.0.0/16 via 192.0.2.3 pg1 via 192.0.2.10 pg10
ip6 route add 2001:db8:17::/48 via 2001:db8:ffff::10 pg10
ip6 route add 2001:db8:18::/48 via 2001:db8:ffff::3 pg1 via 2001:db8:ffff::10 pg10
set urpf ip4 rx strict pg10
set urpf ip6 rx strict pg10
set urpf ip4 rx loose pg11
set urpf ip6 rx loose pg11
set interface ip directed-broadcast pg2 on
set interface ip address pg12 192.0.3.1/24
set interface ip6 address pg12 2001:db8:19::1/64
set ip neighbor pg12 192.0.3.2 02:00:00:00:0c:02
set ip neighbor pg12 192.0.3.9 02:00:00:00:0c:09
set ip6 neighbor pg12 fe80::2 02:00:00:00:0c:02
set ip6 neighbor pg12 2001:db8:19::2 02:00:00:00:0c:02
set ip6 neighbor pg12 2001:db8:19::9 02:00:00:00:0c:09
ip route add 10.19.0.0/16 via 192.0.3.2 pg12
ip6 route add 2001:db8:1a::/48 via fe80::2 pg12
ip6 route add 2001:db8:1b::/48 via 2001:db8:19::2 pg12
set interface ip redirects pg12 on
set interface ip virtual-reassembly pg13 on
ip route add table 7 10.11.0.0/16 via 192.0.2.7 pg1
ip6 route add 2001:db8::/32 via 2001:db8:ffff::2 pg1
ip6 route add 2001:db8:2::/48 via 2001:db8:fffe::2 pg2
ip6 route add 2001:db8:4::/48 via drop
ip6 route add 2001:db8:5::/48 via unreachable
ip6 route add 2001:db8:6::/48 via prohibit
ip6 route add 2001:db8:7::1/128 via local
ip6 route add 2001:db8:8::/48 via pg1
ip6 route add 2001:db8:10::/48 via 2001:db8:fffe::3 pg2 via 2001:db8:ffff::3 pg1
ip6 route add table 7 2001:db8:11::/48 via 2001:db8:ffff::7 pg1
ip6 route add ::ffff:0:0/96 via 2001:db8:ffff::2 pg1
set interface state pg3 down
set interface feature pg8 ip4-not-enabled arc ip4-unicast
set interface feature pg8 ip6-not-enabled arc ip6-unicast
set interface l2 xconnect pg5 pg1
test l2patch rx pg6 tx pg1
test l2patch rx pg9 tx pg3";

/// The corpus's interfaces that Volley can have.
fn interfaces() -> impl Iterator<Item = String> {
    (0..14).filter(|n| *n != 7).map(|n| format!("pg{n}"))
}

/// Interfaces, captures and the router's commands, as lines.
fn lines(folder: &Folder) -> Vec<String> {
    let mut lines = Vec::new();
    for (n, name) in (0..14).filter(|n| *n != 7).zip(interfaces()) {
        lines.push(format!(
            "create packet-generator interface {name} mac 02:fe:00:00:00:{n:02x} mtu 1500"
        ));
        lines.push(format!("set interface state {name} up"));
        let file = folder.file(&format!("out-{name}.pcap"));
        lines.push(format!(
            "packet-generator capture {name} pcap {}",
            file.display()
        ));
    }
    lines.extend(ROUTER.lines().map(str::to_owned));
    // Far from every destination of the corpus.
    for n in 0..5 {
        lines.push(format!("set interface ip address pg{n} 100.64.{n}.1/24"));
        lines.push(format!(
            "set interface ip6 address pg{n} 2001:2:0:{n}::1/64"
        ));
    }
    // For the broadcast addresses of these networks.
    lines.push("set interface ip address pg1 10.13.0.1/24".to_owned());
    lines.push("set interface ip address pg2 10.16.0.1/24".to_owned());
    lines
}

/// Each of the corpus's interfaces with its capture file.
fn files(folder: &Folder, before: &str) -> Vec<(String, PathBuf)> {
    let file = |name: String| {
        let file = folder.file(&format!("{before}{name}.pcap"));
        (name, file)
    };
    interfaces().map(file).collect()
}

/// Sends the packets of each file into its interface, and waits until all of them are in a capture.
fn send(daemon: &mut Daemon, inputs: &[(String, PathBuf)]) {
    let mut sent = 0;
    for (name, file) in inputs {
        let packets = support::frames(file).len() as u64;
        let file = file.display();
        daemon.ok(&format!(
            "packet-generator new name {name} interface {name} limit {packets} pcap {file}"
        ));
        daemon.ok(&format!("packet-generator enable {name}"));
        sent += packets;
    }
    daemon.wait_for("every packet in a capture", |d| {
        let generator = d.json("show packet-generator");
        let rows = |what: &str| generator[what].as_array().unwrap().clone();
        let of = |capture: &serde_json::Value| capture["packets"].as_u64().unwrap();
        let left: u64 = rows("captures").iter().map(of).sum();
        // ICMP errors leave too: more packets leave than entered.
        let made = rows("streams").iter().all(|s| s["enabled"] == false);
        made && left + of(&d.json("show pcap trace")) >= sent
    });
}

#[test]
fn every_rule_has_a_packet_and_every_packet_its_outcome() {
    let Some(python) = oracle::python() else {
        println!("SKIP: Python is not there");
        return;
    };
    let corpus = Folder::new();
    let mut command = Command::new(&python);
    let made = command
        .arg(oracle::program())
        .args(["corpus", "--out"])
        .arg(&corpus.0)
        .output();
    assert!(made.unwrap().status.success());
    let mut daemon = Daemon::start("", &[]);
    for line in lines(&daemon.folder) {
        daemon.ok(&line);
    }
    daemon.ok(&format!(
        "pcap trace drop max 100000 file {}",
        daemon.folder.file("drops.pcapng").display()
    ));
    daemon.ok("packet-generator new name down interface pg3 limit 5 template { eth / payload 46 }");
    daemon.ok("packet-generator enable down");
    daemon.wait_for_answer("show drops", "admin-down");
    let mut inputs = files(&corpus, "");
    inputs.retain(|(name, file)| name != "pg3" && file.exists());
    send(&mut daemon, &inputs);
    // Fragments of incomplete datagrams.
    daemon.wait_for("the end of their time", |d| {
        let over = |node| counter(d, node, "timeout") >= 3;
        over("ip4-full-reassembly") && over("ip6-full-reassembly")
    });
    daemon.stop("TERM");
    let outputs = files(&daemon.folder, "out-");
    println!(
        "{}",
        oracle::judge(
            &python,
            &corpus.file("router.json"),
            &inputs,
            &outputs,
            &daemon
        )
    );
}
