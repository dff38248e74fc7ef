//! Duplicate address detection before an address is used, and replies for other addresses, against the kernel.
//!
//! Needs root, `ip`, `ping` and Python; without them the tests say so and pass.

mod support;

use support::bed::{Bed, counter, mac_of};
use support::{Daemon, text};

/// The state of an address of `left`.
fn state(daemon: &Daemon, address: &str) -> String {
    let row = daemon.json("show ip6 nd left")["interfaces"][0].clone();
    let all = row["addresses"].as_array().unwrap().iter();
    let mine = all.filter(|a| a["address"] == address);
    let states: Vec<&str> = mine.map(|a| a["state"].as_str().unwrap()).collect();
    assert_eq!(states.len(), 1, "{row}");
    states[0].to_owned()
}

/// Prints, for some seconds, solicitations from the unspecified address and ARP probes: target, destination, source.
const LISTEN: &str = "end=time.time()+SECONDS; s.settimeout(0.1)\n\
    n=lambda b: socket.inet_ntop(socket.AF_INET6,b)\n\
    while time.time()<end:\n\
    \x20 try: f,w=s.recvfrom(2000)\n\
    \x20 except socket.timeout: continue\n\
    \x20 if w[2]==4: continue\n\
    \x20 if f[12:14]==b'\\x86\\xdd' and f[20]==58 and f[54]==135 and f[22:38]==bytes(16):\n\
    \x20  print(n(f[62:78]),n(f[38:54]),f[:6].hex(':'),len(f),f[21],flush=True)\n\
    \x20 if f[12:14]==b'\\x08\\x06' and f[28:32]==bytes(4):\n\
    \x20  print(socket.inet_ntoa(f[38:42]),f[20:22].hex(),f[:6].hex(':'),flush=True)\n";

#[test]
fn an_address_is_used_when_nobody_has_it() {
    let Some(bed) = Bed::new() else { return };
    let mut daemon = bed.router();
    daemon.ok("set interface dad left 4");
    assert_eq!(
        state(&daemon, "2001:db8:77::1/64"),
        "preferred",
        "it was used before"
    );
    let listener = bed.python("a", &LISTEN.replace("SECONDS", "14"));
    std::thread::sleep(std::time::Duration::from_millis(700));
    daemon.ok("set interface ip6 address left 2001:db8:77::7/64");
    daemon.ok("set interface ip address left 10.77.0.7/16");
    for address in ["2001:db8:77::7/64", "10.77.0.7/16"] {
        assert_eq!(state(&daemon, address), "tentative");
    }
    for (address, alone) in [
        ("2001:db8:77::7/64", "2001:db8:77::7"),
        ("10.77.0.7/16", "10.77.0.7"),
    ] {
        daemon.wait_for(alone, |d| state(d, address) == "preferred");
        daemon.wait_for("a ping", |_| bed.pings("a", alone, 1, "1") == 1);
    }
    let heard = text(&listener.wait_with_output().unwrap().stdout);
    let times = |line: &str| heard.lines().filter(|l| *l == line).count();
    let six = "2001:db8:77::7 ff02::1:ff00:7 33:33:ff:00:00:07 78 255";
    assert_eq!(
        (times(six), times("10.77.0.7 0001 ff:ff:ff:ff:ff:ff")),
        (4, 4),
        "{heard}"
    );
    // The link was down, so other hosts may have the addresses: they are probed again.
    daemon.ok("set interface state left down");
    daemon.ok("set interface state left up");
    assert_eq!(state(&daemon, "2001:db8:77::1/64"), "tentative");
    daemon.wait_for("all", |d| state(d, "2001:db8:77::1/64") == "preferred");
    daemon.ok("set interface dad left off");
    daemon.ok("set interface ip6 address left 2001:db8:77::8/64");
    assert_eq!(state(&daemon, "2001:db8:77::8/64"), "preferred", "at once");
}

