//! The figures: paper, axes, facts of the paper, how they are measured here, and how the shape is judged.

mod moonroute;
pub mod shape;
mod vpp;

use serde::Serialize;
use shape::{Curve, Shape};

/// One axis.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Axis {
    /// Quantity and unit.
    pub title: &'static str,
    /// Whether the axis is logarithmic (base 2).
    pub log: bool,
}

/// A fact that the figure of the paper shows, with its source.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Fact {
    /// The fact.
    pub text: &'static str,
    /// Where it is from.
    pub source: &'static str,
}

/// A value to compare with.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Value {
    /// Curve of the figure.
    pub series: &'static str,
    /// Position.
    pub x: f64,
    /// Value.
    pub y: f64,
}

/// One point to measure: a run of `volley-bench`.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Curve.
    pub series: &'static str,
    /// Position on the axis.
    pub x: f64,
    /// Label of the position, for axes without a scale.
    pub label: String,
    /// Arguments of the benchmark, without length and repetitions.
    pub args: String,
}

/// A figure of a paper.
pub struct Figure {
    /// Name on the command line.
    pub name: &'static str,
    /// The paper.
    pub paper: &'static str,
    /// Number of the figure in the paper.
    pub number: &'static str,
    /// Title.
    pub title: &'static str,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// Quantity of the samples: a name that [`crate::meter`] defines.
    pub metric: &'static str,
    /// What the paper shows.
    pub fact: Fact,
    /// Values to compare with, and their source.
    pub values: &'static [Value],
    /// Source of the values.
    pub values_source: &'static str,
    /// How the figure is measured here, and how this differs from the paper.
    pub method: &'static str,
    /// The points; fewer in a quick run.
    pub points: fn(quick: bool) -> Vec<Point>,
    /// Judges the shape of the measured curves.
    pub judge: fn(&[Curve]) -> Shape,
}

/// All figures, in the order of the papers.
pub const FIGURES: [&Figure; 6] = [
    &vpp::VECTOR_SIZE,
    &vpp::NODES,
    &vpp::STYLE,
    &vpp::DESTINATIONS,
    &moonroute::TABLE,
    &moonroute::BATCH,
];

/// The figure of a name.
pub fn find(name: &str) -> Option<&'static Figure> {
    FIGURES.into_iter().find(|figure| figure.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meter;

    #[test]
    fn every_figure_has_points_that_the_benchmark_accepts() {
        for figure in FIGURES {
            assert_eq!(find(figure.name).unwrap().title, figure.title);
            for quick in [true, false] {
                let points = (figure.points)(quick);
                assert!(points.len() >= 2, "{}", figure.name);
                for point in &points {
                    let args = meter::parse(&point.args);
                    assert!(args.is_ok(), "{}: {}", figure.name, point.args);
                }
                let mut keys: Vec<_> = points.iter().map(|p| (p.series, p.x as u64)).collect();
                keys.sort_unstable();
                keys.dedup();
                assert_eq!(keys.len(), points.len(), "{}", figure.name);
            }
            assert!((figure.points)(true).len() <= (figure.points)(false).len());
            assert!(figure.values.is_empty() || !figure.values_source.is_empty());
        }
        assert!(find("none").is_none());
    }
}
