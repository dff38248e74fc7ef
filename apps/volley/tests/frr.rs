//! Real routing daemons over Volley: FRR (zebra, ospfd, bgpd) and BIRD run in namespaces on the LCP taps of interfaces.
//!
//! Needs root, `ip`, `ping`, and Debian's packages `frr` and `bird2`; without them the tests say so and pass.

mod support;

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use support::bed::{Space, must, run};
use support::routing::{BIRD, FRR, Routing, SETTLE, able, within};
use support::{Daemon, text};

/// Namespaces that are deleted on drop.
struct Net {
    name: String,
    spaces: Vec<Space>,
}

impl Net {
    fn new() -> Option<Net> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("frr{}-{number}", std::process::id());
        let mut net = Net {
            name,
            spaces: Vec::new(),
        };
        if Command::new("ping").arg("-V").output().is_err() {
            println!("SKIP: ping is not there");
            return None;
        }
        let wire = Space::new(net.name.clone() + "w")?;
        net.spaces.push(wire);
        Some(net)
    }

    fn space(&mut self, at: &str) -> String {
        let space = Space::new(format!("{}{at}", self.name)).unwrap();
        space.ip("link set lo up");
        let name = space.0.clone();
        self.spaces.push(space);
        name
    }

    /// The namespace of all cables.
    fn wire(&self) -> &str {
        &self.spaces[0].0
    }

    /// A veth pair between two routers.
    fn cable(&self, one: &str, other: &str) {
        let wire = self.wire();
        must(&format!(
            "ip -n {wire} link add {one} type veth peer name {other}"
        ));
        must(&format!("ip -n {wire} link set {one} up"));
        must(&format!("ip -n {wire} link set {other} up"));
    }

    /// A host at the other end of a router's interface.
    fn host(&mut self, name: &str, end: &str, address: &str, way_out: &str) -> String {
        let space = self.space(name);
        let wire = self.wire();
        must(&format!(
            "ip -n {wire} link add {end} type veth peer name e netns {space}"
        ));
        must(&format!("ip -n {wire} link set {end} up"));
        must(&format!("ip -n {space} link set e up"));
        must(&format!("ip -n {space} addr add {address} dev e"));
        must(&format!("ip -n {space} route add default via {way_out}"));
        space
    }
}

/// A Volley with LCP taps, and the routing daemons on them.
struct Router {
    daemon: Daemon,
    routing: Routing,
}

impl Router {
    /// A router with these interfaces and addresses, and 10.255.0.N/32 as its loopback address. `end.5` is VLAN 5 on `end`,
    /// which has no address.
    fn new(net: &mut Net, number: u32, ends: &[(&str, &str)]) -> Router {
        let (daemon, space) = (Daemon::start("", &[]), net.space(&format!("k{number}")));
        for (end, address) in ends {
            let wire = net.wire();
            let (name, vlan) = end.split_once('.').unwrap_or((end, ""));
            daemon.ok(&format!(
                "create host-interface name {name} as {name} netns {wire}"
            ));
            if !vlan.is_empty() {
                daemon.ok(&format!("set interface state {name} up"));
                daemon.ok(&format!("create sub-interfaces {name} {vlan}"));
            }
            daemon.ok(&format!("set interface ip address {end} {address}"));
            daemon.ok(&format!("set interface state {end} up"));
            daemon.ok(&format!("lcp create {end} host-if {end} netns {space}"));
        }
        must(&format!(
            "ip -n {space} addr add 10.255.0.{number}/32 dev lo"
        ));
        let routing = Routing::new(space);
        Router { daemon, routing }
    }

    fn frr_all(&mut self, number: u32, ospf: &str, bgp: &str) {
        self.routing.frr("zebra", &format!("hostname r{number}\n"));
        self.routing.frr("ospfd", &format!(
            "hostname r{number}\n{ospf}router ospf\n ospf router-id 10.255.0.{number}\n network 10.1.0.0/16 area 0\n network 10.255.0.0/16 area 0\n"
        ));
        self.routing.frr(
            "bgpd",
            &format!(
                "hostname r{number}\nrouter bgp 65000\n bgp router-id 10.255.0.{number}\n{bgp}"
            ),
        );
    }

