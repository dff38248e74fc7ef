//! What the writer knows: every prefix of an IPv4 table, laid out for repainting.
//!
//! - up to /19: a complete binary tree in heap order, node `2^len + prefix`;
//! - /20 to /24: per root entry (8192 addresses) such a tree of five levels, only where there are any;
//! - /25 to /32: per /24 such a tree of eight levels, only where there are any.
//!
//! *Painting* pushes answers from the top of a tree to its last level.

use std::collections::HashMap;

use super::view::{CHUNK, ROOT};

/// Prefix tree nodes hold `leaf + 1`; 0 is "no prefix here".
const NONE: u32 = 0;
/// The longest prefix in the tree of short ones.
pub(super) const SHORT: u8 = 19;

/// The prefixes of /20 to /24 in one root block. Nodes 2 to 63.
struct Block {
    own: [u32; 64],
    used: u32,
    /// Slots (/24) that have longer prefixes.
    long: u32,
}

/// The prefixes longer than /24 in one /24. Nodes 2 to 511.
struct Long {
    own: [u32; 2 * CHUNK],
    used: u32,
    chunk: u32,
}

/// Where a prefix lives.
enum Home {
    Short(usize),
    Block { block: usize, node: usize },
    Long { net: u32, node: usize },
}

pub(super) struct Rib {
    short: Vec<u32>,
    /// Per root block: its index in `blocks` + 1, or 0.
    block_of: Vec<u32>,
    blocks: Vec<Block>,
    free: Vec<u32>,
    longs: HashMap<u32, Box<Long>>,
    len: usize,
}

/// The answers of one block.
pub(super) type Slots = [u32; 32];
/// The answers of one /24 with longer prefixes.
pub(super) type Cells = [u32; CHUNK];

fn home(addr: u32, len: u8) -> Home {
    let prefix = if len == 0 { 0 } else { addr >> (32 - len) };
    let node =
        |above: u8| (1usize << (len - above)) + (prefix as usize & ((1 << (len - above)) - 1));
    match len {
        0..=SHORT => Home::Short(node(0)),
        20..=24 => Home::Block {
            block: (addr >> 13) as usize,
            node: node(SHORT),
        },
        _ => Home::Long {
            net: addr >> 8,
            node: node(24),
        },
    }
}

/// Pushes `inherited` and the tree's own answers down; the last half of the result is the last level.
fn push<const N: usize>(own: &[u32; N], inherited: u32) -> [u32; N] {
    let mut value = [inherited; N];
    for n in 2..N {
        value[n] = if own[n] == NONE {
            value[n / 2]
        } else {
            own[n] - 1
        };
    }
    value
}

