//! Stateless address autoconfiguration: scapy plays the router of the link, byte by byte, and the kernel checks that the
//! address exists. In one test the router that advertises itself is another Volley.
//!
//! Needs root, `ip`, `ping` and Python with scapy; without them the tests say so and pass.

mod support;

use serde_json::Value;
use support::bed::{Bed, counter, has_scapy};
use support::router::Router;
use support::{Daemon, text};

/// A router in r between a and b, without an IPv6 address on a's side; host a sends only what scapy sends there.
fn bed() -> Option<(Bed, Daemon)> {
    if !has_scapy() {
        println!("SKIP: no Python with scapy (cargo xtask install)");
        return None;
    }
    let bed = Bed::new()?;
    // The kernel beside the router does not act as a host of the link.
    let quiet = ["all", "default"].map(|at| format!("net.ipv6.conf.{at}.disable_ipv6=1"));
    bed.exec("r", 5, &["sysctl", "-qw", &quiet[0], &quiet[1]]);
    let daemon = bed.router();
    daemon.ok("set interface ip6 address del left 2001:db8:77::1/64");
    bed.ip("a", "-6 addr del 2001:db8:77::2/64 dev e");
    bed.ip("a", "-6 route del default");
    Some((bed, daemon))
}

fn row(daemon: &Daemon) -> Value {
    daemon.json("show ip6 nd left")["interfaces"][0].clone()
}

fn autoconf(daemon: &Daemon) -> Value {
    row(daemon)["autoconf"].clone()
}

/// The state of the address that was made from a prefix, and the address without its length.
fn made(daemon: &Daemon, prefix: &str) -> Option<(String, String)> {
    let it = autoconf(daemon);
    let all = it["addresses"].as_array()?;
    let mine = |a: &&Value| a["address"].as_str().unwrap().starts_with(prefix);
    let found = all.iter().find(mine)?;
    let address = found["address"].as_str().unwrap();
    let address = address.strip_suffix("/64").unwrap();
    let state = found["state"].as_str().unwrap_or("none");
    Some((state.to_owned(), address.to_owned()))
}

fn wait_made(daemon: &mut Daemon, prefix: &str, state: &str) -> String {
    daemon.wait_for(&format!("{prefix} {state}"), |d| {
        made(d, prefix).is_some_and(|it| it.0 == state)
    });
    made(daemon, prefix).unwrap().1
}

/// Whether an IPv6 table has a route from router advertisements.
fn has_route(daemon: &Daemon, prefix: &str) -> bool {
    let message = daemon.json("show ip6 fib limit 1000");
    let Some(table) = message["tables"].as_array().and_then(|t| t.first()) else {
        return false;
    };
    let routes = table["routes"].as_array().unwrap();
    routes
        .iter()
        .any(|r| r["source"] == "autoconf" && r["prefix"] == prefix)
}

/// The router solicits from the unspecified or its link-local address, three times, four seconds apart (RFC 4861, 6.3.7).
fn asks_by_the_book(daemon: &mut Daemon, router: &mut Router) {
    daemon.wait_for("three questions", |_| {
        router.does("asked").as_array().unwrap().len() == 3
    });
    let asked = router.does("asked");
    let local = row(daemon)["link_local"].clone();
    for (number, it) in asked.as_array().unwrap().iter().enumerate() {
        let (from, length) = (&it[2], it[5].as_u64().unwrap());
        let whole = from == &local && length == 70;
        let nobody = from == "::" && length == 62;
        assert!(whole || nobody && number == 0, "{asked}");
        assert_eq!(
            (&it[1], &it[3]),
            (&"33:33:00:00:00:02".into(), &"ff02::2".into())
        );
        assert_eq!((&it[4], &it[6]), (&255.into(), &true.into()), "{asked}");
    }
    let time = |n: usize| asked[n][0].as_f64().unwrap();
    for gap in [time(1) - time(0), time(2) - time(1)] {
        assert!((3.9..5.0).contains(&gap), "{asked}");
    }
    let probes = router.does("probed");
    assert!(probes.to_string().contains("fe80::"), "{probes}");
}