#[test]
fn an_address_that_a_kernel_host_has_is_not_used() {
    let Some(bed) = Bed::new() else { return };
    let mut daemon = bed.router();
    daemon.ok("set interface dad left 1");
    daemon.ok("set interface ip6 address left 2001:db8:77::2/64");
    daemon.ok("set interface ip address left 10.77.0.2/16");
    let mac = mac_of(&bed, "a");
    for (address, alone) in [
        ("2001:db8:77::2/64", "2001:db8:77::2"),
        ("10.77.0.2/16", "10.77.0.2"),
    ] {
        daemon.wait_for(alone, |d| state(d, address) == "duplicate");
        daemon.wait_for("the message", |d| {
            d.log().contains(&format!(
                "the address {alone} is not used, for another station ({mac}) has it"
            ))
        });
        assert_eq!(
            bed.pings("b", alone, 3, "0.05"),
            3,
            "the host answers, not the router"
        );
    }
    let shown = daemon.ok("show ip6 nd left");
    assert!(shown.contains("2001:db8:77::2/64, duplicate"), "{shown}");
    let events = daemon.json("show ip6 neighbors")["events"].clone();
    let all = events.as_array().unwrap();
    assert!(
        all.iter()
            .any(|e| e["event"] == "duplicates" && e["count"] == 2),
        "{events}"
    );
    // After the host has left, the address is free when the link comes up again.
    bed.ip("a", "-6 addr del 2001:db8:77::2/64 dev e");
    daemon.ok("set interface state left down");
    daemon.ok("set interface state left up");
    daemon.wait_for("the address", |d| {
        state(d, "2001:db8:77::2/64") == "preferred"
    });
}

#[test]
fn two_that_try_an_address_at_once_both_leave_it() {
    let Some(bed) = Bed::new() else { return };
    let mut daemon = bed.router();
    daemon.ok("set interface dad left 3");
    // A rival that answers the router's probe with the same probe.
    let rival = "s.settimeout(20); p=lambda t: socket.inet_pton(socket.AF_INET6,t)\n\
        while True:\n\
        \x20 f=s.recv(2000)\n\
        \x20 if f[12:14]==b'\\x86\\xdd' and f[54]==135 and f[22:38]==bytes(16) and f[62:78]==p('2001:db8:77::9'): break\n\
        s.send(f[:6]+me+f[12:]); print('asked')\n";
    let rival = bed.python("a", rival);
    std::thread::sleep(std::time::Duration::from_millis(700));
    daemon.ok("set interface ip6 address left 2001:db8:77::9/64");
    daemon.wait_for("the conflict", |d| {
        state(d, "2001:db8:77::9/64") == "duplicate"
    });
    assert!(text(&rival.wait_with_output().unwrap().stdout).contains("asked"));
    // In the opposite direction: the kernel finds that the router has an address.
    bed.ip("a", "addr add 2001:db8:77::1/64 dev e");
    daemon.wait_for("the kernel's finding", |_| {
        bed.ip("a", "-6 addr show dev e").contains("dadfailed")
    });
    assert!(counter(&daemon, "nd-reply", "replies") >= 1);
}
/// Prints neighbour advertisements and ARP replies: target, source, flags, MAC address.
const ANSWERS: &str = "end=time.time()+SECONDS; s.settimeout(0.1)\n\
    n=lambda b: socket.inet_ntop(socket.AF_INET6,b)\n\
    while time.time()<end:\n\
    \x20 try: f,w=s.recvfrom(2000)\n\
    \x20 except socket.timeout: continue\n\
    \x20 if w[2]==4: continue\n\
    \x20 if f[12:14]==b'\\x86\\xdd' and f[20]==58 and f[54]==136: print(n(f[62:78]),n(f[22:38]),f[58],f[80:86].hex(':'),flush=True)\n\
    \x20 if f[12:14]==b'\\x08\\x06' and f[21]==2: print(socket.inet_ntoa(f[28:32]),f[22:28].hex(':'),flush=True)\n";

