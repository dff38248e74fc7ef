//! The prefixes of an IPv4 table, on the writer's side, in a layout for painting.
//!
//! - up to /19: a complete binary tree in heap order, node `2^len + prefix`; parts without prefixes have no memory;
//! - /20 to /24: per root entry (8192 addresses) a tree of five levels, if the entry has such prefixes;
//! - /25 to /32: per /24 a tree of eight levels, if the /24 has such prefixes.
//!
//! The trees below root entries and /24 are lists of the nodes that have a prefix, because most trees have one or two.
//!
//! *Painting* propagates answers from the top of a tree to its last level.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};

use super::root::{PAGE, PAGE_BITS, PAGES, ROOT};
use super::view::{CHUNK, LINE_PREFIXES};

/// Nodes of the tree of short prefixes contain `leaf + 1`; 0 means that the node has no prefix.
const NONE: u32 = 0;
/// The length of the longest prefix in the tree of short ones.
pub(super) const SHORT: u8 = 19;

/// The nodes of a small tree that have a prefix, in order, each with its leaf.
#[derive(Default)]
struct Nodes(Vec<(u16, u32)>);

impl Nodes {
    fn find(&self, node: usize) -> Result<usize, usize> {
        self.0
            .binary_search_by_key(&(node as u16), |(node, _)| *node)
    }

    fn get(&self, node: usize) -> Option<u32> {
        self.find(node).ok().map(|at| self.0[at].1)
    }

    fn set(&mut self, node: usize, leaf: u32) -> Option<u32> {
        match self.find(node) {
            Ok(at) => Some(std::mem::replace(&mut self.0[at].1, leaf)),
            Err(at) => {
                if self.0.len() == self.0.capacity() {
                    // A `Vec` starts with capacity for four, which most of a million lists would never use.
                    self.0.reserve_exact(self.0.len().div_ceil(2).max(1));
                }
                self.0.insert(at, (node as u16, leaf));
                None
            }
        }
    }

    fn unset(&mut self, node: usize) -> Option<u32> {
        self.find(node).ok().map(|at| self.0.remove(at).1)
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    /// The answers of the last level of `N` nodes; `inherited` is the answer of the tree's parent.
    fn paint<const N: usize>(&self, inherited: u32) -> [u32; N] {
        let mut last = [inherited; N];
        // Parents have smaller numbers than their children, so that longer prefixes overwrite shorter ones.
        for &(node, leaf) in &self.0 {
            let node = usize::from(node);
            let level = node.ilog2();
            let width = N >> level;
            let first = (node - (1 << level)) * width;
            last[first..first + width].fill(leaf);
        }
        last
    }
}

/// The prefixes of /20 to /24 in one root block. Nodes 2 to 63.
#[derive(Default)]
struct Block {
    own: Nodes,
    /// Slots (/24) that have longer prefixes.
    long: u32,
}

/// The prefixes longer than /24 in one /24. Nodes 2 to 511.
#[derive(Default)]
struct Long {
    own: Nodes,
    /// The chunk or line for readers, in the writer's notation; 0 before the first painting.
    chunk: Cell<u32>,
}

/// The tree that contains a prefix.
enum Home {
    Short(usize),
    Block { block: usize, node: usize },
    Long { net: u32, node: usize },
}

/// A long array of numbers, most of them 0: parts that contain only 0 from the start have no memory.
struct Sparse(Vec<Option<Box<[u32; PART]>>>);

/// The numbers of a part.
const PART: usize = 1 << 10;

impl Sparse {
    fn new(len: usize) -> Self {
        Self(vec![None; len / PART])
    }

    fn get(&self, i: usize) -> u32 {
        self.0[i / PART].as_ref().map_or(0, |part| part[i % PART])
    }

