//! Of the default routers of a link, only reachable ones are used (RFC 4861, 6.3.6). Scapy plays all of them.
//!
//! Needs root, `ip`, `ping` and Python with scapy; without them the tests say so and pass.

mod support;

use serde_json::Value;
use std::process::Stdio;
use std::time::{Duration, Instant};
use support::Daemon;
use support::bed::{Bed, has_scapy};
use support::router::Router;

/// A destination behind the default routers.
const FAR: &str = "2001:db8:abcd::1";
const FIVE: &str = "fe80::55";
const SIX: &str = "fe80::66";
const MAC5: &str = "02:00:00:00:00:55";
const MAC6: &str = "02:00:00:00:00:66";

/// Two routers on the link of `left`, both reachable and in use.
fn two() -> Option<(Bed, Daemon, Router)> {
    if !has_scapy() {
        println!("SKIP: no Python with scapy (cargo xtask install)");
        return None;
    }
    let bed = Bed::new()?;
    // The kernels beside the routers do not act as hosts of the link.
    for at in ["r", "a"] {
        let quiet = ["all", "default"].map(|on| format!("net.ipv6.conf.{on}.disable_ipv6=1"));
        bed.exec(at, 5, &["sysctl", "-qw", &quiet[0], &quiet[1]]);
    }
    let mut daemon = Daemon::start("", &[]);
    let space = bed.name("r");
    for end in ["left", "right"] {
        daemon.ok(&format!(
            "create host-interface name {end} as {end} netns {space}"
        ));
        daemon.ok(&format!("set interface state {end} up"));
    }
    daemon.ok("set interface ip6 address right 2001:db8:78::1/64");
    bed.ip("b", "addr add 2001:db8:78::2/64 dev e nodad");
    bed.ip("b", "-6 route add default via 2001:db8:78::1");
    let mut router = Router::new(&bed, "a");
    router.does(&format!(
        "alive.update({{'{FIVE}':'{MAC5}','{SIX}':'{MAC6}'}})"
    ));
    daemon.ok("ip6 nd address autoconfig left default-route");
    daemon.wait_for("a question", |_| router.does("len(asked)") != 0);
    speak(&mut router, FIVE, MAC5);
    speak(&mut router, SIX, MAC6);
    daemon.wait_for("both", |d| {
        [FIVE, SIX]
            .iter()
            .all(|it| row(d, it)["neighbor"] == "reachable" && row(d, it)["in_use"] == true)
    });
    daemon.wait_for("a ping", |_| bed.pings("b", "2001:db8:78::1", 1, "1") == 1);
    Some((bed, daemon, router))
}

/// Lets a router advertise itself; neighbours are reachable for a second.
fn speak(router: &mut Router, who: &str, mac: &str) {
    router.does(&format!(
        "ra(pi('2001:db8:77::'),src='{who}',mac='{mac}',reachabletime=1000)"
    ));
}

fn row(daemon: &Daemon, who: &str) -> Value {
    let message = daemon.json("show ip6 nd left");
    let all = message["interfaces"][0]["autoconf"]["routers"].clone();
    let mut all = all.as_array().cloned().unwrap_or_default().into_iter();
    all.find(|it| it["address"] == who).unwrap_or_default()
}

fn is_silent(daemon: &Daemon, who: &str) -> bool {
    row(daemon, who)["silent"] == true
}

/// Host b sends a packet to each of these ports, `times` times.
fn send(bed: &Bed, ports: &str, times: u32, every: &str) -> std::process::Child {
    let program = format!(
        "import socket,time\n\
         s=socket.socket(socket.AF_INET6,socket.SOCK_DGRAM); s.bind(('::',5000))\n\
         for _ in range({times}):\n\
         \x20for p in {ports}: s.sendto(b'x',('{FAR}',p))\n\
         \x20time.sleep({every})\n"
    );
    let mut command = std::process::Command::new("timeout");
    command.args(["-k", "1", "120", "ip", "netns", "exec", &bed.name("b")]);
    let python = support::oracle::python().unwrap();
    command.arg(python).args(["-c", &program]);
    command.stdout(Stdio::null()).spawn().unwrap()
}

