//! A node whose panic takes out the node and not the worker: a plugin's. The guard is compiled with the node, so that no
//! panic crosses from the plugin's code into the router's.

use crate::data::col::ColumnInfo;
use crate::data::column::Column;
use crate::data::counters::Counters;
use crate::data::frame::Frame;
use crate::data::lost::{self, panic_text};
use crate::node_api::context::RawCx;
use crate::node_api::node::Node;
use crate::queues::dispatch::DispatchState;
use crate::worker::body::{Body, NodeBody};
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

/// Adapter of a [`Node`] with a guard.
pub(crate) struct GuardedBody<N> {
    /// None where the instance could not be made.
    body: Option<NodeBody<N>>,
    fault: Arc<NodeFault>,
    /// The counter of the packets that are dropped because the node is out.
    reason: usize,
}

impl<N: Node> GuardedBody<N> {
    /// The instance that `make` returns.
    pub(crate) fn new(
        make: impl FnOnce() -> N,
        columns: &[ColumnInfo],
        fault: Arc<NodeFault>,
    ) -> Self {
        let made = catch_unwind(AssertUnwindSafe(make));
        let body = match made {
            Ok(node) => Some(NodeBody::new(node, columns)),
            Err(payload) => {
                fault.set(payload);
                None
            }
        };
        let reason = <N::Count as Counters>::INFO.len();
        GuardedBody {
            body,
            fault,
            reason,
        }
    }

    /// The node has panicked: it is out, and the packets that it had are dropped.
    #[cold]
    fn fell(&self, cx: &RawCx<'_>, dispatch: &mut DispatchState, payload: Box<dyn Any + Send>) {
        self.fault.set(payload);
        if dispatch.targets.is_unallocated() {
            dispatch.targets = Column::new(dispatch.frame_capacity);
        }
        for frame in lost::take() {
            self.discard(cx, dispatch, frame);
        }
    }

    #[cold]
    fn discard(&self, cx: &RawCx<'_>, dispatch: &mut DispatchState, frame: Box<Frame>) {
        dispatch.drop_frame(cx.node, self.reason, &cx.stats, frame);
    }

    #[inline(always)]
    fn guard(
        &mut self,
        cx: &RawCx<'_>,
        dispatch: &mut DispatchState,
        frame: Box<Frame>,
        run: impl FnOnce(&mut NodeBody<N>, &mut DispatchState, Box<Frame>),
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
}

impl<N: Node> Body for GuardedBody<N> {
    #[inline]
    fn run(
        &mut self,
        level: Level,
        cx: &RawCx<'_>,
        dispatch: &mut DispatchState,
        frame: Box<Frame>,
    ) {
        self.guard(cx, dispatch, frame, |body, dispatch, frame| {
            body.run(level, cx, dispatch, frame)
        });
    }

    #[inline(never)]
    fn run_small(&mut self, cx: &RawCx<'_>, dispatch: &mut DispatchState, frame: Box<Frame>) {
        self.guard(cx, dispatch, frame, |body, dispatch, frame| {
            body.run_small(cx, dispatch, frame)
        });
    }

    fn poll(&mut self, _: Level, _: &RawCx<'_>, _: &mut DispatchState) -> usize {
        0
    }

    fn note(&self, cx: &RawCx<'_>, dispatch: &DispatchState, frame: &Frame) {
        let Some(body) = &self.body else { return };
        let noted = catch_unwind(AssertUnwindSafe(|| body.note(cx, dispatch, frame)));
        if let Err(payload) = noted {
            self.fault.set(payload);
        }
    }
}

impl<N> Drop for GuardedBody<N> {
    fn drop(&mut self) {
        let body = self.body.take();
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(body))) {
            self.fault.set(payload);
        }
    }
}
