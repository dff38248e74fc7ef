//! 802.1Q devices and VRFs of the kernel on LCP taps of interfaces.
//!
//! Needs root and a kernel that has both; without them the tests say so and pass. `cargo xtask show router --only lcp-devices`
//! runs them under Debian's kernel in an emulated guest: waits are long because it is slow.

mod support;

use support::bed::{Bed, Space, must, run};
use support::mirror::{in_step, soon};
use support::{Daemon, oracle, text};

/// Hosts a and b, a router between them with an LCP tap for each interface, and the taps' namespace.
fn mirrored() -> Option<(Bed, Daemon, Space)> {
    let bed = Bed::new()?;
    let space = Space::new(bed.name("k"))?;
    let able = |at: &str, device: &str| {
        let line = format!("ip -n {at} link add {device}");
        let words: Vec<&str> = line.split(' ').collect();
        let made = run(20, &words).status.success();
        made.then(|| must(&format!("ip -n {at} link del probe")))
            .is_some()
    };
    let vlans = able(&bed.name("a"), "link e name probe type vlan id 99");
    if !vlans || !able(&space.0, "probe type vrf table 99") {
        println!("SKIP: this kernel has no 802.1Q devices or no VRFs");
        return None;
    }
    space.ip("link set lo up");
    let daemon = bed.router();
    for end in ["left", "right"] {
        daemon.ok(&format!("lcp create {end} host-if {end} netns {}", space.0));
    }
    in_step(&daemon);
    Some((bed, daemon, space))
}

/// Creates a VLAN device on another device in a namespace, up, with an address of each family.
fn device(space: &str, on: &str, name: &str, vlan: u16, net: u16, host: u8) {
    let ip = |words: String| must(&format!("ip -n {space} {words}"));
    ip(format!(
        "link add link {on} name {name} type vlan id {vlan}"
    ));
    ip(format!("addr add 10.{net}.0.{host}/24 dev {name}"));
    ip(format!("link set {name} up"));
    ip(format!(
        "addr add 2001:db8:{net}::{host}/64 dev {name} nodad"
    ));
}

fn kernel_pings(space: &Space, to: &str) {
    soon(to, || space.does(10, &format!("ping -n -q -c 1 -W 2 {to}")));
}

/// Waits for an interface with an address and returns its name.
fn with_address(daemon: &Daemon, address: &str) -> String {
    let mut found = String::new();
    soon(address, || {
        let all = daemon.json("show interface");
        let rows = all["interfaces"].as_array().unwrap().clone();
        let has = |r: &&serde_json::Value| {
            let addresses = r["addresses"].as_array().unwrap();
            r["link"] == "up" && r["state"] == "up" && addresses.iter().any(|a| a == address)
        };
        let row = rows.iter().find(has);
        found = row.map_or(String::new(), |r| r["name"].as_str().unwrap().to_owned());
        row.is_some()
    });
    found
}

const SERVE: &str = "import socket\n\
    s=socket.create_server(('10.100.0.1',8080)); s.settimeout(60); c,w=s.accept(); got=b''\n\
    while len(got)<100000: got+=c.recv(65536)\n\
    c.sendall(got[::-1]); c.close()\n";
const CALL: &str = "import socket,os,time\n\
    for i in range(100):\n\
    \x20 try: c=socket.create_connection(('10.100.0.1',8080),5); break\n\
    \x20 except OSError: time.sleep(0.2)\n\
    sent=os.urandom(100000); c.sendall(sent); got=b''\n\
    while len(got)<100000:\n\
    \x20 part=c.recv(65536)\n\
    \x20 if not part: break\n\
    \x20 got+=part\n\
    print('same' if got==sent[::-1] else 'other %d'%len(got))\n";

/// Host a uses a service of the kernel on the device's address.
fn serves(bed: &Bed, space: &Space) {
    let python = oracle::python().unwrap();
    let mut server = std::process::Command::new("timeout")
        .args(["-k", "1", "90", "ip", "netns", "exec", &space.0])
        .arg(&python)
        .args(["-c", SERVE])
        .spawn()
        .unwrap();
    let message = bed.exec("a", 80, &[python.to_str().unwrap(), "-c", CALL]);
    assert_eq!(
        text(&message.stdout).trim(),
        "same",
        "{}",
        text(&message.stderr)
    );
    server.wait().unwrap();
}

