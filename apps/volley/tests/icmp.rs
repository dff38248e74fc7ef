//! ICMP against the Linux kernel: two namespaces, one behind a packet socket on a veth pair, one behind a tap, with static
//! neighbours. The kernel's `ping` and sockets are used, and scapy judges every error (`tests/icmp/probe.py`).
//!
//! Needs root, `ip` and `ping`; scapy for the judgement. Without them the tests say so and pass.

mod support;

use std::process::Command;
use support::bed::{Space, counter, has_scapy, must, run, wait_until_up};
use support::{Daemon, oracle, text};

const MACS: [&str; 2] = ["02:fe:00:00:00:01", "02:fe:00:00:00:02"];
const HOSTS: [&str; 2] = ["02:aa:00:00:00:01", "02:aa:00:00:00:02"];

/// `N` is replaced by the test's number, `LIMITS` by the content of `[icmp]`.
const CONFIG: &str = r#"
[icmp]
LIMITS
[[interface]]
name = "a"
kind = "host-interface"
host = "icmpvN"
mac = "02:fe:00:00:00:01"
mtu = 1500
addresses = ["192.0.2.1/24", "2001:db8:a::1/64"]
[[interface]]
name = "b"
kind = "tap"
host = "eth0"
namespace = "icmpN-b"
mac = "02:fe:00:00:00:02"
host_mac = "02:aa:00:00:00:02"
mtu = 1400
host_mtu = 1500
addresses = ["198.51.100.1/24", "2001:db8:b::1/64"]
[[neighbor]]
interface = "a"
address = "192.0.2.2"
mac = "02:aa:00:00:00:01"
[[neighbor]]
interface = "a"
address = "2001:db8:a::2"
mac = "02:aa:00:00:00:01"
[[neighbor]]
interface = "b"
address = "198.51.100.2"
mac = "02:aa:00:00:00:02"
[[neighbor]]
interface = "b"
address = "2001:db8:b::2"
mac = "02:aa:00:00:00:02"
[[route]]
prefix = "203.0.113.64/26"
action = "unreachable"
[[route]]
prefix = "203.0.113.128/26"
action = "prohibit"
[[route]]
prefix = "203.0.113.192/26"
action = "drop"
[[route]]
prefix = "2001:db8:d::/48"
action = "unreachable"
[[route]]
prefix = "2001:db8:e::/48"
action = "prohibit"
"#;

/// Two hosts and the router between them; the namespaces are deleted on drop.
struct Net {
    daemon: Daemon,
    number: String,
}

impl Net {
    /// None, with a printed reason, if namespaces cannot be created.
    fn new(test: u32, limits: &str) -> Option<(Net, Vec<Space>)> {
        let number = format!("{}x{test}", std::process::id() % 100_000);
        let space = |side: &&str| Space::new(format!("icmp{number}-{side}"));
        let spaces: Vec<Space> = ["a", "b"].iter().map_while(space).collect();
        if spaces.len() < 2 {
            return None;
        }
        must(&format!(
            "ip link add icmpv{number} type veth peer name eth0 address {} netns icmp{number}-a",
            HOSTS[0]
        ));
        must(&format!("ip link set icmpv{number} up"));
        let quiet = format!("/proc/sys/net/ipv6/conf/icmpv{number}/disable_ipv6");
        let _ = std::fs::write(quiet, "1");
        let config = CONFIG.replace("LIMITS", limits);
        let daemon = Daemon::start(&config.replace("N", &number), &[]);
        let net = Net { daemon, number };
        let sides = [
            ("a", "192.0.2", "2001:db8:a:"),
            ("b", "198.51.100", "2001:db8:b:"),
        ];
        for ((side, v4, v6), mac) in sides.into_iter().zip(MACS) {
            let ip = |words: String| must(&format!("ip -n icmp{}-{side} {words}", net.number));
            ip("link set lo up".into());
            ip("link set eth0 up mtu 1500".into());
            ip(format!("addr add {v4}.2/24 dev eth0"));
            ip(format!("addr add {v6}:2/64 dev eth0 nodad"));
            ip(format!("neigh replace {v4}.1 lladdr {mac} dev eth0"));
            ip(format!("neigh replace {v6}:1 lladdr {mac} dev eth0"));
            ip(format!("route add default via {v4}.1"));
            ip(format!("route add default via {v6}:1"));
            wait_until_up(&format!("-n icmp{}-{side}", net.number), "eth0");
        }
        wait_until_up("", &format!("icmpv{}", net.number));
        Some((net, spaces))
    }

    /// Runs a program in the namespace of host A.
    fn exec(&self, seconds: u32, words: &str) -> (bool, String) {
        let space = format!("icmp{}-a", self.number);
        let words: Vec<&str> = words.split(' ').collect();
        let output = run(
            seconds,
            &[&["ip", "netns", "exec", &space], &words[..]].concat(),
        );
        (
            output.status.success(),
            text(&output.stdout) + &text(&output.stderr),
        )
    }

