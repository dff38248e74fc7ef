//! Records of the traced packets of a frame that arrives at a node.

use crate::data::col::Col;
use crate::data::frame::Frame;
use crate::data::packet::PacketView;
use crate::node_api::context::RawCx;
use crate::queues::dispatch::Dispatch;
use crate::queues::trace::{Trace, TraceRecord};
/// Record every marked row of `frame`. When the queue is full, records are lost, but no packets are.
#[cold]
pub(crate) fn note_rows<T: Trace>(dispatch: &Dispatch, cx: &RawCx<'_>, frame: &Frame) {
    if !frame.has(Col::TRACE) {
        return;
    }
    for row in 0..frame.n {
        let packet = frame.words(Col::TRACE.at())[row];
        if packet != 0 {
            let view = PacketView::new(dispatch.bufs.pool(), frame, row);
            let _ = dispatch.tracer.notes.push(TraceRecord::new(
                packet,
                cx.node,
                cx.now_ns,
                T::note(&view),
            ));
        }
    }
}
