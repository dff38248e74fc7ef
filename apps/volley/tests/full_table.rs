//! A full table through LCP sync: `ip -batch` fills the kernel, and so does FRR with routes by BGP from BIRD. No route may be
//! lost, and packets in transit are forwarded meanwhile.
//!
//! Small by default; with `VOLLEY_FULL_TABLE=1` all routes of the shared data, or generated ones without them. Needs root.

mod support;

use std::collections::HashSet;
use std::fmt::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::bed::{Bed, Space, must};
use support::routing::{BIRD, FRR, Routing, SETTLE, able};
use support::{Daemon, text};
use volley_fib::load::{ReadOptions, Routes, read_routes, synthetic4, synthetic6};

/// Next hops of each family.
const HOPS: u32 = 200;
/// Pause between two counts of the kernel's routes, because a count walks the whole table.
const LOOK: Duration = Duration::from_secs(1);
/// The longest time from the end of the table in the kernel to its end in Volley.
const LIMIT: Duration = Duration::from_secs(30);

fn shared(name: &str) -> Option<PathBuf> {
    let here = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared");
    let root = std::env::var("VOLLEY_SHARED").unwrap_or_else(|_| here.into());
    let path = PathBuf::from(root).join("data").join(name);
    path.exists().then_some(path)
}

fn read(name: &str, only: volley_model::Family) -> Option<Routes> {
    let options = ReadOptions {
        format: volley_fib::RouteFormat::Auto,
        only: Some(only),
        limit: None,
    };
    read_routes(&shared(name)?, options).ok()
}

/// Prefixes of both families, and their origin.
type Table = (Vec<(u32, u8)>, Vec<(u128, u8)>, &'static str);

/// The full table, or a small one.
fn table(full: bool) -> Table {
    use volley_model::Family::{V4, V6};
    let (four, six) = if full {
        (1_000_000, 250_000)
    } else {
        (40_000, 10_000)
    };
    let real = || {
        let four = read("rib4-ris3333-20260511-nhmodel.txt.xz", V4)?;
        Some((four, read("rib6-ris3333-20260511-nhmodel.txt.xz", V6)?))
    };
    let (v4, v6, from) = match full.then(real).flatten() {
        Some((v4, v6)) => (v4.v4, v6.v6, "shared"),
        None => (synthetic4(four, 1), synthetic6(six, 1), "made-up"),
    };
    // Generated prefixes may overlap the networks of the test, and a longer prefix would divert the pings.
    let v4 = v4.into_iter().map(|r| (r.0, r.1));
    let v4 = v4.filter(|p| p.1 > 0 && p.0 >> 24 != 10);
    let v6 = v6.into_iter().map(|r| (r.0, r.1));
    let v6 = v6.filter(|p| p.1 > 0 && p.0 >> 96 != 0x2001_0db8);
    (v4.collect(), v6.collect(), from)
}

/// Commands of `ip -batch` for all routes, with many next hops on both interfaces.
fn batch(v4: &[(u32, u8)], v6: &[(u128, u8)]) -> String {
    let mut out = String::with_capacity((v4.len() + v6.len()) * 64);
    for (n, (addr, len)) in v4.iter().enumerate() {
        let (net, host) = (77 + n as u32 % 2, n as u32 % HOPS);
        let addr = std::net::Ipv4Addr::from_bits(*addr);
        let _ = writeln!(out, "route replace {addr}/{len} via 10.{net}.1.{host}");
    }
    for (n, (addr, len)) in v6.iter().enumerate() {
        let (net, host) = (77 + n as u32 % 2, 16 + n as u32 % HOPS);
        let addr = std::net::Ipv6Addr::from_bits(*addr);
        let _ = writeln!(
            out,
            "route replace {addr}/{len} via 2001:db8:{net}::{host:x}"
        );
    }
    out
}

/// The number of prefixes that LCP sync has synchronized.
fn mirrored(daemon: &Daemon) -> (u64, u64) {
    let shown = daemon.json("show lcp");
    let row = &shown["tables"][0];
    let waits = shown["mirror"]["waiting"].as_u64() != Some(0);
    let number = |key: &str| row[key].as_u64().unwrap_or(0);
    if waits {
        (0, 0)
    } else {
        (number("ip4"), number("ip6"))
    }
}

fn fill(space: &Space, file: &std::path::Path) {
    let filled = Command::new("timeout")
        .args(["500", "ip", "-n", &space.0, "-batch"])
        .arg(file)
        .output()
        .unwrap();
    assert!(filled.status.success(), "{}", text(&filled.stderr));
}

/// A program that is interrupted on drop.
struct Flow(Option<std::process::Child>);

impl Flow {
    /// Interrupts the program and returns its output.
    fn end(mut self) -> String {
        let child = self.0.take().unwrap();
        support::signal(child.id(), "INT");
        text(&child.wait_with_output().unwrap().stdout)
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            support::signal(child.id(), "INT");
            let _ = child.wait();
        }
    }
}

