//! Fragments that wait for the rest of their datagrams: bounded, without allocation once it is made, and without any
//! knowledge of packets.
//!
//! Datagrams stand in one line from the oldest to the newest: the oldest gives way when there is no room, and is the next
//! whose time is over. What goes wrong with one datagram goes wrong with all of it (RFC 5722): its fragments come back to be
//! dropped, and the rest of it is refused until its time is over.

use std::collections::VecDeque;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hash};

/// "Nothing" as a place in a list.
const NONE: u32 = u32::MAX;

/// Where a fragment's bytes belong, counted from the first byte that all fragments share out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Span {
    pub start: u32,
    pub end: u32,
    /// Whether more fragments follow.
    pub more: bool,
    /// The congestion bits of its header (RFC 3168).
    pub ecn: u8,
    /// Bytes of its headers, which are not shared out.
    pub head: u16,
}

/// How much may wait, and how long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Bounds {
    pub datagrams: u32,
    /// Fragments of one datagram.
    pub fragments: u32,
    /// Fragments of all datagrams.
    pub buffers: u32,
    pub timeout_ns: u64,
}

/// Why a fragment does not wait, or a datagram is given up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// These very bytes are there already.
    Duplicate,
    /// Some of its bytes are there already.
    Overlap,
    /// It lies behind the datagram's end, or says that it ends elsewhere.
    End,
    /// The datagram was given up before.
    Spoiled,
    /// The datagram has too many fragments.
    TooMany,
    /// Congestion was met by a packet whose other fragments do not take part (RFC 3168, 5.3).
    Congestion,
    /// Newer datagrams needed the room.
    Evicted,
    /// Nothing could make room.
    Full,
    /// The rest did not come in time.
    Timeout,
    /// Its headers and what is behind them are too long together.
    TooLong,
    /// No buffer is free for the whole of it.
    NoBuffers,
}

/// Leave to put a fragment with its datagram.
#[derive(Clone, Copy, Debug)]
#[must_use = "the fragment is to be put there"]
pub(crate) struct Leave {
    slot: u32,
    span: Span,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum State {
    #[default]
    Free,
    /// It waits for fragments.
    Open,
    /// Its fragments are dropped, and so is what comes of it until its time is over.
    Spoiled,
    /// It is forgotten; its fragments are dropped.
    Gone,
    /// All of it is there.
    Whole,
}

/// A datagram.
struct Slot<K> {
    key: K,
    state: State,
    /// Why its fragments are dropped.
    fault: Fault,
    /// Whether it stands in one of the queues.
    queued: bool,
    born_ns: u64,
    /// Its length, once the last fragment has come.
    total: Option<u32>,
    bytes: u32,
    pieces: u32,
    /// Which of the four congestion marks its fragments have.
    marks: u8,
    first: u32,
    last: u32,
    /// The next in its bucket, or among the free ones.
    next: u32,
    older: u32,
    newer: u32,
}

/// A fragment.
struct Piece<T> {
    item: Option<T>,
    span: Span,
    before: u32,
    /// The next one of the datagram, or of the free ones.
    after: u32,
}

/// What one worker holds.
pub(crate) struct Store<K, T> {
    slots: Box<[Slot<K>]>,
    pieces: Box<[Piece<T>]>,
    buckets: Box<[u32]>,
    hasher: RandomState,
    free_slot: u32,
    free_piece: u32,
    oldest: u32,
    newest: u32,
    /// Datagrams in line.
    live: u32,
    /// Fragments that are there, those that are to be dropped included; and those that wait for the rest.
    held: u32,
    waiting: u32,
    /// Datagrams that are whole, and those with fragments to be dropped.
    whole: VecDeque<u32>,
    doomed: VecDeque<u32>,
}

/// A datagram that is whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Whole(u32);

impl<K: Copy + Eq + Hash + Default, T> Store<K, T> {
    /// Room for so many datagrams and fragments.
    pub fn new(datagrams: usize, fragments: usize) -> Self {
        let slot = |at: usize| Slot {
            key: K::default(),
            state: State::Free,
            fault: Fault::Timeout,
            queued: false,
            born_ns: 0,
            total: None,
            bytes: 0,
            pieces: 0,
            marks: 0,
            first: NONE,
            last: NONE,
            next: follow(at, datagrams),
            older: NONE,
            newer: NONE,
        };
        let piece = |at: usize| Piece {
            item: None,
            span: Span::default(),
            before: NONE,
            after: follow(at, fragments),
        };
        Store {
            slots: (0..datagrams).map(slot).collect(),
            pieces: (0..fragments).map(piece).collect(),
            buckets: vec![NONE; datagrams.next_power_of_two()].into(),
            hasher: RandomState::new(),
            free_slot: 0,
            free_piece: 0,
            oldest: NONE,
            newest: NONE,
            live: 0,
            held: 0,
            waiting: 0,
            whole: VecDeque::with_capacity(datagrams),
            doomed: VecDeque::with_capacity(datagrams),
        }
    }

