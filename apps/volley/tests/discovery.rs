//! Neighbour discovery of IPv6, against the kernel: two namespaces with a router between them that has no static neighbours.
//!
//! Needs root, `ip`, `ping` and Python; without them the tests say so and pass.

mod support;

use std::time::Duration;
use support::bed::{Bed, counter, has_scapy, judged, mac_of, resident_kib};
use support::{Daemon, text};

/// Prints the messages of neighbour discovery in `SECONDS`, a line each: type, source, destination, target.
const LISTEN: &str = "end=time.time()+float(SECONDS); s.settimeout(0.1)\n\
    n=lambda b: socket.inet_ntop(socket.AF_INET6,b)\n\
    while time.time()<end:\n\
    \x20 try: f,w=s.recvfrom(2000)\n\
    \x20 except socket.timeout: continue\n\
    \x20 if w[2]!=4 and f[12:14]==b'\\x86\\xdd' and f[20]==58 and f[54] in (135,136):\n\
    \x20  print(f[54],n(f[22:38]),n(f[38:54]),n(f[62:78]),flush=True)\n";

fn neighbors(daemon: &Daemon) -> Vec<serde_json::Value> {
    let all = daemon.json("show ip6 neighbors");
    all["neighbors"].as_array().unwrap().clone()
}

fn row(daemon: &Daemon, address: &str) -> Option<serde_json::Value> {
    let all = neighbors(daemon);
    all.into_iter().find(|n| n["address"] == address)
}

#[test]
fn hosts_ping_through_a_router_that_was_told_nobody() {
    let Some(bed) = Bed::new() else { return };
    let daemon = bed.router();
    assert_eq!(
        bed.pings("a", "2001:db8:78::2", 10, "0.05"),
        10,
        "none is lost, not even the first"
    );
    for (address, host) in [("2001:db8:77::2", "a"), ("2001:db8:78::2", "b")] {
        let found = row(&daemon, address).unwrap();
        assert_eq!(
            (&found["mac"], &found["fixed"]),
            (&mac_of(&bed, host).into(), &false.into())
        );
        let fib = daemon.ok(&format!("show ip6 fib {address}"));
        assert!(fib.contains(&format!("{address}/128")), "{fib}");
    }
    let found = row(&daemon, "2001:db8:78::2").unwrap();
    assert_eq!(found["state"], "reachable", "it was asked and answered");
    assert_eq!(bed.pings("b", "2001:db8:77::2", 5, "0.05"), 5);
    assert_eq!(bed.pings("a", "2001:db8:77::1", 3, "0.05"), 3);
    // Host a solicited its router, whose reply has the router flag; the router solicited b.
    let message = bed.ip("a", "-6 neigh show 2001:db8:77::1 dev e");
    assert!(
        message.contains("lladdr") && message.contains("router"),
        "{message}"
    );
    assert!(counter(&daemon, "nd-reply", "replies") >= 1);
    daemon.ok("clear ip6 neighbors right");
    assert_eq!(row(&daemon, "2001:db8:78::2"), None);
    assert_eq!(bed.pings("a", "2001:db8:78::2", 3, "0.05"), 3);
    // The router's automatic link-local address can be a next hop.
    let all = daemon.json("show interface left");
    let mac = all["interfaces"][0]["mac"].as_str().unwrap().to_owned();
    let m: Vec<u8> = mac
        .split(':')
        .map(|b| u8::from_str_radix(b, 16).unwrap())
        .collect();
    let local = format!(
        "fe80::{:x}:{:x}:{:x}:{:x}",
        u16::from(m[0] ^ 2) << 8 | u16::from(m[1]),
        u16::from(m[2]) << 8 | 0xff,
        0xfe00 | u16::from(m[3]),
        u16::from(m[4]) << 8 | u16::from(m[5])
    );
    bed.ip("a", &format!("-6 route replace default via {local} dev e"));
    assert_eq!(bed.pings("a", "2001:db8:78::2", 3, "0.05"), 3, "{local}");
}

