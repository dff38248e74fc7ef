//! `cargo xtask contended`: finds cache lines for which workers contend, by single-stepping.
//!
//! A daemon with traffic on several workers is stopped in steady state, and its workers are stepped one instruction at a
//! time in random order (ptrace). Each instruction is decoded before it runs, so every load and store is known with its
//! worker, address and call stack. The kernel's accesses for a worker and those of the control thread are not seen.

mod code;
mod decode;
mod lines;
mod meant;
mod report;
mod stepper;
#[cfg(test)]
mod tests;
mod traffic;

use lines::Verdict;
use meant::MEANT;
use std::path::{Path, PathBuf};
use std::time::Duration;
use stepper::Stepper;
use traffic::{Daemon, SCENARIOS, Scenario};
use xtask::home::Home;
use xtask::report::{Fail, Outcome, Pass};

/// Options of the command line.
#[derive(Default)]
pub struct Options {
    /// Names of scenarios; all if empty.
    pub only: Vec<String>,
    /// Total number of instructions of all workers in each scenario.
    pub steps: Option<u64>,
    /// The binary to examine instead of the release build with line information.
    pub binary: Option<PathBuf>,
    /// Whether to write the page.
    pub update: bool,
}

/// Default number of instructions in each scenario.
const STEPS: u64 = 2_500_000;
/// Maximum duration of a scenario.
const LIMIT: Duration = Duration::from_secs(150);
/// Time for caches and tables to fill before the examination.
const WARM: Duration = Duration::from_millis(1500);

/// Results of one scenario.
pub(crate) struct Seen {
    pub name: &'static str,
    pub what: &'static str,
    pub workers: usize,
    pub steps: u64,
    pub packets: u64,
    pub touched: usize,
    pub unknown: u64,
    /// For each entry of the list: number of lines, and of moves between caches.
    pub meant: Vec<(usize, u64)>,
    /// The same numbers for lines that were handed off in order.
    pub handed: (usize, u64),
    /// Descriptions of contended lines that are not in the list.
    pub contended: Vec<String>,
}

/// Examines the scenarios.
pub fn run(home: &Home, options: &Options) -> Outcome {
    let binary = match &options.binary {
        Some(binary) => Ok(binary.clone()),
        None => home.volley_with_lines(),
    };
    let binary = match binary {
        Ok(binary) => binary,
        Err(error) => return Fail(error),
    };
    let known = |name: &&String| !SCENARIOS.iter().any(|s| s.name == name.as_str());
    if let Some(name) = options.only.iter().find(known) {
        let names: Vec<&str> = SCENARIOS.iter().map(|s| s.name).collect();
        return Fail(format!(
            "no scenario `{name}`; there are {}",
            names.join(", ")
        ));
    }
    let wanted =
        |s: &&Scenario| options.only.is_empty() || options.only.iter().any(|n| n == s.name);
    let steps = options.steps.unwrap_or(STEPS);
    let mut all = Vec::new();
    for scenario in SCENARIOS.iter().filter(wanted) {
        match look(home, &binary, scenario, steps) {
            Ok(seen) => {
                print!("{}", report::text(&seen));
                all.push(seen);
            }
            Err(reason) => return Fail(format!("{}: {reason}", scenario.name)),
        }
    }
    if options.update
        && let Err(reason) = report::write(home, &all)
    {
        return Fail(reason);
    }
    judge(&all)
}

/// Minimum number of packets for a valid result.
const ENOUGH: u64 = 200;

fn judge(all: &[Seen]) -> Outcome {
    let steps: u64 = all.iter().map(|s| s.steps).sum();
    let bad: usize = all.iter().map(|s| s.contended.len()).sum();
    let names: Vec<&str> = all.iter().map(|s| s.name).collect();
    let text = format!(
        "{bad} contended lines that are not meant, 0 wanted; {} ({:.1} million instructions)",
        names.join(", "),
        steps as f64 / 1e6
    );
    if bad == 0 { Pass(text) } else { Fail(text) }
}

fn look(home: &Home, binary: &Path, scenario: &Scenario, steps: u64) -> Result<Seen, String> {
    let daemon = Daemon::start(home, binary, scenario)?;
    std::thread::sleep(WARM);
    let mut stepper = Stepper::attach(daemon.id(), "volley-w", &MEANT)?;
    let before = daemon.packets()?;
    stepper.run(steps, LIMIT)?;
    let packets = daemon.packets()?.saturating_sub(before);
    if packets < ENOUGH {
        return Err(format!(
            "{packets} packets moved while the workers were stepped, {ENOUGH} wanted: give it more --steps, or the release build"
        ));
    }
    Ok(seen(scenario.name, scenario.what, packets, &mut stepper))
}

/// Classifies every line.
fn seen(name: &'static str, what: &'static str, packets: u64, stepper: &mut Stepper<'_>) -> Seen {
    let counts = stepper.steps();
    let mut seen = Seen {
        name,
        what,
        workers: counts.len(),
        steps: counts.iter().map(|(_, steps)| steps).sum(),
        packets,
        touched: stepper.lines.lines.len(),
        unknown: stepper.unknown,
        meant: vec![(0, 0); MEANT.len()],
        handed: (0, 0),
        contended: Vec::new(),
    };
    let mut numbers: Vec<u64> = stepper.lines.lines.keys().copied().collect();
    numbers.sort_unstable();
    for number in numbers {
        let line = &stepper.lines.lines[&number];
        let count = match line.verdict(&stepper.places) {
            Verdict::Own => continue,
            Verdict::Handed => &mut seen.handed,
            Verdict::Meant(entry) if entry < seen.meant.len() => &mut seen.meant[entry],
            _ => {
                let text = report::line(number, stepper);
                seen.contended.push(text);
                continue;
            }
        };
        count.0 += 1;
        count.1 += u64::from(line.transfers);
    }
    seen
}
