//! Sleep of a worker: when every source allows it, until a descriptor is ready, a time is reached, or another thread
//! wakes it.
//!
//! The order prevents lost wake-ups: the worker marks itself asleep, checks for changes, and lets every source arm its
//! interrupt and check again. A producer first enqueues, then wakes the worker, which costs a system call only while
//! the worker is asleep. A sleeping worker is offline: no grace period waits for it.

use crate::data::clock::Clock;
use crate::data::ids::NodeId;
use crate::data::stats;
use crate::queues::wakeup::{WakeConditions, Wakeup};
use crate::worker::round::Worker;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::time::Duration;

/// The longest sleep. It limits the effect of a missing wake-up.
const MAX_SLEEP: Duration = Duration::from_millis(20);
/// A shorter sleep is not worth its cost.
const MIN_SLEEP: Duration = Duration::from_micros(30);

/// The longest sleep that the conditions allow; none when it is too short.
fn sleep_time(rest: &WakeConditions, clock: &Clock) -> Option<Duration> {
    let Some(until) = rest.until_ns else {
        return Some(MAX_SLEEP);
    };
    let left = Duration::from_nanos(until.saturating_sub(clock.now_ns()));
    // A clock that a test sets may change at any time.
    let most = match clock {
        Clock::System { .. } => MAX_SLEEP,
        Clock::Manual(_) => 4 * MIN_SLEEP,
    };
    (left >= MIN_SLEEP).then(|| left.min(most))
}

impl Worker {
    /// Whether every source lets the worker sleep, `idle_ns` after the last packet.
    pub(crate) fn may_sleep(&mut self, idle_ns: u64) -> bool {
        if !self.dispatch.handoff.is_empty() {
            return false;
        }
        let now_ns = self.clock.at(self.ended);
        let may = |node: &NodeId| self.slots[node.index()].body.may_sleep(now_ns, idle_ns);
        // Sources that are not polled do not keep the worker awake.
        let holders = &self.dispatch.holders;
        let stages = self.stages.iter().filter(|stage| holders.has(**stage));
        self.agenda.sources.iter().chain(stages).all(may)
    }

    /// Sleep until a condition is met. Returns at once when work is pending or `stop` is set.
    pub(crate) fn sleep(&mut self, rest: &mut WakeConditions, wakeup: &Wakeup, stop: &AtomicBool) {
        (rest.until_ns, _) = (None, rest.fds.clear());
        wakeup.asleep.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        self.reader.offline();
        let quiet = !stop.load(Ordering::SeqCst)
            && self.change_queues.pending.is_empty()
            && self.dispatch.handoff.is_empty();
        let mut armed = 0;
        let mut ready = quiet;
        while ready && armed < self.sources.len() {
            let node = self.sources[armed];
            ready = self.slots[node.index()].body.arm(rest);
            armed += 1;
        }
        for node in &self.stages {
            ready = ready && self.slots[node.index()].body.arm(rest);
        }
        if let (true, Some(span)) = (ready, sleep_time(rest, &self.clock)) {
            stats::add_relaxed(&self.channel.sleeps, 1);
            wait(rest, wakeup, span);
        }
        wakeup.asleep.store(false, Ordering::SeqCst);
        (self.ended, self.began) = (0, 0);
        // The condition that ended the sleep may concern any of the sources.
        self.agenda.call_all();
        for node in &self.sources[..armed] {
            self.slots[node.index()].body.wake();
        }
    }
}

fn wait(rest: &WakeConditions, wakeup: &Wakeup, span: Duration) {
    let span = Timespec {
        tv_sec: span.as_secs() as _,
        tv_nsec: i64::from(span.subsec_nanos()) as _,
    };
    let mut list = Vec::with_capacity(rest.fds.len() + 1);
    list.push(PollFd::new(&wakeup.fd, PollFlags::IN));
    list.extend(rest.fds.iter().map(|&fd| {
        // SAFETY: the source that added the descriptor keeps it open until its `wake` is called.
        let fd = unsafe { BorrowedFd::borrow_raw(fd) };
        PollFd::from_borrowed_fd(fd, PollFlags::IN)
    }));
    let _ = poll(&mut list, Some(&span));
    let _ = rustix::io::read(&wakeup.fd, &mut [0; 8]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_sleeps_are_not_worth_it_and_long_ones_are_cut() {
        let clock = Clock::system();
        let mut rest = WakeConditions::new();
        assert_eq!(sleep_time(&rest, &clock), Some(MAX_SLEEP));
        rest.wake_at(clock.now_ns() + 10_000_000_000);
        assert_eq!(sleep_time(&rest, &clock), Some(MAX_SLEEP));
        rest.wake_at(clock.now_ns() + 5_000_000);
        let five = sleep_time(&rest, &clock).unwrap();
        assert!(five < MAX_SLEEP && five > MIN_SLEEP);
        rest.wake_at(clock.now_ns() + 1000);
        rest.wake_at(clock.now_ns() + 7_000_000);
        assert_eq!(sleep_time(&rest, &clock), None, "the earliest counts");
    }
}
