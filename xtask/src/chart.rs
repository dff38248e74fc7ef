//! A line chart as SVG: both axes logarithmic, one line per series, values at the points of the last series.

use std::fmt::Write;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 440.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 110.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 56.0;
const COLORS: [&str; 6] = [
    "#1b6ca8", "#c8553d", "#3a7d44", "#7a4fa3", "#b58900", "#444444",
];

/// A named line through points.
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Points (x, y) from left to right.
    pub points: Vec<(f64, f64)>,
}

/// Texts around the picture.
pub struct Titles<'a> {
    /// Title of the chart.
    pub title: &'a str,
    /// Title of the horizontal axis.
    pub x: &'a str,
    /// Title of the vertical axis.
    pub y: &'a str,
}

struct Axis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Axis {
    fn new(values: impl Iterator<Item = f64> + Clone, from: f64, to: f64) -> Self {
        let low = values.clone().fold(f64::INFINITY, f64::min);
        let high = values.fold(0.0, f64::max);
        // A single value still needs an axis with some length.
        let high = if high > low { high } else { low * 2.0 };
        Self {
            low,
            high,
            from,
            to,
        }
    }

    fn place(&self, value: f64) -> f64 {
        let part = (value / self.low).ln() / (self.high / self.low).ln();
        self.from + part * (self.to - self.from)
    }

    /// Round values (1, 2, 5 times a power of ten) inside the axis.
    fn ticks(&self) -> Vec<f64> {
        let first = self.low.log10().floor() as i32;
        let last = self.high.log10().ceil() as i32;
        let all =
            (first..=last).flat_map(|power| [1.0, 2.0, 5.0].map(|step| step * 10f64.powi(power)));
        all.filter(|value| *value >= self.low && *value <= self.high)
            .collect()
    }
}

/// The picture. Points must be above 0; a series without points is left out.
pub fn svg(titles: &Titles<'_>, series: &[Series]) -> String {
    let points = || series.iter().flat_map(|one| one.points.iter());
    let x = Axis::new(points().map(|point| point.0), LEFT, WIDTH - RIGHT);
    let y = Axis::new(points().map(|point| point.1), HEIGHT - BOTTOM, TOP);
    let mut out = String::new();
    frame(&mut out, titles);
    if points().next().is_some() {
        grid(&mut out, &x, &y, series);
        for (number, one) in series
            .iter()
            .enumerate()
            .filter(|(_, one)| !one.points.is_empty())
        {
            line(&mut out, &x, &y, one, COLORS[number % COLORS.len()]);
        }
    }
    out.push_str("</svg>\n");
    out
}

fn frame(out: &mut String, titles: &Titles<'_>) {
    let middle = (LEFT + WIDTH - RIGHT) / 2.0;
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n\
         <text x=\"{middle}\" y=\"24\" text-anchor=\"middle\" font-size=\"15\">{}</text>\n\
         <text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n\
         <text transform=\"translate(18 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
        escape(titles.title),
        HEIGHT - 14.0,
        escape(titles.x),
        (TOP + HEIGHT - BOTTOM) / 2.0,
        escape(titles.y),
    );
}

fn grid(out: &mut String, x: &Axis, y: &Axis, series: &[Series]) {
    let mut columns: Vec<f64> = series
        .iter()
        .flat_map(|one| one.points.iter().map(|point| point.0))
        .collect();
    columns.sort_by(f64::total_cmp);
    columns.dedup();
    let bottom = HEIGHT - BOTTOM;
    for value in columns {
        let at = x.place(value);
        let _ = writeln!(out, "<path d=\"M{at:.1} {TOP}V{bottom}\" stroke=\"#eee\"/>");
        let _ = writeln!(
            out,
            "<text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{value}</text>",
            bottom + 16.0
        );
    }
    for value in y.ticks() {
        let at = y.place(value);
        let _ = writeln!(
            out,
            "<path d=\"M{LEFT} {at:.1}H{}\" stroke=\"#ddd\"/>",
            WIDTH - RIGHT
        );
        let _ = writeln!(
            out,
            "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{value}</text>",
            LEFT - 6.0,
            at + 4.0
        );
    }
}

fn line(out: &mut String, x: &Axis, y: &Axis, one: &Series, color: &str) {
    let places: Vec<(f64, f64)> = one
        .points
        .iter()
        .map(|point| (x.place(point.0), y.place(point.1)))
        .collect();
    let path: Vec<String> = places
        .iter()
        .map(|(x, y)| format!("{x:.1},{y:.1}"))
        .collect();
    let _ = writeln!(
        out,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"2\"/>",
        path.join(" ")
    );
    for (x, y) in &places {
        let _ = writeln!(
            out,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{color}\"/>"
        );
    }
    if let (Some(place), Some(point)) = (places.last(), one.points.last()) {
        let text = format!("{} {:.1}", escape(&one.name), point.1);
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" fill=\"{color}\">{text}</text>",
            place.0 + 8.0,
            place.1 + 4.0
        );
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TITLES: Titles<'_> = Titles {
        title: "a < b",
        x: "size",
        y: "cycles",
    };

    #[test]
    fn points_lie_where_they_should() {
        let axis = Axis::new([4.0, 1024.0].into_iter(), 0.0, 80.0);
        assert_eq!(
            (axis.place(4.0), axis.place(1024.0), axis.place(64.0)),
            (0.0, 80.0, 40.0)
        );
        assert_eq!(
            Axis::new([3.0, 40.0].into_iter(), 0.0, 1.0).ticks(),
            [5.0, 10.0, 20.0]
        );
    }

    #[test]
    fn the_picture_has_a_line_per_series() {
        let series = |name: &str| Series {
            name: name.into(),
            points: vec![(4.0, 150.0), (256.0, 16.5)],
        };
        let picture = svg(
            &TITLES,
            &[
                series("ip4"),
                series("mix"),
                Series {
                    name: "none".into(),
                    points: vec![],
                },
            ],
        );
        assert_eq!(picture.matches("<polyline").count(), 2);
        assert!(
            picture.contains("a &lt; b")
                && picture.contains(">ip4 16.5<")
                && !picture.contains("NaN")
        );
        assert!(picture.starts_with("<svg") && picture.ends_with("</svg>\n"));
    }

    #[test]
    fn nothing_and_one_point_are_no_trouble() {
        assert!(!svg(&TITLES, &[]).contains("NaN"));
        let one = Series {
            name: "x".into(),
            points: vec![(4.0, 7.0)],
        };
        assert!(!svg(&TITLES, &[one]).contains("NaN"));
    }
}
