//! What workers know of an interface: ring ends in lanes, which the control thread puts in and takes out.
//!
//! A lane is claimed by a worker for one vector at a time. Nothing a peer does keeps a lane claimed, so taking a ring out
//! waits for one vector at most, and once it is out nobody touches the peer's memory any more. What else may keep a worker
//! (a debugger, a page that comes back from swap) does not keep the control thread: after [`PATIENCE`] the ring stays in,
//! no worker begins with it any more, and it is taken out once the worker has let go of it ([`VhostPort::is_clear`]).

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

/// The most queue pairs of an interface.
pub const MAX_PAIRS: usize = 16;

/// How long the control thread waits for a worker.
pub const PATIENCE: Duration = Duration::from_millis(200);

/// A worker keeps a ring for longer than [`PATIENCE`].
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

/// A ring end of any kind.
pub enum Ring {
    /// A guest's split ring.
    Split(Split),
    /// A guest's packed ring.
    Packed(Packed),
    /// Our own split ring, served by a back end.
    SplitDriver(SplitDriver),
    /// Our own packed ring, served by a back end.
    PackedDriver(PackedDriver),
}

/// Run an expression with the ring end of whichever kind.
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

/// A ring end with what it needs to run.
pub struct Running {
    /// The ring.
    pub ring: Ring,
    /// The memory that it lies in.
    pub memory: Arc<Memory>,
    /// How the other side is told of buffers.
    pub bell: Option<Arc<Event>>,
    /// How the other side tells us, when it can.
    pub alarm: Option<Arc<Event>>,
}

impl Running {
    /// Tell the other side.
    #[cold]
    pub fn ring_bell(bell: &Option<Arc<Event>>) {
        if let Some(bell) = bell {
            bell.signal();
        }
    }
}

/// Counters of a lane, each written by the worker that has it.
#[derive(Default)]
pub struct RingCounters {
    /// Packets passed.
    pub packets: AtomicU64,
    /// Times the other side was told.
    pub notifications_sent: AtomicU64,
}

/// A place for a ring end.
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
    /// Whether there is a ring that works.
    #[inline(always)]
    pub fn is_live(&self) -> bool {
        self.live.load(Relaxed)
    }

    /// The ring, unless there is none or somebody has it.
    #[inline(always)]
    pub fn claim(&self) -> Option<Claim<'_, Option<Running>>> {
        if self.is_live() {
            self.end.claim()
        } else {
            None
        }
    }

    /// Put a ring in, or take it out; what was there. Waits for a worker until `until`.
    pub fn put(&self, end: Option<Running>, until: Instant) -> Result<Option<Running>, Stuck> {
        // No worker begins with what is there.
        self.live.store(false, Relaxed);
        let mut claim = self.end.wait(until).ok_or(Stuck)?;
        self.live.store(end.is_some(), Relaxed);
        Ok(std::mem::replace(&mut *claim, end))
    }

    /// Count packets, and whether the other side was told.
    #[inline(always)]
    pub fn count(&self, packets: usize, told: bool) {
        bump(&self.counts.packets, packets as u64);
        bump(&self.counts.notifications_sent, u64::from(told));
    }
}

/// An interface.
pub struct VhostPort {
    /// Its number.
    pub interface: IfIdx,
    /// Rings that we receive from, by queue.
    pub rx: [RingSlot; MAX_PAIRS],
    /// Rings that we send to, by queue.
    pub tx: [RingSlot; MAX_PAIRS],
    /// The worker of each queue that we receive from.
    pub places: [RxQueueOwner; MAX_PAIRS],
    /// Lanes that can be live.
    pub pairs: AtomicUsize,
    /// Packets carry offload requests both ways.
    pub offloads: AtomicBool,
    fault: AtomicU32,
    /// A ring that was to be taken out is still in.
    stuck: AtomicBool,
}

impl VhostPort {
    /// Without rings.
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

