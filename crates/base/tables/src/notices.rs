//! Notices: one thread hands things over by several ways (queues, shared cells) and posts a notice; the other one looks at a
//! single word, and at the ways only when there is news.
//!
//! # Contract
//! [`Notices::post`] is called *after* the thing was handed over. A reader that calls [`Notices::is_news`] and then looks at
//! all the ways misses nothing: either the look finds the thing, or the next call of `is_news` is true. It costs the reader
//! one load of a line that no thread writes meanwhile.

use crate::sync::{AtomicU64, Ordering};

/// How many notices were posted.
pub struct Notices(AtomicU64);

impl Default for Notices {
    fn default() -> Self {
        Notices(AtomicU64::new(0))
    }
}

impl Notices {
    /// Any thread: something was handed over.
    pub fn post(&self) {
        // Releases what was handed over before.
        self.0.fetch_add(1, Ordering::Release);
    }

    /// The reader: whether a notice was posted since `seen` was brought up to date, which is done here.
    #[inline(always)]
    pub fn is_news(&self, seen: &mut u64) -> bool {
        let now = self.0.load(Ordering::Acquire);
        let news = now != *seen;
        *seen = now;
        news
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn news_once_for_all_notices_so_far() {
        let (notices, mut seen) = (Notices::default(), 0);
        assert!(!notices.is_news(&mut seen));
        notices.post();
        notices.post();
        assert!(notices.is_news(&mut seen) && !notices.is_news(&mut seen));
    }
}
