//! The root of a table: an entry for each [`BLOCK`](super::view::block) of 8192 addresses.
//!
//! A *dense* root is an array of all entries (4 MiB). A table with few prefixes has a *paged* root: a page contains the
//! entries of a /10, and a number for each /10 names its page. All /10 without prefixes that have the same answer share
//! one page. An empty table has one page, so that a thousand empty
//! tables (VRFs) cost megabytes, not gigabytes. A paged root costs each lookup one more load, from a list of 2 KiB.
//!
//! Readers never see an entry change in a shared page: the writer gives a /10 a private page first, filled before its
//! number is stored. A page is reused only after a grace period.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};

use super::view::Full;
use crate::pages::Pages;

/// Root entries.
pub(super) const ROOT: usize = 1 << 19;
/// Entries in a page: the entries of a /10.
pub(super) const PAGE: usize = 512;
/// Pages in a root.
pub(super) const PAGES: usize = ROOT / PAGE;
/// Bits of a prefix whose entries are one page.
pub(super) const PAGE_BITS: u8 = 10;
/// The maximum number of pages of a paged root: 16 bits name an entry. A table that needs more gets a dense root.
const MOST: usize = (1 << u16::BITS) / PAGE;

/// Finds the entry of a block.
pub(super) trait Entries {
    fn entry(&self, block: usize) -> &AtomicU64;
}

impl Entries for [AtomicU64; ROOT] {
    #[inline(always)]
    fn entry(&self, block: usize) -> &AtomicU64 {
        &self[block]
    }
}

/// The data of a paged root that lookups read.
pub(super) struct Paged<'a> {
    offsets: &'a Offsets,
    entries: &'a [AtomicU64; MOST * PAGE],
}

impl Entries for Paged<'_> {
    #[inline(always)]
    fn entry(&self, block: usize) -> &AtomicU64 {
        &self.entries[self.offsets.place(block)]
    }
}

/// The page of each /10, as an offset: the number of a block plus the offset, modulo 2^16, is the position of the block's
/// entry. A sum needs fewer instructions than a page number, and no check.
pub(super) struct Offsets([AtomicU16; PAGES]);

impl Offsets {
    fn new() -> Self {
        let offsets = Self([const { AtomicU16::new(0) }; PAGES]);
        (0..PAGES).for_each(|page| _ = offsets.replace(page, 0));
        offsets
    }

    #[inline(always)]
    fn place(&self, block: usize) -> usize {
        let offset = self.0[block / PAGE % PAGES].load(Ordering::Acquire);
        usize::from((block as u16).wrapping_add(offset))
    }

    /// The number of the page of a /10.
    fn number(&self, page: usize) -> u8 {
        (self.place(page * PAGE) / PAGE) as u8
    }

    /// Stores the number of the page of a /10, and returns the old one.
    fn replace(&self, page: usize, number: u8) -> u8 {
        let old = self.number(page);
        let place = usize::from(number) * PAGE;
        let offset = (place as u16).wrapping_sub((page * PAGE) as u16);
        self.0[page].store(offset, Ordering::Release);
        old
    }
}

pub(super) enum Root {
    Dense(Pages<AtomicU64>),
    Paged {
        offsets: Box<Offsets>,
        /// Page 0 always contains the entry 0.
        entries: Pages<AtomicU64>,
    },
}

impl Root {
    /// An empty root: every entry is 0.
    pub(super) fn new(dense: bool) -> Self {
        if dense {
            return Self::Dense(Pages::new(ROOT));
        }
        Self::Paged {
            offsets: Box::new(Offsets::new()),
            entries: Pages::new(MOST * PAGE),
        }
    }

    pub(super) fn is_dense(&self) -> bool {
        matches!(self, Self::Dense(_))
    }

    /// The array of a dense root.
    #[inline(always)]
    pub(super) fn dense(entries: &Pages<AtomicU64>) -> &[AtomicU64; ROOT] {
        match entries.first_chunk() {
            Some(entries) => entries,
            None => unreachable!(),
        }
    }

    #[inline(always)]
    pub(super) fn paged<'a>(offsets: &'a Offsets, entries: &'a Pages<AtomicU64>) -> Paged<'a> {
        match entries.first_chunk() {
            Some(entries) => Paged { offsets, entries },
            None => unreachable!(),
        }
    }

    /// The entry of a block. In a paged root the block's page may be a shared one.
    #[inline(always)]
    pub(super) fn entry(&self, block: usize) -> &AtomicU64 {
        match self {
            Self::Dense(entries) => &entries[block],
            Self::Paged { offsets, entries } => &entries[offsets.place(block)],
        }
    }

