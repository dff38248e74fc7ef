//! `arping` and `monitor`: replies that come in items, with kernel hosts on a link, and tcpdump as the reader.
//!
//! Needs root and `ip` (and `tcpdump` for captures); without them the tests say so and pass.

mod support;

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};
use support::bed::{Space, wait_until_up};
use support::{Daemon, signal, text};

/// A bridge in a namespace, with hosts on it and a router's interface `lan`.
struct Link {
    hosts: Vec<Space>,
    router: Space,
    _switch: Space,
}

impl Link {
    /// Hosts that all have the addresses 10.7.0.9 and 2001:db8:7::9.
    fn new(hosts: usize) -> Option<Link> {
        // The tests of this program run at the same time.
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Relaxed);
        let name = |at: &str| format!("look{}-{number}{at}", std::process::id());
        let switch = Space::new(name("s"))?;
        switch.ip("link add br0 type bridge");
        switch.ip("link set br0 up");
        let plug = |at: &str, end: &str| {
            let space = Space::new(name(at)).unwrap();
            let port = format!("p{at}");
            switch.ip(&format!(
                "link add {port} type veth peer name {end} netns {}",
                space.0
            ));
            switch.ip(&format!("link set {port} master br0 up"));
            space.ip(&format!("link set {end} up"));
            wait_until_up(&format!("-n {}", space.0), end);
            space
        };
        let router = plug("r", "lan");
        let hosts: Vec<Space> = (0..hosts).map(|n| plug(&format!("h{n}"), "e")).collect();
        for host in &hosts {
            host.ip("addr add 10.7.0.9/24 dev e");
            host.ip("addr add 2001:db8:7::9/64 dev e nodad");
        }
        Some(Link {
            hosts,
            router,
            _switch: switch,
        })
    }

    fn daemon(&self) -> Daemon {
        let mut daemon = Daemon::start("", &[]);
        daemon.ok(&format!(
            "create host-interface name lan as lan netns {}",
            self.router.0
        ));
        daemon.ok("set interface ip address lan 10.7.0.1/24");
        daemon.ok("set interface ip6 address lan 2001:db8:7::1/64");
        daemon.ok("set interface state lan up");
        daemon.wait_for("the link", |d| {
            d.json("show interface lan")["interfaces"][0]["link"] == "up"
        });
        daemon
    }

    fn mac(&self, host: usize) -> String {
        let shown = self.hosts[host].ip("-o link show e");
        let mac = shown.split("link/ether ").nth(1).unwrap();
        mac.split(' ').next().unwrap().to_owned()
    }
}

