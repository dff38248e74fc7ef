//! Rate limits: the records of one class (a call site and an interface) pass a token bucket. Suppressed records are counted,
//! and one record reports their number later.

use crate::record::LogLevel;
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};
use tracing_core::callsite::Identifier;

/// The number of records of a class that may be logged at once.
pub(crate) const BURST: u32 = 100;
/// The time after which one more is allowed.
const REFILL: Duration = Duration::from_millis(100);
/// The time from the first suppressed record to the report of all of them.
pub(crate) const REPORT: Duration = Duration::from_secs(5);
/// The maximum number of classes that are distinguished by interface; further ones share the bucket of their call site.
const CLASSES: usize = 1024;

/// A record without a number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Draft {
    pub level: LogLevel,
    pub module: &'static str,
    pub message: String,
    pub fields: BTreeMap<String, String>,
}

/// Whether a record may pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Pass,
    Suppress,
}

struct Bucket {
    tokens: u32,
    at: Instant,
    suppressed: u64,
    since: Instant,
    last: Draft,
}

impl Bucket {
    fn new(now: Instant) -> Bucket {
        Bucket {
            tokens: BURST,
            at: now,
            suppressed: 0,
            since: now,
            last: Draft::default(),
        }
    }

    fn refill(&mut self, now: Instant) {
        let spans = now.saturating_duration_since(self.at).as_millis() / REFILL.as_millis();
        let spans = u32::try_from(spans).unwrap_or(u32::MAX);
        self.at += REFILL.saturating_mul(spans);
        self.tokens = self.tokens.saturating_add(spans).min(BURST);
    }
}

#[derive(Default)]
pub(crate) struct Limiter {
    classes: HashMap<(Identifier, String), Bucket>,
    /// The number of classes with suppressed records.
    waiting: usize,
}

impl Limiter {
    pub fn judge(&mut self, site: Identifier, draft: &Draft, now: Instant) -> Verdict {
        let interface = draft.fields.get("interface").cloned();
        let mut class = (site, interface.unwrap_or_default());
        if self.classes.len() >= CLASSES && !self.classes.contains_key(&class) {
            self.classes.retain(|_, bucket| {
                bucket.refill(now);
                bucket.suppressed > 0 || bucket.tokens < BURST
            });
            if self.classes.len() >= CLASSES {
                class.1.clear();
            }
        }
        let bucket = self
            .classes
            .entry(class)
            .or_insert_with(|| Bucket::new(now));
        bucket.refill(now);
        if bucket.tokens > 0 {
            bucket.tokens -= 1;
            return Verdict::Pass;
        }
        if bucket.suppressed == 0 {
            bucket.since = now;
            self.waiting += 1;
        }
        bucket.suppressed += 1;
        bucket.last.clone_from(draft);
        Verdict::Suppress
    }

    /// Whether a report of suppressed records is pending.
    pub fn is_waiting(&self) -> bool {
        self.waiting > 0
    }

    /// The reports that are due.
    pub fn due(&mut self, now: Instant) -> Vec<Draft> {
        let mut reports = Vec::new();
        if self.waiting == 0 {
            return reports;
        }
        for bucket in self.classes.values_mut() {
            let waited = now.saturating_duration_since(bucket.since);
            if bucket.suppressed == 0 || waited < REPORT {
                continue;
            }
            let last = std::mem::take(&mut bucket.last);
            let message = format!(
                "{} more records such as the following were suppressed in {} s: {}",
                bucket.suppressed,
                waited.as_secs(),
                last.message
            );
            bucket.suppressed = 0;
            self.waiting -= 1;
            reports.push(Draft { message, ..last });
        }
        reports
    }
}
