//! Router advertisements, against the kernel, which configures an address and a default route from them, and scapy, which
//! parses every field.
//!
//! Needs root, `ip`, `ping` and Python; without them the tests say so and pass.

mod support;

use serde_json::Value;
use support::bed::{Bed, counter, has_scapy, mac_of};
use support::{Daemon, text};

/// The router, and a host a without IPv6 configuration.
fn router(bed: &Bed) -> Daemon {
    let daemon = bed.router();
    bed.ip("a", "-6 addr del 2001:db8:77::2/64 dev e");
    bed.ip("a", "-6 route del default");
    daemon
}

/// A setting of a host's IPv6.
fn sysctl(bed: &Bed, at: &str, name: &str) -> String {
    let file = format!("/proc/sys/net/ipv6/conf/e/{name}");
    text(&bed.exec(at, 10, &["cat", &file]).stdout)
        .trim()
        .to_owned()
}

/// The advertisement state of `left` in `show ip6 nd`.
fn advert(daemon: &Daemon) -> Value {
    daemon.json("show ip6 nd left")["interfaces"][0]["advert"].clone()
}

#[test]
fn a_kernel_host_gets_its_address_and_default_route() {
    let Some(bed) = Bed::new() else { return };
    let mut daemon = router(&bed);
    daemon.ok("set interface mtu 1400 left");
    daemon.ok("ip6 nd left prefix 2001:db8:99::/64 100 50 no-autoconfig");
    daemon.ok("ip6 nd left prefix 2001:db8:9a::/64 300 200 off-link");
    daemon.ok("ip6 nd left ra-send ra-interval 4 3 ra-hop-limit 33");
    let dynamic = "-6 addr show dev e scope global dynamic";
    daemon.wait_for("the host's address", |_| {
        bed.ip("a", dynamic).contains("2001:db8:77:")
    });
    let message = bed.ip("a", dynamic);
    assert!(
        message.contains("2001:db8:9a:") && !message.contains("2001:db8:99:"),
        "{message}"
    );
    let routes = bed.ip("a", "-6 route show");
    let line = |part: &str| routes.lines().any(|l| l.starts_with(part));
    let row = daemon.json("show ip6 nd left")["interfaces"][0].clone();
    let own = row["link_local"].as_str().unwrap().to_owned();
    assert!(
        line(&format!("default via {own} dev e proto ra")),
        "{routes}"
    );
    assert!(
        line("2001:db8:99::/64 dev e"),
        "it is on the link: {routes}"
    );
    assert!(!line("2001:db8:9a::/64 dev e"), "it is not: {routes}");
    assert_eq!(
        (
            &sysctl(&bed, "a", "mtu")[..],
            &sysctl(&bed, "a", "hop_limit")[..]
        ),
        ("1400", "33")
    );
    // The host's address may still be tentative.
    daemon.wait_for("a ping", |_| bed.pings("a", "2001:db8:78::2", 1, "1") == 1);
    assert_eq!(
        bed.pings("a", "2001:db8:78::2", 3, "0.05"),
        3,
        "through the router"
    );
    assert!(row["advert"]["sent"].as_u64().unwrap() >= 1, "{row}");
    let shown = daemon.ok("show ip6 nd left");
    assert!(shown.contains("prefix 2001:db8:77::/64"), "{shown}");
    // A final advertisement removes the route at once.
    daemon.ok("ip6 nd left ra-suppress");
    daemon.wait_for("the route's end", |_| {
        !bed.ip("a", "-6 route show").contains("default")
    });
    daemon.wait_for("silence", |d| advert(d).is_null());
}

#[test]
fn a_kernel_host_that_asks_is_answered() {
    let Some(bed) = Bed::new() else { return };
    let mut daemon = router(&bed);
    daemon.ok("ip6 nd left ra-send ra-interval 1800");
    daemon.wait_for("the first ones", |d| advert(d)["sent"] == 3);
    bed.ip("a", "link set e down");
    bed.ip("a", "link set e up");
    daemon.wait_for("the answer", |_| {
        bed.ip("a", "-6 route show").contains("proto ra")
    });
    assert!(advert(&daemon)["solicited"].as_u64().unwrap() >= 1);
    assert!(counter(&daemon, "nd-input", "router-solicitations") >= 1);
}

