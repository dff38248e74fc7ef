//! Fragments that wait for the rest of their datagrams: bounded, without allocation once it is made, and without any
//! knowledge of packets.
//!
//! Datagrams stand in one line from the oldest to the newest: the oldest gives way when there is no room, and is the next
//! whose time is over. What goes wrong with one datagram goes wrong with all of it (RFC 5722): its fragments come back to be
//! dropped, and the rest of it is refused until its time is over.

use super::chains::{Chain, Chains, Place};
use super::datagrams::{Datagrams, Leave};
use std::collections::VecDeque;
use std::hash::Hash;

/// The line that datagrams stand in.
const LINE: usize = 0;

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
    /// Buffers that it takes behind its first one.
    pub chained: u32,
}

impl Span {
    /// Buffers that the fragment takes.
    pub fn buffers(&self) -> u32 {
        1 + self.chained
    }
}

/// How much may wait, and how long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Bounds {
    pub datagrams: u32,
    /// Fragments of one datagram.
    pub fragments: u32,
    /// Buffers of the fragments of all datagrams.
    pub buffers: u32,
    pub timeout_ns: u64,
}

/// Why a fragment does not wait, or a datagram is given up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
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
    /// The rest did not come in time: so it is unless something else goes wrong before.
    #[default]
    Timeout,
    /// Its headers and what is behind them are too long together.
    TooLong,
    /// No buffer is free for the whole of it.
    NoBuffers,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum State {
    /// It waits for fragments.
    #[default]
    Open,
    /// Its fragments are dropped, and so is what comes of it until its time is over.
    Spoiled,
    /// It is forgotten; its fragments are dropped.
    Gone,
    /// All of it is there.
    Whole,
}

/// A datagram.
#[derive(Default)]
struct Datagram {
    state: State,
    /// Why its fragments are dropped.
    fault: Fault,
    /// Whether it stands in one of the queues.
    queued: bool,
    /// Its length, once the last fragment has come.
    total: Option<u32>,
    bytes: u32,
    /// Buffers that its fragments take.
    buffers: u32,
    /// Which of the four congestion marks its fragments have.
    marks: u8,
    /// Its fragments, by their place in it.
    fragments: Chain,
}

/// A fragment.
struct Piece<T> {
    item: Option<T>,
    span: Span,
}

/// What one worker holds.
pub(crate) struct Store<K, T> {
    datagrams: Datagrams<K, Datagram, 1>,
    /// Fragments that are there, those that are to be dropped included.
    pieces: Chains<Piece<T>>,
    /// Buffers of fragments that wait for the rest, and of all that are there.
    waiting: u32,
    held: u32,
    /// Datagrams that are whole, and those with fragments to be dropped.
    whole: VecDeque<Place>,
    doomed: VecDeque<Place>,
}

/// A datagram that is whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Whole(Place);

impl<K: Copy + Eq + Hash + Default, T> Store<K, T> {
    /// Room for so many datagrams and fragments.
    pub fn new(datagrams: usize, fragments: usize) -> Self {
        let piece = || Piece {
            item: None,
            span: Span::default(),
        };
        Store {
            datagrams: Datagrams::new(datagrams),
            pieces: Chains::new(fragments, piece),
            waiting: 0,
            held: 0,
            whole: VecDeque::with_capacity(datagrams),
            doomed: VecDeque::with_capacity(datagrams),
        }
    }

    /// Datagrams that wait, those given up and remembered included.
    pub fn datagrams(&self) -> u32 {
        self.datagrams.len(LINE)
    }

    /// Fragments that are held.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests check the bounds by it"))]
    pub fn fragments(&self) -> u32 {
        self.pieces.used()
    }

    /// Buffers that are held.
    pub fn buffers(&self) -> u32 {
        self.held
    }

    /// When the oldest datagram came.
    pub fn oldest_ns(&self) -> Option<u64> {
        self.datagrams.oldest_ns()
    }

