//! Judges the shape of a curve.

use crate::stats::shown;
use serde::Serialize;

/// A measured median.
#[derive(Clone, Debug, PartialEq)]
pub struct Median {
    /// Position.
    pub x: f64,
    /// Label of the position.
    pub label: String,
    /// Value.
    pub y: f64,
}

/// A measured curve: medians by position, in ascending order of the positions.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Name.
    pub series: String,
    /// Medians.
    pub points: Vec<Median>,
}

#[cfg(test)]
impl Curve {
    /// A curve at the positions 0, 1, 2, ...
    pub(crate) fn of(series: &str, ys: &[f64]) -> Curve {
        let points: Vec<(f64, f64)> = ys.iter().enumerate().map(|(x, y)| (x as f64, *y)).collect();
        Curve::at_positions(series, &points)
    }

    /// A curve at these positions, which are the labels.
    pub(crate) fn at_positions(series: &str, points: &[(f64, f64)]) -> Curve {
        let median = |(x, y): &(f64, f64)| Median {
            x: *x,
            label: x.to_string(),
            y: *y,
        };
        Curve {
            series: series.to_owned(),
            points: points.iter().map(median).collect(),
        }
    }
}

/// Whether the measured shape agrees with that of the paper, in a sentence.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Shape {
    /// Whether it agrees; none if it is not judged.
    pub agrees: Option<bool>,
    /// The sentence.
    pub why: String,
}

impl Curve {
    /// The median at a position.
    pub fn at(&self, x: f64) -> Option<f64> {
        let found = self.points.iter().find(|p| p.x == x);
        found.map(|p| p.y)
    }

    /// The first and the last median; none with fewer than two points, or if the first is 0.
    fn ends(&self) -> Option<(&Median, &Median)> {
        match &self.points[..] {
            [first, .., last] if first.y > 0.0 => Some((first, last)),
            _ => None,
        }
    }

    /// Last median divided by the first.
    pub fn gain(&self) -> Option<f64> {
        self.ends().map(|(first, last)| last.y / first.y)
    }

    /// Whether no median is below the largest before it by more than a fraction.
    pub fn is_rising(&self, tolerance: f64) -> bool {
        let mut top = 0.0_f64;
        self.points.iter().all(|p| {
            let rises = p.y >= top * (1.0 - tolerance);
            top = top.max(p.y);
            rises
        })
    }

    /// First point from which on all medians are at least this fraction of the largest.
    pub fn knee(&self, fraction: f64) -> Option<&Median> {
        let top = self.points.iter().map(|p| p.y).max_by(f64::total_cmp)?;
        let flat = self.points.iter().rev();
        flat.take_while(|p| p.y >= fraction * top).last()
    }
}

/// The curve of a name.
pub fn named<'a>(curves: &'a [Curve], name: &str) -> Option<&'a Curve> {
    curves.iter().find(|curve| curve.series == name)
}

/// A shape that cannot be judged.
pub fn unknown() -> Shape {
    Shape {
        agrees: None,
        why: "Too few points were measured.".to_owned(),
    }
}

/// Whether every curve with two points or more is so, with a text for each; no verdict without such curves.
fn judged(
    curves: &[Curve],
    of: impl Fn(&Curve, (&Median, &Median), f64) -> (bool, String),
) -> Shape {
    let each = curves.iter().filter_map(|curve| {
        let (first, last) = curve.ends()?;
        Some(of(curve, (first, last), last.y / first.y))
    });
    let (agree, texts): (Vec<bool>, Vec<String>) = each.unzip();
    match texts.is_empty() {
        true if curves.iter().any(|curve| curve.points.len() > 1) => Shape {
            agrees: None,
            why: "The curves begin at 0, so no multiple can be judged.".to_owned(),
        },
        true => unknown(),
        false => Shape {
            agrees: Some(agree.into_iter().all(|agrees| agrees)),
            why: texts.join("; ") + ".",
        },
    }
}

/// Fraction of the maximum from which a curve counts as flat.
const FLAT: f64 = 0.9;

/// Every curve rises by at least a factor, and is flat from at most a position on.
pub fn rises_to_a_plateau(curves: &[Curve], factor: f64, knee_by: f64) -> Shape {
    judged(curves, |curve, (first, last), gain| {
        let rises = curve.is_rising(1.0 - FLAT);
        let knee = curve.knee(FLAT);
        let agrees = rises && gain >= factor && knee.is_some_and(|knee| knee.x <= knee_by);
        let how = match rises {
            true => "rises",
            false => "does not rise steadily",
        };
        let flat = match knee {
            Some(knee) => format!(
                "with at least {:.0} % of its maximum from {} on",
                FLAT * 100.0,
                knee.label
            ),
            None => "and falls at the end".to_owned(),
        };
        let text = format!(
            "{} {how} from {} to {}, by a factor of {gain:.1}, {flat}",
            curve.series, first.label, last.label
        );
        (agrees, text)
    })
}

