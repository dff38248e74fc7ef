//! Counters of routes: which routes are counted alone, and the counts.

use super::counted::inside;
use super::fib::Fib;
use super::tables::Side;
use crate::dataplane::RouteCount;
use crate::error::FibError;
use crate::family::Prefix;

impl Fib {
    /// Counts the route of a prefix (`Some(true)`: and those of all prefixes inside it), or ends that (`None`). True if that is
    /// a change; after an error nothing is changed.
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
        self.count_if_marked();
        let longer = before == Some(true) || count == Some(true);
        let routes = self.table::<F>(index).map(|table| &table.routes);
        let routes = routes.map_or(Vec::new(), |routes| inside(routes, prefix, longer));
        if let Err(error) = self.rehold(index, &routes) {
            self.mark(index, prefix, before);
            // The lists that the routes had still exist or are made again in the room that they had.
            let done = self.rehold(index, &routes);
            debug_assert!(done.is_ok());
            self.count_if_marked();
            return Err(error);
        }
        Ok(true)
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

    /// Gives the routes of prefixes the lists that they should have: their own ones, or shared ones.
    fn rehold<F: Side>(&mut self, index: u32, prefixes: &[Prefix<F>]) -> Result<(), FibError> {
        for &prefix in prefixes {
            let (res, tables) = F::side(self);
            let sources = tables
                .get(index)
                .map(|t| t.sources(prefix, |l| res.source_of(l)));
            for (source, list) in sources.unwrap_or_default() {
                let Some(paths) = self.res.list(list).map(|list| list.key.paths.clone()) else {
                    continue;
                };
                let new = self.hold_for(index, prefix, source, &paths, Some(list))?;
                self.put(index, prefix, source, new)?;
            }
        }
        Ok(())
    }

    /// Packets that followed the routes of a list, and the number of these routes; none while no route is counted.
    pub(crate) fn route_count(&self, list: u32) -> Option<(RouteCount, u32)> {
        let counters = &self.res.lbs.counters;
        let routes = self.res.list(list)?.refs;
        counters.is_on().then(|| (counters.count(list), routes))
    }

    /// The counted routes of a table: prefix and count.
    pub fn counted_routes<F: Side>(&self, index: u32) -> Vec<(Prefix<F>, RouteCount)> {
        let Some(table) = self.table::<F>(index) else {
            return Vec::new();
        };
        let routes = table.counted.routes(&table.routes).into_iter();
        let count = |prefix| Some((prefix, self.route_count(table.routes.get(prefix)?)?.0));
        routes.filter_map(count).collect()
    }
}
