//! Compares two runs point by point.

use crate::run::{CONTROL, Run};
use crate::stats::{self, Comparison, Verdict};
use std::fmt::Write;

/// Differences up to this fraction never count.
const FLOOR: f64 = 0.01;
/// Largest noise with which differences are reported: beyond it, the machine was too busy for any result.
const MOST_NOISE: f64 = 0.10;
/// The metric that is compared. Core cycles do not depend on the clock that the core had.
const METRIC: &str = "core_cycles";

/// One point of both runs.
#[derive(Clone, Debug)]
pub struct Line {
    /// Figure, curve and position.
    pub name: String,
    /// The comparison of its cycles.
    pub comparison: Comparison,
}

/// All points that both runs have, and the noise that was assumed.
#[derive(Clone, Debug)]
pub struct Compared {
    /// Points.
    pub lines: Vec<Line>,
    /// Noise: the larger drift of the control points of both runs, at least 1 %.
    pub noise: f64,
}

/// Compare the cycles of the points that both runs have.
pub fn compare(a: &Run, b: &Run) -> Compared {
    // Without control points nothing is known about the noise.
    let drift = |run: &Run| run.drift().unwrap_or(f64::INFINITY);
    let noise = FLOOR.max(drift(a)).max(drift(b));
    let mut lines = Vec::new();
    for first in a.records.iter().filter(|r| r.figure != CONTROL) {
        let same = |r: &&crate::run::Record| {
            (&r.figure, &r.series, r.x, &r.args)
                == (&first.figure, &first.series, first.x, &first.args)
        };
        let samples = b
            .records
            .iter()
            .find(same)
            .and_then(|second| Some((first.samples.get(METRIC)?, second.samples.get(METRIC)?)));
        let mut comparison = samples.and_then(|(a, b)| stats::compare(a, b, noise));
        if let Some(comparison) = comparison.as_mut().filter(|_| noise > MOST_NOISE) {
            comparison.verdict = Verdict::Unclear;
        }
        lines.extend(comparison.map(|comparison| Line {
            name: format!("{} {} {}", first.figure, first.series, first.label),
            comparison,
        }));
    }
    Compared { lines, noise }
}

impl Compared {
    /// Number of points with a result.
    pub fn count(&self, verdict: Verdict) -> usize {
        let of = |line: &&Line| line.comparison.verdict == verdict;
        self.lines.iter().filter(of).count()
    }

    /// A table and a summary.
    pub fn text(&self) -> String {
        let mut text = format!(
            "{:<36} {:>8} {:>17} {:>8}\n",
            "point", "cycles", "95 % interval", "result"
        );
        for line in &self.lines {
            let c = &line.comparison;
            let percent = |ratio: f64| format!("{:+.1} %", (ratio - 1.0) * 100.0);
            let result = match c.verdict {
                Verdict::Equal => "equal",
                Verdict::Larger => "slower",
                Verdict::Smaller => "faster",
                Verdict::Unclear => "unclear",
            };
            let (low, high) = (percent(c.interval.low), percent(c.interval.high));
            let _ = writeln!(
                text,
                "{:<36} {:>8} {low:>8} {high:>8} {result:>8}",
                line.name,
                percent(c.ratio)
            );
        }
        let _ = writeln!(
            text,
            "{} equal, {} unclear, {} slower, {} faster; differences up to {:.1} % are noise",
            self.count(Verdict::Equal),
            self.count(Verdict::Unclear),
            self.count(Verdict::Larger),
            self.count(Verdict::Smaller),
            self.noise * 100.0
        );
        if self.noise > MOST_NOISE {
            text +=
                "The machine was too busy for a comparison: repeat the runs without other load.\n";
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::tests::measured;

    #[test]
    fn the_same_code_is_equal_and_five_percent_more_cycles_are_slower() {
        let [a, b, c, d] = [0; 4].map(|_| tempfile::tempdir().unwrap());
        let first = measured(a.path(), 0.0);
        let same = compare(&first, &measured(b.path(), 0.0));
        assert_eq!(same.count(Verdict::Equal), same.lines.len());
        // The two control points and the generator's point are not compared.
        assert_eq!(same.lines.len(), first.records.len() - 3);
        let slower = compare(&first, &measured(c.path(), 0.05));
        assert_eq!(slower.count(Verdict::Larger), slower.lines.len());
        assert!(slower.text().contains("slower"));
        // The control point at the end has 30 % more cycles: another program used the core.
        let mut busy = measured(d.path(), 0.05);
        let end = busy.records.last_mut().unwrap();
        assert_eq!(end.figure, CONTROL);
        for cycles in end.samples.get_mut("cycles").unwrap() {
            *cycles *= 1.3;
        }
        let busy = compare(&first, &busy);
        assert_eq!(busy.count(Verdict::Unclear), busy.lines.len());
        assert!(busy.text().contains("too busy"));
    }
}
