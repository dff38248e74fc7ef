//! A thread that enqueues into two inboxes and a worker that reads them only after a notice, under every interleaving.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p volley-tables --release --test loom_notices`
#![cfg(loom)]

use loom::sync::atomic::{AtomicBool, Ordering::Relaxed};
use loom::thread;
use std::sync::Arc;
use volley_tables::notices::Notices;

/// The inboxes of two sources, each for one item.
#[derive(Default)]
struct Ways {
    inboxes: [Inbox; 2],
    notices: Notices,
}

struct Inbox(AtomicBool);

impl Default for Inbox {
    fn default() -> Self {
        Inbox(AtomicBool::new(false))
    }
}

/// A worker's rounds: inboxes are read after a notice, or when the last round found an item.
fn rounds(ways: &Ways, most: usize, seen: &mut u64, taken: &mut [bool; 2]) {
    for _ in 0..most {
        if ways.notices.is_news(seen) {
            for (inbox, taken) in ways.inboxes.iter().zip(taken.iter_mut()) {
                // No exchange: in loom's model a store of the other thread could come in between.
                if inbox.0.load(Relaxed) {
                    inbox.0.store(false, Relaxed);
                    *taken = true;
                }
            }
        }
        thread::yield_now();
    }
}

/// A source that is not polled any more is polled again after each notice: no item is left in an inbox.
#[test]
fn what_is_handed_over_is_found_after_its_notice() {
    loom::model(|| {
        let ways = Arc::new(Ways::default());
        let other = ways.clone();
        let control = thread::spawn(move || {
            for inbox in &other.inboxes {
                inbox.0.store(true, Relaxed);
                other.notices.post();
            }
        });
        let (mut seen, mut taken) = (0, [false; 2]);
        rounds(&ways, 2, &mut seen, &mut taken);
        control.join().unwrap();
        rounds(&ways, 1, &mut seen, &mut taken);
        assert_eq!(taken, [true, true]);
    });
}
