//! The resources of a running router, so that two points in time can be compared.

use super::bench::Bench;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How long the release of deleted objects may take.
const SETTLE: Duration = Duration::from_secs(10);

pub type Counts = BTreeMap<String, usize>;

/// The resources of a router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Open files by type.
    pub files: Counts,
    /// Mapped files and shared memory by type.
    pub maps: Counts,
    pub threads: usize,
    /// Names of interfaces, with the number of existing indices.
    pub interfaces: Vec<String>,
    /// The configuration.
    pub config: Vec<String>,
    /// Routes of both versions.
    pub routes: Vec<String>,
    /// Neighbours that are on none of the interfaces that stay.
    pub neighbors: Vec<String>,
    /// LCP taps.
    pub taps: Vec<String>,
    /// Nodes of the graph.
    pub nodes: usize,
    pub devices: Vec<String>,
    /// Buffers that are not free.
    pub buffers: u64,
}

/// Interfaces that stay.
pub const STAY: [&str; 3] = ["left", "right", "week-sub"];

fn counts(all: impl Iterator<Item = String>) -> Counts {
    let mut counts = Counts::new();
    for one in all {
        // Inode numbers of sockets and pipes differ.
        let kind = one.split(['[', ' ']).next().unwrap_or("").to_owned();
        *counts.entry(kind).or_default() += 1;
    }
    counts
}

fn files(pid: u32) -> Counts {
    let all = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let target = |one: std::fs::DirEntry| std::fs::read_link(one.path()).ok();
    let targets = all.flatten().filter_map(target);
    counts(targets.map(|t| {
        t.display()
            .to_string()
            .replace("anon_inode:[", "anon_inode:")
    }))
}

/// Mapped files and shared memory of a process.
pub fn maps(pid: u32) -> Counts {
    let all = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let name = |line: &str| line.split_whitespace().nth(5).map(str::to_owned);
    counts(all.lines().filter_map(name))
}

fn lines(message: &str) -> Vec<String> {
    message.lines().map(str::to_owned).collect()
}

impl Held {
    pub fn now(bench: &Bench) -> Held {
        let (daemon, pid) = (&bench.daemon, bench.daemon.pid());
        let names = |line: &str, list: &str, field: &str| {
            let all = daemon.json(line)[list].as_array().unwrap().clone();
            let name = |row: &serde_json::Value| row[field].as_str().unwrap().to_owned();
            let mut names: Vec<String> = all.iter().map(name).collect();
            names.sort();
            names
        };
        let routes = |family: &str| {
            let message = daemon.ok(&format!("show {family} fib limit 10000"));
            // Host routes of neighbours that are added and removed independently of the test, and the line with sizes.
            let passing = |l: &String| l.contains("proto adjacency") || l.contains("prefixes");
            lines(&message).into_iter().filter(move |l| !passing(l))
        };
        let mut neighbors = names("show ip neighbors", "neighbors", "interface");
        neighbors.retain(|on| !STAY.contains(&on.as_str()));
        let arenas = daemon.json("show buffers")["arenas"].clone();
        let used = arenas.as_array().unwrap().iter();
        Held {
            files: files(pid),
            maps: maps(pid),
            threads: std::fs::read_dir(format!("/proc/{pid}/task"))
                .unwrap()
                .count(),
            interfaces: names("show interface", "interfaces", "name"),
            config: lines(&daemon.ok("config show")),
            routes: routes("ip").chain(routes("ip6")).collect(),
            neighbors,
            taps: lines(&daemon.ok("show lcp"))
                .into_iter()
                .take_while(|l| !l.is_empty())
                .collect(),
            nodes: daemon.ok("show graph").lines().count(),
            devices: bench.devices(),
            buffers: used.map(|a| a["used"].as_u64().unwrap()).sum(),
        }
    }

    /// Every resource that differs from `before`, with both values.
    fn differences(&self, before: &Held) -> Vec<String> {
        let mut all = Vec::new();
        let mut compare = |what: &str, then: String, now: String| {
            if then != now {
                all.push(format!("{what}: before {then}, now {now}"));
            }
        };
        let text = |it: &dyn std::fmt::Debug| format!("{it:?}");
        // A client that has just disconnected may have been counted before.
        let grown = |(name, now): (&String, &usize)| before.files.get(name).unwrap_or(&0) < now;
        if self.files.iter().any(grown) {
            compare("files", text(&before.files), text(&self.files));
        }
        compare("maps", text(&before.maps), text(&self.maps));
        compare("threads", text(&before.threads), text(&self.threads));
        compare("nodes", text(&before.nodes), text(&self.nodes));
        let lists = [
            ("interfaces", &before.interfaces, &self.interfaces),
            ("configuration", &before.config, &self.config),
            ("routes", &before.routes, &self.routes),
            ("neighbours", &before.neighbors, &self.neighbors),
            ("LCP taps", &before.taps, &self.taps),
            ("kernel devices", &before.devices, &self.devices),
        ];
        for (what, then, now) in lists {
            let only = |these: &[String], those: &[String]| -> Vec<String> {
                these
                    .iter()
                    .filter(|it| !those.contains(it))
                    .cloned()
                    .collect()
            };
            compare(what, text(&only(then, now)), text(&only(now, then)));
            compare(what, text(&then.len()), text(&now.len()));
        }
        // Buffers of packets in flight exist only for a moment.
        if self.buffers > before.buffers {
            compare("buffers", text(&before.buffers), text(&self.buffers));
        }
        all
    }

    /// Waits until no more resources are used than before; fails with the rest.
    pub fn same_as(bench: &Bench, before: &Held, what: &str) {
        let end = Instant::now() + SETTLE;
        loop {
            let differences = Held::now(bench).differences(before);
            if differences.is_empty() {
                return;
            }
            assert!(
                Instant::now() < end,
                "{what}: this is left:\n{}",
                differences.join("\n")
            );
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// The resources, once two successive readings are equal.
    pub fn settled(bench: &Bench) -> Held {
        let end = Instant::now() + SETTLE;
        let mut last = Held::now(bench);
        loop {
            std::thread::sleep(Duration::from_millis(200));
            let mut now = Held::now(bench);
            now.buffers = now.buffers.min(last.buffers);
            let differences = now.differences(&last);
            if differences.is_empty() {
                return now;
            }
            assert!(Instant::now() < end, "it does not settle: {differences:?}");
            last = now;
        }
    }
}
