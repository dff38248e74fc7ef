//! Items measured by `volley bench`.

use super::{Sitting, at_least, at_most};
use xtask::bench::VECTOR_SIZES;
use xtask::report::Outcome;

/// Core cycles per TSC cycle of the machine that the bars were set on (the baselines page).
pub const BAR_SPEED: f64 = 1.41;

/// The bars are TSC cycles on a core that ran [`BAR_SPEED`]. This core's speed is measured between the repetitions: the
/// figure converted to the bar's speed is judged, and the measured figure is shown too. A faster core must be faster in
/// TSC cycles.
pub fn cycles(sitting: &Sitting<'_>, args: &str, bar: f64) -> Result<String, String> {
    let run = sitting.bench(args)?;
    let (cost, speed) = (run.cycles_per_packet, run.core_cycles_per_tsc.median);
    let more = format!(
        " at {BAR_SPEED} core cycles per TSC; measured {:.1} ({:.1} to {:.1}) at {speed:.2}, {:.1} with the {:.0} of 100 slices in which another program used the core; {:.1} Mpps, {} prefixes, {}",
        cost.median,
        cost.min,
        cost.max,
        run.cycles_per_packet_disturbed.median,
        100.0 - run.undisturbed * 100.0,
        run.mpps.median,
        run.prefixes,
        run.isa
    );
    let add = |text: String| text + &more;
    at_most(at_bar_speed(cost.median, speed), bar, "cycles per packet")
        .map(add)
        .map_err(add)
}

pub fn at_bar_speed(cycles: f64, speed: f64) -> f64 {
    cycles * speed / BAR_SPEED
}

/// The design's single-packet path, if the vector has one packet: the smallest vector with a source of `maxframe 1`.
pub fn one_packet_per_vector(sitting: &Sitting<'_>) -> Outcome {
    Outcome::of(cycles(sitting, "--scenario ip4 --maxframe 1", 250.0))
}

pub fn graph_over_rtc(sitting: &Sitting<'_>, args: &str, bar: f64) -> Result<String, String> {
    let graph = sitting.bench(args)?.mpps;
    let rtc = sitting.bench(&format!("{args} --style rtc"))?.mpps;
    let more = format!(" ({:.2} against {:.2} Mpps)", graph.median, rtc.median);
    let add = |text: String| text + &more;
    at_least(graph.median / rtc.median, bar, "times")
        .map(add)
        .map_err(add)
}

pub fn scalar_over_best(sitting: &Sitting<'_>, args: &str, bar: f64) -> Result<String, String> {
    let best = sitting.bench(args)?;
    let scalar = sitting.bench(&format!("{args} --isa scalar"))?;
    let [above, below] = [&scalar, &best].map(|run| run.cycles_per_packet);
    let more = format!(
        " (scalar {:.1}, {:.1} to {:.1} cycles per packet; {} {:.1}, {:.1} to {:.1})",
        above.median, above.min, above.max, best.isa, below.median, below.min, below.max
    );
    let add = |text: String| text + &more;
    at_most(above.median / below.median, bar, "times")
        .map(add)
        .map_err(add)
}

/// Not judged by its figures: it passes if every point was measured and verified.
pub fn curve(sitting: &Sitting<'_>) -> Outcome {
    let mut text = Vec::new();
    for scenario in ["xc", "ip4", "mix"] {
        let mut points = Vec::new();
        for size in VECTOR_SIZES {
            match sitting.bench(&at_size(scenario, size)) {
                Ok(run) => points.push(format!("{:.0}", run.cycles_per_packet.median)),
                Err(reason) => return Outcome::Fail(reason),
            }
        }
        text.push(format!("{scenario} {}", points.join(" ")));
    }
    Outcome::Pass(format!("cycles at {VECTOR_SIZES:?}: {}", text.join("; ")))
}

pub fn gain(sitting: &Sitting<'_>) -> Outcome {
    let at = |size| {
        sitting
            .bench(&at_size("ip4", size))
            .map(|run| run.cycles_per_packet.median)
    };
    let result = at(4).and_then(|small| at(256).map(|large| small / large));
    Outcome::of(result.and_then(|gain| at_least(gain, 2.0, "times")))
}

fn at_size(scenario: &str, size: u32) -> String {
    format!("--scenario {scenario} --vector-size {size}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_core_is_not_held_against_the_code_and_a_fast_one_not_for_it() {
        assert!((at_bar_speed(40.0, BAR_SPEED) - 40.0).abs() < 1e-9);
        assert!((at_bar_speed(40.0, BAR_SPEED / 2.0) - 20.0).abs() < 1e-9);
        assert!((at_bar_speed(40.0, BAR_SPEED * 2.0) - 80.0).abs() < 1e-9);
    }
}