#[test]
fn an_interface_asks_makes_an_address_and_finds_its_way_out() {
    let Some((bed, mut daemon)) = bed() else {
        return;
    };
    let mut router = Router::new(&bed, "a");
    daemon.ok("ip6 nd address autoconfig left default-route");
    let shown = row(&daemon);
    assert_eq!(shown["autoconf"]["state"], "soliciting", "{shown}");
    asks_by_the_book(&mut daemon, &mut router);
    let local = row(&daemon)["link_local"].clone();
    // A router replies.
    router.does("ra(pi('2001:db8:77::'),ICMPv6NDOptMTU(mtu=1400),chlim=33)");
    daemon.wait_for("the address", |d| made(d, "2001:db8:77:").is_some());
    let own = wait_made(&mut daemon, "2001:db8:77:", "preferred");
    assert!(
        router
            .does("probed")
            .as_array()
            .unwrap()
            .contains(&own.as_str().into())
    );
    let id = |a: &str| a.parse::<std::net::Ipv6Addr>().unwrap().segments()[4..].to_vec();
    assert_eq!(id(&own), id(local.as_str().unwrap()));
    let shown = daemon.ok("show interface address");
    assert!(
        shown.contains(&format!("L3 {own}/64 autoconfigured")),
        "{shown}"
    );
    let it = autoconf(&daemon);
    assert_eq!((&it["heard"], &it["state"]), (&1.into(), &"heard".into()));
    assert_eq!(it["routers"][0]["mtu"], 1400, "{it}");
    assert_eq!(counter(&daemon, "nd-input", "router-advertisements"), 1);
    // A kernel host on the link reaches the address, and vice versa.
    bed.ip("a", "addr add 2001:db8:77::2/64 dev e nodad");
    daemon.wait_for("a ping", |_| bed.pings("a", &own, 1, "1") == 1);
    bed.ip("a", &format!("-6 route add default via {own}"));
    assert_eq!(bed.pings("b", "2001:db8:77::2", 3, "0.1"), 3, "both ways");
    // The address is in no commit, and cannot be removed manually.
    let message = daemon.refused(&format!("set interface ip6 address del left {own}/64"));
    assert!(
        message.contains("ip6 nd address autoconfig left disable"),
        "{message}"
    );
    let config = daemon.ok("config show");
    assert!(
        config.contains("autoconf = \"default-route\"") && !config.contains(&own),
        "{config}"
    );
    everything_else_goes_by_the_router(&bed, &mut daemon, &mut router);
    // Switching autoconfiguration off removes everything.
    router.does("ra(pi('2001:db8:77::'))");
    daemon.wait_for("the route", |d| has_route(d, "::/0"));
    daemon.ok("ip6 nd address autoconfig left disable");
    assert!(!has_route(&daemon, "::/0") && !has_route(&daemon, "2001:db8:77::/64"));
    assert!(
        row(&daemon)["addresses"]
            .as_array()
            .unwrap()
            .iter()
            .all(|a| { !a["address"].as_str().unwrap().contains(':') })
    );
    router.does("ra(pi('2001:db8:77::'))");
    assert!(autoconf(&daemon).is_null());
}

