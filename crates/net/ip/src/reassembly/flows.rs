//! What is known of datagrams in transit that come in fragments, and fragments that came before their first: bounded,
//! without allocation once it is made, and without any knowledge of packets.
//!
//! Datagrams stand in two lines, each from the oldest to the newest: those whose first fragment came, since their last
//! fragment came, and those that await it, since theirs did. Whose time is over leaves its line. Where there is no room the
//! oldest that waits gives way, and only where none waits the oldest that is known: a flood of later fragments leaves
//! flows alone.

use super::chains::{Chain, Chains, Place};
use super::datagrams::{Datagrams, Leave};
use super::store::Bounds;
use super::{Fault, Span};
use std::hash::Hash;

/// However its fragments come, a datagram's flow is not known longer than that (and its timeout): identifications come
/// again, in IPv4 soon (RFC 6864, 3).
const LIFE_NS: u64 = 10_000_000_000;

/// What is to be done with a later fragment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Later {
    /// It goes on: this is its flow's hash.
    Known(u32),
    /// It may be put with its datagram.
    Wait(Leave),
}

/// What becomes of a fragment that waited.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    /// It goes on: its flow's hash.
    Known(u32),
    Drop(Fault),
}

/// The lines that datagrams stand in.
const KNOWN: usize = 0;
const AWAITED: usize = 1;

/// One datagram.
#[derive(Default)]
struct Datagram {
    hash: u32,
    /// Where its first fragment ends.
    head_end: u32,
    born_ns: u64,
    came: CoveredRange,
    /// Fragments that wait, in the order in which they came, and the buffers that they take.
    waits: Chain,
    buffers: u32,
}

/// A fragment that waits, or waited.
struct Piece<T> {
    item: Option<T>,
    start: u32,
    buffers: u32,
    fate: Fate,
}

/// What one worker knows and holds.
pub(crate) struct Flows<K, T> {
    datagrams: Datagrams<K, Datagram, 2>,
    /// Fragments that wait, and those that leave.
    pieces: Chains<Piece<T>>,
    /// Fragments that go on, and those that are dropped, in order.
    ready: Chain,
    doomed: Chain,
    /// Buffers of fragments that wait for their first, and of all that are there.
    waiting: u32,
    held: u32,
    /// Datagrams that were known and gave way.
    forgotten: u64,
}