    fn kernel(&self, words: &str) -> String {
        must(&format!("ip -n {} {words}", self.routing.space))
    }

    /// The state of the kernel and of the routing daemons, for the message of a failure.
    fn all(&self) -> String {
        let kernel = ["addr", "neigh", "route"].map(|what| self.kernel(what));
        let shown = ["show interface", "show ip neighbors", "show errors"];
        kernel.concat() + &shown.map(|c| self.daemon.ok(c)).concat()
    }

    fn fib(&self, what: &str) -> String {
        self.daemon.ok(&format!("show ip fib {what}"))
    }

    /// Waits until the kernel has a BGP route to a network.
    fn learns(&self, network: &str) {
        let route = format!("route show {network}");
        let there = within(SETTLE, || self.kernel(&route).contains("proto bgp"));
        assert!(there, "{}", self.all());
    }

    fn in_step(&self) {
        let mut last = String::new();
        let held = within(Duration::from_secs(20), || {
            last = self.daemon.ok("lcp audit");
            last.contains(" 0 differ")
        });
        assert!(held, "{last}");
    }
}

fn pings(space: &str, to: &str, count: u32, every: &str) -> u32 {
    let count = count.to_string();
    let words = [
        "ip", "netns", "exec", space, "ping", "-n", "-q", "-i", every, "-c", &count, "-W", "1", to,
    ];
    let message = text(&run(60, &words).stdout);
    let line = message
        .lines()
        .find(|l| l.contains(" received"))
        .unwrap_or("");
    let received = line.split(", ").nth(1).unwrap_or("0");
    received.split(' ').next().unwrap().parse().unwrap()
}

/// Whether FRR is installed, with the daemons that these tests need.
fn has_frr() -> bool {
    let programs = ["zebra", "ospfd", "bgpd"].map(|name| format!("{FRR}/{name}"));
    able(&programs.each_ref().map(String::as_str))
}

/// OSPF with short hello intervals on these interfaces.
fn ospf(ends: &[&str]) -> String {
    let one = |end: &&str| {
        format!(
            "interface {end}\n ip ospf network point-to-point\n ip ospf hello-interval 1\n ip ospf dead-interval 5\n"
        )
    };
    ends.iter().map(one).collect()
}

/// BGP with the routers of these numbers, by their loopback addresses, announcing one network.
fn bgp(number: u32, others: &[u32], network: &str) -> String {
    let one = |other: &u32| {
        let peer = format!(" neighbor 10.255.0.{other}");
        format!(
            "{peer} remote-as 65000\n{peer} update-source 10.255.0.{number}\n{peer} timers 3 10\n{peer} timers connect 2\n"
        )
    };
    let all: String = others.iter().map(one).collect();
    let tell = match network {
        "" => String::new(),
        network => format!(" address-family ipv4 unicast\n  network {network}\n"),
    };
    all + &tell
}

/// Two routers with a link between them and a host behind each.
fn pair(net: &mut Net) -> ([Router; 2], [String; 2]) {
    net.cable("one", "two");
    let a = net.host("a", "la", "10.10.1.2/24", "10.10.1.1");
    let b = net.host("b", "lb", "10.10.2.2/24", "10.10.2.1");
    let ends1 = [("one", "10.1.12.1/24"), ("la", "10.10.1.1/24")];
    let ends2 = [("two", "10.1.12.2/24"), ("lb", "10.10.2.1/24")];
    let r1 = Router::new(net, 1, &ends1);
    let r2 = Router::new(net, 2, &ends2);
    ([r1, r2], [a, b])
}

