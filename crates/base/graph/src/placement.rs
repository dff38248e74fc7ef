//! Nodes that run on one worker only (pipelines): the other workers hand it the packets for them.
//!
//! Where a node is elsewhere a [`Detour`] stands in its place and keeps it: packets that another worker handed over for it
//! are run here all the same, because they were on their way before. When a node moves, a turn keeps flows in order.

use crate::body::Body;
use crate::cx::RawCx;
use crate::frame::Frame;
use crate::lanes::Lanes;
use crate::stage::Role;
use crate::stats::{NodeStats, bump};
use crate::worker::Worker;
use crate::{Change, Engine, GraphError, NodeId, Rest};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use volley_simd::Level;

/// Stands where a node is that runs on another worker. Packets go there as *placed* ones, which the node runs wherever
/// they arrive.
pub(crate) struct Detour {
    inner: Option<Box<dyn Body>>,
    /// The worker that packets go to; this one while the node comes back.
    to: usize,
    /// They have not gone there before.
    is_new: bool,
    full: Full,
}

/// Who counts packets that the other worker had no room for.
#[derive(Clone)]
struct Full {
    reason: u32,
    counter: usize,
    stats: Arc<NodeStats>,
}

/// Nothing: what stands in a node's place while it changes hands. It has no size, so making one allocates nothing.
struct Nothing;

impl Body for Nothing {
    fn run(&mut self, _: Level, _: &RawCx<'_>, lanes: &mut Lanes, frame: Box<Frame>) {
        let target = lanes.drop_node;
        lanes.push_frame(target, frame);
    }
    fn run_few(&mut self, _: &RawCx<'_>, lanes: &mut Lanes, frame: Box<Frame>) {
        let target = lanes.drop_node;
        lanes.push_frame(target, frame);
    }
    fn poll(&mut self, _: Level, _: &RawCx<'_>, _: &mut Lanes) -> usize {
        0
    }
    fn note(&self, _: &RawCx<'_>, _: &Lanes, _: &Frame) {}
}

impl Detour {
    /// Hand a frame on; it comes back when it is to be run here.
    fn hand(&mut self, cx: &RawCx<'_>, lanes: &mut Lanes, frame: Box<Frame>) -> Option<Box<Frame>> {
        let turned = !self.is_new || lanes.turn();
        self.is_new = !turned;
        if turned && self.to == lanes.post.me() && lanes.post.is_direct() {
            return Some(frame);
        }
        let rows = frame.n as u64;
        let handed = match turned {
            true => lanes.hand_placed(self.to, cx.node, frame),
            false => Err(frame),
        };
        if let Err(frame) = handed {
            if let Some(cell) = self.full.stats.counters.get(self.full.counter) {
                bump(cell, rows);
            }
            let drop = lanes.drop_node;
            lanes.refuse(frame, self.full.reason, drop);
        }
        None
    }
}

impl Body for Detour {
    fn run(&mut self, level: Level, cx: &RawCx<'_>, lanes: &mut Lanes, frame: Box<Frame>) {
        let here = self.hand(cx, lanes, frame);
        if let (Some(frame), Some(inner)) = (here, &mut self.inner) {
            inner.run(level, cx, lanes, frame);
        }
    }

    fn run_few(&mut self, cx: &RawCx<'_>, lanes: &mut Lanes, frame: Box<Frame>) {
        let here = self.hand(cx, lanes, frame);
        if let (Some(frame), Some(inner)) = (here, &mut self.inner) {
            inner.run_few(cx, lanes, frame);
        }
    }

    fn arrive(
        &mut self,
        level: Level,
        cx: &RawCx<'_>,
        lanes: &mut Lanes,
        frame: Box<Frame>,
    ) -> Result<(), Box<Frame>> {
        let Some(inner) = &mut self.inner else {
            return Err(frame);
        };
        if lanes.tracer.concerns(&frame) {
            inner.note(cx, lanes, &frame);
        }
        cx.stats.ran_untimed(frame.n);
        if frame.n < crate::body::FEW {
            inner.run_few(cx, lanes, frame);
        } else {
            inner.run(level, cx, lanes, frame);
        }
        Ok(())
    }

    fn poll(&mut self, level: Level, cx: &RawCx<'_>, lanes: &mut Lanes) -> usize {
        let inner = self.inner.as_mut();
        inner.map_or(0, |inner| inner.poll(level, cx, lanes))
    }

