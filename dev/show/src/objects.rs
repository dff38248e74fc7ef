//! The items of "One definition per object".

use super::house::words;
use super::{Item, Sitting, Work, at_most, control, item, test_file};
use std::collections::{BTreeMap, BTreeSet};
use xtask::ci;
use xtask::home::Home;
use xtask::report::Outcome;
use xtask::run::Program;
use xtask::tidy::source::{self, Source};
use xtask::tidy::tokens;

/// Maximum number of files that a small feature may change outside its crate.
const FILES: usize = 3;
const LINES: usize = 10;

/// Maximum number of lines of `crates/control` without netlink: there were 28,300 before, and 6,000 fewer are required.
const CONTROL: usize = 22_300;

/// Names of features, drivers and protocols that the control crates must not contain: parts of words in code, without
/// tests.
const NAMES: [&str; 27] = [
    "memif",
    "vhost",
    "virtio",
    "dpdk",
    "bridge",
    "xconnect",
    "l2",
    "mroute",
    "igmp",
    "mld",
    "lcp",
    "urpf",
    "dhcp",
    "arp",
    "neighbor",
    "unnumbered",
    "batcher",
    "rss",
    "pcap",
    "tap",
    "xdp",
    "vlan",
    "pg",
    "reassembly",
    "icmp",
    "vpp",
    "route",
];

/// Maximum memory of the control plane for a route, in bytes.
pub(super) const BYTES: f64 = 400.0;
/// Bytes of memory for each of 100,000 routes as 100,000 requests, before routes were processed in groups.
const BEFORE: f64 = 1660.0;

pub const ITEMS: &[Item] = &[
    item(
        "closed",
        "core, config, cli and http name no feature, driver or protocol",
        Work::Look(|home| Outcome::of(closed(home))),
    ),
    item(
        "size",
        "lines of crates/control without netlink",
        Work::Look(|home| Outcome::of(size(home))),
    ),
    item(
        "same",
        "commands and files that an earlier version understood mean the same",
        Work::Command(test_file!["same"]),
    ),
    item(
        "names",
        "one spelling per field in file, JSON and command line; every text names its subject",
        Work::Command(&["test", "-p", "volley-daemon", "--lib", "objects::"]),
    ),
    item(
        "outside",
        "a class of a crate outside the workspace comes and goes in all faces of a running daemon",
        Work::Look(ci::outside),
    ),
    item(
        "forgotten",
        "an interface with every setting that any class defines, renamed and deleted: nothing is lost, nothing is left",
        Work::Command(test_file!["forgotten"]),
    ),
    item(
        "cost",
        "files and lines outside its crate that DHCP relay needed, pages and Cargo.lock not counted",
        Work::Look(|home| Outcome::of(cost(home, "crates/net/dhcp-relay"))),
    ),
    item(
        "commit-10000",
        "10,000 objects committed with traffic undisturbed",
        Work::Call(|sitting| control::timed(sitting, "ten_thousand_objects", 2.0)),
    ),
    item(
        "routes-100000",
        "100,000 routes in one transaction with traffic undisturbed",
        Work::Call(|sitting| control::timed(sitting, "a_hundred_thousand_routes", 3.0)),
    ),
    item(
        "routes-100000-http",
        "a request for each of 100,000 routes in one transaction of the HTTP interface",
        Work::Call(|sitting| bulk(sitting, "a_request_for_each", "100000", 3.0, BEFORE)),
    ),
    item(
        "routes-1M",
        "a million routes in one transaction of the HTTP interface: time, memory a route",
        Work::Call(|sitting| bulk(sitting, "routes_of_one", "1000000", 20.0, BYTES)),
    ),
    item(
        "dhcp-relay-unit",
        "option 82 and Relay-forward messages byte by byte, hostile bytes, a reason for each drop",
        Work::Command(&["test", "-p", "volley-dhcp-relay"]),
    ),
    item(
        "dhcp-relay",
        "leases of a real server through the relay, for IPv4 and IPv6; every field read by scapy; several tables",
        Work::Command(test_file!["dhcp_relay"]),
    ),
];

