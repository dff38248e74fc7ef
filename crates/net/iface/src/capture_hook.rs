//! The hook for captures: it is called for packets that pass an interface or are dropped.

use crate::{Direction, IfTable};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use volley_graph::{DropHook, PacketView};

/// Where a hook captures packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CapturePoint {
    /// Packets that pass an interface.
    Passing(Direction),
    /// Packets that are dropped.
    Dropped,
}

impl CapturePoint {
    /// The point as a bit of a set.
    pub fn bit(self) -> u32 {
        match self {
            CapturePoint::Passing(Direction::Rx) => 1,
            CapturePoint::Passing(Direction::Tx) => 2,
            CapturePoint::Dropped => 4,
        }
    }
}

/// The points at which a hook captures packets now: one word, which workers read for each vector.
#[derive(Default)]
pub struct ActivePoints(AtomicU32);

impl ActivePoints {
    /// Set the points, as bits.
    pub fn set(&self, points: u32) {
        self.0.store(points, Relaxed);
    }

    #[inline(always)]
    pub(crate) fn has(&self, point: CapturePoint) -> bool {
        self.0.load(Relaxed) & point.bit() != 0
    }
}

/// Captures packets. Called on workers: no allocation, no locks, no formatting.
pub trait CaptureHook: Send + Sync {
    /// Where the hook captures packets now. Called once.
    fn active_points(&self) -> Arc<ActivePoints>;
    /// Captures a packet that passes `interface`. The `back` bytes before its position belong to it: the Ethernet header, if
    /// the position is behind that.
    fn packet_passed(
        &self,
        direction: Direction,
        interface: u32,
        packet: &PacketView<'_>,
        now_ns: u64,
    );
    /// Captures a packet that is dropped; its `ERR` column has the reason.
    fn packet_dropped(&self, packet: &PacketView<'_>, now_ns: u64);
}

/// Counts drops by receive interface, and passes them to the hook.
pub(crate) struct DropCounter(pub(crate) Arc<IfTable>);

impl DropHook for DropCounter {
    fn dropped(&self, worker: usize, packet: &PacketView<'_>, now_ns: u64) {
        self.0.count_drop(worker, packet.rx());
        self.ignored(packet, now_ns);
    }

    fn ignored(&self, packet: &PacketView<'_>, now_ns: u64) {
        if let Some(tap) = self.0.drop_hook() {
            tap.packet_dropped(packet, now_ns);
        }
    }
}
