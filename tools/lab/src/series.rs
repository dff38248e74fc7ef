//! The curves of a figure from the records of a run.

use crate::figure::shape::{Curve, Median, Pair, Shape, follows};
use crate::figure::{Figure, Numbers, Value};
use crate::level::Level;
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
            prefix if figure.is_distribution() => {
                for (metric, samples) in &record.samples {
                    let part = metric.strip_prefix(prefix);
                    let Some(part) = part.and_then(|p| p.parse::<f64>().ok()) else {
                        continue;
                    };
                    cells.push((part, percent(part), samples));
                }
            }
            metric => {
                let samples = record.samples.get(metric);
                cells.extend(samples.map(|s| (record.x, record.label.clone(), s)));
            }
        }
        // Every part is a separate curve.
        for part in figure.parts {
            let summary = record.samples.get(*part).and_then(|s| Summary::of(s));
            let cell = summary.map(|summary| Cell {
                x: record.x,
                label: record.label.clone(),
                summary,
            });
            extend(&mut all, part, cell);
        }
        let cells = cells.into_iter().filter_map(|(x, label, samples)| {
            let summary = Summary::of(samples)?;
            Some(Cell { x, label, summary })
        });
        extend(&mut all, &record.series, cells);
    }
    all.retain(|s| !s.cells.is_empty());
    if !all.is_empty() {
        quote(&mut all, figure);
    }
    for series in &mut all {
        series.cells.sort_by(|a, b| a.x.total_cmp(&b.x));
    }
    all
}

/// A part of the packets: `50 %`, `99.9 %`.
fn percent(part: f64) -> String {
    format!("{} %", (part * 1000.0).round() / 10.0)
}

/// Add the numbers of others, behind the last position of the figure.
fn quote(all: &mut Vec<Series>, figure: &Figure) {
    if figure.quoted.values.is_empty() {
        return;
    }
    let points = (figure.points)(Level::Full);
    let last = points.iter().map(|p| p.x).fold(0.0, f64::max);
    for (at, value) in figure.quoted.values.iter().enumerate() {
        let cell = Cell {
            x: last + 1.0 + at as f64,
            label: value.label.to_owned(),
            summary: Summary::quoted(value.y),
        };
        extend(all, value.series, [cell]);
    }
}

/// Add cells to the curve of a name.
fn extend(all: &mut Vec<Series>, name: &str, cells: impl IntoIterator<Item = Cell>) {
    match all.iter_mut().find(|s| s.name == name) {
        Some(series) => series.cells.extend(cells),
        None => all.push(Series {
            name: name.to_owned(),
            cells: cells.into_iter().collect(),
        }),
    }
}

/// The cells at whose positions there are values.
fn pairs(numbers: &Numbers, series: &[Series]) -> Vec<Pair> {
    let pair = |value: &Value| {
        let one = series.iter().find(|s| s.name == value.series)?;
        let cell = one.cells.iter().find(|c| c.label == value.label)?;
        Some(Pair {
            series: one.name.clone(),
            label: cell.label.clone(),
            measured: cell.summary.median,
            value: value.y,
            is_limited: numbers.is_limited(value),
        })
    };
    numbers.values.iter().filter_map(pair).collect()
}

/// Whether the shape of the curves agrees with the paper, and with the values to compare with.
pub fn judge(figure: &Figure, series: &[Series]) -> Shape {
    let median = |cell: &Cell| Median {
        x: cell.x,
        label: cell.label.clone(),
        y: cell.summary.median,
    };
    let curve = |s: &Series| Curve {
        series: s.name.clone(),
        points: s.cells.iter().map(median).collect(),
    };
    let curves: Vec<Curve> = series.iter().map(curve).collect();
    let shape = (figure.judge)(&curves);
    let beside =
        |numbers: &Numbers, words: &str| follows(&pairs(numbers, series), numbers.least, words);
    let others = [
        (beside(&figure.published, "the published numbers"), true),
        (
            beside(&figure.compared, "the values to compare with"),
            false,
        ),
    ];
    // The paper's own numbers decide; values of another program are only compared with.
    let mut judged = shape;
    for (other, decides) in others {
        let Some(other) = other else { continue };
        judged.why = format!("{} {}", judged.why, other.why);
        if decides && other.agrees == Some(false) {
            judged.agrees = judged.agrees.map(|_| false);
        }
    }
    judged
}
