//! The writer's side of the memory that readers see: allocates and recycles runs, chunks and lines, and grows the memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

use super::rib::{Cells, Rib, Slots};
use super::room::{Numbers, Piece, Room, SLOTS, pack, unpack};
use super::root::{PAGE, PAGES, PageAllocator};
use super::view::{
    CHUNK, Full, IS_CHUNK, IS_LINE, Leaves, Line, LineText, Lpm4View, Sizes, Store, Word,
};
use crate::deferred::DeferredFree;
use crate::{Domain, Publisher, Snap};

/// The largest leaf id with 16-bit answers.
const NARROW: u32 = 1 << 15;
/// The maximum number of chunks, and of lines, with 16-bit answers.
const NARROW_CHUNKS: usize = 1 << 14;
/// Spare capacity of new memory: a quarter, and this number of answers.
const SLACK: usize = 4096;
const FIRST_CHUNKS: usize = 16;
const FIRST_LINES: usize = 64;

/// The chunks and lines of networks with prefixes longer than /24: free numbers, and answers.
#[derive(Default)]
struct Longs {
    chunks: Numbers,
    lines: Numbers,
}

impl Longs {
    /// Recycles a chunk or line that no reader can access any more.
    fn give(&mut self, chunk: u32) {
        let number = chunk & !(IS_CHUNK | IS_LINE);
        let of = if chunk & IS_LINE == 0 {
            &mut self.chunks
        } else {
            &mut self.lines
        };
        of.free.push(number);
    }

    /// Sets the answers of a /24. `old` is its current chunk or line (0: none), which is changed in place if readers see only
    /// old and new answers meanwhile; otherwise another one is filled. Returns the chunk or line that the /24 has now. Both
    /// numbers are in the writer's notation.
    fn set(&mut self, view: &Lpm4View, old: u32, cells: &Cells, line: bool) -> Result<u32, Full> {
        if line {
            return self.set_line(view, old, cells);
        }
        let chunk = if old & IS_CHUNK != 0 && old & IS_LINE == 0 {
            old
        } else {
            IS_CHUNK | self.chunks.take().ok_or(Full)?
        };
        set_cells_of(view, chunk & !IS_CHUNK, cells);
        Ok(chunk)
    }

    fn set_line(&mut self, view: &Lpm4View, old: u32, cells: &Cells) -> Result<u32, Full> {
        let (lines, text) = (lines_of(view), LineText::new(cells));
        let number = old & !(IS_CHUNK | IS_LINE);
        if old & IS_LINE != 0 && lines[number as usize].changes_as(&text) {
            lines[number as usize].write_answers(&text);
            return Ok(old);
        }
        let number = self.lines.take().ok_or(Full)?;
        lines[number as usize].write(&text);
        Ok(IS_CHUNK | IS_LINE | number)
    }
}

fn lines_of(view: &Lpm4View) -> &[Line] {
    match &view.leaves {
        Leaves::Narrow(s) => &s.lines,
        Leaves::Wide(s) => &s.lines,
    }
}

/// The answers of a block in the layout for readers: the slots where the answer changes, and the answers.
struct Run {
    bitmap: u32,
    len: usize,
    answers: Slots,
}

impl Run {
    fn new(slots: &Slots) -> Self {
        let mut run = Self {
            bitmap: 0,
            len: 1,
            answers: [slots[0]; SLOTS],
        };
        for s in 1..SLOTS {
            let change = slots[s] != slots[s - 1];
            run.bitmap |= u32::from(change) << s;
            run.len += usize::from(change);
            run.answers[run.len - 1] = slots[s];
        }
        run
    }

    fn plain(answer: u32) -> Self {
        Self {
            bitmap: 0,
            len: 1,
            answers: [answer; SLOTS],
        }
    }
}

