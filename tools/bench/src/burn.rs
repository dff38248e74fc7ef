//! `volley bench --burn`: nodes that take some percent longer, so that comparisons of runs can be checked with a known difference.

use super::BenchError;
use super::scenario::Bench;
use super::tables::Random;
use volley_daemon::stack::StackError;
use volley_graph::{CounterGroup, Reading};
use volley_simd::cycles;

/// Most percent that can be added.
const MOST: f64 = 100.0;

/// Fewest and most cycles that are burnt at once. A processor overlaps a shorter wait with memory accesses in flight, which hides a part
/// of it. The number differs from time to time, so that each node gets its part.
const AT_ONCE: (usize, usize) = (1000, 3000);

/// A group without counters, whose readings take time. The engine reads a group before and after each call of a node, as part of the
/// node's time.
struct Burn {
    /// Part of the time between readings that is added.
    share: f64,
    /// End of the last reading.
    last: u64,
    /// Cycles that are not burnt yet, and how many are burnt at once.
    owed: f64,
    at_once: usize,
    random: Random,
}

impl Burn {
    fn new(share: f64) -> Burn {
        Burn {
            share,
            last: cycles(),
            owed: 0.0,
            at_once: AT_ONCE.0,
            random: Random(1),
        }
    }
}

impl CounterGroup for Burn {
    fn read(&mut self) -> Reading {
        let now = cycles();
        self.owed += (now - self.last) as f64 * self.share;
        self.last = now;
        if self.owed >= self.at_once as f64 {
            self.last += self.owed as u64;
            self.owed = 0.0;
            self.at_once = AT_ONCE.0 + self.random.below(AT_ONCE.1 - AT_ONCE.0);
            while cycles() < self.last {}
        }
        Reading::default()
    }
}

/// Let all nodes of the first worker take so many percent longer. With 0 percent, only the two calls of a reading are added to each node:
/// what other percentages are compared with.
pub(super) fn begin(bench: &mut Bench, percent: f64) -> Result<(), BenchError> {
    if !(0.0..=MOST).contains(&percent) {
        return Err(BenchError::Args(format!(
            "--burn {percent}: choose 0 to {MOST} percent"
        )));
    }
    let burn = Burn::new(percent / 100.0);
    let engine = bench.stack.engine.clone();
    let began = engine.borrow_mut().count_events(vec![(0, Box::new(burn))]);
    began.map_err(StackError::from)?;
    bench.settle();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_takes_its_share_of_the_time_since_the_last_one() {
        let mut burn = Burn::new(0.5);
        burn.last -= 1_000_000;
        let from = cycles();
        burn.read();
        assert!(cycles() - from >= 500_000);
        assert!(burn.owed == 0.0 && burn.last >= from + 500_000);
        // The share of a short time is kept.
        burn.last = cycles() - 100;
        let before = burn.last;
        burn.read();
        let expected = (burn.last - before) as f64 * burn.share;
        assert!(burn.owed == expected || burn.owed == 0.0, "{}", burn.owed);
    }
}
