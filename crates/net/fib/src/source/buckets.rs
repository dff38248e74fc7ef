//! Weights to buckets: the smallest power of two that shows the weights well enough.
//!
//! Paths come in their kept order; they are taken in order of ascending weight (equal weights keep their order), each gets
//! its share of the buckets rounded to the nearest, and the size doubles until the sum of the rounding errors is at
//! most a tenth of the buckets.

use crate::dataplane::MAX_BUCKETS;

/// Index of the path for each bucket. Empty only when `weights` is.
pub(crate) fn layout(weights: &[u8]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by_key(|&i| weights[i]);
    if weights.len() < 2 {
        return order;
    }
    let weight = |i: usize| u64::from(weights[i].max(1));
    let sum: u64 = order.iter().map(|&i| weight(i)).sum();
    let mut size = weights.len().next_power_of_two().min(MAX_BUCKETS);
    loop {
        let (counts, error) = share(&order, weight, sum, size as u64);
        if error * 10 <= sum * size as u64 || size >= MAX_BUCKETS {
            return spread(&order, &counts);
        }
        size *= 2;
    }
}

/// Buckets of each path in `order`, and the rounding error in units of `1 / sum` buckets.
fn share(order: &[usize], weight: impl Fn(usize) -> u64, sum: u64, size: u64) -> (Vec<u64>, u64) {
    let mut left = size;
    let mut error = 0;
    let mut counts: Vec<u64> = order
        .iter()
        .map(|&i| {
            let exact = weight(i) * size;
            let n = ((2 * exact + sum) / (2 * sum)).min(left);
            left -= n;
            error += exact.abs_diff(n * sum);
            n
        })
        .collect();
    counts[0] += left;
    (counts, error)
}

fn spread(order: &[usize], counts: &[u64]) -> Vec<usize> {
    order
        .iter()
        .zip(counts)
        .flat_map(|(&i, &n)| std::iter::repeat_n(i, n as usize))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn equal_weights_keep_the_order_of_the_paths() {
        assert_eq!(layout(&[1]), [0]);
        assert_eq!(layout(&[1, 1]), [0, 1]);
        assert_eq!(layout(&[9, 9]), [0, 1]);
        assert_eq!(layout(&[1; 4]), [0, 1, 2, 3]);
        assert_eq!(layout(&[]), [0usize; 0]);
    }

    #[test]
    fn ascending_weight_comes_first() {
        assert_eq!(layout(&[3, 1]), [1, 0, 0, 0]);
        assert_eq!(layout(&[1, 3]), [0, 1, 1, 1]);
        assert_eq!(layout(&[2, 1, 1]), [1, 2, 0, 0]);
    }

    #[test]
    fn three_equal_paths_need_sixteen_buckets() {
        // Nearest shares of 4 are off by 1 bucket in sum (bar 0.4), of 8 by 4/3 (bar 0.8), of 16 by 1 (bar 1.6).
        let got = layout(&[1, 1, 1]);
        assert_eq!(got.len(), 16);
        let count = |p| got.iter().filter(|&&x| x == p).count();
        assert_eq!((count(0), count(1), count(2)), (6, 5, 5));
    }

    proptest! {
        #[test]
        fn every_layout_is_a_power_of_two_and_near_its_weights(weights in prop::collection::vec(1u8.., 2..40)) {
            let got = layout(&weights);
            prop_assert!(got.len().is_power_of_two() && got.len() <= MAX_BUCKETS);
            let sum: f64 = weights.iter().map(|&w| f64::from(w)).sum();
            let mut error = 0.0;
            for (i, &w) in weights.iter().enumerate() {
                let n = got.iter().filter(|&&x| x == i).count() as f64;
                error += (n - f64::from(w) * got.len() as f64 / sum).abs();
            }
            prop_assert!(got.len() == MAX_BUCKETS || error <= 0.21 * got.len() as f64, "{error}");
            let by_weight: Vec<u8> = got.iter().map(|&i| weights[i]).collect();
            prop_assert!(by_weight.is_sorted());
        }
    }
}
