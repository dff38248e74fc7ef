//! Neighbours, against the kernel: two namespaces with a router between them that has no static neighbours.
//!
//! Needs root, `ip`, `ping` and Python; without them the tests say so and pass.

mod support;

use std::io::Write;
use std::time::{Duration, Instant};
use support::bed::{Bed, counter, has_scapy, judged, mac_of, resident_kib};
use support::{Daemon, text};

/// Prints the ARP packets of `seconds`, a line each: operation, sender's MAC, sender, target.
const LISTEN: &str = "print('ready',flush=True); end=time.time()+float(SECONDS); s.settimeout(0.1)\n\
    while time.time()<end:\n\
    \x20 try: f,w=s.recvfrom(2000)\n\
    \x20 except socket.timeout: continue\n\
    \x20 if w[2]!=4 and f[12:14]==b'\\x08\\x06':\n\
    \x20  a=f[14:42]; print(a[7],a[8:14].hex(),socket.inet_ntoa(a[14:18]),socket.inet_ntoa(a[24:28]),f[:6].hex(),flush=True)\n";

fn neighbors(daemon: &Daemon) -> Vec<serde_json::Value> {
    let all = daemon.json("show ip neighbors");
    all["neighbors"].as_array().unwrap().clone()
}

/// The count of an event, as shown to the operator.
fn event(daemon: &Daemon, name: &str) -> u64 {
    let all = daemon.json("show ip neighbors")["events"].clone();
    let all = all.as_array().unwrap().iter();
    let mine = all.filter(|e| e["event"] == name);
    mine.map(|e| e["count"].as_u64().unwrap()).sum()
}

fn state(daemon: &Daemon, address: &str) -> String {
    let all = neighbors(daemon);
    let row = all.iter().find(|n| n["address"] == address);
    row.map_or(String::new(), |n| n["state"].as_str().unwrap().to_owned())
}

#[test]
fn hosts_ping_through_a_router_that_was_told_nobody() {
    let Some(bed) = Bed::new() else { return };
    let daemon = bed.router();
    assert!(neighbors(&daemon).is_empty());
    assert_eq!(
        bed.pings("a", "10.78.0.2", 10, "0.05"),
        10,
        "none is lost, not even the first"
    );
    for (address, host) in [("10.77.0.2", "a"), ("10.78.0.2", "b")] {
        let all = neighbors(&daemon);
        let row = all.iter().find(|n| n["address"] == address).unwrap();
        assert_eq!(
            (&row["mac"], &row["fixed"]),
            (&mac_of(&bed, host).into(), &false.into())
        );
        let fib = daemon.ok(&format!("show ip fib {address}"));
        assert!(fib.contains(&format!("{address}/32")), "{fib}");
    }
    assert_eq!(
        state(&daemon, "10.78.0.2"),
        "reachable",
        "it was asked and answered"
    );
    assert_eq!(bed.pings("b", "10.77.0.2", 5, "0.05"), 5);
    for host in ["a", "b"] {
        assert!(bed.ip(host, "neigh show").contains("lladdr"));
    }
    assert!(counter(&daemon, "arp-reply", "replies") >= 1);
    daemon.ok("clear ip neighbors right");
    assert_eq!(state(&daemon, "10.78.0.2"), "");
    assert_eq!(bed.pings("a", "10.78.0.2", 3, "0.05"), 3);
}

