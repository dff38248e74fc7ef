//! Draws the figures as SVG, with `plotters`. Colours of text and axes come from the page, for light and dark.

use crate::error::LabError;
use crate::figure::{Figure, Scale, Value};
use crate::series::{Cell, Series};
use plotters::coord::Shift;
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

const WIDTH: u32 = 760;
/// Height of the axes with labels in one line below them.
const HEIGHT: i32 = 408;
/// Height below the plot, for the labels and the title of the axis.
const FOOT: i32 = 54;
/// Height of the title of the axis, with its distance from names that are written from bottom to top.
const TITLE: i32 = 36;
/// Width beside the plot.
const SIDES: i32 = 100;
/// Width of a letter of a name below the axis.
const LETTER: i32 = 7;
/// Height of the first row with the names of the curves.
const LEGEND: i32 = 28;
/// Height of a further row.
const ROW: i32 = 20;
/// Part of the distance between two names that their bars take.
const BARS: f64 = 0.76;
/// Colours that are distinguishable without full colour vision (Okabe and Ito), on light and dark ground.
const COLOURS: [RGBColor; 11] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(117, 112, 179),
    RGBColor(136, 136, 136),
    RGBColor(153, 34, 68),
    RGBColor(61, 107, 58),
    RGBColor(150, 111, 51),
];

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Chart<'a, 'b, X> = ChartContext<'b, SVGBackend<'a>, Cartesian2d<X, RangedCoordf64>>;

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
    // Values at positions that were not measured are not drawn.
    let values = figure.compared.values.iter().chain(figure.published.values);
    let values = values.filter(|v| is_drawn(v, series)).map(|v| v.y);
    let tops = cells.iter().map(|c| c.summary.max).chain(values);
    let top = tops.fold(0.0, f64::max);
    let ends = cells.iter().fold((f64::INFINITY, 0.0_f64), |(a, b), c| {
        (a.min(c.x), b.max(c.x))
    });
    if cells.is_empty() {
        return Err(bad("nothing was measured".to_owned()));
    }
    // All medians may be 0: misses of a cache that the code fits.
    let top = if top > 0.0 { top } else { 1.0 };
    let mut text = String::new();
    let entries = entries(figure, series);
    let head = legend_places(&entries).last().map_or(0, |(_, y)| *y) + LEGEND / 2;
    let foot = foot(&names(figure, series));
    // The legend and the names have as much place as they need: the plot stays as large.
    let height = head + HEIGHT + foot - FOOT;
    let size = (WIDTH, height.unsigned_abs());
    let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
    let (head, body) = area.split_vertically(head);
    let drawn = legend(&head, &entries).and_then(|()| match figure.x.scale {
        _ if figure.is_distribution() => distribution(&body, figure, series),
        Scale::Log2 => {
            let x = (ends.0 * 0.9..ends.1 * 1.1).log_scale().base(2.0);
            draw(&body, figure, series, x, top)
        }
        Scale::Linear => {
            let rim = 0.03 * (ends.1 - ends.0).max(1.0);
            let x = (ends.0 - rim).max(0.0)..ends.1 + rim;
            draw::<RangedCoordf64, _>(&body, figure, series, x, top)
        }
        Scale::Names => {
            let x = ends.0 - 0.5..ends.1 + 0.5;
            draw::<RangedCoordf64, _>(&body, figure, series, x, top)
        }
    });
    drawn.map_err(bad)?;
    area.present().map_err(|e| bad(e.to_string()))?;
    drop((head, body, area));
    Ok(text)
}

/// Whether a value is at a position that was measured; others are not drawn.
fn is_drawn(value: &Value, series: &[Series]) -> bool {
    let of = series.iter().filter(|s| s.name == value.series);
    of.flat_map(|s| &s.cells).any(|c| c.label == value.label)
}

/// The colour of a curve: those of the second round are lighter.
fn colour(number: usize) -> RGBColor {
    let RGBColor(red, green, blue) = COLOURS[number % COLOURS.len()];
    let lighter = |part: u8| part + (255 - part) / 2;
    match number / COLOURS.len() {
        0 => RGBColor(red, green, blue),
        _ => RGBColor(lighter(red), lighter(green), lighter(blue)),
    }
}

