//! Instructions, cache misses and branches per packet. Two runs with different numbers of packets are made: their common part (start,
//! objects) cancels out in the difference.
//!
//! Hardware counters see the whole router. callgrind simulates caches and branch prediction, and its counts are those of the plugin's
//! code alone; it ignores prefetches, and it does not support AVX-512.

use super::child::words;
use super::figures::{Counts, Way};
use super::rig::{Case, Passed};
use crate::BenchError;
use crate::args::PluginArgs;
use crate::process::output;
use crate::scratch::Scratch;
use crate::simulated::{self, Events};
use std::ffi::OsStr;
use std::process::Command;

/// Events of perf, in the order of [`Events`].
const PERF: [&str; 5] = [
    "instructions:u",
    "L1-dcache-load-misses:u",
    "LLC-load-misses:u",
    "branches:u",
    "branch-misses:u",
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
    simulated::is_installed().then_some(Way::Callgrind)
}

/// Count the events of a scenario.
pub fn count(way: Way, exe: &OsStr, args: &PluginArgs, case: &Case) -> Result<Counts, BenchError> {
    let lap = case.packets.max(4096);
    let few = run(way, exe, args, case, lap)?;
    let many = run(way, exe, args, case, 3 * lap)?;
    Ok(per_packet(few, many))
}

/// The packets of one run, and its events.
fn run(
    way: Way,
    exe: &OsStr,
    args: &PluginArgs,
    case: &Case,
    packets: usize,
) -> Result<(u64, Events), BenchError> {
    let mut words = words(args, case);
    words.extend(["--packets".into(), packets.to_string().into()]);
    let passed = |text: &str| -> Result<Passed, BenchError> {
        serde_json::from_str(text)
            .map_err(|why| BenchError::Wrong(format!("scenario {}: {why}", case.name)))
    };
    match way {
        Way::Hardware => {
            let folder = Scratch::new()?;
            let mut perf = Command::new("perf");
            perf.args(["stat", "-x,", "-e", &PERF.join(","), "-o"]);
            perf.arg(folder.file(simulated::EVENTS))
                .arg("--")
                .arg(exe)
                .args(words);
            let passed = passed(&output(&mut perf)?)?;
            Ok((
                passed.packets,
                perf_events(&folder.read(simulated::EVENTS)?),
            ))
        }
        Way::Callgrind => {
            // The last one of an option counts.
            words.extend(["--isa".into(), simulated::level(&args.level.isa).into()]);
            let (text, file) = simulated::run(exe, &words)?;
            let passed = passed(&text)?;
            let (from, to) = passed.code;
            // Functions without a name are named by their address.
            let is_ours = |name: &str| {
                let address = name.strip_prefix("0x");
                let address = address.and_then(|it| u64::from_str_radix(it, 16).ok());
                address.is_some_and(|it| (from..to).contains(&it))
            };
            Ok((passed.packets, simulated::own(&file, is_ours)))
        }
    }
}

fn per_packet(few: (u64, Events), many: (u64, Events)) -> Counts {
    let packets = many.0.saturating_sub(few.0).max(1) as f64;
    let [
        instructions,
        l1_misses,
        ll_misses,
        branches,
        mispredicted,
        _,
    ] = std::array::from_fn(|at| {
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
    let [instructions, l1, ll, branches, mispredicted] = PERF.map(|event| {
        let lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let mut ours = lines.filter(|fields| fields.get(2) == Some(&event));
        ours.next()?.first()?.parse().ok()
    });
    [instructions, l1, ll, branches, mispredicted, None]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_that_the_processor_does_not_count_are_none() {
        let text = "\n1200,,instructions:u,100,100.00,,\n<not supported>,,LLC-load-misses:u,0,100.00,,\n7,,branch-misses:u,1,1,,\n";
        let events = perf_events(text);
        assert_eq!(events, [Some(1200), None, None, None, Some(7), None]);
        let many = (300, [Some(3200), None, None, None, Some(9), None]);
        let counts = per_packet((100, events), many);
        assert_eq!(counts.instructions, Some(10.0));
        assert_eq!(counts.mispredicted, Some(0.01));
        assert_eq!(counts.l1_misses, None);
    }
}
