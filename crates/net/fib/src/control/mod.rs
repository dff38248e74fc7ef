//! Requests and queries that are the FIB's: routes, tables, neighbours, addresses, table bindings.
//!
//! A request is carried out whole or refused and nothing has changed, `count N` and file loads included.

mod batch;
mod convert;
mod load;
mod own;
mod reply;
mod warn;

use std::net::IpAddr;
use volley_model::{Applied, Handler, IfAddress, Mac, ModelError, Request, Route, RouteBatch};

use crate::error::FibError;
use crate::family::{Af, Prefix, V4, V6};
use crate::source::{Fib, Neighbor, Path, Side, Source, Via};

type Done = Result<Applied, ModelError>;

impl Fib {
    /// Switches directed broadcasts of an interface.
    pub(crate) fn directed_broadcast_of(&mut self, interface: &str, on: bool) -> Done {
        let iface = self.named(interface)?;
        let done = self.set_directed_broadcast(iface, on);
        self.said(done)
            .map(|changed| Applied::changed(changed.into()))
    }

    /// Gives an interface an address, or takes it away.
    pub fn configured_address(&mut self, interface: &str, address: IfAddress, there: bool) -> Done {
        let iface = self.named(interface)?;
        if !there {
            let done = self.del_configured(iface, address);
            return self.said(done).map(|()| Applied::one());
        }
        self.give_way(iface, address);
        let done = self.add_address(iface, address);
        self.said(done)?;
        Ok(with_notes(Applied::one(), self.overlaps(iface, address)))
    }

    /// Gives an interface an address that is no configuration, or takes it away.
    pub fn automatic_address(
        &mut self,
        interface: &str,
        address: IfAddress,
        there: bool,
    ) -> Result<(), ModelError> {
        let iface = self.named(interface)?;
        if there {
            let done = self.add_automatic(iface, address);
            return self.said(done);
        }
        self.del_automatic(iface, address);
        Ok(())
    }

    /// Adds an IP table, or removes an empty one.
    pub(crate) fn ip_table(&mut self, family: Af, table: u32, there: bool) -> Done {
        let done = match there {
            true => self.add_table(family, table),
            false => self.del_table(family, table),
        };
        self.said(done).map(|()| Applied::one())
    }

    /// Routes with several paths get so many buckets from now on, or none of their own.
    pub(crate) fn set_resilient(&mut self, buckets: Option<usize>) -> bool {
        self.res.set_resilient(buckets)
    }
}

impl Handler for Fib {
    fn apply(&mut self, request: &Request) -> Option<Done> {
        Some(match request {
            Request::RouteAdd(route) => self.route_with_notes(route, Change::Add),
            Request::RouteReplace(route) => self.route_with_notes(route, Change::Replace),
            Request::RouteDel(route) => self.route(route, Change::Delete),
            Request::Routes(batch) => self.routes(batch),
            _ => return None,
        })
    }
}

/// Checks that routes of a source are configured, not made by the FIB.
fn own_source(source: Source) -> Result<(), ModelError> {
    if source.is_own() {
        return Ok(());
    }
    let what = format!("source {}", source.name());
    let why = "the FIB makes these routes itself; use static";
    Err(ModelError::invalid(what, why))
}

fn with_notes(applied: Applied, notes: Vec<String>) -> Applied {
    notes.into_iter().fold(applied, Applied::note)
}

/// What a route request does.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Change {
    Add,
    Replace,
    Delete,
}

/// One step of a request that may have to be taken back: the paths a prefix had before.
type Undo<F> = (Prefix<F>, Option<Vec<Path>>);

impl Fib {
    /// Binds an interface to a table of a family.
    pub(crate) fn bind(&mut self, name: &str, family: Af, table: u32) -> Done {
        let iface = self.named(name)?;
        let same = self.interface_table(iface, family) == table;
        let done = self.bind_interface(iface, family, table);
        self.said(done).map(|()| {
            if same {
                Applied::nothing()
            } else {
                Applied::one()
            }
        })
    }

    /// Has an interface use the addresses of another, or no longer.
    pub(crate) fn unnumbered(&mut self, name: &str, uses: Option<&str>) -> Done {
        let iface = self.named(name)?;
        let lender = uses.map(|uses| self.named(uses)).transpose()?;
        let done = self.set_unnumbered(iface, lender);
        self.said(done)
            .map(|changed| Applied::changed(changed.into()))
    }

