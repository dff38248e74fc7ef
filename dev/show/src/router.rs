//! The items of "A complete IP router that FRR can drive": items that can be shown now, each a real run, and those that
//! cannot, with the reason.

use super::{Item, Sitting, Work, compliance, guest_items, item, run_items, slow_path, test_file};
use xtask::report::{Fail, Outcome, Pass, Skip};
use xtask::run::Program;

/// A check: a test file of the daemon and the test's name.
type Check = (&'static str, &'static str);

pub const ITEMS: [Item; 42] = [
    item(
        "oracle",
        "every rule of the page has packets, and the oracle and scapy agree on each outcome",
        Work::Call(run_items::oracle),
    ),
    item(
        "corpus",
        "the same packets through the daemon: outputs byte for byte, drops by name, errors and answers too",
        Work::Call(|sitting| check(sitting, ("corpus", "every_rule_has_a_packet"))),
    ),
    item(
        "corpora",
        "capture corpora and mutated packets through interfaces with all of this switched on",
        Work::Command(test_file!["replay"]),
    ),
    item(
        "arp-hosts",
        "kernel hosts resolve the router and ping through it; no first packet is lost",
        Work::Call(|sitting| check(sitting, ("neighbors", "hosts_ping_through"))),
    ),
    item(
        "arp-silent",
        "a silent host is asked three times; what waited is dropped, and its sender is notified",
        Work::Call(|sitting| check(sitting, ("neighbors", "a_silent_host"))),
    ),
    item(
        "arp-announce",
        "gratuitous ARP when an interface comes up; a host that moved is found",
        Work::Call(|sitting| check(sitting, ("neighbors", "an_interface_that_comes_up"))),
    ),
    item(
        "arp-conflict",
        "configured neighbours stay; conflicts are reported and answered",
        Work::Call(|sitting| check(sitting, ("neighbors", "configured_neighbours"))),
    ),
    item(
        "arp-odd",
        "6000 odd, cut and mutated ARP packets are dropped by name",
        Work::Call(|sitting| check(sitting, ("neighbors", "odd_and_malformed"))),
    ),
    item(
        "arp-flood",
        "a flood of spoofed ARP and a scan: bounded table and memory, transit goes on",
        Work::Call(|sitting| check(sitting, ("neighbors", "a_flood_of_spoofed"))),
    ),
    item(
        "nd-hosts",
        "the same for IPv6: solicitations, advertisements, held packets, unreachable hosts",
        Work::Call(|sitting| check(sitting, ("discovery", "hosts_ping_through"))),
    ),
    item(
        "nd-odd",
        "odd, cut and mutated neighbour discovery (scapy) is dropped by name, in bounds",
        Work::Call(|sitting| check(sitting, ("discovery", "odd_and_malformed"))),
    ),
    item(
        "nd-flood",
        "a flood of spoofed neighbour discovery: bounded table and memory, transit goes on",
        Work::Call(|sitting| check(sitting, ("discovery", "a_flood_of_spoofed"))),
    ),
    item(
        "icmp",
        "kernel pings, traceroutes and path MTU; every error judged by scapy; floods limited",
        Work::Command(test_file!["icmp"]),
    ),
    item(
        "ping",
        "ping and traceroute from the command line, both families, by source and table",
        Work::Command(test_file!["ping"]),
    ),
    item(
        "linux-differential",
        "20000 packets through a kernel namespace and Volley: byte for byte the same, or on the page of differences",
        Work::Call(|sitting| measured(sitting, ("linux", "every_difference"))),
    ),
    item(
        "compliance",
        "tables for RFC 1812, 8504, 4861 and 4443: every row says whether it is so, and what shows it is there",
        Work::Call(|sitting| compliance::run(sitting.home)),
    ),
    item(
        "fragments",
        "IPv4 packets too long for the link are cut; the kernel puts them together, byte for byte",
        Work::Call(|sitting| check(sitting, ("icmp", "what_is_too_long"))),
    ),
    item(
        "reassembly",
        "fragments for the router: kernel pings up to 65507 bytes, scapy's overlaps, a flood, whole datagrams for the Linux control plane",
        Work::Command(test_file!["reassembly"]),
    ),
    item(
        "virtual-reassembly",
        "fragments that the kernel and scapy cut, in any order, take the path of their flow's other packets; a flood; several workers",
        Work::Command(test_file!["virtual_reassembly"]),
    ),
    item(
        "urpf",
        "sources checked, strict and loose, on a sub-interface: drops by name (rules 18.* in `corpus`)",
        Work::Call(|sitting| check(sitting, ("routing", "a_sub_interface_checks"))),
    ),
    item(
        "directed-broadcast",
        "a kernel host's packet to all of another network reaches its hosts, where that is switched on",
        Work::Call(|sitting| check(sitting, ("routing", "directed_broadcasts_reach"))),
    ),
    item(
        "redirects",
        "a kernel host learns the better first hop, both versions; scapy judges the bytes; the packet still goes",
        Work::Call(|sitting| check(sitting, ("routing", "kernel_hosts_learn"))),
    ),
    item(
        "resilient-ecmp",
        "a path goes and returns: moved flows counted",
        Work::Call(|sitting| check(sitting, ("routing", "flows_of_other_paths"))),
    ),
    item(
        "multicast",
        "groups are routed, both families: kernel receivers get each datagram once, changes under traffic, scapy's bytes",
        Work::Command(test_file!["multicast"]),
    ),
    item(
        "sub-interfaces",
        "802.1Q and QinQ: a scapy host on a trunk, kernel hosts behind; thousands on one interface; wrong tags by name",
        Work::Command(test_file!["vlan"]),
    ),
    item(
        "router-advertisements",
        "a kernel host makes its address and default route of them; scapy reads every field; solicitations in bounds",
        Work::Command(test_file!["advertisements"]),
    ),
    item(
        "addresses",
        "duplicate address detection against kernel hosts, both families; proxy ARP and proxy ND for hosts behind the router",
        Work::Command(test_file!["addresses"]),
    ),
    item(
        "listeners",
        "multicast listener discovery: scapy reads every report, and asks in both versions",
        Work::Command(test_file!["listeners"]),
    ),
    item(
        "unnumbered",
        "hosts with one address each on interfaces that use the loopback's, both families",
        Work::Command(test_file!["unnumbered"]),
    ),
    item(
        "groups",
        "members of groups: kernel hosts join and leave by IGMPv1 to v3 and MLDv1 and v2; scapy as another router, odd messages, a flood",
        Work::Command(test_file!["multicast", "members"]),
    ),
    item(
        "slaac",
        "an uplink configures itself: scapy as its router, addresses, lifetimes, duplicates, ways out, odd messages, a flood; the kernel pings; another Volley",
        Work::Command(test_file!["slaac"]),
    ),
    item(
        "default-routers",
        "two routers on an uplink, both scapy's: one falls silent, traffic goes by the other and loses nothing, it comes back",
        Work::Command(test_file!["default_routers"]),
    ),
    item(
        "lcp",
        "Linux control plane: LCP taps, services through them, everything both ways, overrun, resync, audit",
        Work::Command(test_file!["lcp"]),
    ),
    item(
        "lcp-devices",
        "802.1Q devices, one in another, and VRFs on LCP taps, under Debian's kernel in a guest: both ways, lcp audit empty",
        Work::Call(guest_items::devices),
    ),
    item(
        "frr",
        "three FRR routers, OSPF and BGP, ECMP, a link cut converges, lcp audit empty",
        Work::Call(|sitting| check(sitting, ("frr", "three_routers_share"))),
    ),
    item(
        "frr-vlan",
        "FRR on sub-interfaces, each with its own LCP tap: OSPF and BGP under a tag, the kernels' pings under two, lcp audit empty",
        Work::Call(|sitting| check(sitting, ("frr", "under_vlan_tags"))),
    ),
    item(
        "frr-own",
        "what is configured in Volley: FRR reads it from the kernel and tells another router, hosts reach it, lcp audit empty",
        Work::Call(|sitting| check(sitting, ("frr", "frr_hands_on"))),
    ),
    item(
        "bird",
        "two BIRD routers, OSPF, lcp audit empty",
        Work::Call(|sitting| check(sitting, ("frr", "bird_speaks"))),
    ),
    item(
        "full-table",
        "1M IPv4 and 250k IPv6 routes from the kernel in under 30 s, forwarding goes on, lcp audit empty",
        Work::Call(|sitting| measured(sitting, ("full_table", "through_the_kernel"))),
    ),
    item(
        "full-table-bgp",
        "the same by BGP: BIRD has it, FRR learns it and fills the kernel; forwarding goes on, lcp audit empty",
        Work::Call(|sitting| measured(sitting, ("full_table", "by_bgp_through_frr"))),
    ),
    item(
        "replay-updates",
        "update4 and update6 at full speed at 90 % load: no packet to a stable prefix is lost",
        Work::Call(slow_path::updates),
    ),
    item(
        "slow-path",
        "1 M complex packets a second answered; a flood of them slows transit by less than 10 %",
        Work::Call(slow_path::flood),
    ),
];