/// Rust files of the tree below some folders, without tests.
fn sources(home: &Home, dirs: &[String]) -> Result<Vec<Source>, String> {
    let mut all = source::all(home).map_err(|error| error.to_string())?;
    all.retain(|it| !it.is_test() && dirs.iter().any(|dir| it.path.starts_with(dir)));
    Ok(all)
}

/// Whether a word of code, such as `MemifSocket` or `memif_sockets`, contains a part, in singular or plural.
fn has_part(word: &str, part: &str) -> bool {
    let is_it = |it: &String| it == part || it.strip_suffix('s') == Some(part);
    words(word).iter().any(is_it)
}

fn closed(home: &Home) -> Result<String, String> {
    let faces = ["core", "config", "cli", "http"].map(|name| format!("crates/control/{name}/src/"));
    let mut found: BTreeMap<&str, usize> = BTreeMap::new();
    let mut files = BTreeSet::new();
    for source in sources(home, &faces)? {
        let tokens = tokens::outside_tests(&source.text);
        let before = std::iter::once("").chain(tokens.iter().map(|token| &token.text[..]));
        for (token, before) in tokens.iter().zip(before) {
            // `.route(...)` is a method of axum's `Router`.
            if (before, &token.text[..]) == (".", "route") {
                continue;
            }
            for name in NAMES.iter().filter(|name| has_part(&token.text, name)) {
                *found.entry(name).or_default() += 1;
                files.insert(source.path.clone());
            }
        }
    }
    let total: usize = found.values().sum();
    let each: Vec<String> = found
        .iter()
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    let text = format!(
        "{total} words in {} files (0 wanted): {}",
        files.len(),
        each.join(", ")
    );
    match total {
        0 => Ok(text),
        _ => Err(text),
    }
}

/// Seconds, and bytes per route, of the test `bulk_routes`; the memory of the process includes the FIB.
pub(super) fn bulk(
    sitting: &Sitting<'_>,
    name: &str,
    routes: &str,
    bar: f64,
    most: f64,
) -> Outcome {
    let text = control::test_of(sitting, "bulk_routes", name, ("VOLLEY_ROUTES", routes));
    let judged = text.and_then(|text| {
        let [seconds, bytes] = bulk_figures(&text).ok_or("the test printed no figures")?;
        at_most(seconds, bar, "s").and_then(|time| {
            at_most(bytes, most, "bytes a route").map(|memory| format!("{time}; {memory}"))
        })
    });
    Outcome::of(judged)
}

/// The two figures of a line such as `1000 routes, one request: 1.5 s, 300 bytes a route`.
fn bulk_figures(text: &str) -> Option<[f64; 2]> {
    let line = control::line(text, "bytes a route")?;
    let (time, memory) = line.split(": ").nth(1)?.split_once(" s, ")?;
    Some([time.parse().ok()?, memory.split(' ').next()?.parse().ok()?])
}

fn size(home: &Home) -> Result<String, String> {
    let mut all = sources(home, &["crates/control/".to_owned()])?;
    all.retain(|source| source.path.contains("/src/"));
    let lines: usize = all.iter().map(|it| lines_without_tests(&it.text)).sum();
    let text = format!("{lines} lines without tests, at most {CONTROL}");
    match lines <= CONTROL {
        true => Ok(text),
        false => Err(text),
    }
}

/// Number of lines of a file before its tests, which are its last module.
fn lines_without_tests(text: &str) -> usize {
    let mut lines = text.lines().zip(text.lines().skip(1));
    let tests = |(line, next): (&str, &str)| {
        line == "#[cfg(test)]" && next.starts_with("mod ") && next.ends_with('{')
    };
    let before = lines.position(tests);
    before.unwrap_or_else(|| text.lines().count())
}