#[test]
fn two_routers_speak_ospf_and_bgp_over_volley() {
    if !has_frr() {
        return;
    }
    let Some(mut net) = Net::new() else { return };
    let ([mut r1, mut r2], [a, b]) = pair(&mut net);
    r1.frr_all(1, &ospf(&["one"]), &bgp(1, &[2], "10.10.1.0/24"));
    r2.frr_all(2, &ospf(&["two"]), &bgp(2, &[1], "10.10.2.0/24"));
    r1.learns("10.10.2.0/24");
    r2.learns("10.10.1.0/24");
    assert!(
        within(SETTLE, || pings(&a, "10.10.2.2", 1, "0.2") == 1),
        "{}",
        r1.daemon.ok("show errors")
    );
    assert_eq!(pings(&b, "10.10.1.2", 5, "0.1"), 5);
    let shown = r1.fib("10.10.2.2");
    assert!(
        shown.contains("lcp-rt") && shown.contains("via 10.1.12.2"),
        "{shown}"
    );
    assert!(r1.fib("10.255.0.2").contains("via 10.1.12.2"), "by OSPF");
    for router in [&r1, &r2] {
        router.in_step();
    }
}

#[test]
fn routers_speak_ospf_and_bgp_under_vlan_tags() {
    if !has_frr() {
        return;
    }
    let Some(mut net) = Net::new() else { return };
    net.cable("one", "two");
    let a = net.host("a", "la", "10.10.1.2/24", "10.10.1.1");
    net.host("b", "lb", "10.10.2.2/24", "10.10.2.1");
    let ends1 = [("one.100", "10.1.12.1/24"), ("la", "10.10.1.1/24")];
    let ends2 = [("two.100", "10.1.12.2/24"), ("lb", "10.10.2.1/24")];
    let mut r1 = Router::new(&mut net, 1, &ends1);
    let mut r2 = Router::new(&mut net, 2, &ends2);
    r1.frr_all(1, &ospf(&["one.100"]), &bgp(1, &[2], "10.10.1.0/24"));
    r2.frr_all(2, &ospf(&["two.100"]), &bgp(2, &[1], "10.10.2.0/24"));
    r1.learns("10.10.2.0/24");
    assert!(within(SETTLE, || pings(&a, "10.10.2.2", 1, "0.2") == 1));
    let shown = r1.fib("10.10.2.2");
    assert!(
        shown.contains("via 10.1.12.2") && shown.contains("one.100"),
        "{shown}"
    );
    // The kernels also reach each other through two tags; the addresses are configured in the kernels.
    for (router, parent, host) in [(&r1, "one", 1), (&r2, "two", 2)] {
        let (daemon, space) = (&router.daemon, &router.routing.space);
        daemon.ok(&format!(
            "create sub-interfaces {parent} 7 dot1ad 200 inner-dot1q 7 exact-match"
        ));
        daemon.ok(&format!("lcp create {parent}.7 host-if qinq netns {space}"));
        // Until both sides have seen a new LCP tap, Volley's state of the tap takes precedence over the kernel's.
        router.in_step();
        router.kernel("link set qinq up");
        router.kernel(&format!("addr add 10.1.7.{host}/24 dev qinq"));
        router.in_step();
        let shown = daemon.ok("show interface address");
        assert!(shown.contains(&format!("10.1.7.{host}/24")), "{shown}");
    }
    let seen = within(SETTLE, || {
        pings(&r1.routing.space, "10.1.7.2", 1, "0.2") == 1
    });
    assert!(seen, "{}\n{}", r1.all(), r2.all());
    // The state of an LCP tap applies to its sub-interface.
    r1.kernel("link set one.100 down");
    let gone = within(SETTLE, || {
        let rows = r1.daemon.json("show interface one.100");
        rows["interfaces"][0]["state"] == "down"
    });
    assert!(gone, "{}", r1.daemon.ok("show interface"));
    r1.kernel("link set one.100 up");
    assert!(within(SETTLE, || pings(&a, "10.10.2.2", 1, "0.2") == 1));
    r1.in_step();
    r1.daemon.ok("lcp delete one.7");
    assert!(!r1.kernel("-o link").contains("qinq"));
}

