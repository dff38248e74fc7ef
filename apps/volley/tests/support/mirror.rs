//! Waiting for the Linux mirror. An emulated machine is slow: only what fails waits as long as this.

use super::Daemon;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(40);

/// Waits until something holds.
pub fn soon(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < LIMIT, "waiting for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits until both sides are alike; the last answer is told when they are not for too long.
pub fn in_step(daemon: &Daemon) {
    let (start, mut last) = (Instant::now(), String::new());
    while start.elapsed() < LIMIT {
        last = daemon.ok("lcp audit");
        if last.contains(" 0 differ") {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("{last}\n{}", daemon.ok("show lcp"));
}
