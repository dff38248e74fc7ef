//! Namespaces for a router between two hosts. Needs root, `ip`, `ping` and Python.

use super::{Daemon, oracle, text};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Runs a program for at most `seconds`.
pub fn run(seconds: u32, words: &[&str]) -> Output {
    let mut command = Command::new("timeout");
    command.args(["-k", "1", &seconds.to_string()]).args(words);
    command.output().unwrap()
}

pub fn must(words: &str) -> String {
    let output = run(20, &words.split(' ').collect::<Vec<_>>());
    let message = text(&output.stderr);
    assert!(output.status.success(), "{words}: {message}");
    text(&output.stdout)
}

/// Waits until the kernel transmits by a device: for a moment after both ends of a pair are up it drops packets. `at` selects
/// the namespace in the syntax of `ip`: `-n SPACE`.
pub fn wait_until_up(at: &str, device: &str) {
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        let message = must(
            format!("ip {at} -o link show {device}")
                .replace("  ", " ")
                .trim(),
        );
        let down = ["qdisc noop ", "state DOWN", "NO-CARRIER"];
        if message.contains("LOWER_UP") && !down.iter().any(|d| message.contains(d)) {
            return;
        }
        assert!(
            Instant::now() < until,
            "{device} does not come up: {message}"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A network namespace; deleted on drop.
pub struct Space(pub String);

impl Space {
    /// None, with a printed reason, if it cannot be created.
    pub fn new(name: String) -> Option<Space> {
        let add = Command::new("ip").args(["netns", "add", &name]).output();
        if let Ok(add) = &add {
            if add.status.success() {
                return Some(Space(name));
            }
            let why = String::from_utf8_lossy(&add.stderr);
            assert!(!why.contains("File exists"), "two tests call it {name}");
        }
        println!("SKIP: network namespaces cannot be made (are we root?)");
        None
    }

    pub fn ip(&self, words: &str) -> String {
        must(&format!("ip -n {} {words}", self.0))
    }

    /// Whether a command succeeds.
    pub fn does(&self, seconds: u32, words: &str) -> bool {
        let line = format!("ip netns exec {} {words}", self.0);
        let words: Vec<&str> = line.split(' ').collect();
        run(seconds, &words).status.success()
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        let _ = run(10, &["ip", "netns", "del", &self.0]);
    }
}

/// Three namespaces: hosts a and b, each with an interface `e`, and r with the other ends, `left` and `right`.
pub struct Bed(String);

impl Bed {
    pub fn new() -> Option<Bed> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let bed = Bed(format!("neigh{}-{number}", std::process::id()));
        let there = |program: &str| Command::new(program).arg("-V").output().is_ok();
        let able = there("ip") && there("ping");
        let add = |name: String| run(10, &["ip", "netns", "add", &name]).status.success();
        if !able || !["a", "b", "r"].iter().all(|at| add(bed.name(at))) {
            println!("SKIP: it needs root, network namespaces and ping");
            return None;
        }
        for (host, end) in [("a", "left"), ("b", "right")] {
            let (here, there) = (bed.name("r"), bed.name(host));
            must(&format!(
                "ip -n {here} link add {end} type veth peer name e netns {there}"
            ));
            must(&format!("ip -n {here} link set {end} up"));
            must(&format!("ip -n {there} link set e up"));
            wait_until_up(&format!("-n {here}"), end);
            wait_until_up(&format!("-n {there}"), "e");
        }
        Some(bed)
    }

    pub fn name(&self, at: &str) -> String {
        format!("{}{at}", self.0)
    }

    pub fn ip(&self, at: &str, words: &str) -> String {
        must(&format!("ip -n {} {words}", self.name(at)))
    }

    pub fn exec(&self, at: &str, seconds: u32, words: &[&str]) -> Output {
        let name = self.name(at);
        let all = [&["ip", "netns", "exec", &name], words].concat();
        run(seconds, &all)
    }

    /// A router in r with `left` and `right`: 10.77.0.1/16 and 2001:db8:77::1/64 on left, 10.78.0.1 and 2001:db8:78::1 on
    /// right. Host a has .0.2 and ::2 in the first networks, host b in the second, and the router is the default gateway of
    /// both.
    pub fn router(&self) -> Daemon {
        self.router_with("")
    }

    /// The same with a configuration file.
    pub fn router_with(&self, config: &str) -> Daemon {
        self.router_by(config, &[])
    }

    /// The same with a configuration file and more arguments for the daemon.
    pub fn router_by(&self, config: &str, more: &[&str]) -> Daemon {
        self.router_of(Daemon::start(config, more))
    }

    /// The same with a daemon that runs and has no configuration yet.
    pub fn router_of(&self, mut daemon: Daemon) -> Daemon {
        let space = self.name("r");
        for (host, end, net) in [("a", "left", 77), ("b", "right", 78)] {
            daemon.ok(&format!(
                "create host-interface name {end} as {end} netns {space}"
            ));
            daemon.ok(&format!("set interface ip address {end} 10.{net}.0.1/16"));
            daemon.ok(&format!(
                "set interface ip6 address {end} 2001:db8:{net}::1/64"
            ));
            daemon.ok(&format!("set interface state {end} up"));
            self.ip(host, &format!("addr add 10.{net}.0.2/16 dev e"));
            self.ip(host, &format!("addr add 2001:db8:{net}::2/64 dev e nodad"));
            self.ip(host, &format!("route add default via 10.{net}.0.1"));
            self.ip(host, &format!("-6 route add default via 2001:db8:{net}::1"));
            self.ip(host, "link set lo up");
        }
        daemon.wait_for("both links", |d| {
            let all = d.json("show interface")["interfaces"].clone();
            all.as_array().unwrap().iter().all(|i| i["link"] == "up")
        });
        daemon
    }

    /// Sends `count` pings; returns how many were answered.
    pub fn pings(&self, at: &str, to: &str, count: u32, every: &str) -> u32 {
        let words = ["-i", every, "-c", &count.to_string(), "-W", "2", to];
        self.pings_with(at, &words)
    }

    /// The same with these arguments of `ping`.
    pub fn pings_with(&self, at: &str, words: &[&str]) -> u32 {
        let all = [&["ping", "-n", "-q"], words].concat();
        let message = text(&self.exec(at, 60, &all).stdout);
        let line = message
            .lines()
            .find(|l| l.contains(" received"))
            .unwrap_or("");
        let received = line.split(", ").nth(1).unwrap_or("0");
        received.split(' ').next().unwrap().parse().unwrap()
    }

    /// Creates the cable between the router and a host again: pair, addresses and routes of [`Bed::router`].
    pub fn plug_in(&self, host: &str, end: &str, net: u16) {
        let (here, there) = (self.name("r"), self.name(host));
        must(&format!(
            "ip -n {here} link add {end} type veth peer name e netns {there}"
        ));
        self.ip(host, &format!("addr add 10.{net}.0.2/16 dev e"));
        self.ip(host, "link set e up");
        self.ip(host, &format!("addr add 2001:db8:{net}::2/64 dev e nodad"));
        self.ip(host, &format!("route add default via 10.{net}.0.1"));
        self.ip(host, &format!("-6 route add default via 2001:db8:{net}::1"));
    }

    /// Waits until host a reaches host b through the router.
    pub fn soon_through(&self, what: &str) {
        let end = Instant::now() + Duration::from_secs(20);
        while self.pings("a", "10.78.0.2", 2, "0.2") < 2
            || self.pings("a", "2001:db8:78::2", 2, "0.2") < 2
        {
            assert!(Instant::now() < end, "{what}: a does not reach b");
        }
    }

    /// The number of packet sockets in a namespace.
    fn packet_sockets(&self, at: &str) -> usize {
        text(&self.exec(at, 10, &["cat", "/proc/net/packet"]).stdout)
            .lines()
            .count()
    }

    /// Runs a Python program in a namespace, with `s` as a raw socket on `e`, which receives when this function returns.
    pub fn python(&self, at: &str, body: &str) -> std::process::Child {
        let head = "import socket,struct,sys,time\n\
            s=socket.socket(socket.AF_PACKET,socket.SOCK_RAW,socket.htons(3)); s.bind(('e',0))\n\
            me=s.getsockname()[4]\n";
        let python = oracle::python().unwrap();
        let mut command = Command::new("timeout");
        command
            .args(["-k", "1", "50", "ip", "netns", "exec", &self.name(at)])
            .arg(python)
            .args(["-c", &format!("{head}{body}")]);
        let (before, end) = (
            self.packet_sockets(at),
            Instant::now() + Duration::from_secs(20),
        );
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        // A program that only sends may end before this function sees its socket.
        while self.packet_sockets(at) <= before && child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < end, "the program has no socket");
            std::thread::sleep(Duration::from_millis(10));
        }
        child
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        for at in ["a", "b", "r"] {
            let _ = run(10, &["ip", "netns", "del", &self.name(at)]);
        }
    }
}