    fn set(&mut self, i: usize, to: u32) -> u32 {
        let part = &mut self.0[i / PART];
        if part.is_none() && to == 0 {
            return 0;
        }
        let part = part.get_or_insert_with(|| Box::new([0; PART]));
        std::mem::replace(&mut part[i % PART], to)
    }
}

/// The range that a short prefix covers.
pub(super) enum Span {
    /// A root page that contains only its inherited answer.
    Page(usize),
    Block(usize),
}

pub(super) struct Rib {
    short: Sparse,
    /// Per root block: its index in `blocks` + 1, or 0.
    block_of: Sparse,
    /// Per root page: the number of prefixes of /11 to /19 and of blocks with longer ones.
    contents: Box<[u16; PAGES]>,
    blocks: Vec<Block>,
    free: Vec<u32>,
    longs: HashMap<u32, Long>,
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

/// The root page of a node of the tree of short prefixes, unless the node covers whole pages.
fn page_above(node: usize) -> Option<usize> {
    let below = node.ilog2().checked_sub(u32::from(PAGE_BITS))?;
    (below > 0).then(|| (node >> below) - PAGES)
}

impl Rib {
    pub(super) fn new() -> Self {
        Self {
            short: Sparse::new(2 << SHORT),
            block_of: Sparse::new(ROOT),
            contents: Box::new([0; PAGES]),
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
        let i = self.block_of.get(block).checked_sub(1)?;
        self.blocks.get(i as usize)
    }

    fn block_mut(&mut self, block: usize) -> &mut Block {
        if self.block_of.get(block) == 0 {
            let i = self.free.pop().unwrap_or_else(|| {
                self.blocks.push(Block::default());
                self.blocks.len() as u32 - 1
            });
            self.block_of.set(block, i + 1);
            self.contents[block / PAGE] += 1;
        }
        &mut self.blocks[self.block_of.get(block) as usize - 1]
    }

    fn drop_block_if_empty(&mut self, block: usize) {
        if self
            .block(block)
            .is_some_and(|b| b.own.len() == 0 && b.long == 0)
        {
            let i = self.block_of.set(block, 0) - 1;
            self.blocks[i as usize] = Block::default();
            self.free.push(i);
            self.contents[block / PAGE] -= 1;
        }
    }

    pub(super) fn get(&self, addr: u32, len: u8) -> Option<u32> {
        match home(addr, len) {
            Home::Short(node) => self.short.get(node).checked_sub(1),
            Home::Block { block, node } => self.block(block)?.own.get(node),
            Home::Long { net, node } => self.longs.get(&net)?.own.get(node),
        }
    }

    /// Sets a prefix in the tree of short ones or in an existing or new block.
    pub(super) fn set(&mut self, addr: u32, len: u8, leaf: u32) -> Option<u32> {
        let old = match home(addr, len) {
            Home::Short(node) => self.set_short(node, leaf + 1),
            Home::Block { block, node } => self.block_mut(block).own.set(node, leaf),
            Home::Long { net, node } => {
                let old = self.longs.entry(net).or_default().own.set(node, leaf);
                self.block_mut((net >> 5) as usize).long |= 1 << (net & 31);
                old
            }
        };
        self.len += usize::from(old.is_none());
        old
    }

    /// Changes a node of the tree of short prefixes and returns the leaf it had.
    fn set_short(&mut self, node: usize, value: u32) -> Option<u32> {
        let old = self.short.set(node, value).checked_sub(1);
        if let Some(page) = page_above(node) {
            self.contents[page] += u16::from(value != NONE);
            self.contents[page] -= u16::from(old.is_some());
        }
        old
    }

    /// Removes a prefix. A /24 without longer prefixes returns its chunk or line.
    pub(super) fn unset(&mut self, addr: u32, len: u8) -> Option<(u32, Option<u32>)> {
        let mut chunk = None;
        let leaf = match home(addr, len) {
            Home::Short(node) => self.set_short(node, NONE)?,
            Home::Block { block, node } => {
                self.block(block)?;
                let leaf = self.block_mut(block).own.unset(node)?;
                self.drop_block_if_empty(block);
                leaf
            }
            Home::Long { net, node } => {
                let long = self.longs.get_mut(&net)?;
                let leaf = long.own.unset(node)?;
                if long.own.len() == 0 {
                    chunk = Some(long.chunk.get());
                    self.longs.remove(&net);
                    let block = (net >> 5) as usize;
                    self.block_mut(block).long &= !(1 << (net & 31));
                    self.drop_block_if_empty(block);
                }
                leaf
            }
        };
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
            let own = self.short.get(node).checked_sub(1);
            value[node] = own.unwrap_or(value[node / 2]);
        }
        value.split_off(ROOT)
    }

    /// Whether a root page contains only its inherited answer.
    pub(super) fn is_plain_page(&self, page: usize) -> bool {
        self.contents[page] == 0
    }