#[test]
fn a_silent_host_is_asked_three_times_and_senders_are_told() {
    let Some(bed) = Bed::new() else { return };
    let mut daemon = bed.router();
    assert_eq!(bed.pings("a", "2001:db8:78::2", 2, "0.05"), 2);
    let listener = bed.python("b", &LISTEN.replace("SECONDS", "6"));
    std::thread::sleep(Duration::from_millis(500));
    // The test sends twenty packets; eight may be queued.
    let to = "2001:db8:78::99";
    let words = ["ping", "-n", "-i", "0.01", "-c", "20", "-W", "4", to];
    let message = text(&bed.exec("a", 30, &words).stdout);
    assert!(message.contains("Address unreachable"), "{message}");
    let heard = text(&listener.wait_with_output().unwrap().stdout);
    let asked = heard
        .lines()
        .filter(|l| *l == format!("135 2001:db8:78::1 ff02::1:ff00:99 {to}"));
    assert_eq!(asked.count(), 3, "{heard}");
    // A full queue drops the oldest packet, which causes no error (RFC 4861, 7.2.2).
    let gone = |d: &Daemon| {
        counter(d, "ip6-glean", "unresolved") + counter(d, "neighbor-output", "evicted")
    };
    daemon.wait_for("the end of the wait", |d| gone(d) >= 20);
    assert_eq!(gone(&daemon), 20);
    assert!(counter(&daemon, "ip6-icmp-error", "sent-unreachable") >= 1);
    assert_eq!(row(&daemon, to), None);
}

#[test]
fn an_interface_that_comes_up_says_who_it_is_and_defends_its_address() {
    let Some(bed) = Bed::new() else { return };
    let mut daemon = bed.router();
    daemon.ok("set interface state left down");
    // Another host claims the router's address: both are notified.
    let claim = "time.sleep(1.2)\n\
        p=lambda t: socket.inet_pton(socket.AF_INET6,t)\n\
        us=p('2001:db8:77::1'); to=p('ff02::1'); m=bytes([136,0,0,0,0x20,0,0,0])+us+b'\\2\\1'+me\n\
        d=us+to+struct.pack('>II',32,58)+m; t=sum(struct.unpack('>%dH'%(len(d)//2),d))%0xffff\n\
        m=m[:2]+struct.pack('>H',0xffff-t)+m[4:]\n\
        s.send(b'\\x33\\x33\\0\\0\\0\\1'+me+b'\\x86\\xdd'+struct.pack('>IHBB',6<<28,32,58,255)+us+to+m)\n";
    let listener = bed.python("a", &format!("{claim}{}", LISTEN.replace("SECONDS", "1.5")));
    std::thread::sleep(Duration::from_millis(900));
    daemon.ok("set interface state left up");
    let heard = text(&listener.wait_with_output().unwrap().stdout);
    let ours = "136 2001:db8:77::1 ff02::1 2001:db8:77::1";
    let times = heard.lines().filter(|l| *l == ours).count();
    assert!(times >= 2, "announced and defended: {heard}");
    assert_eq!(counter(&daemon, "nd-input", "address-conflict"), 1);
    daemon.wait_for("the message", |d| {
        d.log().contains("has the address 2001:db8:77::1 too")
    });
}

/// Neighbour discovery by scapy: a message for each rule, then truncated, fuzzed and mutated ones.
const SCAPY: &str = "from scapy.all import Ether,IPv6,ICMPv6ND_NS,ICMPv6ND_NA,ICMPv6NDOptSrcLLAddr,ICMPv6NDOptDstLLAddr,ICMPv6ND_RA,UDP,fuzz,Raw\n\
    import random; random.seed(9)\n\
    n=0\n\
    def put(p):\n\
    \x20 global n\n\
    \x20 s.send(bytes(p)[:1400]); n+=1\n\
    \x20 if n%64==0: time.sleep(0.002)\n\
    us='2001:db8:77::1'; group='ff02::1:ff00:1'; m='02:00:00:00:00:55'\n\
    e=Ether(dst='33:33:ff:00:00:01',src=m)\n\
    def ip(**k): return IPv6(**{**dict(src='2001:db8:77::55',dst=group,hlim=255),**k})\n\
    sl=ICMPv6NDOptSrcLLAddr(lladdr=m); good=e/ip()/ICMPv6ND_NS(tgt=us)/sl\n\
    put(e/ip()/UDP()); put(e/ip()/ICMPv6ND_RA()); put(e/ip(hlim=64)/ICMPv6ND_NS(tgt=us)/sl)\n\
    put(e/ip()/ICMPv6ND_NS(tgt=us,cksum=1)/sl); put(e/ip()/ICMPv6ND_NS(tgt=us,code=3)/sl)\n\
    put(e/ip()/ICMPv6ND_NS(tgt='ff02::1')/sl); put(e/ip()/ICMPv6ND_NS(tgt=us)/Raw(b'\\1\\0\\2\\0\\0\\0\\0\\x55'))\n\
    put(e/ip(src='::')/ICMPv6ND_NS(tgt=us)/sl); put(e/ip(dst='ff02::1')/ICMPv6ND_NA(tgt='2001:db8:77::55',S=1))\n\
    put(e/ip()/ICMPv6ND_NS(tgt=us)/ICMPv6NDOptSrcLLAddr(lladdr='ff:ff:ff:ff:ff:ff')); put(e/ip(src='::1')/ICMPv6ND_NS(tgt=us)/sl)\n\
    put(e/ip(src=us)/ICMPv6ND_NS(tgt=us)/sl); put(e/ip(src='2001:db8:99::1')/ICMPv6ND_NS(tgt=us)/sl)\n\
    put(e/ip(dst='ff02::1:ff00:77')/ICMPv6ND_NS(tgt='2001:db8:77::77')/sl); put(good); put(good)\n\
    b=bytes(good)\n\
    for k in range(14,len(b)): put(b[:k])\n\
    for k in range(1500): put(e/ip()/fuzz(ICMPv6ND_NS())/sl); put(e/ip()/fuzz(ICMPv6ND_NA())/ICMPv6NDOptDstLLAddr(lladdr=m))\n\
    for k in range(3000):\n\
    \x20 b=bytearray(bytes(good))\n\
    \x20 for _ in range(random.randrange(1,4)): b[random.randrange(12,len(b))]=random.randrange(256)\n\
    \x20 put(bytes(b))\n\
    print(n)\n";

