//! The figures: paper, axes, facts of the paper, how they are measured here, and how the shape is judged.

mod moonroute;
mod others;
pub mod shape;
mod vpp;

use crate::meter;
pub use others::{Other, PEERS, Peer, SKIPPED};
use serde::Serialize;
use shape::{Curve, Shape};

/// One axis.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Axis {
    /// Quantity and unit.
    pub title: &'static str,
    /// Scale of the positions.
    pub scale: Scale,
}

/// Scale of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// Numbers.
    Linear,
    /// Numbers, logarithmic with base 2.
    Log2,
    /// Names without an order: bars instead of lines.
    Names,
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
    /// Label of the position.
    pub label: &'static str,
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
    /// Quantity of the samples: a name that [`crate::meter`] defines; [`meter::NODE`] and [`meter::SHARE`] are prefixes of one
    /// quantity for each node.
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

impl Figure {
    /// Where the figure is in the paper: `figure 5`, `table 1`.
    pub fn place(&self) -> String {
        match self.number.starts_with("table") {
            true => self.number.to_owned(),
            false => format!("figure {}", self.number),
        }
    }

    /// Whether each point gives a value for each node.
    pub fn is_by_node(&self) -> bool {
        [meter::NODE, meter::SHARE].contains(&self.metric)
    }
}

/// All figures that can be measured, in the order of the papers.
pub const FIGURES: [&Figure; 9] = [
    &vpp::OFFERED,
    &vpp::VECTOR_SIZE,
    &vpp::NODES,
    &vpp::STYLE,
    &vpp::DESTINATIONS,
    &moonroute::CORES,
    &moonroute::TABLE,
    &moonroute::BATCH,
    &moonroute::MODULES,
];

/// The figure of a name.
pub fn find(name: &str) -> Option<&'static Figure> {
    FIGURES.into_iter().find(|figure| figure.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_to_compare_with_are_at_positions_of_both_lengths() {
        for figure in FIGURES {
            for (value, quick) in figure.values.iter().flat_map(|v| [(v, true), (v, false)]) {
                let points = (figure.points)(quick);
                let mut of = points.iter().filter(|p| p.series == value.series);
                let found = match figure.is_by_node() {
                    true => of.next().is_some(),
                    false => of.any(|p| p.label == value.label),
                };
                assert!(found, "{} {} {}", figure.name, value.series, value.label);
            }
        }
    }

    #[test]
    fn every_figure_has_points_that_the_benchmark_accepts() {
        for figure in FIGURES {
            assert_eq!(find(figure.name).unwrap().title, figure.title);
            for quick in [true, false] {
                let points = (figure.points)(quick);
                assert!(!points.is_empty(), "{}", figure.name);
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
        let mut names: Vec<_> = FIGURES.iter().map(|f| f.name).collect();
        names.extend(SKIPPED.iter().map(|o| o.name));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), FIGURES.len() + SKIPPED.len());
        assert!(find("none").is_none());
    }
}
