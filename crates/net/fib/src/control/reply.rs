//! Replies to `show ip fib`, `show ip neighbors`, `show ip tables` and `show ip route-counters`.

use crate::path::RouteSource;
use std::net::IpAddr;
use volley_model::ModelError;

use super::listing::Listing;
use crate::dataplane::DpoKind;
use crate::family::{Af, Prefix, V4, V6};
use crate::show::{
    AbsentPrefix, FibBucket, FibCounters, FibPath, FibReply, FibRoute, FibSelect, FibTable,
    LengthCount, RouteCountersReply, ShowFib, ShowRouteCounters, ShowTables, TableRow, TablesReply,
};
use crate::source::{Bucket, Fib, Neighbor, PathState, Shown, Side, Via};

impl Fib {
    /// Reply to `show ip fib`.
    pub fn routes_shown(&self, asked: &ShowFib) -> Result<FibReply, ModelError> {
        Ok(self.whole(self.route_list(asked)?))
    }

    /// A list that is read in one step.
    fn whole<L: Listing>(&self, mut list: L) -> L::Reply {
        list.sort();
        while list.read(self, usize::MAX) {}
        list.reply()
    }

    /// The route that covers a prefix without a route, and the number of longer prefixes inside the prefix.
    pub(super) fn around<F: Side>(
        &self,
        index: u32,
        asked: volley_model::Prefix,
    ) -> (Vec<Prefix<F>>, Option<AbsentPrefix>) {
        let routes = self.table::<F>(index).map(|table| &table.routes);
        let (Some(address), Some(routes)) = (F::number(asked.addr()), routes) else {
            return (Vec::new(), None);
        };
        // The default drop that every table begins with does not count as a route.
        let is_route = |prefix: &Prefix<F>| {
            let shown = self.show(index, *prefix);
            shown.is_some_and(|route| route.sources.first() != Some(&RouteSource::Default))
        };
        let cover = routes.cover(address, asked.len());
        let cover = cover.filter(|(prefix, _)| is_route(prefix));
        let whole = Prefix::<F>::around(address, asked.len());
        let is_inside = |prefix: &Prefix<F>| {
            prefix.len() > asked.len() && Prefix::around(prefix.addr(), asked.len()) == whole
        };
        let inside = routes.iter().filter(|(p, _)| is_inside(p)).count() as u64;
        let absent = AbsentPrefix {
            prefix: asked,
            inside,
        };
        let cover: Vec<Prefix<F>> = cover.into_iter().map(|(prefix, _)| prefix).collect();
        let absent = (!cover.is_empty()).then_some(absent);
        (cover, absent)
    }

    /// The prefixes of a table that were requested, in no order.
    pub(super) fn selected<F: Side>(&self, index: u32, select: FibSelect) -> Vec<Prefix<F>> {
        let found = match select {
            FibSelect::All => {
                let routes = self.table::<F>(index).map(|table| table.routes.iter());
                return routes.into_iter().flatten().map(|route| route.0).collect();
            }
            FibSelect::Summary => None,
            FibSelect::Exact(p) => {
                F::number(p.addr()).and_then(|a| self.show::<F>(index, Prefix::around(a, p.len())))
            }
            FibSelect::Match(addr) => F::number(addr).and_then(|a| self.show_match::<F>(index, a)),
        };
        found.into_iter().map(|r| r.prefix).collect()
    }

    pub(super) fn table_head<F: Side>(&self, number: u32, index: u32) -> FibTable {
        let mut out = FibTable {
            family: F::AF,
            table: number,
            ..FibTable::default()
        };
        if let Some(table) = self.table::<F>(index) {
            out.prefixes = table.routes.len() as u64;
            out.bytes = F::bytes(&table.lpm) as u64;
            let count = |(len, n): (u8, u32)| LengthCount {
                len,
                count: n.into(),
            };
            out.lengths = table.routes.lengths().map(count).collect();
        }
        out
    }

    pub(super) fn fib_route<F: Side>(&self, number: u32, route: &Shown<F>) -> Option<FibRoute> {
        let prefix = route.prefix;
        let path = |p: &PathState| FibPath {
            target: self.target(F::AF, number, p.path.via),
            weight: p.path.weight.into(),
            preference: p.path.preference,
            onlink: p.path.onlink,
            // A path with target drop counts as resolved.
            resolved: p.share.is_ok() || matches!(p.path.via, Via::Drop(_)),
        };
        let bucket = |b: &Bucket| FibBucket {
            kind: kind_name(b.dpo.kind()).into(),
            index: b.dpo.index(),
            text: b.text.clone(),
        };
        Some(FibRoute {
            prefix: volley_model::Prefix::masked(F::ip(prefix.addr()), prefix.len()).ok()?,
            source: *route.sources.first()?,
            others: route.sources.iter().skip(1).copied().collect(),
            paths: route.paths.iter().map(path).collect(),
            load_balance: route.load_balance,
            counters: route.count.map(|(count, routes)| FibCounters {
                packets: count.packets,
                bytes: count.bytes,
                routes: routes.into(),
            }),
            buckets: route.buckets.iter().map(bucket).collect(),
        })
    }

    /// Neighbours, filtered by family and interface, with the names of their interfaces.
    pub fn neighbors_of(
        &self,
        family: Option<Af>,
        interface: Option<&str>,
    ) -> Result<Vec<(String, IpAddr, Neighbor)>, ModelError> {
        let only = interface.map(|name| self.named(name)).transpose()?;
        let wanted =
            |iface: u32, af| only.is_none_or(|o| o == iface) && family.is_none_or(|f| f == af);
        let all = self.neighbors();
        let all = all.filter(|(iface, addr, _)| wanted(*iface, Af::of(*addr)));
        let named = |(iface, address, neighbor)| (self.iface_name(iface), address, neighbor);
        Ok(all.map(named).collect())
    }

    /// Reply to `show ip tables`.
    pub fn tables(&self, asked: &ShowTables) -> TablesReply {
        let family = asked.family;
        let mut tables = Vec::new();
        if family != Some(Af::V6) {
            self.table_rows::<V4>(&mut tables);
        }
        if family != Some(Af::V4) {
            self.table_rows::<V6>(&mut tables);
        }
        TablesReply { tables }
    }

    /// Reply to `show ip route-counters`.
    pub fn route_counters(&self, asked: &ShowRouteCounters) -> RouteCountersReply {
        self.whole(self.counter_list(asked))
    }

    fn table_rows<F: Side>(&self, out: &mut Vec<TableRow>) {
        for (number, table) in F::side(self).1.iter() {
            let bound = self
                .interfaces()
                .filter(|i| self.interface_table(i.index, F::AF) == number);
            out.push(TableRow {
                family: F::AF,
                table: number,
                prefixes: table.routes.len() as u64,
                bytes: F::bytes(&table.lpm) as u64,
                interfaces: bound.map(|i| i.name.clone()).collect(),
            });
        }
    }
}

fn kind_name(kind: DpoKind) -> &'static str {
    match kind {
        DpoKind::Drop => "drop",
        DpoKind::Adj => "adjacency",
        DpoKind::Glean => "glean",
        DpoKind::Broadcast => "broadcast",
        DpoKind::Local => "local",
        DpoKind::Unreachable => "unreachable",
        DpoKind::Prohibit => "prohibit",
        DpoKind::Multi => "load-balance",
        DpoKind::Incomplete => "incomplete",
        DpoKind::LookupIn => "lookup",
    }
}