/// Parses advertisements with scapy as they come; `put` sends solicitations meanwhile.
const SCAPY: &str = "from scapy.all import Ether,IPv6,ICMPv6ND_RA,ICMPv6ND_RS,ICMPv6NDOptPrefixInfo,ICMPv6NDOptMTU,ICMPv6NDOptSrcLLAddr,\
    ICMPv6NDOptRDNSS,ICMPv6NDOptDNSSL,Raw\n\
    import json\n\
    m='02:00:00:00:00:55'; e=Ether(dst='33:33:00:00:00:02',src=m)\n\
    def ip(**k): return IPv6(**{**dict(src='fe80::55',dst='ff02::2',hlim=255),**k})\n\
    sl=ICMPv6NDOptSrcLLAddr(lladdr=m)\n\
    def put(p): s.send(bytes(p))\n\
    def heard(seconds,most=1000):\n\
    \x20 out=[]; end=time.time()+seconds; s.settimeout(0.05)\n\
    \x20 while time.time()<end and len(out)<most:\n\
    \x20  try: f,w=s.recvfrom(2000)\n\
    \x20  except socket.timeout: continue\n\
    \x20  if w[2]!=4 and f[12:14]==b'\\x86\\xdd' and f[20]==58 and f[54]==134: out.append((time.time(),f))\n\
    \x20 return out\n\
    def fields(f):\n\
    \x20 p=Ether(f); i=p[IPv6]; r=p[ICMPv6ND_RA]; c=r.cksum; del r.cksum\n\
    \x20 good=Ether(bytes(p))[ICMPv6ND_RA].cksum==c; q=Ether(f)\n\
    \x20 d=dict(dst=p.dst,src=p.src,ip=[i.src,i.dst,i.hlim],good=good,chlim=r.chlim,m=r.M,o=r.O,life=r.routerlifetime,reach=r.reachabletime,\
    retr=r.retranstimer,code=r.code,prf=r.prf,prefixes=[])\n\
    \x20 x=q[ICMPv6ND_RA].payload; n=0\n\
    \x20 while x and not isinstance(x,Raw):\n\
    \x20  n+=1\n\
    \x20  if isinstance(x,ICMPv6NDOptPrefixInfo): d['prefixes'].append([x.prefix,x.prefixlen,x.L,x.A,x.validlifetime,x.preferredlifetime])\n\
    \x20  elif isinstance(x,ICMPv6NDOptMTU): d['mtu']=x.mtu\n\
    \x20  elif isinstance(x,ICMPv6NDOptSrcLLAddr): d['source']=x.lladdr\n\
    \x20  elif isinstance(x,ICMPv6NDOptRDNSS): d['rdnss']=[x.lifetime]+x.dns\n\
    \x20  elif isinstance(x,ICMPv6NDOptDNSSL): d['dnssl']=[x.lifetime]+x.searchlist\n\
    \x20  else: d['odd']=repr(x)\n\
    \x20  x=x.payload\n\
    \x20 d['options']=n; d['rest']=len(x) if x else 0\n\
    \x20 return d\n";

/// The JSON output of a program that begins with [`SCAPY`].
fn scapy(bed: &Bed, body: &str) -> Option<Value> {
    if !has_scapy() {
        println!("SKIP: no Python with scapy (cargo xtask install)");
        return None;
    }
    let child = bed.python("a", &format!("{SCAPY}{body}"));
    let message = text(&child.wait_with_output().unwrap().stdout);
    Some(serde_json::from_str(&message).unwrap_or_else(|e| panic!("{e}: {message}")))
}

#[test]
fn scapy_reads_what_was_set_in_every_field() {
    let Some(bed) = Bed::new() else { return };
    let daemon = router(&bed);
    daemon.ok("set interface mtu 1480 left");
    daemon.ok("set interface ip6 address left 2001:db8:88::1/56");
    for prefix in [
        "2001:db8:99::/64 100 50 off-link",
        "2001:db8:88::/56 no-advertise",
        "2001:db8:9a::/60 4294967295 4294967295",
    ] {
        daemon.ok(&format!("ip6 nd left prefix {prefix}"));
    }
    daemon.ok(
        "ip6 nd left ra-send ra-interval 200 100 ra-lifetime 1234 ra-managed-config-flag ra-other-config-flag ra-hop-limit 61 \
         ra-reachable 12345 ra-retransmit 678 rdnss 2001:db8::53 rdnss 2001:db8::54 dnssl example.net dnssl a.b.example",
    );
    let Some(message) = scapy(
        &bed,
        "print(json.dumps([fields(f) for _,f in heard(25,1)]))\n",
    ) else {
        return;
    };
    let row = daemon.json("show ip6 nd left")["interfaces"][0].clone();
    let all = daemon.json("show interface left");
    let mac = all["interfaces"][0]["mac"].clone();
    let want = serde_json::json!([{
        "dst": "33:33:00:00:00:01", "src": mac, "ip": [row["link_local"], "ff02::1", 255], "good": true,
        "chlim": 61, "m": 1, "o": 1, "life": 1234, "reach": 12345, "retr": 678, "code": 0, "prf": 0,
        "prefixes": [
            ["2001:db8:99::", 64, 0, 1, 100, 50],
            ["2001:db8:9a::", 60, 1, 0, 4_294_967_295_u32, 4_294_967_295_u32],
            ["2001:db8:77::", 64, 1, 1, 2_592_000, 604_800],
        ],
        "mtu": 1480, "source": mac, "rdnss": [600, "2001:db8::53", "2001:db8::54"],
        "dnssl": [600, "example.net.", "a.b.example."], "options": 7, "rest": 0,
    }]);
    assert_eq!(message, want);
}