/// Every curve ends at most at this fraction of its first value.
pub fn falls_to(curves: &[Curve], fraction: f64) -> Shape {
    judged(curves, |curve, (first, last), gain| {
        let text = format!(
            "{} at {}: {:.0} % of its value at {}",
            curve.series,
            last.label,
            gain * 100.0,
            first.label
        );
        (gain <= fraction, text)
    })
}

/// Every curve rises, and ends at least at this multiple of its first value.
pub fn rises_by(curves: &[Curve], factor: f64) -> Shape {
    judged(curves, |curve, (first, last), gain| {
        let rises = curve.is_rising(1.0 - FLAT);
        let how = match rises {
            true => "",
            false => ", and does not rise steadily",
        };
        let text = format!(
            "{} at {}: {gain:.1} times its value at {}{how}",
            curve.series, last.label, first.label
        );
        (gain >= factor && rises, text)
    })
}

/// A measured median beside a value to compare with, at one position of a curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// Curve.
    pub series: String,
    /// Label of the position.
    pub label: String,
    /// Measured median.
    pub measured: f64,
    /// Value to compare with.
    pub value: f64,
    /// Whether the value is that of a line, which could not become larger.
    pub is_limited: bool,
}

/// Changes up to this fraction count as none.
const SAME: f64 = 0.1;
/// Changes from this fraction on count in any case.
const CHANGED: f64 = 0.3;

/// Whether two changes, each a ratio of neighbouring values, have the same direction.
fn is_same_direction(a: f64, b: f64) -> bool {
    let is_flat = |ratio: f64| (ratio - 1.0).abs() <= SAME;
    let is_changed = |ratio: f64| (ratio - 1.0).abs() >= CHANGED;
    match (is_flat(a), is_flat(b)) {
        (true, true) => true,
        (true, false) => !is_changed(b),
        (false, true) => !is_changed(a),
        (false, false) => (a > 1.0) == (b > 1.0),
    }
}

