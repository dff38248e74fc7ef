//! Distribution of weights to buckets: the smallest power of two that represents the weights well enough.
//!
//! Paths are taken in order of ascending weight (equal weights keep their order), each gets its share of the buckets rounded to
//! the nearest, and the size doubles until the sum of the rounding errors is at most a tenth of the buckets.

use crate::dataplane::MAX_BUCKETS;

/// Index of the path for each bucket. Empty only if `weights` is.
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

/// No path: marks a bucket that is not assigned yet.
pub(crate) const UNASSIGNED: u16 = u16::MAX;

/// A table of `size` buckets (more if there are more paths) that differs from `before` in as few buckets as the shares allow.
/// Each path is its number and its weight. A bucket keeps its path while the path exists and has no more than its share; the
/// other buckets are assigned round-robin to paths below their share.
pub(crate) fn refill(before: &[u16], paths: &[(u16, u8)], size: usize) -> Vec<u16> {
    let size = size.max(paths.len().next_power_of_two()).min(MAX_BUCKETS);
    if paths.is_empty() {
        return vec![UNASSIGNED; size];
    }
    let mut order: Vec<usize> = (0..paths.len()).collect();
    order.sort_by_key(|&i| paths[i].1);
    let weight = |i: usize| u64::from(paths[i].1.max(1));
    let sum = order.iter().map(|&i| weight(i)).sum();
    let (counts, _) = share(&order, weight, sum, size as u64);
    let mut left = vec![0; paths.len()];
    order.iter().zip(counts).for_each(|(&i, n)| left[i] = n);
    // A larger table repeats the smaller one: flows choose their bucket by the low bits of their hash.
    let was = |bucket: usize| before.get(bucket % before.len().max(1)).copied();
    let mut table: Vec<u16> = (0..size)
        .map(|bucket| {
            let owner = was(bucket).and_then(|who| paths.iter().position(|(path, _)| *path == who));
            match owner.filter(|&i| left[i] > 0) {
                Some(i) => {
                    left[i] -= 1;
                    paths[i].0
                }
                None => UNASSIGNED,
            }
        })
        .collect();
    let mut turn = 0;
    for bucket in table.iter_mut().filter(|who| **who == UNASSIGNED) {
        let next = (0..paths.len())
            .map(|step| (turn + step) % paths.len())
            .find(|&i| left[i] > 0);
        let Some(i) = next else { break };
        left[i] -= 1;
        *bucket = paths[i].0;
        turn = i + 1;
    }
    table
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

    /// Buckets whose path differs.
    fn moved(before: &[u16], after: &[u16]) -> usize {
        assert_eq!(before.len(), after.len());
        before.iter().zip(after).filter(|(b, a)| b != a).count()
    }

    fn count(table: &[u16], path: u16) -> usize {
        table.iter().filter(|who| **who == path).count()
    }

    #[test]
    fn only_the_buckets_of_a_path_that_goes_move_and_few_when_it_returns() {
        let all = [(0, 1), (1, 1), (2, 1), (3, 1)];
        let four = refill(&[], &all, 256);
        assert_eq!([0, 1, 2, 3].map(|path| count(&four, path)), [64; 4]);
        let three = refill(&four, &[(0, 1), (1, 1), (3, 1)], 256);
        assert_eq!(moved(&four, &three), 64);
        assert!(
            four.iter()
                .zip(&three)
                .all(|(was, is)| *was == 2 || was == is)
        );
        let mut counts = [0, 1, 3].map(|path| count(&three, path));
        counts.sort_unstable();
        assert_eq!(counts, [85, 85, 86]);
        let again = refill(&three, &all, 256);
        assert_eq!(moved(&three, &again), 64);
        assert_eq!([0, 1, 2, 3].map(|path| count(&again, path)), [64; 4]);
        // Without `refill` more than half of the remaining flows move.
        let plain = |paths: &[u8]| layout(paths);
        let (four, three) = (plain(&[1; 4]), plain(&[1; 3]));
        let moves = |b: usize| four[b % four.len()] != [0, 1, 3][three[b % three.len()]];
        assert!(
            (0..256)
                .filter(|b| four[b % four.len()] != 2 && moves(*b))
                .count()
                > 64
        );
    }

    #[test]
    fn a_small_table_grows_without_moving_anything() {
        let plain: Vec<u16> = layout(&[1, 1]).into_iter().map(|i| i as u16).collect();
        let large = refill(&plain, &[(0, 1), (1, 1)], 128);
        assert!((0..128).all(|b| large[b] == plain[b % plain.len()]));
        assert_eq!(refill(&large, &[(0, 1)], 128), [0; 128]);
        assert!(
            refill(&large, &[], 128)
                .iter()
                .all(|who| *who == UNASSIGNED)
        );
    }

    #[test]
    fn three_equal_paths_need_sixteen_buckets() {
        // The nearest shares of 4 buckets have a total error of 1 bucket (limit 0.4), of 8 buckets 4/3 (limit 0.8), of 16
        // buckets 1 (limit 1.6).
        let got = layout(&[1, 1, 1]);
        assert_eq!(got.len(), 16);
        let count = |p| got.iter().filter(|&&x| x == p).count();
        assert_eq!((count(0), count(1), count(2)), (6, 5, 5));
    }

    proptest! {
        #[test]
        fn what_moves_is_what_went_or_what_the_shares_ask_for(
            weights in prop::collection::vec(1u8..9, 2..12),
            goes in any::<prop::sample::Index>(),
            log2 in 4u32..10,
        ) {
            let all: Vec<(u16, u8)> = weights.iter().enumerate().map(|(i, w)| (i as u16, *w)).collect();
            let gone = goes.index(all.len()) as u16;
            let fewer: Vec<(u16, u8)> = all.iter().copied().filter(|(path, _)| *path != gone).collect();
            let first = refill(&[], &all, 1 << log2);
            let second = refill(&first, &fewer, 1 << log2);
            let third = refill(&second, &all, 1 << log2);
            let share = |table: &[u16], path| table.iter().filter(|who| **who == path).count();
            prop_assert!(second.iter().all(|who| *who != gone && *who != UNASSIGNED));
            // Rounding may move a bucket between two paths, but at most one from each.
            let lost: usize = fewer
                .iter()
                .map(|(path, _)| share(&first, *path).saturating_sub(share(&second, *path)))
                .sum();
            prop_assert!(moved(&first, &second) <= share(&first, gone) + lost);
            prop_assert!(lost <= fewer.len());
            for (path, _) in &all {
                prop_assert_eq!(share(&first, *path), share(&third, *path));
            }
            prop_assert!(moved(&second, &third) <= share(&first, gone) + lost);
        }

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