/// Updates one root entry; returns the run that new readers cannot find any more.
fn set_entry<W: Word>(
    entry: &AtomicU64,
    store: &Store<W>,
    room: &mut Room,
    run: &Run,
) -> Result<Option<(u32, u32)>, Full> {
    let old = entry.load(Ordering::Relaxed);
    let answers = &run.answers[..run.len];
    let (old_base, old_len) = unpack(old);
    if run.bitmap == 0 {
        if old_len == 1 && store.pool[old_base as usize].load() == W::raw(answers[0]) {
            return Ok(None);
        }
        let base = room.singles.take(answers[0], store, &mut room.runs)?;
        entry.store(pack(0, base), Ordering::Release);
        return Ok(room.release(old, store));
    }
    if old as u32 == run.bitmap {
        // Same slots per answer: each slot goes from its old answer to its new one in place.
        for (word, &answer) in store.pool[old_base as usize..].iter().zip(answers) {
            if word.load() != W::raw(answer) {
                word.store(W::raw(answer));
            }
        }
        return Ok(None);
    }
    let base = room.runs.take(run.len as u32).ok_or(Full)?;
    for (word, &answer) in store.pool[base as usize..].iter().zip(answers) {
        word.store(W::raw(answer));
    }
    entry.store(pack(run.bitmap, base), Ordering::Release);
    Ok(room.release(old, store))
}

fn set_entry_of(
    view: &Lpm4View,
    room: &mut Room,
    block: usize,
    run: &Run,
) -> Result<Option<(u32, u32)>, Full> {
    match &view.leaves {
        Leaves::Narrow(s) => set_entry(view.root.entry(block), s, room, run),
        Leaves::Wide(s) => set_entry(view.root.entry(block), s, room, run),
    }
}

/// Lets a /10 share the page of blocks with one answer.
fn share_page<W: Word>(
    view: &Lpm4View,
    store: &Store<W>,
    room: &mut Room,
    deferred: &mut DeferredFree<Piece>,
    page: usize,
    answer: u32,
) -> Result<(), Full> {
    let entries = PAGE as u32;
    let base = room.singles.take(answer, store, &mut room.runs)?;
    room.singles.more(answer, entries - 1);
    let before = room.pages.shared_entry(&view.root, page);
    // Read the entries of a private page before the page is released.
    let own: Vec<u64> = (page * PAGE..(page + 1) * PAGE)
        .filter(|_| before.is_none())
        .map(|block| view.root.entry(block).load(Ordering::Relaxed))
        .collect();
    match room.pages.share(&view.root, page, pack(0, base)) {
        Ok(number) => number
            .into_iter()
            .for_each(|n| deferred.push(Piece::Page(n))),
        Err(Full) => {
            if let Some((base, len)) = room.singles.fewer(base, store, entries) {
                deferred.push(Piece::Run { base, len });
            }
            return Err(Full);
        }
    }
    let shared = before.and_then(|e| room.singles.fewer(unpack(e).0, store, entries));
    let own = own.into_iter().filter_map(|e| room.release(e, store));
    for (base, len) in shared.into_iter().chain(own) {
        deferred.push(Piece::Run { base, len });
    }
    Ok(())
}

fn share_page_of(
    view: &Lpm4View,
    room: &mut Room,
    deferred: &mut DeferredFree<Piece>,
    page: usize,
    answer: u32,
) -> Result<(), Full> {
    match &view.leaves {
        Leaves::Narrow(s) => share_page(view, s, room, deferred, page, answer),
        Leaves::Wide(s) => share_page(view, s, room, deferred, page, answer),
    }
}

fn set_cells<W: Word>(store: &Store<W>, chunk: u32, cells: &Cells) {
    let words = &store.chunks[chunk as usize * CHUNK..][..CHUNK];
    for (word, &answer) in words.iter().zip(cells) {
        if word.load() != W::raw(answer) {
            word.store(W::raw(answer));
        }
    }
}

fn set_cells_of(view: &Lpm4View, chunk: u32, cells: &Cells) {
    match &view.leaves {
        Leaves::Narrow(s) => set_cells(s, chunk, cells),
        Leaves::Wide(s) => set_cells(s, chunk, cells),
    }
}

