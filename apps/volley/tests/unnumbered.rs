//! Unnumbered interfaces, against the kernel: two hosts with one address each and no network, and a router between them whose
//! links have no addresses.
//!
//! Needs root, `ip`, `ping` and Python; without them the tests say so and pass.

mod support;

use std::time::{Duration, Instant};
use support::bed::Bed;
use support::{Daemon, text};

/// A router whose links use the addresses of `loop0`: 10.99.0.1 and 2001:db8:99::1. Host a is 10.1.0.5 and 2001:db8:1::5, host
/// b the same with 6, and the router is the default gateway of both.
fn router(bed: &Bed) -> Daemon {
    let config = "[[interface]]\nname = \"loop0\"\nkind = \"pg\"\naddresses = [\"10.99.0.1/32\", \"2001:db8:99::1/128\"]\n";
    let mut daemon = Daemon::start(config, &[]);
    let space = bed.name("r");
    for (host, end, last) in [("a", "left", 5), ("b", "right", 6)] {
        daemon.ok(&format!(
            "create host-interface name {end} as {end} netns {space}"
        ));
        daemon.ok(&format!("set interface unnumbered {end} use loop0"));
        daemon.ok(&format!("set interface state {end} up"));
        bed.ip(host, &format!("addr add 10.1.0.{last}/32 dev e"));
        bed.ip(
            host,
            &format!("addr add 2001:db8:1::{last}/128 dev e nodad"),
        );
        bed.ip(host, "route add 10.99.0.1 dev e scope link");
        bed.ip(host, "route add default via 10.99.0.1 dev e onlink");
        bed.ip(host, "-6 route add 2001:db8:99::1 dev e");
        bed.ip(host, "-6 route add default via 2001:db8:99::1 dev e onlink");
        bed.ip(host, "link set lo up");
    }
    daemon.wait_for("all links", |d| {
        let all = d.json("show interface")["interfaces"].clone();
        all.as_array().unwrap().iter().all(|i| i["link"] == "up")
    });
    daemon
}

/// Lets the router learn a host without a route: the reply to its first packet may have no route yet.
fn heard(bed: &Bed, host: &str, to: &str) {
    let end = Instant::now() + Duration::from_secs(10);
    while bed.pings(host, to, 1, "0.2") == 0 {
        assert!(Instant::now() < end, "{host} does not reach {to}");
    }
}

/// The output of a ping with this TTL or hop limit.
fn trace(bed: &Bed, at: &str, to: &str, hops: &str) -> String {
    let words = [
        "ping", "-n", "-c", "2", "-i", "0.2", "-W", "2", "-t", hops, to,
    ];
    text(&bed.exec(at, 20, &words).stdout)
}

fn neighbor(daemon: &Daemon, interface: &str, address: &str) -> bool {
    let ip = if address.contains(':') { "ip6" } else { "ip" };
    let all = daemon.json(&format!("show {ip} neighbors"));
    let all = all["neighbors"].as_array().unwrap().clone();
    let mine = |n: &serde_json::Value| n["interface"] == interface && n["address"] == address;
    all.iter().any(|n| mine(n) && !n["mac"].is_null())
}

fn event(daemon: &Daemon, name: &str) -> u64 {
    let all = daemon.json("show ip neighbors")["events"].clone();
    let mine = all.as_array().unwrap().iter();
    let mine = mine.filter(|e| e["event"] == name);
    mine.map(|e| e["count"].as_u64().unwrap()).sum()
}

#[test]
fn hosts_without_a_network_reach_the_router_and_each_other() {
    let Some(bed) = Bed::new() else { return };
    let daemon = router(&bed);
    let shown = daemon.ok("show interface address");
    assert!(
        shown.contains("left (up):\n  unnumbered, uses loop0\n"),
        "{shown}"
    );
    // A host without a route is reached by the interface on which it was learned.
    for host in ["a", "b"] {
        for to in ["10.99.0.1", "2001:db8:99::1"] {
            heard(&bed, host, to);
            assert_eq!(bed.pings(host, to, 5, "0.05"), 5);
        }
    }
    for (end, last) in [("left", 5), ("right", 6)] {
        for address in [format!("10.1.0.{last}"), format!("2001:db8:1::{last}")] {
            assert!(neighbor(&daemon, end, &address), "{address}");
        }
    }
    let fib = daemon.ok("show ip fib 10.1.0.5");
    assert!(fib.contains("10.1.0.5/32") && fib.contains("left"), "{fib}");
    assert_eq!(bed.pings("a", "10.1.0.6", 5, "0.05"), 5);
    assert_eq!(bed.pings("b", "2001:db8:1::5", 5, "0.05"), 5);
    // The router's ICMP errors have the borrowed address as source.
    for (to, from) in [
        ("10.1.0.6", "10.99.0.1"),
        ("2001:db8:1::6", "2001:db8:99::1"),
    ] {
        let message = trace(&bed, "a", to, "1");
        assert!(message.contains(&format!("From {from}")), "{message}");
        assert!(trace(&bed, "a", to, "2").contains(" 2 received"));
    }
    for (to, from) in [
        ("10.1.0.5", "10.99.0.1"),
        ("2001:db8:1::5", "2001:db8:99::1"),
    ] {
        let message = daemon.ok(&format!("ping {to} repeat 2 interval 100"));
        assert!(message.contains("2 sent, 2 received"), "{from}: {message}");
    }
    // The router's ARP request had the borrowed address as sender.
    let known = bed.ip("a", "neigh show 10.99.0.1");
    assert!(known.contains("lladdr"), "{known}");
}

