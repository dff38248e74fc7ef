//! Draws the figures as SVG, with `plotters`. Colours of text and axes come from the page, for light and dark.

use crate::error::LabError;
use crate::figure::Figure;
use crate::series::{Cell, Series};
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

const SIZE: (u32, u32) = (720, 400);
/// Colours that are distinguishable without full colour vision (Okabe and Ito), on light and dark ground.
const COLOURS: [RGBColor; 6] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
];

/// The plot of a figure: medians with their ranges, and the values to compare with as crosses.
///
/// # Errors
/// If there is nothing to draw, or the library fails.
pub fn svg(figure: &Figure, series: &[Series]) -> Result<String, LabError> {
    let bad = |why: String| LabError::Plot {
        figure: figure.name.to_owned(),
        why,
    };
    let cells: Vec<&Cell> = series.iter().flat_map(|s| &s.cells).collect();
    let values = figure.values.iter().map(|v| v.y);
    let top = cells
        .iter()
        .map(|c| c.summary.max)
        .chain(values)
        .fold(0.0, f64::max);
    let ends = cells.iter().fold((f64::INFINITY, 0.0_f64), |(a, b), c| {
        (a.min(c.x), b.max(c.x))
    });
    if cells.is_empty() || top <= 0.0 {
        return Err(bad("nothing was measured".to_owned()));
    }
    let mut text = String::new();
    let drawn = match figure.x.log {
        true => {
            let x = (ends.0 * 0.9..ends.1 * 1.1).log_scale().base(2.0);
            draw(&mut text, figure, series, x, top)
        }
        false => {
            draw::<RangedCoordf64, _>(&mut text, figure, series, ends.0 - 0.5..ends.1 + 0.5, top)
        }
    };
    drawn.map_err(bad)?;
    Ok(text)
}

fn draw<X, R>(
    text: &mut String,
    figure: &Figure,
    series: &[Series],
    x: R,
    top: f64,
) -> Result<(), String>
where
    X: Ranged<ValueType = f64> + ValueFormatter<f64>,
    R: AsRangedCoord<CoordDescType = X, Value = f64>,
{
    let words = |e: &dyn std::fmt::Display| e.to_string();
    let area = SVGBackend::with_string(text, SIZE).into_drawing_area();
    let mut chart = ChartBuilder::on(&area)
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(56)
        .build_cartesian_2d(x, 0.0..top * 1.08)
        .map_err(|e| words(&e))?;
    let label = |x: &f64| label(figure, series, *x);
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .x_desc(figure.x.title)
        .y_desc(figure.y.title)
        .x_label_formatter(&label)
        .draw()
        .map_err(|e| words(&e))?;
    for (one, colour) in series.iter().zip(COLOURS.iter().cycle()) {
        let middle = one.cells.iter().map(|c| (c.x, c.summary.median));
        let line = LineSeries::new(middle.clone(), colour.stroke_width(2));
        let line = chart.draw_series(line).map_err(|e| words(&e))?;
        let colour = *colour;
        line.label(one.name.as_str())
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
        let dots = middle.map(|at| Circle::new(at, 3, colour.filled()));
        chart.draw_series(dots).map_err(|e| words(&e))?;
        let ranges = one.cells.iter().map(|c| {
            PathElement::new(
                [(c.x, c.summary.min), (c.x, c.summary.max)],
                colour.stroke_width(1),
            )
        });
        chart.draw_series(ranges).map_err(|e| words(&e))?;
        let values = figure.values.iter().filter(|v| v.series == one.name);
        let crosses = values.map(|v| Cross::new((v.x, v.y), 5, colour.stroke_width(1)));
        chart.draw_series(crosses).map_err(|e| words(&e))?;
    }
    chart
        .configure_series_labels()
        .border_style(TRANSPARENT)
        .position(SeriesLabelPosition::UpperLeft)
        .draw()
        .map_err(|e| words(&e))?;
    drop(chart);
    area.present().map_err(|e| words(&e))
}

/// Label of a position: of the points, on an axis without a scale.
fn label(figure: &Figure, series: &[Series], x: f64) -> String {
    if figure.x.log {
        return x.round().to_string();
    }
    let mut cells = series.iter().flat_map(|s| &s.cells);
    let found = cells.find(|c| (c.x - x).abs() < 1e-6);
    found.map_or(String::new(), |c| c.label.clone())
}