/// The kernel of host a forwards traffic of host b after it has advertised itself, until it advertises lifetime 0.
fn everything_else_goes_by_the_router(bed: &Bed, daemon: &mut Daemon, router: &mut Router) {
    let exec = |words: &[&str]| text(&bed.exec("a", 10, words).stdout);
    let message = exec(&[
        "ip", "-6", "-o", "addr", "show", "dev", "e", "scope", "link",
    ]);
    let own = message
        .split("inet6 ")
        .nth(1)
        .unwrap()
        .split('/')
        .next()
        .unwrap()
        .to_owned();
    let mac = support::bed::mac_of(bed, "a");
    router.does("ra(life=0)");
    daemon.wait_for("no way out", |d| !has_route(d, "::/0"));
    bed.ip("a", "addr add 2001:db8:abcd::1/128 dev lo");
    assert_eq!(bed.pings("b", "2001:db8:abcd::1", 1, "1"), 0);
    router.does(&format!("ra(src='{own}',mac='{mac}',life=9)"));
    daemon.wait_for("the way out", |d| has_route(d, "::/0"));
    let fib = daemon.ok("show ip6 fib ::/0");
    assert!(fib.contains(&own) && fib.contains("autoconf"), "{fib}");
    daemon.wait_for("a ping", |_| {
        bed.pings("b", "2001:db8:abcd::1", 1, "1") == 1
    });
    assert_eq!(bed.pings("b", "2001:db8:abcd::1", 3, "0.1"), 3);
    router.does(&format!("ra(src='{own}',mac='{mac}',life=0)"));
    daemon.wait_for("no way out", |d| !has_route(d, "::/0"));
    assert_eq!(bed.pings("b", "2001:db8:abcd::1", 1, "1"), 0);
    // A default route ends with its lifetime.
    router.does(&format!("ra(src='{own}',mac='{mac}',life=2)"));
    daemon.wait_for("the way out", |d| has_route(d, "::/0"));
    daemon.wait_for("its end", |d| !has_route(d, "::/0"));
}

#[test]
fn lifetimes_flags_and_preferences_are_those_of_the_rfcs() {
    let Some((bed, mut daemon)) = bed() else {
        return;
    };
    let mut router = Router::new(&bed, "a");
    daemon.ok("ip6 nd address autoconfig left default-route");
    daemon.wait_for("a question", |_| router.does("len(asked)") != 0);
    router.does("ra(pi('2001:db8:1::',12,5),pi('2001:db8:2::',L=0),pi('2001:db8:3::',A=0),pi('2001:db8:4::',plen=56,L=0),pi('fe80::'))");
    for prefix in ["2001:db8:1:", "2001:db8:2:"] {
        wait_made(&mut daemon, prefix, "preferred");
    }
    assert!(made(&daemon, "2001:db8:3:").is_none() && made(&daemon, "2001:db8:4:").is_none());
    for (prefix, there) in [("1", true), ("2", false), ("3", true), ("4", false)] {
        assert_eq!(
            has_route(&daemon, &format!("2001:db8:{prefix}::/64")),
            there,
            "{prefix}"
        );
    }
    assert_eq!(autoconf(&daemon)["refused"], 2);
    wait_made(&mut daemon, "2001:db8:1:", "deprecated");
    daemon.wait_for("the end", |d| made(d, "2001:db8:1:").is_none());
    assert!(!has_route(&daemon, "2001:db8:1::/64"));
    // An unauthenticated message cannot end an address at once (RFC 4862, 5.5.3 e), but it can end a prefix.
    router.does("ra(pi('2001:db8:2::',20000,20000),pi('2001:db8:3::',0,0,A=0))");
    router.does("ra(pi('2001:db8:2::',0,0))");
    wait_made(&mut daemon, "2001:db8:2:", "deprecated");
    let left = autoconf(&daemon)["addresses"][0]["valid_ms"]
        .as_u64()
        .unwrap();
    assert!((7_190_000..=7_200_000).contains(&left), "{left}");
    assert!(!has_route(&daemon, "2001:db8:3::/64"));
    // The router with the higher preference gets all traffic; routers of equal preference share it.
    router.does("ra(src='fe80::66',mac='02:00:00:00:00:66',prf=1)");
    router.does("ra(src='fe80::67',mac='02:00:00:00:00:67',prf=3)");
    daemon.wait_for("three", |d| {
        autoconf(d)["routers"].as_array().unwrap().len() == 3
    });
    let message = daemon.json("show ip6 fib ::/0");
    let route = &message["tables"][0]["routes"][0];
    assert_eq!(route["paths"].as_array().unwrap().len(), 3, "{route}");
    assert_eq!(route["buckets"].as_array().unwrap().len(), 1, "{route}");
    router.does("ra(src='fe80::67',mac='02:00:00:00:00:67',prf=1)");
    daemon.wait_for("two alike", |d| {
        let message = d.json("show ip6 fib ::/0");
        message["tables"][0]["routes"][0]["buckets"]
            .as_array()
            .unwrap()
            .len()
            == 2
    });
    // A link that goes down removes everything, and a link that comes up configures it again.
    daemon.ok("set interface state left down");
    assert!(!has_route(&daemon, "::/0"));
    assert_eq!(autoconf(&daemon)["state"], "down");
    router.does("asked.clear()");
    daemon.ok("set interface state left up");
    daemon.wait_for("a question", |_| router.does("len(asked)") != 0);
    router.does("ra(pi('2001:db8:2::'))");
    wait_made(&mut daemon, "2001:db8:2:", "preferred");
    // Autoconfiguration without a default route.
    daemon.ok("ip6 nd address autoconfig left");
    daemon.wait_for("no way out", |d| !has_route(d, "::/0"));
    assert!(made(&daemon, "2001:db8:2:").is_some());
}