    /// Datagrams that wait, those given up and remembered included.
    pub fn datagrams(&self) -> u32 {
        self.live
    }

    /// Fragments that are held.
    pub fn fragments(&self) -> u32 {
        self.held
    }

    /// When the oldest datagram came.
    pub fn oldest_ns(&self) -> Option<u64> {
        (self.oldest != NONE).then(|| self.slot(self.oldest).born_ns)
    }

    /// Whether something is to be taken out at once.
    pub fn is_due(&self) -> bool {
        !(self.whole.is_empty() && self.doomed.is_empty())
    }

    /// Give up datagrams whose time is over.
    pub fn expire(&mut self, timeout_ns: u64, now_ns: u64) {
        while let Some(born) = self.oldest_ns()
            && now_ns.saturating_sub(born) >= timeout_ns
        {
            self.forget(self.oldest, Fault::Timeout);
        }
    }

    /// Whether a fragment may wait, or why not.
    pub fn offer(
        &mut self,
        key: &K,
        span: Span,
        bounds: &Bounds,
        now_ns: u64,
    ) -> Result<Leave, Fault> {
        self.expire(bounds.timeout_ns, now_ns);
        let slot = match self.find(key) {
            Some(slot) => slot,
            None => self.open(key, bounds, now_ns)?,
        };
        if self.slot(slot).state == State::Spoiled {
            return Err(Fault::Spoiled);
        }
        if let Err(fault) = self.fits(slot, &span, bounds) {
            if fault != Fault::Duplicate {
                self.spoil(slot, fault);
            }
            return Err(fault);
        }
        while self.waiting >= bounds.buffers && self.evict(slot) {}
        if self.free_piece == NONE || self.waiting >= bounds.buffers {
            self.spoil(slot, Fault::Full);
            return Err(Fault::Full);
        }
        Ok(Leave { slot, span })
    }

    /// Put a fragment where it belongs.
    pub fn put(&mut self, leave: Leave, item: T) {
        let Leave { slot, span } = leave;
        let at = self.free_piece;
        let before = self.before(slot, span.start);
        let after = match before {
            NONE => self.slot(slot).first,
            before => self.piece(before).after,
        };
        let piece = self.piece_mut(at);
        let next_free = std::mem::replace(&mut piece.after, after);
        (piece.item, piece.span, piece.before) = (Some(item), span, before);
        self.free_piece = next_free;
        match before {
            NONE => self.slot_mut(slot).first = at,
            before => self.piece_mut(before).after = at,
        }
        match after {
            NONE => self.slot_mut(slot).last = at,
            after => self.piece_mut(after).before = at,
        }
        self.held += 1;
        self.waiting += 1;
        let it = self.slot_mut(slot);
        it.pieces += 1;
        it.bytes += span.end - span.start;
        it.marks |= 1 << (span.ecn & 3);
        if !span.more {
            it.total = Some(span.end);
        }
        if it.total == Some(it.bytes) {
            self.leave_line(slot);
            self.end_wait(slot);
            self.slot_mut(slot).state = State::Whole;
            self.queue(slot);
        }
    }

    /// The next datagram that is whole.
    pub fn next_whole(&mut self) -> Option<Whole> {
        self.whole.front().map(|slot| Whole(*slot))
    }

    /// Its length, and the congestion bits that it is to have; none where these do not go together (RFC 3168, 5.3).
    pub fn facts(&self, whole: Whole) -> (u32, Option<u8>) {
        const NOT_CAPABLE: u8 = 1 << 0;
        const MET: u8 = 1 << 3;
        let slot = self.slot(whole.0);
        let first = self.piece(slot.first).span.ecn & 3;
        let ecn = match slot.marks {
            marks if marks & MET == 0 => Some(first),
            marks if marks & NOT_CAPABLE == 0 => Some(3),
            _ => None,
        };
        (slot.bytes, ecn)
    }

