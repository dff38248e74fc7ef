//! error-drop: frees what reaches it; the reason was counted where the packet was dropped.

use crate::drop_table::{DropKey, DropTable};
use crate::{Col, Consumed, Cx, Isa, NoNext, Node, NodeId, PacketView, Trace, TraceNames, Vector};
use std::sync::Arc;

/// Name of the drop node.
pub const DROP_NODE: &str = "error-drop";

crate::counters! {
    /// What error-drop counts.
    pub enum Count {
        /// packets dropped without a reason of their own (a defect of the node before)
        NoReason = "no-reason" (Error),
    }
}

/// Somebody who looks at every dropped packet: counters per interface, captures. Called on the worker, so it must not
/// allocate, lock or format.
pub trait DropHook: Send + Sync {
    /// `packet` is about to be freed by worker `worker`; its `Err` column says why.
    fn dropped(&self, worker: usize, packet: &PacketView<'_>, now_ns: u64);
}

/// The end of dropped packets.
pub struct DropNode {
    worker: usize,
    tap: Option<Arc<dyn DropHook>>,
    book: Arc<DropTable>,
    /// Vectors so far.
    vector: u64,
}

impl DropNode {
    /// The instance of `worker`, which keeps `book` and is watched by `tap`.
    pub(crate) fn new(worker: usize, tap: Option<Arc<dyn DropHook>>, book: Arc<DropTable>) -> Self {
        book.allocate();
        DropNode {
            worker,
            tap,
            book,
            vector: 0,
        }
    }
}

/// Why a traced packet was dropped.
#[derive(Clone, Copy)]
pub struct DropTrace {
    reason: Option<u32>,
    rx: u32,
}

impl Trace for DropTrace {
    fn note(packet: &PacketView<'_>) -> Self {
        DropTrace {
            reason: packet.get(Col::Err),
            rx: packet.rx(),
        }
    }

    fn text(&self, names: &dyn TraceNames) -> String {
        let rx = names.interface(self.rx);
        let Some(word) = self.reason else {
            return format!("rx {rx}: no reason given");
        };
        let (node, counter) = NodeId::of_reason(word);
        let (name, text) = names.counter(node, counter);
        format!("rx {rx}: {}: {name} ({text})", names.node(node))
    }
}

impl Node for DropNode {
    const NAME: &'static str = DROP_NODE;
    type Next = NoNext;
    type Count = Count;
    type Trace = DropTrace;

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, v: Vector<'_, I, NoNext>) -> Consumed {
        if !v.has(Col::Err) {
            cx.count(Count::NoReason, v.len() as u64);
        }
        self.vector += 1;
        for row in (0..v.len()).rev() {
            let packet = v.view(row);
            let kind = DropKey {
                rx: packet.rx(),
                reason: packet.get(Col::Err).unwrap_or(cx.node().reason(0)),
            };
            self.book.record(kind, &packet, self.vector, cx.now_ns());
        }
        if let Some(tap) = &self.tap {
            for row in 0..v.len() {
                tap.dropped(self.worker, &v.view(row), cx.now_ns());
            }
        }
        v.free()
    }
}
