//! A node whose panic takes out the node and not the worker: a plugin's. The guard is compiled with the node, so that no
//! panic crosses from the plugin's code into the router's.

use crate::data::column::Column;
use crate::data::frame::Frame;
use crate::data::ids::NodeId;
use crate::data::lost::{self, panic_text};
use crate::node_api::context::RawCx;
use crate::queues::dispatch::Dispatch;
use crate::queues::wakeup::WakeConditions;
use crate::worker::body::Body;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use volley_simd::Level;

/// Whether a node is out because it panicked, on whichever worker, and the text of the first panic.
#[derive(Default)]
pub struct NodeFault {
    is_out: AtomicBool,
    text: OnceLock<String>,
}

impl NodeFault {
    /// The text of the panic that took the node out.
    pub fn text(&self) -> Option<&str> {
        self.text.get().map(String::as_str)
    }

    #[cold]
    fn set(&self, payload: Box<dyn Any + Send>) {
        let _ = self.text.set(panic_text(&*payload));
        self.is_out.store(true, Relaxed);
        // The drop of what a panic carries may panic in turn.
        std::mem::forget(payload);
    }
}

/// Adapter of the body of a node, source or stage with a guard.
pub(crate) struct GuardedBody<B> {
    /// None where the instance could not be made.
    body: Option<B>,
    fault: Arc<NodeFault>,
    /// The counter of the packets that are dropped because the node is out.
    reason: usize,
}

impl<B> GuardedBody<B> {
    /// The instance that `make` returns. `reason` is the number of the counter of packets that are dropped.
    pub(crate) fn new(make: impl FnOnce() -> B, reason: usize, fault: Arc<NodeFault>) -> Self {
        let made = catch_unwind(AssertUnwindSafe(make));
        let body = match made {
            Ok(body) => Some(body),
            Err(payload) => {
                fault.set(payload);
                None
            }
        };
        GuardedBody {
            body,
            fault,
            reason,
        }
    }

    /// The node has panicked: it is out, and the packets that it had are dropped.
    #[cold]
    fn fell(&self, cx: &RawCx<'_>, dispatch: &mut Dispatch, payload: Box<dyn Any + Send>) {
        self.fault.set(payload);
        if dispatch.targets.is_unallocated() {
            dispatch.targets = Column::new(dispatch.frame_capacity);
        }
        for frame in lost::take() {
            self.discard(cx, dispatch, frame);
        }
    }

    #[cold]
    fn discard(&self, cx: &RawCx<'_>, dispatch: &mut Dispatch, frame: Box<Frame>) {
        dispatch.drop_frame(cx.node, self.reason, &cx.stats, frame);
    }

    #[inline(always)]
    fn guard(
        &mut self,
        cx: &RawCx<'_>,
        dispatch: &mut Dispatch,
        frame: Box<Frame>,
        run: impl FnOnce(&mut B, &mut Dispatch, Box<Frame>),
    ) {
        let is_out = self.fault.is_out.load(Relaxed);
        let Some(body) = self.body.as_mut().filter(|_| !is_out) else {
            return self.discard(cx, dispatch, frame);
        };
        let lanes = &mut *dispatch;
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| run(body, lanes, frame))) {
            self.fell(cx, dispatch, payload);
        }
    }

    /// Drop the body. It may panic.
    fn drop_body(&mut self) {
        let body = self.body.take();
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(body))) {
            self.fault.set(payload);
        }
    }

    /// What the body answers; `otherwise` where the node is out, or panics now.
    fn ask<R>(&self, otherwise: R, question: impl FnOnce(&B) -> R) -> R {
        answer(&self.fault, self.body.as_ref(), otherwise, question)
    }

    /// As [`GuardedBody::ask`], for a change.
    fn tell<R>(&mut self, otherwise: R, change: impl FnOnce(&mut B) -> R) -> R {
        answer(&self.fault, self.body.as_mut(), otherwise, change)
    }
}