    /// Its fragments, from the first to the last.
    pub fn fragments_of(&self, whole: Whole) -> impl Iterator<Item = (Span, &T)> {
        let mut at = self.slot(whole.0).first;
        std::iter::from_fn(move || {
            let piece = self.pieces.get(at as usize)?;
            at = piece.after;
            Some((piece.span, piece.item.as_ref()?))
        })
    }

    /// A whole datagram is done with: take its fragments out one by one, which makes room.
    pub fn take(&mut self, whole: Whole) -> Option<T> {
        let taken = self.pop(whole.0);
        if taken.is_none() {
            self.whole.pop_front();
            self.release(whole.0);
        }
        taken.map(|(_, item)| item)
    }

    /// A whole datagram cannot be put together after all.
    pub fn give_up(&mut self, whole: Whole, fault: Fault) {
        self.whole.pop_front();
        let it = self.slot_mut(whole.0);
        (it.state, it.fault, it.queued) = (State::Gone, fault, false);
        self.queue(whole.0);
    }

    /// The next fragment that is to be dropped, why, and whether it is its datagram's first.
    pub fn next_drop(&mut self) -> Option<(T, Fault, bool)> {
        while let Some(&slot) = self.doomed.front() {
            if let Some((span, item)) = self.pop(slot) {
                return Some((item, self.slot(slot).fault, span.start == 0));
            }
            self.doomed.pop_front();
            self.slot_mut(slot).queued = false;
            if self.slot(slot).state == State::Gone {
                self.release(slot);
            }
        }
        None
    }
}

fn follow(at: usize, all: usize) -> u32 {
    if at + 1 < all { at as u32 + 1 } else { NONE }
}

/// Lists and queues. Places that lead nowhere are never followed: `NONE` is asked about first.
impl<K: Copy + Eq + Hash + Default, T> Store<K, T> {
    fn slot(&self, at: u32) -> &Slot<K> {
        &self.slots[at as usize]
    }

    fn slot_mut(&mut self, at: u32) -> &mut Slot<K> {
        &mut self.slots[at as usize]
    }

    fn piece(&self, at: u32) -> &Piece<T> {
        &self.pieces[at as usize]
    }

    fn piece_mut(&mut self, at: u32) -> &mut Piece<T> {
        &mut self.pieces[at as usize]
    }

    fn bucket(&self, key: &K) -> usize {
        self.hasher.hash_one(key) as usize & (self.buckets.len() - 1)
    }

    fn find(&self, key: &K) -> Option<u32> {
        let mut at = self.buckets[self.bucket(key)];
        while at != NONE {
            if self.slot(at).key == *key {
                return Some(at);
            }
            at = self.slot(at).next;
        }
        None
    }

    /// A place for a new datagram.
    fn open(&mut self, key: &K, bounds: &Bounds, now_ns: u64) -> Result<u32, Fault> {
        while self.live >= bounds.datagrams.max(1) {
            self.forget(self.oldest, Fault::Evicted);
        }
        let slot = self.free_slot;
        if slot == NONE {
            return Err(Fault::Full);
        }
        self.free_slot = self.slot(slot).next;
        let (bucket, older) = (self.bucket(key), self.newest);
        let next = std::mem::replace(&mut self.buckets[bucket], slot);
        *self.slot_mut(slot) = Slot {
            key: *key,
            state: State::Open,
            fault: Fault::Timeout,
            queued: false,
            born_ns: now_ns,
            total: None,
            bytes: 0,
            pieces: 0,
            marks: 0,
            first: NONE,
            last: NONE,
            next,
            older,
            newer: NONE,
        };
        match older {
            NONE => self.oldest = slot,
            older => self.slot_mut(older).newer = slot,
        }
        self.newest = slot;
        self.live += 1;
        Ok(slot)
    }

