//! Histograms of the time that the control plane needs for answers.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// Upper bounds of the buckets, in seconds.
pub const BOUNDS: [f64; 14] = [
    0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0,
];

/// One histogram.
#[derive(Debug, Default)]
pub struct Histogram {
    buckets: [Cell<u64>; BOUNDS.len() + 1],
    sum: Cell<Duration>,
}

impl Histogram {
    /// Records one duration.
    pub fn record(&self, took: Duration) {
        let seconds = took.as_secs_f64();
        let at = BOUNDS.iter().position(|bound| seconds <= *bound);
        let bucket = &self.buckets[at.unwrap_or(BOUNDS.len())];
        bucket.set(bucket.get() + 1);
        self.sum.set(self.sum.get() + took);
    }

    /// Awaits work, and records its duration.
    pub async fn time<T>(&self, work: impl Future<Output = T>) -> T {
        let start = Instant::now();
        let done = work.await;
        self.record(start.elapsed());
        done
    }

    /// Number of durations up to each bound, then the number of all.
    pub fn cumulative(&self) -> Vec<u64> {
        let mut sum = 0;
        let add = |bucket: &Cell<u64>| {
            sum += bucket.get();
            sum
        };
        self.buckets.iter().map(add).collect()
    }

    /// Sum of the durations in seconds.
    pub fn sum(&self) -> f64 {
        self.sum.get().as_secs_f64()
    }
}

/// One histogram for each kind of operation.
#[derive(Debug, Default)]
pub struct Latencies {
    /// Queries.
    pub query: Histogram,
    /// Requests and transactions, until the workers use the result.
    pub change: Histogram,
    /// Actions on the configuration as a whole.
    pub config: Histogram,
}
