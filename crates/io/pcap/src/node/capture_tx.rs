//! capture-tx: transmits for an interface without hardware: counts packets, passes them to a capture if there is one, frees
//! them.

use crate::spool::{CaptureWriter, Note, QueuedPacket};
use std::sync::Arc;
use volley_graph::{Col, Consumed, Cx, Isa, NoNext, Node, PacketTrace, Vector, counters};
use volley_iface::{Direction, IfIdx, IfTable};
use volley_tables::qsbr::Snap;

counters! {
    /// What a transmit node counts.
    pub enum Count {
        /// packets sent that the capture had no room for: it is written slower than packets come
        CaptureLost = "capture-lost" (Warn),
    }
}

/// The destination of the packets that an interface transmits: none, or a capture.
pub type Capturing = Option<Arc<CaptureWriter>>;

/// State of an interface's transmit node, which is named after it (`pg0-tx`).
pub struct CaptureTx {
    worker: usize,
    table: Arc<IfTable>,
    interface: IfIdx,
    capture: Snap<Capturing>,
}

impl CaptureTx {
    /// The instance of `worker`, which transmits for `interface`.
    pub fn new(
        worker: usize,
        table: Arc<IfTable>,
        interface: IfIdx,
        capture: Snap<Capturing>,
    ) -> Self {
        CaptureTx {
            worker,
            table,
            interface,
            capture,
        }
    }
}

impl Node for CaptureTx {
    const NAME: &'static str = "capture-tx";
    type Next = NoNext;
    type Count = Count;
    type Trace = PacketTrace;

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, v: Vector<'_, I, NoNext>) -> Consumed {
        let interface = self.interface.0;
        let bytes = volley_graph::sum(v.column(Col::LEN));
        let (worker, n) = (self.worker, v.len() as u64);
        self.table.count(worker, interface, Direction::Tx, n, bytes);
        if let Some(spool) = self.capture.read(cx.guard()) {
            let note = Note {
                at_ns: cx.now_ns(),
                interface,
                ..Note::default()
            };
            let lost = (0..v.len())
                .filter(|&row| spool.give(note, &v.view(row), 0) == QueuedPacket::Lost)
                .count();
            cx.count(Count::CaptureLost, lost as u64);
        }
        v.free()
    }
}
