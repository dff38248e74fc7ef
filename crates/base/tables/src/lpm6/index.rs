//! Which block a key lies in: two steps by the key's first bits, then one comparison with the starts of eight blocks.
//!
//! The first 13 bits lead to a page, the next 10 to a sheet in it, the next 7 to a cell, the cell to the first block of the
//! slot (the keys with the same 30 bits). A page or sheet that lies in few enough blocks has one sheet or cell for all.
//! Addresses are given out in few, large regions: a full IPv6 table fills about a dozen pages, so that the whole index
//! stays in the second-level cache, where a tree over the block starts would take five steps.
//! Made anew (some ten microseconds) when a block is split or merged.

use super::key::{Key, SLOT_BITS};
use volley_simd::prefetch;

/// Bits that choose a sheet in a page.
const SHEET_BITS: u32 = 10;
/// Bits that choose a cell in a sheet.
const CELL_BITS: u32 = 7;
const PAGES: usize = 1 << (SLOT_BITS - SHEET_BITS - CELL_BITS);
const SHEETS: u32 = 1 << SHEET_BITS;
const CELLS: u32 = 1 << CELL_BITS;
/// Block starts that one look compares with.
const LOOK: usize = 8;
/// A cell with this bit: more than [`LOOK`] blocks start in the slot; the other bits are the place in `crowded`.
const CROWDED: u32 = 1 << 31;

/// The parts of a page or sheet: where they begin, and which of the bits that choose one count (none when there is one
/// for all).
#[derive(Clone, Copy, PartialEq)]
struct Fan {
    base: u32,
    mask: u32,
}

impl Fan {
    #[inline(always)]
    fn at(self, bits: u32) -> usize {
        (self.base + (bits & self.mask)) as usize
    }
}

/// One state of a range table's index.
pub(super) struct Index<K: Key> {
    pages: Box<[Fan; PAGES]>,
    sheets: Box<[Fan]>,
    cells: Box<[u32]>,
    /// What a key must exceed to lie behind block 0, 1, ...; [`LOOK`] more that nothing exceeds.
    bounds: Box<[K::Stored]>,
    /// First block, and how many start in the slot behind it.
    crowded: Box<[(u32, u32)]>,
}

/// How many of the sorted bounds `x` exceeds.
#[inline(always)]
pub(super) fn above<S: Copy + Ord, const N: usize>(bounds: &[S; N], x: S) -> usize {
    // Summed in bytes: that keeps this sum apart from the caller's arithmetic, and compilers then make
    // vector compares, one move-mask and one population count of it.
    bounds.iter().map(|&b| u8::from(x > b)).sum::<u8>() as usize
}

/// Walks the slots in order and keeps count of the blocks that start before their ends.
struct Walk<'a, K> {
    starts: &'a [K],
    /// Blocks that start at or before the slot's first key; at least one.
    begun: usize,
}

impl<K: Key> Walk<'_, K> {
    /// The block of the first key of `from`, and how many more start before the first key of `to`.
    fn count(&mut self, from: u32, to: Option<K>) -> (u32, u32) {
        let first = K::of_slot(from);
        while self.starts.get(self.begun).is_some_and(|&s| s <= first) {
            self.begun += 1;
        }
        let rest = &self.starts[self.begun..];
        let inside = match to {
            Some(to) => rest.partition_point(|&s| s < to),
            None => rest.len(),
        };
        (self.begun as u32 - 1, inside as u32)
    }
}

/// The first key behind `slots` slots from `slot`; none at the end of all keys.
fn behind<K: Key>(slot: u32, slots: u32) -> Option<K> {
    let next = slot + slots;
    (next < 1 << SLOT_BITS).then(|| K::of_slot(next))
}

/// An index in the making; every function takes the first slot of what it makes.
struct Maker<'a, K> {
    walk: Walk<'a, K>,
    sheets: Vec<Fan>,
    cells: Vec<u32>,
    crowded: Vec<(u32, u32)>,
}

impl<K: Key> Maker<'_, K> {
    fn page(&mut self, slot: u32) -> Fan {
        let (block, inside) = self.walk.count(slot, behind(slot, SHEETS * CELLS));
        let base = self.sheets.len() as u32;
        if inside as usize <= LOOK {
            let sheet = self.one_cell(block);
            // Neighbours in the same blocks share the sheet.
            if self.sheets.last() == Some(&sheet) {
                return Fan {
                    base: base - 1,
                    mask: 0,
                };
            }
            self.sheets.push(sheet);
            return Fan { base, mask: 0 };
        }
        for sheet in 0..SHEETS {
            let sheet = self.sheet(slot + sheet * CELLS);
            self.sheets.push(sheet);
        }
        Fan {
            base,
            mask: SHEETS - 1,
        }
    }

    fn sheet(&mut self, slot: u32) -> Fan {
        let (block, inside) = self.walk.count(slot, behind(slot, CELLS));
        if inside as usize <= LOOK {
            return self.one_cell(block);
        }
        let base = self.cells.len() as u32;
        for slot in slot..slot + CELLS {
            let (block, inside) = self.walk.count(slot, behind(slot, 1));
            if inside as usize <= LOOK {
                self.cells.push(block);
            } else {
                self.cells.push(CROWDED | self.crowded.len() as u32);
                self.crowded.push((block, inside));
            }
        }
        Fan {
            base,
            mask: CELLS - 1,
        }
    }

    /// A cell for all slots of a sheet; the one made last if it says the same.
    fn one_cell(&mut self, block: u32) -> Fan {
        if self.cells.last() != Some(&block) {
            self.cells.push(block);
        }
        let base = self.cells.len() as u32 - 1;
        Fan { base, mask: 0 }
    }
}

