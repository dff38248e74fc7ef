//! A node or source without its type, for the dispatcher.

use crate::data::col::{ColumnInfo, ColumnSet};
use crate::data::frame::Frame;
use crate::data::ids::NodeId;
use crate::node_api::context::{Cx, RawCx};
use crate::node_api::node::{Node, Source};
use crate::node_api::output::Output;
use crate::node_api::stage::{Stage, StageCx};
use crate::node_api::trace_rows;
use crate::node_api::vector::{Consumed, Vector};
use crate::queues::dispatch::Dispatch;
use crate::queues::trace::PacketTrace;
use crate::queues::wakeup::WakeConditions;
use crate::worker::counted::CountedBody;
use crate::worker::handoff_stub::HandoffStub;
use std::marker::PhantomData;
use volley_simd::{Isa, Kernel, Level};

/// Vectors with fewer packets than this use code that handles packet by packet. The result is the same.
pub(crate) const SMALL_VECTOR: usize = 8;

/// One node's instance on one worker.
pub(crate) trait Body: Send {
    /// Handle one frame with at least [`SMALL_VECTOR`] packets.
    fn run(&mut self, level: Level, cx: &RawCx<'_>, dispatch: &mut Dispatch, frame: Box<Frame>);
    /// Handle one frame with fewer than [`SMALL_VECTOR`] packets.
    fn run_small(&mut self, cx: &RawCx<'_>, dispatch: &mut Dispatch, frame: Box<Frame>);
    /// Handle one frame that another worker handed off, where that differs from [`Body::run`].
    fn arrive(
        &mut self,
        _level: Level,
        _cx: &RawCx<'_>,
        _dispatch: &mut Dispatch,
        frame: Box<Frame>,
    ) -> Result<(), Box<Frame>> {
        Err(frame)
    }
    /// The handoff stub, if this body is one.
    fn as_handoff_stub(&mut self) -> Option<&mut HandoffStub> {
        None
    }
    /// The body that counts events, if this is one.
    fn as_counted(&mut self) -> Option<&mut CountedBody> {
        None
    }
    /// Make packets.
    fn poll(&mut self, level: Level, cx: &RawCx<'_>, dispatch: &mut Dispatch) -> usize;
    /// Record the traced rows of a frame that is about to run.
    fn note(&self, cx: &RawCx<'_>, dispatch: &Dispatch, frame: &Frame);
    /// Stages: see [`Stage::keeps_order`].
    fn keeps_order(&self) -> bool {
        false
    }
    /// Whether the worker may end: see [`Source::can_exit`]; a stage contains nothing that must not be lost.
    fn can_exit(&self) -> bool {
        !self.keeps_order()
    }
    /// Sources: see [`Source::is_vacant`].
    fn is_vacant(&self) -> bool {
        false
    }
    /// Stages: see [`Stage::is_holding`].
    fn is_holding(&self) -> bool {
        false
    }
    /// Stages: see [`Stage::leave`]. Returns the frames that a panic has dropped.
    fn leave(&mut self, _node: NodeId, _dispatch: &mut Dispatch, _next: NodeId) -> Vec<Box<Frame>> {
        Vec::new()
    }
    /// The counter of packets that are dropped because the node has panicked, where it has one.
    fn panicked(&self) -> Option<usize> {
        None
    }
    /// Sources: see [`Source::may_sleep`].
    fn may_sleep(&self, _now_ns: u64, _idle_ns: u64) -> bool {
        true
    }
    /// Sources: see [`Source::arm`].
    fn arm(&mut self, _rest: &mut WakeConditions) -> bool {
        true
    }
    /// Sources: see [`Source::wake`].
    fn wake(&mut self) {}
}

/// Adapter of a [`Node`].
pub(crate) struct NodeBody<N> {
    pub(crate) node: N,
    /// The columns that the node has declared.
    pub(crate) columns: ColumnSet,
}

impl<N: Node> NodeBody<N> {
    pub(crate) fn new(node: N, columns: &[ColumnInfo]) -> Self {
        NodeBody {
            node,
            columns: ColumnSet::of(columns),
        }
    }
}

/// Adapter of a [`Stage`].
pub(crate) struct StageBody<S>(pub(crate) S);
/// Adapter of a [`Source`].
pub(crate) struct SourceBody<S>(pub(crate) S);

struct RunCall<'a, N: Node> {
    node: &'a mut N,
    cx: &'a RawCx<'a>,
    dispatch: &'a mut Dispatch,
    frame: Box<Frame>,
}

impl<N: Node> Kernel for RunCall<'_, N> {
    type Out = ();
    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let cx = Cx::new(self.cx);
        let RunCall {
            node,
            dispatch,
            frame,
            cx: raw,
        } = self;
        let vector = Vector {
            frame,
            dispatch,
            raw,
            isa,
            next: PhantomData,
        };
        let Consumed(()) = node.run(&cx, vector);
    }
}

struct PollCall<'a, S: Source> {
    source: &'a mut S,
    cx: &'a RawCx<'a>,
    dispatch: &'a mut Dispatch,
}

impl<S: Source> Kernel for PollCall<'_, S> {
    type Out = usize;
    #[inline(always)]
    fn run<I: Isa>(self, isa: I) -> usize {
        let cx = Cx::new(self.cx);
        let mut out = Output::<I, S::Next>::new(self.dispatch, self.cx, isa);
        self.source.poll(&cx, &mut out)
    }
}

struct ReleaseCall<'a, S: Stage> {
    stage: &'a mut S,
    cx: &'a RawCx<'a>,
    dispatch: &'a mut Dispatch,
}