/// What a call of a body returns; `otherwise` where the node is out, or panics now.
fn answer<T, R>(fault: &NodeFault, body: Option<T>, otherwise: R, call: impl FnOnce(T) -> R) -> R {
    let is_out = fault.is_out.load(Relaxed);
    let Some(body) = body.filter(|_| !is_out) else {
        return otherwise;
    };
    match catch_unwind(AssertUnwindSafe(|| call(body))) {
        Ok(answer) => answer,
        Err(payload) => {
            fault.set(payload);
            otherwise
        }
    }
}

impl<B: Body> Body for GuardedBody<B> {
    #[inline]
    fn run(&mut self, level: Level, cx: &RawCx<'_>, dispatch: &mut Dispatch, frame: Box<Frame>) {
        self.guard(cx, dispatch, frame, |body, dispatch, frame| {
            body.run(level, cx, dispatch, frame)
        });
    }

    #[inline(never)]
    fn run_small(&mut self, cx: &RawCx<'_>, dispatch: &mut Dispatch, frame: Box<Frame>) {
        self.guard(cx, dispatch, frame, |body, dispatch, frame| {
            body.run_small(cx, dispatch, frame)
        });
    }

    fn poll(&mut self, level: Level, cx: &RawCx<'_>, dispatch: &mut Dispatch) -> usize {
        let is_out = self.fault.is_out.load(Relaxed);
        let Some(body) = self.body.as_mut().filter(|_| !is_out) else {
            return 0;
        };
        let lanes = &mut *dispatch;
        match catch_unwind(AssertUnwindSafe(|| body.poll(level, cx, lanes))) {
            Ok(packets) => packets,
            Err(payload) => {
                self.fell(cx, dispatch, payload);
                0
            }
        }
    }

    fn note(&self, cx: &RawCx<'_>, dispatch: &Dispatch, frame: &Frame) {
        let Some(body) = &self.body else { return };
        let noted = catch_unwind(AssertUnwindSafe(|| body.note(cx, dispatch, frame)));
        if let Err(payload) = noted {
            self.fault.set(payload);
        }
    }

    fn keeps_order(&self) -> bool {
        self.ask(false, B::keeps_order)
    }

    fn can_exit(&self) -> bool {
        self.ask(true, B::can_exit)
    }

    fn is_vacant(&self) -> bool {
        self.ask(true, B::is_vacant)
    }

    fn is_holding(&self) -> bool {
        self.ask(false, B::is_holding)
    }

    /// Also of a node that is out: what it holds must not be lost.
    fn leave(&mut self, node: NodeId, dispatch: &mut Dispatch, next: NodeId) -> Vec<Box<Frame>> {
        if next == dispatch.drop_node && self.fault.is_out.load(Relaxed) {
            // What the stage holds is dropped with it, for the reason of a node that is out.
            return lost::dropped_by(|| self.drop_body());
        }
        let Some(body) = &mut self.body else {
            return Vec::new();
        };
        match catch_unwind(AssertUnwindSafe(|| body.leave(node, dispatch, next))) {
            Ok(dropped) => dropped,
            Err(payload) => {
                self.fault.set(payload);
                // What the stage has not sent is dropped with it.
                lost::dropped_by(|| self.drop_body())
            }
        }
    }

    fn panicked(&self) -> Option<usize> {
        Some(self.reason)
    }

    fn may_sleep(&self, now_ns: u64, idle_ns: u64) -> bool {
        self.ask(true, |body| body.may_sleep(now_ns, idle_ns))
    }

    fn arm(&mut self, rest: &mut WakeConditions) -> bool {
        self.tell(true, |body| body.arm(rest))
    }

    fn wake(&mut self) {
        self.tell((), B::wake);
    }
}

impl<B> Drop for GuardedBody<B> {
    fn drop(&mut self) {
        self.drop_body();
    }
}