#[test]
fn solicitations_are_answered_in_time_and_in_bounds() {
    let Some(bed) = Bed::new() else { return };
    let mut daemon = router(&bed);
    daemon.ok("ip6 nd left ra-send ra-interval 1800");
    daemon.wait_for("the first ones", |d| advert(d)["sent"] == 3);
    std::thread::sleep(std::time::Duration::from_secs(4));
    // A valid solicitation; then many; then malformed ones.
    let body = "t=time.time(); put(e/ip()/ICMPv6ND_RS()/sl); one=[x-t for x,_ in heard(10,1)]\n\
        many=[]\n\
        for k in range(50): put(e/ip()/ICMPv6ND_RS()/sl); many+=[x for x,_ in heard(0.15)]\n\
        heard(4)\n\
        put(e/ip(hlim=64)/ICMPv6ND_RS()/sl); put(e/ip()/ICMPv6ND_RS(code=1)/sl); put(e/ip()/ICMPv6ND_RS(cksum=1)/sl)\n\
        put(e/ip(src='::')/ICMPv6ND_RS()/sl); put(e/ip(src='2001:db8:1234::1')/ICMPv6ND_RS()/sl)\n\
        put(e/ip()/ICMPv6ND_RS()/ICMPv6NDOptSrcLLAddr(lladdr='33:33:00:00:00:01'))\n\
        put(e/ip(dst='ff02::99')/ICMPv6ND_RS()/sl); put(e/ip()/ICMPv6ND_RS()/Raw(b'\\1\\0')); odd=len(heard(4))\n\
        put(e/ip(src='::')/ICMPv6ND_RS()); nobody=len(heard(10,1))\n\
        print(json.dumps(dict(one=one,gaps=[b-a for a,b in zip(many,many[1:])],many=len(many),odd=odd,nobody=nobody)))\n";
    let Some(message) = scapy(&bed, body) else {
        return;
    };
    println!("{message}");
    assert_eq!(
        message["one"].as_array().unwrap().len(),
        1,
        "answered: {message}"
    );
    let gaps = message["gaps"].as_array().unwrap();
    assert!(gaps.iter().all(|g| g.as_f64().unwrap() > 2.8), "{message}");
    assert!(
        (1..=5).contains(&message["many"].as_u64().unwrap()),
        "{message}"
    );
    assert_eq!(
        (&message["odd"], &message["nobody"]),
        (&0.into(), &1.into()),
        "{message}"
    );
    for reason in [
        "bad-hop-limit",
        "bad-checksum",
        "sender-elsewhere",
        "bad-sender-mac",
    ] {
        assert_eq!(counter(&daemon, "nd-input", reason), 1, "{reason}");
    }
    // The kernel also does duplicate address detection for its addresses.
    assert!(counter(&daemon, "nd-input", "not-for-us") >= 1);
    assert_eq!(counter(&daemon, "nd-input", "bad-message"), 3);
    // The kernel may send solicitations, too.
    assert!(counter(&daemon, "nd-input", "router-solicitations") >= 52);
    // The solicitation made a neighbour entry for its sender.
    let all = daemon.json("show ip6 neighbors left")["neighbors"].clone();
    let known = all
        .as_array()
        .unwrap()
        .iter()
        .any(|n| n["address"] == "fe80::55" && n["mac"] == "02:00:00:00:00:55");
    assert!(known, "{all}");
    assert_ne!(mac_of(&bed, "a"), "02:00:00:00:00:55");
    // Interfaces without the setting send no advertisements.
    assert!(daemon.json("show ip6 nd right")["interfaces"][0]["advert"].is_null());
}

#[test]
fn another_router_s_other_words_are_told_and_an_end_is_said() {
    let Some(bed) = Bed::new() else { return };
    let mut daemon = router(&bed);
    daemon.ok("ip6 nd left ra-send ra-interval 1800 ra-hop-limit 64");
    daemon.wait_for("the first", |d| advert(d)["sent"].as_u64() >= Some(1));
    daemon.wait_for("the host's route", |_| {
        bed.ip("a", "-6 route show").contains("default")
    });
    let body = "from scapy.all import ICMPv6ND_RA\n\
        for k in range(3):\n\
        \x20 put(Ether(dst='33:33:00:00:00:01',src=m)/ip(dst='ff02::1')/ICMPv6ND_RA(chlim=33,routerlifetime=0,M=1)/\
        ICMPv6NDOptPrefixInfo(prefix='2001:db8:77::',prefixlen=64,L=1,A=1,validlifetime=9,preferredlifetime=9))\n\
        print(json.dumps(1))\n";
    if scapy(&bed, body).is_none() {
        return;
    }
    daemon.wait_for("three", |d| advert(d)["inconsistent"] == 3);
    let reported = "the router fe80::55 does not advertise what is advertised here (hop limit, managed flag, lifetimes of a prefix)";
    assert_eq!(
        daemon.log().matches(reported).count(),
        1,
        "{}",
        daemon.log()
    );
    assert!(daemon.json("show ip6 nd left")["interfaces"][0]["autoconf"].is_null());
    daemon.stop("TERM");
    for _ in 0..50 {
        if !bed.ip("a", "-6 route show").contains("default") {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    panic!("{}", bed.ip("a", "-6 route show"));
}