    /// Gives an interface a static neighbour; without a MAC address, removes it.
    pub(crate) fn neighbor_of(
        &mut self,
        interface: &str,
        address: IpAddr,
        mac: Option<Mac>,
    ) -> Done {
        let iface = self.named(interface)?;
        let done = match mac {
            Some(mac) => self.set_neighbor(iface, address, Neighbor::new(mac.0)),
            None => self.remove_neighbor(iface, address).map(|()| true),
        };
        self.said(done)
            .map(|changed| Applied::changed(changed.into()))
    }

    fn routes(&mut self, batch: &RouteBatch) -> Done {
        own_source(batch.source)?;
        let changed = self.route_batch(batch)?;
        let notes = batch.sets.iter();
        let notes = notes.flat_map(|paths| self.gateways_elsewhere(batch.source, paths));
        Ok(with_notes(Applied::changed(changed), notes.collect()))
    }

    fn route_with_notes(&mut self, route: &Route, change: Change) -> Done {
        let done = self.route(route, change)?;
        Ok(with_notes(
            done,
            self.gateways_elsewhere(route.source, &route.paths),
        ))
    }

    fn route(&mut self, route: &Route, change: Change) -> Done {
        own_source(route.source)?;
        match route.prefix.family() {
            Af::V4 => self.route_in::<V4>(route, change),
            Af::V6 => self.route_in::<V6>(route, change),
        }
    }

    fn route_in<F: Side>(&mut self, route: &Route, change: Change) -> Done {
        let paths = self.paths(F::AF, route.table, &route.paths)?;
        let index = self.table_index(F::AF, route.table);
        let index = self.said(index)?;
        let prefixes = self.steps::<F>(route)?;
        let fresh = |p: &Prefix<F>| self.paths_of(index, *p, route.source).is_none();
        // Hosts on an interface are each their own next hop.
        let attached = |p: &Path| matches!(p.via, Via::Attached { .. });
        let apart = route.prefix.len() == F::BITS && paths.iter().any(attached);
        if change != Change::Delete && !apart && prefixes.len() > 1 && prefixes.iter().all(fresh) {
            let rows: Vec<_> = prefixes.iter().map(|p| (p.addr(), p.len(), 0)).collect();
            let done = self.load::<F>(route.table, route.source, &[paths], &rows);
            return self.said(done).map(|_| Applied::changed(rows.len() as u64));
        }
        let mut undo: Vec<Undo<F>> = Vec::new();
        let mut changed = 0;
        for prefix in prefixes {
            let before = self.paths_of(index, prefix, route.source);
            match self.one(route, prefix, &paths, change) {
                Ok(did) => changed += u64::from(did),
                Err(e) => {
                    self.take_back(index, route.source, undo);
                    return self.said(Err(e));
                }
            }
            undo.push((prefix, before));
        }
        Ok(Applied::changed(changed))
    }

    fn one<F: Side>(
        &mut self,
        route: &Route,
        prefix: Prefix<F>,
        paths: &[Path],
        change: Change,
    ) -> Result<bool, FibError> {
        match change {
            Change::Add => self.add_paths(route.table, prefix, route.source, paths),
            Change::Replace => self.set_route(route.table, prefix, route.source, paths),
            Change::Delete if paths.is_empty() => self
                .remove_route(route.table, prefix, route.source)
                .map(|()| true),
            Change::Delete => self
                .remove_paths(route.table, prefix, route.source, paths)
                .map(|()| true),
        }
    }

    /// Puts back what was there; the room for it was there a moment ago.
    fn take_back<F: Side>(&mut self, index: u32, source: Source, undo: Vec<Undo<F>>) {
        for (prefix, before) in undo.into_iter().rev() {
            match before {
                Some(paths) => {
                    let done = self.set_in(index, prefix, source, &paths);
                    debug_assert!(done.is_ok());
                }
                None => {
                    self.remove_in(index, prefix, source);
                }
            }
        }
    }

    fn steps<F: Side>(&self, route: &Route) -> Result<Vec<Prefix<F>>, ModelError> {
        let step = |i| {
            let p = route.prefix.step(i)?;
            Some(Prefix::around(F::number(p.addr())?, p.len()))
        };
        let all: Option<Vec<_>> = (0..route.count).map(step).collect();
        all.ok_or_else(|| {
            let what = format!("count {} from {}", route.count, route.prefix);
            ModelError::invalid(what, "the prefixes run over the end of the address space")
        })
    }
}

#[cfg(test)]
mod tests;