/// Routes that the operator configures at one router reach the others: LCP sync writes them to the kernel, and FRR reads them
/// there.
#[test]
fn frr_hands_on_what_is_configured_in_volley() {
    if !has_frr() {
        return;
    }
    let Some(mut net) = Net::new() else { return };
    let ([mut r1, mut r2], [a, b]) = pair(&mut net);
    must(&format!("ip -n {b} addr add 10.20.0.1/16 dev lo"));
    // The other router has no route to the host that is the next hop.
    let tell = " address-family ipv4 unicast\n  redistribute kernel\n  neighbor 10.255.0.1 next-hop-self\n exit-address-family\n";
    r1.frr_all(1, &ospf(&["one"]), &bgp(1, &[2], "10.10.1.0/24"));
    r2.frr_all(2, &ospf(&["two"]), &(bgp(2, &[1], "") + tell));
    r2.daemon.ok("ip route add 10.20.0.0/16 via 10.10.2.2");
    r1.learns("10.20.0.0/16");
    assert!(within(SETTLE, || pings(&a, "10.20.0.1", 1, "0.2") == 1));
    let shown = r1.fib("10.20.0.1");
    assert!(
        shown.contains("lcp-rt") && shown.contains("via 10.1.12.2"),
        "{shown}"
    );
    r2.daemon.ok("ip route del 10.20.0.0/16");
    let route = "route show 10.20.0.0/16";
    assert!(
        within(SETTLE, || r1.kernel(route).is_empty()),
        "{}",
        r1.all()
    );
    for router in [&r1, &r2] {
        router.in_step();
    }
}

/// A next hop outside the prefixes of the link: FRR is configured with `onlink`, and the route in Volley has it, too.
#[test]
fn a_static_route_of_frr_arrives_as_onlink() {
    if !has_frr() {
        return;
    }
    let Some(mut net) = Net::new() else { return };
    let ([mut r1, _], _) = pair(&mut net);
    r1.routing.frr("zebra", "hostname r1\n");
    let routes = "ip route 198.51.100.0/24 203.0.113.9 one onlink\n\
                  ipv6 route 2001:db8:d::/48 2001:db8:ffff::9 one onlink\n";
    r1.routing.frr("staticd", &format!("hostname r1\n{routes}"));
    for (command, route) in [
        (
            "show ip fib",
            "198.51.100.0/24 via 203.0.113.9 one onlink proto lcp-rt",
        ),
        (
            "show ip6 fib",
            "2001:db8:d::/48 via 2001:db8:ffff::9 one onlink proto lcp-rt",
        ),
    ] {
        let shown = || r1.daemon.ok(command).replace('"', "");
        let there = within(SETTLE, || shown().contains(route));
        assert!(there, "{}\n{}", shown(), r1.all());
    }
    r1.in_step();
}

/// Three routers: two links between the first two, one between each of them and the third; a host behind the first and one
/// behind the third.
fn triangle(net: &mut Net) -> ([Router; 3], [String; 2]) {
    net.cable("a12", "a21");
    net.cable("b12", "b21");
    net.cable("c13", "c31");
    net.cable("d23", "d32");
    let a = net.host("a", "la", "10.10.1.2/24", "10.10.1.1");
    let b = net.host("b", "lb", "10.10.3.2/24", "10.10.3.1");
    let ends1 = [
        ("a12", "10.1.1.1/24"),
        ("b12", "10.1.2.1/24"),
        ("c13", "10.1.3.1/24"),
        ("la", "10.10.1.1/24"),
    ];
    let ends2 = [
        ("a21", "10.1.1.2/24"),
        ("b21", "10.1.2.2/24"),
        ("d23", "10.1.4.2/24"),
    ];
    let ends3 = [
        ("c31", "10.1.3.3/24"),
        ("d32", "10.1.4.3/24"),
        ("lb", "10.10.3.1/24"),
    ];
    let mut r1 = Router::new(net, 1, &ends1);
    let mut r2 = Router::new(net, 2, &ends2);
    let mut r3 = Router::new(net, 3, &ends3);
    r1.frr_all(
        1,
        &ospf(&["a12", "b12", "c13"]),
        &bgp(1, &[2, 3], "10.10.1.0/24"),
    );
    r2.frr_all(2, &ospf(&["a21", "b21", "d23"]), &bgp(2, &[1, 3], ""));
    r3.frr_all(3, &ospf(&["c31", "d32"]), &bgp(3, &[1, 2], "10.10.3.0/24"));
    ([r1, r2, r3], [a, b])
}