    /// Whether a fragment goes with those of its datagram that are there.
    fn fits(&self, slot: u32, span: &Span, bounds: &Bounds) -> Result<(), Fault> {
        let it = self.slot(slot);
        let before = self.before(slot, span.start);
        let after = match before {
            NONE => it.first,
            before => self.piece(before).after,
        };
        if before != NONE {
            let other = self.piece(before).span;
            if (other.start, other.end, other.more) == (span.start, span.end, span.more) {
                return Err(Fault::Duplicate);
            }
            if other.end > span.start {
                return Err(Fault::Overlap);
            }
        }
        if after != NONE && self.piece(after).span.start < span.end {
            return Err(Fault::Overlap);
        }
        let is_last = after == NONE;
        let bad_end = match it.total {
            Some(total) => span.end > total || !span.more,
            None => !span.more && !is_last,
        };
        if bad_end {
            return Err(Fault::End);
        }
        if it.pieces >= bounds.fragments {
            return Err(Fault::TooMany);
        }
        Ok(())
    }

    /// The last fragment of a datagram that begins at `start` or before: most come in order, so it is looked for from the
    /// end.
    fn before(&self, slot: u32, start: u32) -> u32 {
        let mut at = self.slot(slot).last;
        while at != NONE && self.piece(at).span.start > start {
            at = self.piece(at).before;
        }
        at
    }

    /// Make room: the oldest datagram but this one goes. False when there is none.
    fn evict(&mut self, but: u32) -> bool {
        let victim = match self.oldest {
            oldest if oldest == but => self.slot(oldest).newer,
            oldest => oldest,
        };
        let found = victim != NONE;
        if found {
            self.forget(victim, Fault::Evicted);
        }
        found
    }

    /// The fragments of a datagram wait no longer.
    fn end_wait(&mut self, slot: u32) {
        if self.slot(slot).state == State::Open {
            self.waiting -= self.slot(slot).pieces;
        }
    }

    /// A datagram leaves line and bucket; its fragments are dropped.
    fn forget(&mut self, slot: u32, fault: Fault) {
        self.leave_line(slot);
        self.end_wait(slot);
        let it = self.slot_mut(slot);
        if it.state != State::Spoiled {
            it.fault = fault;
        }
        it.state = State::Gone;
        self.queue(slot);
    }

    /// A datagram is given up, and remembered.
    fn spoil(&mut self, slot: u32, fault: Fault) {
        self.end_wait(slot);
        let it = self.slot_mut(slot);
        (it.state, it.fault) = (State::Spoiled, fault);
        self.queue(slot);
    }

    fn queue(&mut self, slot: u32) {
        let it = self.slot_mut(slot);
        if std::mem::replace(&mut it.queued, true) {
            return;
        }
        if it.state == State::Whole {
            self.whole.push_back(slot);
        } else {
            self.doomed.push_back(slot);
        }
    }

    fn leave_line(&mut self, slot: u32) {
        let (key, older, newer, next) = {
            let it = self.slot(slot);
            (it.key, it.older, it.newer, it.next)
        };
        match older {
            NONE => self.oldest = newer,
            older => self.slot_mut(older).newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            newer => self.slot_mut(newer).older = older,
        }
        self.live -= 1;
        let bucket = self.bucket(&key);
        let mut at = self.buckets[bucket];
        if at == slot {
            self.buckets[bucket] = next;
            return;
        }
        while at != NONE {
            if self.slot(at).next == slot {
                self.slot_mut(at).next = next;
                return;
            }
            at = self.slot(at).next;
        }
    }

    /// Take the first fragment out.
    fn pop(&mut self, slot: u32) -> Option<(Span, T)> {
        let at = self.slot(slot).first;
        if at == NONE {
            return None;
        }
        let free = self.free_piece;
        let piece = self.piece_mut(at);
        let (span, item) = (piece.span, piece.item.take()?);
        let after = std::mem::replace(&mut piece.after, free);
        self.free_piece = at;
        let it = self.slot_mut(slot);
        (it.first, it.pieces) = (after, it.pieces - 1);
        match after {
            NONE => it.last = NONE,
            after => self.piece_mut(after).before = NONE,
        }
        self.held -= 1;
        Some((span, item))
    }

    /// An empty slot is free again.
    fn release(&mut self, slot: u32) {
        let free = self.free_slot;
        let it = self.slot_mut(slot);
        (it.state, it.queued, it.next) = (State::Free, false, free);
        self.free_slot = slot;
    }
}

#[cfg(test)]
mod tests;
