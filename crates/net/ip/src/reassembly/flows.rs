//! Flows of fragmented datagrams in transit, and fragments that arrived before their first one: bounded, without allocation
//! after creation, and independent of packets.
//!
//! Datagrams are in two lists, each from the oldest to the newest: known ones (the first fragment came), by arrival of their
//! last fragment, and awaited ones, by arrival of theirs. A datagram that times out leaves its list. When space is needed, the
//! oldest awaited datagram is evicted, and a known one only if none is awaited: a flood of later fragments does not evict
//! flows.

use super::chains::{Chain, Chains, Place};
use super::datagrams::{Datagrams, Leave};
use super::store::Bounds;
use super::{Fault, Span};
use std::hash::Hash;

/// A datagram's flow is known no longer than this (plus the timeout), however its fragments arrive: identifications are reused,
/// in IPv4 soon (RFC 6864, 3).
const LIFE_NS: u64 = 10_000_000_000;

/// What to do with a later fragment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Later {
    /// Forward it; the hash of its flow.
    Known(u32),
    /// Store it with its datagram.
    Wait(Leave),
}

/// What to do with a fragment that waited.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum FragmentOutcome {
    /// Forward it; the hash of its flow.
    Known(u32),
    Drop(Fault),
}

/// The lists of datagrams.
const KNOWN: usize = 0;
const AWAITED: usize = 1;

/// One datagram.
#[derive(Default)]
struct Datagram {
    hash: u32,
    /// End of its first fragment.
    head_end: u32,
    born_ns: u64,
    came: CoveredRange,
    /// Waiting fragments in order of arrival, and the buffers that they take.
    waits: Chain,
    buffers: u32,
}

/// A fragment that waits or waited.
struct Piece<T> {
    item: Option<T>,
    start: u32,
    buffers: u32,
    outcome: FragmentOutcome,
}

/// Flows and waiting fragments of one worker.
pub(crate) struct Flows<K, T> {
    datagrams: Datagrams<K, Datagram, 2>,
    /// Fragments that wait, and those that leave.
    pieces: Chains<Piece<T>>,
    /// Fragments to forward, and fragments to drop, in order.
    ready: Chain,
    doomed: Chain,
    /// Buffers of fragments that wait for their first one, and of all stored fragments.
    waiting: u32,
    held: u32,
    /// Known datagrams that were evicted.
    forgotten: u64,
}

impl<K: Copy + Eq + Hash + Default, T> Flows<K, T> {
    /// Capacity for this many datagrams and fragments.
    pub fn new(datagrams: usize, fragments: usize) -> Self {
        let piece = || Piece {
            item: None,
            start: 0,
            buffers: 0,
            outcome: FragmentOutcome::Drop(Fault::Full),
        };
        Flows {
            datagrams: Datagrams::new(datagrams),
            pieces: Chains::new(fragments, piece),
            ready: Chain::default(),
            doomed: Chain::default(),
            waiting: 0,
            held: 0,
            forgotten: 0,
        }
    }

