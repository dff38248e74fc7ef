//! Doubly linked lists over a fixed pool of links: bounded, without allocation after creation. A link is free or owned by a
//! user, who puts it into at most one list.

use std::num::NonZeroU32;
use std::ops::{Index, IndexMut};

/// Index of a link, never zero, so that an optional index takes four bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Place(NonZeroU32);

impl Place {
    fn new(index: usize) -> Option<Self> {
        NonZeroU32::new(index as u32 + 1).map(Place)
    }

    fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// First and last link of a list.
#[derive(Clone, Copy, Default)]
pub(super) struct Chain {
    pub first: Option<Place>,
    pub last: Option<Place>,
    pub len: u32,
}

struct Link<P> {
    it: P,
    before: Option<Place>,
    /// The next link of the list, or of the free list.
    after: Option<Place>,
}

/// A pool of links with a `P` each.
pub(super) struct Chains<P> {
    links: Box<[Link<P>]>,
    free: Option<Place>,
    used: u32,
}

impl<P> Chains<P> {
    /// A pool of `room` free links, with the values of `empty`.
    pub fn new(room: usize, empty: impl Fn() -> P) -> Self {
        let link = |index: usize| Link {
            it: empty(),
            before: None,
            after: Place::new(index + 1).filter(|_| index + 1 < room),
        };
        Chains {
            links: (0..room).map(link).collect(),
            free: Place::new(0).filter(|_| room > 0),
            used: 0,
        }
    }

    /// Number of links in use.
    pub fn used(&self) -> u32 {
        self.used
    }

    /// Whether no link is free.
    pub fn is_full(&self) -> bool {
        self.free.is_none()
    }

    /// Allocates a link that is in no list. Its value is the one that it last had.
    pub fn open(&mut self) -> Option<Place> {
        let at = self.free?;
        self.free = self.link(at).after;
        self.used += 1;
        Some(at)
    }

    /// Frees a link that is in no list.
    pub fn close(&mut self, at: Place) {
        self.link_mut(at).after = self.free.replace(at);
        self.used -= 1;
    }

    /// The next link in the list.
    pub fn after(&self, at: Place) -> Option<Place> {
        self.link(at).after
    }

    /// The last link of a list for which `past` is false, searched from the end.
    pub fn last_not(&self, chain: &Chain, past: impl Fn(&P) -> bool) -> Option<Place> {
        let mut at = chain.last;
        while let Some(place) = at.filter(|place| past(&self[*place])) {
            at = self.link(place).before;
        }
        at
    }

    /// All values of a list, from the first to the last.
    pub fn iter(&self, chain: &Chain) -> impl Iterator<Item = &P> {
        let mut at = chain.first;
        std::iter::from_fn(move || {
            let link = self.link(at?);
            at = link.after;
            Some(&link.it)
        })
    }

    /// Inserts a link that is in no list behind link `before`, or at the front if `before` is none.
    pub fn insert(&mut self, chain: &mut Chain, before: Option<Place>, at: Place) {
        let follows = match before {
            Some(before) => &mut self.link_mut(before).after,
            None => &mut chain.first,
        };
        let after = follows.replace(at);
        match after {
            Some(after) => self.link_mut(after).before = Some(at),
            None => chain.last = Some(at),
        }
        let link = self.link_mut(at);
        (link.before, link.after) = (before, after);
        chain.len += 1;
    }

    /// Appends a link that is in no list.
    pub fn push(&mut self, chain: &mut Chain, at: Place) {
        self.insert(chain, chain.last, at);
    }

    /// Removes a link from its list without freeing it.
    pub fn remove(&mut self, chain: &mut Chain, at: Place) {
        let (before, after) = (self.link(at).before, self.link(at).after);
        match before {
            Some(before) => self.link_mut(before).after = after,
            None => chain.first = after,
        }
        match after {
            Some(after) => self.link_mut(after).before = before,
            None => chain.last = before,
        }
        chain.len -= 1;
    }

    /// Removes the first link of a list without freeing it.
    pub fn pop(&mut self, chain: &mut Chain) -> Option<Place> {
        let at = chain.first?;
        self.remove(chain, at);
        Some(at)
    }