/// Copies all answers, widens them if necessary, and packs the runs. `pages` are those of the old root.
fn copy<A: Word, B: Word>(
    from: (&Lpm4View, &Store<A>),
    to: (&Lpm4View, &Store<B>),
    pages: &PageAllocator,
    room: &mut Room,
) -> Result<(), Full> {
    for page in 0..PAGES {
        let shared = pages.shared_entry(&from.0.root, page);
        match shared.filter(|_| !to.0.root.is_dense()) {
            Some(0) => (),
            Some(entry) => {
                // The entry of a shared page names one answer.
                let answer = A::answer(from.1.pool[unpack(entry).0 as usize].load());
                let base = room.singles.take(answer, to.1, &mut room.runs)?;
                room.singles.more(answer, PAGE as u32 - 1);
                room.pages.share(&to.0.root, page, pack(0, base))?;
            }
            None => {
                room.pages.own(&to.0.root, page)?;
                copy_page(from, to, page, room)?;
            }
        }
    }
    for (a, b) in from.1.chunks.iter().zip(to.1.chunks.iter()) {
        b.store(B::raw(A::answer(a.load())));
    }
    for (a, b) in from.1.lines.iter().zip(to.1.lines.iter()) {
        b.copy(a);
    }
    Ok(())
}

/// Copies the entries of a page, and their answers.
fn copy_page<A: Word, B: Word>(
    from: (&Lpm4View, &Store<A>),
    to: (&Lpm4View, &Store<B>),
    page: usize,
    room: &mut Room,
) -> Result<(), Full> {
    for block in page * PAGE..(page + 1) * PAGE {
        let entry = from.0.root.entry(block).load(Ordering::Relaxed);
        if entry == 0 {
            continue;
        }
        let (base, len) = unpack(entry);
        let words = from.1.pool[base as usize..].iter().take(len as usize);
        let copy = if len == 1 {
            let answer = A::answer(from.1.pool[base as usize].load());
            room.singles.take(answer, to.1, &mut room.runs)?
        } else {
            room.runs.take(len).ok_or(Full)?
        };
        for (a, b) in words.zip(to.1.pool[copy as usize..].iter()) {
            b.store(B::raw(A::answer(a.load())));
        }
        let new = to.0.root.entry(block);
        new.store(pack(entry as u32, copy), Ordering::Relaxed);
    }
    Ok(())
}

/// Whether this leaf id, or this number of chunks or lines, needs wide answers.
pub(super) fn needs_wide(leaf: u32, chunks: usize) -> bool {
    leaf >= NARROW || chunks > NARROW_CHUNKS
}

/// The last painted block with a single answer. When the next block changes from the same answer to the same answer, its entry
/// becomes the same, and the reference counts are updated once for all such blocks. This is common under a short prefix: a
/// default route has half a million blocks.
struct Streak {
    answer: u32,
    old: u64,
    new: u64,
    /// Entries changed since the reference counts were updated.
    entries: u32,
}

/// The capacities of an empty table.
const EMPTY: Sizes = Sizes {
    leaves: SLACK,
    chunks: 0,
    lines: 0,
};

pub(super) struct Plane {
    publisher: Publisher<Lpm4View>,
    room: Room,
    longs: Longs,
    deferred: DeferredFree<Piece>,
    streak: Option<Streak>,
    /// The number of moves to new memory.
    moves: u64,
}

impl Plane {
    pub(super) fn new(domain: &Arc<Domain>) -> Self {
        Self {
            publisher: Publisher::new(domain, Lpm4View::new(false, false, &EMPTY)),
            room: Room::new(SLACK),
            longs: Longs::default(),
            deferred: DeferredFree::new(),
            streak: None,
            moves: 0,
        }
    }

    pub(super) fn view(&self) -> &Lpm4View {
        self.publisher.current()
    }

    pub(super) fn is_paged(&self) -> bool {
        !self.view().root.is_dense()
    }

    pub(super) fn snap(&self) -> Snap<Lpm4View> {
        self.publisher.snap()
    }