#[test]
fn an_address_that_somebody_has_is_not_used() {
    let Some((bed, mut daemon)) = bed() else {
        return;
    };
    let mut router = Router::new(&bed, "a");
    let mac = daemon.json("show interface left")["interfaces"][0]["mac"].clone();
    let mac: Vec<u8> = mac
        .as_str()
        .unwrap()
        .split(':')
        .map(|b| u8::from_str_radix(b, 16).unwrap())
        .collect();
    let id = |prefix: u128| {
        let bytes = [
            mac[0] ^ 2,
            mac[1],
            mac[2],
            0xff,
            0xfe,
            mac[3],
            mac[4],
            mac[5],
        ];
        std::net::Ipv6Addr::from(prefix << 64 | u128::from(u64::from_be_bytes(bytes)))
    };
    let (local, taken) = (id(0xfe80_0000_0000_0000), id(0x2001_0db8_0001_0000));
    router.does(&format!("answer.append('{taken}')"));
    daemon.ok("ip6 nd address autoconfig left");
    daemon.wait_for("a question", |_| router.does("len(asked)") != 0);
    router.does("ra(pi('2001:db8:1::'),pi('2001:db8:2::'))");
    wait_made(&mut daemon, "2001:db8:2:", "preferred");
    wait_made(&mut daemon, "2001:db8:1:", "duplicate");
    assert!(
        daemon
            .log()
            .contains(&format!("the address {taken} is not used")),
        "{}",
        daemon.log()
    );
    let fib = daemon.ok(&format!("show ip6 fib {taken}/128"));
    assert!(!fib.contains("local"), "{fib}");
    // A configured address takes precedence over an automatic one.
    let own = made(&daemon, "2001:db8:2:").unwrap().1;
    daemon.ok(&format!("set interface ip6 address left {own}/64"));
    assert_eq!(made(&daemon, "2001:db8:2:").unwrap().0, "none");
    daemon.ok(&format!("set interface ip6 address del left {own}/64"));
    wait_made(&mut daemon, "2001:db8:2:", "preferred");
    // A duplicate of the link-local address disables autoconfiguration.
    router.does(&format!("answer.append('{local}')"));
    daemon.ok("set interface state left down");
    daemon.ok("set interface state left up");
    daemon.wait_for("nothing", |d| autoconf(d)["state"] == "disabled");
    router.does("ra(pi('2001:db8:1::'))");
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(made(&daemon, "2001:db8:1:").is_none());
    assert!(
        daemon.log().contains("there is no autoconfiguration"),
        "{}",
        daemon.log()
    );
}

