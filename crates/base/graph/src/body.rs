//! A node or source without its type: what the dispatcher calls.

use crate::cx::{Cx, RawCx};
use crate::frame::Frame;
use crate::lanes::Lanes;
use crate::{Node, Output, Rest, Source, Stage, Vector};
use std::marker::PhantomData;
use volley_simd::{Isa, Kernel, Level};

/// Vectors with fewer packets than this run code that goes packet by packet. The packets that come out are the same.
pub(crate) const FEW: usize = 8;

/// One node's instance on one worker.
pub(crate) trait Body: Send {
    /// Handle one frame with at least [`FEW`] packets.
    fn run(&mut self, level: Level, cx: &RawCx<'_>, lanes: &mut Lanes, frame: Box<Frame>);
    /// Handle one frame with fewer than [`FEW`] packets.
    fn run_few(&mut self, cx: &RawCx<'_>, lanes: &mut Lanes, frame: Box<Frame>);
    /// Handle one frame that another worker handed over, where that differs from waiting for [`Body::run`].
    fn arrive(
        &mut self,
        _level: Level,
        _cx: &RawCx<'_>,
        _lanes: &mut Lanes,
        frame: Box<Frame>,
    ) -> Result<(), Box<Frame>> {
        Err(frame)
    }
    /// Whether it only stands in for a node.
    fn as_detour(&mut self) -> Option<&mut crate::placement::Detour> {
        None
    }
    /// Make packets.
    fn poll(&mut self, level: Level, cx: &RawCx<'_>, lanes: &mut Lanes) -> usize;
    /// Note the traced rows of a frame that is about to run.
    fn note(&self, cx: &RawCx<'_>, lanes: &Lanes, frame: &Frame);
    /// Stages: see [`Stage::keeps_order`].
    fn keeps_order(&self) -> bool {
        false
    }
    /// Whether the worker may end: see [`Source::may_leave`]; stages hold nothing that must not be lost.
    fn may_leave(&self) -> bool {
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
    /// Sources: see [`Source::may_rest`].
    fn may_rest(&self, _now_ns: u64, _idle_ns: u64) -> bool {
        true
    }
    /// Sources: see [`Source::rest`].
    fn rest(&mut self, _rest: &mut Rest) -> bool {
        true
    }
    /// Sources: see [`Source::wake`].
    fn wake(&mut self) {}
}

/// Adapter of a [`Node`].
pub(crate) struct NodeBody<N>(pub(crate) N);
/// Adapter of a [`Stage`].
pub(crate) struct StageBody<S>(pub(crate) S);
/// Adapter of a [`Source`].
pub(crate) struct SourceBody<S>(pub(crate) S);

struct RunCall<'a, N: Node> {
    node: &'a mut N,
    cx: &'a RawCx<'a>,
    lanes: &'a mut Lanes,
    frame: Box<Frame>,
}

impl<N: Node> Kernel for RunCall<'_, N> {
    type Out = ();
    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let cx = Cx {
            raw: self.cx,
            count: PhantomData,
        };
        let RunCall {
            node,
            lanes,
            frame,
            cx: raw,
        } = self;
        let vector = Vector {
            frame,
            lanes,
            raw,
            isa,
            next: PhantomData,
        };
        let crate::Done(()) = node.run(&cx, vector);
    }
}

struct PollCall<'a, S: Source> {
    source: &'a mut S,
    cx: &'a RawCx<'a>,
    lanes: &'a mut Lanes,
}

impl<S: Source> Kernel for PollCall<'_, S> {
    type Out = usize;
    #[inline(always)]
    fn run<I: Isa>(self, isa: I) -> usize {
        let cx = Cx {
            raw: self.cx,
            count: PhantomData,
        };
        let PollCall {
            source,
            lanes,
            cx: raw,
        } = self;
        let mut out = Output::<I, S::Next> {
            lanes,
            raw,
            isa,
            next: PhantomData,
        };
        source.poll(&cx, &mut out)
    }
}

struct ReleaseCall<'a, S: Stage> {
    stage: &'a mut S,
    cx: &'a RawCx<'a>,
    lanes: &'a mut Lanes,
}

impl<S: Stage> Kernel for ReleaseCall<'_, S> {
    type Out = usize;
    #[inline(always)]
    fn run<I: Isa>(self, isa: I) -> usize {
        let cx = Cx {
            raw: self.cx,
            count: PhantomData,
        };
        let mut out = Output::<I, S::Next> {
            lanes: self.lanes,
            raw: self.cx,
            isa,
            next: PhantomData,
        };
        self.stage.release(&cx, &mut out)
    }
}