impl<K: Key> Index<K> {
    /// The index of blocks that begin at `starts` (sorted, the first is zero).
    pub(super) fn new(starts: &[K]) -> Self {
        let bounds = starts[1..].iter().map(|k| k.bound());
        let bounds = bounds.chain([K::PAD; LOOK]).collect();
        let mut maker = Maker {
            walk: Walk { starts, begun: 1 },
            sheets: Vec::new(),
            cells: Vec::new(),
            crowded: Vec::new(),
        };
        let pages: Box<[Fan]> = (0..PAGES as u32)
            .map(|page| maker.page(page * SHEETS * CELLS))
            .collect();
        let Ok(pages) = pages.try_into() else {
            unreachable!()
        };
        Self {
            pages,
            sheets: maker.sheets.into(),
            cells: maker.cells.into(),
            bounds,
            crowded: maker.crowded.into(),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.pages)
            + size_of_val(&*self.sheets)
            + size_of_val(&*self.cells)
            + size_of_val(&*self.bounds)
            + size_of_val(&*self.crowded)
    }

    /// The index by value, for loops: behind a reference its parts would be fetched again after every store.
    #[inline(always)]
    pub(super) fn look(&self) -> Look<'_, K> {
        Look {
            pages: &self.pages,
            sheets: &self.sheets,
            cells: &self.cells,
            bounds: &self.bounds,
            crowded: &self.crowded,
        }
    }

    /// Starts loading what a lookup of the key will need.
    #[inline(always)]
    pub(super) fn prefetch(&self, key: K) {
        prefetch(self.cells.as_ptr().wrapping_add(self.look().cell(key)));
    }
}

/// A reader's view of an [`Index`].
#[derive(Clone, Copy)]
pub(super) struct Look<'a, K: Key> {
    pages: &'a [Fan; PAGES],
    sheets: &'a [Fan],
    cells: &'a [u32],
    bounds: &'a [K::Stored],
    crowded: &'a [(u32, u32)],
}

impl<K: Key> Look<'_, K> {
    #[inline(always)]
    fn cell(self, key: K) -> usize {
        let slot = key.slot();
        let page = self.pages[(slot >> (SHEET_BITS + CELL_BITS)) as usize % PAGES];
        self.sheets[page.at(slot >> CELL_BITS)].at(slot)
    }

    /// The block of a key.
    #[inline(always)]
    pub(super) fn block(self, key: K) -> usize {
        let cell = self.cells[self.cell(key)];
        if cell & CROWDED != 0 {
            return self.search(cell & !CROWDED, key);
        }
        let cell = cell as usize;
        // There are always as many bounds behind a block.
        match self
            .bounds
            .get(cell..cell + LOOK)
            .and_then(|b| b.first_chunk::<LOOK>())
        {
            Some(bounds) => cell + above(bounds, key.stored()),
            None => 0,
        }
    }

    /// The block of a key in a slot with many.
    #[cold]
    #[inline(never)]
    fn search(self, crowded: u32, key: K) -> usize {
        let (block, inside) = self.crowded[crowded as usize];
        let bounds = &self.bounds[block as usize..][..inside as usize];
        block as usize + bounds.partition_point(|&bound| key.stored() > bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The plain definition.
    fn linear(starts: &[u64], key: u64) -> usize {
        starts.iter().filter(|&&s| s <= key).count() - 1
    }

    fn check(starts: &[u64]) {
        let index = Index::new(starts);
        let edges = starts
            .iter()
            .flat_map(|&s| [s, s.wrapping_sub(1), s.wrapping_add(1)]);
        for key in edges.chain([0, u64::MAX, 1 << 63, u64::MAX << 41]) {
            assert_eq!(
                index.look().block(key),
                linear(starts, key),
                "{key:x} of {}",
                starts.len()
            );
        }
    }

    #[test]
    fn every_key_finds_its_block() {
        check(&[0]);
        check(&[0, 1]);
        check(&[0, u64::MAX]);
        // A slot with exactly as many starts as one look takes, one more, and very many; slots and pages at their edges.
        for count in [7, 8, 9, 1000] {
            let within = (0..count).map(|i| (0x2a00 << 48) + i * 3);
            check(&[0].into_iter().chain(within).collect::<Vec<_>>());
        }
        check(&(0..4096).map(|i| i << 41).collect::<Vec<_>>());
        check(&(0..4096).map(|i| i << 51).collect::<Vec<_>>());
        check(
            &(0..4096)
                .map(|i: u64| i.wrapping_mul(i) << 38)
                .collect::<std::collections::BTreeSet<_>>()
                .into_iter()
                .collect::<Vec<_>>(),
        );
    }

    #[test]
    fn an_allocated_region_fills_a_page_and_the_rest_shares_cells() {
        let starts: Vec<u64> = [0]
            .into_iter()
            .chain((0..2000).map(|i| (0x2a00 << 48) + (i << 35)))
            .collect();
        let index = Index::new(&starts);
        assert!(
            index.sheets.len() < 2 * SHEETS as usize,
            "{}",
            index.sheets.len()
        );
        assert!(index.bytes() < 128 << 10, "{}", index.bytes());
    }
}