/// Changes outside of a crate in the commit that adds the crate.
fn cost(home: &Home, crate_dir: &str) -> Result<String, String> {
    let git = |args: &[&str]| {
        let program = Program::new(home, "git").args(args.iter().copied());
        program.require().map(|output| output.stdout)
    };
    let manifest = format!("{crate_dir}/Cargo.toml");
    let added = git(&["log", "--diff-filter=A", "--format=%H", "--", &manifest])?;
    let commit = added.lines().last();
    let commit = commit.ok_or_else(|| format!("no commit of this checkout adds {manifest}"))?;
    let changes = git(&["show", "--numstat", "--no-renames", "--format=", commit])?;
    let outside = outside_of(&changes, crate_dir);
    let (files, lines) = (outside.len(), outside.iter().map(|it| it.0).sum::<usize>());
    let names: Vec<&str> = outside.iter().map(|it| it.1).collect();
    let short = commit.get(..9).unwrap_or(commit);
    let text = format!(
        "{files} files, {lines} lines in {short} (at most {FILES}, {LINES}): {}",
        names.join(", ")
    );
    match files <= FILES && lines <= LINES {
        true => Ok(text),
        false => Err(text),
    }
}

/// Lines added and removed, and name, of each file of `git show --numstat` that is neither in the crate nor a page.
fn outside_of<'t>(numstat: &'t str, crate_dir: &str) -> Vec<(usize, &'t str)> {
    let inside = format!("{crate_dir}/");
    let file = |line: &'t str| {
        let mut columns = line.split('\t');
        let mut count = || columns.next()?.parse::<usize>().ok();
        // A binary file has no line count and counts as one.
        let (more, less) = (count().unwrap_or(1), count().unwrap_or(0));
        let name = columns.next()?;
        let page = name.starts_with("docs/") || name.ends_with(".md") || name == "Cargo.lock";
        (!page && !name.starts_with(&inside)).then_some((more + less, name))
    };
    numstat.lines().filter_map(file).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_in_front_of_tests_are_counted() {
        let file = "use a;\n#[cfg(test)]\nmod other;\nfn f() {}\n";
        assert_eq!(lines_without_tests(file), 4);
        let with = format!("{file}#[cfg(test)]\nmod tests {{\n    fn t() {{}}\n}}\n");
        assert_eq!(lines_without_tests(&with), 4);
    }

    #[test]
    fn parts_of_words_are_found() {
        for word in [
            "memif",
            "MemifSocket",
            "memif_sockets",
            "is_memif",
            "memif-socket",
        ] {
            assert!(has_part(word, "memif"), "{word}");
        }
        for word in ["start", "Taps", "tapestry", "escape"] {
            assert_eq!(has_part(word, "tap"), word == "Taps", "{word}");
        }
    }

    #[test]
    fn figures_of_many_routes_are_found() {
        let text = "running\ntest it ... 1000 routes, one request: 1.250 s, 300 bytes a route\n\
            1000 routes removed: 0.5 s, 20 bytes a route are left\n";
        assert_eq!(bulk_figures(text), Some([1.25, 300.0]));
        assert_eq!(bulk_figures("nothing"), None);
    }

    #[test]
    fn pages_and_the_crate_itself_are_not_counted() {
        let numstat = "1\t0\tCargo.toml\n30\t2\tCargo.lock\n9\t0\tcrates/net/lamp/src/lib.rs\n\
            2\t1\tapps/volley/src/main.rs\n5\t0\tdocs/lamp.md\n1\t0\tREADME.md\n\
            4\t0\tcrates/net/lamp-post/src/lib.rs\n-\t-\tlogo.png\n";
        let want = vec![
            (1, "Cargo.toml"),
            (3, "apps/volley/src/main.rs"),
            (4, "crates/net/lamp-post/src/lib.rs"),
            (1, "logo.png"),
        ];
        assert_eq!(outside_of(numstat, "crates/net/lamp"), want);
    }
}