fn words(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Marks of the legend.
enum Mark {
    Bar(RGBColor),
    Ring,
    Cross,
}

/// Names of the curves and of the values, with their marks.
fn entries(figure: &Figure, series: &[Series]) -> Vec<(String, Mark)> {
    let curves = series.iter().enumerate();
    let mut all: Vec<(String, Mark)> = curves
        .map(|(at, one)| (one.name.clone(), Mark::Bar(colour(at))))
        .collect();
    let are_drawn = |values: &[Value]| values.iter().any(|value| is_drawn(value, series));
    if are_drawn(figure.published.values) {
        all.push(("published".to_owned(), Mark::Ring));
    }
    if are_drawn(figure.compared.values) {
        all.push(("to compare with".to_owned(), Mark::Cross));
    }
    all
}

/// Place of each name, from left to right in as many rows as they need.
fn legend_places(entries: &[(String, Mark)]) -> Vec<(i32, i32)> {
    let (left, mut x, mut y) = (60, 60, LEGEND / 2 + 4);
    let place = |(name, _): &(String, Mark)| {
        let width = 50 + 8 * name.chars().count() as i32;
        if x > left && x + width > WIDTH as i32 {
            (x, y) = (left, y + ROW);
        }
        let at = (x, y);
        x += width;
        at
    };
    entries.iter().map(place).collect()
}

/// Names of the curves in rows above the plot, where they hide nothing.
fn legend(area: &Area<'_>, entries: &[(String, Mark)]) -> Result<(), String> {
    let font = ("sans-serif", 15).into_font();
    for ((name, mark), (x, y)) in entries.iter().zip(legend_places(entries)) {
        let drawn = match mark {
            Mark::Bar(colour) => {
                let corners = [(x, y - 5), (x + 16, y + 5)];
                area.draw(&Rectangle::new(corners, colour.filled()))
            }
            Mark::Ring => area.draw(&Circle::new((x + 8, y), 5, BLACK.stroke_width(2))),
            Mark::Cross => area.draw(&Cross::new((x + 8, y), 5, BLACK.stroke_width(2))),
        };
        drawn.map_err(words)?;
        let text = Text::new(name.clone(), (x + 22, y - 6), font.clone());
        area.draw(&text).map_err(words)?;
    }
    Ok(())
}

fn draw<X, R>(
    area: &Area<'_>,
    figure: &Figure,
    series: &[Series],
    x: R,
    top: f64,
) -> Result<(), String>
where
    X: Ranged<ValueType = f64> + ValueFormatter<f64>,
    R: AsRangedCoord<CoordDescType = X, Value = f64>,
{
    let names = names(figure, series);
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .x_label_area_size(foot(&names))
        .y_label_area_size(64)
        .build_cartesian_2d(x, 0.0..top * 1.06)
        .map_err(words)?;
    let ticks = match figure.x.scale {
        Scale::Names => 0,
        _ => 12,
    };
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .x_desc(figure.x.title)
        .y_desc(figure.y.title)
        .axis_desc_style(("sans-serif", 15))
        .label_style(("sans-serif", 13))
        .x_labels(ticks)
        .x_label_formatter(&number)
        .y_label_formatter(&number)
        .draw()
        .map_err(words)?;
    let base = area.get_base_pixel();
    for (x, name) in &names {
        let (x, y) = chart.backend_coord(&(*x, 0.0));
        draw_name(area, name, (x - base.0, y - base.1 + 8), !fit(&names))?;
    }
    for (at, one) in series.iter().enumerate() {
        let colour = colour(at);
        let width = BARS / series.len() as f64;
        let shift = match figure.x.scale {
            Scale::Names => (at as f64 + 0.5) * width - BARS / 2.0,
            _ => 0.0,
        };
        match figure.x.scale {
            Scale::Names => bars(&mut chart, one, colour, shift, width * 0.92)?,
            _ => line(&mut chart, one, colour)?,
        }
        ranges(&mut chart, one, shift)?;
        marks(&mut chart, figure, one, (shift, colour))?;
    }
    Ok(())
}

/// Curves of the parts of the packets by their times, which have a logarithmic scale.
fn distribution(area: &Area<'_>, figure: &Figure, series: &[Series]) -> Result<(), String> {
    let times = || {
        series
            .iter()
            .flat_map(|s| &s.cells)
            .map(|c| c.summary.median)
    };
    let least = times().filter(|t| *t > 0.0).min_by(f64::total_cmp);
    // The logarithmic scale has no 0: times that all are 0 leave the plot empty.
    let least = least.unwrap_or(1.0);
    let most = times().fold(least, f64::max);
    let across = (least * 0.8..most * 1.25).log_scale();
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .x_label_area_size(FOOT)
        .y_label_area_size(64)
        .build_cartesian_2d(across, 0.0..1.02)
        .map_err(words)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_desc(figure.y.title)
        .y_desc(figure.x.title)
        .axis_desc_style(("sans-serif", 15))
        .label_style(("sans-serif", 13))
        .x_label_formatter(&number)
        .y_label_formatter(&number)
        .draw()
        .map_err(words)?;
    for (at, one) in series.iter().enumerate() {
        let colour = colour(at);
        let cells = one.cells.iter().filter(|c| c.summary.median > 0.0);
        let places = cells.map(|c| (c.summary.median, c.x));
        let line = LineSeries::new(places.clone(), colour.stroke_width(2));
        chart.draw_series(line).map_err(words)?;
        let dots = places.map(|at| Circle::new(at, 3, colour.filled()));
        chart.draw_series(dots).map_err(words)?;
    }
    Ok(())
}

/// Published values as rings, values to compare with as crosses.
fn marks<X: Ranged<ValueType = f64>>(
    chart: &mut Chart<'_, '_, X>,
    figure: &Figure,
    one: &Series,
    (shift, colour): (f64, RGBColor),
) -> Result<(), String> {
    // A mark of the colour of its bar would be invisible on it.
    let style = match figure.x.scale {
        Scale::Names => BLACK,
        _ => colour,
    };
    let style = style.stroke_width(2);
    let ring = |at| Circle::new(at, 6, style);
    chart
        .draw_series(places(figure.published.values, one, shift).map(ring))
        .map_err(words)?;
    let cross = |at| Cross::new(at, 5, style);
    chart
        .draw_series(places(figure.compared.values, one, shift).map(cross))
        .map_err(words)?;
    Ok(())
}

fn bars<X: Ranged<ValueType = f64>>(
    chart: &mut Chart<'_, '_, X>,
    one: &Series,
    colour: RGBColor,
    shift: f64,
    width: f64,
) -> Result<(), String> {
    let bar = |c: &Cell| {
        let (left, right) = (c.x + shift - width / 2.0, c.x + shift + width / 2.0);
        Rectangle::new([(left, 0.0), (right, c.summary.median)], colour.filled())
    };
    let all = one.cells.iter().map(bar);
    chart.draw_series(all).map_err(words)?;
    Ok(())
}

fn line<X: Ranged<ValueType = f64>>(
    chart: &mut Chart<'_, '_, X>,
    one: &Series,
    colour: RGBColor,
) -> Result<(), String> {
    let middle = one.cells.iter().map(|c| (c.x, c.summary.median));
    let line = LineSeries::new(middle.clone(), colour.stroke_width(2));
    chart.draw_series(line).map_err(words)?;
    let dots = middle.map(|at| Circle::new(at, 4, colour.filled()));
    chart.draw_series(dots).map_err(words)?;
    Ok(())
}

/// Lines from the smallest to the largest sample.
fn ranges<X: Ranged<ValueType = f64>>(
    chart: &mut Chart<'_, '_, X>,
    one: &Series,
    shift: f64,
) -> Result<(), String> {
    let range = |c: &Cell| {
        let x = c.x + shift;
        PathElement::new([(x, c.summary.min), (x, c.summary.max)], BLACK)
    };
    let all = one.cells.iter().filter(|c| c.summary.count > 1).map(range);
    chart.draw_series(all).map_err(words)?;
    Ok(())
}

/// Where values of a curve are drawn: at the positions of measured cells.
fn places<'a>(
    values: &'a [Value],
    one: &'a Series,
    shift: f64,
) -> impl Iterator<Item = (f64, f64)> + 'a {
    values.iter().filter_map(move |value| {
        let cell = one.cells.iter().find(|c| c.label == value.label)?;
        (value.series == one.name).then_some((cell.x + shift, value.y))
    })
}

