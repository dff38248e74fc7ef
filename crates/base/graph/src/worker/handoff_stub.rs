//! The handoff stub: it replaces a node on a worker that does not run the node, and hands the packets off to the worker that
//! does. The stub keeps the node, because packets that other workers handed off for it earlier still run here.

use crate::data::frame::Frame;
use crate::data::stats::{NodeStats, add_relaxed};
use crate::node_api::context::RawCx;
use crate::queues::dispatch::Dispatch;
use crate::queues::wakeup::WakeConditions;
use crate::worker::body::{Body, SMALL_VECTOR};
use std::sync::Arc;
use volley_simd::Level;
/// Replaces a node that runs on another worker. Packets are handed off as *placed* ones, which the receiving worker
/// runs wherever the node is placed.
pub(crate) struct HandoffStub {
    pub(crate) inner: Option<Box<dyn Body>>,
    /// The worker that packets are handed off to; this worker while the node moves back to it.
    pub(crate) to: usize,
    /// No packet was handed off to that worker yet, so an epoch begins with the next one.
    pub(crate) starts_epoch: bool,
    pub(crate) full: CongestionCounter,
}

/// The counter for packets that were dropped because the ring was full.
#[derive(Clone)]
pub(crate) struct CongestionCounter {
    pub(crate) reason: u32,
    pub(crate) counter: usize,
    pub(crate) stats: Arc<NodeStats>,
}

/// Replaces the body of a node during an exchange. The type has size 0, so that a box of it allocates nothing.
pub(crate) struct EmptyBody;

impl Body for EmptyBody {
    fn run(&mut self, _: Level, _: &RawCx<'_>, dispatch: &mut Dispatch, frame: Box<Frame>) {
        let target = dispatch.drop_node;
        dispatch.push_frame(target, frame);
    }
    fn run_small(&mut self, _: &RawCx<'_>, dispatch: &mut Dispatch, frame: Box<Frame>) {
        let target = dispatch.drop_node;
        dispatch.push_frame(target, frame);
    }
    fn poll(&mut self, _: Level, _: &RawCx<'_>, _: &mut Dispatch) -> usize {
        0
    }
    fn note(&self, _: &RawCx<'_>, _: &Dispatch, _: &Frame) {}
}

impl HandoffStub {
    /// Hand a frame off. Returns the frame when it is to be run on this worker.
    fn forward(
        &mut self,
        cx: &RawCx<'_>,
        dispatch: &mut Dispatch,
        frame: Box<Frame>,
    ) -> Option<Box<Frame>> {
        let turned = !self.starts_epoch || dispatch.begin_epoch();
        self.starts_epoch = !turned;
        if turned && self.to == dispatch.handoff.worker_id() && dispatch.handoff.is_epoch_over() {
            return Some(frame);
        }
        let rows = frame.n as u64;
        let handed = match turned {
            true => dispatch.handoff_to_placed(self.to, cx.node, frame),
            false => Err(frame),
        };
        if let Err(frame) = handed {
            if let Some(cell) = self.full.stats.counters.get(self.full.counter) {
                add_relaxed(cell, rows);
            }
            let drop = dispatch.drop_node;
            dispatch.refuse(frame, self.full.reason, drop);
        }
        None
    }
}

impl Body for HandoffStub {
    fn run(&mut self, level: Level, cx: &RawCx<'_>, dispatch: &mut Dispatch, frame: Box<Frame>) {
        let here = self.forward(cx, dispatch, frame);
        if let (Some(frame), Some(inner)) = (here, &mut self.inner) {
            inner.run(level, cx, dispatch, frame);
        }
    }

    fn run_small(&mut self, cx: &RawCx<'_>, dispatch: &mut Dispatch, frame: Box<Frame>) {
        let here = self.forward(cx, dispatch, frame);
        if let (Some(frame), Some(inner)) = (here, &mut self.inner) {
            inner.run_small(cx, dispatch, frame);
        }
    }

    fn arrive(
        &mut self,
        level: Level,
        cx: &RawCx<'_>,
        dispatch: &mut Dispatch,
        frame: Box<Frame>,
    ) -> Result<(), Box<Frame>> {
        let Some(inner) = &mut self.inner else {
            return Err(frame);
        };
        if dispatch.tracer.is_relevant(&frame) {
            inner.note(cx, dispatch, &frame);
        }
        cx.stats.count_run(frame.n);
        if frame.n < SMALL_VECTOR {
            inner.run_small(cx, dispatch, frame);
        } else {
            inner.run(level, cx, dispatch, frame);
        }
        Ok(())
    }

    fn poll(&mut self, level: Level, cx: &RawCx<'_>, dispatch: &mut Dispatch) -> usize {
        let inner = self.inner.as_mut();
        inner.map_or(0, |inner| inner.poll(level, cx, dispatch))
    }

    /// The worker that runs the node records the trace of its packets.
    fn note(&self, _: &RawCx<'_>, _: &Dispatch, _: &Frame) {}

    fn may_sleep(&self, now_ns: u64, idle_ns: u64) -> bool {
        let inner = self.inner.as_ref();
        inner.is_none_or(|inner| inner.may_sleep(now_ns, idle_ns))
    }

    fn arm(&mut self, rest: &mut WakeConditions) -> bool {
        self.inner.as_mut().is_none_or(|inner| inner.arm(rest))
    }

    fn keeps_order(&self) -> bool {
        let inner = self.inner.as_ref();
        inner.is_some_and(|inner| inner.keeps_order())
    }

    fn as_handoff_stub(&mut self) -> Option<&mut HandoffStub> {
        Some(self)
    }
}

impl HandoffStub {
    /// Whether no packet of the node is on another worker. An epoch has begun.
    pub(crate) fn has_drained(&mut self, dispatch: &mut Dispatch) -> bool {
        self.starts_epoch = false;
        dispatch.handoff.is_epoch_over()
    }
}
