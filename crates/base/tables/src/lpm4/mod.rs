//! IPv4 longest-prefix match: a bitmap root and short runs of answers.
//!
//! # Contract
//! - One writer ([`Lpm4`]) on the control thread; any number of readers ([`Lpm4Snap`], [`Lpm4View`]).
//! - [`Lpm4::insert`] and [`Lpm4::remove`] are visible to every read that starts after they return. While they run, a
//!   reader sees for each address the old or the new answer, never a third; different addresses of one prefix may
//!   change at slightly different times.
//! - A view read under a guard stays valid for the guard's life. If the table moved to new memory meanwhile, the view
//!   shows the state before the move: read a new view per frame.
//! - Lookups neither panic nor allocate. Updates allocate when the table grows.
//! - Cost of an update: one root entry (about 100 ns); for a prefix of /18 or shorter, `2^(19 - len)` entries. While
//!   the table is small (`root.rs`), the first and the last prefix of a /10 cost 512 entries.
//!
//! Layout, and why readers never see an inconsistent state: `view.rs`.

mod plane;
mod rib;
mod room;
mod root;
mod view;

use std::sync::Arc;

use crate::error::check;
use crate::{Domain, Guard, LpmError, Snap};
use plane::{Plane, needs_wide};
use rib::{Rib, Span};
pub use view::Lpm4View;

/// The maximum number of /24 networks with longer prefixes in one table (1 GiB of answers if each has many).
const MAX_LONG: usize = 1 << 20;

/// The writer's side of one IPv4 table: the prefixes, and the answers computed from them.
pub struct Lpm4 {
    rib: Rib,
    plane: Plane,
}

impl Lpm4 {
    /// An empty table: every lookup returns leaf 0.
    pub fn new(domain: &Arc<Domain>) -> Self {
        Self {
            rib: Rib::new(),
            plane: Plane::new(domain),
        }
    }

    /// Sets the leaf of `addr/len` (host byte order; bits beyond `len` are ignored) and returns the leaf it had.
    ///
    /// # Errors
    /// [`LpmError::Length`], [`LpmError::Leaf`], [`LpmError::TooManyLong`]; the table is then unchanged.
    pub fn insert(&mut self, addr: u32, len: u8, leaf: u32) -> Result<Option<u32>, LpmError> {
        check(len, 32, leaf)?;
        self.plane.collect();
        if needs_wide(leaf, 0) {
            self.plane.widen();
        }
        if len > 24 && !self.rib.has_long(addr >> 8) {
            check_long(self.rib.long_count() + 1)?;
        }
        let old = self.rib.set(addr, len, leaf);
        if old != Some(leaf) {
            self.repaint(addr, len);
        }
        Ok(old)
    }

    /// Removes `addr/len` and returns the leaf it had.
    pub fn remove(&mut self, addr: u32, len: u8) -> Option<u32> {
        if len > 32 {
            return None;
        }
        self.plane.collect();
        let (leaf, chunk) = self.rib.unset(addr, len)?;
        self.repaint(addr, len);
        if let Some(chunk) = chunk {
            self.plane.free_chunk(chunk);
        }
        Some(leaf)
    }

    /// The leaf of exactly this prefix.
    pub fn get(&self, addr: u32, len: u8) -> Option<u32> {
        if len > 32 {
            None
        } else {
            self.rib.get(addr, len)
        }
    }

    /// Adds many prefixes `(address, length, leaf)` at once. The result is as with single inserts, but every part of the table
    /// is painted once, and readers switch to the new state at the end.
    ///
    /// # Errors
    /// As [`Lpm4::insert`]; the table is then unchanged.
    pub fn load_bulk(
        &mut self,
        routes: impl IntoIterator<Item = (u32, u8, u32)>,
    ) -> Result<(), LpmError> {
        let routes: Vec<_> = routes.into_iter().collect();
        self.exchange_bulk(&[], &routes)
    }

