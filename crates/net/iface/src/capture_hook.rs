//! Where somebody may look at packets as they pass: captures hang here.

use crate::{Direction, IfTable};
use std::sync::Arc;
use volley_graph::{DropHook, PacketView};

/// What a tap may want to see.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CapturePoint {
    /// Packets that pass an interface.
    Passing(Direction),
    /// Packets that are dropped.
    Dropped,
}

/// Somebody who looks at packets. Called on workers: no allocation, no locks, no formatting.
pub trait CaptureHook: Send + Sync {
    /// Whether it wants to see such packets now. Asked once per vector.
    fn is_active(&self, what: CapturePoint) -> bool;
    /// A packet that passes `interface`. `back` bytes in front of its position belong to it (its Ethernet header, where
    /// the position is behind it).
    fn packet_passed(
        &self,
        direction: Direction,
        interface: u32,
        packet: &PacketView<'_>,
        now_ns: u64,
    );
    /// A packet that is dropped; its `Err` column says why.
    fn packet_dropped(&self, packet: &PacketView<'_>, now_ns: u64);
}

/// Counts drops by receiving interface, and shows them to the tap.
pub(crate) struct DropCounter(pub(crate) Arc<IfTable>);

impl DropHook for DropCounter {
    fn dropped(&self, worker: usize, packet: &PacketView<'_>, now_ns: u64) {
        self.0.count_drop(worker, packet.rx());
        if let Some(tap) = self.0.drop_hook() {
            tap.packet_dropped(packet, now_ns);
        }
    }
}
