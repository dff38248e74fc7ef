//! Counters of routes: which routes are counted alone, and the counts.

use super::counted::inside;
use super::fib::Fib;
use super::routes::MAX_LISTS;
use super::tables::Side;
use crate::dataplane::RouteCount;
use crate::error::FibError;
use crate::family::{Prefix, V4, V6};

/// Routes of a slice: some milliseconds of work.
const SLICE: usize = 2048;

impl Fib {
    /// Counts the route of a prefix (`Some(true)`: and those of all prefixes inside it), or ends that (`None`). True if that is
    /// a change; after an error nothing is changed. Up to 2048 routes are counted at once, others in slices:
    /// [`Self::count_more`].
    pub fn count_route<F: Side>(
        &mut self,
        table: u32,
        prefix: Prefix<F>,
        count: Option<bool>,
    ) -> Result<bool, FibError> {
        let index = F::side(self).1.index(table)?;
        let before = self.mark(index, prefix, count);
        if before == count {
            return Ok(false);
        }
        let longer = before == Some(true) || count == Some(true);
        let routes = self.table::<F>(index).map(|table| &table.routes);
        let routes = routes.map_or(Vec::new(), |routes| inside(routes, prefix, longer));
        if count.is_some()
            && let Err(error) = self.room_for(routes.len())
        {
            self.mark(index, prefix, before);
            return Err(error);
        }
        self.count_if_marked();
        if count.is_some() && routes.len() > SLICE {
            self.res.reserve(routes.len());
        }
        F::side_mut(self).1.uncounted.push((index, routes));
        self.count_more();
        Ok(true)
    }

    /// Counts the next slice of routes alone, or ends that; true if others remain. Until then they are counted with the other
    /// routes of their source and paths.
    pub fn count_more(&mut self) -> bool {
        let left = self.count_slice::<V4>(SLICE);
        self.count_slice::<V6>(left);
        !self.v4.uncounted.is_empty() || !self.v6.uncounted.is_empty()
    }

    /// Works for at most this many routes of a family; returns how many more are possible.
    fn count_slice<F: Side>(&mut self, most: usize) -> usize {
        for left in (1..=most).rev() {
            let all = &mut F::side_mut(self).1.uncounted;
            let Some((index, prefixes)) = all.last_mut() else {
                return left;
            };
            let (index, prefix) = (*index, prefixes.pop());
            if prefixes.is_empty() {
                all.pop();
            }
            if let Some(prefix) = prefix {
                self.count_now(index, prefix);
            }
        }
        0
    }

    /// Gives the routes of a prefix the leaves that they should have: their own ones, or those of their lists. Their targets
    /// stay, so that nothing is resolved again.
    fn count_now<F: Side>(&mut self, index: u32, prefix: Prefix<F>) {
        let (res, tables) = F::side_mut(self);
        let Some(table) = tables.get_mut(index) else {
            return;
        };
        let is_counted = table.counted.has(prefix);
        for (source, leaf) in table.sources(prefix, |l| res.source_of(l)) {
            if res.leaves.is_counted(leaf) == is_counted {
                continue;
            }
            let list = res.leaves.root(leaf);
            res.hold_again(list, 1);
            let new = match is_counted {
                true => res.count_alone(list, Some(leaf)),
                false => list,
            };
            // The match has the prefix, so another leaf needs no free capacity there.
            let done = table.set(prefix, source, new, |l| res.source_of(l));
            debug_assert!(done.is_ok());
            res.release(if done.is_ok() { leaf } else { new }, 1);
        }
    }

    /// An error if there is no room for this many leaves besides those that are promised to routes.
    pub(crate) fn room_for(&self, more: usize) -> Result<(), FibError> {
        let waiting4: usize = self.v4.uncounted.iter().map(|(_, all)| all.len()).sum();
        let waiting6: usize = self.v6.uncounted.iter().map(|(_, all)| all.len()).sum();
        let used = self.res.len() + self.res.leaves.counted() + waiting4 + waiting6;
        // A counted route may need a leaf and a list.
        match used + more >= MAX_LISTS as usize - 2 {
            true => Err(FibError::TooManyLists { limit: MAX_LISTS }),
            false => Ok(()),
        }
    }

    /// Workers count packets while a prefix is marked.
    fn count_if_marked(&mut self) {
        self.res
            .lbs
            .counters
            .set_on(self.v4.has_marks() || self.v6.has_marks());
    }

    fn mark<F: Side>(
        &mut self,
        index: u32,
        prefix: Prefix<F>,
        count: Option<bool>,
    ) -> Option<bool> {
        let table = F::side_mut(self).1.get_mut(index)?;
        table.counted.mark(prefix, count)
    }

    /// Packets that followed the routes of a leaf, and the number of these routes; none while no route is counted.
    pub(crate) fn route_count(&self, leaf: u32) -> Option<(RouteCount, u32)> {
        let counters = &self.res.lbs.counters;
        let list = self.res.list(leaf)?;
        let routes = match self.res.leaves.is_counted(leaf) {
            true => 1,
            false => list.refs - list.counted,
        };
        counters.is_on().then(|| (counters.count(leaf), routes))
    }

    /// The prefixes of the counted routes of a table, in no order. Takes some nanoseconds for each route of the table.
    pub(crate) fn counted_prefixes<F: Side>(&self, index: u32) -> Vec<Prefix<F>> {
        let Some(table) = self.table::<F>(index) else {
            return Vec::new();
        };
        if !table.counted.has_longer() {
            return table.counted.prefixes().collect();
        }
        let is_counted = |leaf: &u32| self.res.leaves.is_counted(*leaf);
        let routes = table.routes.iter();
        let counted = routes.filter(|(_, leaf)| is_counted(leaf));
        counted.map(|(prefix, _)| prefix).collect()
    }

    /// The count of a counted route; none if the prefix has no route, or one that is not counted.
    pub(crate) fn counted_route<F: Side>(
        &self,
        index: u32,
        prefix: Prefix<F>,
    ) -> Option<RouteCount> {
        let leaf = self.table::<F>(index)?.routes.get(prefix)?;
        let is_counted = self.res.leaves.is_counted(leaf);
        Some(self.route_count(leaf).filter(|_| is_counted)?.0)
    }

    /// The counted routes of a table, in order: prefix and count.
    pub fn counted_routes<F: Side>(&self, index: u32) -> Vec<(Prefix<F>, RouteCount)> {
        let mut prefixes = self.counted_prefixes::<F>(index);
        prefixes.sort_unstable();
        let count = |prefix| Some((prefix, self.counted_route::<F>(index, prefix)?));
        prefixes.into_iter().filter_map(count).collect()
    }
}