#[test]
fn a_silent_host_is_asked_three_times_and_what_waited_is_dropped() {
    let Some(bed) = Bed::new() else { return };
    let mut daemon = bed.router();
    assert_eq!(bed.pings("a", "10.78.0.2", 2, "0.05"), 2);
    let used = |d: &Daemon| {
        d.json("show buffers")["arenas"][0]["used"]
            .as_u64()
            .unwrap()
    };
    let before = used(&daemon);
    let listener = bed.python("b", &LISTEN.replace("SECONDS", "5"));
    std::thread::sleep(Duration::from_millis(500));
    // The test sends twenty packets; eight may be queued.
    assert_eq!(bed.pings("a", "10.78.9.9", 20, "0.01"), 0);
    let heard = text(&listener.wait_with_output().unwrap().stdout);
    let asked = heard
        .lines()
        .filter(|l| l.starts_with("1 ") && l.contains("10.78.9.9"));
    let asked: Vec<&str> = asked.collect();
    assert_eq!(asked.len(), 3, "{heard}");
    assert!(
        asked
            .iter()
            .all(|l| l.contains("10.78.0.1") && l.ends_with("ffffffffffff"))
    );
    daemon.wait_for("the end of the wait", |d| {
        counter(d, "ip4-glean", "unresolved") >= 8
    });
    assert_eq!(counter(&daemon, "ip4-glean", "unresolved"), 8);
    assert_eq!(counter(&daemon, "neighbor-output", "evicted"), 12);
    let errors = daemon.ok("show errors");
    assert_eq!(counter(&daemon, "neighbor-output", "lost"), 8, "{errors}");
    assert_eq!(state(&daemon, "10.78.9.9"), "");
    daemon.wait_for("every buffer back", |d| used(d) <= before);
}

#[test]
fn an_interface_that_comes_up_says_who_it_is_and_a_moved_host_is_found() {
    let Some(bed) = Bed::new() else { return };
    let daemon = bed.router();
    daemon.ok("set interface state left down");
    let listener = bed.python("a", &LISTEN.replace("SECONDS", "2"));
    std::thread::sleep(Duration::from_millis(700));
    daemon.ok("set interface state left up");
    let heard = text(&listener.wait_with_output().unwrap().stdout);
    assert!(
        heard.contains(" 10.77.0.1 10.77.0.1 ffffffffffff"),
        "{heard}"
    );
    assert!(bed.pings("a", "10.78.0.2", 3, "0.2") >= 2);
    bed.ip("b", "link set e down");
    bed.ip("b", "link set e address 02:00:00:00:00:99");
    bed.ip("b", "link set e up");
    bed.ip("b", "route add default via 10.78.0.1");
    // The host's first packet needs a solicitation for the router, which learns the new address from it.
    let end = Instant::now() + Duration::from_secs(10);
    while bed.pings("b", "10.77.0.2", 2, "0.1") < 2 {
        assert!(Instant::now() < end);
    }
    assert_eq!(bed.pings("a", "10.78.0.2", 3, "0.05"), 3);
    let all = neighbors(&daemon);
    let row = all.iter().find(|n| n["address"] == "10.78.0.2").unwrap();
    assert_eq!(row["mac"], "02:00:00:00:00:99");
}

#[test]
fn configured_neighbours_stay_and_conflicts_are_told() {
    let Some(bed) = Bed::new() else { return };
    let mut daemon = bed.router();
    daemon.ok("set ip neighbor right 10.78.0.2 02:00:00:00:00:77");
    let say = "def arp(op,sha,spa,tpa,dst=b'\\xff'*6,tha=bytes(6)):\n\
        \x20 s.send(dst+sha+b'\\x08\\x06\\0\\x01\\x08\\0\\6\\4'+struct.pack('>H',op)+sha+socket.inet_aton(spa)+tha+socket.inet_aton(tpa))\n";
    let words = "arp(1,me,'10.78.0.2','10.78.0.1'); arp(2,me,'10.78.0.2','10.78.0.2'); arp(1,me,'10.78.0.1','10.78.0.1')\n";
    let listener = bed.python(
        "b",
        &format!("{say}{words}{}", LISTEN.replace("SECONDS", "2")),
    );
    let heard = text(&listener.wait_with_output().unwrap().stdout);
    assert!(
        heard.contains("1 ") && heard.contains("10.78.0.1 10.78.0.1"),
        "it defends its address: {heard}"
    );
    assert!(heard.contains("10.78.0.1 10.78.0.2"), "it answers: {heard}");
    let row = neighbors(&daemon)
        .into_iter()
        .find(|n| n["address"] == "10.78.0.2")
        .unwrap();
    assert_eq!(
        (&row["mac"], &row["state"]),
        (&"02:00:00:00:00:77".into(), &"static".into())
    );
    assert_eq!(counter(&daemon, "arp-input", "address-conflict"), 1);
    assert!(
        event(&daemon, "configured") >= 1,
        "the new MAC was heard and left aside"
    );
    daemon.wait_for("the message", |d| {
        d.log().contains("has the address 10.78.0.1 too")
    });
    assert_eq!(event(&daemon, "conflicts"), 1);
    let message = daemon.ok("show ip neighbors");
    assert!(message.contains("1 conflicts: other hosts"), "{message}");
}

