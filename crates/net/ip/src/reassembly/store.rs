//! Fragments that wait for the rest of their datagrams: bounded, without allocation after creation, and independent of packets.
//!
//! Datagrams are in one list from the oldest to the newest: the oldest is evicted when space is needed, and is the next to time
//! out. A fault of one fragment is a fault of the whole datagram (RFC 5722): its fragments are dropped, and further ones are
//! refused until the timeout.

use super::chains::{Chain, Chains, Place};
use super::datagrams::{Datagrams, Leave};
use std::collections::VecDeque;
use std::hash::Hash;

/// The only list of datagrams.
const LINE: usize = 0;

/// Range of a fragment's bytes in the fragmentable part of the datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Span {
    pub start: u32,
    pub end: u32,
    /// Whether more fragments follow.
    pub more: bool,
    /// The ECN bits of the IP header (RFC 3168).
    pub ecn: u8,
    /// Bytes of the headers, which precede the fragmentable part.
    pub head: u16,
    /// Buffers of the fragment besides the first.
    pub chained: u32,
}

impl Span {
    /// Buffers that the fragment takes.
    pub fn buffers(&self) -> u32 {
        1 + self.chained
    }
}

/// Limits of the store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Bounds {
    pub datagrams: u32,
    /// Fragments of one datagram.
    pub fragments: u32,
    /// Buffers of the fragments of all datagrams.
    pub buffers: u32,
    pub timeout_ns: u64,
}

/// Reason why a fragment is refused, or a datagram given up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Fault {
    /// The same range is already stored.
    Duplicate,
    /// The range overlaps a stored one.
    Overlap,
    /// The fragment lies behind the datagram's end, or has another end.
    End,
    /// The datagram was given up before.
    Spoiled,
    /// The datagram has too many fragments.
    TooMany,
    /// A fragment has CE set while another is not ECN-capable (RFC 3168, 5.3).
    Congestion,
    /// The datagram was evicted for newer ones.
    Evicted,
    /// No space could be made.
    Full,
    /// The rest did not arrive in time; the default until another fault occurs.
    #[default]
    Timeout,
    /// Headers and payload together are too long.
    TooLong,
    /// No buffer is free for the whole datagram.
    NoBuffers,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum State {
    /// The datagram waits for fragments.
    #[default]
    Open,
    /// Stored and further fragments are dropped until the timeout.
    Spoiled,
    /// The datagram left the list; its fragments are dropped.
    Gone,
    /// All fragments have arrived.
    Whole,
}

/// A datagram.
#[derive(Default)]
struct Datagram {
    state: State,
    /// Reason why the fragments are dropped.
    fault: Fault,
    /// Whether the datagram is in one of the two queues.
    queued: bool,
    /// Length of the datagram, once the last fragment has arrived.
    total: Option<u32>,
    bytes: u32,
    /// Buffers of the stored fragments.
    buffers: u32,
    /// Bit set of the ECN values of the fragments.
    marks: u8,
    /// Stored fragments in order of their offsets.
    fragments: Chain,
}

/// A fragment.
struct Piece<T> {
    item: Option<T>,
    span: Span,
}

/// The fragments of one worker.
pub(crate) struct Store<K, T> {
    datagrams: Datagrams<K, Datagram, 1>,
    /// Stored fragments, including those that are to be dropped.
    pieces: Chains<Piece<T>>,
    /// Buffers of fragments that wait for the rest, and of all stored fragments.
    waiting: u32,
    held: u32,
    /// Complete datagrams, and those with fragments to drop.
    whole: VecDeque<Place>,
    doomed: VecDeque<Place>,
}

/// A complete datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Whole(Place);

impl<K: Copy + Eq + Hash + Default, T> Store<K, T> {
    /// Capacity for this many datagrams and fragments.
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

    /// Number of datagrams that wait, including those that were given up and are remembered.
    pub fn datagrams(&self) -> u32 {
        self.datagrams.len(LINE)
    }

    /// Number of stored fragments.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests check the bounds by it"))]
    pub fn fragments(&self) -> u32 {
        self.pieces.used()
    }

    /// Number of buffers of stored fragments.
    pub fn buffers(&self) -> u32 {
        self.held
    }

