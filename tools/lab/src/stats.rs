//! Statistics of repeated measurements: medians with ranges, quartiles and confidence intervals, and the comparison of two sets.
//!
//! No distribution of the samples is assumed: the interval of a median comes from order statistics (the binomial
//! distribution), and two sets are compared by the Mann-Whitney test and by the bootstrapped ratio of their medians.

use serde::{Deserialize, Serialize};
use statrs::distribution::{Binomial, DiscreteCDF};
use statrs::stats_tests::Alternative;
use statrs::stats_tests::mannwhitneyu::{MannWhitneyUMethod, mannwhitneyu};

/// Confidence of all intervals and comparisons.
pub const CONFIDENCE: f64 = 0.95;
/// Fewest samples of a set that can be compared.
const ENOUGH: usize = 6;
/// Resamples of a bootstrap.
const RESAMPLES: usize = 2_000;
/// Seed of the resamples: the same samples give the same interval.
const SEED: u64 = 0x5eed;

/// A range of values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// Whether the value is inside.
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

/// A set of samples in a few numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Number of samples; 0 for a number of others.
    pub count: usize,
    /// Minimum.
    pub min: f64,
    /// Lower quartile.
    pub q1: f64,
    /// Median.
    pub median: f64,
    /// Mean.
    pub mean: f64,
    /// Upper quartile.
    pub q3: f64,
    /// Maximum.
    pub max: f64,
    /// Confidence interval of the median; none with fewer than 6 samples, which cannot give 95 %.
    pub interval: Option<Interval>,
}

impl Summary {
    /// A number of others, without samples.
    pub fn quoted(value: f64) -> Summary {
        Summary {
            count: 0,
            min: value,
            q1: value,
            median: value,
            mean: value,
            q3: value,
            max: value,
            interval: None,
        }
    }

    /// Summary of samples; none if there are none or one is not a finite number.
    pub fn of(samples: &[f64]) -> Option<Summary> {
        let all = sorted(samples)?;
        Some(Summary {
            count: all.len(),
            min: *all.first()?,
            q1: quantile(&all, 0.25),
            median: quantile(&all, 0.5),
            mean: all.iter().sum::<f64>() / all.len() as f64,
            q3: quantile(&all, 0.75),
            max: *all.last()?,
            interval: median_interval(&all),
        })
    }
}

/// A value for people: two decimals, or three significant digits below 0.1.
pub fn shown(value: f64) -> String {
    let size = value.abs();
    match size > 0.0 && size < 0.1 {
        // Values that are much smaller are as good as 0.
        true => format!(
            "{value:.*}",
            (2 - size.log10().floor() as i32).clamp(2, 9) as usize
        ),
        false => format!("{value:.2}"),
    }
}

fn sorted(samples: &[f64]) -> Option<Vec<f64>> {
    if samples.is_empty() || samples.iter().any(|x| !x.is_finite()) {
        return None;
    }
    let mut all = samples.to_vec();
    all.sort_by(f64::total_cmp);
    Some(all)
}

/// Quantile of sorted samples, interpolated linearly (type 7 of Hyndman and Fan, the default of R).
pub(crate) fn quantile(sorted: &[f64], fraction: f64) -> f64 {
    let at = fraction * (sorted.len() - 1) as f64;
    let (below, above) = (at.floor() as usize, at.ceil() as usize);
    sorted[below] + (sorted[above] - sorted[below]) * (at - below as f64)
}

/// The narrowest symmetric pair of order statistics that contains the median with at least [`CONFIDENCE`].
fn median_interval(sorted: &[f64]) -> Option<Interval> {
    let n = sorted.len();
    let below = Binomial::new(0.5, n as u64).ok()?;
    // The interval from the k-th smallest to the k-th largest misses the median with probability 2 P(X < k).
    let allowed = (1.0 - CONFIDENCE) / 2.0;
    let k = (1..=n / 2)
        .take_while(|k| below.cdf(*k as u64 - 1) <= allowed)
        .last()?;
    Some(Interval {
        low: sorted[k - 1],
        high: sorted[n - k],
    })
}

