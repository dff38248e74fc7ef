//! The body of a node while its events are counted. It replaces the node's own body for that time, so that a node whose
//! events are not counted costs nothing more.

use crate::data::events::{EventSums, Reading};
use crate::data::frame::Frame;
use crate::data::ids::NodeId;
use crate::node_api::context::RawCx;
use crate::queues::dispatch::Dispatch;
use crate::queues::wakeup::WakeConditions;
use crate::worker::body::Body;
use crate::worker::handoff_stub::EmptyBody;
use crate::worker::marks::call_marked;
use std::sync::Arc;
use volley_simd::Level;

/// A body whose events are counted.
pub(crate) struct CountedBody {
    inner: Box<dyn Body>,
    sums: Arc<EventSums>,
    /// The number of the function by which the node is called.
    mark: Option<usize>,
}

impl CountedBody {
    /// A body that gets the node's own body later.
    pub(crate) fn empty(sums: Arc<EventSums>) -> Self {
        CountedBody::new(Box::new(EmptyBody), sums)
    }

    pub(crate) fn new(inner: Box<dyn Body>, sums: Arc<EventSums>) -> Self {
        CountedBody {
            inner,
            sums,
            mark: None,
        }
    }

    /// A body whose node is called by the function of this number.
    pub(crate) fn marked(mark: usize) -> Self {
        CountedBody {
            mark: Some(mark),
            ..CountedBody::empty(Arc::default())
        }
    }

    /// Replace a node's own body, which a handoff stub has if the node is placed on another worker: only calls of the node are
    /// counted, and the node is still counted when it returns.
    pub(crate) fn replace(mut self: Box<Self>, body: &mut Box<dyn Body>) {
        if let Some(stub) = body.as_handoff_stub() {
            if let Some(own) = &mut stub.inner {
                self.replace(own);
            }
            return;
        }
        self.inner = std::mem::replace(body, Box::new(EmptyBody));
        *body = self;
    }

    /// Count the events of a call that handles `rows` packets.
    fn add(&self, dispatch: &mut Dispatch, from: Option<Reading>, rows: usize) {
        if let (Some(meter), Some(from)) = (&mut dispatch.meter, from) {
            let to = meter.read();
            self.sums.add(rows, &from, &to, &meter.overhead);
        }
    }
}

/// The counters before a call; none if the worker has no counters.
fn begin(dispatch: &mut Dispatch) -> Option<Reading> {
    dispatch.meter.as_mut().map(|meter| meter.read())
}

impl Body for CountedBody {
    fn run(&mut self, level: Level, cx: &RawCx<'_>, dispatch: &mut Dispatch, frame: Box<Frame>) {
        let (rows, from) = (frame.n, begin(dispatch));
        let inner = &mut self.inner;
        call_marked(self.mark, || inner.run(level, cx, dispatch, frame));
        self.add(dispatch, from, rows);
    }

    fn run_small(&mut self, cx: &RawCx<'_>, dispatch: &mut Dispatch, frame: Box<Frame>) {
        let (rows, from) = (frame.n, begin(dispatch));
        let inner = &mut self.inner;
        call_marked(self.mark, || inner.run_small(cx, dispatch, frame));
        self.add(dispatch, from, rows);
    }

    /// A poll without packets is not counted: it says nothing about the cost of packets.
    fn poll(&mut self, level: Level, cx: &RawCx<'_>, dispatch: &mut Dispatch) -> usize {
        let from = begin(dispatch);
        let (inner, mut rows) = (&mut self.inner, 0);
        call_marked(self.mark, || rows = inner.poll(level, cx, dispatch));
        if rows > 0 {
            self.add(dispatch, from, rows);
        }
        rows
    }

    fn note(&self, cx: &RawCx<'_>, dispatch: &Dispatch, frame: &Frame) {
        self.inner.note(cx, dispatch, frame);
    }

    fn keeps_order(&self) -> bool {
        self.inner.keeps_order()
    }

    fn can_exit(&self) -> bool {
        self.inner.can_exit()
    }

    fn is_vacant(&self) -> bool {
        self.inner.is_vacant()
    }

    fn is_holding(&self) -> bool {
        self.inner.is_holding()
    }

    fn leave(&mut self, node: NodeId, dispatch: &mut Dispatch, next: NodeId) -> Vec<Box<Frame>> {
        self.inner.leave(node, dispatch, next)
    }

    fn panicked(&self) -> Option<usize> {
        self.inner.panicked()
    }

    fn may_sleep(&self, now_ns: u64, idle_ns: u64) -> bool {
        self.inner.may_sleep(now_ns, idle_ns)
    }

    fn arm(&mut self, rest: &mut WakeConditions) -> bool {
        self.inner.arm(rest)
    }

    fn wake(&mut self) {
        self.inner.wake();
    }

    fn as_counted(&mut self) -> Option<&mut CountedBody> {
        Some(self)
    }
}

/// Put a node's own body in place of one that counts, which is returned. A node that is placed on another worker has it in its
/// handoff stub.
pub(crate) fn take_counted(body: &mut Box<dyn Body>) -> Option<Box<dyn Body>> {
    if let Some(counted) = body.as_counted() {
        let inner = std::mem::replace(&mut counted.inner, Box::new(EmptyBody));
        return Some(std::mem::replace(body, inner));
    }
    take_counted(body.as_handoff_stub()?.inner.as_mut()?)
}