/// Pings between the hosts, a hundred a second, until interrupted.
fn flow(bed: &Bed) -> Flow {
    let name = bed.name("a");
    let ping = [
        "netns",
        "exec",
        &name,
        "ping",
        "-n",
        "-q",
        "-i",
        "0.01",
        "10.78.0.2",
    ];
    let mut command = Command::new("timeout");
    command.args(["-s", "INT", "300", "ip"]).args(ping);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::null());
    Flow(Some(child.spawn().unwrap()))
}

/// The router with an LCP tap for each interface, synchronized.
fn mirrored_router(bed: &Bed) -> (Daemon, Space) {
    let daemon = bed.router();
    let space = Space::new(bed.name("k")).unwrap();
    for end in ["left", "right"] {
        daemon.ok(&format!("lcp create {end} host-if {end} netns {}", space.0));
    }
    let up = Instant::now();
    while !daemon.ok("lcp audit").contains(" 0 differ") {
        assert!(up.elapsed() < LIMIT, "{}", daemon.ok("lcp audit"));
    }
    (daemon, space)
}

#[test]
fn a_full_table_comes_through_the_kernel_and_none_is_lost() {
    let Some(bed) = Bed::new() else { return };
    let full = std::env::var_os("VOLLEY_FULL_TABLE").is_some();
    let (v4, v6, from) = table(full);
    let (daemon, space) = mirrored_router(&bed);
    let file = daemon.folder.file("batch");
    std::fs::write(&file, batch(&v4, &v6)).unwrap();
    let sum = |words: &str| {
        must(&format!("ip -n {} {words} route show", space.0))
            .lines()
            .count() as u64
    };
    let (own4, own6) = mirrored(&daemon);
    // From here on the router has neighbour entries for the hosts.
    assert_eq!(bed.pings("a", "10.78.0.2", 3, "0.05"), 3);
    let ping = flow(&bed);
    let start = Instant::now();
    fill(&space, &file);
    let kernel = start.elapsed();
    // Duplicates in the batch are one route.
    let want4 = v4.iter().collect::<HashSet<_>>().len() as u64;
    let want6 = v6.iter().collect::<HashSet<_>>().len() as u64;
    while mirrored(&daemon) != (own4 + want4, own6 + want6) {
        let late = start.elapsed() - kernel;
        assert!(
            late < LIMIT,
            "{:?} of {want4} and {want6}: {}",
            mirrored(&daemon),
            daemon.ok("show lcp")
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    let there = start.elapsed();
    assert_eq!((sum("-4"), sum("-6")), (want4 + 2, want6 + 4));
    let audit = daemon.ok("lcp audit");
    assert!(audit.contains(" 0 differ"), "{audit}");
    println!(
        "{want4} IPv4 and {want6} IPv6 routes ({from}): {:.1} s for ip -batch to fill the kernel, all there after {:.1} s, 0 of {} differ; beside it {}",
        kernel.as_secs_f64(),
        there.as_secs_f64(),
        audit.split(' ').next().unwrap_or("?"),
        undisturbed(ping),
    );
}

/// The final output of a flow that lost less than 1 %.
fn undisturbed(flow: Flow) -> String {
    let message = flow.end();
    let line = message
        .lines()
        .find(|l| l.contains(" received"))
        .unwrap_or("");
    let lost = line.split(", ").nth(2).unwrap_or("100%");
    let lost = lost.split('%').next().unwrap_or("100");
    assert!(lost.parse::<f64>().unwrap_or(100.0) < 1.0, "{message}");
    line.to_owned()
}

/// BIRD at host a, which announces the whole table to FRR: next hops are hosts of a's network, unchanged by iBGP.
fn feeder(bed: &Bed, v4: &[(u32, u8)], v6: &[(u128, u8)]) -> Routing {
    let mut bird = Routing::new(bed.name("a"));
    bird.seconds = 900;
    let mut four = String::with_capacity(v4.len() * 40);
    for (n, (addr, len)) in v4.iter().enumerate() {
        let (addr, host) = (std::net::Ipv4Addr::from_bits(*addr), n as u32 % HOPS);
        let _ = writeln!(four, "route {addr}/{len} via 10.77.1.{host};");
    }
    let mut six = String::with_capacity(v6.len() * 60);
    for (n, (addr, len)) in v6.iter().enumerate() {
        let (addr, host) = (std::net::Ipv6Addr::from_bits(*addr), 16 + n as u32 % HOPS);
        let _ = writeln!(six, "route {addr}/{len} via 2001:db8:77::{host:x};");
    }
    std::fs::write(bird.folder.file("four"), four).unwrap();
    std::fs::write(bird.folder.file("six"), six).unwrap();
    let at = |name: &str| bird.folder.file(name).display().to_string();
    let peer = |name: &str, net: &str, family: &str| {
        format!(
            "protocol bgp {name} {{ local {net}2 as 65000; neighbor {net}1 as 65000; connect delay time 1; connect retry time 1;\n\
             {family} {{ import none; export where source = RTS_STATIC; next hop keep; }}; }}\n"
        )
    };
    bird.bird(&format!(
        "router id 10.77.0.2;\nprotocol device {{ }}\n\
         protocol static {{ ipv4;\ninclude \"{}\";\n}}\nprotocol static {{ ipv6;\ninclude \"{}\";\n}}\n{}{}",
        at("four"),
        at("six"),
        peer("to4", "10.77.0.", "ipv4"),
        peer("to6", "2001:db8:77::", "ipv6"),
    ));
    bird
}

/// FRR on the LCP taps, which waits for the feeder.
fn listener(space: &str) -> Routing {
    let mut frr = Routing::new(space.to_owned());
    frr.seconds = 900;
    frr.frr("zebra", "hostname r\n");
    frr.frr(
        "bgpd",
        "hostname r\nrouter bgp 65000\n bgp router-id 10.255.0.1\n neighbor 10.77.0.2 remote-as 65000\n neighbor 10.77.0.2 passive\n\
         neighbor 2001:db8:77::2 remote-as 65000\n neighbor 2001:db8:77::2 passive\n no neighbor 2001:db8:77::2 activate\n\
         address-family ipv4 unicast\n no neighbor 2001:db8:77::2 activate\n exit-address-family\n\
         address-family ipv6 unicast\n neighbor 2001:db8:77::2 activate\n exit-address-family\n",
    );
    frr
}

/// The number of prefixes in the kernel of a namespace, without listing them.
fn in_kernel(space: &str) -> (u64, u64) {
    let read = |file: &str| must(&format!("ip netns exec {space} cat /proc/net/{file}"));
    let four = read("fib_triestat");
    let prefixes = four
        .lines()
        .filter_map(|l| l.trim().strip_prefix("Prefixes:"));
    let four = prefixes.filter_map(|n| n.trim().parse::<u64>().ok()).max();
    let six = read("rt6_stats");
    let entries = six.split_whitespace().nth(3);
    let six = entries.and_then(|n| u64::from_str_radix(n, 16).ok());
    (four.unwrap_or(0), six.unwrap_or(0))
}

/// When the number of routes in a namespace's kernel began to grow, and when all of them were there.
struct Filling {
    space: String,
    before: (u64, u64),
    want: (u64, u64),
    begun: Option<Instant>,
    done: Option<Instant>,
}

impl Filling {
    /// Starts the measurement for this many new routes of each family.
    fn of(space: &str, want: (u64, u64)) -> Filling {
        Filling {
            before: in_kernel(space),
            space: space.to_owned(),
            want,
            begun: None,
            done: None,
        }
    }

    /// Counts again and returns the numbers.
    fn look(&mut self) -> (u64, u64) {
        let now = in_kernel(&self.space);
        if now != self.before {
            self.begun.get_or_insert_with(Instant::now);
        }
        let (four, six) = (self.before.0 + self.want.0, self.before.1 + self.want.1);
        if now.0 >= four && now.1 >= six {
            self.done.get_or_insert_with(Instant::now);
        }
        now
    }

    /// The time from the first new route to an instant.
    fn took(&self, end: Instant) -> Duration {
        end.duration_since(self.begun.unwrap_or(end))
    }
}

/// The pace of FRR alone: the time for the same table on a kernel router without Volley.
fn without_volley(v4: &[(u32, u8)], v6: &[(u128, u8)], want: (u64, u64)) -> Option<Duration> {
    let bed = Bed::new()?;
    for (at, end, host) in [("r", "left", 1), ("a", "e", 2)] {
        bed.ip(at, &format!("addr add 10.77.0.{host}/16 dev {end}"));
        bed.ip(
            at,
            &format!("addr add 2001:db8:77::{host}/64 dev {end} nodad"),
        );
    }
    let mut filling = Filling::of(&bed.name("r"), want);
    let _frr = listener(&bed.name("r"));
    let _bird = feeder(&bed, v4, v6);
    let asked = Instant::now();
    while filling.done.is_none() {
        let now = filling.look();
        assert!(asked.elapsed() < SETTLE * 10, "the kernel has {now:?}");
        std::thread::sleep(LOOK);
    }
    filling.done.map(|end| filling.took(end))
}

#[test]
fn a_full_table_comes_by_bgp_through_frr_and_none_is_lost() {
    if !able(&[&format!("{FRR}/zebra"), &format!("{FRR}/bgpd"), BIRD]) {
        return;
    }
    let full = std::env::var_os("VOLLEY_FULL_TABLE").is_some();
    let (v4, v6, from) = table(full);
    let want4 = v4.iter().collect::<HashSet<_>>().len() as u64;
    let want6 = v6.iter().collect::<HashSet<_>>().len() as u64;
    let Some(alone) = without_volley(&v4, &v6, (want4, want6)) else {
        return;
    };
    let Some(bed) = Bed::new() else { return };
    let (daemon, space) = mirrored_router(&bed);
    let (own4, own6) = mirrored(&daemon);
    assert_eq!(bed.pings("a", "10.78.0.2", 3, "0.05"), 3);
    let ping = flow(&bed);
    let mut filling = Filling::of(&space.0, (want4, want6));
    let _frr = listener(&space.0);
    let _bird = feeder(&bed, &v4, &v6);
    let asked = Instant::now();
    let there = loop {
        let now = filling.look();
        let has = mirrored(&daemon);
        if has == (own4 + want4, own6 + want6) {
            break Instant::now();
        }
        let late = filling.done.map_or(Duration::ZERO, |at| at.elapsed());
        let wait = SETTLE * if full { 10 } else { 2 };
        assert!(
            late < LIMIT && asked.elapsed() < wait,
            "{has:?} of {want4} and {want6}, the kernel {now:?}: {}",
            daemon.ok("show lcp")
        );
        std::thread::sleep(LOOK);
    };
    let audit = daemon.ok("lcp audit");
    assert!(audit.contains(" 0 differ"), "{audit}");
    let took = filling.took(there);
    // The time that Volley needs for a table that FRR has finished: a full synchronization.
    let start = Instant::now();
    let resync = daemon.ok("lcp resync");
    let whole = start.elapsed();
    assert!(
        resync.contains(" 0 of them were wrong") && whole < LIMIT,
        "{whole:?}: {resync}"
    );
    println!(
        "{want4} IPv4 and {want6} IPv6 routes ({from}) by BGP from BIRD through FRR: all there {:.1} s after the first reached the kernel, {:.1} s after the last (FRR fills a kernel without Volley in {:.1} s), read anew and compared in {:.1} s, 0 of {} differ; beside it {}",
        took.as_secs_f64(),
        there
            .duration_since(filling.done.unwrap_or(there))
            .as_secs_f64(),
        alone.as_secs_f64(),
        whole.as_secs_f64(),
        audit.split(' ').next().unwrap_or("?"),
        undisturbed(ping),
    );
}
