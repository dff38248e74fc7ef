//! The workers' view of an interface: slots for ring ends, which the control thread fills and empties.
//!
//! A worker claims a slot for one vector at a time. A peer cannot prolong a claim, so removing a ring waits for one
//! vector at most, and after the removal no thread accesses the peer's memory. Other delays of a worker (a debugger, a
//! page that is swapped in) do not block the control thread: after [`PATIENCE`] the ring stays in its slot, no worker
//! claims it again, and it is removed once the worker has released it ([`VhostPort::is_clear`]).

use crate::device::{End, Notification, Packed, Split};
use crate::driver::{PackedDriver, SplitDriver};
use crate::fault::{Fault, RingFault};
use crate::memory::Memory;
use crate::ring::{Claim, Guarded};
use arc_swap::ArcSwap;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, Ordering::Relaxed, fence,
};
use std::time::{Duration, Instant};
use volley_graph::WakeConditions;
use volley_iface::{IfIdx, RxQueueOwner};
use volley_shm::Event;

/// Maximum number of queue pairs of an interface.
pub const MAX_PAIRS: usize = 16;

/// Maximum time that the control thread waits for a worker.
pub const PATIENCE: Duration = Duration::from_millis(200);

/// A worker holds a ring for longer than [`PATIENCE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stuck;

impl From<Stuck> for Fault {
    fn from(_: Stuck) -> Fault {
        let text = format!(
            "a worker has kept a ring for {} ms: see `show workers`",
            PATIENCE.as_millis()
        );
        Fault::new("worker-stuck", text)
    }
}

/// A ring end of any type.
pub enum Ring {
    /// A guest's split ring.
    Split(Split),
    /// A guest's packed ring.
    Packed(Packed),
    /// A split ring of the driver, served by a back end.
    SplitDriver(SplitDriver),
    /// A packed ring of the driver, served by a back end.
    PackedDriver(PackedDriver),
}

/// Evaluate an expression with the ring end, whatever its type.
#[macro_export]
macro_rules! with_ring {
    ($ring:expr, $end:ident => $body:expr) => {
        match $ring {
            $crate::wire::Ring::Split($end) => $body,
            $crate::wire::Ring::Packed($end) => $body,
            $crate::wire::Ring::SplitDriver($end) => $body,
            $crate::wire::Ring::PackedDriver($end) => $body,
        }
    };
}

/// A ring end with the resources that it needs.
pub struct Running {
    /// The ring.
    pub ring: Ring,
    /// The memory that contains the ring.
    pub memory: Arc<Memory>,
    /// Eventfd that notifies the other side of buffers.
    pub call: Option<Arc<Event>>,
    /// Eventfd by which the other side notifies this end, if it has one.
    pub alarm: Option<Arc<Event>>,
}

impl Running {
    /// Notifies the other side.
    #[cold]
    pub fn notify(call: &Option<Arc<Event>>) {
        if let Some(call) = call {
            call.signal();
        }
    }
}

/// Counters of a slot, each written by the worker that holds the claim.
#[derive(Default)]
pub struct RingCounters {
    /// Packets passed.
    pub packets: AtomicU64,
    /// Notifications sent to the other side.
    pub notifications_sent: AtomicU64,
}

/// A slot for a ring end.
#[derive(Default)]
#[repr(align(64))]
pub struct RingSlot {
    live: AtomicBool,
    end: Guarded<Option<Running>>,
    /// Counters.
    pub counts: RingCounters,
}

#[inline(always)]
fn bump(cell: &AtomicU64, by: u64) {
    cell.store(cell.load(Relaxed).wrapping_add(by), Relaxed);
}

impl RingSlot {
    /// Whether the slot has a working ring.
    #[inline(always)]
    pub fn is_live(&self) -> bool {
        self.live.load(Relaxed)
    }

    /// The ring, unless the slot is empty or another thread holds it.
    #[inline(always)]
    pub fn claim(&self) -> Option<Claim<'_, Option<Running>>> {
        if self.is_live() {
            self.end.claim()
        } else {
            None
        }
    }

    /// Replace the slot's ring and return the previous one. Waits for a worker until `until`.
    pub fn put(&self, end: Option<Running>, until: Instant) -> Result<Option<Running>, Stuck> {
        // From here on no worker claims the present ring.
        self.live.store(false, Relaxed);
        let mut claim = self.end.wait(until).ok_or(Stuck)?;
        self.live.store(end.is_some(), Relaxed);
        Ok(std::mem::replace(&mut *claim, end))
    }

    /// Count packets, and a notification if one was sent.
    #[inline(always)]
    pub fn count(&self, packets: usize, reported: bool) {
        bump(&self.counts.packets, packets as u64);
        bump(&self.counts.notifications_sent, u64::from(reported));
    }
}

/// An interface.
pub struct VhostPort {
    /// Index of the interface.
    pub interface: IfIdx,
    /// Receive rings by queue.
    pub rx: [RingSlot; MAX_PAIRS],
    /// Transmit rings by queue.
    pub tx: [RingSlot; MAX_PAIRS],
    /// The worker of each receive queue.
    pub places: [RxQueueOwner; MAX_PAIRS],
    /// Number of slots that can have a ring.
    pub pairs: AtomicUsize,
    /// Packets have offload requests in both directions.
    pub offloads: AtomicBool,
    fault: AtomicU32,
    /// A ring that was to be removed is still in its slot.
    stuck: AtomicBool,
}

impl VhostPort {
    /// An interface without rings.
    pub fn new(interface: IfIdx) -> Arc<VhostPort> {
        Arc::new(VhostPort {
            interface,
            rx: Default::default(),
            tx: Default::default(),
            places: Default::default(),
            pairs: AtomicUsize::new(0),
            offloads: AtomicBool::new(false),
            fault: AtomicU32::new(0),
            stuck: AtomicBool::new(false),
        })
    }

