//! Packets that go from one worker to another: rings of whole frames, one for each pair of workers.
//!
//! Nothing blocks. A full ring refuses, and whoever hands over drops and counts. A frame is exchanged for an empty one in
//! both directions, so every worker keeps as many as it had. Whoever hands something over rings the other's bell.
//!
//! A worker's *turn* keeps order when packets of one flow go to another worker than before ([`Hands::turn`]): what is
//! handed over behind it waits, wherever it goes, until every worker has run what was handed to it before.

use crate::channel::Channel;
use crate::column::Column;
use crate::cx::RawCx;
use crate::engine::MAX_NODES;
use crate::frame::{Col, Frame, bits};
use crate::lanes::Lanes;
use crate::stats::bump;
use crate::worker::Worker;
use crate::{
    Change, Done, Engine, GraphError, Hands, Isa, MAX_WORKERS, Nexts, NodeId, Output, Vector,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use volley_simd::{Bits, all_equal};
use volley_tables::exchange::{Giver, Taker, Turns, exchange};

/// Frames that a worker takes from one other worker in one round.
const AT_ONCE: usize = 16;
/// A place of each ring is kept for a turn.
const SPARE: usize = 1;

/// What one ring has carried, written by the worker that hands over.
#[derive(Default)]
#[repr(align(64))]
struct LinkCells {
    frames: AtomicU64,
    packets: AtomicU64,
    refused: AtomicU64,
}

/// What one worker has handed to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandoffReport {
    /// The worker that handed over.
    pub from: usize,
    /// The worker that took.
    pub to: usize,
    /// Vectors and parts of vectors.
    pub frames: u64,
    /// Packets.
    pub packets: u64,
    /// Packets that were dropped because the other worker had too much waiting.
    pub refused: u64,
}

/// What lies in a ring's place: a frame for a node, an empty frame, or a turn.
struct Parcel {
    node: NodeId,
    /// 0 for packets.
    turn: u64,
    /// The node is elsewhere for the worker that handed over: it runs here, whatever this worker does with its own.
    placed: bool,
    frame: Box<Frame>,
}

impl Parcel {
    fn empty(frame: Box<Frame>) -> Self {
        Parcel {
            node: NodeId(0),
            turn: 0,
            placed: false,
            frame,
        }
    }
}

/// One worker's way to another.
struct Outlet {
    ring: Giver<Parcel>,
    cells: Arc<LinkCells>,
    peer: Arc<Channel>,
}

/// One worker's way from another.
struct Inlet {
    ring: Taker<Parcel>,
    turns: Arc<Turns>,
    /// The turn that has been taken out and is not over.
    turn: u64,
    /// Whether everything before it has run.
    arrived: bool,
}

/// All ways between one worker and the others, and its way to itself.
pub(crate) struct Post {
    me: usize,
    /// By worker.
    outlets: Vec<Option<Outlet>>,
    inlets: Vec<Inlet>,
    turns: Arc<Turns>,
    turn: u64,
    /// What stays here takes no ring: nothing of it is left in one.
    direct: bool,
    /// Nobody hands this worker anything any more.
    is_alone: bool,
}

/// Where a packet goes, as [`Vector::hand_over`] reads it: a worker and a node there.
#[inline(always)]
pub fn handoff_code(worker: usize, node: NodeId) -> u32 {
    (worker as u32) << 16 | u32::from(node.0)
}

/// What became of the packets of a vector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Handed {
    /// Packets that stayed on their worker.
    pub stayed: u64,
    /// Packets that went to another worker.
    pub went: u64,
    /// Packets that another worker had no room for.
    pub refused: u64,
}

impl Post {
    pub(crate) fn new(me: usize) -> Self {
        Post {
            me,
            outlets: (0..MAX_WORKERS).map(|_| None).collect(),
            inlets: Vec::with_capacity(MAX_WORKERS),
            turns: Turns::new(0),
            turn: 0,
            direct: true,
            is_alone: false,
        }
    }

