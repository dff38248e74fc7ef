//! Click's IP router for two interfaces, in memory: TSC cycles and instructions per packet, beside FastClick's.

use super::click::instructions;
use crate::bench_items::{BAR_SPEED, at_bar_speed};
use crate::{Sitting, at_most};
use xtask::home::Home;
use xtask::report::Outcome;
use xtask::run::{Program, exists};

/// FastClick's TSC cycles per packet with everything included, IPv4 with one route (the baselines page), divided by 3.
const BAR: f64 = 101.0 / 3.0;
/// Runs, of which the median counts.
const RUNS: usize = 5;

/// Runs `element_cost router`: all nodes but the source are judged, at the core speed of the bar.
pub fn judge(sitting: &Sitting<'_>) -> Outcome {
    Outcome::of(show(sitting))
}

fn show(sitting: &Sitting<'_>) -> Result<String, String> {
    let home = sitting.home;
    let example = super::click::example(home)?;
    let mut runs = Vec::new();
    for _ in 0..RUNS {
        let ran = Program::new(home, &example).arg("router").require()?;
        runs.push(figures(&ran.stdout)?);
    }
    runs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (graph, all) = runs[RUNS / 2];
    let speed = sitting.bench("--scenario ip4")?.core_cycles_per_tsc.median;
    let counted = match exists("valgrind") {
        true => format!("{:.0} instructions per packet", counted(home)?),
        false => "instructions not counted, valgrind is not installed".to_owned(),
    };
    let text = format!(
        " at {BAR_SPEED} core cycles per TSC, all nodes but the source; measured {graph:.1} ({:.1} to {:.1}) at {speed:.2}, {all:.1} with the source; {counted} with the source; FastClick 101 with its source",
        runs[0].0,
        runs[RUNS - 1].0
    );
    let add = |verdict: String| verdict + &text;
    at_most(at_bar_speed(graph, speed), BAR, "cycles per packet")
        .map(add)
        .map_err(add)
}

/// `router PACKETS CYCLES SOURCE`: cycles per packet without the source, and with it.
fn figures(line: &str) -> Result<(f64, f64), String> {
    let words = line.trim().strip_prefix("router ").unwrap_or_default();
    let numbers: Result<Vec<f64>, _> = words.split(' ').map(str::parse).collect();
    match numbers.as_deref() {
        Ok([packets, all, source]) if *packets > 0.0 => {
            Ok(((all - source) / packets, all / packets))
        }
        _ => Err(format!("`{line}` is no line of element_cost")),
    }
}

/// Instructions of the first dump, which has one call of `measured`.
fn counted(home: &Home) -> Result<f64, String> {
    let file = home.target.join("callgrind.click-speed");
    super::click::counting(home, &file)
        .arg(super::click::example(home)?)
        .args(["router", "x86-64-v3"])
        .limit_seconds(900)
        .require()?;
    let packets = super::click::MEASURED_PACKETS;
    Ok(instructions(&file, 1)? / packets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_source_is_taken_off() {
        assert_eq!(figures("router 100 3000 500\n"), Ok((25.0, 30.0)));
        assert!(figures("router 0 1 1").is_err() && figures("router 1").is_err());
    }
}