    /// Record a fault that a worker found in `lane` and disable the slot.
    #[cold]
    pub fn fail(&self, lane: &RingSlot, fault: RingFault) {
        lane.live.store(false, Relaxed);
        let _ = self
            .fault
            .compare_exchange(0, fault as u32 + 1, Relaxed, Relaxed);
    }

    /// Take the fault that a worker found; later calls return `None`.
    pub fn take_fault(&self) -> Option<RingFault> {
        let number = self.fault.swap(0, Relaxed);
        RingFault::of(number.checked_sub(1)?)
    }

    /// Owners of the queues that may be polled.
    pub fn in_service(&self) -> impl Iterator<Item = &RxQueueOwner> {
        self.places.iter().take(self.pairs.load(Relaxed))
    }

    /// Whether `worker` owns a queue or is to own one. Queues that are not in service yet count: the peer enables them
    /// without notice.
    pub fn is_for(&self, worker: usize) -> bool {
        self.places.iter().any(|place| place.is_for(worker))
    }

    /// Remove all rings. Rings that a worker holds for longer than [`PATIENCE`] stay in their slots and are not used
    /// again.
    pub fn clear(&self) {
        self.take_out(Instant::now() + PATIENCE);
    }

    fn take_out(&self, until: Instant) {
        self.pairs.store(0, Relaxed);
        let lanes = self.rx.iter().chain(&self.tx);
        let stuck = lanes.filter(|lane| lane.put(None, until).is_err()).count();
        self.stuck.store(stuck > 0, Relaxed);
        self.fault.store(0, Relaxed);
    }

    /// Whether all rings that were to be removed are removed. Tries again without waiting.
    pub fn is_clear(&self) -> bool {
        if self.stuck.load(Relaxed) {
            self.take_out(Instant::now());
        }
        !self.stuck.load(Relaxed)
    }
}

/// Interfaces that are polled.
pub type VhostPorts = Vec<Arc<VhostPort>>;
/// The shared list through which workers see the interfaces.
pub type List = Arc<ArcSwap<VhostPorts>>;

/// The control thread's access to a list.
pub struct PortList {
    list: List,
    /// Lists that a worker may still use. The control thread frees them, not the last worker.
    old: Vec<Arc<VhostPorts>>,
}

impl PortList {
    /// Access to this list.
    pub fn new(list: List) -> Self {
        PortList {
            list,
            old: Vec::new(),
        }
    }

    /// Publish these interfaces to the workers. The caller wakes the workers afterwards.
    pub fn show(&mut self, wires: VhostPorts) {
        self.old.push(self.list.swap(Arc::new(wires)));
    }

    /// Free the lists that no worker uses any more.
    pub fn reap(&mut self) {
        self.old.retain(|list| Arc::strong_count(list) > 1);
    }
}

/// Eventfds that wake a sleeping worker. They stay open during the sleep, even if their rings are removed.
pub struct Alarms(Vec<Arc<Event>>);

impl Default for Alarms {
    fn default() -> Self {
        Alarms(Vec::with_capacity(1024))
    }
}

impl Alarms {
    /// Enable or suppresses notifications of each ring that `worker` receives from. False if a ring cannot notify, has
    /// packets, or is to move to another worker.
    pub fn listen(&mut self, wires: &VhostPorts, worker: usize, wanted: Notification) -> bool {
        let mut all = true;
        for wire in wires {
            let lanes = wire.rx.iter().enumerate();
            all &= !wire.in_service().any(|place| place.involves(worker));
            let mine = |q: usize| wire.places[q].current() == worker;
            for (_, lane) in lanes.filter(|(q, l)| mine(*q) && l.is_live()) {
                all &= self.lane(lane, wanted);
            }
        }
        all
    }

    fn lane(&mut self, lane: &RingSlot, wanted: Notification) -> bool {
        let Some(mut claim) = lane.claim() else {
            return false;
        };
        let Some(Running {
            ring,
            memory,
            alarm,
            ..
        }) = &mut *claim
        else {
            return true;
        };
        let quiet = crate::with_ring!(ring, end => {
            end.listen(memory, wanted);
            // The other side adds a packet and then checks whether to notify; this end requests notifications and then
            // checks for packets.
            fence(Ordering::SeqCst);
            !end.waits(memory)
        });
        let room = self.0.len() < self.0.capacity();
        match (wanted, alarm) {
            (Notification::On, Some(alarm)) if room => self.0.push(alarm.clone()),
            (Notification::On, _) => return false,
            (Notification::Off, _) => {}
        }
        quiet
    }

    /// Add the eventfds to the sleep's wake conditions. False if there are too many.
    pub fn arm(&self, rest: &mut WakeConditions) -> bool {
        self.0.iter().all(|alarm| rest.add_fd(alarm.as_fd()))
    }

    /// Reset and forget the eventfds after the sleep.
    pub fn calm(&mut self) {
        // The last reference to the eventfd of a removed ring is closed here; this costs a system call, as the sleep did.
        self.0.drain(..).for_each(|alarm| _ = alarm.clear());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_that_keeps_a_ring_keeps_nothing_else() {
        let wire = VhostPort::new(IfIdx(1));
        let lane = &wire.rx[0];
        let claim = lane.end.claim().unwrap();
        lane.live.store(true, Relaxed);
        let start = Instant::now();
        wire.clear();
        assert!(start.elapsed() < 4 * PATIENCE, "one limit for all lanes");
        assert!(!wire.is_clear() && !lane.is_live());
        assert_eq!(lane.put(None, Instant::now()).err(), Some(Stuck));
        drop(claim);
        assert!(wire.is_clear() && lane.claim().is_none());
    }
}