    /// Numbers of known and of awaited datagrams.
    pub fn datagrams(&self) -> (u32, u32) {
        (self.datagrams.len(KNOWN), self.datagrams.len(AWAITED))
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

    /// Time of the oldest datagram of both lists.
    pub fn oldest_ns(&self) -> Option<u64> {
        self.datagrams.oldest_ns()
    }

    /// Whether fragments are ready to be forwarded or dropped.
    pub fn is_due(&self) -> bool {
        self.ready.len > 0 || self.doomed.len > 0
    }

    /// Takes the number of known datagrams evicted since the last call.
    pub fn take_forgotten(&mut self) -> u64 {
        std::mem::take(&mut self.forgotten)
    }

    /// Removes datagrams that have timed out.
    pub fn expire(&mut self, timeout_ns: u64, now_ns: u64) {
        for line in [KNOWN, AWAITED] {
            while let Some(slot) = self.datagrams.overdue(line, timeout_ns, now_ns) {
                self.forget(slot, Fault::Timeout);
            }
        }
    }

    /// Evicts the oldest awaited datagrams until the buffers of waiting fragments are within a lowered limit.
    pub fn shrink(&mut self, buffers: u32) {
        while self.waiting > buffers && self.make_room(None) {}
    }

    /// Records a first fragment with the hash of its flow: fragments that waited for it become ready.
    pub fn first(
        &mut self,
        key: &K,
        (span, hash): (Span, u32),
        bounds: &Bounds,
        now_ns: u64,
    ) -> Result<(), Fault> {
        self.expire(bounds.timeout_ns, now_ns);
        let slot = match self.datagrams.find(key) {
            Some(slot) => slot,
            None => self.open(key, KNOWN, bounds, now_ns)?,
        };
        let it = &self.datagrams[slot];
        let is_new = (it.hash, it.head_end) != (hash, span.end);
        if self.datagrams.line(slot) == AWAITED {
            self.let_go(slot, |piece| match piece.start < span.end {
                true => FragmentOutcome::Drop(Fault::Overlap),
                false => FragmentOutcome::Known(hash),
            });
            self.datagrams.step_back(slot, KNOWN, now_ns);
            self.datagrams[slot].born_ns = now_ns;
        } else if is_new {
            // The identification was reused, or the sender is hostile: later fragments get the hash of the new first fragment.
            self.datagrams.step_back(slot, KNOWN, now_ns);
            let it = &mut self.datagrams[slot];
            (it.born_ns, it.came) = (now_ns, CoveredRange::default());
        } else {
            self.hear(slot, now_ns);
        }
        let it = &mut self.datagrams[slot];
        (it.hash, it.head_end) = (hash, span.end);
        self.came(slot, span);
        Ok(())
    }

    /// Decides about a later fragment: forward it, store it, or refuse it.
    pub fn later(
        &mut self,
        key: &K,
        span: Span,
        bounds: &Bounds,
        now_ns: u64,
    ) -> Result<Later, Fault> {
        self.expire(bounds.timeout_ns, now_ns);
        let found = self.datagrams.find(key);
        if let Some(slot) = found.filter(|slot| self.datagrams.line(*slot) == KNOWN) {
            let Datagram { hash, head_end, .. } = self.datagrams[slot];
            if span.start < head_end {
                return Err(Fault::Overlap);
            }
            self.hear(slot, now_ns);
            self.came(slot, span);
            return Ok(Later::Known(hash));
        }
        if found.is_some_and(|slot| self.datagrams[slot].waits.len >= bounds.fragments) {
            return Err(Fault::TooMany);
        }
        // A fragment that could not be stored anyway evicts no others.
        let needed = span.buffers();
        while needed <= bounds.buffers
            && self.waiting + needed > bounds.buffers
            && self.make_room(found)
        {}
        if self.pieces.is_full() || self.waiting + needed > bounds.buffers {
            return Err(Fault::Full);
        }
        let slot = match found {
            Some(slot) => slot,
            None => self.open(key, AWAITED, bounds, now_ns)?,
        };
        Ok(Later::Wait(Leave { slot, span }))
    }

    /// Stores a fragment with its datagram.
    pub fn put(&mut self, Leave { slot, span }: Leave, item: T) {
        // A free link exists, as [`Leave`] guarantees.
        let Some(at) = self.pieces.open() else { return };
        let piece = &mut self.pieces[at];
        (piece.item, piece.start) = (Some(item), span.start);
        piece.buffers = span.buffers();
        let it = &mut self.datagrams[slot];
        self.pieces.push(&mut it.waits, at);
        it.came.add(span);
        it.buffers += span.buffers();
        self.waiting += span.buffers();
        self.held += span.buffers();
    }

    /// The next fragment that waited and is to be forwarded, and the hash of its flow.
    pub fn next_ready(&mut self) -> Option<(T, u32)> {
        match self.pop(Exit::Ready)? {
            (item, FragmentOutcome::Known(hash)) => Some((item, hash)),
            // Never the case: `let_go` puts these into the other list.
            (_, FragmentOutcome::Drop(_)) => None,
        }
    }

    /// The next fragment to drop whose wait ended without its first one, and the reason.
    pub fn next_drop(&mut self) -> Option<(T, Fault)> {
        match self.pop(Exit::Doomed)? {
            (item, FragmentOutcome::Drop(fault)) => Some((item, fault)),
            (_, FragmentOutcome::Known(_)) => None,
        }
    }
}

/// The two lists of fragments that leave.
enum Exit {
    Ready,
    Doomed,
}

/// Private helpers.
impl<K: Copy + Eq + Hash + Default, T> Flows<K, T> {
    /// Takes the first fragment of a list of those that leave.
    fn pop(&mut self, exit: Exit) -> Option<(T, FragmentOutcome)> {
        let exit = match exit {
            Exit::Ready => &mut self.ready,
            Exit::Doomed => &mut self.doomed,
        };
        let at = self.pieces.pop(exit)?;
        self.pieces.close(at);
        let piece = &mut self.pieces[at];
        self.held -= piece.buffers;
        Some((piece.item.take()?, piece.outcome))
    }