    /// The worker that runs the node notes its packets.
    fn note(&self, _: &RawCx<'_>, _: &Lanes, _: &Frame) {}

    fn may_rest(&self, now_ns: u64, idle_ns: u64) -> bool {
        let inner = self.inner.as_ref();
        inner.is_none_or(|inner| inner.may_rest(now_ns, idle_ns))
    }

    fn rest(&mut self, rest: &mut Rest) -> bool {
        self.inner.as_mut().is_none_or(|inner| inner.rest(rest))
    }

    fn keeps_order(&self) -> bool {
        let inner = self.inner.as_ref();
        inner.is_some_and(|inner| inner.keeps_order())
    }

    fn as_detour(&mut self) -> Option<&mut Detour> {
        Some(self)
    }
}

/// A node gets another worker.
struct Place {
    id: NodeId,
    /// None: every worker runs it itself.
    to: Option<usize>,
    shell: Option<Box<Detour>>,
}

impl Change for Place {
    fn swap(&mut self, worker: &mut Worker) {
        let me = worker.lanes.post.me();
        let to = self.to.unwrap_or(me);
        let Some(slot) = worker.slots.get_mut(self.id.index()) else {
            return;
        };
        if let Some(detour) = slot.body.as_detour() {
            (detour.to, detour.is_new) = (to, true);
            return;
        }
        // What ran here before has run to its end: only what was handed elsewhere can be overtaken.
        if to != me
            && let Some(mut shell) = self.shell.take()
        {
            shell.inner = Some(std::mem::replace(&mut slot.body, Box::new(Nothing)));
            slot.body = shell;
        }
    }
}

/// A node that has come back takes its place again.
struct Straight {
    id: NodeId,
    /// Workers where nothing is left to do, as bits.
    done: Arc<AtomicU64>,
    old: Option<Box<dyn Body>>,
}

impl Change for Straight {
    fn swap(&mut self, worker: &mut Worker) {
        let me = worker.lanes.post.me();
        let Some(slot) = worker.slots.get_mut(self.id.index()) else {
            return;
        };
        if let Some(detour) = slot.body.as_detour() {
            let is_back = detour.to == me;
            if is_back && (detour.is_new && !worker.lanes.turn() || !detour.came(&mut worker.lanes))
            {
                return;
            }
            if is_back && let Some(inner) = detour.inner.take() {
                self.old = Some(std::mem::replace(&mut slot.body, inner));
            }
        }
        self.done.fetch_or(1 << me, Relaxed);
    }
}

impl Detour {
    /// Whether nothing of the node's packets is elsewhere. A turn has begun.
    fn came(&mut self, lanes: &mut Lanes) -> bool {
        self.is_new = false;
        lanes.post.is_direct()
    }
}

/// Where a node is.
struct Placement {
    worker: Option<usize>,
    done: Arc<AtomicU64>,
}

/// The nodes that are on one worker only, and those that come back from there.
#[derive(Default)]
pub(crate) struct Placements(BTreeMap<NodeId, Placement>);

impl Engine {
    /// Have a node run on `worker` only, or (none) on every worker for its own packets. Packets that the worker has no
    /// room for are counted by counter number `full.1` of node `full.0` and dropped. Nodes of interfaces, sources, stages
    /// and the drop node stay where they are.
    pub fn place(
        &mut self,
        name: &str,
        worker: Option<usize>,
        full: (NodeId, usize),
    ) -> Result<(), GraphError> {
        let id = self.node(name)?;
        if let Some(worker) = worker.filter(|worker| !self.crew().has(*worker)) {
            return Err(GraphError::NoWorker(worker));
        }
        let is_plain = self.role(id) == Role::Node && id != self.node(crate::DROP_NODE)?;
        if !is_plain || !self.is_from_start(id) {
            return Err(GraphError::NotPlaceable(name.to_owned()));
        }
        self.link_workers()?;
        self.room_for_changes()?;
        for at in self.crew().iter() {
            let shell = Detour {
                inner: None,
                to: worker.unwrap_or(at),
                is_new: false,
                full: Full {
                    reason: full.0.reason(full.1),
                    counter: full.1,
                    stats: self.stats_of(full.0, at),
                },
            };
            let shell = Some(Box::new(shell));
            let place = Place {
                id,
                to: worker,
                shell,
            };
            self.send(at, Box::new(place))?;
        }
        let done = Arc::new(AtomicU64::new(0));
        self.placements.0.insert(id, Placement { worker, done });
        Ok(())
    }

    /// Nodes that run on one worker only.
    pub fn placed(&self) -> Vec<(String, usize)> {
        let all = self.placements.0.iter();
        let here = all.filter_map(|(id, at)| Some((self.name(*id).to_owned(), at.worker?)));
        here.collect()
    }

    /// Let nodes take their places again that have come back. To be called now and then until it says that none is left.
    pub fn straighten(&mut self) -> bool {
        let all = self.crew().iter().fold(0, |all, w| all | 1 << w);
        let is_done = |at: &Placement| at.done.load(Relaxed) & all == all;
        self.placements
            .0
            .retain(|_, at| at.worker.is_some() || !is_done(at));
        let open = self.placements.0.iter().filter(|(_, at)| !is_done(at));
        let open: Vec<_> = open.map(|(id, at)| (*id, at.done.clone())).collect();
        if open.is_empty() || !self.settled() || self.room_for_changes().is_err() {
            return open.is_empty();
        }
        for (id, done) in open {
            for worker in self
                .crew()
                .iter()
                .filter(|w| done.load(Relaxed) & 1 << w == 0)
            {
                let straight = Straight {
                    id,
                    done: done.clone(),
                    old: None,
                };
                // A full queue has its turn later.
                let _ = self.send(worker, Box::new(straight));
            }
        }
        false
    }
}