    /// Recycles the memory that no reader can access any more. Called between two updates.
    pub(super) fn collect(&mut self) {
        let Self {
            publisher,
            room,
            longs,
            deferred,
            ..
        } = self;
        deferred.collect(publisher.domain(), |piece| match piece {
            Piece::Run { base, len } => room.runs.give(base, len),
            Piece::Chunk(chunk) => longs.give(chunk),
            Piece::Page(page) => room.pages.give(page),
        });
    }

    /// Changes to wide answers, for leaf ids of 31 bits.
    pub(super) fn widen(&mut self) {
        if !self.view().is_wide() {
            self.grow(true, Grow::Leaves);
        }
    }

    /// Frees a chunk or line once no reader can access it.
    pub(super) fn free_chunk(&mut self, chunk: u32) {
        if chunk != 0 {
            self.deferred.push(Piece::Chunk(chunk));
        }
    }

    /// [`Longs::set`]; grows the memory if it is full.
    fn set_long(&mut self, old: u32, cells: &Cells, line: bool) -> u32 {
        loop {
            match self.longs.set(self.publisher.current(), old, cells, line) {
                Ok(chunk) => return chunk,
                Err(Full) if line => self.grow(self.view().is_wide(), Grow::Lines),
                Err(Full) => self.grow(self.view().is_wide(), Grow::Chunks),
            }
        }
    }

    /// Makes the entry of a block writable: gives a shared page's /10 a private page.
    fn own_page(&mut self, block: usize) {
        let root = &self.publisher.current().root;
        match self.room.pages.own(root, block / PAGE) {
            Ok(unused) => self.deferred_page(unused),
            Err(Full) => self.grow(self.view().is_wide(), Grow::Root),
        }
    }

    fn deferred_page(&mut self, unused: Option<u8>) {
        if let Some(page) = unused {
            self.deferred.push(Piece::Page(page));
        }
    }

    /// Whether a block has one answer, and that answer is `answer`.
    fn is_plain(&self, block: usize, answer: u32) -> bool {
        let view = self.publisher.current();
        let (base, len) = unpack(view.root.entry(block).load(Ordering::Relaxed));
        let is = match &view.leaves {
            Leaves::Narrow(s) => AtomicU16::answer(Word::load(&s.pool[base as usize])) == answer,
            Leaves::Wide(s) => AtomicU32::answer(Word::load(&s.pool[base as usize])) == answer,
        };
        len == 1 && is
    }

    /// Sets all blocks of a root page to one answer.
    pub(super) fn paint_page(&mut self, rib: &Rib, page: usize, answer: u32) {
        let blocks = page * PAGE..(page + 1) * PAGE;
        if !self.is_paged() || self.share_page(page, answer).is_err() {
            // If there is no page to share, painting makes a dense root.
            blocks.for_each(|block| self.paint(rib, block, answer));
        }
    }

    /// Lets a /10 share the page of blocks with one answer.
    fn share_page(&mut self, page: usize, answer: u32) -> Result<(), Full> {
        self.settle();
        let Self {
            publisher,
            room,
            deferred,
            ..
        } = self;
        share_page_of(publisher.current(), room, deferred, page, answer)
    }

    fn set_plain(&mut self, block: usize, answer: u32) {
        if self.is_paged() {
            if self.is_plain(block, answer) {
                return;
            }
            self.own_page(block);
        }
        let entry = self.publisher.current().root.entry(block);
        let old = entry.load(Ordering::Relaxed);
        if let Some(streak) = &mut self.streak
            && streak.answer == answer
            && streak.old == old
        {
            entry.store(streak.new, Ordering::Release);
            streak.entries += 1;
            return;
        }
        let moves = self.moves;
        self.set(block, &Run::plain(answer));
        let new = self.publisher.current().root.entry(block);
        let new = new.load(Ordering::Relaxed);
        let one_answer = unpack(old).1 == 1 && unpack(new).1 == 1;
        // If everything was moved meanwhile, the old position is invalid.
        self.streak = (one_answer && new != old && self.moves == moves).then_some(Streak {
            answer,
            old,
            new,
            entries: 0,
        });
    }

