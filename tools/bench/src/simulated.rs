//! callgrind: a processor that is simulated, and the file that it writes.

use super::BenchError;
use super::process::output;
use super::scratch::Scratch;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::process::Command;

/// The name of the file of events.
pub const EVENTS: &str = "events";

/// The names of the events in `show perfmon`.
pub const NAMES: [&str; 6] = [
    "instructions",
    "l1d-misses",
    "llc-misses",
    "branches",
    "branch-misses",
    "l1i-misses",
];
/// Columns of callgrind, in the order of [`NAMES`].
const CALLGRIND: [&[&str]; 6] = [
    &["Ir"],
    &["D1mr", "D1mw"],
    &["DLmr", "DLmw"],
    &["Bc", "Bi"],
    &["Bcm", "Bim"],
    &["I1mr"],
];

/// Numbers of events in the order of [`NAMES`].
pub type Events = [Option<u64>; 6];

/// Whether valgrind is installed.
pub fn is_installed() -> bool {
    let found = Command::new("valgrind").arg("--version").output();
    found.is_ok_and(|done| done.status.success())
}

/// The instruction-set level of a simulated run: valgrind does not know AVX-512.
pub fn level(isa: &str) -> &str {
    match isa {
        "scalar" => "scalar",
        _ => "x86-64-v3",
    }
}

/// Run a program in the simulator. Returns its output and the file of events.
pub fn run(exe: &OsStr, words: &[OsString]) -> Result<(String, String), BenchError> {
    let folder = Scratch::new()?;
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--quiet"]);
    valgrind.args(["--cache-sim=yes", "--branch-sim=yes"]);
    let mut option = OsString::from("--callgrind-out-file=");
    option.push(folder.file(EVENTS));
    valgrind.arg(option).arg(exe).args(words);
    let output = output(&mut valgrind)?;
    Ok((output, folder.read(EVENTS)?))
}

/// The events of the functions themselves for which `is_wanted` returns true, which gets their names.
pub fn own(text: &str, is_wanted: impl Fn(&str) -> bool) -> Events {
    let sums = sums(text, 1, |name| is_wanted(name).then_some(0), false);
    sums.into_iter().next().unwrap_or_default()
}

/// The events of all that each of these functions calls.
pub fn callees(text: &str, functions: &[&str]) -> Vec<Events> {
    let number = |name: &str| functions.iter().position(|it| *it == name);
    sums(text, functions.len(), number, true)
}

/// The events in a callgrind file of groups of functions; `group` gets the name of a function, and returns the number of its
/// group. A line `fn=(id) name` begins a function, and the name is there only the first time. The line after `calls=` is the cost
/// of the callee with all that it calls: these lines count, or all others.
fn sums(
    text: &str,
    groups: usize,
    group: impl Fn(&str) -> Option<usize>,
    of_callees: bool,
) -> Vec<Events> {
    let lines = || text.lines();
    let columns = lines().find_map(|line| line.strip_prefix("events:"));
    let columns: Vec<&str> = columns.unwrap_or_default().split_whitespace().collect();
    let mut known = HashMap::<&str, Option<usize>>::new();
    let (mut now, mut is_callee) = (None, false);
    let mut sums = vec![vec![0u64; columns.len()]; groups];
    for line in lines() {
        let named = line.strip_prefix("fn=");
        if let Some(named) = named.or_else(|| line.strip_prefix("cfn=")) {
            let (id, name) = named.split_once(' ').unwrap_or((named, ""));
            let known = known.entry(id).or_insert_with(|| group(name));
            if line.starts_with("fn=") {
                now = *known;
            }
        } else if line.starts_with("calls=") {
            is_callee = true;
        } else if line.starts_with(|c: char| c.is_ascii_digit() || "+-*".contains(c)) {
            if let Some(sums) = now.and_then(|now| sums.get_mut(now))
                && is_callee == of_callees
            {
                let costs = line.split_whitespace().skip(1);
                let costs = costs.filter_map(|it| it.parse::<u64>().ok());
                sums.iter_mut().zip(costs).for_each(|(sum, it)| *sum += it);
            }
            is_callee = false;
        }
    }
    let events = |sums: &Vec<u64>| {
        CALLGRIND.map(|names| {
            let sum = |name: &&str| {
                let at = columns.iter().position(|column| column == name)?;
                sums.get(at).copied()
            };
            names.iter().map(sum).sum()
        })
    };
    sums.iter().map(events).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "events: Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw Bc Bcm Bi Bim\n\
        ob=(1) /usr/bin/volley\nfn=(7) main\n1 100\ncfn=(9) 0x0000000000007100\ncalls=1 0\n* 50\n\
        fn=(9)\n0 20 5 5 0 2 1 0 0 0 4 1\n+3 2\ncfn=(7)\ncalls=1 1\n* 1000\n- 1\n\
        fn=(8) 0x0000000000009000\n0 77\ncfn=(7)\ncalls=2 1\n+1 40 0 0 3 1 1\ncfn=(9)\ncalls=2 1\n+1 2\ntotals: 1\n";

    #[test]
    fn only_the_costs_of_the_wanted_functions_count() {
        let events = own(FILE, |name| name == "0x0000000000007100");
        assert_eq!(
            events,
            [Some(23), Some(3), Some(0), Some(4), Some(1), Some(0)]
        );
    }

    #[test]
    fn what_a_mark_calls_is_the_cost_of_its_node() {
        let events = callees(FILE, &["0x0000000000009000", "main", "absent"]);
        let [other, main, absent] = &events[..] else {
            panic!("not three");
        };
        assert_eq!(
            *other,
            [Some(42), Some(2), Some(0), Some(0), Some(0), Some(3)]
        );
        assert_eq!(main[0], Some(50));
        assert_eq!(absent[0], Some(0));
    }

    #[test]
    fn levels_that_can_be_simulated() {
        assert_eq!(level("auto"), "x86-64-v3");
        assert_eq!(level("x86-64-v4"), "x86-64-v3");
        assert_eq!(level("scalar"), "scalar");
    }
}