    /// Arrival time of the oldest datagram.
    pub fn oldest_ns(&self) -> Option<u64> {
        self.datagrams.oldest_ns()
    }

    /// Whether a complete datagram or fragments to drop are queued.
    pub fn is_due(&self) -> bool {
        !(self.whole.is_empty() && self.doomed.is_empty())
    }

    /// Removes datagrams that have timed out.
    pub fn expire(&mut self, timeout_ns: u64, now_ns: u64) {
        while let Some(slot) = self.datagrams.overdue(LINE, timeout_ns, now_ns) {
            self.forget(slot, Fault::Timeout);
        }
    }

    /// Evicts the oldest datagrams until the buffers of waiting fragments are within a lowered limit.
    pub fn shrink(&mut self, buffers: u32) {
        while self.waiting > buffers && self.evict(None) {}
    }

    /// Decides whether a fragment may be stored.
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
        // A fragment that could not be stored anyway evicts no others.
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

    /// Stores a fragment at its offset.
    pub fn put(&mut self, leave: Leave, item: T) {
        let Leave { slot, span } = leave;
        let before = self.before(slot, span.start);
        // A free link exists, as [`Leave`] guarantees.
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

    /// The next complete datagram.
    pub fn next_whole(&mut self) -> Option<Whole> {
        self.whole.front().map(|slot| Whole(*slot))
    }

    /// Length and ECN bits of a datagram; no bits if those of the fragments are incompatible (RFC 3168, 5.3).
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

    /// The fragments of a complete datagram, from the first to the last.
    pub fn fragments_of(&self, whole: Whole) -> impl Iterator<Item = (Span, &T)> {
        let pieces = self.pieces.iter(&self.datagrams[whole.0].fragments);
        pieces.filter_map(|piece| Some((piece.span, piece.item.as_ref()?)))
    }

    /// Takes the fragments of a complete datagram one by one; after the last one its slot is freed.
    pub fn take(&mut self, whole: Whole) -> Option<T> {
        let taken = self.pop(whole.0);
        if taken.is_none() {
            self.whole.pop_front();
            self.datagrams.close(whole.0);
        }
        taken.map(|(_, item)| item)
    }

    /// Gives up a complete datagram that cannot be reassembled after all.
    pub fn give_up(&mut self, whole: Whole, fault: Fault) {
        self.whole.pop_front();
        let it = &mut self.datagrams[whole.0];
        (it.state, it.fault, it.queued) = (State::Gone, fault, false);
        self.queue(whole.0);
    }

    /// The next fragment to drop, the reason, and whether it is the first of its datagram.
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

/// Private helpers.
impl<K: Copy + Eq + Hash + Default, T> Store<K, T> {
    /// Allocates a slot for a new datagram.
    fn open(&mut self, key: &K, bounds: &Bounds, now_ns: u64) -> Result<Place, Fault> {
        while self.datagrams() >= bounds.datagrams.max(1) && self.evict(None) {}
        let opened = self.datagrams.open(key, LINE, now_ns, Datagram::default());
        opened.ok_or(Fault::Full)
    }

    /// Whether a fragment is consistent with the stored ones of its datagram.
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

    /// The last stored fragment that begins at or before `start`. Most fragments arrive in order, so the search begins at the
    /// end.
    fn before(&self, slot: Place, start: u32) -> Option<Place> {
        let fragments = &self.datagrams[slot].fragments;
        self.pieces
            .last_not(fragments, |piece| piece.span.start > start)
    }

    /// Evicts the oldest datagram other than `but`. False if there is none.
    fn evict(&mut self, but: Option<Place>) -> bool {
        let victim = self.datagrams.oldest_but(LINE, but);
        if let Some(victim) = victim {
            self.forget(victim, Fault::Evicted);
        }
        victim.is_some()
    }

    /// Subtracts the buffers of a datagram that no longer waits.
    fn end_wait(&mut self, slot: Place) {
        if self.datagrams[slot].state == State::Open {
            self.waiting -= self.datagrams[slot].buffers;
        }
    }

    /// Removes a datagram from its list; its fragments are dropped.
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

    /// Gives up a datagram, which stays in the list until its timeout.
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

    /// Takes the first fragment of a datagram.
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
