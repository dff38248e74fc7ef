//! The measured points of a run in one file, `points.json`, for programs that write pages from a run.

use crate::environment::Environment;
use crate::error::LabError;
use crate::run::{CONTROL, Record, Run};
use crate::samples::{NODE, SHARE, TIME};
use crate::stats::Summary;
use serde::Serialize;
use std::collections::BTreeMap;

/// Name of the file.
pub const FILE: &str = "points.json";
/// Digits of a number.
const DIGITS: i32 = 5;

/// A quantity of a point.
#[derive(Serialize)]
struct Quantity {
    median: f64,
    min: f64,
    max: f64,
}

/// A point.
#[derive(Serialize)]
struct Point<'a> {
    figure: &'a str,
    series: &'a str,
    label: &'a str,
    args: &'a str,
    quantities: BTreeMap<String, Quantity>,
}

/// The file.
#[derive(Serialize)]
struct Points<'a> {
    level: &'static str,
    environment: &'a Environment,
    points: Vec<Point<'a>>,
}

/// A number with few digits, which are enough to print it.
fn short(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let places = DIGITS - 1 - value.abs().log10().floor() as i32;
    let scale = 10f64.powi(places);
    (value * scale).round() / scale
}

fn point(record: &Record) -> Point<'_> {
    let is_detail = |name: &str| [NODE, SHARE, TIME].iter().any(|p| name.starts_with(p));
    let quantity = |(name, samples): (&'_ String, &'_ Vec<f64>)| {
        let s = Summary::of(samples)?;
        let quantity = Quantity {
            median: short(s.median),
            min: short(s.min),
            max: short(s.max),
        };
        Some((name.clone(), quantity))
    };
    let all = record.samples.iter().filter(|(name, _)| !is_detail(name));
    Point {
        figure: &record.figure,
        series: &record.series,
        label: &record.label,
        args: &record.args,
        quantities: all.filter_map(quantity).collect(),
    }
}

/// The content of the file.
///
/// # Errors
/// If it cannot be written as JSON.
pub fn json(run: &Run) -> Result<String, LabError> {
    let measured = run.records.iter().filter(|r| r.error.is_none());
    let points = Points {
        level: run.plan.level.name(),
        environment: &run.plan.environment,
        points: measured
            .filter(|r| r.figure != CONTROL)
            .map(point)
            .collect(),
    };
    let text = serde_json::to_string(&points);
    // A line for each point, so that changes of a stored file are readable.
    let text = text.map(|text| text.replace("{\"figure\"", "\n{\"figure\"") + "\n");
    text.map_err(|e| LabError::file(&run.dir.join(FILE), e))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::tests::measured;

    #[test]
    fn numbers_have_five_digits() {
        let of = |x: f64| short(x).to_string();
        assert_eq!(
            [of(123_456.7), of(0.123_456), of(0.0)],
            ["123460", "0.12346", "0"]
        );
    }

    #[test]
    fn every_measured_point_is_in_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let run = measured(dir.path(), 0.0);
        let text = json(&run).unwrap();
        let all: serde_json::Value = serde_json::from_str(&text).unwrap();
        let points = all["points"].as_array().unwrap();
        assert_eq!(points.len(), run.records.len() - 3);
        assert_eq!(text.lines().count(), points.len() + 1);
        assert!(
            points[0]["quantities"]["cycles"]["median"]
                .as_f64()
                .unwrap()
                > 0.0
        );
        assert!(!text.contains("\"node ip4-input\""));
    }
}
