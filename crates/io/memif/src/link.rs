//! A connection as workers see it: rings and eventfds, in use until every worker has released it.

use crate::fault::Fault;
use crate::ring::{Memory, Rx, Tx};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use volley_iface::RxQueueOwner;
use volley_shm::Event;

/// A receive ring.
pub struct RxQueue {
    /// The ring.
    pub rx: Rx,
    /// Eventfd that the peer signals when it has sent packets.
    pub wakeup: Event,
    /// The worker that polls the ring.
    pub place: RxQueueOwner,
}

/// A transmit ring.
pub struct TxQueue {
    tx: Tx,
    wakeup: Event,
    /// A worker is writing into the ring.
    taken: AtomicBool,
}

/// The rings of one connection.
pub struct ConnectionRings {
    memory: Arc<Memory>,
    rx: Vec<RxQueue>,
    tx: Vec<TxQueue>,
    fault: AtomicU64,
    /// Number of wake-ups sent to the peer.
    wakeups_sent: AtomicU64,
}

/// The exclusive right to write into a queue, until it is dropped.
pub struct TxGuard<'a> {
    queue: &'a TxQueue,
}

impl RxQueue {
    /// A queue that no worker polls yet.
    pub fn new(rx: Rx, wakeup: Event) -> Self {
        let place = RxQueueOwner::default();
        RxQueue { rx, wakeup, place }
    }
}

impl TxQueue {
    /// A queue that no worker uses yet.
    pub fn new(tx: Tx, wakeup: Event) -> Self {
        let taken = AtomicBool::new(false);
        TxQueue { tx, wakeup, taken }
    }

    /// Number of descriptors of the ring.
    pub fn slots(&self) -> u16 {
        self.tx.slots()
    }

    /// The right to write; `None` if another worker holds it for long.
    #[inline(always)]
    pub fn turn(&self) -> Option<TxGuard<'_>> {
        for _ in 0..1000 {
            if !self.taken.swap(true, Ordering::Acquire) {
                return Some(TxGuard { queue: self });
            }
            std::hint::spin_loop();
        }
        None
    }
}

impl TxGuard<'_> {
    /// The ring.
    #[inline(always)]
    pub fn tx(&self) -> &Tx {
        &self.queue.tx
    }
}

impl Drop for TxGuard<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.queue.taken.store(false, Ordering::Release);
    }
}

impl ConnectionRings {
    /// A connection without faults.
    pub fn new(memory: Arc<Memory>, rx: Vec<RxQueue>, tx: Vec<TxQueue>) -> Arc<ConnectionRings> {
        Arc::new(ConnectionRings {
            memory,
            rx,
            tx,
            fault: AtomicU64::new(0),
            wakeups_sent: AtomicU64::new(0),
        })
    }

    /// Receive rings.
    #[inline(always)]
    pub fn rx(&self) -> &[RxQueue] {
        &self.rx
    }

    /// Transmit rings.
    #[inline(always)]
    pub fn tx(&self) -> &[TxQueue] {
        &self.tx
    }

    /// The shared memory.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Whether the peer caused a fault. Workers do not use the rings then.
    #[inline(always)]
    pub fn is_faulty(&self) -> bool {
        self.fault.load(Ordering::Relaxed) != 0
    }

    /// Record a fault; the first one is kept.
    #[cold]
    pub fn blame(&self, fault: Fault) {
        let word = fault.to_word();
        let _ = self
            .fault
            .compare_exchange(0, word, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Description of the peer's fault, if there is one.
    pub fn fault(&self) -> Option<String> {
        let faulty = Fault::of_word(self.fault.load(Ordering::Relaxed));
        let broken = self.memory.broken();
        let region = broken.map(|(region, what)| format!("region {region} {what}"));
        // A region replaced by zeros also causes other faults: report the cause first.
        let found = region.or_else(|| faulty.map(|fault| fault.to_string()));
        let blocked = || {
            let stuck = self.tx.iter().position(|queue| queue.wakeup.is_stuck())?;
            Some(format!(
                "the interrupt eventfd of queue {stuck} is full, so that a write blocks"
            ))
        };
        found.or_else(blocked)
    }

    /// Wake the peer's reader of queue `queue`.
    #[inline(never)]
    pub fn ring_wakeup(&self, queue: usize) {
        if let Some(queue) = self.tx.get(queue) {
            queue.wakeup.signal();
            self.wakeups_sent.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Number of wake-ups sent to the peer.
    pub fn wakeups_sent(&self) -> u64 {
        self.wakeups_sent.load(Ordering::Relaxed)
    }
}