#[test]
fn routes_say_who_may_be_on_an_interface_without_a_network() {
    let Some(bed) = Bed::new() else { return };
    let mut daemon = router(&bed);
    bed.ip("b", "addr add 10.50.0.1/32 dev lo");
    bed.ip("b", "addr add 2001:db8:50::1/128 dev lo nodad");
    for line in [
        // The next hop is reached by the interface of the route, and is the default gateway.
        "ip route add 0.0.0.0/0 via 10.1.0.6 right",
        "ip route add ::/0 via 2001:db8:1::6 right",
        "ip route add 10.1.0.5/32 via left",
        "ip route add 2001:db8:1::5/128 via left",
    ] {
        daemon.ok(line);
    }
    // No host was learned before: the router sends solicitations.
    assert_eq!(bed.pings("a", "10.50.0.1", 5, "0.05"), 5);
    assert_eq!(bed.pings("a", "2001:db8:50::1", 5, "0.05"), 5);
    assert_eq!(bed.pings("b", "10.1.0.5", 5, "0.05"), 5);
    assert!(trace(&bed, "a", "10.50.0.1", "1").contains("From 10.99.0.1"));
    // A host that uses an address of the other link gets a reply, but no packets.
    bed.ip("b", "addr add 10.1.0.5/32 dev e");
    bed.ip("b", "route add 10.98.0.1 dev e src 10.1.0.5");
    let before = event(&daemon, "off-link");
    let claim = "for i in range(3):\n\
        \x20 s.send(b'\\xff'*6+me+b'\\x08\\x06\\0\\x01\\x08\\0\\6\\4\\0\\1'+me+socket.inet_aton('10.1.0.5')+bytes(6)+socket.inet_aton('10.99.0.1'))\n";
    assert!(bed.python("b", claim).wait().unwrap().success());
    daemon.wait_for("the claim", |d| event(d, "off-link") > before);
    assert!(!neighbor(&daemon, "right", "10.1.0.5"));
    bed.ip("b", "addr del 10.1.0.5/32 dev e");
    assert_eq!(bed.pings("b", "10.1.0.5", 3, "0.05"), 3);
}

#[test]
fn who_lends_and_borrows_is_checked_and_ends_cleanly() {
    let Some(bed) = Bed::new() else { return };
    let mut daemon = router(&bed);
    for (line, why) in [
        (
            "set interface unnumbered loop0 use loop0",
            "the interface itself",
        ),
        (
            "set interface unnumbered left use right",
            "has no addresses",
        ),
        (
            "set interface unnumbered loop0 use left",
            "it has addresses",
        ),
        ("set interface unnumbered left use nobody", "nobody"),
        (
            "set interface ip address left 10.2.0.1/24",
            "uses another's",
        ),
        ("delete interface loop0", "in use by unnumbered left"),
    ] {
        let message = daemon.refused(line);
        assert!(message.contains(why), "{line}: {message}");
    }
    heard(&bed, "a", "10.99.0.1");
    assert_eq!(bed.pings("a", "10.99.0.1", 3, "0.05"), 3);
    // A change of the address of `loop0` applies to the interfaces that use it.
    daemon.ok("set interface ip address loop0 10.99.0.2/32");
    daemon.ok("set interface ip address del loop0 10.99.0.1/32");
    bed.ip("a", "route add 10.99.0.2 dev e scope link");
    assert_eq!(bed.pings("a", "10.99.0.2", 3, "0.05"), 3);
    assert_eq!(bed.pings("a", "10.99.0.1", 2, "0.05"), 0);
    daemon.ok("set interface name loop0 lo9");
    assert!(
        daemon
            .ok("show interface address")
            .contains("unnumbered, uses lo9")
    );
    assert_eq!(bed.pings("a", "10.99.0.2", 3, "0.05"), 3);
    daemon.ok("set interface unnumbered del left");
    daemon.wait_for("nobody there", |d| !neighbor(d, "left", "10.1.0.5"));
    assert!(!daemon.ok("show ip fib 10.1.0.5").contains("10.1.0.5/32"));
    bed.ip("a", "neigh flush dev e");
    assert_eq!(bed.pings("a", "10.99.0.2", 2, "0.05"), 0);
    daemon.ok("set interface unnumbered del right");
    daemon.ok("delete interface lo9");
}
