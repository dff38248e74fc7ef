//! Points that `volley-lab` measures, for items of other lists.

use super::Sitting;
use super::lab;
use std::collections::BTreeMap;
use xtask::measure::Spread;
use xtask::run::{Program, exists};

/// DPDK's test program, with which drivers are compared.
pub const TESTPMD: &str = "dpdk-testpmd";

/// Samples by metric.
pub struct Point(BTreeMap<String, Vec<f64>>);

impl Point {
    /// Lowest, median and highest sample of a metric.
    pub fn spread(&self, metric: &str) -> Result<Spread, String> {
        let samples = self.0.get(metric).filter(|all| !all.is_empty());
        let mut all = samples
            .ok_or_else(|| format!("the point has no {metric}"))?
            .clone();
        all.sort_by(f64::total_cmp);
        Ok(Spread {
            min: all[0],
            median: all[all.len() / 2],
            max: all[all.len() - 1],
        })
    }

    /// The median of a metric.
    pub fn median(&self, metric: &str) -> Result<f64, String> {
        self.spread(metric).map(|spread| spread.median)
    }

    /// Names of the metrics that begin with a text, without it, and their medians.
    pub fn medians_of(&self, prefix: &str) -> Vec<(String, f64)> {
        let names = self.0.keys().filter_map(|name| name.strip_prefix(prefix));
        let median = |name: &str| {
            Some((
                name.to_owned(),
                self.median(&format!("{prefix}{name}")).ok()?,
            ))
        };
        names.filter_map(median).collect()
    }
}

/// `volley-lab point ARGS`.
pub fn point(sitting: &Sitting<'_>, args: &str) -> Result<Point, String> {
    let program = lab::program(sitting.home)?;
    let seconds = format!("{:.1}", 0.3 * sitting.seconds as f64);
    let run = Program::new(sitting.home, &program)
        .args(["point", "--seconds", &seconds, "--repetitions", "7"])
        .args(args.split_whitespace())
        .limit_seconds(120);
    let output = run.require()?.stdout;
    let samples = serde_json::from_str(output.trim());
    samples
        .map(Point)
        .map_err(|e| format!("`volley-lab point {args}`: {e}"))
}

/// The reason why points with a program cannot be measured.
pub fn hindrance(program: &str) -> Option<String> {
    (!exists(program)).then(|| format!("{program} is not installed (Debian package dpdk)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_summarized() {
        let samples = [
            ("node a-input", vec![3.0, 1.0, 2.0]),
            ("node b", vec![4.0]),
            ("none", Vec::new()),
        ];
        let samples = samples.map(|(name, all)| (name.to_owned(), all));
        let point = Point(samples.into());
        let spread = point.spread("node a-input").unwrap();
        assert_eq!((spread.min, spread.median, spread.max), (1.0, 2.0, 3.0));
        assert!(point.spread("none").is_err() && point.spread("more").is_err());
        let nodes = [("a-input".to_owned(), 2.0), ("b".to_owned(), 4.0)];
        assert_eq!(point.medians_of("node "), nodes);
    }
}