#[test]
fn odd_and_malformed_arp_is_dropped_by_name() {
    let Some(bed) = Bed::new() else { return };
    let mut daemon = bed.router();
    let scapy = "from scapy.all import ARP,Ether,fuzz,Raw,conf\n\
        import random; random.seed(7); conf.verb=0\n\
        n=0\n\
        def put(p):\n\
        \x20 global n\n\
        \x20 s.send(bytes(p)[:1400]); n+=1\n\
        e=Ether(dst='ff:ff:ff:ff:ff:ff',src='02:00:00:00:00:55')\n\
        good=dict(hwsrc='02:00:00:00:00:55',psrc='10.77.0.55',pdst='10.77.0.1')\n\
        for f in [dict(hwtype=6),dict(ptype=0x86dd),dict(hwlen=8),dict(plen=16),dict(op=3),dict(op=0),dict(hwsrc='00:00:00:00:00:00'),dict(hwsrc='ff:ff:ff:ff:ff:ff'),dict(psrc='127.0.0.1'),dict(psrc='224.0.0.1'),dict(psrc='255.255.255.255'),dict(psrc='192.0.2.1'),dict(psrc='10.77.0.1'),dict(pdst='10.77.0.77'),dict(pdst='10.78.0.1')]:\n\
        \x20 put(e/ARP(**{**good,**f}))\n\
        for k in range(14,42): put(bytes(e/ARP(**good))[:k])\n\
        for k in range(3000): put(e/fuzz(ARP()))\n\
        for k in range(3000):\n\
        \x20 b=bytearray(bytes(e/ARP(**good)))\n\
        \x20 for _ in range(random.randrange(1,4)): b[random.randrange(12,len(b))]=random.randrange(256)\n\
        \x20 put(bytes(b))\n\
        print(n)\n";
    if !has_scapy() {
        println!("SKIP: no Python with scapy (cargo xtask install)");
        return;
    }
    let sent = text(&bed.python("a", scapy).wait_with_output().unwrap().stdout);
    let sent: u64 = sent.trim().parse().unwrap();
    assert!(sent > 6000);
    daemon.wait_for("all of them", |d| {
        judged(d, "arp-input", "arp-reply") >= sent
    });
    for reason in [
        "too-short",
        "bad-format",
        "bad-operation",
        "bad-sender-mac",
        "bad-sender-address",
        "sender-elsewhere",
        "address-conflict",
        "not-for-us",
    ] {
        assert!(counter(&daemon, "arp-input", reason) > 0, "{reason}");
    }
    assert_eq!(bed.pings("a", "10.78.0.2", 5, "0.05"), 5, "transit goes on");
}