#[test]
fn three_routers_share_two_ways_and_a_cut_converges() {
    if !has_frr() {
        return;
    }
    let Some(mut net) = Net::new() else { return };
    let ([r1, r2, r3], [a, b]) = triangle(&mut net);
    let there = within(SETTLE, || pings(&a, "10.10.3.2", 1, "0.2") == 1);
    assert!(
        there,
        "{}{}",
        r1.kernel("route"),
        r1.daemon.ok("show errors")
    );
    let two = |r: &Router| {
        let shown = r.fib("10.255.0.2");
        shown.contains("via 10.1.1.2") && shown.contains("via 10.1.2.2")
    };
    assert!(
        within(SETTLE, || two(&r1)),
        "two ways of one cost: {}",
        r1.fib("10.255.0.2")
    );
    assert!(
        r1.fib("10.10.3.2").contains("via 10.1.3.3"),
        "the short way"
    );
    for router in [&r1, &r2, &r3] {
        router.in_step();
    }
    must(&format!("ip -n {} link set c13 down", net.wire()));
    let start = Instant::now();
    let found = within(SETTLE, || pings(&a, "10.10.3.2", 1, "0.2") == 1);
    assert!(found, "{}", r1.kernel("route"));
    println!(
        "1 of 1 cuts: the way round was found after {} ms",
        start.elapsed().as_millis()
    );
    assert!(within(SETTLE, || !r1
        .fib("10.10.3.2")
        .contains("via 10.1.3.3")));
    assert_eq!(pings(&b, "10.10.1.2", 10, "0.1"), 10);
    for router in [&r1, &r2, &r3] {
        router.in_step();
    }
    must(&format!("ip -n {} link set c13 up", net.wire()));
    let back = within(SETTLE, || r1.fib("10.10.3.2").contains("via 10.1.3.3"));
    assert!(back, "{}", r1.fib("10.10.3.2"));
    r1.in_step();
}

#[test]
fn bird_speaks_ospf_over_volley() {
    if !able(&[BIRD]) {
        return;
    }
    let Some(mut net) = Net::new() else { return };
    let ([mut r1, mut r2], [a, _]) = pair(&mut net);
    for (number, end, lan, router) in [(1, "one", "la", &mut r1), (2, "two", "lb", &mut r2)] {
        let config = format!(
            "router id 10.255.0.{number};\nprotocol device {{ scan time 1; }}\n\
             protocol kernel {{ ipv4 {{ export all; }}; }}\n\
             protocol ospf v2 {{ ipv4 {{ import all; export none; }}; area 0 {{ \
             interface \"{end}\" {{ type ptp; hello 1; dead 5; }}; interface \"{lan}\" {{ stub; }}; }}; }}\n"
        );
        router.routing.bird(&config);
    }
    let there = within(SETTLE, || {
        r1.kernel("route show 10.10.2.0/24").contains("proto bird")
    });
    assert!(
        there,
        "{}{}",
        r1.kernel("route"),
        r1.daemon.ok("show errors")
    );
    assert!(within(SETTLE, || pings(&a, "10.10.2.2", 1, "0.2") == 1));
    assert!(r1.fib("10.10.2.2").contains("lcp-rt"));
    for router in [&r1, &r2] {
        router.in_step();
    }
}