#[test]
fn hosts_behind_the_router_are_answered_for() {
    let Some(bed) = Bed::new() else { return };
    let daemon = bed.router();
    // Host a takes everything to be on its link: the whole of 10/8, and the IPv6 prefix of the other link.
    bed.ip("a", "addr del 10.77.0.2/16 dev e");
    bed.ip("a", "addr add 10.77.0.2/8 dev e");
    bed.ip("a", "-6 route add 2001:db8:78::/64 dev e");
    assert_eq!(
        bed.pings("a", "10.78.0.2", 1, "1"),
        0,
        "nobody answers for it"
    );
    daemon.ok("set interface proxy left 10.0.0.0/8 2001:db8:78::/64");
    let listener = bed.python("a", &ANSWERS.replace("SECONDS", "8"));
    std::thread::sleep(std::time::Duration::from_millis(700));
    bed.ip("a", "neigh flush dev e");
    for to in ["10.78.0.2", "2001:db8:78::2"] {
        assert_eq!(bed.pings("a", to, 3, "0.05"), 3, "{to}");
    }
    let all = daemon.json("show interface left");
    let mac = all["interfaces"][0]["mac"].as_str().unwrap().to_owned();
    for to in ["10.78.0.2", "2001:db8:78::2"] {
        let message = bed.ip("a", &format!("neigh show {to} dev e"));
        assert!(message.contains(&mac), "{message}");
    }
    // The target does not exist, or is on host a's link: the router does not reply.
    for to in ["10.99.0.1", "10.77.0.99"] {
        assert_eq!(bed.pings("a", to, 1, "1"), 0, "{to}");
    }
    let heard = text(&listener.wait_with_output().unwrap().stdout);
    let local = daemon.json("show ip6 nd left")["interfaces"][0]["link_local"].clone();
    let six = format!("2001:db8:78::2 {} 64 {mac}", local.as_str().unwrap());
    assert!(heard.lines().any(|l| l == six), "{heard} {six}");
    assert!(
        heard.lines().any(|l| l == format!("10.78.0.2 {mac}")),
        "{heard}"
    );
    assert!(
        !heard.contains("10.99.") && !heard.contains("10.77.0.99"),
        "{heard}"
    );
    assert!(
        counter(&daemon, "arp-input", "proxied") >= 1
            && counter(&daemon, "nd-input", "proxied") >= 1
    );
    // A probe for an address gets no proxy reply.
    bed.ip("a", "addr add 2001:db8:78::99/128 dev e");
    std::thread::sleep(std::time::Duration::from_millis(1500));
    let message = bed.ip("a", "-6 addr show dev e");
    assert!(
        message.contains("2001:db8:78::99/128") && !message.contains("dadfailed"),
        "{message}"
    );
    daemon.ok("set interface proxy left off");
    bed.ip("a", "neigh flush dev e");
    assert_eq!(bed.pings("a", "10.78.0.2", 1, "1"), 0, "off again");
}

/// Processor time of all threads of a process, also of those that have ended; other programs do not change it.
fn processor_seconds(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields = stat.rsplit(')').next().unwrap().split_whitespace();
    let ticks = fields.skip(11).take(2).map(|n| n.parse::<u64>().unwrap());
    // The kernel counts hundredths of seconds.
    ticks.sum::<u64>() as f64 / 100.0
}

/// Adds addresses to an interface in one transaction and removes them in another; returns the seconds that both take.
fn add_and_remove(daemon: &mut Daemon, interface: &str, length: u8, count: u32) -> f64 {
    let mut http = support::http::Http::connect(&daemon.folder.file("s.http.sock"));
    let mut seconds = 0.0;
    for (verb, left) in [("set", count as usize), ("unset", 0)] {
        let one = |n: u32| {
            let host = std::net::Ipv4Addr::from(0x0a00_0001 + (n << (32 - length)));
            let address = format!("{host}/{length}");
            serde_json::json!({verb: {"class": "address", "interface": interface, "address": address}})
        };
        let all: Vec<_> = (0..count).map(one).collect();
        let before = processor_seconds(daemon.pid());
        let (status, message) = http.post("/v1/transactions", &serde_json::json!(all));
        seconds += processor_seconds(daemon.pid()) - before;
        assert_eq!(status, 200, "{message}");
        let rows = daemon.json(&format!("show interface address {interface}"));
        assert_eq!(rows.to_string().matches("\"10.").count(), left, "{verb}");
    }
    seconds
}

#[test]
fn thousands_of_addresses_are_added_and_removed_in_a_linear_time() {
    let mut daemon = Daemon::start("", &[]);
    for (name, state) in [("pg0", "up"), ("pg1", "down")] {
        daemon.ok(&format!("create packet-generator interface {name}"));
        daemon.ok(&format!("set interface state {name} {state}"));
    }
    for (name, length) in [("pg0", 32), ("pg0", 30), ("pg1", 30)] {
        let few = add_and_remove(&mut daemon, name, length, 4000);
        let many = add_and_remove(&mut daemon, name, length, 16_000);
        println!(
            "{name} /{length}: 4,000 addresses {few:.2} s, 16,000 {many:.2} s, at most {:.2} s",
            8.0 * few + 0.5
        );
        // If time grew with the square of the number, it would be 16 times as long.
        assert!(
            many < 8.0 * few + 0.5,
            "four times as many take {:.1} times as long",
            many / few
        );
    }
}