/// How many of 200 packets of different flows each router received.
fn split(bed: &Bed, router: &mut Router) -> (u64, u64) {
    router.does("passed.clear()");
    assert!(
        send(bed, "range(2000,2200)", 1, "0")
            .wait()
            .unwrap()
            .success()
    );
    std::thread::sleep(Duration::from_millis(500));
    let mut to = |mac: &str| {
        router
            .does(&format!("len(passed.get('{mac}',[]))"))
            .as_u64()
    };
    (to(MAC5).unwrap(), to(MAC6).unwrap())
}

#[test]
fn traffic_leaves_a_router_that_falls_silent_and_the_other_one_loses_nothing() {
    let Some((bed, mut daemon, mut router)) = two() else {
        return;
    };
    let (five, six) = split(&bed, &mut router);
    assert!(five > 30 && six > 30 && five + six == 200, "{five} {six}");
    let port = router.does(&format!("passed['{MAC6}'][0]"));
    // A flow by the working router is not interrupted.
    router.does("passed.clear()");
    let mut flow = send(&bed, &format!("[{port}]"), 4000, "0.005");
    router.does(&format!("alive.pop('{FIVE}')"));
    daemon.wait_for("silence", |d| is_silent(d, FIVE));
    assert!(daemon.log().contains(&format!(
        "left: the router {FIVE} does not answer any more: others are used"
    )));
    let shown = daemon.ok("show ip6 nd left");
    assert!(shown.contains("not in use, does not answer"), "{shown}");
    assert!(shown.contains("preference medium, in use, "), "{shown}");
    flow.wait().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let mut count = |mac: &str| router.does(&format!("passed.get('{mac}',[]).count({port})"));
    assert_eq!((count(MAC6), count(MAC5)), (4000.into(), 0.into()));
    assert_eq!(split(&bed, &mut router), (0, 200), "all go to who answers");
    // A router that advertises itself need not be reachable.
    speak(&mut router, FIVE, MAC5);
    daemon.wait_for("it as a neighbour", |d| row(d, FIVE)["neighbor"] == "stale");
    assert_eq!(split(&bed, &mut router), (0, 200));
    assert!(is_silent(&daemon, FIVE) && row(&daemon, FIVE)["in_use"] == false);
    // If no router replies all are tried, and the first that replies is used.
    router.does("alive.clear()");
    daemon.wait_for("silence of both", |d| {
        [FIVE, SIX]
            .iter()
            .all(|it| is_silent(d, it) && row(d, it)["in_use"] == true)
    });
    router.does(&format!("alive.update({{'{FIVE}':'{MAC5}'}})"));
    daemon.wait_for("the other one", |d| {
        split(&bed, &mut router);
        row(d, FIVE)["in_use"] == true && row(d, SIX)["in_use"] == false
    });
    assert_eq!(split(&bed, &mut router), (200, 0));
    let events = daemon.ok("show ip6 neighbors");
    assert!(
        events.contains("default routers did not answer"),
        "{events}"
    );
}

#[test]
fn a_silent_router_is_asked_once_a_minute_and_comes_back_when_it_answers() {
    let Some((bed, mut daemon, mut router)) = two() else {
        return;
    };
    router.does(&format!("alive.pop('{FIVE}')"));
    daemon.wait_for("silence", |d| is_silent(d, FIVE));
    let since = Instant::now();
    std::thread::sleep(Duration::from_millis(200));
    router.does("heard.clear()");
    let asked = format!("len([1 for it in heard if it[0]=='{FIVE}'])");
    // The router replies from now on, but gets no solicitation before the minute is over.
    router.does(&format!("alive.update({{'{FIVE}':'{MAC5}'}})"));
    let back = |d: &Daemon| row(d, FIVE)["in_use"] == true;
    while since.elapsed() < Duration::from_secs(55) {
        assert!(!back(&daemon) && router.does(&asked) == 0);
        std::thread::sleep(Duration::from_secs(1));
    }
    daemon.wait_for("its return", |d| back(d));
    assert_eq!(router.does(&asked), 1);
    assert!(
        daemon
            .log()
            .contains(&format!("left: the router {FIVE} answers"))
    );
    let (five, six) = split(&bed, &mut router);
    assert!(five > 30 && six > 30 && five + six == 200, "{five} {six}");
}