impl Rib {
    pub(super) fn new() -> Self {
        Self {
            short: vec![NONE; 2 << SHORT],
            block_of: vec![0; ROOT],
            blocks: Vec::new(),
            free: Vec::new(),
            longs: HashMap::new(),
            len: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    fn block(&self, block: usize) -> Option<&Block> {
        let i = self.block_of[block].checked_sub(1)?;
        self.blocks.get(i as usize)
    }

    fn block_mut(&mut self, block: usize) -> &mut Block {
        if self.block_of[block] == 0 {
            let fresh = Block {
                own: [NONE; 64],
                used: 0,
                long: 0,
            };
            let i = match self.free.pop() {
                Some(i) => {
                    self.blocks[i as usize] = fresh;
                    i
                }
                None => {
                    self.blocks.push(fresh);
                    self.blocks.len() as u32 - 1
                }
            };
            self.block_of[block] = i + 1;
        }
        &mut self.blocks[self.block_of[block] as usize - 1]
    }

    fn drop_block_if_empty(&mut self, block: usize) {
        if self
            .block(block)
            .is_some_and(|b| b.used == 0 && b.long == 0)
        {
            self.free.push(self.block_of[block] - 1);
            self.block_of[block] = 0;
        }
    }

    pub(super) fn get(&self, addr: u32, len: u8) -> Option<u32> {
        let own = match home(addr, len) {
            Home::Short(node) => self.short[node],
            Home::Block { block, node } => self.block(block)?.own[node],
            Home::Long { net, node } => self.longs.get(&net)?.own[node],
        };
        own.checked_sub(1)
    }

    /// Sets a prefix that lives in the tree of short ones or in an existing or new block.
    pub(super) fn set(&mut self, addr: u32, len: u8, leaf: u32) -> Option<u32> {
        let old = match home(addr, len) {
            Home::Short(node) => std::mem::replace(&mut self.short[node], leaf + 1),
            Home::Block { block, node } => {
                let b = self.block_mut(block);
                let old = std::mem::replace(&mut b.own[node], leaf + 1);
                b.used += u32::from(old == NONE);
                old
            }
            Home::Long { net, node } => {
                let long = self.longs.entry(net).or_insert_with(Long::boxed);
                let old = std::mem::replace(&mut long.own[node], leaf + 1);
                long.used += u32::from(old == NONE);
                self.block_mut((net >> 5) as usize).long |= 1 << (net & 31);
                old
            }
        };
        self.len += usize::from(old == NONE);
        old.checked_sub(1)
    }

    /// Takes a prefix away. A /24 that lost its last longer prefix gives its chunk back.
    pub(super) fn unset(&mut self, addr: u32, len: u8) -> Option<(u32, Option<u32>)> {
        let mut chunk = None;
        let old = match home(addr, len) {
            Home::Short(node) => std::mem::replace(&mut self.short[node], NONE),
            Home::Block { block, node } => {
                self.block(block)?;
                let b = self.block_mut(block);
                let old = std::mem::replace(&mut b.own[node], NONE);
                b.used -= u32::from(old != NONE);
                self.drop_block_if_empty(block);
                old
            }
            Home::Long { net, node } => {
                let long = self.longs.get_mut(&net)?;
                let old = std::mem::replace(&mut long.own[node], NONE);
                long.used -= u32::from(old != NONE);
                if long.used == 0 {
                    chunk = Some(long.chunk);
                    self.longs.remove(&net);
                    let block = (net >> 5) as usize;
                    self.block_mut(block).long &= !(1 << (net & 31));
                    self.drop_block_if_empty(block);
                }
                old
            }
        };
        let leaf = old.checked_sub(1)?;
        self.len -= 1;
        Some((leaf, chunk))
    }

    /// The answer of the longest short prefix over a block.
    pub(super) fn inherited(&self, block: usize) -> u32 {
        self.inherited_at(ROOT + block)
    }

    /// [`Rib::inherited`] of all blocks.
    pub(super) fn all_inherited(&self) -> Vec<u32> {
        let mut value = vec![0; 2 * ROOT];
        for node in 1..2 * ROOT {
            value[node] = self.short[node].checked_sub(1).unwrap_or(value[node / 2]);
        }
        value.split_off(ROOT)
    }

    /// Calls `f(block, inherited)` for every block whose answer comes, so far, from the short prefix `addr/len`.
    pub(super) fn blocks_under(&self, addr: u32, len: u8, mut f: impl FnMut(&Self, usize, u32)) {
        let Home::Short(top) = home(addr, len) else {
            return;
        };
        let inherited = self.inherited_at(top);
        let mut pending = vec![top];
        // Left to right, so that blocks come in address order.
        while let Some(node) = pending.pop() {
            if node != top && self.short[node] != NONE {
                continue;
            }
            if node >= ROOT {
                f(self, node - ROOT, inherited);
            } else {
                pending.extend([2 * node + 1, 2 * node]);
            }
        }
    }

    fn inherited_at(&self, mut node: usize) -> u32 {
        while node > 0 {
            if self.short[node] != NONE {
                return self.short[node] - 1;
            }
            node /= 2;
        }
        0
    }

    /// Whether a block has nothing but its inherited answer.
    pub(super) fn is_plain(&self, block: usize) -> bool {
        self.block_of[block] == 0
    }

    /// The answers of a block's 32 slots, not counting prefixes longer than /24.
    pub(super) fn slots(&self, block: usize, inherited: u32) -> Slots {
        let mut slots = [inherited; 32];
        if let Some(b) = self.block(block) {
            slots.copy_from_slice(&push(&b.own, inherited)[32..]);
        }
        slots
    }

    /// The slots of a block that have prefixes longer than /24, as a bit set.
    pub(super) fn long_slots(&self, block: usize) -> u32 {
        self.block(block).map_or(0, |b| b.long)
    }

    /// Most pooled answers that painting every block can take.
    pub(super) fn most_leaves(&self) -> usize {
        self.blocks
            .iter()
            .map(|b| (2 * b.used + 2 * b.long.count_ones() + 1).min(32) as usize)
            .sum()
    }

    /// The /24 networks (address >> 8) with longer prefixes.
    pub(super) fn long_nets(&self) -> impl Iterator<Item = u32> {
        self.longs.keys().copied()
    }

    pub(super) fn long_count(&self) -> usize {
        self.longs.len()
    }

    pub(super) fn has_long(&self, net: u32) -> bool {
        self.longs.contains_key(&net)
    }

    pub(super) fn chunk(&self, net: u32) -> u32 {
        self.longs.get(&net).map_or(0, |l| l.chunk)
    }

    pub(super) fn set_chunk(&mut self, net: u32, chunk: u32) {
        if let Some(long) = self.longs.get_mut(&net) {
            long.chunk = chunk;
        }
    }

    /// The answers of the 256 addresses of a /24.
    pub(super) fn cells(&self, net: u32, inherited: u32) -> Cells {
        let mut cells = [inherited; CHUNK];
        if let Some(long) = self.longs.get(&net) {
            cells.copy_from_slice(&push(&long.own, inherited)[CHUNK..]);
        }
        cells
    }
}

impl Long {
    fn boxed() -> Box<Self> {
        Box::new(Self {
            own: [NONE; 2 * CHUNK],
            used: 0,
            chunk: 0,
        })
    }
}
