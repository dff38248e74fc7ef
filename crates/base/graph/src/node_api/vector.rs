//! The vector of packets that a node runs on.
//!
//! The fast path works on whole columns, the slow path ([`Vector::each`]) on one packet at a time. In both, the rows
//! leave by a sending method, and only these methods return [`Consumed`].

use crate::data::col::{Col, MANDATORY};
use crate::data::column::{Column, Words};
use crate::data::counters::Counters;
use crate::data::frame::{CHAINED, Frame, IDX, POS};
use crate::data::ids::NodeId;
use crate::data::packet::{Packet, PacketView};
use crate::node_api::context::{Cx, RawCx};
use crate::node_api::edges::Nexts;
use crate::queues::arcs::ArcId;
use crate::queues::dispatch::Dispatch;
use std::marker::PhantomData;
use volley_buf::{Base, META, POS_MAX, Pool, READABLE};
use volley_simd::{Isa, all_equal, bytes_read, or_all, prefetch};

/// Proof that every row of a vector was sent, held or freed.
#[must_use = "a node returns what the sending verb gave it"]
pub struct Consumed(pub(crate) ());

/// Marks a code of [`Vector::send_by_or_to`] that names a node instead of an edge.
const RUN_TIME: u32 = 1 << 16;

/// The code of a node chosen at run time, for [`Vector::send_by_or_to`].
#[inline(always)]
pub fn node_code(node: NodeId) -> u32 {
    RUN_TIME | u32::from(node.0)
}

/// A vector of packets, owned by the node that runs.
pub struct Vector<'a, I: Isa, X: Nexts> {
    pub(crate) frame: Box<Frame>,
    pub(crate) dispatch: &'a mut Dispatch,
    pub(crate) raw: &'a RawCx<'a>,
    pub(crate) isa: I,
    pub(crate) next: PhantomData<X>,
}

// Functions that all nodes share: each node with its own copy would make the program hundreds of kilobytes larger.

/// Drops the rows whose code in `verdict` is not 0. `counted` counts a packet of a code and returns the reason's number; `edge` is the
/// edge of a code.
#[inline(never)]
fn drop_rows<I: Isa>(
    isa: I,
    dispatch: &mut Dispatch,
    frame: &mut Frame,
    verdict: &Column,
    (counted, edge): (&mut dyn FnMut(u32) -> u32, &dyn Fn(u32) -> NodeId),
) {
    let n = frame.n;
    let codes = verdict.words(n);
    let stay = isa.rows_equal(codes, 0);
    let leave = stay.inverted();
    frame.make_valid(Col::ERR, 0);
    let (mut first, mut one) = (None, true);
    for row in leave.iter() {
        let code = codes[row];
        frame.cols[Col::ERR.at()].words_mut(n)[row] = counted(code);
        let edge = edge(code);
        one &= *first.get_or_insert(edge) == edge;
    }
    match first {
        Some(edge) if one => dispatch.push_set(isa, edge, frame, &leave),
        _ => {
            for row in leave.iter() {
                dispatch.push_row(edge(codes[row]), frame, row);
            }
        }
    }
    frame.valid &= !Col::ERR.bit();
    frame.retain_rows(isa, &stay);
}

/// Sends the rows whose mark is not 0 to a node.
#[inline(never)]
fn divert_rows<I: Isa>(
    isa: I,
    dispatch: &mut Dispatch,
    frame: &mut Frame,
    marks: &Column,
    node: NodeId,
) {
    let stay = isa.rows_equal(marks.words(frame.n), 0);
    dispatch.push_set(isa, node, frame, &stay.inverted());
    frame.retain_rows(isa, &stay);
}

/// Sends each row to the node that `targets` names.
#[inline(never)]
fn split_rows<I: Isa>(isa: I, dispatch: &mut Dispatch, frame: Box<Frame>, targets: Column) {
    let n = frame.n;
    dispatch.split(isa, frame, targets.words(n), |code| NodeId(code as u16));
    dispatch.targets = targets;
}

/// Set where the packets of a frame start, as offsets into the arena. Places behind those of the packets repeat the last packet.
#[inline(always)]
pub(crate) fn locate(frame: &Frame, offsets: &mut [usize]) {
    let n = frame.n;
    let pos = frame.words(POS).iter();
    Pool::offsets(frame.words(IDX), pos.map(|p| p & !CHAINED), offsets);
    if offsets.len() > n {
        let last = offsets[n - 1];
        offsets[n..].fill(last);
    }
}