/// A whole vector.
#[inline(always)]
fn run_many<N: Node>(
    node: &mut N,
    level: Level,
    cx: &RawCx<'_>,
    lanes: &mut Lanes,
    frame: Box<Frame>,
) {
    let call = RunCall {
        node,
        cx,
        lanes,
        frame,
    };
    volley_simd::call(level, call);
}

/// A handful of packets.
#[inline(always)]
fn run_few<N: Node>(node: &mut N, cx: &RawCx<'_>, lanes: &mut Lanes, frame: Box<Frame>) {
    volley_simd::call_few(RunCall {
        node,
        cx,
        lanes,
        frame,
    });
}

impl<N: Node> Body for NodeBody<N> {
    #[inline]
    fn run(&mut self, level: Level, cx: &RawCx<'_>, lanes: &mut Lanes, frame: Box<Frame>) {
        run_many(&mut self.0, level, cx, lanes, frame);
    }

    #[inline(never)]
    fn run_few(&mut self, cx: &RawCx<'_>, lanes: &mut Lanes, frame: Box<Frame>) {
        run_few(&mut self.0, cx, lanes, frame);
    }

    fn poll(&mut self, _: Level, _: &RawCx<'_>, _: &mut Lanes) -> usize {
        0
    }

    fn note(&self, cx: &RawCx<'_>, lanes: &Lanes, frame: &Frame) {
        crate::trace::note_rows::<N::Trace>(lanes, cx, frame);
    }
}

impl<S: Source> Body for SourceBody<S> {
    /// Nothing may be sent to a source: what arrives is freed where dropped packets are.
    fn run(&mut self, _: Level, cx: &RawCx<'_>, lanes: &mut Lanes, frame: Box<Frame>) {
        self.run_few(cx, lanes, frame);
    }

    fn run_few(&mut self, _: &RawCx<'_>, lanes: &mut Lanes, frame: Box<Frame>) {
        let target = lanes.drop_node;
        lanes.push_frame(target, frame);
    }

    #[inline]
    fn poll(&mut self, level: Level, cx: &RawCx<'_>, lanes: &mut Lanes) -> usize {
        volley_simd::call(
            level,
            PollCall {
                source: &mut self.0,
                cx,
                lanes,
            },
        )
    }

    fn is_vacant(&self) -> bool {
        self.0.is_vacant()
    }

    fn may_rest(&self, now_ns: u64, idle_ns: u64) -> bool {
        self.0.may_rest(now_ns, idle_ns)
    }

    fn rest(&mut self, rest: &mut Rest) -> bool {
        self.0.rest(rest)
    }

    fn wake(&mut self) {
        self.0.wake();
    }

    fn may_leave(&self) -> bool {
        self.0.may_leave()
    }

    fn note(&self, cx: &RawCx<'_>, lanes: &Lanes, frame: &Frame) {
        crate::trace::note_rows::<crate::Glance>(lanes, cx, frame);
    }
}

impl<S: Stage> Body for StageBody<S> {
    #[inline]
    fn run(&mut self, level: Level, cx: &RawCx<'_>, lanes: &mut Lanes, frame: Box<Frame>) {
        run_many(&mut self.0, level, cx, lanes, frame);
        lanes.holders.set(cx.node, self.0.is_holding());
    }

    #[inline(never)]
    fn run_few(&mut self, cx: &RawCx<'_>, lanes: &mut Lanes, frame: Box<Frame>) {
        run_few(&mut self.0, cx, lanes, frame);
        lanes.holders.set(cx.node, self.0.is_holding());
    }

    #[inline]
    fn poll(&mut self, level: Level, cx: &RawCx<'_>, lanes: &mut Lanes) -> usize {
        if !self.0.is_holding() {
            return 0;
        }
        let stage = &mut self.0;
        volley_simd::call(level, ReleaseCall { stage, cx, lanes })
    }

    fn is_holding(&self) -> bool {
        self.0.is_holding()
    }

    fn keeps_order(&self) -> bool {
        self.0.keeps_order()
    }

    fn may_rest(&self, now_ns: u64, _: u64) -> bool {
        self.0.may_rest(now_ns)
    }

    fn rest(&mut self, rest: &mut Rest) -> bool {
        self.0.rest(rest)
    }

    fn note(&self, cx: &RawCx<'_>, lanes: &Lanes, frame: &Frame) {
        crate::trace::note_rows::<S::Trace>(lanes, cx, frame);
    }
}