    /// Whether something is to be taken out at once.
    pub fn is_due(&self) -> bool {
        !(self.whole.is_empty() && self.doomed.is_empty())
    }

    /// Give up datagrams whose time is over.
    pub fn expire(&mut self, timeout_ns: u64, now_ns: u64) {
        while let Some(slot) = self.datagrams.overdue(LINE, timeout_ns, now_ns) {
            self.forget(slot, Fault::Timeout);
        }
    }

    /// The limit has been lowered: the oldest datagrams go until what waits is within it.
    pub fn shrink(&mut self, buffers: u32) {
        while self.waiting > buffers && self.evict(None) {}
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
        let slot = match self.datagrams.find(key) {
            Some(slot) => slot,
            None => self.open(key, bounds, now_ns)?,
        };
        if self.datagrams[slot].state == State::Spoiled {
            return Err(Fault::Spoiled);
        }
        if let Err(fault) = self.fits(slot, &span, bounds) {
            if fault != Fault::Duplicate {
                self.spoil(slot, fault);
            }
            return Err(fault);
        }
        // Nothing that there is no room for anyway makes others go.
        let needed = span.buffers();
        while needed <= bounds.buffers
            && self.waiting + needed > bounds.buffers
            && self.evict(Some(slot))
        {}
        if self.pieces.is_full() || self.waiting + needed > bounds.buffers {
            self.spoil(slot, Fault::Full);
            return Err(Fault::Full);
        }
        Ok(Leave { slot, span })
    }

    /// Put a fragment where it belongs.
    pub fn put(&mut self, leave: Leave, item: T) {
        let Leave { slot, span } = leave;
        let before = self.before(slot, span.start);
        // There is a place: that is what the leave says.
        let Some(at) = self.pieces.open() else { return };
        self.pieces[at] = Piece {
            item: Some(item),
            span,
        };
        self.waiting += span.buffers();
        self.held += span.buffers();
        let it = &mut self.datagrams[slot];
        it.buffers += span.buffers();
        self.pieces.insert(&mut it.fragments, before, at);
        it.bytes += span.end - span.start;
        it.marks |= 1 << (span.ecn & 3);
        if !span.more {
            it.total = Some(span.end);
        }
        if it.total == Some(it.bytes) {
            self.datagrams.leave(slot);
            self.end_wait(slot);
            self.datagrams[slot].state = State::Whole;
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
        let it = &self.datagrams[whole.0];
        let ecn = match it.marks {
            marks if marks & MET == 0 => it.fragments.first.map(|at| self.pieces[at].span.ecn & 3),
            marks if marks & NOT_CAPABLE == 0 => Some(3),
            _ => None,
        };
        (it.bytes, ecn)
    }

    /// Its fragments, from the first to the last.
    pub fn fragments_of(&self, whole: Whole) -> impl Iterator<Item = (Span, &T)> {
        let pieces = self.pieces.iter(&self.datagrams[whole.0].fragments);
        pieces.filter_map(|piece| Some((piece.span, piece.item.as_ref()?)))
    }

    /// A whole datagram is done with: take its fragments out one by one, which makes room.
    pub fn take(&mut self, whole: Whole) -> Option<T> {
        let taken = self.pop(whole.0);
        if taken.is_none() {
            self.whole.pop_front();
            self.datagrams.close(whole.0);
        }
        taken.map(|(_, item)| item)
    }

    /// A whole datagram cannot be put together after all.
    pub fn give_up(&mut self, whole: Whole, fault: Fault) {
        self.whole.pop_front();
        let it = &mut self.datagrams[whole.0];
        (it.state, it.fault, it.queued) = (State::Gone, fault, false);
        self.queue(whole.0);
    }

    /// The next fragment that is to be dropped, why, and whether it is its datagram's first.
    pub fn next_drop(&mut self) -> Option<(T, Fault, bool)> {
        while let Some(&slot) = self.doomed.front() {
            if let Some((span, item)) = self.pop(slot) {
                return Some((item, self.datagrams[slot].fault, span.start == 0));
            }
            self.doomed.pop_front();
            self.datagrams[slot].queued = false;
            if self.datagrams[slot].state == State::Gone {
                self.datagrams.close(slot);
            }
        }
        None
    }
}

/// Lists and queues.
impl<K: Copy + Eq + Hash + Default, T> Store<K, T> {
    /// A place for a new datagram.
    fn open(&mut self, key: &K, bounds: &Bounds, now_ns: u64) -> Result<Place, Fault> {
        while self.datagrams() >= bounds.datagrams.max(1) && self.evict(None) {}
        let opened = self.datagrams.open(key, LINE, now_ns, Datagram::default());
        opened.ok_or(Fault::Full)
    }

