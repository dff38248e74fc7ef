//! A full table through the Linux mirror: `ip -batch` fills the kernel as a routing daemon would, and not one route may be
//! lost, while packets in transit go on.
//!
//! Small by default; `VOLLEY_FULL_TABLE=1` takes all of it, from the shared data where they are, else made up. Needs root.

mod support;

use std::collections::HashSet;
use std::fmt::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::bed::{Bed, Space, must};
use support::{Daemon, text};
use volley_fib::load::{ReadOptions, Routes, read_routes, synthetic4, synthetic6};

/// Next hops of each family.
const HOPS: u32 = 200;
/// In how much time a full table must be there, counted from its end in the kernel.
const LIMIT: Duration = Duration::from_secs(30);

fn shared(name: &str) -> Option<PathBuf> {
    let here = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../../shared");
    let root = std::env::var("VOLLEY_SHARED").unwrap_or_else(|_| here.into());
    let path = PathBuf::from(root).join("data").join(name);
    path.exists().then_some(path)
}

fn read(name: &str, only: volley_model::Family) -> Option<Routes> {
    let options = ReadOptions {
        format: volley_model::RouteFormat::Auto,
        only: Some(only),
        limit: None,
    };
    read_routes(&shared(name)?, options).ok()
}

/// Prefixes of both families, and where they come from.
type Table = (Vec<(u32, u8)>, Vec<(u128, u8)>, &'static str);

/// All of it, or a little.
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
    // What is made up may lie on the bed's own networks, and a better prefix would take the pings away.
    let v4 = v4.into_iter().map(|r| (r.0, r.1));
    let v4 = v4.filter(|p| p.1 > 0 && p.0 >> 24 != 10);
    let v6 = v6.into_iter().map(|r| (r.0, r.1));
    let v6 = v6.filter(|p| p.1 > 0 && p.0 >> 96 != 0x2001_0db8);
    (v4.collect(), v6.collect(), from)
}

/// Commands of `ip -batch` for all of them, by many next hops on both interfaces.
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

/// Prefixes that the mirror says it has handed over.
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

/// A program that is interrupted when nobody waits for it any more.
struct Flow(Option<std::process::Child>);

impl Flow {
    /// What it has said in the end.
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

/// Pings from one host to the other, a hundred a second, until interrupted.
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

/// The router with a twin for each interface, in step.
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
    // From here on the hosts are known.
    assert_eq!(bed.pings("a", "10.78.0.2", 3, "0.05"), 3);
    let ping = flow(&bed);
    let start = Instant::now();
    fill(&space, &file);
    let kernel = start.elapsed();
    // What is in the batch twice is one route.
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
    let said = ping.end();
    let line = said.lines().find(|l| l.contains(" received")).unwrap_or("");
    println!(
        "{want4} IPv4 and {want6} IPv6 routes ({from}): {:.1} s for ip -batch to fill the kernel, all there after {:.1} s, 0 of {} differ; beside it {line}",
        kernel.as_secs_f64(),
        there.as_secs_f64(),
        audit.split(' ').next().unwrap_or("?"),
    );
    let lost = line
        .split(", ")
        .nth(2)
        .unwrap_or("100%")
        .split('%')
        .next()
        .unwrap_or("100");
    assert!(lost.parse::<f64>().unwrap_or(100.0) < 1.0, "{said}");
}
