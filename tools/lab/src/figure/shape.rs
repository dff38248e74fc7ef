//! Judges the shape of a curve.

use serde::Serialize;

/// A measured curve: medians by position, in ascending order of the positions.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Name.
    pub series: String,
    /// Positions and medians.
    pub points: Vec<(f64, f64)>,
}

#[cfg(test)]
impl Curve {
    /// A curve at the positions 0, 1, 2, ...
    pub(crate) fn of(series: &str, ys: &[f64]) -> Curve {
        Curve {
            series: series.to_owned(),
            points: ys.iter().enumerate().map(|(x, y)| (x as f64, *y)).collect(),
        }
    }
}

/// Whether the measured shape agrees with that of the paper, in a sentence.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Shape {
    /// Whether it agrees; none if too little was measured.
    pub agrees: Option<bool>,
    /// The sentence.
    pub why: String,
}

impl Curve {
    /// The first and the last median; none with fewer than two points.
    fn ends(&self) -> Option<(f64, f64)> {
        match &self.points[..] {
            [first, .., last] => Some((first.1, last.1)),
            _ => None,
        }
    }

    /// Last median divided by the first.
    pub fn gain(&self) -> Option<f64> {
        self.ends().map(|(first, last)| last / first)
    }

    /// Whether no median is below the largest before it by more than a fraction.
    pub fn is_rising(&self, tolerance: f64) -> bool {
        let mut top = 0.0_f64;
        self.points.iter().all(|(_, y)| {
            let rises = *y >= top * (1.0 - tolerance);
            top = top.max(*y);
            rises
        })
    }

    /// Smallest position from which on all medians are at least this fraction of the largest.
    pub fn knee(&self, fraction: f64) -> Option<f64> {
        let top = self.points.iter().map(|p| p.1).max_by(f64::total_cmp)?;
        let flat = self.points.iter().rev();
        flat.take_while(|p| p.1 >= fraction * top)
            .last()
            .map(|p| p.0)
    }
}

/// A shape that cannot be judged.
pub fn unknown() -> Shape {
    Shape {
        agrees: None,
        why: "Too few points were measured.".to_owned(),
    }
}

/// The verdict, with a text for each curve; no verdict without curves.
fn judged(agrees: bool, texts: &[String]) -> Shape {
    match texts {
        [] => unknown(),
        texts => Shape {
            agrees: Some(agrees),
            why: texts.join("; ") + ".",
        },
    }
}

/// Fraction of the maximum from which a curve counts as flat.
const FLAT: f64 = 0.9;

/// Every curve rises by at least a factor, and is flat from at most a position on.
pub fn rises_to_a_plateau(curves: &[Curve], factor: f64, knee_by: f64) -> Shape {
    let mut texts = Vec::new();
    let mut agrees = true;
    for curve in curves {
        let Some(gain) = curve.gain() else {
            return unknown();
        };
        let rises = curve.is_rising(1.0 - FLAT);
        let knee = curve.knee(FLAT);
        agrees &= rises && gain >= factor && knee.is_some_and(|knee| knee <= knee_by);
        let how = if rises {
            "rises"
        } else {
            "does not rise steadily"
        };
        let flat = match knee {
            Some(knee) => format!("with {:.0} % of the maximum from {knee} on", FLAT * 100.0),
            None => "and falls at the end".to_owned(),
        };
        texts.push(format!(
            "{} {how}, by a factor of {gain:.1} from end to end, {flat}",
            curve.series
        ));
    }
    judged(agrees, &texts)
}

/// Every curve ends at most at this fraction of its beginning.
pub fn falls_to(curves: &[Curve], fraction: f64) -> Shape {
    let gains: Option<Vec<(&str, f64)>> = curves
        .iter()
        .map(|curve| Some((curve.series.as_str(), curve.gain()?)))
        .collect();
    let Some(gains) = gains.filter(|gains| !gains.is_empty()) else {
        return unknown();
    };
    let texts: Vec<String> = gains
        .iter()
        .map(|(series, gain)| format!("{series} ends at {:.0} % of its beginning", gain * 100.0))
        .collect();
    judged(gains.iter().all(|(_, gain)| *gain <= fraction), &texts)
}