impl<K: Copy + Eq + Hash + Default, T> Flows<K, T> {
    /// Room for so many datagrams and fragments.
    pub fn new(datagrams: usize, fragments: usize) -> Self {
        let piece = || Piece {
            item: None,
            start: 0,
            buffers: 0,
            fate: Fate::Drop(Fault::Full),
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

    /// Datagrams whose first fragment came, and those that await it.
    pub fn datagrams(&self) -> (u32, u32) {
        (self.datagrams.len(KNOWN), self.datagrams.len(AWAITED))
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

    /// Since when the oldest datagram of either line is there.
    pub fn oldest_ns(&self) -> Option<u64> {
        self.datagrams.oldest_ns()
    }

    /// Whether something is to be taken out at once.
    pub fn is_due(&self) -> bool {
        self.ready.len > 0 || self.doomed.len > 0
    }

    /// How many datagrams that were known gave way since this was asked last.
    pub fn take_forgotten(&mut self) -> u64 {
        std::mem::take(&mut self.forgotten)
    }

    /// Give up datagrams whose time is over.
    pub fn expire(&mut self, timeout_ns: u64, now_ns: u64) {
        for line in [KNOWN, AWAITED] {
            while let Some(slot) = self.datagrams.overdue(line, timeout_ns, now_ns) {
                self.forget(slot, Fault::Timeout);
            }
        }
    }

    /// The limit has been lowered: the oldest datagrams that wait go until what waits is within it.
    pub fn shrink(&mut self, buffers: u32) {
        while self.waiting > buffers && self.make_room(None) {}
    }

    /// A first fragment came, which says what its flow's hash is: those that waited for it are due.
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
                true => Fate::Drop(Fault::Overlap),
                false => Fate::Known(hash),
            });
            self.datagrams.step_back(slot, KNOWN, now_ns);
            self.datagrams[slot].born_ns = now_ns;
        } else if is_new {
            // The identification came again, or somebody plays: whoever reads this one's ports has judged it by them.
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

    /// What is to be done with a later fragment, or what is wrong with it.
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
        // Nothing that there is no room for anyway makes others go.
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

    /// Put a fragment with its datagram.
    pub fn put(&mut self, Leave { slot, span }: Leave, item: T) {
        // There is a place: that is what the leave says.
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

    /// The next fragment that waited and goes on, and its flow's hash.
    pub fn next_ready(&mut self) -> Option<(T, u32)> {
        match self.pop(Exit::Ready)? {
            (item, Fate::Known(hash)) => Some((item, hash)),
            // Not so: `let_go` sorts them.
            (_, Fate::Drop(_)) => None,
        }
    }

    /// The next fragment that waited in vain, and why.
    pub fn next_drop(&mut self) -> Option<(T, Fault)> {
        match self.pop(Exit::Doomed)? {
            (item, Fate::Drop(fault)) => Some((item, fault)),
            (_, Fate::Known(_)) => None,
        }
    }
}

/// Which fragments leave.
enum Exit {
    Ready,
    Doomed,
}

/// Lines and lists.
impl<K: Copy + Eq + Hash + Default, T> Flows<K, T> {
    /// Take the first fragment of those that leave.
    fn pop(&mut self, exit: Exit) -> Option<(T, Fate)> {
        let exit = match exit {
            Exit::Ready => &mut self.ready,
            Exit::Doomed => &mut self.doomed,
        };
        let at = self.pieces.pop(exit)?;
        self.pieces.close(at);
        let piece = &mut self.pieces[at];
        self.held -= piece.buffers;
        Some((piece.item.take()?, piece.fate))
    }

    /// A place for a new datagram.
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

    /// The oldest datagram that waits, but this one, gives way. False when there is none.
    fn make_room(&mut self, but: Option<Place>) -> bool {
        let victim = self.datagrams.oldest_but(AWAITED, but);
        if let Some(victim) = victim {
            self.forget(victim, Fault::Evicted);
        }
        victim.is_some()
    }

    /// The oldest datagram that is known gives way. False when there is none.
    fn forget_known(&mut self) -> bool {
        let victim = self.datagrams.oldest_but(KNOWN, None);
        if let Some(victim) = victim {
            self.forgotten += 1;
            self.forget(victim, Fault::Evicted);
        }
        victim.is_some()
    }

    /// A fragment of a known datagram came: its flow is known for longer.
    fn hear(&mut self, slot: Place, now_ns: u64) {
        if now_ns.saturating_sub(self.datagrams[slot].born_ns) < LIFE_NS {
            self.datagrams.step_back(slot, KNOWN, now_ns);
        }
    }

    /// Note which bytes of a known datagram came; with the last of them it is done with.
    fn came(&mut self, slot: Place, span: Span) {
        let it = &mut self.datagrams[slot];
        it.came.add(span);
        if it.came.is_all() {
            self.forget(slot, Fault::Timeout);
        }
    }

    /// A datagram leaves line and bucket; what waits for it is dropped.
    fn forget(&mut self, slot: Place, fault: Fault) {
        self.let_go(slot, |_| Fate::Drop(fault));
        self.datagrams.leave(slot);
        self.datagrams.close(slot);
    }

    /// All that waits for a datagram leaves, in order, each as `fate` says.
    fn let_go(&mut self, slot: Place, fate: impl Fn(&Piece<T>) -> Fate) {
        let it = &mut self.datagrams[slot];
        self.waiting -= std::mem::take(&mut it.buffers);
        let waits = &mut it.waits;
        while let Some(at) = self.pieces.pop(waits) {
            let piece = &mut self.pieces[at];
            piece.fate = fate(piece);
            let exit = match piece.fate {
                Fate::Known(_) => &mut self.ready,
                Fate::Drop(_) => &mut self.doomed,
            };
            self.pieces.push(exit, at);
        }
    }
}

/// Which parts of a datagram have come, in units of 8 bytes. Only a few parts apart from each other are remembered: others
/// are as if they had not come, so that a datagram is never taken for complete that is not.
#[derive(Clone, Copy, Default)]
struct CoveredRange {
    parts: [(u16, u16); 4],
    len: u8,
    /// Where the datagram ends; 0 as long as that is not known.
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
