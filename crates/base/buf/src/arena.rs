//! The memory under the buffers: huge pages if there are any, else transparent huge pages, else plain pages. On a machine with
//! several memory nodes, each node has a part of the arena: the kernel allocates a page on the node of the thread that touches
//! the page first.

use crate::STRIDE;
use memmap2::{MmapMut, MmapOptions};
use std::fmt;

/// The type of pages under an arena.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Backing {
    /// Reserved huge pages (2 MB).
    Huge,
    /// Transparent huge pages, requested with `madvise`.
    Transparent,
    /// Plain pages.
    Plain,
}

impl fmt::Display for Backing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Backing::Huge => "huge pages",
            Backing::Transparent => "transparent huge pages",
            Backing::Plain => "plain pages",
        })
    }
}

/// Why a pool could not be made.
#[derive(Debug, thiserror::Error)]
pub enum BufError {
    /// The system refused the memory.
    #[error(
        "no memory for {buffers} packet buffers ({megabytes} MB): {source}; lower `buffers` in [engine]"
    )]
    NoMemory {
        /// Buffers requested.
        buffers: usize,
        /// Size of the buffers in megabytes.
        megabytes: usize,
        /// The system's error.
        source: std::io::Error,
    },
    /// The number of buffers is out of range.
    #[error("{0} packet buffers are out of range: choose 64 to 16777216")]
    Count(usize),
}

/// Bytes of the smallest page.
const PAGE: usize = 4096;

/// Runs a closure on a thread of a memory node.
pub type OnNode<'a> = &'a (dyn Fn(u32, &mut (dyn FnMut() + Send)) + Sync);

/// One contiguous mapping of slots. Never moves.
pub(crate) struct Arena {
    base: *mut u8,
    buffers: usize,
    backing: Backing,
    _map: MmapMut,
}

// SAFETY: the arena is plain memory; the contract of the pool's indices states who may touch which slot.
unsafe impl Send for Arena {}
// SAFETY: as above.
unsafe impl Sync for Arena {}

impl Arena {
    /// Slots for `buffers` buffers. Reserved huge pages of a single node are populated at once, other pages are not touched.
    pub(crate) fn new(buffers: usize, nodes: usize) -> Result<Self, BufError> {
        let bytes = (buffers * STRIDE).next_multiple_of(2 << 20);
        let failed = |source| BufError::NoMemory {
            buffers,
            megabytes: bytes >> 20,
            source,
        };
        let mut huge = MmapOptions::new();
        huge.len(bytes).huge(Some(21));
        if nodes == 1 {
            huge.populate();
        }
        let (mut map, backing) = match huge.map_anon() {
            Ok(map) => (map, Backing::Huge),
            Err(_) => {
                let map = MmapOptions::new()
                    .len(bytes + (2 << 20))
                    .map_anon()
                    .map_err(failed)?;
                let advised = map.advise(memmap2::Advice::HugePage).is_ok();
                (
                    map,
                    if advised {
                        Backing::Transparent
                    } else {
                        Backing::Plain
                    },
                )
            }
        };
        // Slots start on a 2 MB boundary where the mapping is large enough, so that huge pages can back all of them.
        let start = map.as_mut_ptr();
        let room = map.len() - bytes;
        let base = start.wrapping_add(start.align_offset(2 << 20).min(room));
        Ok(Arena {
            base,
            buffers,
            backing,
            _map: map,
        })
    }

    /// Touches every page of some slots. The caller runs on the memory node that the slots are for.
    pub(crate) fn touch(&self, slots: std::ops::Range<usize>) {
        let slots = slots.start.min(self.buffers)..slots.end.min(self.buffers);
        for at in (slots.start * STRIDE..slots.end * STRIDE).step_by(PAGE) {
            // SAFETY: inside the mapping by the line above, and no buffer is allocated yet: the pool is under construction.
            unsafe { self.base.add(at).write_volatile(0) };
        }
    }

    pub(crate) fn buffers(&self) -> usize {
        self.buffers
    }

    pub(crate) fn backing(&self) -> Backing {
        self.backing
    }

    #[inline(always)]
    pub(crate) fn base(&self) -> *mut u8 {
        self.base
    }
}
