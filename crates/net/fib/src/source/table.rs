//! One table (VRF) of one family: prefixes, their sources, and the longest-prefix match that workers read.
//!
//! The longest-prefix match always contains the list of the best source of every prefix. Only prefixes with two or more sources
//! have a row in `extra`; the source of all others is the source of their list.

use std::collections::BTreeSet;
use std::sync::Arc;

use hashbrown::HashMap;
use volley_tables::{Domain, LpmError};

use super::counted::Counted;
use super::path::Path;
use super::routes::Routes;
use crate::family::{Family, Prefix};
use crate::source::Source;

/// A load is inserted route by route if the table has more than `WHOLE` times as many routes. A rebuild of the whole match
/// takes time in proportion to its size, and a routing daemon sends batches of some hundreds of routes for a table of a
/// million. The break-even point was not measured.
const WHOLE: usize = 32;

pub(crate) struct Table<F: Family> {
    /// The operator's number.
    pub number: u32,
    pub lpm: F::Lpm,
    pub routes: Routes<F>,
    /// Prefixes with more than one list: all their lists, best source first.
    extra: HashMap<Prefix<F>, Vec<(Source, u32)>>,
    /// Contributions of interface addresses by prefix; the best one is the prefix's interface route.
    pub connected: HashMap<Prefix<F>, Vec<Path>>,
    pub counted: Counted<F>,
    /// Neighbours on interfaces of this table.
    pub neighbors: BTreeSet<(F::Addr, u32)>,
}

/// Result of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Change {
    /// The previous list of the source, to be released.
    pub before: Option<u32>,
    /// The active list has changed.
    pub forwards: bool,
    /// The old or the new active route has an own source.
    pub own: bool,
}

impl<F: Family> Table<F> {
    pub fn new(domain: &Arc<Domain>, number: u32) -> Self {
        Self {
            number,
            lpm: F::lpm(domain),
            routes: Routes::new(),
            extra: HashMap::new(),
            connected: HashMap::new(),
            counted: Counted::default(),
            neighbors: BTreeSet::new(),
        }
    }

    /// The lists of a prefix, best source first.
    pub fn sources(
        &self,
        prefix: Prefix<F>,
        source_of: impl Fn(u32) -> Option<Source>,
    ) -> Vec<(Source, u32)> {
        if let Some(all) = self.extra.get(&prefix) {
            return all.clone();
        }
        let one = self
            .routes
            .get(prefix)
            .and_then(|list| Some((source_of(list)?, list)));
        one.into_iter().collect()
    }

    /// Sets the list of a source for a prefix.
    pub fn set(
        &mut self,
        prefix: Prefix<F>,
        source: Source,
        list: u32,
        source_of: impl Fn(u32) -> Option<Source>,
    ) -> Result<Change, LpmError> {
        let mut all = self.sources(prefix, source_of);
        let first = all.first().copied();
        let best_before = first.map(|s| s.1);
        let before = match all.binary_search_by_key(&source, |s| s.0) {
            Ok(at) => Some(std::mem::replace(&mut all[at].1, list)),
            Err(at) => {
                all.insert(at, (source, list));
                None
            }
        };
        let best = all.first().map_or(list, |s| s.1);
        let forwards = best_before != Some(best);
        let own = source.is_own() || first.is_some_and(|s| s.0.is_own());
        if forwards {
            F::insert(&mut self.lpm, prefix.addr(), prefix.len(), best)?;
            self.routes.set(prefix, best);
        }
        self.keep(prefix, all);
        Ok(Change {
            before,
            forwards,
            own,
        })
    }

    /// Removes the list of a source for a prefix; `None` if there was none.
    pub fn unset(
        &mut self,
        prefix: Prefix<F>,
        source: Source,
        source_of: impl Fn(u32) -> Option<Source>,
    ) -> Option<Change> {
        let mut all = self.sources(prefix, source_of);
        let at = all.binary_search_by_key(&source, |s| s.0).ok()?;
        let (_, list) = all.remove(at);
        let forwards = at == 0;
        let own = source.is_own() || all.first().is_some_and(|s| s.0.is_own());
        match all.first() {
            Some(&(_, best)) if forwards => {
                // Changing the leaf of an existing prefix needs no free capacity and cannot fail.
                let done = F::insert(&mut self.lpm, prefix.addr(), prefix.len(), best);
                debug_assert!(done.is_ok());
                self.routes.set(prefix, best);
            }
            None => {
                F::remove(&mut self.lpm, prefix.addr(), prefix.len());
                self.routes.remove(prefix);
            }
            Some(_) => {}
        }
        self.keep(prefix, all);
        Some(Change {
            before: Some(list),
            forwards,
            own,
        })
    }

    fn keep(&mut self, prefix: Prefix<F>, all: Vec<(Source, u32)>) {
        if all.len() > 1 {
            self.extra.insert(prefix, all);
        } else if !self.extra.is_empty() {
            self.extra.remove(&prefix);
        }
    }

    /// Inserts many routes of one source: all, or none on an error. The prefixes must be new to the table and distinct: see
    /// [`Self::claim`].
    pub fn load(&mut self, rows: &[(Prefix<F>, u32)]) -> Result<(), LpmError> {
        let done = if rows.len() < self.routes.len() / WHOLE {
            self.load_each(rows)
        } else {
            let routes = rows.iter().map(|(p, list)| (p.addr(), p.len(), *list));
            F::load(&mut self.lpm, routes)
        };
        done.inspect_err(|_| {
            for (prefix, _) in rows {
                self.routes.remove(*prefix);
            }
        })
    }

    fn load_each(&mut self, rows: &[(Prefix<F>, u32)]) -> Result<(), LpmError> {
        for (at, (prefix, list)) in rows.iter().enumerate() {
            if let Err(full) = F::insert(&mut self.lpm, prefix.addr(), prefix.len(), *list) {
                for (prefix, _) in &rows[..at] {
                    F::remove(&mut self.lpm, prefix.addr(), prefix.len());
                }
                return Err(full);
            }
        }
        Ok(())
    }

    /// Inserts the new prefixes into the map (not yet into the match) and returns them; the second list has the existing ones,
    /// for the caller to set one by one.
    pub fn claim(
        &mut self,
        rows: impl Iterator<Item = (Prefix<F>, u32)>,
    ) -> [Vec<(Prefix<F>, u32)>; 2] {
        let most = rows.size_hint().0;
        self.routes.reserve(most);
        let mut fresh = Vec::with_capacity(most);
        let mut known = Vec::new();
        for (prefix, list) in rows {
            match self.routes.get(prefix) {
                Some(_) => known.push((prefix, list)),
                None => {
                    self.routes.set(prefix, list);
                    fresh.push((prefix, list));
                }
            }
        }
        [fresh, known]
    }
}
