//! What is known of datagrams in transit that come in fragments, and fragments that came before their first: bounded, without
//! allocation once it is made, and without any knowledge of packets.
//!
//! Datagrams stand in two lines, each from the oldest to the newest: those whose first fragment came, since their last fragment
//! came, and those that await it, since theirs did. Whose time is over leaves its line. Where there is no room the oldest that
//! waits gives way, and only where none waits the oldest that is known: a flood of later fragments leaves flows alone.

use super::store::Bounds;
use super::{Fault, Span};
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hash};

/// "Nothing" as a place in a list.
const NONE: u32 = u32::MAX;

/// However its fragments come, a datagram's flow is not known longer than that (and its timeout): identifications come again,
/// in IPv4 soon (RFC 6864, 3).
const LIFE_NS: u64 = 10_000_000_000;

/// What is to be done with a later fragment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Later {
    /// It goes on: this is its flow's hash.
    Known(u32),
    /// It may be put with its datagram.
    Wait(Leave),
}

/// Leave to put a fragment with its datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "the fragment is to be put there"]
pub(crate) struct Leave {
    slot: u32,
    span: Span,
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
struct Slot<K> {
    key: K,
    line: usize,
    hash: u32,
    /// Where its first fragment ends.
    head_end: u32,
    born_ns: u64,
    /// Since when it stands where it does in its line.
    since_ns: u64,
    came: Cover,
    /// Fragments that wait.
    pieces: u32,
    first: u32,
    last: u32,
    /// The next in its bucket, or among the free ones.
    next: u32,
    older: u32,
    newer: u32,
}

/// A fragment that waits, or waited.
struct Piece<T> {
    item: Option<T>,
    start: u32,
    fate: Fate,
    /// The next one of the datagram, of those that leave, or of the free ones.
    after: u32,
}

/// A line's ends.
#[derive(Clone, Copy)]
struct Line {
    oldest: u32,
    newest: u32,
    len: u32,
}

/// Fragments that leave, in order.
#[derive(Clone, Copy)]
struct Exit {
    first: u32,
    last: u32,
}

/// What one worker knows and holds.
pub(crate) struct Flows<K, T> {
    slots: Box<[Slot<K>]>,
    pieces: Box<[Piece<T>]>,
    buckets: Box<[u32]>,
    hasher: RandomState,
    free_slot: u32,
    free_piece: u32,
    lines: [Line; 2],
    /// Fragments that go on, and those that are dropped.
    ready: Exit,
    doomed: Exit,
    /// Fragments that wait for their first, and all that are here.
    waiting: u32,
    held: u32,
    /// Datagrams that were known and gave way.
    forgotten: u64,
}

impl<K: Copy + Eq + Hash + Default, T> Flows<K, T> {
    /// Room for so many datagrams and fragments.
    pub fn new(datagrams: usize, fragments: usize) -> Self {
        let slot = |at: usize| Slot {
            key: K::default(),
            line: KNOWN,
            hash: 0,
            head_end: 0,
            born_ns: 0,
            since_ns: 0,
            came: Cover::default(),
            pieces: 0,
            first: NONE,
            last: NONE,
            next: follow(at, datagrams),
            older: NONE,
            newer: NONE,
        };
        let piece = |at: usize| Piece {
            item: None,
            start: 0,
            fate: Fate::Drop(Fault::Full),
            after: follow(at, fragments),
        };
        let line = Line {
            oldest: NONE,
            newest: NONE,
            len: 0,
        };
        let exit = Exit {
            first: NONE,
            last: NONE,
        };
        Flows {
            slots: (0..datagrams).map(slot).collect(),
            pieces: (0..fragments).map(piece).collect(),
            buckets: vec![NONE; datagrams.next_power_of_two()].into(),
            hasher: RandomState::new(),
            free_slot: 0,
            free_piece: 0,
            lines: [line; 2],
            ready: exit,
            doomed: exit,
            waiting: 0,
            held: 0,
            forgotten: 0,
        }
    }

    /// Datagrams whose first fragment came, and those that await it.
    pub fn datagrams(&self) -> (u32, u32) {
        (self.lines[KNOWN].len, self.lines[AWAITED].len)
    }

    /// Fragments that are held.
    pub fn fragments(&self) -> u32 {
        self.held
    }

    /// Since when the oldest datagram of either line is there.
    pub fn oldest_ns(&self) -> Option<u64> {
        let oldest = self.lines.iter().map(|line| line.oldest);
        let there = oldest.filter(|slot| *slot != NONE);
        there.map(|slot| self.slot(slot).since_ns).min()
    }

    /// Whether something is to be taken out at once.
    pub fn is_due(&self) -> bool {
        self.ready.first != NONE || self.doomed.first != NONE
    }

    /// How many datagrams that were known gave way since this was asked last.
    pub fn take_forgotten(&mut self) -> u64 {
        std::mem::take(&mut self.forgotten)
    }

