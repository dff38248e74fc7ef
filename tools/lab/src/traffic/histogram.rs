//! A histogram of cycles that one worker writes and the control thread reads.
//!
//! Contract: recording neither allocates nor locks. A value is known within 1/64 of itself; values below 64 are exact.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Buckets of one power of two, as a power of two.
const BITS: u32 = 6;
/// Buckets for all numbers of 64 bits.
const BUCKETS: usize = ((64 - BITS + 1) as usize) << BITS;

/// The histogram. Only one thread may record.
pub struct Histogram {
    buckets: Box<[AtomicU64]>,
    sum: AtomicU64,
    min: AtomicU64,
    max: AtomicU64,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram {
            buckets: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect(),
            sum: AtomicU64::new(0),
            min: AtomicU64::new(u64::MAX),
            max: AtomicU64::new(0),
        }
    }
}

#[inline(always)]
fn bucket(value: u64) -> usize {
    let shift = (64 - value.leading_zeros()).saturating_sub(BITS + 1);
    ((shift as usize) << BITS) + (value >> shift) as usize
}

/// Smallest value of a bucket, and number of values.
fn range(bucket: usize) -> (u64, u64) {
    let shift = (bucket >> BITS).saturating_sub(1) as u32;
    let first = (bucket - ((shift as usize) << BITS)) as u64;
    (first << shift, 1 << shift)
}

#[inline(always)]
fn add(cell: &AtomicU64, by: u64) {
    cell.store(cell.load(Relaxed).wrapping_add(by), Relaxed);
}

impl Histogram {
    /// Record a value.
    #[inline(always)]
    pub fn record(&self, value: u64) {
        if let Some(cell) = self.buckets.get(bucket(value)) {
            add(cell, 1);
        }
        add(&self.sum, value);
        if value < self.min.load(Relaxed) {
            self.min.store(value, Relaxed);
        }
        if value > self.max.load(Relaxed) {
            self.max.store(value, Relaxed);
        }
    }

    /// Forget all values. Only the recording thread may call this.
    pub fn clear(&self) {
        for cell in self.buckets.iter().chain([&self.sum, &self.max]) {
            cell.store(0, Relaxed);
        }
        self.min.store(u64::MAX, Relaxed);
    }

    /// The values so far, each multiplied by `scale`; none without values.
    pub fn read(&self, scale: f64) -> Option<Distribution> {
        let counts = self.buckets.iter().map(|cell| cell.load(Relaxed));
        let cells: Vec<(f64, u64)> = counts
            .enumerate()
            .filter(|(_, count)| *count > 0)
            .map(|(at, count)| {
                let (first, values) = range(at);
                ((first as f64 + (values - 1) as f64 / 2.0) * scale, count)
            })
            .collect();
        let count: u64 = cells.iter().map(|c| c.1).sum();
        if count == 0 {
            return None;
        }
        Some(Distribution {
            count,
            min: self.min.load(Relaxed) as f64 * scale,
            max: self.max.load(Relaxed) as f64 * scale,
            mean: self.sum.load(Relaxed) as f64 * scale / count as f64,
            cells,
        })
    }
}

/// The values of a histogram.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    /// Number of values.
    pub count: u64,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// Mean.
    pub mean: f64,
    /// Middle of each bucket, and its number of values.
    cells: Vec<(f64, u64)>,
}

impl Distribution {
    /// Standard deviation.
    pub fn deviation(&self) -> f64 {
        let square = |(value, count): &(f64, u64)| (value - self.mean).powi(2) * *count as f64;
        let sum: f64 = self.cells.iter().map(square).sum();
        (sum / self.count as f64).sqrt()
    }

    /// The value that this fraction of the values do not exceed.
    pub fn quantile(&self, fraction: f64) -> f64 {
        let rank = (fraction * self.count as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (value, count) in &self.cells {
            seen += count;
            if seen >= rank {
                return value.clamp(self.min, self.max);
            }
        }
        self.max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_cover_all_numbers_without_a_gap() {
        let mut next = 0;
        for at in 0..BUCKETS {
            let (first, values) = range(at);
            assert_eq!(first, next, "bucket {at}");
            assert_eq!((bucket(first), bucket(first + (values - 1))), (at, at));
            assert!(values == 1 || values <= first / 64, "bucket {at} is wide");
            next = first.wrapping_add(values);
        }
        assert_eq!(next, 0, "the last bucket ends at 2^64");
    }

    #[test]
    fn quantiles_are_those_of_the_values() {
        let histogram = Histogram::default();
        assert_eq!(histogram.read(1.0), None);
        let mut values: Vec<u64> = (1..=10_000).map(|n| n * n % 77_777).collect();
        values.iter().for_each(|v| histogram.record(*v));
        values.sort_unstable();
        let read = histogram.read(0.5).unwrap();
        assert_eq!(read.count, 10_000);
        assert_eq!(read.min, values[0] as f64 / 2.0);
        assert_eq!(read.max, values[9_999] as f64 / 2.0);
        for (fraction, rank) in [(0.01, 99), (0.5, 4_999), (0.99, 9_899), (1.0, 9_999)] {
            let (wanted, got) = (values[rank] as f64 / 2.0, read.quantile(fraction));
            assert!(
                (got / wanted - 1.0).abs() < 1.0 / 64.0,
                "{fraction}: {got} {wanted}"
            );
        }
        let mean = values.iter().sum::<u64>() as f64 / 20_000.0;
        let squares = values.iter().map(|v| (*v as f64 / 2.0 - mean).powi(2));
        let deviation = (squares.sum::<f64>() / 10_000.0).sqrt();
        assert!((read.mean / mean - 1.0).abs() < 1e-9);
        assert!((read.deviation() / deviation - 1.0).abs() < 0.01);
        histogram.clear();
        assert_eq!(histogram.read(1.0), None);
    }
}
