//! Prefixes of counted routes. A counted route has its own leaf, and with it its own counters. All other routes share those of
//! their source and paths.

use hashbrown::HashMap;

use super::routes::Routes;
use crate::family::{Family, Prefix};

/// Up to this many prefixes are compared one by one.
const FEW: usize = 8;

/// Prefixes of a table whose routes are counted; true: the routes of all prefixes inside it too.
pub(crate) struct Counted<F: Family>(HashMap<Prefix<F>, bool>);

impl<F: Family> Default for Counted<F> {
    fn default() -> Self {
        Counted(HashMap::new())
    }
}

impl<F: Family> Counted<F> {
    /// Whether the route of a prefix is counted.
    pub fn has(&self, prefix: Prefix<F>) -> bool {
        if self.0.len() <= FEW {
            let is_in =
                |mark: &Prefix<F>| mark.len() < prefix.len() && mark.contains(prefix.addr());
            let mut marks = self.0.iter();
            return marks.any(|(mark, longer)| *mark == prefix || *longer && is_in(mark));
        }
        let covers = |len| self.0.get(&Prefix::around(prefix.addr(), len)) == Some(&true);
        self.0.contains_key(&prefix) || (0..prefix.len()).any(covers)
    }

    /// Marks a prefix, or removes its mark; returns the mark that it had.
    pub fn mark(&mut self, prefix: Prefix<F>, count: Option<bool>) -> Option<bool> {
        match count {
            Some(longer) => self.0.insert(prefix, longer),
            None => self.0.remove(&prefix),
        }
    }

    /// A prefix that is marked.
    pub fn any(&self) -> Option<Prefix<F>> {
        self.0.keys().min().copied()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the routes of all prefixes inside one of the prefixes are counted too.
    pub fn has_longer(&self) -> bool {
        self.0.values().any(|longer| *longer)
    }

    /// The marked prefixes, in no order.
    pub fn prefixes(&self) -> impl Iterator<Item = Prefix<F>> {
        self.0.keys().copied()
    }
}

/// The prefix if it has a route; with `longer` all prefixes inside it that have one.
pub(crate) fn inside<F: Family>(
    routes: &Routes<F>,
    prefix: Prefix<F>,
    longer: bool,
) -> Vec<Prefix<F>> {
    if !longer {
        return routes.get(prefix).map(|_| prefix).into_iter().collect();
    }
    let is_inside = |it: &Prefix<F>| it.len() >= prefix.len() && prefix.contains(it.addr());
    let all = routes.iter().map(|(it, _)| it);
    all.filter(is_inside).collect()
}
