//! LCP sync, against the kernel: a router between two hosts whose interfaces have LCP taps in a separate namespace.
//!
//! Needs root, `ip`, `ping` and Python; without them the tests say so and pass.

mod support;

use std::process::Child;
use std::time::Instant;
use support::bed::{Bed, Space, mac_of, run};
use support::http::Http;
use support::mirror::{in_step, soon};
use support::{Daemon, oracle, signal, text};
use volley_model::Request;

/// A namespace for LCP taps.
fn taps(bed: &Bed) -> Space {
    let space = Space::new(bed.name("k")).unwrap();
    space.ip("link set lo up");
    space
}

/// Starts a Python program in a namespace, and waits until it prints that it is ready.
fn python(space: &Space, program: &str) -> Child {
    let mut command = std::process::Command::new("timeout");
    command
        .args(["-k", "1", "40", "ip", "netns", "exec", &space.0])
        .arg(oracle::python().unwrap())
        .args(["-c", program]);
    command.stdout(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut ready = [0; 6];
    let out = child.stdout.as_mut().unwrap();
    std::io::Read::read_exact(out, &mut ready).unwrap();
    assert_eq!(&ready, b"ready\n");
    child
}

/// The router of the test bed with an LCP tap for each of its interfaces.
fn mirrored(bed: &Bed) -> (Daemon, Space) {
    let (daemon, space) = (bed.router(), taps(bed));
    for end in ["left", "right"] {
        daemon.ok(&format!("lcp create {end} host-if {end} netns {}", space.0));
    }
    in_step(&daemon);
    (daemon, space)
}

fn fib(daemon: &Daemon, what: &str) -> String {
    let six = if what.contains(':') { "6" } else { "" };
    daemon.ok(&format!("show ip{six} fib {what}"))
}

#[test]
fn a_tap_is_the_interface_in_the_kernel() {
    let Some(bed) = Bed::new() else { return };
    let (daemon, space) = mirrored(&bed);
    let own = daemon.json("show interface left")["interfaces"][0].clone();
    let link = space.ip("-o link show left");
    assert!(link.contains(own["mac"].as_str().unwrap()), "{link}");
    assert!(link.contains(&format!("mtu {} ", own["mtu"])), "{link}");
    let addresses = space.ip("-o addr show left");
    for address in ["10.77.0.1/16", "2001:db8:77::1/64"] {
        assert!(addresses.contains(address), "{addresses}");
    }
    for host in ["10.77.0.2", "10.78.0.2", "2001:db8:77::2", "2001:db8:78::2"] {
        soon(host, || {
            space.does(5, &format!("ping -n -q -c 1 -W 1 {host}"))
        });
    }
    assert_eq!(bed.pings("a", "10.77.0.1", 3, "0.1"), 3, "Volley answers");
    assert_eq!(bed.pings("a", "10.78.0.2", 3, "0.1"), 3, "and forwards");
    let known = space.ip("neigh show 10.77.0.2 dev left");
    assert!(known.contains(&mac_of(&bed, "a")), "{known}");
    daemon.ok("lcp delete left");
    assert!(!space.ip("-o link").contains(" left"));
    assert_eq!(
        bed.pings("a", "10.77.0.1", 2, "0.1"),
        2,
        "it is a router still"
    );
    assert!(
        daemon
            .refused("lcp delete left")
            .contains("there is no lcp left")
    );
}

/// A server in the kernel that receives and returns data over TCP, a megabyte in each direction.
const SERVE: &str = "import socket,hashlib\n\
    s=socket.create_server(('10.77.0.1',8080)); print('ready',flush=True)\n\
    c,w=s.accept(); got=b''\n\
    while len(got)<1000000: got+=c.recv(65536)\n\
    c.sendall(got[::-1]); c.close()\n";

const CALL: &str = "import hashlib,os\n\
    c=socket.create_connection(('10.77.0.1',8080),10); sent=os.urandom(1000000); c.sendall(sent); got=b''\n\
    while len(got)<1000000:\n\
    \x20 part=c.recv(65536)\n\
    \x20 if not part: break\n\
    \x20 got+=part\n\
    print('same' if got==sent[::-1] else 'other %d'%len(got))\n";

#[test]
fn services_of_the_kernel_are_reached_through_the_tap() {
    let Some(bed) = Bed::new() else { return };
    let (daemon, space) = mirrored(&bed);
    let mut server = python(&space, SERVE);
    let message = bed.python("a", CALL).wait_with_output().unwrap();
    let _ = server.kill();
    let _ = server.wait();
    let errors = daemon.ok("show errors");
    assert_eq!(text(&message.stdout).trim(), "same", "{errors}");
    let closed = "c=socket.socket(); c.settimeout(5)\n\
        try: c.connect(('10.77.0.1',8081))\n\
        except ConnectionRefusedError: print('refused')\n";
    let message = bed.python("a", closed).wait_with_output().unwrap();
    assert_eq!(
        text(&message.stdout).trim(),
        "refused",
        "the kernel has nobody there"
    );
}

/// Prints the first frame on `left` to a multicast group of routers, as hexadecimal.
const HEAR: &str = "import socket\n\
    s=socket.socket(socket.AF_PACKET,socket.SOCK_RAW,socket.htons(3)); s.bind(('left',0)); s.settimeout(15)\n\
    print('ready',flush=True)\n\
    while True:\n\
    \x20 f,w=s.recvfrom(2000)\n\
    \x20 if w[2]!=4 and f[:6]==bytes.fromhex('GROUP'): print(f.hex()); break\n";

#[test]
fn groups_and_foreign_protocols_reach_the_kernel_unchanged() {
    let Some(bed) = Bed::new() else { return };
    let (_daemon, space) = mirrored(&bed);
    let ospf = format!(
        "4500002c00010000015900000a4d0002e0000005{}",
        "ab".repeat(24)
    );
    let ospf6 = format!(
        "6000000000185901{}{}{}",
        "20".repeat(16),
        "ff020000000000000000000000000005",
        "cd".repeat(24)
    );
    let isis = "fefe03838301".to_owned() + &"11".repeat(60);
    let cases = [
        ("01005e000005", "0800", ospf),
        ("333300000005", "86dd", ospf6),
        ("0180c2000014", "0042", isis),
    ];
    for (group, kind, body) in cases {
        let listener = python(&space, &HEAR.replace("GROUP", group));
        let program = format!(
            "f=bytes.fromhex('{group}')+me+bytes.fromhex('{kind}{body}')\ns.send(f); print(f.hex())\n"
        );
        let sent = bed.python("a", &program).wait_with_output().unwrap();
        let heard = listener.wait_with_output().unwrap();
        assert_eq!(
            text(&heard.stdout).trim(),
            text(&sent.stdout).trim(),
            "{kind}"
        );
    }
}

#[test]
fn addresses_mtu_and_state_go_both_ways() {
    let Some(bed) = Bed::new() else { return };
    let (daemon, space) = mirrored(&bed);
    let volley = |d: &Daemon, part: &str| d.ok("show interface address left").contains(part);
    let kernel = |part: &str| space.ip("-o addr show left").contains(part);
    space.ip("addr add 10.99.0.1/24 dev left");
    soon("the kernel's address", || volley(&daemon, "10.99.0.1/24"));
    daemon.ok("set interface ip address del left 10.99.0.1/24");
    soon("its end in the kernel", || !kernel("10.99.0.1"));
    daemon.ok("set interface ip6 address left 2001:db8:99::1/64");
    soon("Volley's address", || kernel("2001:db8:99::1/64"));
    space.ip("-6 addr del 2001:db8:99::1/64 dev left");
    soon("its end in Volley", || !volley(&daemon, "2001:db8:99::1"));
    daemon.ok("set interface mtu 1400 left");
    soon("Volley's MTU", || {
        space.ip("link show left").contains("mtu 1400")
    });
    space.ip("link set left mtu 1450");
    let mtu = |d: &Daemon| d.json("show interface left")["interfaces"][0]["mtu"] == 1450;
    soon("the kernel's MTU", || mtu(&daemon));
    let state = |d: &Daemon| d.json("show interface right")["interfaces"][0]["state"].clone();
    space.ip("link set right down");
    soon("down by the kernel", || state(&daemon) == "down");
    daemon.ok("set interface state right up");
    soon("up by Volley", || {
        space.ip("link show right").contains(",UP")
    });
    soon("its addresses", || {
        space.ip("-o addr show right").contains("2001:db8:78::1")
    });
    assert!(
        daemon
            .ok("show interface address right")
            .contains("2001:db8:78::1")
    );
    bed.ip("r", "link set left down");
    soon("no carrier", || {
        space.ip("link show left").contains("NO-CARRIER")
    });
    bed.ip("r", "link set left up");
    soon("a carrier", || {
        !space.ip("link show left").contains("NO-CARRIER")
    });
    in_step(&daemon);
}

#[test]
fn neighbours_that_are_configured_go_both_ways() {
    let Some(bed) = Bed::new() else { return };
    let (daemon, space) = mirrored(&bed);
    space.ip("neigh add 10.77.0.9 lladdr 02:00:00:00:00:09 dev left nud permanent");
    soon("the kernel's", || {
        daemon.ok("show ip neighbors").contains("02:00:00:00:00:09")
    });
    daemon.ok("set ip neighbor left 10.77.0.8 02:00:00:00:00:08");
    soon("Volley's", || {
        space
            .ip("neigh show nud permanent")
            .contains("02:00:00:00:00:08")
    });
    // When its link goes down or its MAC address changes, the kernel deletes all of them; Volley did not withdraw them.
    space.ip("link set left down");
    soon("the interface down", || {
        daemon.json("show interface left")["interfaces"][0]["state"] == "down"
    });
    daemon.ok("set interface state left up");
    daemon.ok("set interface mac address left 02:00:00:00:77:01");
    for number in [8, 9] {
        let mac = format!("02:00:00:00:00:0{number}");
        soon("both again", || {
            space.ip("neigh show nud permanent").contains(&mac)
        });
        assert!(daemon.ok("show ip neighbors").contains(&mac));
    }
    in_step(&daemon);
    space.ip("neigh del 10.77.0.9 dev left");
    soon("its end", || {
        !daemon.ok("show ip neighbors").contains("02:00:00:00:00:09")
    });
    daemon.ok("set ip neighbor del left 10.77.0.8");
    soon("its end", || {
        !space
            .ip("neigh show nud permanent")
            .contains("02:00:00:00:00:08")
    });
    in_step(&daemon);
}

/// Routes of every type that LCP sync copies.
const KINDS: [&str; 23] = [
    "route add 198.51.100.0/24 via 10.77.0.2 metric 50",
    "route add 198.51.100.0/24 via 10.78.0.2 metric 20",
    "route add blackhole 198.51.101.0/24",
    "route add unreachable 198.51.102.0/24",
    "route add prohibit 198.51.103.0/24",
    "route add 198.51.104.0/24 nexthop via 10.77.0.2 weight 1 nexthop via 10.78.0.2 weight 3",
    "route add 198.51.105.0/24 via 192.0.2.9 dev left onlink",
    "route add 198.51.110.0/24 nexthop via 192.0.2.9 dev left onlink nexthop via 10.78.0.2 dev right",
    "-6 route add 2001:db8:d::/48 via 2001:db8:ffff::9 dev left onlink",
    "nexthop add id 3 via 192.0.2.10 dev left onlink",
    "route add 198.51.111.0/24 nhid 3",
    "route add 198.51.112.0/24 via 10.77.0.2 dev left",
    "route add 198.51.106.0/24 dev right",
    "route add 198.51.107.0/24 via inet6 2001:db8:77::2 dev left",
    "route add 198.51.108.0/24 via 10.77.0.2 table 7",
    "addr add 10.255.0.1/32 dev lo",
    "-6 route add 2001:db8:a::/48 via 2001:db8:77::2",
    "-6 route add 2001:db8:b::/48 nexthop via 2001:db8:77::2 nexthop via 2001:db8:78::2",
    "-6 route add blackhole 2001:db8:c::/48",
    "nexthop add id 1 via 10.77.0.2 dev left",
    "nexthop add id 2 via 10.78.0.2 dev right",
    "nexthop add id 9 group 1/2",
    "route add 198.51.109.0/24 nhid 9",
];

#[test]
fn routes_of_every_kind_are_taken_over() {
    let Some(bed) = Bed::new() else { return };
    let (daemon, space) = mirrored(&bed);
    daemon.ok("ip table add 7");
    for line in KINDS {
        space.ip(line);
    }
    in_step(&daemon);
    let says = |what: &str, part: &str| {
        let shown = fib(&daemon, what);
        assert!(
            shown.contains("lcp-rt") && shown.contains(part),
            "{what}: {shown}"
        );
    };
    says("198.51.100.1", "via 10.78.0.2");
    says("198.51.101.1", "drop");
    says("198.51.102.1", "unreachable");
    says("198.51.103.1", "prohibit");
    says("198.51.104.1", "via 10.77.0.2 \"left\" weight 1");
    says("198.51.104.1", "via 10.78.0.2 \"right\" weight 3");
    says("198.51.105.1", "via 192.0.2.9 \"left\" onlink");
    says("198.51.110.1", "via 192.0.2.9 \"left\" onlink");
    says("198.51.110.1", "via 10.78.0.2 \"right\" weight 1");
    says("198.51.111.1", "via 192.0.2.10 \"left\" onlink");
    says("198.51.112.1", "via 10.77.0.2 \"left\" weight 1");
    says("2001:db8:d::1", "via 2001:db8:ffff::9 \"left\" onlink");
    says("198.51.107.1", "via 2001:db8:77::2");
    says("198.51.108.1 table 7", "via 10.77.0.2");
    says("10.255.0.1", "local");
    says("2001:db8:b::1", "via 2001:db8:78::2");
    says("198.51.109.1", "via 10.78.0.2");
    assert_eq!(
        bed.pings("a", "10.255.0.1", 2, "0.1"),
        2,
        "an address of the kernel's lo"
    );
    for line in [
        "route del 198.51.100.0/24 via 10.78.0.2 metric 20",
        "route replace 198.51.101.0/24 via 10.77.0.2",
        "nexthop replace id 9 group 1",
        "-6 route del 2001:db8:b::/48 via 2001:db8:78::2",
    ] {
        space.ip(line);
    }
    in_step(&daemon);
    let now = |what: &str| fib(&daemon, what);
    assert!(
        now("198.51.100.1").contains("via 10.77.0.2"),
        "the next metric"
    );
    assert!(
        now("198.51.109.1").contains("10.77.0.2") && !now("198.51.109.1").contains("10.78.0.2")
    );
    assert!(!now("2001:db8:b::1").contains("2001:db8:78::2"));
    space.ip("nexthop del id 1");
    soon("the end of what led over it", || {
        !now("198.51.109.1").contains("lcp-rt")
    });
    space.ip("link set right down");
    in_step(&daemon);
    daemon.ok("ip route add 198.51.101.0/24 via 10.78.0.2");
    assert!(
        now("198.51.101.1").contains("source static"),
        "the operator goes before"
    );
    let audit = daemon.ok("lcp audit");
    assert!(audit.contains(" 0 differ"), "{audit}");
}

/// Routes that the operator adds in Volley, and their lines in `ip route` of the kernel.
const OWN: [(&str, &str, &str); 10] = [
    (
        "ip route add 198.51.100.0/24 via 10.78.0.2 right",
        "198.51.100.0/24",
        "via 10.78.0.2 dev right",
    ),
    (
        "ip route add 198.51.101.0/24 via 198.51.100.9",
        "198.51.101.0/24",
        "via 10.78.0.2 dev right",
    ),
    (
        "ip route add 198.51.102.0/24 via 10.77.0.2 left weight 1 via 10.78.0.2 right weight 3",
        "198.51.102.0/24",
        "nexthop via 10.78.0.2 dev right weight 3",
    ),
    (
        "ip route add 198.51.103.0/24 via drop",
        "198.51.103.0/24",
        "blackhole",
    ),
    (
        "ip route add 198.51.104.0/24 via unreachable",
        "198.51.104.0/24",
        "unreachable",
    ),
    (
        "ip route add 198.51.105.0/24 via left",
        "198.51.105.0/24",
        "dev left",
    ),
    (
        "ip route add 198.51.107.0/24 via 203.0.113.9 left onlink",
        "198.51.107.0/24",
        "via 203.0.113.9 dev left proto 86 metric 32768 onlink",
    ),
    (
        "ip route add 198.51.106.0/24 table 7 via 10.77.0.2 left",
        "table 7 198.51.106.0/24",
        "via 10.77.0.2 dev left",
    ),
    (
        "ip6 route add 2001:db8:a::/48 via 2001:db8:77::2 left via 2001:db8:78::2 right",
        "-6 2001:db8:a::/48",
        "via 2001:db8:78::2 dev right",
    ),
    (
        "ip6 route add 2001:db8:b::/48 via prohibit",
        "-6 2001:db8:b::/48",
        "prohibit",
    ),
];

fn kernel_routes(space: &Space, what: &str) -> String {
    let (six, what) = what
        .strip_prefix("-6 ")
        .map_or(("", what), |what| ("-6 ", what));
    space.ip(&format!("{six}route show {what}"))
}

/// The router of the test bed with LCP taps and these routes.
fn reported(bed: &Bed) -> (Daemon, Space) {
    let (daemon, space) = mirrored(bed);
    daemon.ok("ip table add 7");
    space.ip("route add blackhole 198.51.200.0/24 proto 86 metric 9");
    OWN.iter().for_each(|(line, ..)| _ = daemon.ok(line));
    in_step(&daemon);
    (daemon, space)
}

/// Whether the kernel has no route from Volley.
fn none(space: &Space) -> bool {
    let all = [
        "route show table all proto 86",
        "-6 route show table all proto 86",
    ];
    all.iter().all(|what| space.ip(what).is_empty())
}

#[test]
fn routes_of_volley_go_to_the_kernel() {
    let Some(bed) = Bed::new() else { return };
    let (mut daemon, space) = reported(&bed);
    for (line, what, part) in OWN {
        let has = kernel_routes(&space, what);
        assert!(
            has.contains(part) && has.contains("proto 86"),
            "{line}: {has}"
        );
    }
    let stale = kernel_routes(&space, "198.51.200.0/24");
    assert!(stale.is_empty(), "nobody wants it: {stale}");
    let table = &daemon.json("show lcp")["tables"][0];
    assert_eq!(
        (&table["reported_ip4"], &table["reported_ip6"]),
        (&7.into(), &2.into()),
        "{table}"
    );
    assert_eq!(
        table["ip4"], 0,
        "none of them comes back as the kernel's: {table}"
    );
    bed.ip("b", "addr add 198.51.100.9/32 dev lo");
    soon("the kernel's own packets take it", || {
        space.does(5, "ping -n -q -c 1 -W 1 198.51.100.9")
    });
    daemon.ok("lcp delete left");
    soon("the end of routes over it", || {
        kernel_routes(&space, "198.51.105.0/24").is_empty()
    });
    daemon.ok("lcp delete right");
    soon("nothing of Volley's in the kernel", || none(&space));
    daemon.ok(&format!("lcp create left host-if left netns {}", space.0));
    soon("the blackhole", || !none(&space));
    daemon.stop("TERM");
    assert!(none(&space), "nothing stays behind");
}

/// Routes are written to the kernel in slices, between which other work continues.
#[test]
fn many_routes_of_volley_go_to_the_kernel_and_come_back_from_there() {
    let Some(bed) = Bed::new() else { return };
    let (mut daemon, space) = mirrored(&bed);
    let reported = |d: &Daemon| {
        let tables = d.json("show lcp")["tables"].clone();
        tables[0]["reported_ip4"].as_u64().unwrap_or(0)
    };
    let start = Instant::now();
    daemon.ok("ip route add 20.0.0.0/24 via 10.77.0.2 left count 50000");
    assert_eq!(
        bed.pings("a", "10.78.0.2", 5, "0.02"),
        5,
        "it forwards meanwhile"
    );
    daemon.wait_for("all of them", |d| reported(d) == 50_000);
    println!(
        "50000 routes told in {:.1} s",
        start.elapsed().as_secs_f64()
    );
    in_step(&daemon);
    assert_eq!(space.ip("route show proto 86").lines().count(), 50_000);
    daemon.ok("ip route del 20.0.0.0/24 via 10.77.0.2 left count 50000");
    daemon.wait_for("none of them", |d| reported(d) == 0);
    in_step(&daemon);
    assert!(none(&space));
}

#[test]
fn what_changes_of_volleys_routes_changes_in_the_kernel() {
    let Some(bed) = Bed::new() else { return };
    let (mut daemon, space) = reported(&bed);
    // A route of the operator takes precedence in Volley, a route of the kernel in the kernel.
    space.ip("route add 198.51.100.0/24 via 10.77.0.2");
    in_step(&daemon);
    assert!(space.ip("route get 198.51.100.1").contains("10.77.0.2"));
    assert!(fib(&daemon, "198.51.100.1").contains("source static"));
    space.ip("route del 198.51.100.0/24 via 10.77.0.2");

    // A next hop changes, a route changes, a route is deleted.
    daemon.ok("ip route del 198.51.100.0/24 via 10.78.0.2 right");
    daemon.ok("ip route add 198.51.100.0/24 via 10.77.0.2 left");
    daemon.ok("ip route del 198.51.104.0/24 via unreachable");
    in_step(&daemon);
    for what in ["198.51.100.0/24", "198.51.101.0/24"] {
        let has = kernel_routes(&space, what);
        assert!(
            has.contains("via 10.77.0.2 dev left") && !has.contains("right"),
            "{has}"
        );
    }
    assert!(kernel_routes(&space, "198.51.104.0/24").is_empty());

    // Routes that the kernel loses with a link, or that another program deletes, are restored.
    space.ip("link set left down");
    daemon.wait_for("down", |d| {
        d.json("show interface left")["interfaces"][0]["state"] == "down"
    });
    in_step(&daemon);
    assert!(kernel_routes(&space, "198.51.100.0/24").is_empty());
    daemon.ok("set interface state left up");
    space.ip("route flush table main proto 86");
    soon("everything again", || {
        OWN.iter().all(|(line, what, _)| {
            line.contains("unreachable") || kernel_routes(&space, what).contains("proto 86")
        })
    });
    in_step(&daemon);
    let resync = daemon.ok("lcp resync");
    assert!(resync.contains(" 0 of them were wrong"), "{resync}");
}

/// More changes of routes than fit into the kernel's socket buffer while it is not read.
#[test]
fn what_the_kernel_had_no_room_to_tell_is_read_once_more() {
    let Some(bed) = Bed::new() else { return };
    let (mut daemon, space) = mirrored(&bed);
    let file = daemon.folder.file("batch");
    let route = |n: u32| {
        let (b, c) = (n >> 8 & 255, n & 255);
        format!(
            "route add 20.{b}.{c}.0/24 via 10.77.0.2 metric {}\n",
            n >> 16
        )
    };
    let lines: String = (0..200_000).map(route).collect();
    std::fs::write(&file, lines).unwrap();
    signal(daemon.pid(), "STOP");
    let filled = run(
        200,
        &["ip", "-n", &space.0, "-batch", file.to_str().unwrap()],
    );
    signal(daemon.pid(), "CONT");
    assert!(filled.status.success(), "{}", text(&filled.stderr));
    let overruns = |d: &Daemon| d.json("show lcp")["mirror"]["overruns"].as_u64().unwrap();
    daemon.wait_for("the overrun", |d| overruns(d) > 0);
    let count = |d: &Daemon| d.json("show lcp")["tables"][0]["ip4"].clone();
    daemon.wait_for("every route", |d| count(d) == 65_536);
    in_step(&daemon);
    assert_eq!(bed.pings("a", "10.78.0.2", 3, "0.1"), 3);
    let resync = daemon.ok("lcp resync");
    assert!(
        resync.contains("read 65536 routes") && resync.contains(" 0 of them were wrong"),
        "{resync}"
    );
}

#[test]
fn what_cannot_be_is_refused_in_a_sentence() {
    let Some(bed) = Bed::new() else { return };
    let (daemon, space) = mirrored(&bed);
    let refused = |line: &str, part: &str| {
        let message = daemon.refused(line);
        assert!(message.contains(part), "{line}: {message}");
    };
    let name = &space.0;
    refused(
        &format!("lcp create nowhere host-if x netns {name}"),
        "there is no interface nowhere",
    );
    daemon.ok("create packet-generator interface pg0");
    refused(
        "lcp create pg0 host-if x",
        "all LCP taps are in one network namespace",
    );
    refused(
        "lcp create left host-if a-name-that-is-too-long",
        "1 to 15 characters",
    );
}

/// The interface is deleted alone, or in a transaction that renames another one.
#[test]
fn a_tap_goes_with_its_interface() {
    let Some(bed) = Bed::new() else { return };
    let (daemon, space) = (Daemon::start("", &[]), taps(&bed));
    let name = |name: &str| name.to_owned();
    let rename = Request::InterfaceRename {
        name: name("pg1"),
        new_name: name("pg2"),
    };
    let delete = Request::InterfaceDelete { name: name("pg0") };
    daemon.ok("create packet-generator interface pg1");
    for requests in [vec![delete.clone()], vec![rename, delete]] {
        daemon.ok("create packet-generator interface pg0");
        daemon.ok(&format!("lcp create pg0 host-if e netns {}", space.0));
        in_step(&daemon);
        let mut http = Http::connect(&daemon.folder.file("s.http.sock"));
        let (status, message) = http.post("/v1/transactions", &requests);
        assert_eq!(status, 200, "{message}");
        let shown = daemon.ok("show interfaces");
        assert!(!shown.contains("pg0"), "{shown}");
        let devices = space.ip("-o link");
        assert!(!devices.contains(": e:"), "{devices}");
        assert!(
            daemon
                .ok("show lcp")
                .contains("No interface has an LCP tap")
        );
    }
    assert!(daemon.ok("show interfaces").contains("pg2"));
}

#[test]
fn an_lcp_tap_stays_with_an_interface_of_another_name_and_is_made_again_for_other_values() {
    let Some(bed) = Bed::new() else { return };
    let (daemon, space) = (Daemon::start("", &[]), taps(&bed));
    daemon.ok("create packet-generator interface pg0");
    daemon.ok(&format!("lcp create pg0 host-if e netns {}", space.0));
    in_step(&daemon);
    let index = || space.ip("-o link show e");
    let before = index();
    daemon.ok("set interface name pg0 pg9");
    assert_eq!(index(), before, "the device of the kernel is the same");
    let exported = daemon.ok("config export commands");
    let own = format!("lcp create pg9 host-if e netns {}", space.0);
    assert!(
        exported.contains(&own) && !exported.contains("pg0"),
        "{exported}"
    );
    let message = daemon.ok(&format!("lcp create pg9 host-if f netns {}", space.0));
    assert!(
        message.contains("the kernel interface of pg9 is deleted and created again"),
        "{message}"
    );
    let devices = space.ip("-o link");
    assert!(
        devices.contains(": f:") && !devices.contains(": e:"),
        "{devices}"
    );
    daemon.ok("lcp delete pg9");
    assert!(!space.ip("-o link").contains(": f:"));
    assert!(
        daemon
            .ok("show lcp")
            .contains("No interface has an LCP tap")
    );
    daemon.ok("delete interface pg9");
}

#[test]
fn without_a_tap_nothing_is_mirrored() {
    let daemon = Daemon::start("", &[]);
    assert!(
        daemon
            .ok("show lcp")
            .contains("No interface has an LCP tap")
    );
    assert_eq!(daemon.ok("lcp audit"), "0 compared, 0 differ\n");
    daemon.ok("lcp resync");
}
