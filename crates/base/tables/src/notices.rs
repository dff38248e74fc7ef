//! Notices: one thread enqueues work in several queues or shared cells and posts a notice. The reader checks
//! one word, and checks the queues only after a notice.
//!
//! # Contract
//! [`Notices::post`] is called *after* the work was enqueued. A reader that calls [`Notices::is_news`] and then checks
//! all the queues misses nothing: either it finds the work, or the next call of `is_news` returns true. A check costs
//! the reader one load of a cache line that no thread writes meanwhile.

use crate::sync::{AtomicU64, Ordering};

/// The number of notices posted.
pub struct Notices(AtomicU64);

impl Default for Notices {
    fn default() -> Self {
        Notices(AtomicU64::new(0))
    }
}

impl Notices {
    /// Post a notice. Any thread may call this.
    pub fn post(&self) {
        // Releases the work that was enqueued before.
        self.0.fetch_add(1, Ordering::Release);
    }

    /// For the reader: whether a notice was posted since `seen`, which is updated.
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
