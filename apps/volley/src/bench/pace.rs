//! Whether the machine leaves the core to us. Two hardware threads share one core's units: while somebody else's program
//! runs on the other one everything here takes up to twice as long, which no clock shows. So a repetition is cut into short
//! slices, between which a loop that fills the core's units says how many of them we get.

use super::report::NodeCost;

/// A part of the best pace seen, below which somebody else was there.
const OURS: f64 = 0.88;
/// The best pace is the one that one of so many slices exceeds: a clock that ran up for a moment is no measure.
const BEST: usize = 100;

/// What happened between two looks at the pace.
pub struct Slice {
    /// Work that the core did for us in a cycle of the time-stamp counter, before or after, whichever was less.
    pub pace: f64,
    /// Wall clock.
    pub seconds: f64,
    /// What the nodes did.
    pub costs: Vec<NodeCost>,
}

/// Four independent chains of one-cycle operations: their number in a cycle of the time-stamp counter. The chains differ, so
/// that no compiler makes one of two.
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

/// How fast the core runs now, in core cycles per cycle of the time-stamp counter: one chain, each operation of which waits a
/// cycle for the one before.
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

/// The pace from which on a slice counts as ours alone.
pub fn bar<'a>(slices: impl Iterator<Item = &'a Slice>) -> f64 {
    let mut all: Vec<f64> = slices.map(|s| s.pace).collect();
    all.sort_by(|a, b| b.total_cmp(a));
    all.get(all.len() / BEST).map_or(0.0, |best| best * OURS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slower_slice_is_told_from_the_best() {
        let slice = |pace| Slice {
            pace,
            seconds: 1.0,
            costs: Vec::new(),
        };
        let mut all: Vec<Slice> = (0..100).map(|_| slice(4.0)).collect();
        all.extend([slice(7.0), slice(2.1)]);
        let bar = bar(all.iter());
        let ours = all.iter().filter(|s| s.pace >= bar).count();
        assert_eq!(ours, 101, "the bar is {bar}");
        assert_eq!(super::bar(std::iter::empty()), 0.0);
    }

    #[test]
    fn the_core_does_something_in_every_cycle() {
        assert!(pace() > 0.1 && speed() > 0.05);
    }
}
