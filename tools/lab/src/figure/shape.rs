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
    match texts.is_empty() {
        true => unknown(),
        false => Shape {
            agrees: Some(agrees),
            why: texts.join("; ") + ".",
        },
    }
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
    Shape {
        agrees: Some(gains.iter().all(|(_, gain)| *gain <= fraction)),
        why: texts.join("; ") + ".",
    }
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
    fn too_few_points_are_not_judged() {
        assert_eq!(falls_to(&[curve(&[1.0])], 0.9).agrees, None);
        assert_eq!(falls_to(&[], 0.9).agrees, None);
        assert_eq!(rises_to_a_plateau(&[], 3.0, 8.0).agrees, None);
    }
}
