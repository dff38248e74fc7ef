//! The test bed of a week: hosts a and b, the router between them with LCP taps and FRR on them, and a second Volley at the
//! other ends of interfaces.

use super::scenes::Far;
use super::support::bed::{Bed, Space, must};
use super::support::mirror::{in_step, soon};
use super::support::pinging::Pinging;
use super::support::routing::{FRR, Routing, SETTLE, able, within};
use super::support::users::Users;
use super::support::{Daemon, Folder, signal};
use std::process::{Child, Command, Stdio};

/// FRR on the LCP taps of a router, and at one or both of the bed's hosts, with BGP between them.
pub struct Speakers {
    router: Routing,
    _hosts: Vec<Routing>,
}

/// The network of a host: 198.51.NET.0/24 is behind the host in 10.NET.0.0/16.
pub fn behind(net: u16) -> String {
    format!("198.51.{net}.1")
}

fn neighbor(address: &str, number: u32) -> String {
    let peer = format!(" neighbor {address}");
    format!("{peer} remote-as {number}\n{peer} timers 1 3\n{peer} timers connect 1\n")
}

/// A configuration of bgpd.
fn bgp(number: u32, id: &str, neighbors: &str, family: &str) -> String {
    format!(
        "hostname as{number}\nlog file FILE informational\nrouter bgp {number}\n bgp router-id {id}\n bgp log-neighbor-changes\n \
         no bgp ebgp-requires-policy\n no bgp network import-check\n{neighbors} address-family ipv4 unicast\n{family} exit-address-family\n"
    )
}

fn speak(space: String, name: &str, config: &str) -> Routing {
    let mut routing = Routing::new(space);
    routing.seconds = 5400;
    routing.frr("zebra", &format!("hostname {name}\n"));
    let log = routing.folder.file("changes.log").display().to_string();
    routing.frr("bgpd", &config.replace("FILE", &log));
    routing
}

impl Speakers {
    /// None, with a printed reason, if FRR is not installed. `hosts` are names with the numbers of their networks.
    pub fn start(bed: &Bed, taps: &Space, hosts: &[(&str, u16)]) -> Option<Speakers> {
        let programs = ["zebra", "bgpd"].map(|name| format!("{FRR}/{name}"));
        if !able(&programs.each_ref().map(String::as_str)) {
            return None;
        }
        let all: String = hosts
            .iter()
            .map(|(_, net)| neighbor(&format!("10.{net}.0.2"), 65_000 + u32::from(*net)))
            .collect();
        let router = speak(
            taps.0.clone(),
            "router",
            &bgp(65_000, "10.77.0.1", &all, ""),
        );
        // A host waits for the router to connect: two simultaneous connections would collide, which takes a session down.
        let host = |(host, net): &(&str, u16)| {
            let at_router = format!("10.{net}.0.1");
            bed.ip(host, "link set lo up");
            bed.ip(host, &format!("addr add {}/24 dev lo", behind(*net)));
            let config = bgp(
                65_000 + u32::from(*net),
                &format!("10.{net}.0.2"),
                &(neighbor(&at_router, 65_000) + &format!(" neighbor {at_router} passive\n")),
                &format!("  network 198.51.{net}.0/24\n"),
            );
            speak(bed.name(host), host, &config)
        };
        let _hosts = hosts.iter().map(host).collect();
        Some(Speakers { router, _hosts })
    }

    /// The router's log of session changes.
    pub fn changes(&self) -> String {
        let file = self.router.folder.file("changes.log");
        std::fs::read_to_string(file).unwrap_or_default()
    }

    /// Waits until the router forwards to the networks that a host announces.
    pub fn announced(&self, daemon: &Daemon, net: u16) {
        let route = format!("show ip fib {}", behind(net));
        let via = format!("via 10.{net}.0.2");
        let there = within(SETTLE, || daemon.ok(&route).contains(&via));
        assert!(
            there,
            "no route by BGP to {}: {}\n{}",
            behind(net),
            daemon.ok(&route),
            self.changes()
        );
    }

    /// How often sessions came up and went down.
    pub fn ups_and_downs(&self) -> (usize, usize) {
        let message = self.changes();
        let all = message.lines().filter(|l| l.contains("%ADJCHANGE"));
        let (ups, downs): (Vec<&str>, Vec<&str>) = all.partition(|l| l.contains(" Up"));
        (ups.len(), downs.len())
    }
}

/// A script that runs until it is dropped.
pub struct Flood(Child);

