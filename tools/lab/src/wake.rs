//! Time that the kernel needs to wake a thread. A packet for a sleeping worker waits at least as long, in any router.
//!
//! A thread waits for an event counter as a worker does (`ppoll`), on the last processor. Another one, on the first processor, polls the
//! clock as the generator does, and signals as a driver does.

use crate::samples::{Length, Samples};
use crate::stats;
use rustix::event::{PollFd, PollFlags, poll};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use volley_shm::Event;

/// Signals of a repetition, at most.
const MOST: usize = 2_000;

/// Measure the time from a signal until the thread runs, at this number of signals per second, in microseconds.
///
/// # Errors
/// If there is no event counter, or fewer than two processors.
pub fn measure(pps: f64, length: Length) -> Result<Samples, String> {
    let processors = volley_graph::cores();
    let [first, .., last] = processors[..] else {
        return Err("this measurement needs two processors".to_owned());
    };
    let mut samples = Samples::new();
    for _ in 0..length.repetitions {
        let count = ((pps * length.seconds) as usize).clamp(1, MOST);
        let mut times = repetition(first, last, Duration::from_secs_f64(1.0 / pps), count)?;
        times.sort_by(f64::total_cmp);
        for (name, part) in [("median", 0.5), ("p99", 0.99)] {
            let time = stats::quantile(&times, part);
            samples.entry(name.to_owned()).or_default().push(time);
        }
    }
    Ok(samples)
}

/// The times of some signals.
fn repetition(
    first: usize,
    last: usize,
    pause: Duration,
    count: usize,
) -> Result<Vec<f64>, String> {
    let event = Event::new().map_err(|e| format!("no event counter: {e}"))?;
    let (start, sent, seen) = (Instant::now(), AtomicU64::new(0), AtomicU64::new(0));
    let now = || start.elapsed().as_nanos() as u64;
    let wait = || {
        let mut times = Vec::with_capacity(count);
        while times.len() < count {
            let mut files = [PollFd::new(&event, PollFlags::IN)];
            poll(&mut files, None).map_err(|e| format!("ppoll: {e}"))?;
            let woken = now();
            event.clear();
            times.push(woken.saturating_sub(sent.load(Ordering::Acquire)) as f64 / 1e3);
            seen.store(times.len() as u64, Ordering::Release);
        }
        Ok(times)
    };
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            volley_bench::pin(Some(last));
            let times = wait();
            // The other thread does not wait for signals that are not taken.
            seen.store(u64::MAX, Ordering::Release);
            times
        });
        scope.spawn(|| {
            volley_bench::pin(Some(first));
            for number in 0..count as u64 {
                let due = start + pause * (number as u32 + 1);
                // The waiter sleeps again only after it has noted the last signal.
                while Instant::now() < due || seen.load(Ordering::Acquire) < number {
                    std::hint::spin_loop();
                }
                sent.store(now(), Ordering::Release);
                event.signal();
            }
        });
        let times = waiter.join();
        times.unwrap_or_else(|_| Err("the waiting thread panicked".to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_wakes_after_every_signal() {
        let length = Length {
            seconds: 0.02,
            repetitions: 2,
            counted: 0,
        };
        match measure(1_000.0, length) {
            Ok(samples) => {
                assert_eq!(samples["median"].len(), 2);
                assert!(samples["median"].iter().all(|us| *us > 0.0), "{samples:?}");
            }
            Err(why) => assert!(why.contains("two processors"), "{why}"),
        }
    }
}