/// What a comparison found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// No difference that exceeds the noise.
    Equal,
    /// The second set is larger.
    Larger,
    /// The second set is smaller.
    Smaller,
    /// The medians differ by more than the noise, but without confidence, or there are fewer than 6 samples.
    Unclear,
}

/// Two sets of samples compared.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Median of the second set divided by the median of the first.
    pub ratio: f64,
    /// Confidence interval of the ratio.
    pub interval: Interval,
    /// Probability of such a difference in rank if both sets have one distribution (Mann-Whitney, two-sided).
    pub p: f64,
    /// Differences up to this fraction are noise of the machine.
    pub noise: f64,
    /// The result.
    pub verdict: Verdict,
}

/// Compare two sets of positive samples. `noise` is the fraction by which medians of the same code differ on this machine: a
/// difference counts only if it is larger, the ratio's interval excludes 1, and the ranks differ with confidence.
pub fn compare(first: &[f64], second: &[f64], noise: f64) -> Option<Comparison> {
    let (a, b) = (sorted(first)?, sorted(second)?);
    if a[0] <= 0.0 || b[0] <= 0.0 {
        return None;
    }
    let ratio = quantile(&b, 0.5) / quantile(&a, 0.5);
    let interval = ratio_interval(&a, &b);
    // The test divides by the variance of the ranks, which is zero if all samples are equal. The exact method of statrs 0.19
    // gives 1 for sets without overlap, so the approximation, which is slightly larger than the exact value, is used.
    let p = if a[0] == b[b.len() - 1] && b[0] == a[a.len() - 1] {
        1.0
    } else {
        let method = MannWhitneyUMethod::AsymptoticInclContinuityCorrection;
        let test = mannwhitneyu(&a, &b, method, Alternative::TwoSided);
        test.ok()?.1.min(1.0)
    };
    let exceeds = (ratio - 1.0).abs() > noise;
    let certain = p < 1.0 - CONFIDENCE && !interval.contains(1.0);
    let verdict = match exceeds && certain {
        _ if a.len().min(b.len()) < ENOUGH => Verdict::Unclear,
        true if ratio > 1.0 => Verdict::Larger,
        true => Verdict::Smaller,
        false if exceeds => Verdict::Unclear,
        false => Verdict::Equal,
    };
    Some(Comparison {
        ratio,
        interval,
        p,
        noise,
        verdict,
    })
}

