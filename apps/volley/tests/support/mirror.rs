//! Waits for LCP sync. The time limit is for an emulated machine, which is slow.

use super::Daemon;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(40);

/// Waits until a condition is true.
pub fn soon(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < LIMIT, "waiting for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits until Volley and the kernel agree; fails with the last differences after the time limit.
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