    /// Updates the reference counts. Called after every update.
    pub(super) fn settle(&mut self) {
        let Some(streak) = self.streak.take().filter(|s| s.entries > 0) else {
            return;
        };
        let Self {
            publisher,
            room: Room { singles, .. },
            deferred,
            ..
        } = self;
        singles.more(streak.answer, streak.entries);
        let base = unpack(streak.old).0;
        let last = match &publisher.current().leaves {
            Leaves::Narrow(s) => singles.fewer(base, s, streak.entries),
            Leaves::Wide(s) => singles.fewer(base, s, streak.entries),
        };
        if let Some((base, len)) = last {
            deferred.push(Piece::Run { base, len });
        }
    }

    fn set(&mut self, block: usize, run: &Run) {
        self.settle();
        self.own_page(block);
        loop {
            match set_entry_of(self.publisher.current(), &mut self.room, block, run) {
                Ok(Some((base, len))) => return self.deferred.push(Piece::Run { base, len }),
                Ok(None) => return,
                Err(Full) => self.grow(self.view().is_wide(), Grow::Leaves),
            }
        }
    }

    /// Moves everything to new memory with spare capacity. Readers switch to it with their next frame.
    fn grow(&mut self, wide: bool, what: Grow) {
        // The counts are recomputed from the entries: entries that a streak has not counted yet would be counted twice.
        self.settle();
        self.moves += 1;
        // More than enough: `used` also counts runs in the deferred-free list, which are not copied.
        let used = self.room.runs.used;
        let mut sizes = Sizes {
            leaves: used + used / 4 + SLACK,
            chunks: self.longs.chunks.end as usize,
            lines: self.longs.lines.end as usize,
        };
        match what {
            Grow::Leaves | Grow::Root => (),
            Grow::Chunks => sizes.chunks = twice(sizes.chunks, FIRST_CHUNKS),
            Grow::Lines => sizes.lines = twice(sizes.lines, FIRST_LINES),
        }
        let wide = wide || needs_wide(0, sizes.chunks.max(sizes.lines));
        let mut room = Room::new(sizes.leaves);
        let from = self.publisher.current();
        let dense = from.root.is_dense() || matches!(what, Grow::Root);
        let to = Lpm4View::new(dense, wide || from.is_wide(), &sizes);
        let pages = &self.room.pages;
        let copied = match (&from.leaves, &to.leaves) {
            (Leaves::Narrow(a), Leaves::Narrow(b)) => copy((from, a), (&to, b), pages, &mut room),
            (Leaves::Narrow(a), Leaves::Wide(b)) => copy((from, a), (&to, b), pages, &mut room),
            (Leaves::Wide(a), Leaves::Wide(b)) => copy((from, a), (&to, b), pages, &mut room),
            (Leaves::Wide(_), Leaves::Narrow(_)) => Err(Full),
        };
        debug_assert!(copied.is_ok());
        self.room = room;
        self.longs.chunks.end = sizes.chunks as u32;
        self.longs.lines.end = sizes.lines as u32;
        let longs = &mut self.longs;
        self.deferred.clear(|piece| {
            if let Piece::Chunk(chunk) = piece {
                longs.give(chunk);
            }
        });
        self.publisher.publish(to);
    }