/// Bootstrapped interval of the ratio of the medians.
fn ratio_interval(a: &[f64], b: &[f64]) -> Interval {
    let mut random = fastrand::Rng::with_seed(SEED);
    let mut median = |of: &[f64]| {
        let mut drawn: Vec<f64> = of.iter().map(|_| of[random.usize(..of.len())]).collect();
        drawn.sort_by(f64::total_cmp);
        quantile(&drawn, 0.5)
    };
    let mut ratios: Vec<f64> = (0..RESAMPLES).map(|_| median(b) / median(a)).collect();
    ratios.sort_by(f64::total_cmp);
    Interval {
        low: quantile(&ratios, (1.0 - CONFIDENCE) / 2.0),
        high: quantile(&ratios, (1.0 + CONFIDENCE) / 2.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Samples about a middle, with noise of a few percent and a tail to the right.
    fn noisy(middle: f64, count: usize, seed: u64) -> Vec<f64> {
        let mut random = fastrand::Rng::with_seed(seed);
        let noise = |r: &mut fastrand::Rng| (r.f64() - 0.5) * 0.02 + r.f64().powi(8) * 0.05;
        (0..count)
            .map(|_| middle * (1.0 + noise(&mut random)))
            .collect()
    }

    #[test]
    fn small_values_keep_their_digits() {
        let of = [12.345, 0.5, 0.0, 0.0123, -0.004_56, 1e-12].map(shown);
        let wanted = ["12.35", "0.50", "0.00", "0.0123", "-0.00456", "0.000000000"];
        assert_eq!(of, wanted);
    }

    #[test]
    fn quartiles_are_those_of_type_7() {
        let s = Summary::of(&[7.0, 15.0, 36.0, 39.0, 40.0, 41.0]).unwrap();
        assert_eq!((s.min, s.q1, s.median), (7.0, 20.25, 37.5));
        assert_eq!((s.q3, s.max, s.count), (39.75, 41.0, 6));
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(Summary::of(&[1.0, f64::NAN]), None);
    }

    #[test]
    fn the_interval_of_a_median_has_the_ranks_of_the_tables() {
        let of = |n: usize| {
            let all: Vec<f64> = (1..=n).map(|x| x as f64).collect();
            Summary::of(&all).unwrap().interval.map(|i| (i.low, i.high))
        };
        // Ranks of the sign test at 95 %, as in tables of nonparametric statistics.
        assert_eq!(of(5), None);
        assert_eq!(of(6), Some((1.0, 6.0)));
        assert_eq!(of(10), Some((2.0, 9.0)));
        assert_eq!(of(20), Some((6.0, 15.0)));
        assert_eq!(of(25), Some((8.0, 18.0)));
    }

    #[test]
    fn the_interval_contains_the_true_median_often_enough() {
        let hits = (0..400).filter(|seed| {
            let mut random = fastrand::Rng::with_seed(*seed);
            let all: Vec<f64> = (0..15).map(|_| random.f64()).collect();
            let interval = Summary::of(&all).unwrap().interval;
            interval.is_some_and(|i| i.contains(0.5))
        });
        let hits = hits.count();
        assert!((372..=400).contains(&hits), "{hits} of 400");
    }

    #[test]
    fn the_same_code_is_seldom_reported_as_changed() {
        let wrong = (0..200).filter(|seed| {
            let (a, b) = (noisy(20.0, 11, *seed), noisy(20.0, 11, seed + 1_000));
            let verdict = compare(&a, &b, 0.01).unwrap().verdict;
            matches!(verdict, Verdict::Larger | Verdict::Smaller)
        });
        let wrong = wrong.count();
        assert!(wrong <= 4, "{wrong} of 200");
    }

    #[test]
    fn five_percent_more_cycles_are_found() {
        for (seed, count) in (0..60).map(|seed| (seed, 7 + seed as usize % 5)) {
            let (a, b) = (noisy(20.0, count, seed), noisy(21.0, count, seed + 1_000));
            let more = compare(&a, &b, 0.01).unwrap();
            assert_eq!(more.verdict, Verdict::Larger, "{more:?}");
            assert!(more.interval.contains(more.ratio), "{more:?}");
            assert_eq!(compare(&b, &a, 0.01).unwrap().verdict, Verdict::Smaller);
        }
    }

    #[test]
    fn a_difference_below_the_noise_of_the_machine_is_none() {
        let (a, b) = (noisy(20.0, 30, 1), noisy(21.0, 30, 2));
        assert_eq!(compare(&a, &b, 0.10).unwrap().verdict, Verdict::Equal);
    }

    #[test]
    fn few_or_scattered_samples_are_unclear_and_not_equal() {
        let few = compare(&[1.0, 1.1, 1.2], &[2.0, 2.1, 2.2], 0.01).unwrap();
        assert_eq!(few.verdict, Verdict::Unclear);
        let a = [1.0, 9.0, 2.0, 8.0, 3.0, 7.0, 4.0];
        let b = [1.5, 9.5, 2.5, 8.5, 3.5, 7.5, 6.5];
        assert_eq!(compare(&a, &b, 0.01).unwrap().verdict, Verdict::Unclear);
    }

    #[test]
    fn equal_and_unusable_samples() {
        let same = compare(&[3.0; 6], &[3.0; 6], 0.01).unwrap();
        assert_eq!(
            (same.verdict, same.p, same.ratio),
            (Verdict::Equal, 1.0, 1.0)
        );
        assert_eq!(compare(&[], &[1.0], 0.01), None);
        assert_eq!(compare(&[0.0], &[1.0], 0.01), None);
    }
}