    /// Give up datagrams whose time is over.
    pub fn expire(&mut self, timeout_ns: u64, now_ns: u64) {
        for line in [KNOWN, AWAITED] {
            loop {
                let oldest = self.lines[line].oldest;
                if oldest == NONE || now_ns.saturating_sub(self.slot(oldest).since_ns) < timeout_ns
                {
                    break;
                }
                self.forget(oldest, Fault::Timeout);
            }
        }
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
        let slot = match self.find(key) {
            Some(slot) => slot,
            None => self.open(key, KNOWN, bounds, now_ns)?,
        };
        let it = self.slot(slot);
        let is_new = (it.hash, it.head_end) != (hash, span.end);
        if it.line == AWAITED {
            self.let_go(slot, |piece| match piece.start < span.end {
                true => Fate::Drop(Fault::Overlap),
                false => Fate::Known(hash),
            });
            self.step_back(slot, KNOWN, now_ns);
            self.slot_mut(slot).born_ns = now_ns;
        } else if is_new {
            // The identification came again, or somebody plays: whoever reads this one's ports has judged it by them.
            self.step_back(slot, KNOWN, now_ns);
            let it = self.slot_mut(slot);
            (it.born_ns, it.came) = (now_ns, Cover::default());
        } else {
            self.hear(slot, now_ns);
        }
        let it = self.slot_mut(slot);
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
        let found = self.find(key);
        if let Some(slot) = found.filter(|slot| self.slot(*slot).line == KNOWN) {
            let (hash, head_end) = (self.slot(slot).hash, self.slot(slot).head_end);
            if span.start < head_end {
                return Err(Fault::Overlap);
            }
            self.hear(slot, now_ns);
            self.came(slot, span);
            return Ok(Later::Known(hash));
        }
        if found.is_some_and(|slot| self.slot(slot).pieces >= bounds.fragments) {
            return Err(Fault::TooMany);
        }
        while self.waiting >= bounds.buffers && self.make_room(found) {}
        if self.free_piece == NONE || self.waiting >= bounds.buffers {
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
        let at = self.free_piece;
        let piece = self.piece_mut(at);
        (piece.item, piece.start) = (Some(item), span.start);
        self.free_piece = std::mem::replace(&mut piece.after, NONE);
        match self.slot(slot).last {
            NONE => self.slot_mut(slot).first = at,
            last => self.piece_mut(last).after = at,
        }
        let it = self.slot_mut(slot);
        (it.last, it.pieces) = (at, it.pieces + 1);
        it.came.add(span);
        self.waiting += 1;
        self.held += 1;
    }

    /// The next fragment that waited and goes on, and its flow's hash.
    pub fn next_ready(&mut self) -> Option<(T, u32)> {
        match self.pop(|it| &mut it.ready)? {
            (item, Fate::Known(hash)) => Some((item, hash)),
            // Not so: `let_go` sorts them.
            (_, Fate::Drop(_)) => None,
        }
    }

    /// The next fragment that waited in vain, and why.
    pub fn next_drop(&mut self) -> Option<(T, Fault)> {
        match self.pop(|it| &mut it.doomed)? {
            (item, Fate::Drop(fault)) => Some((item, fault)),
            (_, Fate::Known(_)) => None,
        }
    }
}

fn follow(at: usize, all: usize) -> u32 {
    if at + 1 < all { at as u32 + 1 } else { NONE }
}

/// Lines and lists. Places that lead nowhere are never followed: `NONE` is asked about first.
impl<K: Copy + Eq + Hash + Default, T> Flows<K, T> {
    fn slot(&self, at: u32) -> &Slot<K> {
        &self.slots[at as usize]
    }