    /// Hand a frame to a worker; it comes back when there is no room. An empty one is returned for it.
    #[inline(always)]
    fn give(
        &mut self,
        worker: usize,
        node: NodeId,
        placed: bool,
        frame: Box<Frame>,
    ) -> Result<Box<Frame>, Box<Frame>> {
        let Some(Some(outlet)) = self.outlets.get_mut(worker) else {
            return Err(frame);
        };
        let rows = frame.n as u64;
        let mut parcel = Parcel {
            node,
            turn: 0,
            placed,
            frame,
        };
        if !outlet.ring.give(&mut parcel, SPARE) {
            bump(&outlet.cells.refused, rows);
            return Err(parcel.frame);
        }
        bump(&outlet.cells.frames, 1);
        bump(&outlet.cells.packets, rows);
        if worker != self.me {
            outlet.peer.ring();
        }
        Ok(parcel.frame)
    }

    /// The number of this worker.
    #[inline(always)]
    pub(crate) fn me(&self) -> usize {
        self.me
    }

    /// See [`Hands::turn`]. Of `frame`, which is empty, another empty one comes back.
    fn turn(&mut self, mut frame: Box<Frame>) -> (Box<Frame>, bool) {
        let mut rings = self.outlets.iter_mut().flatten();
        if rings.any(|outlet| outlet.ring.room() == 0) {
            return (frame, false);
        }
        self.turn += 1;
        self.direct = false;
        let me = self.me;
        for (worker, outlet) in self.outlets.iter_mut().enumerate() {
            let Some(outlet) = outlet else { continue };
            let mut parcel = Parcel::empty(frame);
            parcel.turn = self.turn;
            outlet.ring.give(&mut parcel, 0);
            frame = parcel.frame;
            if worker != me {
                outlet.peer.ring();
            }
        }
        (frame, true)
    }

    /// Whether packets that stay here may go straight on.
    #[inline(always)]
    pub(crate) fn is_direct(&mut self) -> bool {
        self.direct || self.straighten()
    }

    #[cold]
    fn straighten(&mut self) -> bool {
        let (me, turns) = (self.me, Arc::as_ptr(&self.turns));
        let mine = self
            .inlets
            .iter_mut()
            .find(|i| Arc::as_ptr(&i.turns) == turns);
        self.direct = self.outlets.get(me).is_none_or(Option::is_none)
            || mine.is_none_or(|inlet| inlet.turn == 0 && inlet.ring.is_empty());
        self.direct
    }

    /// Whether the worker may end: nothing waits for it, and nothing will.
    pub(crate) fn may_leave(&self) -> bool {
        let none = |inlet: &Inlet| inlet.turn == 0 && inlet.ring.has_none();
        (self.is_alone || self.inlets.is_empty()) && self.inlets.iter().all(none)
    }

    /// Whether others have taken everything that this worker has handed over.
    #[inline(always)]
    pub(crate) fn is_taken(&self) -> bool {
        // Who has no ring from itself has none to others.
        self.inlets.is_empty() || self.are_empty()
    }

    #[inline(never)]
    fn are_empty(&self) -> bool {
        self.outlets.iter().flatten().all(|o| o.ring.is_empty())
    }

    /// Whether nothing waits in any ring to this worker.
    #[inline(always)]
    pub(crate) fn is_empty(&mut self) -> bool {
        let mut inlets = self.inlets.iter_mut();
        inlets.all(|inlet| inlet.turn == 0 && inlet.ring.is_empty())
    }
}

impl Inlet {
    /// Whether packets may be taken out: no turn is under way.
    #[inline(always)]
    fn is_open(&mut self) -> bool {
        if self.turn != 0 && self.arrived && self.turns.have_arrived(self.turn) {
            self.turn = 0;
        }
        self.turn == 0
    }
}

impl Lanes {
    /// Hand a whole frame to a worker. The frame comes back when there is no room.
    #[inline(always)]
    fn hand_frame(
        &mut self,
        worker: usize,
        node: NodeId,
        frame: Box<Frame>,
    ) -> Result<(), Box<Frame>> {
        if worker == self.post.me && self.post.is_direct() {
            self.push_frame(node, frame);
            return Ok(());
        }
        let empty = self.post.give(worker, node, false, frame)?;
        self.recycle(empty);
        Ok(())
    }

    /// The same for a node that is placed on that worker.
    pub(crate) fn hand_placed(
        &mut self,
        worker: usize,
        node: NodeId,
        frame: Box<Frame>,
    ) -> Result<(), Box<Frame>> {
        let empty = self.post.give(worker, node, true, frame)?;
        self.recycle(empty);
        Ok(())
    }