/// Change the first `N` bytes of the packets at the positions `at` in the arena; `body` gets each packet's row.
///
/// # Safety
/// The caller owns the buffers, each once, and `N` bytes from the positions are in their slots.
#[inline(always)]
pub(crate) unsafe fn apply<const N: usize>(
    base: Base,
    at: &[usize],
    mut body: impl FnMut(usize, &mut [u8; N]),
) {
    // SAFETY: the caller's contract.
    let mut one = |row: usize, at: usize| body(row, unsafe { &mut *base.at(at).cast::<[u8; N]>() });
    let (eights, rest) = at.as_chunks::<8>();
    for (eight, at) in eights.iter().enumerate() {
        for r in 0..8 {
            one(8 * eight + r, at[r]);
        }
    }
    for (r, &at) in rest.iter().enumerate() {
        one(8 * eights.len() + r, at);
    }
}

/// Load `K` header words, from byte `offset` on, of packets whose positions in the arena are `at`.
///
/// # Safety
/// The caller owns the buffers, and the positions are in their slots.
#[inline(always)]
pub(crate) unsafe fn transpose<I: Isa, const K: usize>(
    isa: I,
    base: Base,
    at: &[[usize; 8]],
    (offset, out): (usize, &mut Words<K>),
) {
    const { assert!(bytes_read(K) <= READABLE / 2) };
    let offset = offset.min(READABLE - bytes_read(K));
    // SAFETY: the caller's contract.
    let start = |at: usize| unsafe { base.at(at) }.wrapping_add(offset).cast_const();
    let (strips, rest) = at.as_chunks::<2>();
    // SAFETY: the caller's contract: READABLE bytes follow every position, and `offset` plus the bytes read are within them. Every
    // destination has as many words as there are addresses, and destinations do not overlap.
    unsafe {
        for (strip, [low, high]) in strips.iter().enumerate() {
            let of_row = |r: usize| start(if r < 8 { low[r] } else { high[r - 8] });
            isa.load_sixteen(of_row, &out.places(2 * strip));
        }
        for at in rest {
            isa.load_words(|r| start(at[r]), &out.places(2 * strips.len()));
        }
    }
}

/// The destination of a packet in [`Vector::each_to`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NextNode<X> {
    /// Along an edge.
    Edge(X),
    /// To a node chosen at run time.
    Node(NodeId),
}

