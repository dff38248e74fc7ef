//! error-drop: frees dropped packets. The node that drops a packet has counted the reason.

use crate::data::col::Col;
use crate::data::counters::{CounterInfo, Severity};
use crate::data::ids::NodeId;
use crate::data::packet::PacketView;
use crate::node_api::context::Cx;
use crate::node_api::edges::NoNext;
use crate::node_api::node::Node;
use crate::node_api::vector::{Consumed, Vector};
use crate::queues::drop_table::{DropKey, DropTable};
use crate::queues::trace::{Trace, TraceNames};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use volley_simd::Isa;

/// The name of the drop node.
pub const DROP_NODE: &str = "error-drop";

crate::counters! {
    /// What error-drop counts.
    pub enum Count {
        /// packets dropped without a reason of their own (a defect of the node before)
        NoReason = "no-reason" (Error),
        /// packets in a loop of nodes: edges led them back to the same nodes too often in one round
        Loop = "loop" (Error),
    }
}

/// Called for every dropped packet: counters per interface, captures. Called on the worker, so it must not allocate,
/// lock or format.
pub trait DropHook: Send + Sync {
    /// Worker `worker` is about to free `packet`, whose `ERR` column is the reason.
    fn dropped(&self, worker: usize, packet: &PacketView<'_>, now_ns: u64);

    /// Like [`Self::dropped`], for a packet that is ignored, not lost: its reason is information ([`Severity::Info`]).
    fn ignored(&self, _packet: &PacketView<'_>, _now_ns: u64) {}
}

/// Reasons that are information, by node: traffic between other hosts that the router ignores is no loss.
pub(crate) struct Ignored(Box<[AtomicU64]>);

impl Ignored {
    /// The maximum number of nodes; reasons of further nodes are drops.
    const NODES: usize = 4096;

    pub(crate) fn new() -> Arc<Ignored> {
        Arc::new(Ignored(
            (0..Ignored::NODES).map(|_| AtomicU64::new(0)).collect(),
        ))
    }

    /// Record the severity of a node's counters.
    pub(crate) fn learn(&self, node: NodeId, counters: &[CounterInfo]) {
        let info = |(i, c): (usize, &CounterInfo)| u64::from(c.severity == Severity::Info) << i;
        let bits = counters.iter().take(64).enumerate().map(info);
        if let Some(word) = self.0.get(node.index()) {
            word.store(bits.fold(0, |all, bit| all | bit), Relaxed);
        }
    }

    #[inline(always)]
    fn has(&self, reason: u32) -> bool {
        let (node, counter) = NodeId::of_reason(reason);
        let word = self.0.get(node.index());
        counter < 64 && word.is_some_and(|word| word.load(Relaxed) >> counter & 1 == 1)
    }
}

/// The node at which dropped packets end.
pub struct DropNode {
    worker: usize,
    tap: Option<Arc<dyn DropHook>>,
    book: Arc<DropTable>,
    ignored: Arc<Ignored>,
    /// The number of vectors.
    vector: u64,
}

impl DropNode {
    /// The instance of `worker`. It writes to `book`, calls `tap`, and treats reasons in `ignored` as information.
    pub(crate) fn new(
        worker: usize,
        tap: Option<Arc<dyn DropHook>>,
        book: Arc<DropTable>,
        ignored: Arc<Ignored>,
    ) -> Self {
        book.allocate();
        DropNode {
            worker,
            tap,
            book,
            ignored,
            vector: 0,
        }
    }
}

/// The reason why a traced packet was dropped.
#[derive(Clone, Copy)]
pub struct DropTrace {
    reason: Option<u32>,
    rx: u32,
}

impl Trace for DropTrace {
    fn note(packet: &PacketView<'_>) -> Self {
        DropTrace {
            reason: packet.get(Col::ERR),
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
        if !v.has(Col::ERR) {
            cx.count(Count::NoReason, v.len() as u64);
        }
        self.vector += 1;
        for row in (0..v.len()).rev() {
            let packet = v.view(row);
            let kind = DropKey {
                rx: packet.rx(),
                reason: packet.get(Col::ERR).unwrap_or(cx.node().reason(0)),
            };
            if !self.ignored.has(kind.reason) {
                self.book.record(kind, &packet, self.vector, cx.now_ns());
            }
        }
        if let Some(tap) = &self.tap {
            for row in 0..v.len() {
                let packet = v.view(row);
                match packet.get(Col::ERR) {
                    Some(reason) if self.ignored.has(reason) => tap.ignored(&packet, cx.now_ns()),
                    _ => tap.dropped(self.worker, &packet, cx.now_ns()),
                }
            }
        }
        v.free()
    }
}