    fn link(&self, at: Place) -> &Link<P> {
        &self.links[at.index()]
    }

    fn link_mut(&mut self, at: Place) -> &mut Link<P> {
        &mut self.links[at.index()]
    }
}

impl<P> Index<Place> for Chains<P> {
    type Output = P;

    fn index(&self, at: Place) -> &P {
        &self.link(at).it
    }
}

impl<P> IndexMut<Place> for Chains<P> {
    fn index_mut(&mut self, at: Place) -> &mut P {
        &mut self.link_mut(at).it
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn backwards(chains: &Chains<usize>, chain: &Chain) -> Vec<usize> {
        let mut at = chain.last;
        std::iter::from_fn(|| {
            let link = chains.link(at?);
            at = link.before;
            Some(link.it)
        })
        .collect()
    }

    proptest! {
        /// Model test of two lists against two vectors: links are inserted and removed anywhere, and move between the lists.
        #[test]
        fn lists_hold_what_vectors_hold(all in prop::collection::vec((0u8..4, any::<bool>(), 0usize..8), 1..200)) {
            const ROOM: usize = 6;
            let mut chains = Chains::new(ROOM, || 0);
            let (mut lists, mut models) = ([Chain::default(); 2], [Vec::<(Place, usize)>::new(), Vec::new()]);
            for (number, (what, which, index)) in all.into_iter().enumerate() {
                let (list, other) = (usize::from(which), usize::from(!which));
                let there = models[list].len();
                let here = (there > 0).then(|| index % there.max(1));
                match (what, here) {
                    (0 | 1, _) => {
                        let held = models[0].len() + models[1].len();
                        prop_assert_eq!(chains.is_full(), held == ROOM);
                        let Some(at) = chains.open() else { continue };
                        prop_assert!(held < ROOM);
                        chains[at] = number;
                        let behind = index % (there + 1);
                        let before = behind.checked_sub(1).map(|n| models[list][n].0);
                        chains.insert(&mut lists[list], before, at);
                        models[list].insert(behind, (at, number));
                    }
                    (2, Some(here)) => {
                        let (at, _) = models[list].remove(here);
                        chains.remove(&mut lists[list], at);
                        chains.close(at);
                    }
                    (3, _) => {
                        let popped = chains.pop(&mut lists[list]);
                        let want = (there > 0).then(|| models[list].remove(0));
                        prop_assert_eq!(popped, want.map(|(at, _)| at));
                        if let (Some(at), Some(want)) = (popped, want) {
                            chains.push(&mut lists[other], at);
                            models[other].push(want);
                        }
                    }
                    _ => {}
                }
                for (list, model) in lists.iter().zip(&models) {
                    let want: Vec<_> = model.iter().map(|(_, number)| *number).collect();
                    prop_assert_eq!(chains.iter(list).copied().collect::<Vec<_>>(), want.clone());
                    prop_assert_eq!(list.len as usize, want.len());
                    let mut back = backwards(&chains, list);
                    back.reverse();
                    prop_assert_eq!(back, want);
                }
                prop_assert_eq!(chains.used() as usize, models[0].len() + models[1].len());
            }
        }
    }

    #[test]
    fn the_last_that_is_not_past_is_found_from_the_end() {
        let mut chains = Chains::new(3, || 0);
        let mut list = Chain::default();
        let places = [10, 20, 30].map(|number| {
            let at = chains.open().unwrap();
            chains[at] = number;
            chains.push(&mut list, at);
            at
        });
        let found = |limit| chains.last_not(&list, |number| *number > limit);
        assert_eq!(found(9), None);
        assert_eq!(found(20), Some(places[1]));
        assert_eq!(found(99), Some(places[2]));
        assert_eq!(chains.after(places[1]), Some(places[2]));
        assert_eq!(chains.after(places[2]), None);
        assert_eq!(size_of::<Option<Place>>(), 4);
    }

    #[test]
    fn without_room_nothing_opens() {
        let mut chains = Chains::new(0, || ());
        assert!(chains.is_full() && chains.open().is_none());
    }
}