    /// From now on what is handed over waits for what was: see [`Hands::turn`].
    pub(crate) fn turn(&mut self) -> bool {
        let empty = self.frame();
        let (empty, turned) = self.post.turn(empty);
        self.recycle(empty);
        turned
    }

    /// Free the packets of `frame`, because they cannot go where they should, by way of the drop node.
    #[inline(never)]
    pub(crate) fn refuse(&mut self, mut frame: Box<Frame>, reason: u32, drop: NodeId) {
        let n = frame.n;
        frame.valid |= Col::Err.bit();
        frame.cols[Col::Err as usize].words_mut(n).fill(reason);
        self.push_frame(drop, frame);
    }
}

impl Hands<'_> {
    /// Begin a turn: what this worker hands over from now on, what it keeps for itself by [`Vector::hand_over`] included,
    /// is run when all workers have run what it handed to them before. False when a ring has no room for that: nothing
    /// has changed then. For whoever is about to send flows another way than before.
    pub fn turn(&mut self) -> bool {
        self.lanes.turn()
    }

    /// Whether the last turn is over, and what stays on this worker goes straight on.
    pub fn is_direct(&mut self) -> bool {
        self.lanes.post.is_direct()
    }

    /// The number of this worker.
    pub fn worker(&self) -> usize {
        self.lanes.post.me
    }

    /// Whether there is a ring from this worker to another ([`Engine::link_workers`]), or it is this one.
    pub fn reaches(&self, worker: usize) -> bool {
        let post = &self.lanes.post;
        worker == post.me || post.outlets.get(worker).is_some_and(Option::is_some)
    }
}

impl<I: Isa, X: Nexts> Output<'_, I, X> {
    /// See [`Vector::hands`].
    pub fn hands(&mut self) -> Hands<'_> {
        Hands::of(self.lanes)
    }
}

impl<I: Isa, X: Nexts> Vector<'_, I, X> {
    /// Give each packet to the worker and the node that its code names ([`handoff_code`]). Packets that another worker has
    /// no room for are tagged with counter number `full` of this node and go by edge `drop`.
    #[inline(always)]
    pub fn hand_over(self, codes: &Column, full: usize, drop: X) -> (Done, Handed) {
        let mut handed = Handed::default();
        let (frame, lanes, isa, raw) = (self.frame, self.lanes, self.isa, self.raw);
        let out = Way {
            reason: raw.node.reason(full),
            drop: raw.edges[drop.index()],
        };
        let codes = codes.words(frame.n);
        let Some(&first) = codes.first() else {
            lanes.recycle(frame);
            return (Done(()), handed);
        };
        if all_equal(codes) {
            out.whole(lanes, first, frame, &mut handed);
            return (Done(()), handed);
        }
        let mut done = Bits::none(codes.len());
        while let Some(row) = done.first_missing() {
            let set = isa.rows_equal(codes, codes[row]);
            let mut piece = lanes.frame();
            piece.valid = frame.valid;
            for col in bits(frame.valid) {
                isa.compress(&set, frame.words(col), piece.cols[col].all_mut());
            }
            piece.n = set.count();
            out.whole(lanes, codes[row], piece, &mut handed);
            done = done.or(&set);
        }
        lanes.recycle(frame);
        (Done(()), handed)
    }
}

/// Where packets go that are refused, and why.
struct Way {
    reason: u32,
    drop: NodeId,
}

impl Way {
    #[inline(always)]
    fn whole(&self, lanes: &mut Lanes, code: u32, frame: Box<Frame>, handed: &mut Handed) {
        let (worker, rows) = ((code >> 16) as usize, frame.n as u64);
        let node = match NodeId(code as u16) {
            node if node.index() < lanes.queues.len() => node,
            _ => lanes.drop_node,
        };
        let here = worker == lanes.post.me;
        match lanes.hand_frame(worker, node, frame) {
            Ok(()) if here => handed.stayed += rows,
            Ok(()) => handed.went += rows,
            Err(frame) => {
                handed.refused += rows;
                lanes.refuse(frame, self.reason, self.drop);
            }
        }
    }
}