    /// The bytes that readers may access.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Dense(entries) => entries.bytes(),
            Self::Paged { offsets, .. } => {
                let numbers: HashSet<u8> = (0..PAGES).map(|page| offsets.number(page)).collect();
                size_of_val(&**offsets) + numbers.len() * PAGE * size_of::<u64>()
            }
        }
    }
}

/// A page that several /10 share.
struct Shared {
    number: u8,
    /// The number of /10 that share the page.
    users: u32,
}

/// Allocates the pages of a paged root.
pub(super) struct PageAllocator {
    free: Vec<u8>,
    /// Pages from this number on were never used.
    next: u8,
    /// Shared pages, by their only entry.
    by_entry: HashMap<u64, Shared>,
    /// The entry of each shared page.
    by_number: HashMap<u8, u64>,
}

impl PageAllocator {
    /// The allocator of an empty root.
    pub(super) fn new() -> Self {
        let zero = Shared {
            number: 0,
            users: PAGES as u32,
        };
        Self {
            free: Vec::new(),
            next: 1,
            by_entry: HashMap::from([(0, zero)]),
            by_number: HashMap::from([(0, 0)]),
        }
    }

    fn take(&mut self) -> Result<u8, Full> {
        if let Some(number) = self.free.pop() {
            return Ok(number);
        }
        if usize::from(self.next) >= MOST {
            return Err(Full);
        }
        self.next += 1;
        Ok(self.next - 1)
    }

    /// Recycles a page that no reader can access any more.
    pub(super) fn give(&mut self, number: u8) {
        self.free.push(number);
    }

    /// The entry of all blocks of a /10 that shares its page.
    pub(super) fn shared_entry(&self, root: &Root, page: usize) -> Option<u64> {
        match root {
            Root::Dense(_) => None,
            Root::Paged { offsets, .. } => self.by_number.get(&offsets.number(page)).copied(),
        }
    }

    /// Removes a user of a shared page; returns the page's number if that was the last user.
    fn leave(&mut self, entry: u64) -> Option<u8> {
        let shared = self.by_entry.get_mut(&entry)?;
        shared.users -= 1;
        let number = shared.number;
        if shared.users > 0 || number == 0 {
            return None;
        }
        self.by_entry.remove(&entry);
        self.by_number.remove(&number);
        Some(number)
    }

    /// Gives a /10 a private page with its current entries. Returns a page that new readers cannot find any more.
    pub(super) fn own(&mut self, root: &Root, page: usize) -> Result<Option<u8>, Full> {
        let Some(entry) = self.shared_entry(root, page) else {
            return Ok(None);
        };
        let Root::Paged { offsets, entries } = root else {
            return Ok(None);
        };
        let number = self.take()?;
        for word in &entries[usize::from(number) * PAGE..][..PAGE] {
            word.store(entry, Ordering::Relaxed);
        }
        offsets.replace(page, number);
        Ok(self.leave(entry))
    }

    /// Lets a /10 share the page whose entries all are `entry`. Returns a page that new readers cannot find any more.
    pub(super) fn share(
        &mut self,
        root: &Root,
        page: usize,
        entry: u64,
    ) -> Result<Option<u8>, Full> {
        let Root::Paged { offsets, entries } = root else {
            return Err(Full);
        };
        let number = match self.by_entry.get(&entry) {
            Some(shared) => shared.number,
            None => {
                let number = self.take()?;
                for word in &entries[usize::from(number) * PAGE..][..PAGE] {
                    word.store(entry, Ordering::Relaxed);
                }
                self.by_entry.insert(entry, Shared { number, users: 0 });
                self.by_number.insert(number, entry);
                number
            }
        };
        if let Some(shared) = self.by_entry.get_mut(&entry) {
            shared.users += 1;
        }
        let old = offsets.replace(page, number);
        Ok(match self.by_number.get(&old).copied() {
            Some(entry) => self.leave(entry),
            None => Some(old),
        })
    }

    /// Whether a paged root has capacity for this number of different pages, with a reserve.
    pub(super) fn suffices(pages: usize) -> bool {
        pages < MOST / 2
    }

    /// Panics unless the number of users of each shared page equals that in the root.
    #[cfg(test)]
    pub(super) fn check(&self, root: &Root) {
        let Root::Paged { offsets, entries } = root else {
            return;
        };
        assert_eq!(self.by_entry.len(), self.by_number.len());
        for (entry, shared) in &self.by_entry {
            let uses = |page: &usize| offsets.number(*page) == shared.number;
            assert_eq!((0..PAGES).filter(uses).count(), shared.users as usize);
            let page = &entries[usize::from(shared.number) * PAGE..][..PAGE];
            assert!(page.iter().all(|e| e.load(Ordering::Relaxed) == *entry));
        }
        assert!((0..PAGES).all(|page| !self.free.contains(&offsets.number(page))));
    }
}