#[test]
fn odd_and_malformed_messages_are_dropped_by_name() {
    let Some(bed) = Bed::new() else { return };
    let mut daemon = bed.router();
    if !has_scapy() {
        println!("SKIP: no Python with scapy (cargo xtask install)");
        return;
    }
    let sent = text(&bed.python("a", SCAPY).wait_with_output().unwrap().stdout);
    let sent: u64 = sent.trim().parse().unwrap();
    assert!(sent > 6000);
    // Some are accepted advertisements, and some mutations become other packets.
    daemon.wait_for("nearly all of them", |d| {
        judged(d, "nd-input", "nd-reply") * 100 >= sent * 90
    });
    for reason in [
        "malformed",
        "not-nd",
        "bad-hop-limit",
        "bad-checksum",
        "bad-message",
        "bad-sender-mac",
        "bad-sender-address",
        "sender-elsewhere",
        "address-conflict",
        "not-for-us",
    ] {
        assert!(counter(&daemon, "nd-input", reason) > 0, "{reason}");
    }
    assert!(counter(&daemon, "nd-reply", "replies") >= 2);
    let passed = bed.pings("a", "2001:db8:78::2", 5, "0.05");
    assert_eq!(passed, 5, "transit goes on");
}

#[test]
fn a_flood_of_spoofed_messages_is_bounded_and_transit_goes_on() {
    let Some(bed) = Bed::new() else { return };
    let daemon = bed.router();
    assert_eq!(bed.pings("a", "2001:db8:78::2", 5, "0.05"), 5);
    let (before, count) = (resident_kib(daemon.pid()), 50_000);
    // Many solicitations for the router, each from another address.
    let flood = format!(
        "p=lambda t: socket.inet_pton(socket.AF_INET6,t)\n\
        us=p('2001:db8:77::1'); g=p('ff02::1:ff00:1'); net=p('2001:db8:77::')[:12]\n\
        for k in range({count}):\n\
        \x20 h=b'\\x02\\x66'+struct.pack('>I',k); src=net+struct.pack('>I',0x10000+k)\n\
        \x20 m=b'\\x87\\0\\0\\0\\0\\0\\0\\0'+us+b'\\1\\1'+h; d=src+g+struct.pack('>II',32,58)+m\n\
        \x20 t=sum(struct.unpack('>36H',d))%0xffff; m=m[:2]+struct.pack('>H',0xffff-t)+m[4:]\n\
        \x20 s.send(b'\\x33\\x33\\xff\\0\\0\\1'+h+b'\\x86\\xdd'+struct.pack('>IHBB',6<<28,32,58,255)+src+g+m)\n\
        \x20 if k%50==0: time.sleep(0.001)\n\
        print('done')\n"
    );
    let child = bed.python("a", &flood);
    let through = bed.pings("b", "2001:db8:77::2", 200, "0.01");
    let message = text(&child.wait_with_output().unwrap().stdout);
    assert!(message.contains("done"));
    let known = neighbors(&daemon);
    println!("{through} of 200 pings passed; {} neighbours", known.len());
    assert!(through >= 195, "{through} of 200 pings passed");
    assert!(known.len() <= 4100 && known.len() > 1000, "{}", known.len());
    let grown = resident_kib(daemon.pid()).saturating_sub(before);
    println!("memory grew by {grown} KiB");
    assert!(grown < 64 * 1024, "{grown} KiB");
    assert_eq!(bed.pings("a", "2001:db8:78::2", 5, "0.05"), 5);
}