#[test]
fn what_is_not_as_it_has_to_be_is_dropped_by_name_and_a_flood_is_bounded() {
    let Some((bed, mut daemon)) = bed() else {
        return;
    };
    let mut router = Router::new(&bed, "a");
    let odd = [
        "ra(pi('2001:db8:1::'),hlim=254)",
        "ra(pi('2001:db8:1::'),cksum=1)",
        "ra(pi('2001:db8:1::'),code=1)",
        "ra(Raw(b'\\3\\0'+bytes(30)))",
        "ra(Raw(b'\\3\\4'+bytes(6)))",
        "ra(pi('2001:db8:1::'),src='2001:db8:77::2')",
        "ra(pi('2001:db8:1::'),mac='33:33:00:00:00:01')",
        "ra(pi('2001:db8:1::'),dst='ff02::99')",
        "put(Ether(src='02:00:00:00:00:55',dst='33:33:00:00:00:01')/IPv6(src='fe80::55',dst='ff02::1',hlim=255)/ICMPv6Unknown(type=134,msgbody=bytes(4)))",
    ];
    // Without autoconfiguration advertisements are ignored.
    let before = counter(&daemon, "nd-input", "not-nd");
    daemon.ok("set interface ip6 address left 2001:db8:77::1/64");
    router.does("ra(pi('2001:db8:1::'))");
    daemon.wait_for("nothing", |d| counter(d, "nd-input", "not-nd") > before);
    daemon.ok("ip6 nd address autoconfig left default-route");
    daemon.wait_for("a question", |_| router.does("len(asked)") != 0);
    for line in odd {
        router.does(line);
    }
    daemon.wait_for("the last", |d| counter(d, "nd-input", "bad-message") == 4);
    for reason in [
        "bad-hop-limit",
        "bad-checksum",
        "bad-sender-address",
        "bad-sender-mac",
    ] {
        assert_eq!(counter(&daemon, "nd-input", reason), 1, "{reason}");
    }
    assert!(made(&daemon, "2001:db8:1:").is_none());
    assert_eq!(autoconf(&daemon)["heard"], 0);
    // More prefixes and routers than the limits.
    let pid = daemon.pid();
    let memory = support::bed::resident_kib(pid);
    router.does("[ra(*[pi('2001:db8:%x::'%(20*r+p)) for p in range(20)],src='fe80::1:%x'%r,mac='02:00:00:00:01:%02x'%(r%256)) for r in range(200)] and 0");
    router.does("(lambda f:[s.send(f) for _ in range(20000)])(bytes(Ether(src='02:00:00:00:00:55',dst='33:33:00:00:00:01')/IPv6(src='fe80::55',dst='ff02::1',hlim=255)/ICMPv6ND_RA(routerlifetime=5)/pi('2001:db8:f::'))) and 0");
    daemon.wait_for("the end", |d| autoconf(d)["heard"].as_u64().unwrap() > 100);
    let it = autoconf(&daemon);
    let len = |what: &str| it[what].as_array().unwrap().len();
    assert_eq!(
        (len("routers"), len("addresses"), len("on_link")),
        (8, 16, 16),
        "{it}"
    );
    assert!(it["refused"].as_u64().unwrap() > 1000, "{}", it["refused"]);
    let more = support::bed::resident_kib(pid).saturating_sub(memory);
    assert!(more < 8000, "{more} KiB");
    assert_eq!(bed.pings("b", "2001:db8:78::1", 3, "0.1"), 3, "it goes on");
}

#[test]
fn one_volley_configures_itself_from_another() {
    let Some(bed) = Bed::new() else { return };
    let (mut near, far) = (Daemon::start("", &[]), Daemon::start("", &[]));
    let (r, a) = (bed.name("r"), bed.name("a"));
    near.ok(&format!(
        "create host-interface name left as left netns {r}"
    ));
    far.ok(&format!("create host-interface name e as left netns {a}"));
    // Automatic MAC addresses derive from the name, and both interfaces are named left.
    far.ok("set interface mac address left 02:fe:00:00:00:99");
    far.ok("set interface ip6 address left 2001:db8:77::1/64");
    far.ok("set interface state left up");
    far.ok("ip6 nd left ra-send ra-interval 4 3");
    near.ok("ip6 nd address autoconfig left default-route");
    near.ok("set interface state left up");
    let own = wait_made(&mut near, "2001:db8:77:", "preferred");
    near.wait_for("the way out", |d| has_route(d, "::/0"));
    // The address is in the table shortly after its state is shown.
    near.wait_for_answer("ping 2001:db8:77::1 count 3", "3 received");
    let message = far.ok(&format!("ping {own} count 2"));
    assert!(message.contains("2 received"), "{message}");
    // The final advertisement removes the default route.
    far.ok("ip6 nd left ra-suppress");
    near.wait_for("no way out", |d| !has_route(d, "::/0"));
}