/// Whether the measured curves rise and fall where the values to compare with do, which the sentence calls `values`. None if there are
/// no two of a curve. Medians below `least` are all the same, and two values of a line have no direction.
pub fn follows(pairs: &[Pair], least: f64, values: &str) -> Option<Shape> {
    let (mut differ, mut limited) = (Vec::new(), false);
    let (mut neighbours, mut steps) = (0, 0);
    for step in pairs.windows(2).filter(|s| s[0].series == s[1].series) {
        let [a, b] = step else { continue };
        neighbours += 1;
        let is_nothing = a.measured.max(b.measured) < least || a.measured <= 0.0 || a.value <= 0.0;
        limited |= a.is_limited && b.is_limited;
        if is_nothing || a.is_limited && b.is_limited {
            continue;
        }
        steps += 1;
        if !is_same_direction(b.measured / a.measured, b.value / a.value) {
            differ.push(format!("{} from {} to {}", a.series, a.label, b.label));
        }
    }
    if neighbours == 0 {
        return None;
    }
    let ratios = || pairs.iter().map(|p| p.measured / p.value);
    let (low, high) = (
        ratios().min_by(f64::total_cmp)?,
        ratios().max_by(f64::total_cmp)?,
    );
    let (low, high) = (shown(low), shown(high));
    let levels = format!("The medians are {low} to {high} times {values}");
    let mut why = match (steps, differ.is_empty()) {
        (0, _) => format!("{levels}."),
        (_, true) => format!("{levels}, and rise and fall with them."),
        (_, false) => format!("{levels}; the directions differ for {}.", differ.join(", ")),
    };
    if limited {
        why += &format!(" Where {values} are the rate of a line, the direction is not compared.");
    }
    Some(Shape {
        agrees: (steps > 0).then_some(differ.is_empty()),
        why,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(values: &[f64]) -> Curve {
        let points = values.iter().enumerate();
        let points: Vec<(f64, f64)> = points.map(|(i, y)| (f64::from(1u32 << i), *y)).collect();
        Curve::at_positions("c", &points)
    }

    #[test]
    fn a_plateau_is_distinguished_from_a_dip_and_a_late_knee() {
        let good = [curve(&[1.0, 4.0, 9.8, 10.0, 9.9])];
        assert_eq!(good[0].knee(0.95).unwrap().x, 4.0);
        let shape = rises_to_a_plateau(&good, 3.0, 8.0);
        assert_eq!(shape.agrees, Some(true));
        assert_eq!(
            shape.why,
            "c rises from 1 to 16, by a factor of 9.9, with at least 90 % of its maximum from 4 on."
        );
        assert_eq!(rises_to_a_plateau(&good, 3.0, 2.0).agrees, Some(false));
        assert_eq!(rises_to_a_plateau(&good, 30.0, 8.0).agrees, Some(false));
        let end = rises_to_a_plateau(&[curve(&[1.0, 4.0, 10.0, 5.0])], 3.0, 8.0);
        assert_eq!(end.agrees, Some(false));
        assert!(end.why.contains("falls at the end"), "{}", end.why);
        let dip = [curve(&[1.0, 6.0, 3.0, 10.0])];
        assert_eq!(rises_to_a_plateau(&dip, 3.0, 8.0).agrees, Some(false));
    }

    #[test]
    fn falling_curves() {
        let shape = falls_to(&[curve(&[10.0, 8.0])], 0.9);
        assert_eq!(shape.agrees, Some(true));
        assert_eq!(shape.why, "c at 2: 80 % of its value at 1.");
        assert_eq!(falls_to(&[curve(&[10.0, 9.9])], 0.9).agrees, Some(false));
    }

    #[test]
    fn rising_curves() {
        assert_eq!(rises_by(&[curve(&[1.0, 2.0, 4.0])], 3.0).agrees, Some(true));
        assert_eq!(rises_by(&[curve(&[1.0, 2.0])], 3.0).agrees, Some(false));
        let dip = rises_by(&[curve(&[1.0, 9.0, 4.0])], 3.0);
        assert_eq!(dip.agrees, Some(false));
        assert!(dip.why.contains("does not rise steadily"), "{}", dip.why);
        assert_eq!(rises_by(&[], 3.0).agrees, None);
    }

    #[test]
    fn curves_of_one_point_decide_nothing() {
        let mut one = curve(&[1.0]);
        one.series = "a curve of one point".to_owned();
        let shape = falls_to(&[curve(&[10.0, 5.0]), one.clone()], 0.9);
        assert_eq!(shape.agrees, Some(true));
        assert!(!shape.why.contains("one point"), "{}", shape.why);
        assert_eq!(falls_to(&[one.clone()], 0.9).agrees, None);
        assert_eq!(falls_to(&[], 0.9).agrees, None);
        assert_eq!(rises_to_a_plateau(&[one], 3.0, 8.0).agrees, None);
        // Nothing can be a multiple of 0.
        let zero = rises_by(&[curve(&[0.0, 5.0])], 3.0);
        assert_eq!(zero.agrees, None);
        assert!(zero.why.contains("begin at 0"), "{}", zero.why);
    }

    fn pairs(all: &[(f64, f64)]) -> Vec<Pair> {
        let pair = |(at, (measured, value)): (usize, &(f64, f64))| Pair {
            series: "c".to_owned(),
            label: at.to_string(),
            measured: *measured,
            value: *value,
            is_limited: *value == 10.0,
        };
        all.iter().enumerate().map(pair).collect()
    }

    fn follows_values(all: &[(f64, f64)]) -> Option<Shape> {
        follows(&pairs(all), 0.05, "the values to compare with")
    }

    #[test]
    fn directions_are_compared_and_not_levels() {
        let shape = follows_values(&[(10.0, 5.0), (20.0, 9.0), (21.0, 9.2)]).unwrap();
        assert_eq!(shape.agrees, Some(true));
        assert!(shape.why.contains("2.00 to 2.28 times"), "{}", shape.why);
        // The values rise to the fivefold, the medians stay.
        let shape = follows_values(&[(10.0, 5.0), (10.5, 25.0)]).unwrap();
        assert_eq!(shape.agrees, Some(false));
        assert!(shape.why.contains("c from 0 to 1"), "{}", shape.why);
        let shape = follows_values(&[(10.0, 5.0), (8.0, 6.0)]).unwrap();
        assert_eq!(shape.agrees, Some(false));
        assert_eq!(follows_values(&[(1.0, 1.0)]), None);
        assert_eq!(follows_values(&[]), None);
    }

    #[test]
    fn a_line_and_values_near_zero_have_no_direction() {
        // The published device had no faster line.
        let shape = follows_values(&[(5.0, 10.0), (20.0, 10.0)]).unwrap();
        assert_eq!(shape.agrees, None);
        assert!(shape.why.contains("the rate of a line"), "{}", shape.why);
        // Up to the line is a direction.
        let shape = follows_values(&[(5.0, 6.0), (4.0, 10.0), (20.0, 10.0)]).unwrap();
        assert_eq!(shape.agrees, Some(false));
        assert!(shape.why.contains("c from 0 to 1."), "{}", shape.why);
        let shape = follows_values(&[(0.01, 0.5), (0.02, 0.1)]).unwrap();
        assert_eq!(shape.agrees, None);
        assert_eq!(
            follows_values(&[(0.0, 0.5), (3.0, 0.6)]).unwrap().agrees,
            None
        );
    }
}