/// Every curve rises, and ends at least at this multiple of its beginning.
pub fn rises_by(curves: &[Curve], factor: f64) -> Shape {
    let mut texts = Vec::new();
    let mut agrees = true;
    for curve in curves {
        let Some(gain) = curve.gain() else {
            return unknown();
        };
        let rises = curve.is_rising(1.0 - FLAT);
        agrees &= gain >= factor && rises;
        let how = match rises {
            true => "",
            false => " and does not rise steadily",
        };
        texts.push(format!(
            "{} ends at {gain:.1} times its beginning{how}",
            curve.series
        ));
    }
    judged(agrees, &texts)
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
/// no two of a curve.
pub fn follows(pairs: &[Pair], values: &str) -> Option<Shape> {
    let mut differ = Vec::new();
    let mut steps = 0;
    for step in pairs.windows(2).filter(|s| s[0].series == s[1].series) {
        let [a, b] = step else { continue };
        steps += 1;
        if !is_same_direction(b.measured / a.measured, b.value / a.value) {
            differ.push(format!("{} from {} to {}", a.series, a.label, b.label));
        }
    }
    let ratios = || pairs.iter().map(|p| p.measured / p.value);
    let (low, high) = (
        ratios().min_by(f64::total_cmp)?,
        ratios().max_by(f64::total_cmp)?,
    );
    let levels = format!("The medians are {low:.2} to {high:.2} times {values}");
    let why = match differ.is_empty() {
        true => format!("{levels}, and rise and fall with them."),
        false => format!("{levels}; the directions differ for {}.", differ.join(", ")),
    };
    (steps > 0).then_some(Shape {
        agrees: Some(differ.is_empty()),
        why,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(values: &[f64]) -> Curve {
        let points = values.iter().enumerate();
        Curve {
            series: "c".to_owned(),
            points: points.map(|(i, y)| (f64::from(1u32 << i), *y)).collect(),
        }
    }

    #[test]
    fn a_plateau_is_distinguished_from_a_dip_and_a_late_knee() {
        let good = [curve(&[1.0, 4.0, 9.8, 10.0, 9.9])];
        assert_eq!(good[0].knee(0.95), Some(4.0));
        assert_eq!(rises_to_a_plateau(&good, 3.0, 8.0).agrees, Some(true));
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
        assert_eq!(falls_to(&[curve(&[10.0, 8.0])], 0.9).agrees, Some(true));
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

    fn follows_values(pairs: &[Pair]) -> Option<Shape> {
        follows(pairs, "the values to compare with")
    }

    fn pairs(all: &[(f64, f64)]) -> Vec<Pair> {
        let pair = |(at, (measured, value)): (usize, &(f64, f64))| Pair {
            series: "c".to_owned(),
            label: at.to_string(),
            measured: *measured,
            value: *value,
        };
        all.iter().enumerate().map(pair).collect()
    }

    #[test]
    fn directions_are_compared_and_not_levels() {
        let shape = follows_values(&pairs(&[(10.0, 5.0), (20.0, 9.0), (21.0, 9.2)])).unwrap();
        assert_eq!(shape.agrees, Some(true));
        assert!(shape.why.contains("2.00 to 2.28 times"), "{}", shape.why);
        // The values rise to the fivefold, the medians stay.
        let shape = follows_values(&pairs(&[(10.0, 5.0), (10.5, 25.0)])).unwrap();
        assert_eq!(shape.agrees, Some(false));
        assert!(shape.why.contains("c from 0 to 1"), "{}", shape.why);
        let shape = follows_values(&pairs(&[(10.0, 5.0), (8.0, 6.0)])).unwrap();
        assert_eq!(shape.agrees, Some(false));
        assert_eq!(follows_values(&pairs(&[(1.0, 1.0)])), None);
        assert_eq!(follows_values(&[]), None);
    }

    #[test]
    fn too_few_points_are_not_judged() {
        assert_eq!(falls_to(&[curve(&[1.0])], 0.9).agrees, None);
        assert_eq!(falls_to(&[], 0.9).agrees, None);
        assert_eq!(rises_to_a_plateau(&[], 3.0, 8.0).agrees, None);
    }
}