impl Flood {
    fn start(script: &str) -> Flood {
        let mut command = Command::new("timeout");
        command.args(["-k", "1", "3000", "sh", "-c", script]);
        let quiet = Stdio::null;
        let child = command.stdout(quiet()).stderr(quiet()).spawn();
        Flood(child.unwrap())
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        // `timeout` passes the signal to all processes that it has started.
        signal(self.0.id(), "TERM");
        let _ = self.0.wait();
    }
}

pub struct Bench {
    pub bed: Bed,
    pub folder: Folder,
    /// The tested router. An ordinary user types its commands.
    pub daemon: Daemon,
    _users: Users,
    /// The Volley at the other ends.
    pub peer: Daemon,
    /// The namespaces of the LCP taps, of the router's kernel interfaces, and of their other ends.
    pub taps: Space,
    pub wires: Space,
    pub peers: Space,
    pub speakers: Option<Speakers>,
}

impl Bench {
    pub fn new() -> Option<Bench> {
        let (bed, users) = (Bed::new()?, Users::new()?);
        let space = |at: &str| {
            let space = Space::new(bed.name(at)).unwrap();
            space.ip("link set lo up");
            space
        };
        let (taps, wires, peers) = (space("k"), space("w"), space("p"));
        // The log keeps a limited number of records in memory: without a record of every change, growth of memory shows leaks.
        let log = ["--log", "warn,daemon=info"];
        let daemon = bed.router_of(users.daemon_of_the_group("", &log));
        for end in ["left", "right"] {
            daemon.ok(&format!("lcp create {end} host-if {end} netns {}", taps.0));
        }
        in_step(&daemon);
        bed.soon_through("at the start");
        let speakers = Speakers::start(&bed, &taps, &[("a", 77)]);
        if let Some(speakers) = &speakers {
            speakers.announced(&daemon, 77);
        }
        Some(Bench {
            bed,
            folder: Folder::new(),
            daemon,
            _users: users,
            peer: Daemon::start("", &[]),
            taps,
            wires,
            peers,
            speakers,
        })
    }

    /// Creates a cable between the router's namespace and the peers', with host .2 of a network at its end. Returns the
    /// router's namespace.
    pub fn cable(&self, name: &str, net: u8) -> &str {
        let (here, there) = (&self.wires, &self.peers);
        here.ip(&format!(
            "link add {name} type veth peer name {name} netns {}",
            there.0
        ));
        here.ip(&format!("link set {name} up"));
        there.ip(&format!("link set {name} up"));
        there.ip(&format!("addr add 10.90.{net}.2/24 dev {name}"));
        &self.wires.0
    }

    /// Pings between the hosts, of both versions.
    pub fn pinging(&self) -> [Pinging; 2] {
        ["10.78.0.2", "2001:db8:78::2"].map(|to| Pinging::start(&self.bed, to, "0.01"))
    }

    /// Pings from host .2 of a network to the router until it is dropped, with or without replies.
    pub fn flood(&self, from: Far, net: u8) -> Flood {
        let router = format!("10.90.{net}.1");
        let socket = self.peer.folder.file("s").display().to_string();
        let ping = match from {
            Far::Kernel => format!(
                "ip netns exec {} ping -q -i 0.005 -w 1 {router}",
                self.peers.0
            ),
            Far::Volley => format!(
                "{} ctl --socket {socket} ping {router} repeat 100 interval 10 timeout 100",
                env!("CARGO_BIN_EXE_volley")
            ),
        };
        // A ping ends if there is no interface to the router.
        Flood::start(&format!("while :; do {ping}; sleep 0.05; done"))
    }

    /// Waits until host .2 of a network replies to the router.
    pub fn answered(&self, net: u8, what: &str) {
        let line = format!("ping 10.90.{net}.2 repeat 1 timeout 300");
        soon(what, || self.daemon.json(&line)["received"] == 1);
    }

    /// Kernel devices of every namespace of the router.
    pub fn devices(&self) -> Vec<String> {
        let of = |space: &str| {
            let message = must(&format!("ip -n {space} -o link"));
            let name = |line: &str| line.split(": ").nth(1).unwrap_or(line).to_owned();
            message.lines().map(name).collect::<Vec<_>>()
        };
        let bed = self.bed.name("r");
        let spaces = [&bed, &self.taps.0, &self.wires.0, &self.peers.0];
        spaces.into_iter().flat_map(|space| of(space)).collect()
    }
}
