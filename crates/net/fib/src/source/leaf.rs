//! What the leaves of the longest-prefix match mean: a path list, or a counted route of one.
//!
//! A counted route has its own leaf, and with it its own counters. Its paths and their resolution are those of its list: 16
//! bytes here. The counted routes of a list form a chain, because their objects in the data plane follow that of the list.

use std::sync::Arc;

use hashbrown::HashSet;

use super::adjacency::AdjKey;
use super::path::ListKey;
use crate::dataplane::{Dpo, DropWhy};

/// A path list; its index is its leaf.
pub(crate) struct List {
    pub key: Arc<ListKey>,
    /// Routes (active, or hidden by a better source) with this list, counted ones too.
    pub refs: u32,
    /// Counted routes among them.
    pub counted: u32,
    /// Leaf of the first counted route; 0 if there is none.
    first: u32,
    /// Tracker of each recursive path, in path order.
    pub trackers: Vec<u32>,
    /// Adjacencies that the list uses.
    pub adjs: Vec<AdjKey>,
    /// Trackers whose next hop the list covers.
    pub covered: HashSet<u32>,
    /// Path number of each bucket, if there are several paths.
    pub owners: Vec<u16>,
    /// Result of each path at the last evaluation.
    pub shares: Vec<Result<Dpo, DropWhy>>,
}

impl List {
    /// A list with one reference, still without adjacencies.
    pub fn new(key: Arc<ListKey>, trackers: Vec<u32>, owners: Vec<u16>) -> Self {
        Self {
            key,
            refs: 1,
            counted: 0,
            first: 0,
            trackers,
            adjs: Vec::new(),
            covered: HashSet::new(),
            owners,
            shares: Vec::new(),
        }
    }
}

enum Leaf {
    Free,
    List(Box<List>),
    Counted {
        /// 1; more while a load of routes holds the leaf.
        refs: u16,
        list: u32,
        /// Neighbours in the list's chain; 0 at its ends.
        next: u32,
        before: u32,
    },
}

const _: () = assert!(size_of::<Leaf>() == 16);

/// All leaves.
pub(crate) struct Leaves {
    all: Vec<Leaf>,
    /// Counted routes of all lists.
    counted: usize,
}

impl Leaves {
    /// Leaf 0 is not in use.
    pub fn new() -> Self {
        Self {
            all: vec![Leaf::Free],
            counted: 0,
        }
    }

    /// Number of counted routes.
    pub fn counted(&self) -> usize {
        self.counted
    }

    /// Makes room for more leaves at once.
    pub fn reserve(&mut self, more: usize) {
        self.all.reserve_exact(more);
    }

    /// The list of a leaf: the leaf itself unless it is that of a counted route.
    pub fn root(&self, leaf: u32) -> u32 {
        match self.all.get(leaf as usize) {
            Some(Leaf::Counted { list, .. }) => *list,
            _ => leaf,
        }
    }

    /// Whether a leaf is that of a counted route.
    pub fn is_counted(&self, leaf: u32) -> bool {
        self.root(leaf) != leaf
    }

    /// The list of a leaf.
    pub fn list(&self, leaf: u32) -> Option<&List> {
        match self.all.get(self.root(leaf) as usize) {
            Some(Leaf::List(list)) => Some(list),
            _ => None,
        }
    }

    /// The list of a leaf, to be changed.
    pub fn list_mut(&mut self, leaf: u32) -> Option<&mut List> {
        let root = self.root(leaf);
        match self.all.get_mut(root as usize) {
            Some(Leaf::List(list)) => Some(list),
            _ => None,
        }
    }

    /// All lists.
    pub fn lists(&self) -> impl Iterator<Item = &List> {
        self.all.iter().filter_map(|leaf| match leaf {
            Leaf::List(list) => Some(&**list),
            _ => None,
        })
    }

    fn set(&mut self, leaf: u32, to: Leaf) -> Leaf {
        if self.all.len() <= leaf as usize {
            self.all.resize_with(leaf as usize + 1, || Leaf::Free);
        }
        std::mem::replace(&mut self.all[leaf as usize], to)
    }

    /// A new list.
    pub fn put(&mut self, leaf: u32, list: List) {
        self.set(leaf, Leaf::List(Box::new(list)));
    }

    /// Removes a list.
    pub fn take(&mut self, leaf: u32) -> Option<Box<List>> {
        match self.set(leaf, Leaf::Free) {
            Leaf::List(list) => Some(list),
            _ => None,
        }
    }

    /// Adds references to a leaf.
    pub fn hold(&mut self, leaf: u32, n: u32) {
        match self.all.get_mut(leaf as usize) {
            Some(Leaf::List(list)) => list.refs += n,
            Some(Leaf::Counted { refs, .. }) => *refs = refs.saturating_add(n as u16),
            _ => {}
        }
    }

    /// Removes references to a leaf; whether no other is left.
    pub fn let_go(&mut self, leaf: u32, n: u32) -> bool {
        match self.all.get_mut(leaf as usize) {
            Some(Leaf::List(list)) => {
                list.refs = list.refs.saturating_sub(n);
                list.refs == 0
            }
            Some(Leaf::Counted { refs, .. }) => {
                *refs = refs.saturating_sub(n as u16);
                *refs == 0
            }
            _ => false,
        }
    }

    /// Gives a route of a list its own leaf: its reference to the list becomes one to the leaf.
    pub fn count(&mut self, list: u32, leaf: u32) {
        let Some(of) = self.list_mut(list) else {
            return;
        };
        of.counted += 1;
        let next = std::mem::replace(&mut of.first, leaf);
        if let Some(Leaf::Counted { before, .. }) = self.all.get_mut(next as usize) {
            *before = leaf;
        }
        let (refs, before) = (1, 0);
        self.set(
            leaf,
            Leaf::Counted {
                refs,
                list,
                next,
                before,
            },
        );
        self.counted += 1;
    }

    /// Removes the leaf of a counted route, and returns the list whose reference it had; none if the leaf is a list's.
    pub fn uncount(&mut self, leaf: u32) -> Option<u32> {
        let Some(&Leaf::Counted {
            list, next, before, ..
        }) = self.all.get(leaf as usize)
        else {
            return None;
        };
        self.set(leaf, Leaf::Free);
        self.counted -= 1;
        if let Some(Leaf::Counted { before: back, .. }) = self.all.get_mut(next as usize) {
            *back = before;
        }
        match self.all.get_mut(before as usize) {
            Some(Leaf::Counted { next: on, .. }) => *on = next,
            _ => {
                if let Some(of) = self.list_mut(list) {
                    of.first = next;
                }
            }
        }
        if let Some(of) = self.list_mut(list) {
            of.counted -= 1;
        }
        Some(list)
    }

    /// Leaves of the counted routes of a list.
    pub fn counted_of(&self, list: u32) -> impl Iterator<Item = u32> {
        let first = self.list(list).map(|list| list.first);
        let after = |leaf: &u32| match self.all.get(*leaf as usize) {
            Some(Leaf::Counted { next, .. }) => Some(*next),
            _ => None,
        };
        std::iter::successors(first, after).take_while(|leaf| *leaf != 0)
    }
}
