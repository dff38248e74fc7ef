//! Instructions, cache misses and branches per packet. Two runs with different numbers of packets are made: their common part (start,
//! objects) cancels out in the difference.
//!
//! Hardware counters see the whole router. callgrind simulates caches and branch prediction, and its counts are those of the plugin's
//! code alone; it ignores prefetches, and it does not support AVX-512.

use super::child::{file_error, output, words};
use super::figures::{Counts, Way};
use super::rig::{Case, Passed};
use crate::BenchError;
use crate::args::PluginArgs;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Maximum size of a file of events in bytes.
const MAX_FILE: u64 = 1 << 30;

/// Instructions, misses of the first and last level, branches, mispredicted branches.
type Events = [Option<u64>; 5];

/// Events of perf, in the order of [`Events`].
const PERF: [&str; 5] = [
    "instructions:u",
    "L1-dcache-load-misses:u",
    "LLC-load-misses:u",
    "branches:u",
    "branch-misses:u",
];
/// Columns of callgrind, in the order of [`Events`].
const CALLGRIND: [&[&str]; 5] = [
    &["Ir"],
    &["D1mr", "D1mw"],
    &["DLmr", "DLmw"],
    &["Bc", "Bi"],
    &["Bcm", "Bim"],
];

/// The way that this machine has, if any: hardware counters before callgrind.
pub fn way() -> Option<Way> {
    let mut perf = Command::new("perf");
    perf.args(["stat", "-x,", "-e", PERF[0], "true"]);
    let counted = |done: std::process::Output| {
        let text = String::from_utf8_lossy(&done.stderr).into_owned();
        perf_events(&text)[0].is_some_and(|count| count > 0)
    };
    if perf.output().is_ok_and(counted) {
        return Some(Way::Hardware);
    }
    let mut valgrind = Command::new("valgrind");
    let found = valgrind.arg("--version").output();
    found
        .is_ok_and(|done| done.status.success())
        .then_some(Way::Callgrind)
}

/// Count the events of a scenario.
pub fn count(way: Way, exe: &OsStr, args: &PluginArgs, case: &Case) -> Result<Counts, BenchError> {
    let lap = case.packets.max(4096);
    let few = run(way, exe, args, case, lap)?;
    let many = run(way, exe, args, case, 3 * lap)?;
    Ok(per_packet(few, many))
}

/// A file that is removed when dropped.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The packets of one run, and its events.
fn run(
    way: Way,
    exe: &OsStr,
    args: &PluginArgs,
    case: &Case,
    packets: usize,
) -> Result<(u64, Events), BenchError> {
    let name = format!("volley-bench-plugin-{}", std::process::id());
    let file = Scratch(std::env::temp_dir().join(name));
    let mut command = match way {
        Way::Hardware => {
            let mut perf = Command::new("perf");
            perf.args(["stat", "-x,", "-e", &PERF.join(","), "-o"]);
            perf.arg(&file.0).arg("--");
            perf
        }
        Way::Callgrind => {
            let mut valgrind = Command::new("valgrind");
            valgrind.args(["--tool=callgrind", "--quiet"]);
            valgrind.args(["--cache-sim=yes", "--branch-sim=yes"]);
            let mut option = OsString::from("--callgrind-out-file=");
            option.push(&file.0);
            valgrind.arg(option);
            valgrind
        }
    };
    command.arg(exe).args(words(args, case));
    command.args(["--packets", &packets.to_string()]);
    if way == Way::Callgrind && args.isa != "scalar" {
        // The last one of an option counts.
        command.args(["--isa", "x86-64-v3"]);
    }
    let passed: Passed = serde_json::from_str(&output(&mut command)?)
        .map_err(|why| BenchError::Wrong(format!("scenario {}: {why}", case.name)))?;
    let text = read(&file.0)?;
    let events = match way {
        Way::Hardware => perf_events(&text),
        Way::Callgrind => callgrind_events(&text, passed.code),
    };
    Ok((passed.packets, events))
}

fn read(path: &Path) -> Result<String, BenchError> {
    let text = volley_file::read_text(path, MAX_FILE);
    text.map_err(|why| file_error(&path.display().to_string(), &why))
}

