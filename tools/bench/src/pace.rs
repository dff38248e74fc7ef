//! Detects whether other programs use the core. Two hardware threads share one core's units: while another program runs
//! on the second one, everything here takes up to twice as long, which no clock shows. So a repetition is divided into
//! short slices, between which a loop that saturates the core's units measures the available share.

/// Fraction of the best pace below which the core counts as disturbed.
const OURS: f64 = 0.88;
/// The best pace is the one that one of this number of slices exceeds, since a single measurement may be too high.
const BEST: usize = 100;

/// Maximum number of attempts for undisturbed figures, as a multiple of the requested number.
pub const TRIES: usize = 4;

/// Pace: operations of four independent chains of one-cycle operations per TSC cycle. The chains differ, so that no
/// compiler merges two of them.
#[inline(never)]
pub fn pace() -> f64 {
    const ROUNDS: u64 = 4_000;
    let mut x: [u64; 4] =
        std::array::from_fn(|i| std::hint::black_box(0x9e37_79b9_7f4a_7c15 + i as u64));
    let start = volley_simd::cycles();
    for _ in 0..ROUNDS {
        let [a, b, c, d] = &mut x;
        *a ^= *a << 13;
        *b ^= *b >> 12;
        *c ^= *c << 21;
        *d ^= *d >> 5;
        *a ^= *a >> 7;
        *b ^= *b << 25;
        *c ^= *c >> 35;
        *d ^= *d << 18;
        *a ^= *a << 17;
        *b ^= *b >> 27;
        *c ^= *c << 4;
        *d ^= *d >> 29;
    }
    std::hint::black_box(x);
    (24 * ROUNDS) as f64 / (volley_simd::cycles() - start) as f64
}

/// Speed of the core in core cycles per TSC cycle: one chain, in which each operation waits one cycle for the previous
/// one.
pub fn speed() -> f64 {
    const ROUNDS: u64 = 50_000;
    let mut x = std::hint::black_box(0x9e37_79b9_7f4a_7c15u64);
    let start = volley_simd::cycles();
    for _ in 0..ROUNDS {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    std::hint::black_box(x);
    (6 * ROUNDS) as f64 / (volley_simd::cycles() - start) as f64
}

/// The minimum pace of undisturbed slices.
pub fn bar(paces: impl Iterator<Item = f64>) -> f64 {
    let mut all: Vec<f64> = paces.collect();
    all.sort_by(|a, b| b.total_cmp(a));
    all.get(all.len() / BEST).map_or(0.0, |best| best * OURS)
}

/// Measure until this number of figures is undisturbed, or until the time limit.
pub fn undisturbed<T>(wanted: usize, mut measure: impl FnMut() -> T) -> Vec<T> {
    let mut all: Vec<(f64, T)> = Vec::new();
    let mut before = pace();
    for _ in 0..wanted * TRIES {
        let figure = measure();
        let after = pace();
        all.push((before.min(after), figure));
        before = after;
        let bar = bar(all.iter().map(|a| a.0));
        if all.iter().filter(|a| a.0 >= bar).count() >= wanted {
            break;
        }
    }
    let bar = bar(all.iter().map(|a| a.0));
    all.retain(|a| a.0 >= bar);
    all.into_iter().map(|a| a.1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slower_slice_is_told_from_the_best() {
        let mut all = vec![4.0; 100];
        all.extend([7.0, 2.1]);
        let bar = bar(all.iter().copied());
        let ours = all.iter().filter(|pace| **pace >= bar).count();
        assert_eq!(ours, 101, "the bar is {bar}");
        assert_eq!(super::bar(std::iter::empty()), 0.0);
    }

    #[test]
    fn as_many_figures_as_were_asked_for_or_some() {
        let mut calls = 0;
        let figures = undisturbed(5, || {
            calls += 1;
            f64::from(calls)
        });
        assert!(
            (1..=5).contains(&figures.len()) && calls <= 20,
            "{figures:?}"
        );
    }

    #[test]
    fn the_core_does_something_in_every_cycle() {
        assert!(pace() > 0.1 && speed() > 0.05);
    }
}
