//! Benchmarks: `volley bench plugin libvolley_lua.so`, and the ways to scatter a batch for `volley bench scatter`.

use crate::node::scatter::{self, DROP_OUT, DropOut, NAMES, SCRIPTS, Way};
use std::fmt::Write as _;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use volley_sdk::prelude::*;

/// The router of the example.
const ROUTER: &str = include_str!("../../../../examples/lua/router.lua");
/// The neighbor of the benchmark, which the router learns by ARP otherwise.
const NEIGHBOR: &str =
    "routes:neighbor('10.0.1.2', { interface = 'pg1', mac = '02:00:00:00:00:77' })\n";
/// A script without work.
const SEND: &str = "function vector(v) v:send('pg1') end";
/// Next hops of a table with many routes: neighbors of pg1 from 10.0.1.2 on.
const HOPS: usize = 4;
/// First prefix, number of prefixes, and the destinations of packets: the tables of MoonRoute's measurement, networks /24.
const TABLES: [(&str, u32, u32, &str); 2] = [
    (
        "router-1m",
        0x4000_0000,
        1 << 20,
        "ip4.dst random 64.0.0.0 79.255.255.255",
    ),
    // Of the whole address space the packets use a part without addresses that no router forwards to.
    (
        "router-16m",
        0,
        1 << 24,
        "ip4.dst random 16.0.0.0 111.255.255.255",
    ),
];
/// Packets in circulation where destinations are random: more than the caches hold.
const MANY_PACKETS: usize = 49_152;

/// The benchmarks: the router with one route and with MoonRoute's tables, a script that only sends, and the ways to scatter.
pub(crate) fn all() -> impl Iterator<Item = Scenario> {
    let mut one = script("router", with_routes(NEIGHBOR));
    one.is_native = true;
    let small = [one, script("send", SEND.to_owned())];
    let rebatch = script("scatter-lua-rebatch", DROP_OUT.to_owned());
    small
        .into_iter()
        .chain(TABLES.map(table))
        .chain(NAMES.map(|name| Scenario::new(name, name)))
        .chain([rebatched(Scenario::new("scatter-rebatch", DropOut::NAME))])
        .chain(SCRIPTS.map(|(name, text)| script(name, text.to_owned())))
        .chain([rebatched(rebatch)])
}

/// The router with further lines where its table is filled.
fn with_routes(lines: &str) -> String {
    ROUTER.replacen("-- The fast path.", &format!("{lines}-- The fast path."), 1)
}

/// A scenario of a script.
fn script(name: &'static str, text: String) -> Scenario {
    let file = place(name, "lua");
    let mut scenario = Scenario::new(name, "lua-input").commands({
        let file = file.clone();
        move || {
            write(&file, |out| out.write_all(text.as_bytes()));
            vec![format!("set lua-script {name} file {}", file.display())]
        }
    });
    scenario.files.push(file);
    scenario
}

/// The router with a table of consecutive /24 networks, whose next hops alternate; the native router gets the same table.
fn table((name, first, count, destinations): (&'static str, u32, u32, &str)) -> Scenario {
    let prefix = std::net::Ipv4Addr::from_bits(first);
    let (mut lines, mut list) = (String::new(), String::new());
    for at in 0..HOPS {
        let address = format!("10.0.1.{}", at + 2);
        // Writing to a text cannot fail.
        let _ = writeln!(
            lines,
            "routes:neighbor('{address}', {{ interface = 'pg1', mac = '{}' }})",
            mac(at)
        );
        let _ = write!(list, "{{ interface = 'pg1', via = '{address}' }}, ");
    }
    let _ = writeln!(
        lines,
        "routes:add_many('{prefix}/24', {count}, {{ {list} }})"
    );
    let (text, file, native) = (with_routes(&lines), place(name, "lua"), place(name, "txt"));
    let mut scenario = Scenario::new(name, "lua-input").commands({
        let (file, native) = (file.clone(), native.clone());
        move || {
            write(&file, |out| out.write_all(text.as_bytes()));
            write(&native, |out| prefixes(out, first, count));
            let neighbors =
                (0..HOPS).map(|at| format!("set ip neighbor pg1 10.0.1.{} {}", at + 2, mac(at)));
            let load = format!(
                "ip route load {} next-hops 10.0.1.2 {HOPS} pg1",
                native.display()
            );
            let script = format!("set lua-script {name} file {}", file.display());
            neighbors.chain([load, script]).collect()
        }
    });
    scenario.files = vec![file, native];
    scenario.edits = vec![destinations.to_owned()];
    scenario.packets = MANY_PACKETS;
    scenario.is_native = true;
    scenario
}

fn mac(hop: usize) -> String {
    format!("02:00:00:00:00:{:02x}", 0x77 + hop)
}

/// Lines `PREFIX NUMBER-OF-NEXT-HOP`.
fn prefixes(out: &mut dyn Write, first: u32, count: u32) -> std::io::Result<()> {
    for n in 0..count {
        let [a, b, c, _] = first.wrapping_add(n << 8).to_be_bytes();
        writeln!(out, "{a}.{b}.{c}.0/24 {}", n as usize % HOPS)?;
    }
    Ok(())
}

/// The scenario with the path batcher in front of its node, which merges small vectors.
fn rebatched(mut scenario: Scenario) -> Scenario {
    let (size, wait) = (scatter::REBATCH, scatter::WAIT_US);
    let settings = format!("set path-batcher defaults batch {size} timeout {wait}");
    let on = "set interface path-batcher on pg0".to_owned();
    let (name, node) = (scenario.name.clone(), scenario.node.clone());
    let files = std::mem::take(&mut scenario.files);
    let mut merged = Scenario::new(name, node).commands(move || {
        let before = scenario.setup().unwrap_or_default();
        [settings.clone(), on.clone()]
            .into_iter()
            .chain(before)
            .collect()
    });
    merged.files = files;
    merged
}

/// A file of this process.
fn place(name: &str, kind: &str) -> PathBuf {
    let file = format!("volley-lua-{name}-{}.{kind}", std::process::id());
    std::env::temp_dir().join(file)
}

/// Write a file. A file that cannot be written is an error of the command that names it.
fn write(path: &std::path::Path, fill: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) {
    if let Ok(file) = volley_file::create(path) {
        let mut out = BufWriter::new(file);
        let _ = fill(&mut out).and_then(|()| out.flush());
    }
}