    /// The answer of the longest prefix of at most /10 over a root page.
    pub(super) fn page_inherited(&self, page: usize) -> u32 {
        self.inherited_at(PAGES + page)
    }

    /// Calls `f(span, inherited)` for all blocks whose inherited answer comes from the short prefix `addr/len`, and, where
    /// possible, for whole root pages instead.
    pub(super) fn under(&self, addr: u32, len: u8, mut f: impl FnMut(&Self, Span, u32)) {
        let Home::Short(top) = home(addr, len) else {
            return;
        };
        let inherited = self.inherited_at(top);
        let mut pending = vec![top];
        // Left to right, so that blocks are visited in address order.
        while let Some(node) = pending.pop() {
            if node != top && self.short.get(node) != NONE {
                continue;
            }
            let is_page = node.ilog2() == u32::from(PAGE_BITS);
            if node >= ROOT {
                f(self, Span::Block(node - ROOT), inherited);
            } else if is_page && self.is_plain_page(node - PAGES) {
                f(self, Span::Page(node - PAGES), inherited);
            } else {
                pending.extend([2 * node + 1, 2 * node]);
            }
        }
    }

    /// The number of different pages that a root needs.
    pub(super) fn count_pages(&self) -> usize {
        let (plain, own): (Vec<usize>, _) = (0..PAGES).partition(|p| self.is_plain_page(*p));
        let answers: HashSet<u32> = plain.iter().map(|p| self.page_inherited(*p)).collect();
        answers.len() + own.len()
    }

    fn inherited_at(&self, mut node: usize) -> u32 {
        while node > 0 {
            if let Some(leaf) = self.short.get(node).checked_sub(1) {
                return leaf;
            }
            node /= 2;
        }
        0
    }

    /// Whether a block contains only its inherited answer.
    pub(super) fn is_plain(&self, block: usize) -> bool {
        self.block_of.get(block) == 0
    }

    /// The answers of a block's 32 slots, without prefixes longer than /24.
    pub(super) fn slots(&self, block: usize, inherited: u32) -> Slots {
        self.block(block)
            .map_or([inherited; 32], |b| b.own.paint(inherited))
    }

    /// The slots of a block that have prefixes longer than /24, as a bit set.
    pub(super) fn long_slots(&self, block: usize) -> u32 {
        self.block(block).map_or(0, |b| b.long)
    }

    /// The maximum number of pooled answers of all blocks.
    pub(super) fn most_leaves(&self) -> usize {
        self.blocks
            .iter()
            .map(|b| (2 * b.own.len() + 2 * b.long.count_ones() as usize + 1).min(32))
            .sum()
    }

    /// The number of networks with prefixes longer than /24 that need a chunk, and the number of those for which a line
    /// suffices.
    pub(super) fn count_chunks_and_lines(&self) -> (usize, usize) {
        let fits = |long: &&Long| long.own.len() <= LINE_PREFIXES;
        let lines = self.longs.values().filter(fits).count();
        (self.longs.len() - lines, lines)
    }

    pub(super) fn long_count(&self) -> usize {
        self.longs.len()
    }

    /// The number of prefixes longer than /24 in a /24.
    pub(super) fn long_len(&self, net: u32) -> usize {
        self.longs.get(&net).map_or(0, |long| long.own.len())
    }

    pub(super) fn has_long(&self, net: u32) -> bool {
        self.longs.contains_key(&net)
    }

    /// The chunk or line of a /24, in the writer's notation; 0 if the /24 has none.
    pub(super) fn chunk(&self, net: u32) -> u32 {
        self.longs.get(&net).map_or(0, |l| l.chunk.get())
    }

    pub(super) fn set_chunk(&self, net: u32, chunk: u32) {
        if let Some(long) = self.longs.get(&net) {
            long.chunk.set(chunk);
        }
    }

    /// Whether all answers of a /24 fit into a line.
    pub(super) fn fits_line(&self, net: u32) -> bool {
        self.longs
            .get(&net)
            .is_none_or(|l| l.own.len() <= LINE_PREFIXES)
    }

    /// The answers of the 256 addresses of a /24.
    pub(super) fn cells(&self, net: u32, inherited: u32) -> Cells {
        self.longs
            .get(&net)
            .map_or([inherited; CHUNK], |long| long.own.paint(inherited))
    }
}