    /// Removes the prefixes `removed`, then adds `added` as [`Lpm4::load_bulk`]: readers see all changes or none.
    ///
    /// # Errors
    /// As [`Lpm4::insert`]; the table is then unchanged.
    pub fn exchange_bulk(
        &mut self,
        removed: &[(u32, u8)],
        added: &[(u32, u8, u32)],
    ) -> Result<(), LpmError> {
        self.check_bulk(removed, added)?;
        for &(addr, len) in removed.iter().filter(|(_, len)| *len <= 32) {
            // All chunks and lines are painted again below.
            let _ = self.rib.unset(addr, len);
        }
        let mut most = 0;
        for &(addr, len, leaf) in added {
            most = most.max(leaf);
            self.rib.set(addr, len, leaf);
        }
        let wide = self.plane.view().is_wide() || needs_wide(most, 0);
        self.plane.load(&self.rib, wide);
        Ok(())
    }

    /// Whether [`Lpm4::exchange_bulk`] would refuse the changes now.
    ///
    /// # Errors
    /// Those of [`Lpm4::exchange_bulk`].
    pub fn check_bulk(
        &self,
        removed: &[(u32, u8)],
        added: &[(u32, u8, u32)],
    ) -> Result<(), LpmError> {
        let mut fresh = Vec::new();
        for &(addr, len, leaf) in added {
            check(len, 32, leaf)?;
            if len > 24 {
                fresh.push(addr >> 8);
            }
        }
        if fresh.is_empty() {
            return Ok(());
        }
        fresh.sort_unstable();
        fresh.dedup();
        // Most prefixes are shorter: they are not copied.
        let gone = removed
            .iter()
            .filter(|(addr, len)| *len > 24 && self.get(*addr, *len).is_some());
        let mut gone: Vec<(u32, u8)> = gone
            .map(|&(addr, len)| (addr & (u32::MAX << (32 - len)), len))
            .collect();
        gone.sort_unstable();
        gone.dedup();
        // Networks that lose all their longer prefixes, and get none.
        let emptied = gone.chunk_by(|a, b| a.0 >> 8 == b.0 >> 8).filter(|of_net| {
            let net = of_net[0].0 >> 8;
            of_net.len() == self.rib.long_len(net) && fresh.binary_search(&net).is_err()
        });
        let more = fresh.iter().filter(|net| !self.rib.has_long(**net)).count();
        check_long(self.rib.long_count() + more - emptied.count())
    }

    /// A handle for readers.
    pub fn snap(&self) -> Lpm4Snap {
        Lpm4Snap(self.plane.snap())
    }

    /// The leaf of the longest prefix that contains `addr`; 0 if there is none.
    pub fn lookup(&self, addr: u32) -> u32 {
        self.plane.view().lookup(addr)
    }

    /// The bytes that readers may access, without the writer's own data.
    pub fn bytes(&self) -> usize {
        self.plane.view().bytes()
    }

    /// The number of prefixes.
    pub fn len(&self) -> usize {
        self.rib.len()
    }

    /// Whether the table has no prefix.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn repaint(&mut self, addr: u32, len: u8) {
        let Self { rib, plane } = self;
        let page = (addr >> (32 - root::PAGE_BITS)) as usize;
        if len > root::PAGE_BITS && plane.is_paged() && rib.is_plain_page(page) {
            // The last longer prefix of a /10 is removed: the /10 shares a page again.
            plane.paint_page(rib, page, rib.page_inherited(page));
        } else if len <= rib::SHORT {
            rib.under(addr, len, |rib, span, inherited| match span {
                Span::Page(page) => plane.paint_page(rib, page, inherited),
                Span::Block(block) => plane.paint(rib, block, inherited),
            });
        } else {
            let block = view::block(addr);
            match len > 24 {
                true => plane.paint_net(rib, addr >> 8, rib.inherited(block)),
                false => plane.paint(rib, block, rib.inherited(block)),
            }
        }
        plane.settle();
    }
}

fn check_long(long: usize) -> Result<(), LpmError> {
    if long > MAX_LONG {
        return Err(LpmError::TooManyLong {
            max: MAX_LONG as u32,
        });
    }
    Ok(())
}

/// A reader's handle on an IPv4 table. Clone it into every worker.
#[derive(Clone)]
pub struct Lpm4Snap(Snap<Lpm4View>);

impl Lpm4Snap {
    /// The current table. Call this once per frame.
    ///
    /// # Panics
    /// If the guard is of another [`Domain`] than the table's.
    #[inline]
    pub fn read<'g>(&self, guard: Guard<'g>) -> &'g Lpm4View {
        self.0.read(guard)
    }
}