/// One test of the daemon against kernel peers, as CI builds it.
fn check(sitting: &Sitting<'_>, check: Check) -> Outcome {
    ran(sitting, &["--workspace"], check)
}

/// As [`check`], for figures of a release build: its features are those of the release build of the daemon, not of the workspace.
fn measured(sitting: &Sitting<'_>, check: Check) -> Outcome {
    ran(sitting, &["--release", "-p", "volley"], check)
}

/// A test that prints a reason why it cannot run here is a skip.
fn ran(sitting: &Sitting<'_>, build: &[&str], (file, name): Check) -> Outcome {
    let run = Program::cargo(sitting.home)
        .args(["test", "--locked"])
        .args(build)
        .args(["--test", file, name, "--", "--nocapture"])
        // Only the tests of a full table and of differences from the kernel use these variables.
        .env("VOLLEY_FULL_TABLE", "1")
        .env("VOLLEY_FULL_CORPORA", "1")
        .limit_seconds(600)
        .require();
    let text = match run {
        Err(reason) => return Fail(reason),
        Ok(run) => run.stdout,
    };
    if let Some(why) = text
        .lines()
        .find_map(|line| line.trim().split("SKIP: ").nth(1))
    {
        return Skip(why.to_owned());
    }
    if !text.contains("1 passed") {
        return Fail(format!("no test {name} ran"));
    }
    let figures = text
        .lines()
        .filter(|line| line.contains(" of ") || line.contains("KiB"));
    let figures: Vec<&str> = figures.map(str::trim).collect();
    Pass(match figures[..] {
        [] => format!("tests/{file}.rs"),
        _ => figures.join(", "),
    })
}