    /// Whether a fragment goes with those of its datagram that are there.
    fn fits(&self, slot: Place, span: &Span, bounds: &Bounds) -> Result<(), Fault> {
        let it = &self.datagrams[slot];
        let before = self.before(slot, span.start);
        let after = match before {
            None => it.fragments.first,
            Some(before) => self.pieces.after(before),
        };
        if let Some(before) = before {
            let other = self.pieces[before].span;
            if (other.start, other.end, other.more) == (span.start, span.end, span.more) {
                return Err(Fault::Duplicate);
            }
            if other.end > span.start {
                return Err(Fault::Overlap);
            }
        }
        if after.is_some_and(|after| self.pieces[after].span.start < span.end) {
            return Err(Fault::Overlap);
        }
        let is_last = after.is_none();
        let bad_end = match it.total {
            Some(total) => span.end > total || !span.more,
            None => !span.more && !is_last,
        };
        if bad_end {
            return Err(Fault::End);
        }
        if it.fragments.len >= bounds.fragments {
            return Err(Fault::TooMany);
        }
        Ok(())
    }

    /// The last fragment of a datagram that begins at `start` or before: most come in order, so it is looked for from the
    /// end.
    fn before(&self, slot: Place, start: u32) -> Option<Place> {
        let fragments = &self.datagrams[slot].fragments;
        self.pieces
            .last_not(fragments, |piece| piece.span.start > start)
    }

    /// Make room: the oldest datagram but this one goes. False when there is none.
    fn evict(&mut self, but: Option<Place>) -> bool {
        let victim = self.datagrams.oldest_but(LINE, but);
        if let Some(victim) = victim {
            self.forget(victim, Fault::Evicted);
        }
        victim.is_some()
    }

    /// The fragments of a datagram wait no longer.
    fn end_wait(&mut self, slot: Place) {
        if self.datagrams[slot].state == State::Open {
            self.waiting -= self.datagrams[slot].buffers;
        }
    }

    /// A datagram leaves line and bucket; its fragments are dropped.
    fn forget(&mut self, slot: Place, fault: Fault) {
        self.datagrams.leave(slot);
        self.end_wait(slot);
        let it = &mut self.datagrams[slot];
        if it.state != State::Spoiled {
            it.fault = fault;
        }
        it.state = State::Gone;
        self.queue(slot);
    }

    /// A datagram is given up, and remembered.
    fn spoil(&mut self, slot: Place, fault: Fault) {
        self.end_wait(slot);
        let it = &mut self.datagrams[slot];
        (it.state, it.fault) = (State::Spoiled, fault);
        self.queue(slot);
    }

    fn queue(&mut self, slot: Place) {
        let it = &mut self.datagrams[slot];
        if std::mem::replace(&mut it.queued, true) {
            return;
        }
        if it.state == State::Whole {
            self.whole.push_back(slot);
        } else {
            self.doomed.push_back(slot);
        }
    }

    /// Take the first fragment out.
    fn pop(&mut self, slot: Place) -> Option<(Span, T)> {
        let at = self.pieces.pop(&mut self.datagrams[slot].fragments)?;
        self.pieces.close(at);
        let piece = &mut self.pieces[at];
        self.held -= piece.span.buffers();
        Some((piece.span, piece.item.take()?))
    }
}

#[cfg(test)]
mod tests;