    fn slot_mut(&mut self, at: u32) -> &mut Slot<K> {
        &mut self.slots[at as usize]
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
    fn open(&mut self, key: &K, line: usize, bounds: &Bounds, now_ns: u64) -> Result<u32, Fault> {
        while self.lines[KNOWN].len + self.lines[AWAITED].len >= bounds.datagrams.max(1)
            && (self.make_room(None) || self.forget_known())
        {}
        let slot = self.free_slot;
        if slot == NONE {
            return Err(Fault::Full);
        }
        self.free_slot = self.slot(slot).next;
        let bucket = self.bucket(key);
        let next = std::mem::replace(&mut self.buckets[bucket], slot);
        *self.slot_mut(slot) = Slot {
            key: *key,
            line,
            hash: 0,
            head_end: 0,
            born_ns: now_ns,
            since_ns: now_ns,
            came: Cover::default(),
            pieces: 0,
            first: NONE,
            last: NONE,
            next,
            older: NONE,
            newer: NONE,
        };
        self.join_line(slot);
        Ok(slot)
    }

    /// The oldest datagram that waits, but this one, gives way. False when there is none.
    fn make_room(&mut self, but: Option<u32>) -> bool {
        let oldest = self.lines[AWAITED].oldest;
        let victim = match but {
            Some(but) if oldest == but => self.slot(oldest).newer,
            _ => oldest,
        };
        if victim != NONE {
            self.forget(victim, Fault::Evicted);
        }
        victim != NONE
    }

    /// The oldest datagram that is known gives way. False when there is none.
    fn forget_known(&mut self) -> bool {
        let victim = self.lines[KNOWN].oldest;
        if victim != NONE {
            self.forgotten += 1;
            self.forget(victim, Fault::Evicted);
        }
        victim != NONE
    }

    /// A fragment of a known datagram came: its flow is known for longer.
    fn hear(&mut self, slot: u32, now_ns: u64) {
        if now_ns.saturating_sub(self.slot(slot).born_ns) < LIFE_NS {
            self.step_back(slot, KNOWN, now_ns);
        }
    }

    /// Note which bytes of a known datagram came; with the last of them it is done with.
    fn came(&mut self, slot: u32, span: Span) {
        let it = self.slot_mut(slot);
        it.came.add(span);
        if it.came.is_all() {
            self.forget(slot, Fault::Timeout);
        }
    }

    /// To the end of a line.
    fn step_back(&mut self, slot: u32, line: usize, now_ns: u64) {
        self.leave_line(slot);
        let it = self.slot_mut(slot);
        (it.line, it.since_ns) = (line, now_ns);
        self.join_line(slot);
    }

    fn join_line(&mut self, slot: u32) {
        let line = &mut self.lines[self.slots[slot as usize].line];
        let older = std::mem::replace(&mut line.newest, slot);
        line.len += 1;
        match older {
            NONE => line.oldest = slot,
            older => self.slot_mut(older).newer = slot,
        }
        let it = self.slot_mut(slot);
        (it.older, it.newer) = (older, NONE);
    }

    fn leave_line(&mut self, slot: u32) {
        let (line, older, newer) = {
            let it = self.slot(slot);
            (it.line, it.older, it.newer)
        };
        match older {
            NONE => self.lines[line].oldest = newer,
            older => self.slot_mut(older).newer = newer,
        }
        match newer {
            NONE => self.lines[line].newest = older,
            newer => self.slot_mut(newer).older = older,
        }
        self.lines[line].len -= 1;
    }

    /// A datagram leaves line and bucket; what waits for it is dropped.
    fn forget(&mut self, slot: u32, fault: Fault) {
        self.let_go(slot, |_| Fate::Drop(fault));
        self.leave_line(slot);
        let (key, next) = (self.slot(slot).key, self.slot(slot).next);
        let bucket = self.bucket(&key);
        let mut at = self.buckets[bucket];
        if at == slot {
            self.buckets[bucket] = next;
        } else {
            while at != NONE && self.slot(at).next != slot {
                at = self.slot(at).next;
            }
            if at != NONE {
                self.slot_mut(at).next = next;
            }
        }
        self.slot_mut(slot).next = std::mem::replace(&mut self.free_slot, slot);
    }

    /// All that waits for a datagram leaves, in order, each as `fate` says.
    fn let_go(&mut self, slot: u32, fate: impl Fn(&Piece<T>) -> Fate) {
        let it = self.slot_mut(slot);
        let mut at = std::mem::replace(&mut it.first, NONE);
        it.last = NONE;
        let pieces = std::mem::take(&mut it.pieces);
        self.waiting -= pieces;
        while at != NONE {
            let piece = self.piece_mut(at);
            piece.fate = fate(piece);
            let (fate, after) = (piece.fate, std::mem::replace(&mut piece.after, NONE));
            let exit = match fate {
                Fate::Known(_) => &mut self.ready,
                Fate::Drop(_) => &mut self.doomed,
            };
            match std::mem::replace(&mut exit.last, at) {
                NONE => exit.first = at,
                last => self.piece_mut(last).after = at,
            }
            at = after;
        }
    }

    /// Take the first fragment of those that leave.
    fn pop(&mut self, exit: impl Fn(&mut Self) -> &mut Exit) -> Option<(T, Fate)> {
        let at = exit(self).first;
        if at == NONE {
            return None;
        }
        let free = self.free_piece;
        let piece = self.piece_mut(at);
        let after = std::mem::replace(&mut piece.after, free);
        let taken = piece.item.take().map(|item| (item, piece.fate));
        self.free_piece = at;
        self.held -= 1;
        let exit = exit(self);
        exit.first = after;
        if after == NONE {
            exit.last = NONE;
        }
        taken
    }
}

/// Which parts of a datagram have come, in units of 8 bytes. Only a few parts apart from each other are remembered: others are
/// as if they had not come, so that a datagram is never taken for complete that is not.
#[derive(Clone, Copy, Default)]
struct Cover {
    parts: [(u16, u16); 4],
    len: u8,
    /// Where the datagram ends; 0 as long as that is not known.
    total: u16,
}

impl Cover {
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