impl<S: Stage> Kernel for ReleaseCall<'_, S> {
    type Out = usize;
    #[inline(always)]
    fn run<I: Isa>(self, isa: I) -> usize {
        let cx = Cx::new(self.cx);
        let mut out = Output::<I, S::Next>::new(self.dispatch, self.cx, isa);
        self.stage.release(&cx, &mut out)
    }
}

/// Run a node on a whole vector.
#[inline(always)]
fn run_many<N: Node>(
    node: &mut N,
    level: Level,
    cx: &RawCx<'_>,
    dispatch: &mut Dispatch,
    frame: Box<Frame>,
) {
    let call = RunCall {
        node,
        cx,
        dispatch,
        frame,
    };
    volley_simd::call(level, call);
}

/// Run a node on a small vector.
#[inline(always)]
fn run_small<N: Node>(node: &mut N, cx: &RawCx<'_>, dispatch: &mut Dispatch, frame: Box<Frame>) {
    volley_simd::call_few(RunCall {
        node,
        cx,
        dispatch,
        frame,
    });
}

impl<N: Node> Body for NodeBody<N> {
    #[inline]
    fn run(
        &mut self,
        level: Level,
        cx: &RawCx<'_>,
        dispatch: &mut Dispatch,
        mut frame: Box<Frame>,
    ) {
        frame.declared = self.columns;
        run_many(&mut self.node, level, cx, dispatch, frame);
    }

    #[inline(never)]
    fn run_small(&mut self, cx: &RawCx<'_>, dispatch: &mut Dispatch, mut frame: Box<Frame>) {
        frame.declared = self.columns;
        run_small(&mut self.node, cx, dispatch, frame);
    }

    fn poll(&mut self, _: Level, _: &RawCx<'_>, _: &mut Dispatch) -> usize {
        0
    }

    fn note(&self, cx: &RawCx<'_>, dispatch: &Dispatch, frame: &Frame) {
        trace_rows::note_rows::<N::Trace>(dispatch, cx, frame);
    }
}

impl<S: Source> Body for SourceBody<S> {
    /// No node may send packets to a source: they are freed like dropped packets.
    fn run(&mut self, _: Level, cx: &RawCx<'_>, dispatch: &mut Dispatch, frame: Box<Frame>) {
        self.run_small(cx, dispatch, frame);
    }

    fn run_small(&mut self, _: &RawCx<'_>, dispatch: &mut Dispatch, frame: Box<Frame>) {
        let target = dispatch.drop_node;
        dispatch.push_frame(target, frame);
    }

    #[inline]
    fn poll(&mut self, level: Level, cx: &RawCx<'_>, dispatch: &mut Dispatch) -> usize {
        volley_simd::call(
            level,
            PollCall {
                source: &mut self.0,
                cx,
                dispatch,
            },
        )
    }

    fn is_vacant(&self) -> bool {
        self.0.is_vacant()
    }

    fn may_sleep(&self, now_ns: u64, idle_ns: u64) -> bool {
        self.0.may_sleep(now_ns, idle_ns)
    }

    fn arm(&mut self, rest: &mut WakeConditions) -> bool {
        self.0.arm(rest)
    }

    fn wake(&mut self) {
        self.0.wake();
    }

    fn can_exit(&self) -> bool {
        self.0.can_exit()
    }

    fn note(&self, cx: &RawCx<'_>, dispatch: &Dispatch, frame: &Frame) {
        trace_rows::note_rows::<PacketTrace>(dispatch, cx, frame);
    }
}

impl<S: Stage> Body for StageBody<S> {
    #[inline]
    fn run(
        &mut self,
        level: Level,
        cx: &RawCx<'_>,
        dispatch: &mut Dispatch,
        mut frame: Box<Frame>,
    ) {
        frame.declared = ColumnSet::of(S::COLUMNS);
        run_many(&mut self.0, level, cx, dispatch, frame);
        dispatch.holders.set(cx.node, self.0.is_holding());
    }

    #[inline(never)]
    fn run_small(&mut self, cx: &RawCx<'_>, dispatch: &mut Dispatch, mut frame: Box<Frame>) {
        frame.declared = ColumnSet::of(S::COLUMNS);
        run_small(&mut self.0, cx, dispatch, frame);
        dispatch.holders.set(cx.node, self.0.is_holding());
    }

    #[inline]
    fn poll(&mut self, level: Level, cx: &RawCx<'_>, dispatch: &mut Dispatch) -> usize {
        if !self.0.is_holding() {
            return 0;
        }
        let stage = &mut self.0;
        volley_simd::call(
            level,
            ReleaseCall {
                stage,
                cx,
                dispatch,
            },
        )
    }

    fn is_holding(&self) -> bool {
        self.0.is_holding()
    }

    fn leave(&mut self, node: NodeId, dispatch: &mut Dispatch, next: NodeId) -> Vec<Box<Frame>> {
        self.0.leave(&mut StageCx::of(dispatch, node), next);
        Vec::new()
    }

    fn keeps_order(&self) -> bool {
        self.0.keeps_order()
    }

    fn may_sleep(&self, now_ns: u64, _: u64) -> bool {
        self.0.may_sleep(now_ns)
    }

    fn arm(&mut self, rest: &mut WakeConditions) -> bool {
        self.0.arm(rest)
    }

    fn note(&self, cx: &RawCx<'_>, dispatch: &Dispatch, frame: &Frame) {
        trace_rows::note_rows::<S::Trace>(dispatch, cx, frame);
    }
}