impl<'a, I: Isa, X: Nexts> Vector<'a, I, X> {
    /// The number of packets.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.frame.n
    }

    /// The instruction-set level that this code is compiled for.
    #[inline(always)]
    pub fn isa(&self) -> I {
        self.isa
    }

    /// Whether no packet is left.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.frame.n == 0
    }

    /// Whether a column was filled by an earlier node.
    #[inline(always)]
    pub fn has(&self, col: Col) -> bool {
        self.frame.has(col)
    }

    /// A column, one word for each packet. Check [`Vector::has`] first: a column that is not filled has stale words.
    #[inline(always)]
    pub fn column(&self, col: Col) -> &[u32] {
        self.frame.declared.check(col);
        self.frame.words(col.at())
    }

    /// A column in strips of 16 words: see [`Column::strips`].
    #[inline(always)]
    pub fn strips(&self, col: Col) -> &[[u32; 16]] {
        self.frame.declared.check(col);
        self.frame.cols[col.at()].strips(self.frame.n)
    }

    /// A column, for writing in place. It counts as filled from now on.
    #[inline(always)]
    pub fn column_mut(&mut self, col: Col) -> &mut [u32] {
        self.frame.declared.check(col);
        self.frame.valid |= col.bit();
        self.frame.cols[col.at()].words_mut(self.frame.n)
    }

    /// The number of packets, for code that handles few packets ([`Isa::FEW`]): below 16, which the compiler knows.
    #[inline(always)]
    pub fn few(&self) -> usize {
        debug_assert!(self.frame.n < 16);
        self.frame.n.min(15)
    }

    /// The words of the first 16 packets of [`Vector::column`]: an index below 16 needs no bounds check.
    #[inline(always)]
    pub fn few_of(&self, col: Col) -> &[u32; 16] {
        self.frame.declared.check(col);
        self.frame.first(col.at())
    }

    /// As [`Vector::few_of`], for writing. The column counts as filled from now on.
    #[inline(always)]
    pub fn few_of_mut(&mut self, col: Col) -> &mut [u32; 16] {
        self.frame.declared.check(col);
        self.frame.valid |= col.bit();
        self.frame.first_mut(col.at())
    }

    /// The word that all packets have in a column; none where they differ, 0 where there is no packet.
    #[inline(always)]
    pub fn same(&self, col: Col) -> Option<u32> {
        if I::FEW {
            let words = self.few_of(col);
            let differ = (1..self.few()).fold(0, |any, row| any | (words[row] ^ words[0]));
            return (differ == 0).then_some(words[0]);
        }
        let words = self.column(col);
        all_equal(words).then(|| words.first().map_or(0, |&word| word))
    }

    /// Fill a column with `default` where no earlier node filled it.
    #[inline(always)]
    pub fn require(&mut self, col: Col, default: u32) {
        self.frame.declared.check(col);
        self.frame.make_valid(col, default);
    }

    /// Exchange a column of the node for one of the vector: nothing is copied. The node gets the old column's memory,
    /// to use it for the next vector.
    #[inline(always)]
    pub fn put(&mut self, col: Col, column: &mut Column) {
        self.frame.declared.check(col);
        self.frame.exchange(col.at(), column);
        self.frame.valid |= col.bit();
    }

    /// Take a column out of the vector, by exchange. It no longer counts as filled.
    #[inline(always)]
    pub fn take(&mut self, col: Col, into: &mut Column) {
        self.frame.declared.check(col);
        self.frame.exchange(col.at(), into);
        self.frame.valid &= !col.bit();
    }

    /// Mark columns as not filled because no later node reads them, so that splits do not copy them.
    #[inline(always)]
    pub fn forget(&mut self, cols: &[Col]) {
        for col in cols {
            self.frame.valid &= !(col.bit() & !MANDATORY);
        }
    }

    /// The start of every packet, as an offset into the arena. The last offset is repeated up to a multiple of eight.
    #[inline(always)]
    fn locate(&mut self) {
        let n = self.frame.n;
        let room = if I::FEW { n } else { n.next_multiple_of(8) };
        locate(&self.frame, &mut self.dispatch.offsets[..room]);
    }

    /// Load `K` 32-bit header words from byte `offset` of every packet, in host order (the first byte is the highest).
    /// Bytes behind the packet's end are undefined: compare with the length column.
    #[inline(always)]
    pub fn words<const K: usize>(&mut self, offset: usize, out: &mut Words<K>) {
        self.locate();
        self.transpose(offset, out);
    }

    /// As [`Vector::words`], for the node that reads the packets first: all cache lines are prefetched before the
    /// first read.
    #[inline(always)]
    pub fn first_words<const K: usize>(&mut self, offset: usize, out: &mut Words<K>) {
        self.locate();
        let base = self.dispatch.bufs.pool().base();
        for &at in &self.dispatch.offsets[..self.frame.n] {
            prefetch(base.hint(at));
        }
        self.transpose(offset, out);
    }

    /// As [`Vector::words`] from two offsets, for headers with words in between that are not needed.
    #[inline(always)]
    pub fn words_of_two<const K: usize, const L: usize>(
        &mut self,
        first: (usize, &mut Words<K>),
        second: (usize, &mut Words<L>),
    ) {
        self.locate();
        self.transpose(first.0, first.1);
        self.transpose(second.0, second.1);
    }

    /// The header words of the packets that were located.
    #[inline(always)]
    fn transpose<const K: usize>(&self, offset: usize, out: &mut Words<K>) {
        const { assert!(bytes_read(K) <= READABLE / 2) };
        let (isa, base) = (self.isa, self.dispatch.bufs.pool().base());
        if I::FEW {
            let offset = offset.min(READABLE - bytes_read(K));
            for (row, &at) in self.dispatch.offsets[..self.frame.n].iter().enumerate() {
                // SAFETY: the row owns its buffer, READABLE bytes follow its position, and `offset` plus the words are within them.
                let words = unsafe {
                    base.at(at)
                        .add(offset)
                        .cast::<[[u8; 4]; K]>()
                        .read_unaligned()
                };
                out.set_row(row, words.map(u32::from_be_bytes));
            }
            return;
        }
        let eights = self.dispatch.offsets[..self.frame.n.next_multiple_of(8)].as_chunks::<8>();
        // SAFETY: the rows own their buffers, and positions are in their slots.
        unsafe { transpose(isa, base, eights.0, (offset, out)) };
    }

    /// Whether any packet is a chain of buffers.
    #[inline(always)]
    pub fn has_chains(&self) -> bool {
        or_all(self.frame.words(POS)) & CHAINED != 0
    }

    /// `K` header words of one packet, as [`Vector::words`] loads them: for code that handles few packets row by row
    /// ([`Isa::FEW`]).
    #[inline(always)]
    pub fn head<const K: usize>(&self, row: usize, offset: usize) -> [u32; K] {
        const { assert!(4 * K <= READABLE / 2) };
        let offset = offset.min(READABLE - 4 * K);
        // SAFETY: the row owns its buffer, READABLE bytes follow its position, and `offset` plus the words are within
        // them.
        let words = unsafe {
            self.place(row)
                .add(offset)
                .cast::<[[u8; 4]; K]>()
                .read_unaligned()
        };
        words.map(u32::from_be_bytes)
    }

    /// The first `N` bytes of one packet, for writing: as [`Vector::apply`], for code that works row by row.
    #[inline(always)]
    pub fn front<const N: usize>(&mut self, row: usize) -> &mut [u8; N] {
        const { assert!(N <= READABLE) };
        // SAFETY: the row owns its buffer, and `self` is borrowed as long as the reference lives; N bytes from the
        // position are in the slot.
        unsafe { &mut *self.place(row).cast::<[u8; N]>() }
    }

    /// Handle few packets ([`Isa::FEW`]) one by one: `body` gets the first `N` bytes of each and its words in `cols`, which count
    /// as filled from now on. Ends with the first packet for which `body` returns false; true if there is none. Every column is
    /// checked once, and not for each packet. False at once if a column is named twice, or is one of the engine's own.
    #[inline(always)]
    pub fn few_frames<const N: usize, const C: usize>(
        &mut self,
        cols: [Col; C],
        mut body: impl FnMut(&mut [u8; N], [&mut u32; C]) -> bool,
    ) -> bool {
        const { assert!(N <= READABLE) };
        let rows = self.few();
        for col in cols {
            self.frame.declared.check(col);
            self.frame.valid |= col.bit();
        }
        let pool = self.dispatch.bufs.pool();
        let Some((idx, pos, mut words)) = self.frame.firsts(cols.map(Col::at)) else {
            return false;
        };
        for row in 0..rows {
            let at = (pos[row] & !CHAINED) as usize;
            // SAFETY: the row owns its buffer, and `self` is borrowed as long as the reference lives; N bytes from the
            // position are in the slot.
            let frame = unsafe { &mut *pool.at(idx[row], at).cast::<[u8; N]>() };
            if !body(frame, words.each_mut().map(|words| &mut words[row])) {
                return false;
            }
        }
        true
    }

    /// The start of one packet.
    #[inline(always)]
    fn place(&self, row: usize) -> *mut u8 {
        let (idx, pos) = if I::FEW {
            assert!(row < self.frame.n);
            let (idx, pos) = (self.frame.first(IDX), self.frame.first(POS));
            (idx[row % 16], pos[row % 16])
        } else {
            (self.frame.words(IDX)[row], self.frame.words(POS)[row])
        };
        // SAFETY: the row owns its buffer, and positions are in the slot.
        unsafe { self.dispatch.bufs.pool().at(idx, (pos & !CHAINED) as usize) }
    }

    /// Change the first `N` bytes of every packet in place.
    #[inline(always)]
    pub fn apply<const N: usize>(&mut self, body: impl FnMut(usize, &mut [u8; N])) {
        const { assert!(N <= READABLE) };
        self.locate();
        let base = self.dispatch.bufs.pool().base();
        // SAFETY: each row owns its own buffer; N bytes from the position are in the slot.
        unsafe { apply(base, &self.dispatch.offsets[..self.frame.n], body) };
    }

    /// As [`Vector::apply`]; `body` gets each packet's word of `words` in place of its row.
    ///
    /// # Panics
    /// If there are fewer words than packets.
    #[inline(always)]
    pub fn apply_each<const N: usize>(
        &mut self,
        words: &[u32],
        mut body: impl FnMut(u32, &mut [u8; N]),
    ) {
        const { assert!(N <= READABLE) };
        self.locate();
        let base = self.dispatch.bufs.pool().base();
        let (offsets, words) = (
            &self.dispatch.offsets[..self.frame.n],
            &words[..self.frame.n],
        );
        // SAFETY: each row owns its own buffer; N bytes from the position are in the slot.
        let mut one =
            |word: u32, at: usize| body(word, unsafe { &mut *base.at(at).cast::<[u8; N]>() });
        let ((eights, rest), (of_eights, of_rest)) =
            (offsets.as_chunks::<8>(), words.as_chunks::<8>());
        for (at, words) in eights.iter().zip(of_eights) {
            for r in 0..8 {
                one(words[r], at[r]);
            }
        }
        for (&at, &word) in rest.iter().zip(of_rest) {
            one(word, at);
        }
    }

    /// The position that all packets have in their buffers; none where positions differ, or packets have several buffers.
    #[inline(always)]
    pub fn same_position(&self) -> Option<usize> {
        let words = self.frame.words(POS);
        let first = *words.first()?;
        (first & CHAINED == 0 && all_equal(words)).then_some(first as usize)
    }

    /// Advance every packet's position by `bytes`.
    #[inline(always)]
    pub fn advance(&mut self, bytes: u32) {
        let n = self.frame.n;
        if I::FEW {
            let (rows, [pos, len]) = (self.few(), self.frame.first_places());
            for row in 0..rows {
                let at = (pos[row] & !CHAINED) + bytes;
                pos[row] = (pos[row] & CHAINED) | at.min(POS_MAX as u32);
                len[row] = len[row].saturating_sub(bytes);
            }
            return;
        }
        for pos in self.frame.cols[POS].words_mut(n) {
            *pos = (*pos & CHAINED) | ((*pos & !CHAINED) + bytes).min(POS_MAX as u32);
        }
        for len in self.frame.cols[Col::LEN.at()].words_mut(n) {
            *len = len.saturating_sub(bytes);
        }
    }

    /// Move every packet's position back by `bytes`, into the headroom.
    #[inline(always)]
    pub fn retreat(&mut self, bytes: u32) {
        let n = self.frame.n;
        if I::FEW {
            let (rows, [pos, len]) = (self.few(), self.frame.first_places());
            for row in 0..rows {
                let at = (pos[row] & !CHAINED).saturating_sub(bytes);
                pos[row] = (pos[row] & CHAINED) | at.max(META as u32);
                len[row] = len[row].wrapping_add(bytes);
            }
            return;
        }
        for pos in self.frame.cols[POS].words_mut(n) {
            *pos = (*pos & CHAINED) | (*pos & !CHAINED).saturating_sub(bytes).max(META as u32);
        }
        for len in self.frame.cols[Col::LEN.at()].words_mut(n) {
            *len = len.wrapping_add(bytes);
        }
    }

    /// Drop the packets whose `verdict` is not 0: each is counted by its code (see [`Counters::code`]), tagged with
    /// the reason and sent to the edge that `route` names. The others stay, in order. When all verdicts are 0, this costs
    /// one pass over them.
    #[inline(always)]
    pub fn drop_out<C: Counters>(
        &mut self,
        cx: &Cx<'_, C>,
        verdict: &Column,
        route: impl Fn(C) -> X,
    ) {
        if or_all(verdict.words(self.frame.n)) != 0 {
            self.drop_rows(cx, verdict, route);
        }
    }

    #[inline(always)]
    fn drop_rows<C: Counters>(&mut self, cx: &Cx<'_, C>, verdict: &Column, route: impl Fn(C) -> X) {
        let raw = self.raw;
        let edge = |code| raw.edges[route(C::from_code(code)).index()];
        let mut counted = |code| {
            let counter = C::from_code(code);
            cx.count(counter, 1);
            raw.node.reason(counter.index())
        };
        drop_rows(
            self.isa,
            self.dispatch,
            &mut self.frame,
            verdict,
            (&mut counted, &edge),
        );
    }

    /// Send packets whose mark is not 0 to edge `next`; the others stay, in order. When all marks are 0, this costs one pass
    /// over them.
    #[inline(always)]
    pub fn divert(&mut self, marks: &Column, next: X) {
        if or_all(marks.words(self.frame.n)) != 0 {
            let edge = self.raw.edges[next.index()];
            divert_rows(self.isa, self.dispatch, &mut self.frame, marks, edge);
        }
    }

    /// Drop every packet for one reason, to edge `drop`.
    #[inline(always)]
    pub fn fail_all<C: Counters>(mut self, cx: &Cx<'_, C>, counter: C, drop: X) -> Consumed {
        cx.count(counter, self.frame.n as u64);
        let reason = self.raw.node.reason(counter.index());
        self.column_mut(Col::ERR).fill(reason);
        self.send_all(drop)
    }

    /// The node of an edge: for [`Vector::replicate`].
    pub fn edge(&self, next: X) -> NodeId {
        self.raw.edges[next.index()]
    }

    /// Send all packets to one edge: the frame is moved, not copied, when no rows are pending at the next node.
    #[inline(always)]
    pub fn send_all(self, next: X) -> Consumed {
        self.dispatch
            .push_frame(self.raw.edges[next.index()], self.frame);
        Consumed(())
    }

    /// Send all packets to a node chosen at run time; an id that is no node means the drop node.
    #[inline(always)]
    pub fn send_all_to(self, node: NodeId) -> Consumed {
        let known = node.index() < self.dispatch.queues.len();
        self.dispatch.push_frame(
            if known { node } else { self.dispatch.drop_node },
            self.frame,
        );
        Consumed(())
    }

    /// Send each packet to the edge whose position `codes` names; a position that is no edge means the last edge.
    #[inline(always)]
    pub fn send_by(self, codes: &Column) -> Consumed {
        let edges = &self.raw.edges;
        let codes = codes.words(self.frame.n);
        self.dispatch.split(self.isa, self.frame, codes, |code| {
            edges[(code as usize).min(edges.len() - 1)]
        });
        Consumed(())
    }

    /// As [`Vector::send_by`], where a code may also name a node chosen at run time ([`node_code`]).
    #[inline(always)]
    pub fn send_by_or_to(self, codes: &Column) -> Consumed {
        let (edges, known) = (&self.raw.edges, self.dispatch.queues.len());
        let last = self.dispatch.drop_node;
        let node = |code: u32| match (code & RUN_TIME, code as u16) {
            (0, edge) => edges[usize::from(edge).min(edges.len() - 1)],
            (_, node) if usize::from(node) < known => NodeId(node),
            _ => last,
        };
        let codes = codes.words(self.frame.n);
        self.dispatch.split(self.isa, self.frame, codes, node);
        Consumed(())
    }

    /// Send each packet to the node that `nodes` names ([`NodeId`] as a word): edges made at run time. An id that is
    /// no node means the drop node.
    #[inline(always)]
    pub fn send_to(self, nodes: &Column) -> Consumed {
        let (count, last) = (self.dispatch.queues.len(), self.dispatch.drop_node);
        let codes = nodes.words(self.frame.n);
        let node = |code| {
            if (code as usize) < count {
                NodeId(code as u16)
            } else {
                last
            }
        };
        self.dispatch.split(self.isa, self.frame, codes, node);
        Consumed(())
    }

    /// Enter feature arc `arc`: packets whose interface (column `by`) has features are sent to the first feature, all
    /// others to `next`. Costs one branch when no interface has features.
    #[inline(always)]
    pub fn send_arc(self, arc: ArcId, by: Col, next: X) -> Consumed {
        if !self.dispatch.arcs.is_active(arc) {
            return self.send_all(next);
        }
        self.enter_arc(arc, by, next)
    }

    #[inline(never)]
    fn enter_arc(mut self, arc: ArcId, by: Col, next: X) -> Consumed {
        let end = self.raw.edges[next.index()];
        let mut targets = std::mem::take(&mut self.dispatch.targets);
        self.frame.make_valid(Col::FEATURE, 0);
        for row in 0..self.frame.n {
            let interface = self.frame.words(by.at())[row];
            let (node, place) = self.dispatch.arcs.enter(arc, interface).unwrap_or((end, 0));
            let n = self.frame.n;
            self.frame.cols[Col::FEATURE.at()].words_mut(n)[row] = place;
            targets.words_mut(n)[row] = u32::from(node.0);
        }
        self.leave_by(targets)
    }

    /// Send each packet to the next feature of its arc; a packet that is on no arc is sent to the drop node.
    #[inline(never)]
    pub fn next_feature(mut self) -> Consumed {
        let mut targets = std::mem::take(&mut self.dispatch.targets);
        self.frame.make_valid(Col::FEATURE, 0);
        for row in 0..self.frame.n {
            let n = self.frame.n;
            let word = &mut self.frame.cols[Col::FEATURE.at()].words_mut(n)[row];
            let (node, place) = self
                .dispatch
                .arcs
                .next_on_arc(*word)
                .unwrap_or((self.dispatch.drop_node, 0));
            *word = place;
            targets.words_mut(n)[row] = u32::from(node.0);
        }
        self.leave_by(targets)
    }

    /// As [`Vector::each`], where a packet may also be sent to a node chosen at run time; an id that is no node means the
    /// drop node.
    #[inline(always)]
    pub fn each_to(mut self, mut body: impl FnMut(&mut Packet<'_>) -> NextNode<X>) -> Consumed {
        let mut targets = std::mem::take(&mut self.dispatch.targets);
        let (count, last) = (self.dispatch.queues.len(), self.dispatch.drop_node);
        for row in 0..self.frame.n {
            let mut packet = Packet {
                pool: self.dispatch.bufs.pool(),
                frame: &mut self.frame,
                row,
            };
            let node = match body(&mut packet) {
                NextNode::Edge(next) => self.raw.edges[next.index()],
                NextNode::Node(node) if node.index() < count => node,
                NextNode::Node(_) => last,
            };
            targets.words_mut(self.frame.n)[row] = u32::from(node.0);
        }
        self.leave_by(targets)
    }

    #[inline(always)]
    fn leave_by(self, targets: Column) -> Consumed {
        split_rows(self.isa, self.dispatch, self.frame, targets);
        Consumed(())
    }

    /// Free all packets: a driver has transmitted them, or they are dropped.
    #[inline(always)]
    pub fn free(self) -> Consumed {
        self.dispatch.free(self.frame);
        Consumed(())
    }

    /// A packet of the vector, for reading.
    #[inline(always)]
    pub fn view(&self, row: usize) -> PacketView<'_> {
        PacketView::new(self.dispatch.bufs.pool(), &self.frame, row)
    }

    /// The slow path for drops: packets for which `keep` returns false are sent to edge `drop` (after
    /// [`Packet::fail`], which counts and tags them); the others stay, in order.
    pub fn sift(&mut self, mut keep: impl FnMut(&mut Packet<'_>) -> bool, drop: X) {
        let n = self.frame.n;
        let mut marks = std::mem::take(&mut self.dispatch.targets);
        for row in 0..n {
            let mut packet = Packet {
                pool: self.dispatch.bufs.pool(),
                frame: &mut self.frame,
                row,
            };
            marks.words_mut(n)[row] = u32::from(!keep(&mut packet));
        }
        if or_all(marks.words(n)) != 0 {
            let edge = self.raw.edges[drop.index()];
            divert_rows(self.isa, self.dispatch, &mut self.frame, &marks, edge);
        }
        self.dispatch.targets = marks;
    }

    /// The slow path: choose the edge of each packet, one at a time.
    #[inline(always)]
    pub fn each(mut self, mut body: impl FnMut(&mut Packet<'_>) -> X) -> Consumed {
        let mut targets = std::mem::take(&mut self.dispatch.targets);
        for row in 0..self.frame.n {
            let mut packet = Packet {
                pool: self.dispatch.bufs.pool(),
                frame: &mut self.frame,
                row,
            };
            let next = body(&mut packet);
            targets.words_mut(self.frame.n)[row] = u32::from(self.raw.edges[next.index()].0);
        }
        self.leave_by(targets)
    }
}