/// An interface of a daemon as JSON.
pub fn interface(daemon: &Daemon, name: &str) -> serde_json::Value {
    daemon.json(&format!("show interface {name}"))["interfaces"][0].clone()
}

/// Waits until the link of an interface is `up` or `down`.
pub fn wait_for_link(daemon: &mut Daemon, name: &str, link: &str) {
    daemon.wait_for(&format!("{name} {link}"), |d| {
        interface(d, name)["link"] == link
    });
}

/// The sum of the counters that `mine` selects by node and name.
fn counted(daemon: &Daemon, mine: impl Fn(&str, &str) -> bool) -> u64 {
    let all = daemon.json("show errors");
    let rows = all["errors"].as_array().unwrap();
    let word = |value: &serde_json::Value| value.as_str().unwrap_or("").to_owned();
    rows.iter()
        .filter(|r| mine(&word(&r["node"]), &word(&r["reason"])))
        .map(|r| r["count"].as_u64().unwrap())
        .sum()
}

/// A node's counter.
pub fn counter(daemon: &Daemon, node: &str, name: &str) -> u64 {
    counted(daemon, |of, reason| of == node && reason == name)
}

/// The number of packets that were counted by the input nodes, by the node `judge` that parses neighbour messages, or by the
/// node that replies.
pub fn judged(daemon: &Daemon, judge: &str, answers: &str) -> u64 {
    let before = ["ethernet-input", "ip4-input", "ip6-input"];
    let reported = ["told", "tell-full", "answers"];
    counted(daemon, |node, reason| {
        let judged = node == judge && !reported.contains(&reason);
        judged || node == answers || before.contains(&node)
    })
}

pub fn mac_of(bed: &Bed, at: &str) -> String {
    let message = bed.ip(at, "-o link show e");
    let after = message.split("link/ether ").nth(1).unwrap();
    after.split(' ').next().unwrap().to_owned()
}

/// The resident memory of a process.
pub fn resident_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Whether Python has scapy.
pub fn has_scapy() -> bool {
    let able = Command::new(oracle::python().unwrap_or_default())
        .args(["-c", "import scapy.all"])
        .stderr(Stdio::null())
        .status();
    able.is_ok_and(|s| s.success())
}