    /// Paints the whole table into new memory, every block once, and publishes it.
    pub(super) fn load(&mut self, rib: &Rib, wide: bool) {
        let leaves = rib.most_leaves() + rib.most_leaves() / 8 + SLACK;
        let (chunks, lines) = rib.count_chunks_and_lines();
        let sizes = Sizes {
            leaves,
            chunks: chunks + chunks / 4,
            lines: lines + lines / 4,
        };
        let mut longs = Longs::default();
        longs.chunks.end = sizes.chunks as u32;
        longs.lines.end = sizes.lines as u32;
        let mut room = Room::new(leaves);
        let wide = wide || needs_wide(0, sizes.chunks.max(sizes.lines));
        let dense = !PageAllocator::suffices(rib.count_pages());
        let view = Lpm4View::new(dense, wide, &sizes);
        for (block, inherited) in rib.all_inherited().into_iter().enumerate() {
            if inherited == 0 && rib.is_plain(block) {
                continue;
            }
            let page = block / PAGE;
            if !dense && rib.is_plain_page(page) {
                if block % PAGE == 0 {
                    let shared =
                        share_page_of(&view, &mut room, &mut self.deferred, page, inherited);
                    debug_assert!(shared.is_ok());
                }
                continue;
            }
            let own = room.pages.own(&view.root, page);
            debug_assert!(matches!(own, Ok(None)));
            let run = Self::run(
                rib,
                block,
                inherited,
                |_| true,
                |_, cells, line| {
                    let chunk = longs.set(&view, 0, cells, line);
                    debug_assert!(chunk.is_ok());
                    chunk.unwrap_or(0)
                },
            );
            let done = set_entry_of(&view, &mut room, block, &run);
            debug_assert!(done.is_ok());
        }
        self.room = room;
        self.longs = longs;
        self.deferred.clear(drop);
        self.publisher.publish(view);
    }

    /// Recomputes one block.
    pub(super) fn paint(&mut self, rib: &Rib, block: usize, inherited: u32) {
        self.paint_nets(rib, block, inherited, |_| true);
    }

    /// Recomputes the answers of one /24 after a change of a prefix longer than /24 in it. The other networks of its block
    /// keep their chunks and lines: with many hosts in each, they are most of a block.
    pub(super) fn paint_net(&mut self, rib: &Rib, net: u32, inherited: u32) {
        let block = (net >> 5) as usize;
        self.paint_nets(rib, block, inherited, |other| other == net);
    }

    fn paint_nets(
        &mut self,
        rib: &Rib,
        block: usize,
        inherited: u32,
        changes: impl Fn(u32) -> bool,
    ) {
        if rib.is_plain(block) {
            return self.set_plain(block, inherited);
        }
        let mut replaced = Vec::new();
        let run = Self::run(rib, block, inherited, changes, |old, cells, line| {
            let chunk = self.set_long(old, cells, line);
            if chunk != old {
                replaced.push(old);
            }
            chunk
        });
        self.set(block, &run);
        for chunk in replaced {
            self.free_chunk(chunk);
        }
    }

    /// The run of a block. `set_long(old, answers, line)` updates a network with longer prefixes that changes, and returns its
    /// new chunk or line.
    fn run(
        rib: &Rib,
        block: usize,
        inherited: u32,
        changes: impl Fn(u32) -> bool,
        mut set_long: impl FnMut(u32, &Cells, bool) -> u32,
    ) -> Run {
        if rib.is_plain(block) {
            return Run::plain(inherited);
        }
        let mut slots = rib.slots(block, inherited);
        let mut long = rib.long_slots(block);
        while long != 0 {
            let slot = long.trailing_zeros();
            long &= long - 1;
            let net = (block as u32) << 5 | slot;
            let mut chunk = rib.chunk(net);
            if changes(net) {
                let cells = rib.cells(net, slots[slot as usize]);
                #[cfg(test)]
                PAINTED.set(PAINTED.get() + 1);
                chunk = set_long(chunk, &cells, rib.fits_line(net));
                rib.set_chunk(net, chunk);
            }
            slots[slot as usize] = chunk;
        }
        Run::new(&slots)
    }
}

#[cfg(test)]
std::thread_local! {
    /// Networks with longer prefixes whose answers were computed.
    static PAINTED: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// The part of a view that is full. A larger view has more pooled answers in any case.
#[derive(Clone, Copy)]
enum Grow {
    /// Pages: the root becomes a dense one.
    Root,
    Leaves,
    Chunks,
    Lines,
}

/// Twice the capacity: unused memory costs nothing, and a move costs a copy.
fn twice(have: usize, first: usize) -> usize {
    (2 * have).max(first)
}

#[cfg(test)]
#[path = "plane_tests.rs"]
mod tests;