    /// A worker has found something wrong in `lane`: nobody touches it any more.
    #[cold]
    pub fn fail(&self, lane: &RingSlot, fault: RingFault) {
        lane.live.store(false, Relaxed);
        let _ = self
            .fault
            .compare_exchange(0, fault as u32 + 1, Relaxed, Relaxed);
    }

    /// What a worker has found, once.
    pub fn take_fault(&self) -> Option<RingFault> {
        let number = self.fault.swap(0, Relaxed);
        RingFault::of(number.checked_sub(1)?)
    }

    /// Places of queues that may be polled.
    pub fn in_service(&self) -> impl Iterator<Item = &RxQueueOwner> {
        self.places.iter().take(self.pairs.load(Relaxed))
    }

    /// Whether a queue is with `worker`, or is to be. Queues that are not in service yet count: the peer enables them without
    /// a notice.
    pub fn is_for(&self, worker: usize) -> bool {
        self.places.iter().any(|place| place.is_for(worker))
    }

    /// Take all rings out. Those that a worker keeps for longer than [`PATIENCE`] stay in, and no worker uses them again.
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

    /// Whether no ring is left that was to be taken out. Tries again without waiting.
    pub fn is_clear(&self) -> bool {
        if self.stuck.load(Relaxed) {
            self.take_out(Instant::now());
        }
        !self.stuck.load(Relaxed)
    }
}

/// Interfaces that are polled.
pub type VhostPorts = Vec<Arc<VhostPort>>;
/// The way they come to workers.
pub type List = Arc<ArcSwap<VhostPorts>>;

/// The control thread's hand on a list.
pub struct PortList {
    list: List,
    /// Lists that a worker may still have: freed here, and not by the worker that has one last.
    old: Vec<Arc<VhostPorts>>,
}

impl PortList {
    /// Of this list.
    pub fn new(list: List) -> Self {
        PortList {
            list,
            old: Vec::new(),
        }
    }

    /// Let workers see these interfaces. They are to be woken then.
    pub fn show(&mut self, wires: VhostPorts) {
        self.old.push(self.list.swap(Arc::new(wires)));
    }

    /// Free the lists that no worker has any more.
    pub fn reap(&mut self) {
        self.old.retain(|list| Arc::strong_count(list) > 1);
    }
}

/// What wakes a worker that sleeps. Kept open while it does, whatever becomes of the rings.
pub struct Alarms(Vec<Arc<Event>>);

impl Default for Alarms {
    fn default() -> Self {
        Alarms(Vec::with_capacity(1024))
    }
}

impl Alarms {
    /// Say to each ring that `worker` receives from whether to ring. False when one cannot, has something, or is to go to
    /// another worker.
    pub fn listen(&mut self, wires: &VhostPorts, worker: usize, bell: Notification) -> bool {
        let mut all = true;
        for wire in wires {
            let lanes = wire.rx.iter().enumerate();
            all &= !wire.in_service().any(|place| place.involves(worker));
            let mine = |q: usize| wire.places[q].current() == worker;
            for (_, lane) in lanes.filter(|(q, l)| mine(*q) && l.is_live()) {
                all &= self.lane(lane, bell);
            }
        }
        all
    }

    fn lane(&mut self, lane: &RingSlot, bell: Notification) -> bool {
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
            end.listen(memory, bell);
            // The other side puts a packet in and then looks whether to ring; we ask for it and then look for packets.
            fence(Ordering::SeqCst);
            !end.waits(memory)
        });
        let room = self.0.len() < self.0.capacity();
        match (bell, alarm) {
            (Notification::On, Some(alarm)) if room => self.0.push(alarm.clone()),
            (Notification::On, _) => return false,
            (Notification::Off, _) => {}
        }
        quiet
    }

    /// Let them end the sleep. False when there are too many.
    pub fn arm(&self, rest: &mut WakeConditions) -> bool {
        self.0.iter().all(|alarm| rest.add_fd(alarm.as_fd()))
    }

    /// Awake: set them back and forget them.
    pub fn calm(&mut self) {
        // The last one of a ring that has gone is closed here; that is a system call, as the sleep was.
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