fn per_packet(few: (u64, Events), many: (u64, Events)) -> Counts {
    let packets = many.0.saturating_sub(few.0).max(1) as f64;
    let [instructions, l1_misses, ll_misses, branches, mispredicted] = std::array::from_fn(|at| {
        let (few, many) = (few.1[at]?, many.1[at]?);
        Some((many as f64 - few as f64) / packets)
    });
    Counts {
        instructions,
        l1_misses,
        ll_misses,
        branches,
        mispredicted,
    }
}

/// The events in the output of `perf stat -x,`: value, unit, event.
fn perf_events(text: &str) -> Events {
    PERF.map(|event| {
        let lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let mut ours = lines.filter(|fields| fields.get(2) == Some(&event));
        ours.next()?.first()?.parse().ok()
    })
}

/// The events in a callgrind file of functions whose addresses are in `code`: functions without a name are named by their address.
/// A line `fn=(id) name` begins a function, and the name is there only the first time. The line after `calls=` is the cost of the callee.
fn callgrind_events(text: &str, code: (u64, u64)) -> Events {
    let lines = || text.lines();
    let columns = lines().find_map(|line| line.strip_prefix("events:"));
    let columns: Vec<&str> = columns.unwrap_or_default().split_whitespace().collect();
    let (mut ours, mut now, mut is_callee) = (HashMap::<&str, bool>::new(), false, false);
    let mut sums = vec![0u64; columns.len()];
    for line in lines() {
        let named = line.strip_prefix("fn=");
        if let Some(named) = named.or_else(|| line.strip_prefix("cfn=")) {
            let (id, name) = named.split_once(' ').unwrap_or((named, ""));
            let address = name
                .strip_prefix("0x")
                .and_then(|it| u64::from_str_radix(it, 16).ok());
            let here = address.is_some_and(|it| (code.0..code.1).contains(&it));
            let known = ours.entry(id).or_insert(here);
            if line.starts_with("fn=") {
                now = *known;
            }
        } else if line.starts_with("calls=") {
            is_callee = true;
        } else if line.starts_with(|c: char| c.is_ascii_digit() || "+-*".contains(c)) {
            if now && !is_callee {
                let costs = line.split_whitespace().skip(1);
                let costs = costs.filter_map(|it| it.parse::<u64>().ok());
                sums.iter_mut().zip(costs).for_each(|(sum, it)| *sum += it);
            }
            is_callee = false;
        }
    }
    CALLGRIND.map(|names| {
        let sum = |name: &&str| {
            let at = columns.iter().position(|column| column == name)?;
            sums.get(at).copied()
        };
        names.iter().map(sum).sum()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_costs_of_the_plugins_functions_count() {
        let text = "events: Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw Bc Bcm Bi Bim\n\
            ob=(1) /usr/bin/volley\nfn=(7) main\n1 100\ncfn=(9) 0x0000000000007100\ncalls=1 0\n* 50\n\
            fn=(9)\n0 20 5 5 0 2 1 0 0 0 4 1\n+3 2\ncfn=(7)\ncalls=1 1\n* 1000\n- 1\n\
            fn=(8) 0x0000000000009000\n0 77\ntotals: 1\n";
        let events = callgrind_events(text, (0x7000, 0x7300));
        assert_eq!(events, [Some(23), Some(3), Some(0), Some(4), Some(1)]);
    }

    #[test]
    fn events_that_the_processor_does_not_count_are_none() {
        let text = "\n1200,,instructions:u,100,100.00,,\n<not supported>,,LLC-load-misses:u,0,100.00,,\n7,,branch-misses:u,1,1,,\n";
        let events = perf_events(text);
        assert_eq!(events, [Some(1200), None, None, None, Some(7)]);
        let many = (300, [Some(3200), None, None, None, Some(9)]);
        let counts = per_packet((100, events), many);
        assert_eq!(counts.instructions, Some(10.0));
        assert_eq!(counts.mispredicted, Some(0.01));
        assert_eq!(counts.l1_misses, None);
    }
}
