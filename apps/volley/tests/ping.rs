//! `ping` and `traceroute` of the router, against the kernel in namespaces.
//!
//! Needs root, `ip` and `ping`; without them the tests say so and pass.

mod support;

use std::time::{Duration, Instant};
use support::bed::{Bed, counter, must, wait_until_up};

#[test]
fn kernel_hosts_answer_pings_and_traceroutes() {
    let Some(bed) = Bed::new() else { return };
    let daemon = bed.router();
    for (to, from, source) in [
        ("10.77.0.2", "10.77.0.1", "10.78.0.1"),
        ("2001:db8:77::2", "2001:db8:77::1", "2001:db8:78::1"),
    ] {
        let reply = daemon.json(&format!("ping {to} count 4 interval 20"));
        assert_eq!(
            (&reply["sent"], &reply["received"]),
            (&4.into(), &4.into()),
            "{reply}"
        );
        assert_eq!(
            (&reply["source"], &reply["size"]),
            (&from.into(), &56.into())
        );
        let first = &reply["answers"][0];
        assert_eq!(
            (&first["from"], &first["result"], &first["hops"]),
            (&to.into(), &"reply".into(), &64.into())
        );
        let times =
            [&reply["min_us"], &reply["avg_us"], &reply["max_us"]].map(|t| t.as_u64().unwrap());
        assert!(
            times[0] <= times[1] && times[1] <= times[2] && times[2] < 1_000_000,
            "{times:?}"
        );
        // Large, with the other interface's address as source: the reply comes back through the router.
        let words = format!("ping {to} count 2 interval 20 size 1400 source {source}");
        let text = daemon.ok(&words);
        assert!(
            text.contains(&format!("from {source}: 1400 bytes")),
            "{text}"
        );
        assert!(text.contains("2 sent, 2 received, 0 lost"), "{text}");
        let one = daemon.json(&format!("ping {from} count 1"));
        assert_eq!(one["received"], 1, "our own address: {one}");
        let trace = daemon.json(&format!("traceroute {to} probes 2"));
        assert_eq!(
            (&trace["reached"], trace["hops"].as_array().unwrap().len()),
            (&true.into(), 1)
        );
    }
    assert_eq!(counter(&daemon, "ping-input", "unexpected-reply"), 0);
    assert!(counter(&daemon, "ping-input", "answers") >= 18);
}

#[test]
fn what_lies_behind_a_kernel_router_is_traced_hop_by_hop() {
    let Some(bed) = Bed::new() else { return };
    let daemon = bed.router();
    let space = bed.name("b");
    must(&format!(
        "ip netns exec {space} sysctl -q -w net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1"
    ));
    // A destination behind b: the other end of a veth pair in a. Another namespace would need another test bed, and a dummy
    // would be b itself.
    must(&format!(
        "ip -n {space} link add far type veth peer name near netns {}",
        bed.name("a")
    ));
    for (at, end, host) in [("b", "far", 1), ("a", "near", 9)] {
        bed.ip(at, &format!("link set {end} up"));
        bed.ip(at, &format!("addr add 10.79.0.{host}/24 dev {end}"));
        bed.ip(
            at,
            &format!("addr add 2001:db8:79::{host}/64 dev {end} nodad"),
        );
    }
    for (at, end) in [("b", "far"), ("a", "near")] {
        wait_until_up(&format!("-n {}", bed.name(at)), end);
    }
    // Replies return by the interface that received the requests.
    bed.ip("a", "route add 10.78.0.0/24 via 10.79.0.1");
    bed.ip("a", "-6 route add 2001:db8:78::/64 via 2001:db8:79::1");
    daemon.ok("ip route add 10.79.0.0/24 via 10.78.0.2 right");
    daemon.ok("ip6 route add 2001:db8:79::/64 via 2001:db8:78::2 right");
    // The link-local addresses of the kernel take seconds after the link comes up.
    let begun = Instant::now();
    while bed.pings("b", "2001:db8:79::9", 1, "0.2") == 0 {
        assert!(begun.elapsed() < Duration::from_secs(15));
    }
    for (to, middle) in [
        ("10.79.0.9", "10.78.0.2"),
        ("2001:db8:79::9", "2001:db8:78::2"),
    ] {
        let trace = daemon.json(&format!("traceroute {to} probes 1"));
        let hops = trace["hops"].as_array().unwrap();
        assert_eq!(
            (hops.len(), &trace["reached"]),
            (2, &true.into()),
            "{trace}"
        );
        let answer = |hop: usize| &hops[hop]["answers"][0];
        assert_eq!(
            (&answer(0)["from"], &answer(0)["result"]),
            (&middle.into(), &"time-exceeded".into())
        );
        assert_eq!(
            (&answer(1)["from"], &answer(1)["result"]),
            (&to.into(), &"reply".into())
        );
        let text = daemon.ok(&format!("traceroute {to} probes 1"));
        assert!(text.contains(&format!(" 2  {to} ")), "{text}");
        let short = daemon.json(&format!("ping {to} count 1 hops 1"));
        assert_eq!(short["answers"][0]["result"], "time-exceeded", "{short}");
    }
}

#[test]
fn silence_refusals_and_bounds() {
    let Some(bed) = Bed::new() else { return };
    let daemon = bed.router();
    let begun = Instant::now();
    let reply = daemon.json("ping 10.78.0.77 count 2 interval 20 timeout 300");
    assert_eq!((&reply["sent"], &reply["received"]), (&2.into(), &0.into()));
    assert!(begun.elapsed() < Duration::from_secs(5));
    for (words, why) in [
        ("ping 203.0.113.1", "no route of table 0 leads to it"),
        (
            "ping 10.77.0.2 source 10.77.0.9",
            "no address of the router",
        ),
        ("ping 10.77.0.2 source 2001:db8:77::1", "IP version"),
        ("ping 10.77.0.2 table 9", "table"),
        ("traceroute ff02::1", "one host"),
    ] {
        let message = daemon.refused(words);
        assert!(message.contains(why), "{words}: {message}");
    }
    daemon.ok("ip table add 7");
    daemon.ok("ip route add table 7 10.78.0.0/24 via right");
    let message = daemon.refused("ping 10.78.0.2 table 7");
    assert!(
        message.contains("no interface is bound to table 7"),
        "{message}"
    );
}