#[test]
fn devices_of_the_kernel_are_sub_interfaces() {
    let Some((bed, daemon, space)) = mirrored() else {
        return;
    };
    device(&bed.name("a"), "e", "e.100", 100, 100, 2);
    device(&bed.name("a"), "e.100", "q", 7, 107, 2);
    device(&space.0, "left", "tagged", 100, 100, 1);
    device(&space.0, "tagged", "twice", 7, 107, 1);
    assert_eq!(with_address(&daemon, "10.100.0.1/24"), "left.100");
    assert_eq!(with_address(&daemon, "2001:db8:107::1/64"), "left.1000007");
    in_step(&daemon);
    for net in [100, 107] {
        for family in [format!("10.{net}.0."), format!("2001:db8:{net}::")] {
            assert_eq!(
                bed.pings("a", &format!("{family}1"), 3, "0.2"),
                3,
                "Volley answers {family}"
            );
            kernel_pings(&space, &format!("{family}2"));
        }
    }
    bed.ip("a", "route add 10.78.0.0/16 via 10.100.0.1");
    assert_eq!(bed.pings("a", "10.78.0.2", 3, "0.2"), 3, "and forwards");
    serves(&bed, &space);

    // Routes over the devices in both directions.
    space.ip("route add 198.51.100.0/24 via 10.100.0.2");
    daemon.ok("ip route add 198.51.101.0/24 via 10.107.0.2 left.1000007");
    in_step(&daemon);
    let fib = daemon.ok("show ip fib 198.51.100.1");
    assert!(
        fib.contains("lcp-rt") && fib.contains("via 10.100.0.2 left.100"),
        "{fib}"
    );
    let reported = space.ip("route show 198.51.101.0/24");
    assert!(
        reported.contains("via 10.107.0.2 dev twice proto 86"),
        "{reported}"
    );
    daemon.ok("ip route del 198.51.101.0/24 via 10.107.0.2 left.1000007");

    let refused = daemon.refused("lcp delete left");
    assert!(refused.contains("left.100"), "{refused}");
    space.ip("link del twice");
    let there = |name: &str| daemon.ok("show interface").contains(name);
    soon("the end of the device in Volley", || !there("left.1000007"));
    daemon.ok("lcp delete left.100");
    soon("the end of the twin in the kernel", || {
        !space.ip("-o link").contains("tagged@")
    });
    assert!(
        there("left.100"),
        "Volley has said nothing of the sub-interface"
    );
    in_step(&daemon);
    assert_eq!(bed.pings("a", "10.100.0.1", 3, "0.2"), 3, "which goes on");
}

#[test]
fn sub_interfaces_of_volley_get_a_device() {
    let Some((bed, daemon, space)) = mirrored() else {
        return;
    };
    device(&bed.name("a"), "e", "e.200", 200, 200, 2);
    let create = format!("lcp create left.200 host-if v200 vlan netns {}", space.0);
    assert!(daemon.refused(&create).contains("left.200"));
    for line in [
        "create sub-interfaces left 200 dot1q 200 exact-match",
        "set interface ip address left.200 10.200.0.1/24",
        "set interface state left.200 up",
        &create,
    ] {
        daemon.ok(line);
    }
    in_step(&daemon);
    let link = space.ip("-d link show v200");
    assert!(
        link.contains("v200@left") && link.contains("vlan protocol 802.1Q id 200"),
        "{link}"
    );
    kernel_pings(&space, "10.200.0.2");
    let written = daemon.ok("config show");
    assert!(written.contains("vlan = true"), "{written}");
    space.ip("link set v200 down");
    soon("down, by the kernel", || {
        daemon.json("show interface left.200")["interfaces"][0]["state"] == "down"
    });
    daemon.ok("delete interface left.200");
    soon("the end of the device", || {
        !space.ip("-o link").contains("v200")
    });
    in_step(&daemon);
}

#[test]
fn taps_in_a_vrf_take_their_interfaces_along() {
    let Some((bed, daemon, space)) = mirrored() else {
        return;
    };
    let tables = |name: &str| {
        daemon.json(&format!("show interface {name}"))["interfaces"][0]["tables"].clone()
    };
    let both = |table: u32| serde_json::json!({ "ip4": table, "ip6": table });
    assert_eq!(bed.pings("a", "10.78.0.2", 2, "0.2"), 2);
    space.ip("link add red type vrf table 10");
    space.ip("link set red up");
    space.ip("link set right master red");
    soon("right in its table", || tables("right") == both(10));
    in_step(&daemon);
    let has = daemon.ok("show interface address right");
    assert!(
        has.contains("10.78.0.1/16") && has.contains("2001:db8:78::1/64"),
        "{has}"
    );
    assert_eq!(
        bed.pings("a", "10.78.0.2", 2, "0.2"),
        0,
        "it is another network now"
    );
    kernel_pings(&space, "-I red 10.78.0.2");
    space.ip("route add 198.51.100.0/24 via 10.78.0.2 table 10");
    daemon.ok("ip route add 198.51.101.0/24 table 10 via 10.78.0.2 right");
    space.ip("link set left master red");
    soon("left in its table", || tables("left") == both(10));
    in_step(&daemon);
    let fib = daemon.ok("show ip fib 198.51.100.1 table 10");
    assert!(
        fib.contains("lcp-rt") && fib.contains("via 10.78.0.2 \"right\""),
        "{fib}"
    );
    let reported = space.ip("route show 198.51.101.0/24 table 10");
    assert!(
        reported.contains("via 10.78.0.2 dev right proto 86"),
        "{reported}"
    );
    assert_eq!(
        bed.pings("a", "10.78.0.2", 3, "0.2"),
        3,
        "both are in one network"
    );
    assert_eq!(bed.pings("a", "2001:db8:78::2", 3, "0.2"), 3);
    for end in ["left", "right"] {
        space.ip(&format!("link set {end} nomaster"));
        soon("the way back", || tables(end) == both(0));
    }
    in_step(&daemon);
    assert_eq!(bed.pings("a", "10.78.0.2", 3, "0.2"), 3);
}