    /// Allocates a slot for a new datagram.
    fn open(&mut self, key: &K, line: usize, bounds: &Bounds, now_ns: u64) -> Result<Place, Fault> {
        while self.datagrams.len(KNOWN) + self.datagrams.len(AWAITED) >= bounds.datagrams.max(1)
            && (self.make_room(None) || self.forget_known())
        {}
        let it = Datagram {
            born_ns: now_ns,
            ..Datagram::default()
        };
        let opened = self.datagrams.open(key, line, now_ns, it);
        opened.ok_or(Fault::Full)
    }

    /// Evicts the oldest awaited datagram other than `but`. False if there is none.
    fn make_room(&mut self, but: Option<Place>) -> bool {
        let victim = self.datagrams.oldest_but(AWAITED, but);
        if let Some(victim) = victim {
            self.forget(victim, Fault::Evicted);
        }
        victim.is_some()
    }

    /// Evicts the oldest known datagram. False if there is none.
    fn forget_known(&mut self) -> bool {
        let victim = self.datagrams.oldest_but(KNOWN, None);
        if let Some(victim) = victim {
            self.forgotten += 1;
            self.forget(victim, Fault::Evicted);
        }
        victim.is_some()
    }

    /// Extends the lifetime of a known datagram after a fragment arrived.
    fn hear(&mut self, slot: Place, now_ns: u64) {
        if now_ns.saturating_sub(self.datagrams[slot].born_ns) < LIFE_NS {
            self.datagrams.step_back(slot, KNOWN, now_ns);
        }
    }

    /// Records the range of a fragment of a known datagram; removes the datagram if it is complete.
    fn came(&mut self, slot: Place, span: Span) {
        let it = &mut self.datagrams[slot];
        it.came.add(span);
        if it.came.is_all() {
            self.forget(slot, Fault::Timeout);
        }
    }

    /// Removes a datagram; drops its waiting fragments.
    fn forget(&mut self, slot: Place, fault: Fault) {
        self.let_go(slot, |_| FragmentOutcome::Drop(fault));
        self.datagrams.leave(slot);
        self.datagrams.close(slot);
    }

    /// Moves the waiting fragments of a datagram, in order, to one of the two lists of fragments that leave.
    fn let_go(&mut self, slot: Place, outcome: impl Fn(&Piece<T>) -> FragmentOutcome) {
        let it = &mut self.datagrams[slot];
        self.waiting -= std::mem::take(&mut it.buffers);
        let waits = &mut it.waits;
        while let Some(at) = self.pieces.pop(waits) {
            let piece = &mut self.pieces[at];
            piece.outcome = outcome(piece);
            let exit = match piece.outcome {
                FragmentOutcome::Known(_) => &mut self.ready,
                FragmentOutcome::Drop(_) => &mut self.doomed,
            };
            self.pieces.push(exit, at);
        }
    }
}

/// Ranges of a datagram that have arrived, in units of 8 bytes. Only a few separate ranges are recorded; others count as
/// missing, so that an incomplete datagram is never taken for complete.
#[derive(Clone, Copy, Default)]
struct CoveredRange {
    parts: [(u16, u16); 4],
    len: u8,
    /// End of the datagram; 0 while unknown.
    total: u16,
}

impl CoveredRange {
    fn add(&mut self, span: Span) {
        let (mut from, mut to) = ((span.start / 8) as u16, span.end.div_ceil(8) as u16);
        if !span.more {
            self.total = to;
        }
        let mut kept = 0;
        for at in 0..usize::from(self.len) {
            let part = self.parts[at];
            if part.0 <= to && from <= part.1 {
                (from, to) = (from.min(part.0), to.max(part.1));
            } else {
                self.parts[kept] = part;
                kept += 1;
            }
        }
        if let Some(place) = self.parts.get_mut(kept) {
            *place = (from, to);
            kept += 1;
        }
        self.len = kept as u8;
    }

    fn is_all(&self) -> bool {
        self.len == 1 && self.total != 0 && self.parts[0] == (0, self.total)
    }
}

#[cfg(test)]
mod tests;
