//! `volley bench --burn`: nodes that take some percent longer, so that comparisons of runs can be checked with a known difference.

use super::BenchError;
use super::scenario::Bench;
use volley_daemon::stack::StackError;
use volley_graph::{CounterGroup, Reading};
use volley_simd::cycles;

/// Most percent that can be added.
const MOST: f64 = 100.0;

/// A group without counters, whose readings take time. The engine reads a group before and after each call of a node, as part of the
/// node's time.
struct Burn {
    /// Time of a reading, divided by the time since the last one.
    share: f64,
    /// End of the last reading.
    last: u64,
}

impl CounterGroup for Burn {
    fn read(&mut self) -> Reading {
        let now = cycles();
        let end = now + ((now - self.last) as f64 * self.share) as u64;
        while cycles() < end {}
        self.last = end;
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
    let burn = Burn {
        share: percent / 100.0,
        last: cycles(),
    };
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
        let mut burn = Burn {
            share: 0.5,
            last: cycles() - 1_000_000,
        };
        let from = cycles();
        burn.read();
        let took = cycles() - from;
        assert!(took >= 500_000, "{took}");
        // The next reading burns its share of little time.
        assert!(burn.last >= from + 500_000);
    }
}