    /// Checks that three pings are all answered.
    fn pings(&self, what: &str) {
        let (ok, message) = self.exec(10, &format!("ping -n -i 0.05 -c 3 -W 2 {what}"));
        assert!(
            ok && message.contains(" 0% packet loss"),
            "ping {what}: {message}"
        );
    }
}

#[test]
fn the_kernel_pings_and_finds_the_path_mtu() {
    let Some((net, _spaces)) = Net::new(1, "") else {
        return;
    };
    for size in [0, 1, 56, 1399, 1472] {
        net.pings(&format!("-s {size} 192.0.2.1"));
    }
    net.pings("-s 1372 198.51.100.1");
    net.pings("-t 1 198.51.100.1");
    for size in [0, 1, 56, 1399, 1452] {
        net.pings(&format!("-s {size} 2001:db8:a::1"));
    }
    net.pings("-t 1 2001:db8:b::1");
    net.pings("198.51.100.2");
    net.pings("2001:db8:b::2");
    assert_eq!(
        counter(&net.daemon, "ip4-icmp-echo-request", "answered"),
        7 * 3
    );
    assert_eq!(
        counter(&net.daemon, "ip6-icmp-echo-request", "answered"),
        6 * 3
    );
    let (_, message) = net.exec(10, "ping -n -c 1 -W 1 -t 1 198.51.100.2");
    assert!(
        message.contains("From 192.0.2.1") && message.contains("Time to live exceeded"),
        "{message}"
    );
    let (_, message) = net.exec(10, "ping -n -c 1 -W 1 -t 1 2001:db8:b::2");
    assert!(
        message.contains("From 2001:db8:a::1") && message.contains("Hop limit"),
        "{message}"
    );
    let (_, message) = net.exec(10, "ping -n -c 1 -W 1 203.0.113.1");
    assert!(message.contains("Destination Net Unreachable"), "{message}");
    let (_, message) = net.exec(10, "ping -n -c 1 -W 1 203.0.113.65");
    assert!(
        message.contains("Destination Host Unreachable"),
        "{message}"
    );
    let (_, message) = net.exec(10, "ping -n -c 1 -W 1 203.0.113.129");
    assert!(message.contains("Packet filtered"), "{message}");
    let (_, message) = net.exec(10, "ping -n -c 1 -W 1 2001:db8:c::1");
    assert!(message.contains("No route"), "{message}");
    let (ok, message) = net.exec(10, "ping -n -c 2 -i 0.1 -W 1 -M do -s 1400 198.51.100.2");
    assert!(
        !ok && message.contains("mtu = 1400") || message.contains("mtu=1400"),
        "{message}"
    );
    let (_, message) = net.exec(10, "ip route get 198.51.100.2");
    assert!(message.contains("mtu 1400"), "{message}");
    net.pings("-M do -s 1372 198.51.100.2");
    let (_, message) = net.exec(10, "ping -n -c 2 -i 0.1 -W 1 -M do -s 1400 2001:db8:b::2");
    assert!(message.contains("1400"), "{message}");
    let (_, message) = net.exec(10, "ip -6 route get 2001:db8:b::2");
    assert!(message.contains("mtu 1400"), "{message}");
    net.pings("-M do -s 1352 2001:db8:b::2");
    // From now on the kernel fragments to the path MTU.
    net.pings("-M want -s 3000 2001:db8:b::2");
    refused(&net);
}

/// A datagram to the router's closed port is an error at the sender's socket.
fn refused(net: &Net) {
    for router in [
        "192.0.2.1",
        "198.51.100.1",
        "2001:db8:a::1",
        "2001:db8:b::1",
    ] {
        let program = "import socket,sys;s=socket.socket(socket.AF_INET6 if ':' in sys.argv[1] else socket.AF_INET,2);\
                       s.settimeout(3);s.connect((sys.argv[1],9));s.send(b'x');s.recv(9)";
        let mut command = Command::new("timeout");
        let space = format!("icmp{}-a", net.number);
        command.args([
            "10", "ip", "netns", "exec", &space, "python3", "-c", program, router,
        ]);
        let output = command.output().unwrap();
        let message = text(&output.stderr);
        assert!(
            message.contains("ConnectionRefusedError"),
            "{router}: {message}"
        );
    }
}

