//! IPv6 longest-prefix match: ranges over the upper 64 bits, and a second table for longer prefixes.
//!
//! # Contract
//! - One writer ([`Lpm6`]) on the control thread; any number of readers ([`Lpm6Snap`], [`Lpm6View`]).
//! - [`Lpm6::insert`] and [`Lpm6::remove`] are visible to every read that starts after they return: nothing is batched.
//!   While they run, a reader sees for each address the old or the new answer, never a third; different
//!   addresses of one prefix may change at slightly different times.
//! - A view read under a guard stays valid for the guard's life, but may not show later changes: read a new view per frame.
//! - Lookups neither panic nor allocate.
//! - Cost of an update: one block (some 200 ns) per about 46 ranges that the prefix spans, and occasionally
//!   a new index.
//!
//! An address is a pair of host-order halves; `hi` contains the network part.

mod key;
mod ranges;
mod view;

use std::sync::Arc;

use crate::error::check;
use crate::{Domain, Guard, LpmError, Publisher, Snap};
use key::Key;
use ranges::{Entry, Ranges};
pub use view::Lpm6View;
use view::{LONGER, join};

/// The length of the longest prefix in the upper half.
const UPPER: u8 = 64;
/// The length of the mark for an upper half with longer prefixes.
const MARK: u8 = UPPER + 1;

/// The writer's side of one IPv6 table.
pub struct Lpm6 {
    upper: Ranges<u64>,
    whole: Ranges<u128>,
    marks: usize,
    publisher: Publisher<Lpm6View>,
}

impl Lpm6 {
    /// An empty table: every lookup returns leaf 0.
    pub fn new(domain: &Arc<Domain>) -> Self {
        let upper = Ranges::new(domain, 0);
        let whole = Ranges::new(domain, LONGER);
        let view = Lpm6View {
            upper: upper.view().clone(),
            whole: whole.view().clone(),
        };
        Self {
            upper,
            whole,
            marks: 0,
            publisher: Publisher::new(domain, view),
        }
    }

    /// Sets the leaf of a prefix (bits beyond `len` are ignored) and returns the leaf it had.
    ///
    /// # Errors
    /// [`LpmError::Length`], [`LpmError::Leaf`]; the table is then unchanged.
    pub fn insert(
        &mut self,
        hi: u64,
        lo: u64,
        len: u8,
        leaf: u32,
    ) -> Result<Option<u32>, LpmError> {
        check(len, 128, leaf)?;
        let old = if len <= UPPER {
            self.upper.change(hi.first(len), len, Some(leaf))
        } else {
            let old = self.whole.change(join(hi, lo).first(len), len, Some(leaf));
            if old.is_none() {
                self.mark(hi, 1);
            }
            old
        };
        self.publish();
        Ok(old)
    }

    /// Removes a prefix and returns the leaf it had.
    pub fn remove(&mut self, hi: u64, lo: u64, len: u8) -> Option<u32> {
        let old = match len {
            0..=UPPER => self.upper.change(hi.first(len), len, None),
            MARK..=128 => {
                let old = self.whole.change(join(hi, lo).first(len), len, None);
                if old.is_some() {
                    self.mark(hi, -1);
                }
                old
            }
            _ => None,
        };
        self.publish();
        old
    }

    /// The leaf of exactly this prefix.
    pub fn get(&self, hi: u64, lo: u64, len: u8) -> Option<u32> {
        match len {
            0..=UPPER => self.upper.get(hi.first(len), len),
            MARK..=128 => self.whole.get(join(hi, lo).first(len), len),
            _ => None,
        }
    }

    /// Adds many prefixes `(hi, lo, length, leaf)` at once. The result is as with single inserts, but everything is painted
    /// once, and readers switch to the new state at the end.
    ///
    /// # Errors
    /// As [`Lpm6::insert`]; the table is then unchanged.
    pub fn load_bulk(
        &mut self,
        routes: impl IntoIterator<Item = (u64, u64, u8, u32)>,
    ) -> Result<(), LpmError> {
        let mut upper: Vec<Entry<u64>> = self.upper.entries().filter(|e| !e.is_mark()).collect();
        let mut whole: Vec<Entry<u128>> = self.whole.entries().collect();
        for (hi, lo, len, leaf) in routes {
            check(len, 128, leaf)?;
            if len <= UPPER {
                let start = hi.first(len);
                upper.push(Entry { start, len, leaf });
            } else {
                let start = join(hi, lo).first(len);
                whole.push(Entry { start, len, leaf });
            }
        }
        settle(&mut whole);
        let same_upper = |a: &Entry<u128>, b: &Entry<u128>| a.start >> 64 == b.start >> 64;
        let marks = whole.chunk_by(same_upper).map(|group| Entry {
            start: (group[0].start >> 64) as u64,
            len: MARK,
            leaf: group.len() as u32,
        });
        let before = upper.len();
        upper.extend(marks);
        self.marks = upper.len() - before;
        settle(&mut upper);
        self.upper.load(&upper);
        self.whole.load(&whole);
        self.publish();
        Ok(())
    }

    /// A handle for readers.
    pub fn snap(&self) -> Lpm6Snap {
        Lpm6Snap(self.publisher.snap())
    }

    /// The leaf of the longest prefix that contains the address; 0 if there is none.
    pub fn lookup(&self, hi: u64, lo: u64) -> u32 {
        self.publisher.current().lookup(hi, lo)
    }

    /// The bytes that readers may access, without the writer's own data.
    pub fn bytes(&self) -> usize {
        self.publisher.current().bytes()
    }

    /// The number of prefixes.
    pub fn len(&self) -> usize {
        self.upper.len() - self.marks + self.whole.len()
    }

    /// Whether the table has no prefix.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds `by` to the number of longer prefixes below an upper half.
    fn mark(&mut self, hi: u64, by: i32) {
        let count = self.upper.get(hi, MARK);
        let new = count.unwrap_or(0).saturating_add_signed(by);
        self.upper.change(hi, MARK, (new > 0).then_some(new));
        self.marks = self.marks + usize::from(new > 0) - usize::from(count.is_some());
    }

    fn publish(&mut self) {
        // Both must run: no short circuit.
        if self.upper.refresh() | self.whole.refresh() {
            self.publisher.publish(Lpm6View {
                upper: self.upper.view().clone(),
                whole: self.whole.view().clone(),
            });
        }
    }
}

/// Sorts entries; of equal prefixes the last one is kept.
fn settle<K: Key>(entries: &mut Vec<Entry<K>>) {
    entries.reverse();
    entries.sort_by_key(Entry::order);
    entries.dedup_by_key(|e| e.order());
}

/// A reader's handle on an IPv6 table. Clone it into every worker.
#[derive(Clone)]
pub struct Lpm6Snap(Snap<Lpm6View>);

impl Lpm6Snap {
    /// The current table. Call this once per frame.
    ///
    /// # Panics
    /// If the guard is of another [`Domain`] than the table's.
    #[inline]
    pub fn read<'g>(&self, guard: Guard<'g>) -> &'g Lpm6View {
        self.0.read(guard)
    }
}
