//! What a figure consists of.

use super::shape::{Curve, Shape};
use crate::level::Level;
use crate::meter::{self, Task};
use serde::Serialize;

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

/// Numbers of others.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Numbers {
    /// The numbers.
    pub values: &'static [Value],
    /// Where they are from; empty without numbers.
    pub source: &'static str,
    /// The rate of the line, by curve: values near it have no direction.
    pub lines: &'static [(&'static str, f64)],
    /// Measured medians below this number are all the same.
    pub least: f64,
}

/// Part of the rate of a line from which a value is that of the line.
const NEAR: f64 = 0.95;

impl Numbers {
    /// Whether a value is that of the line of its curve.
    pub fn is_limited(&self, value: &Value) -> bool {
        let of = |(series, line): &(&str, f64)| *series == value.series && value.y >= NEAR * line;
        self.lines.iter().any(of)
    }
}

/// Source of a fact whose numbers this tree does not have.
pub const NOT_TRANSCRIBED: &str = "The paper's numbers are not transcribed.";
/// Source of a fact whose numbers were searched.
pub const NOT_FOUND: &str = "The paper's numbers were not found in a form that can be cited.";

/// No numbers.
pub const NONE: Numbers = Numbers {
    values: &[],
    source: "",
    lines: &[],
    least: 0.0,
};

/// The values of a short run, or all of them.
pub fn choose<T>(level: Level, few: &'static [T], all: &'static [T]) -> &'static [T] {
    match level.is_full() {
        false => few,
        true => all,
    }
}

/// A value of a curve at a position.
pub const fn value(series: &'static str, label: &'static str, y: f64) -> Value {
    Value { series, label, y }
}

/// A linear axis.
pub const fn linear(title: &'static str) -> Axis {
    Axis {
        title,
        scale: Scale::Linear,
    }
}

/// One point to measure.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Curve.
    pub series: &'static str,
    /// Position on the axis.
    pub x: f64,
    /// Label of the position, for axes without a scale.
    pub label: String,
    /// Arguments of the measurement ([`meter::Task`]), without length and repetitions.
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
    /// quantity for each node, [`meter::TIME`] of one for each part of the packets.
    pub metric: &'static str,
    /// Quantities that are the curves, where every point gives several; else the points name their curves.
    pub parts: &'static [&'static str],
    /// What the paper shows.
    pub fact: Fact,
    /// Numbers that were published.
    pub published: Numbers,
    /// Numbers of another program to compare with.
    pub compared: Numbers,
    /// How the figure is measured here, and how this differs from the paper.
    pub method: &'static str,
    /// Numbers of others at positions of their own, drawn beside the measured ones.
    pub quoted: Numbers,
    /// The points; fewer in a short run. [`Figure::points_of`] has those of a run.
    pub points: fn(level: Level) -> Vec<Point>,
    /// Judges the shape of the measured curves.
    pub judge: fn(&[Curve]) -> Shape,
}

/// The paper of figures that no paper has.
pub const NO_PAPER: &str = "Volley";

impl Figure {
    /// What the paper shows, with the source.
    pub fn shown(&self) -> String {
        let Fact { text, source } = self.fact;
        let text = format!("{text} {source}");
        match self.paper {
            NO_PAPER => text.trim_end().to_owned(),
            _ => format!("The paper: {}", text.trim_end()),
        }
    }

    /// Where the figure is in the paper: `figure 5`, `table 1`.
    pub fn place(&self) -> String {
        match self.number.starts_with("table") {
            true => self.number.to_owned(),
            false => format!("figure {}", self.number),
        }
    }

    /// The points of a run. A smoke run has the first point, and the last one of the same curve, unless callgrind counts its events:
    /// that takes some ten times as long as a measurement.
    pub fn points_of(&self, level: Level) -> Vec<Point> {
        let mut points = (self.points)(level);
        if level != Level::Smoke {
            return points;
        }
        let Some(series) = points.first().map(|point| point.series) else {
            return points;
        };
        points.retain(|point| point.series == series);
        if points.iter().any(|point| Task::is_simulated(&point.args)) {
            points.truncate(1);
        }
        let last = points.len() - 1;
        let ends = points.into_iter().enumerate();
        ends.filter(|(at, _)| [0, last].contains(at))
            .map(|(_, point)| point)
            .collect()
    }

    /// Whether each point gives a distribution of times, which is a curve: the plot has the times across, and the parts of the packets upwards.
    pub fn is_distribution(&self) -> bool {
        self.metric == meter::TIME
    }

    /// Whether each point gives a value for each node.
    pub fn is_by_node(&self) -> bool {
        [meter::NODE, meter::SHARE].contains(&self.metric)
    }
}