/// Labels of a scale: without zeros at the end.
fn number(x: &f64) -> String {
    ((x * 1e3).round() / 1e3).to_string()
}

/// Positions and names of an axis with names.
fn names(figure: &Figure, series: &[Series]) -> Vec<(f64, String)> {
    let mut names: Vec<(f64, String)> = Vec::new();
    if figure.x.scale == Scale::Names {
        for cell in series.iter().flat_map(|s| &s.cells) {
            if !names.iter().any(|(x, _)| *x == cell.x) {
                names.push((cell.x, cell.label.clone()));
            }
        }
    }
    names
}

/// Width of the longest name.
fn longest(names: &[(f64, String)]) -> i32 {
    let letters = names.iter().map(|(_, name)| name.chars().count() as i32);
    letters.max().unwrap_or(0) * LETTER
}

/// Whether the names fit beside each other.
fn fit(names: &[(f64, String)]) -> bool {
    longest(names) * names.len() as i32 <= WIDTH as i32 - SIDES
}

/// Height below the plot: names that do not fit beside each other are written from bottom to top.
fn foot(names: &[(f64, String)]) -> i32 {
    match fit(names) {
        true => FOOT,
        false => longest(names) + TITLE,
    }
}

/// A name below the axis, from bottom to top if it is upright.
fn draw_name(area: &Area<'_>, name: &str, at: (i32, i32), upright: bool) -> Result<(), String> {
    let font = ("sans-serif", 13).into_font();
    let style = match upright {
        true => TextStyle::from(font.transform(FontTransform::Rotate270))
            .pos(Pos::new(HPos::Right, VPos::Center)),
        false => TextStyle::from(font).pos(Pos::new(HPos::Center, VPos::Top)),
    };
    area.draw_text(name, &style, at).map_err(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_take_several_rows_and_stay_on_the_plot() {
        let names = ["virtio-user, both ways"; 5].map(|n| (n.to_owned(), Mark::Ring));
        let places = legend_places(&names);
        let width = 50 + 8 * 22;
        assert!(
            places.iter().all(|(x, _)| x + width <= WIDTH as i32),
            "{places:?}"
        );
        let rows: std::collections::BTreeSet<i32> = places.iter().map(|p| p.1).collect();
        assert_eq!(rows.len(), 2, "{places:?}");
    }

    #[test]
    fn names_below_the_axis_have_room() {
        let of = |names: &[&str]| -> Vec<(f64, String)> {
            names.iter().map(|name| (0.0, (*name).to_owned())).collect()
        };
        let few = of(&["64", "256", "1024"]);
        assert!(fit(&few) && foot(&few) == FOOT);
        let long = "ip4, full table, packet by packet";
        let names = of(&[long; 4]);
        assert!(!fit(&names));
        assert!(
            foot(&names) >= LETTER * long.len() as i32 + 20,
            "{}",
            foot(&names)
        );
        assert_eq!(foot(&[]), FOOT);
    }

    #[test]
    fn curves_have_their_own_colours() {
        let all: std::collections::BTreeSet<(u8, u8, u8)> = (0..2 * COLOURS.len())
            .map(colour)
            .map(|RGBColor(red, green, blue)| (red, green, blue))
            .collect();
        assert_eq!(all.len(), 2 * COLOURS.len());
    }

    #[test]
    fn medians_of_0_are_drawn() {
        let series = |figure: &Figure, x: f64| Series {
            name: (figure.points)(crate::level::Level::Quick)[0]
                .series
                .to_owned(),
            cells: vec![Cell {
                x,
                label: "9".to_owned(),
                summary: crate::stats::Summary::of(&[0.0, 0.0]).unwrap(),
            }],
        };
        for name in ["ppb-5-misses", "switch-rtt-10", "vpp-9"] {
            let figure = crate::figure::find(name).unwrap();
            let plot = svg(figure, &[series(figure, 0.5)]).unwrap();
            assert!(plot.contains("</svg>"), "{plot}");
            assert!(svg(figure, &[]).is_err());
        }
    }
}
