//! The hook for captures: it is called for packets that pass an interface or are dropped.

use crate::{Direction, IfTable};
use std::sync::Arc;
use volley_graph::{DropHook, PacketView};

/// Where a hook captures packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CapturePoint {
    /// Packets that pass an interface.
    Passing(Direction),
    /// Packets that are dropped.
    Dropped,
}

/// Captures packets. Called on workers: no allocation, no locks, no formatting.
pub trait CaptureHook: Send + Sync {
    /// Whether the hook captures such packets now. Called once for each vector.
    fn is_active(&self, what: CapturePoint) -> bool;
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