#[test]
fn what_is_too_long_is_cut_and_the_kernel_puts_it_together() {
    let Some((net, _spaces)) = Net::new(4, "") else {
        return;
    };
    let cut = |what| counter(&net.daemon, "ip4-frag", what);
    net.pings("-M dont -s 1372 198.51.100.2");
    assert_eq!(cut("fragmented"), 0);
    // One byte too long; then the host sends fragments, and the router fragments each full one again.
    net.pings("-M dont -s 1373 198.51.100.2");
    assert_eq!((cut("fragmented"), cut("fragments")), (3, 6));
    net.pings("-M dont -s 4000 198.51.100.2");
    assert_eq!((cut("fragmented"), cut("fragments")), (9, 18));
    // Record route is an option of the first fragment only; the kernel checks the option of each fragment.
    let (_, message) = net.exec(10, "ping -n -c 1 -W 2 -R -M dont -s 1372 198.51.100.2");
    assert!(message.contains(" 0% packet loss"), "{message}");
    // Datagrams of every size around the limits, compared byte by byte.
    let program = "import socket,threading\n\
        s=socket.socket(2,2);s.setsockopt(0,10,0)\n\
        s.settimeout(3);s.bind(('192.0.2.2',0))\n\
        for n in (1371,1372,1373,1379,1380,1381,2752,2753,9000,20000,65507):\n\
        \x20s.sendto(bytes(i*7%251 for i in range(n)),('198.51.100.2',7));print(n,len(s.recv(99)))";
    let echo = "import socket,hashlib\ns=socket.socket(2,2);s.bind(('198.51.100.2',7));s.settimeout(20)\n\
        while 1:\n\
        \x20d,a=s.recvfrom(70000);s.sendto(b'y' if d==bytes(i*7%251 for i in range(len(d))) else b'no',a)";
    let space = |side| format!("icmp{}-{side}", net.number);
    let mut peer = Command::new("timeout")
        .args([
            "20",
            "ip",
            "netns",
            "exec",
            &space("b"),
            "python3",
            "-c",
            echo,
        ])
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_millis(500));
    let output = run(
        20,
        &["ip", "netns", "exec", &space("a"), "python3", "-c", program],
    );
    let _ = (peer.kill(), peer.wait());
    let message = text(&output.stdout) + &text(&output.stderr);
    let right = message.lines().filter(|l| l.ends_with(" 1")).count();
    assert_eq!((right, message.lines().count()), (11, 11), "{message}");
}

fn probe(net: &Net, what: &str) -> Option<String> {
    let python = oracle::python()?;
    if !has_scapy() {
        println!("SKIP: scapy is not installed");
        return None;
    }
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/icmp/probe.py");
    let line = format!(
        "{} -B {program} eth0 {} {} {what}",
        python.display(),
        HOSTS[0],
        MACS[0]
    );
    let (ok, message) = net.exec(60, &line);
    assert!(ok, "{message}");
    println!("{}", message.trim());
    Some(message)
}

#[test]
fn every_error_is_as_scapy_has_it_and_silence_is_kept() {
    let Some((net, _spaces)) = Net::new(2, "rate = 0\nreceiver_rate = 0") else {
        return;
    };
    net.pings("192.0.2.1");
    let Some(message) = probe(&net, "errors") else {
        return;
    };
    assert!(message.contains(" 0 faults"), "{message}");
    // With ICMP errors off no error is sent.
    net.daemon.ok("set ip icmp errors off");
    let (_, message) = net.exec(10, "ping -n -c 1 -W 1 -t 1 198.51.100.2");
    assert!(!message.contains("exceeded"), "{message}");
    net.pings("192.0.2.1");
    net.daemon.ok("set ip icmp");
    let (_, message) = net.exec(10, "ping -n -c 1 -W 1 -t 1 198.51.100.2");
    assert!(message.contains("exceeded"), "{message}");
}

#[test]
fn a_flood_is_limited_and_transit_goes_on() {
    let Some((net, _spaces)) = Net::new(3, "receiver_rate = 0") else {
        return;
    };
    net.pings("198.51.100.2");
    let Some(message) = probe(&net, "flood 20000") else {
        return;
    };
    let number = |after: &str| -> f64 {
        let rest = message.split(after).nth(1).unwrap();
        rest.split([' ', ',']).next().unwrap().parse().unwrap()
    };
    let (seconds, reported) = (number(" packets in "), number(" s, "));
    assert!(
        reported >= 50.0 && reported <= 52.0 + 1000.0 * (seconds + 0.5),
        "{message}"
    );
    assert!(
        counter(&net.daemon, "ip4-icmp-error", "rate-limited") > 1000,
        "{message}"
    );
    net.pings("198.51.100.2");
    // One receiver gets six at once, then one a second.
    net.daemon.ok("set ip icmp");
    let (_, message) = net.exec(20, "ping -n -c 30 -i 0.01 -W 1 -t 1 198.51.100.2");
    let reported = message.matches("exceeded").count();
    assert!((6..=9).contains(&reported), "{reported}: {message}");
}
