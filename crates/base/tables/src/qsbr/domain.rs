//! Grace periods: the readers, their progress, and the values that wait to be dropped.

// tidy: allow(Mutex) guards registration and retired values: writers and starting workers only
use std::any::Any;
use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::Arc;

use crate::sync::{AtomicU64, Mutex, Ordering, fence, lock};

/// Slot value of a reader without references.
const OFFLINE: u64 = 0;

/// One reader's progress, on separate cache lines (128 bytes: the adjacent-line prefetcher pairs lines).
#[repr(align(128))]
struct Slot {
    /// The newest epoch the reader has seen at a quiescent point, or `OFFLINE`.
    seen: AtomicU64,
}

struct Retired {
    ticket: u64,
    _value: Box<dyn Any + Send>,
}

/// The readers of one daemon, and the values that wait for them.
///
/// While there is no reader, a retired value is dropped at once. At the end of a daemon no thread calls
/// [`Domain::reclaim`], and values may contain references to this domain, which would keep both alive for ever.
pub struct Domain {
    epoch: AtomicU64,
    /// A lower bound of the epochs that every reader has passed, to answer repeated queries without a scan.
    safe: AtomicU64,
    readers: Mutex<Vec<Arc<Slot>>>,
    retired: Mutex<VecDeque<Retired>>,
}

impl Domain {
    /// A domain without readers.
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            epoch: AtomicU64::new(1),
            safe: AtomicU64::new(1),
            readers: Mutex::new(Vec::new()),
            retired: Mutex::new(VecDeque::new()),
        })
    }

    /// Adds a reader, online. Takes a lock: call it at the start of a worker.
    pub fn register(self: &Arc<Self>) -> Reader {
        let slot = Arc::new(Slot {
            seen: AtomicU64::new(OFFLINE),
        });
        lock(&self.readers).push(slot.clone());
        let reader = Reader {
            domain: self.clone(),
            slot,
            online: Cell::new(false),
        };
        reader.enter();
        reader
    }

    /// Advances the epoch and returns the ticket of everything that was published before this call.
    pub fn epoch(&self) -> u64 {
        self.epoch.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// Whether every online reader has been quiescent since `ticket` was issued.
    pub fn passed(&self, ticket: u64) -> bool {
        self.safe.load(Ordering::Acquire) >= ticket || self.oldest() >= ticket
    }

    /// Keeps `value` until every reader has passed, then drops it in [`Domain::reclaim`].
    /// The value must already be unreachable for new readers. Returns the ticket it waits for.
    pub fn retire(&self, value: Box<dyn Any + Send>) -> u64 {
        let mut retired = lock(&self.retired);
        // The lock keeps the queue in ticket order.
        let ticket = self.epoch();
        retired.push_back(Retired {
            ticket,
            _value: value,
        });
        drop(retired);
        self.if_deserted();
        ticket
    }

    /// Drops all waiting values if there is no reader.
    fn if_deserted(&self) {
        // A dropped value may retire others; this ends because values are finite.
        while lock(&self.readers).is_empty() && self.reclaim() > 0 {}
    }

    /// Runs `f` in [`Domain::reclaim`] after every reader has passed. Returns the ticket it waits for.
    pub fn defer(&self, f: impl FnOnce() + Send + 'static) -> u64 {
        self.retire(Box::new(RunOnDrop(Some(f))))
    }

    /// Drops, on this thread, all values that no reader can access any more; returns their number.
    pub fn reclaim(&self) -> usize {
        let safe = self.oldest();
        let ready: Vec<Retired> = {
            let mut retired = lock(&self.retired);
            let n = retired.partition_point(|r| r.ticket <= safe);
            retired.drain(..n).collect()
        };
        // Dropped outside the lock: a value's own drop may retire others.
        ready.len()
    }

    /// The number of values that wait to be dropped.
    pub fn retired(&self) -> usize {
        lock(&self.retired).len()
    }

    /// The newest epoch that every online reader has seen.
    fn oldest(&self) -> u64 {
        let now = self.epoch.load(Ordering::Acquire);
        // Pairs with the fence in `Reader::enter`: either this thread sees that reader online, or the reader sees
        // everything published before this point.
        fence(Ordering::SeqCst);
        let oldest = lock(&self.readers)
            .iter()
            .map(|slot| slot.seen.load(Ordering::Acquire))
            .filter(|&seen| seen != OFFLINE)
            .fold(now, u64::min);
        self.safe.fetch_max(oldest, Ordering::AcqRel);
        oldest
    }
}

struct RunOnDrop<F: FnOnce()>(Option<F>);

impl<F: FnOnce()> Drop for RunOnDrop<F> {
    fn drop(&mut self) {
        if let Some(f) = self.0.take() {
            f();
        }
    }
}

/// One worker's membership in a [`Domain`]. Can move to the worker's thread, not be shared.
pub struct Reader {
    pub(super) domain: Arc<Domain>,
    slot: Arc<Slot>,
    /// The state of `slot`, for this thread; the `Cell` also prevents that a `Reader` is shared.
    online: Cell<bool>,
}

impl Reader {
    /// Permission to read published values, as long as this reader is not quiescent.
    /// Brings an offline reader online.
    #[inline]
    pub fn guard(&self) -> Guard<'_> {
        if !self.online.get() {
            self.enter();
        }
        Guard(self)
    }

    /// Declares that this reader has no references to values that it read before. Called once per worker loop.
    #[inline]
    pub fn quiescent(&mut self) {
        if self.online.get() {
            let now = self.domain.epoch.load(Ordering::Acquire);
            self.slot.seen.store(now, Ordering::Release);
        }
    }

    /// Goes offline: no grace period waits for this reader until it is online again.
    pub fn offline(&mut self) {
        self.online.set(false);
        self.slot.seen.store(OFFLINE, Ordering::Release);
    }

    /// Goes online again.
    pub fn online(&mut self) {
        if !self.online.get() {
            self.enter();
        }
    }

    /// The domain this reader belongs to.
    pub fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    #[cold]
    fn enter(&self) {
        let now = self.domain.epoch.load(Ordering::Acquire);
        self.slot.seen.store(now, Ordering::Release);
        // Pairs with the fence in `Domain::oldest`.
        fence(Ordering::SeqCst);
        self.online.set(true);
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.slot.seen.store(OFFLINE, Ordering::Release);
        lock(&self.domain.readers).retain(|slot| !Arc::ptr_eq(slot, &self.slot));
        self.domain.if_deserted();
    }
}

/// Proof that a [`Reader`] is online and not quiescent for `'a`.
#[derive(Clone, Copy)]
pub struct Guard<'a>(&'a Reader);

impl Guard<'_> {
    /// The domain whose values this guard protects.
    #[inline]
    pub(super) fn domain(&self) -> &Arc<Domain> {
        &self.0.domain
    }
}
