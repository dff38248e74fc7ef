//! What workers know of an interface: ring ends in lanes, which the control thread puts in and takes out.
//!
//! A lane is claimed by a worker for one vector at a time. Nothing a peer does keeps a lane claimed, so taking a ring out
//! waits for one vector at most, and once it is out nobody touches the peer's memory any more.

use crate::device::{Packed, Split};
use crate::driver::{PackedDriver, SplitDriver};
use crate::fault::RingFault;
use crate::memory::Memory;
use crate::ring::{Claim, Guarded};
use crate::sys;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use volley_iface::IfIdx;

/// The most queue pairs of an interface.
pub const MAX_PAIRS: usize = 16;

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
    pub bell: Option<OwnedFd>,
}

impl Running {
    /// Tell the other side.
    #[cold]
    pub fn ring_bell(bell: &Option<OwnedFd>) {
        if let Some(bell) = bell {
            sys::signal(bell.as_fd());
        }
    }
}

/// Counters of a lane, each written by the worker that has it.
#[derive(Default)]
pub struct LaneCounts {
    /// Packets passed.
    pub packets: AtomicU64,
    /// Times the other side was told.
    pub bells: AtomicU64,
}

/// A place for a ring end.
#[derive(Default)]
#[repr(align(64))]
pub struct Lane {
    live: AtomicBool,
    end: Guarded<Option<Running>>,
    /// Counters.
    pub counts: LaneCounts,
}

#[inline(always)]
fn bump(cell: &AtomicU64, by: u64) {
    cell.store(cell.load(Relaxed).wrapping_add(by), Relaxed);
}

impl Lane {
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

    /// Put a ring in, or take it out; what was there.
    pub fn put(&self, end: Option<Running>) -> Option<Running> {
        let mut claim = self.end.wait();
        self.live.store(end.is_some(), Relaxed);
        std::mem::replace(&mut *claim, end)
    }

    /// Count packets, and whether the other side was told.
    #[inline(always)]
    pub fn count(&self, packets: usize, told: bool) {
        bump(&self.counts.packets, packets as u64);
        bump(&self.counts.bells, u64::from(told));
    }
}

/// An interface.
pub struct Wire {
    /// Its number.
    pub interface: IfIdx,
    /// Rings that we receive from, by queue.
    pub rx: [Lane; MAX_PAIRS],
    /// Rings that we send to, by queue.
    pub tx: [Lane; MAX_PAIRS],
    /// Lanes that can be live.
    pub pairs: AtomicUsize,
    /// Packets carry offload requests both ways.
    pub offloads: AtomicBool,
    fault: AtomicU32,
}

impl Wire {
    /// Without rings.
    pub fn new(interface: IfIdx) -> Arc<Wire> {
        Arc::new(Wire {
            interface,
            rx: Default::default(),
            tx: Default::default(),
            pairs: AtomicUsize::new(0),
            offloads: AtomicBool::new(false),
            fault: AtomicU32::new(0),
        })
    }

    /// A worker has found something wrong in `lane`: nobody touches it any more.
    #[cold]
    pub fn fail(&self, lane: &Lane, fault: RingFault) {
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

    /// Take all rings out.
    pub fn clear(&self) {
        self.pairs.store(0, Relaxed);
        for lane in self.rx.iter().chain(&self.tx) {
            lane.put(None);
        }
        self.fault.store(0, Relaxed);
    }
}
