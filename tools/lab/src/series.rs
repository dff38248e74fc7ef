//! The curves of a figure from the records of a run.

use crate::figure::Figure;
use crate::figure::shape::{Curve, Pair, Shape, follows};
use crate::run::Run;
use crate::stats::Summary;
use serde::Serialize;

/// One point of a curve.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cell {
    /// Position.
    pub x: f64,
    /// Label of the position.
    pub label: String,
    /// Summary of the samples.
    pub summary: Summary,
}

/// One curve.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Series {
    /// Name.
    pub name: String,
    /// Points in ascending order.
    pub cells: Vec<Cell>,
}

/// The measured curves of a figure, in the order of its points.
pub fn of(run: &Run, figure: &Figure) -> Vec<Series> {
    let mut all: Vec<Series> = Vec::new();
    // Positions of nodes: the order in which they appear first.
    let mut nodes: Vec<String> = Vec::new();
    for record in run.records.iter().filter(|r| r.figure == figure.name) {
        let mut cells = Vec::new();
        match figure.metric {
            prefix if figure.is_by_node() => {
                for (metric, samples) in &record.samples {
                    let Some(name) = metric.strip_prefix(prefix) else {
                        continue;
                    };
                    if !nodes.iter().any(|n| n == name) {
                        nodes.push(name.to_owned());
                    }
                    let x = nodes.iter().position(|n| n == name).unwrap_or(0) as f64;
                    cells.push((x, name.to_owned(), samples));
                }
            }
            metric => {
                let samples = record.samples.get(metric);
                cells.extend(samples.map(|s| (record.x, record.label.clone(), s)));
            }
        }
        let cells = cells.into_iter().filter_map(|(x, label, samples)| {
            let summary = Summary::of(samples)?;
            Some(Cell { x, label, summary })
        });
        match all.iter_mut().find(|s| s.name == record.series) {
            Some(series) => series.cells.extend(cells),
            None => all.push(Series {
                name: record.series.clone(),
                cells: cells.collect(),
            }),
        }
    }
    all.retain(|s| !s.cells.is_empty());
    for series in &mut all {
        series.cells.sort_by(|a, b| a.x.total_cmp(&b.x));
    }
    all
}

/// The cells at whose positions the figure has values to compare with.
fn pairs(figure: &Figure, series: &[Series]) -> Vec<Pair> {
    let pair = |value: &crate::figure::Value| {
        let one = series.iter().find(|s| s.name == value.series)?;
        let cell = one.cells.iter().find(|c| c.label == value.label)?;
        Some(Pair {
            series: one.name.clone(),
            label: cell.label.clone(),
            measured: cell.summary.median,
            value: value.y,
        })
    };
    figure.values.iter().filter_map(pair).collect()
}

/// Whether the shape of the curves agrees with the paper, and with the values to compare with.
pub fn judge(figure: &Figure, series: &[Series]) -> Shape {
    let curve = |s: &Series| Curve {
        series: s.name.clone(),
        points: s.cells.iter().map(|c| (c.x, c.summary.median)).collect(),
    };
    let curves: Vec<Curve> = series.iter().map(curve).collect();
    let shape = (figure.judge)(&curves);
    let Some(other) = follows(&pairs(figure, series)) else {
        return shape;
    };
    Shape {
        agrees: shape.agrees,
        why: format!("{} {}", shape.why, other.why),
    }
}