impl Worker {
    /// Take what other workers have handed over and run it. Returns how many packets.
    #[inline(always)]
    pub(crate) fn take_handed(&mut self, now_ns: u64) -> usize {
        if self.lanes.post.inlets.is_empty() || self.lanes.post.is_empty() {
            return 0;
        }
        self.open_parcels(now_ns)
    }

    #[inline(never)]
    fn open_parcels(&mut self, now_ns: u64) -> usize {
        let mut rows = 0;
        for at in 0..self.lanes.post.inlets.len() {
            for _ in 0..AT_ONCE {
                let frame = self.lanes.frame();
                let Some(parcel) = self.parcel(at, frame) else {
                    break;
                };
                if parcel.turn != 0 {
                    self.lanes.recycle(parcel.frame);
                    break;
                }
                rows += parcel.frame.n;
                self.arrive(parcel, now_ns);
            }
        }
        self.run_pending(now_ns, None);
        let me = self.lanes.post.me;
        for inlet in &mut self.lanes.post.inlets {
            if inlet.turn != 0 && !inlet.arrived {
                inlet.arrived = true;
                inlet.turns.arrive(me, inlet.turn);
            }
        }
        rows
    }

    /// The next parcel of an inlet, for an empty frame; a turn is noted.
    #[inline(always)]
    fn parcel(&mut self, inlet: usize, frame: Box<Frame>) -> Option<Parcel> {
        let mut parcel = Parcel::empty(frame);
        let from = &mut self.lanes.post.inlets[inlet];
        if !from.is_open() || !from.ring.take(&mut parcel) {
            self.lanes.recycle(parcel.frame);
            return None;
        }
        if parcel.turn != 0 {
            (from.turn, from.arrived) = (parcel.turn, false);
        }
        Some(parcel)
    }

    /// Put a frame that was handed over where it belongs.
    #[inline(always)]
    fn arrive(&mut self, parcel: Parcel, now_ns: u64) {
        let Parcel {
            node,
            frame,
            placed,
            ..
        } = parcel;
        let Some(slot) = self.slots.get_mut(node.index()) else {
            let drop = self.lanes.drop_node;
            return self.lanes.push_frame(drop, frame);
        };
        if !placed {
            return self.lanes.push_frame(node, frame);
        }
        let cx = RawCx {
            node,
            edges: &slot.edges,
            stats: &slot.stats,
            guard: self.reader.guard(),
            now_ns,
        };
        if let Err(frame) = slot.body.arrive(self.level, &cx, &mut self.lanes, frame) {
            self.lanes.push_frame(node, frame);
        }
    }
}

impl Drop for Worker {
    /// What was handed to a worker that ends is freed. Changes that it did not take up go too: a ring among them would hold
    /// the channel of the worker at its other end, whose changes may hold this one's.
    fn drop(&mut self) {
        while self.channel.todo.pop().is_some() {}
        let lanes = &mut self.lanes;
        for mut inlet in std::mem::take(&mut lanes.post.inlets) {
            let mut parcel = Parcel::empty(Frame::new(0));
            while inlet.ring.take(&mut parcel) {
                let frame = std::mem::replace(&mut parcel.frame, Frame::new(0));
                if parcel.turn == 0 {
                    lanes.free(frame);
                }
            }
            inlet.turns.leave(lanes.post.me);
        }
    }
}

/// A worker gets its ends of rings.
struct AddLinks {
    turns: Arc<Turns>,
    outlets: Vec<(usize, Option<Outlet>)>,
    inlets: Vec<Inlet>,
}

impl Change for AddLinks {
    fn swap(&mut self, worker: &mut Worker) {
        let post = &mut worker.lanes.post;
        std::mem::swap(&mut post.turns, &mut self.turns);
        for (to, outlet) in &mut self.outlets {
            // Nothing has been handed over there: whoever takes has arrived at all turns so far.
            post.turns.join(*to, post.turn);
            std::mem::swap(&mut post.outlets[*to], outlet);
        }
        // There is room for one inlet from each worker.
        post.inlets.append(&mut self.inlets);
    }
}

/// A worker is gone, and with it the rings to and from it.
struct DropLinks {
    worker: usize,
    turns: Arc<Turns>,
    outlet: Option<Outlet>,
    inlets: Vec<Inlet>,
}

