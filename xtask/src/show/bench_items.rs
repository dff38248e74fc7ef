//! Items measured by `volley bench`.

use super::{Sitting, at_least, at_most};
use crate::bench::VECTOR_SIZES;
use crate::report::Outcome;

pub fn cycles(sitting: &Sitting<'_>, args: &str, bar: f64) -> Result<String, String> {
    let run = sitting.bench(args)?;
    let cost = run.cycles_per_packet;
    let more = format!(
        " ({:.1} to {:.1}; {:.1} Mpps, {} prefixes, {})",
        cost.min, cost.max, run.mpps.median, run.prefixes, run.isa
    );
    let add = |text: String| text + &more;
    at_most(cost.median, bar, "cycles per packet")
        .map(add)
        .map_err(add)
}

/// The design's single-packet path, where the vector holds one packet: the smallest vector with a source of `maxframe 1`.
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

/// Reported, not judged: it passes when every point was measured and verified.
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