#[test]
fn a_scan_of_unused_addresses_leaves_new_neighbours_reachable() {
    let Some(bed) = Bed::new() else { return };
    let daemon = bed.router();
    for host in 1..=8 {
        bed.ip("b", &format!("addr add 10.78.200.{host}/16 dev e"));
    }
    bed.ip("b", "addr add 10.79.0.2/24 dev e");
    daemon.ok("set interface ip address right 10.79.0.1/24");
    assert_eq!(bed.pings("a", "10.78.0.2", 2, "0.1"), 2);
    for (rate, hosts) in [(300, 1..=4u32), (2000, 5..=8)] {
        let scan = format!(
            "u=socket.socket(socket.AF_INET,socket.SOCK_DGRAM); begin=time.monotonic(); k=0\n\
            while time.monotonic()<begin+12:\n\
            \x20 while k<(time.monotonic()-begin)*{rate}:\n\
            \x20  u.sendto(b'x',('10.78.%d.%d'%(1+k//250%180,1+k%250),9)); k+=1\n\
            \x20 time.sleep(0.002)\n\
            print(k)\n"
        );
        let scan = bed.python("a", &scan);
        // After this time all slots were used, and all solicitations were sent a second time.
        std::thread::sleep(Duration::from_secs(4));
        for host in hosts {
            let to = format!("10.78.200.{host}");
            let answered = bed.pings("a", &to, 10, "0.1");
            println!("{rate}/s: {answered} of 10 pings to {to} were answered, at least 5");
            assert!(answered >= 5, "{rate}/s: {answered} of 10 pings to {to}");
        }
        daemon.ok("clear ip neighbors right");
        assert!(
            bed.pings("a", "10.79.0.2", 5, "0.1") >= 4,
            "{rate}/s: another network"
        );
        assert!(
            bed.pings("a", "10.78.0.2", 5, "0.1") >= 4,
            "{rate}/s: known before"
        );
        let sent = text(&scan.wait_with_output().unwrap().stdout);
        assert!(sent.trim().parse::<u32>().unwrap() > rate * 8, "{sent}");
    }
    let on_right = neighbors(&daemon).len();
    assert!(on_right <= 1024 + 20, "{on_right}");
}

#[test]
fn a_flood_of_spoofed_arp_is_bounded_and_transit_goes_on() {
    let Some(bed) = Bed::new() else { return };
    let daemon = bed.router();
    assert_eq!(bed.pings("a", "10.78.0.2", 5, "0.05"), 5);
    let (before, count) = (resident_kib(daemon.pid()), 100_000);
    // Half of them are requests for the router, a quarter replies to it, and a quarter are packets to neighbours that do not
    // exist.
    let flood = format!(
        "for k in range({count}):\n\
        \x20 h=b'\\x02\\x66'+struct.pack('>I',k); ip=b'\\x0a\\x4d'+struct.pack('>H',256+k*7%60000); us=b'\\x0a\\x4d\\0\\1'\n\
        \x20 op=1 if k%2==0 else 2\n\
        \x20 s.send(b'\\xff'*6+h+b'\\x08\\x06\\0\\1\\x08\\0\\6\\4'+struct.pack('>H',op)+h+ip+bytes(6)+us)\n\
        \x20 if k%50==0: time.sleep(0.001)\n\
        print('done')\n"
    );
    let child = bed.python("a", &flood);
    let through = bed.pings("b", "10.77.0.2", 200, "0.01");
    let message = text(&child.wait_with_output().unwrap().stdout);
    assert!(message.contains("done"));
    let known = neighbors(&daemon);
    println!("{through} of 200 pings passed; {} neighbours", known.len());
    assert!(
        through >= 195,
        "{through} of 200 pings passed beside the flood"
    );
    assert!(known.len() <= 4097 && known.len() > 1000, "{}", known.len());
    assert!(event(&daemon, "evicted") + event(&daemon, "refused") > 0);
    let grown = resident_kib(daemon.pid()).saturating_sub(before);
    println!("memory grew by {grown} KiB");
    assert!(grown < 64 * 1024, "{grown} KiB");
    assert_eq!(bed.pings("a", "10.78.0.2", 5, "0.05"), 5);
    // Meanwhile a scan of neighbours that do not exist.
    let scan = "import random\n\
        u=socket.socket(socket.AF_INET,socket.SOCK_DGRAM)\n\
        for k in range(50000):\n\
        \x20 u.sendto(b'x',('10.78.%d.%d'%(1+k//250,1+k%250),9))\n\
        \x20 if k%50==0: time.sleep(0.001)\n\
        print('done')\n";
    let child = bed.python("a", scan);
    let through = bed.pings("b", "10.77.0.2", 200, "0.01");
    assert!(text(&child.wait_with_output().unwrap().stdout).contains("done"));
    println!("{through} of 200 pings passed beside the scan");
    assert!(
        through >= 195,
        "{through} of 200 pings passed beside the scan"
    );
    let on_right = neighbors(&daemon)
        .iter()
        .filter(|n| n["interface"] == "right")
        .count();
    assert!(on_right <= 4096, "{on_right}");
    let _ = std::io::stdout().flush();
}