impl Change for DropLinks {
    fn swap(&mut self, worker: &mut Worker) {
        let post = &mut worker.lanes.post;
        if post.me == self.worker {
            post.is_alone = true;
            return;
        }
        self.outlet = post.outlets[self.worker].take();
        post.turns.leave(self.worker);
        let gone = |inlet: &mut Inlet| Arc::ptr_eq(&inlet.turns, &self.turns);
        let Some(at) = post.inlets.iter_mut().position(gone) else {
            return;
        };
        // What it had handed over is run first; the ring then stays, empty, which costs a look in each round.
        if post.inlets[at].turn == 0 && post.inlets[at].ring.is_empty() {
            self.inlets.push(post.inlets.swap_remove(at));
        }
    }
}

/// The rings that there are.
#[derive(Default)]
pub(crate) struct Links {
    rings: BTreeMap<(usize, usize), Arc<LinkCells>>,
    turns: BTreeMap<usize, Arc<Turns>>,
}

/// Frames in each ring: fewer where there are many rings.
fn depth(workers: usize) -> usize {
    (256 / workers.max(1)).clamp(4, 64)
}

impl Engine {
    /// Make rings between all workers that there are, where there are none yet. They are used once the change has reached
    /// the workers; until then what is handed over is refused.
    pub fn link_workers(&mut self) -> Result<(), GraphError> {
        let workers: Vec<usize> = self.crew().open().collect();
        let is_missing = |w: &usize| !self.links.rings.contains_key(&(*w, *w));
        if !workers.iter().any(is_missing) {
            return Ok(());
        }
        self.room_for_changes()?;
        let (size, depth) = (self.settings().vector_size, depth(workers.len()));
        let mut adds: BTreeMap<usize, AddLinks> = BTreeMap::new();
        for &worker in &workers {
            let none = self.no_links(worker);
            adds.insert(worker, none);
        }
        for (&from, &to) in workers
            .iter()
            .flat_map(|f| workers.iter().map(move |t| (f, t)))
        {
            if self.links.rings.contains_key(&(from, to)) {
                continue;
            }
            let empty = |_| Parcel::empty(Frame::new(size));
            let (giver, taker) = exchange((0..depth).map(empty).collect());
            let cells = Arc::new(LinkCells::default());
            self.links.rings.insert((from, to), cells.clone());
            let outlet = Outlet {
                ring: giver,
                cells,
                peer: self.channel(to),
            };
            let turns = self.links.turns[&from].clone();
            let inlet = Inlet {
                ring: taker,
                turns,
                turn: 0,
                arrived: false,
            };
            if let Some(add) = adds.get_mut(&from) {
                add.outlets.push((to, Some(outlet)));
            }
            if let Some(add) = adds.get_mut(&to) {
                add.inlets.push(inlet);
            }
        }
        for (worker, add) in adds {
            self.send(worker, Box::new(add))?;
        }
        Ok(())
    }

    /// A worker goes: nobody is to hand it anything any more, and its rings go once they are empty. It does not end before
    /// this was said, if it has rings.
    pub fn unlink(&mut self, worker: usize) {
        self.links
            .rings
            .retain(|(from, to), _| *from != worker && *to != worker);
        let Some(turns) = self.links.turns.remove(&worker) else {
            return;
        };
        for other in self.crew().iter() {
            let drop = DropLinks {
                worker,
                turns: turns.clone(),
                outlet: None,
                inlets: Vec::with_capacity(1),
            };
            // A worker whose queue is full keeps its rings; what it hands over there is refused when they are full.
            let _ = self.send(other, Box::new(drop));
        }
    }

    fn no_links(&mut self, worker: usize) -> AddLinks {
        let turns = self.links.turns.entry(worker);
        AddLinks {
            turns: turns.or_insert_with(|| Turns::new(MAX_WORKERS)).clone(),
            outlets: Vec::new(),
            inlets: Vec::new(),
        }
    }

    /// What workers have handed to each other.
    pub fn handoffs(&self) -> Vec<HandoffReport> {
        let report = |(&(from, to), cells): (&(usize, usize), &Arc<LinkCells>)| HandoffReport {
            from,
            to,
            frames: cells.frames.load(Relaxed),
            packets: cells.packets.load(Relaxed),
            refused: cells.refused.load(Relaxed),
        };
        self.links.rings.iter().map(report).collect()
    }
}

const _: () = assert!(MAX_NODES <= 1 << 16, "a node fits the code of a handoff");