fn start(daemon: &Daemon, line: &str) -> Child {
    let socket = daemon.folder.file("s").display().to_string();
    Command::new(env!("CARGO_BIN_EXE_volley"))
        .args(["ctl", "--socket", &socket])
        .args(line.split(' '))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn ends(child: Child) -> Output {
    child.wait_with_output().unwrap()
}

#[test]
fn hosts_answer_an_arping_each_answer_as_it_comes() {
    let Some(link) = Link::new(1) else { return };
    let daemon = link.daemon();
    let mac = link.mac(0);
    for (address, from) in [("10.7.0.9", "10.7.0.1"), ("2001:db8:7::9", "2001:db8:7::1")] {
        let mut child = start(
            &daemon,
            &format!("arping lan {address} count 0 interval 300"),
        );
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = || {
            let mut line = String::new();
            out.read_line(&mut line).unwrap();
            line
        };
        assert_eq!(line(), format!("{address} from {from} on lan\n"));
        let begun = Instant::now();
        for number in 0..3 {
            let answer = line();
            assert!(
                answer.starts_with(&format!("{number}: from {mac}, 0.")),
                "{answer}"
            );
        }
        assert!(
            begun.elapsed() > Duration::from_millis(500),
            "they come at the pace of the requests"
        );
        signal(child.id(), "INT");
        let mut rest = String::new();
        out.read_to_string(&mut rest).unwrap();
        assert!(rest.contains(" answered, 0 not answered"), "{rest}");
        assert!(!rest.contains("duplicate"), "{rest}");
        assert!(child.wait().unwrap().success());
        let whole = daemon.json(&format!(
            "arping lan {address} count 2 interval 50 timeout 200"
        ));
        assert_eq!(
            (&whole["sent"], &whole["received"]),
            (&2.into(), &2.into()),
            "{whole}"
        );
        assert_eq!(whole["macs"], serde_json::json!([mac]));
    }
    // The reply to an arping of an unknown host creates no more entries than any ARP request does.
    assert!(
        daemon
            .ok("arping lan 10.7.0.9 count 1 timeout 100 | grep answered")
            .contains("1 sent")
    );
}

#[test]
fn silence_is_exit_status_1_and_odd_questions_are_refused() {
    let Some(link) = Link::new(1) else { return };
    let daemon = link.daemon();
    for address in ["10.7.0.77", "2001:db8:7::77"] {
        let line = format!("arping lan {address} count 2 interval 50 timeout 100");
        let silent = ends(start(&daemon, &line));
        assert_eq!(silent.status.code(), Some(1));
        assert!(text(&silent.stdout).contains("2 sent, 0 answered, 2 not answered"));
        let why = format!("no station on interface lan answered for {address}");
        assert!(
            text(&silent.stderr).contains(&why),
            "{}",
            text(&silent.stderr)
        );
        let data = ends(start(&daemon, &format!("--json {line}")));
        assert_eq!(data.status.code(), Some(1));
        assert!(text(&data.stdout).contains("\"received\": 0"));
    }
    for (line, why) in [
        ("arping lan 10.7.0.1", "the interface's own address"),
        ("arping lan ff02::1", "one host"),
        ("arping nolan 10.7.0.9", "there is no interface nolan"),
        ("arping lan 10.7.0.9 interval 1", "10 to 10000"),
    ] {
        let refused = daemon.refused(line);
        assert!(refused.contains(why), "{line}: {refused}");
    }
    daemon.ok("set interface state lan down");
    let down = daemon.refused("arping lan 10.7.0.9");
    assert!(down.contains("the interface is down"), "{down}");
}

#[test]
fn two_hosts_with_one_address_are_told_apart() {
    let Some(link) = Link::new(2) else { return };
    let daemon = link.daemon();
    let macs = [link.mac(0), link.mac(1)];
    for address in ["10.7.0.9", "2001:db8:7::9"] {
        let message = ends(start(
            &daemon,
            &format!("arping lan {address} count 2 interval 200 timeout 300"),
        ));
        let message = text(&message.stdout);
        for mac in &macs {
            assert_eq!(
                message.matches(&format!(": from {mac}, ")).count(),
                2,
                "{message}"
            );
        }
        assert!(
            message.contains("2 sent, 2 answered, 0 not answered"),
            "{message}"
        );
        let duplicate = format!("{address} is a duplicate address: 2 stations have it: ");
        assert!(message.contains(&duplicate), "{message}");
    }
}

/// The number of packets that tcpdump finds in a capture.
fn counted(capture: &[u8]) -> usize {
    use std::io::Write;
    let mut child = Command::new("tcpdump")
        .args(["-n", "-r", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(capture).unwrap();
    let read = ends(child);
    let complaint = text(&read.stderr);
    assert!(
        read.status.success() && !complaint.contains("truncated"),
        "{complaint}"
    );
    text(&read.stdout)
        .lines()
        .filter(|l| l.contains("ICMP echo"))
        .count()
}

#[test]
fn packets_are_shown_as_they_pass() {
    let Some(link) = Link::new(1) else { return };
    let daemon = link.daemon();
    let ping = |count: u32| {
        let line = format!("ping -n -q -c {count} -i 0.05 -W 2 10.7.0.1");
        assert!(link.hosts[0].does(30, &line));
    };
    let mut child = start(&daemon, "monitor lan filter icmp");
    let mut out = BufReader::new(child.stdout.take().unwrap());
    std::thread::sleep(Duration::from_millis(500));
    ping(3);
    for number in 0..6 {
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let words: Vec<&str> = line.split(' ').collect();
        let direction = ["rx", "tx"][number % 2];
        assert_eq!((words[1], words[2]), ("lan", direction), "{line}");
        assert!(
            words[0].len() == 15 && line.contains("10.7.0.9") && line.contains("echo"),
            "{line}"
        );
        assert!(!line.contains("bad"), "{line}");
    }
    signal(child.id(), "INT");
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "6 packets, 0 lost\n");
    assert!(child.wait().unwrap().success());
    // A run with a count ends automatically; drops are shown with their reason.
    let counted = start(&daemon, "monitor any rx count 2 filter icmp");
    let drops = start(&daemon, "monitor lan drop count 1");
    std::thread::sleep(Duration::from_millis(500));
    ping(3);
    link.hosts[0].does(5, "ping -n -q -c 1 -W 1 -t 1 203.0.113.1");
    link.hosts[0].ip("route add 203.0.113.0/24 via 10.7.0.1");
    link.hosts[0].does(5, "ping -n -q -c 1 -W 1 203.0.113.1");
    let counted = text(&ends(counted).stdout);
    assert_eq!(counted.lines().count(), 3, "{counted}");
    assert!(counted.ends_with("2 packets, 0 lost\n"), "{counted}");
    let drops = text(&ends(drops).stdout);
    assert!(
        drops.contains(" lan drop ") && drops.contains(": "),
        "{drops}"
    );
}

#[test]
fn a_capture_on_standard_output_is_read_by_tcpdump() {
    if Command::new("tcpdump").arg("--version").output().is_err() {
        println!("SKIP: there is no tcpdump");
        return;
    }
    let Some(link) = Link::new(1) else { return };
    let daemon = link.daemon();
    let child = start(&daemon, "monitor lan pcapng filter icmp");
    let id = child.id();
    let reader = std::thread::spawn(move || ends(child));
    std::thread::sleep(Duration::from_millis(500));
    let ping = "ping -n -q -c 50 -i 0.01 -W 2 10.7.0.1";
    assert!(link.hosts[0].does(30, ping));
    signal(id, "INT");
    let out = reader.join().unwrap();
    assert!(out.status.success(), "{}", text(&out.stderr));
    assert_eq!(text(&out.stderr), "100 packets, 0 lost\n");
    assert_eq!(counted(&out.stdout), 100);
    // A capture without packets is valid, too.
    let child = start(&daemon, "monitor lan pcapng filter tcp");
    let id = child.id();
    std::thread::sleep(Duration::from_millis(500));
    signal(id, "INT");
    assert_eq!(counted(&ends(child).stdout), 0);
}

#[test]
fn a_client_that_does_not_read_loses_packets_and_delays_no_other() {
    let daemon = Daemon::start("", &[]);
    daemon.ok("create packet-generator interface pg0");
    daemon.ok("set interface state pg0 up");
    let begun = Instant::now();
    // Its pipe fills first, then its socket, then its records.
    let child = start(&daemon, "monitor pg0 pcapng");
    std::thread::sleep(Duration::from_millis(500));
    daemon.ok(
        "packet-generator new name s interface pg0 limit 200000 template { eth / payload 1000 }",
    );
    daemon.ok("packet-generator enable s");
    let sent = |d: &Daemon| {
        d.json("show packet-generator")["streams"][0]["sent"].as_u64() == Some(200_000)
    };
    while !sent(&daemon) {
        assert!(begun.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(20));
    }
    let asked = Instant::now();
    daemon.ok("show version");
    assert!(asked.elapsed() < Duration::from_secs(2));
    signal(child.id(), "INT");
    let out = ends(child);
    let message = text(&out.stderr);
    let number = |at: usize| -> u64 {
        let word = message.split(' ').nth(at).unwrap();
        word.parse().unwrap()
    };
    let (shown, lost) = (number(0), number(2));
    assert!(lost > 0 && shown > 0, "{message}");
    assert_eq!(shown + lost, 200_000, "{message}");
    // Every block of the file is complete.
    let file = daemon.folder.file("c.pcapng");
    std::fs::write(&file, &out.stdout).unwrap();
    assert_eq!(support::frames(&file).len() as u64, shown);
    // A client that is killed is removed: more clients than the limit can come one after the other.
    for _ in 0..6 {
        let mut child = start(&daemon, "monitor pg0");
        std::thread::sleep(Duration::from_millis(100));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let last = start(&daemon, "monitor pg0");
    std::thread::sleep(Duration::from_millis(300));
    signal(last.id(), "INT");
    assert_eq!(text(&ends(last).stdout), "0 packets, 0 lost\n");
}
