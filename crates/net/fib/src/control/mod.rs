//! Requests and queries of the FIB: routes, tables, neighbours, addresses, table bindings.
//!
//! A request is carried out completely, or it is refused and changes nothing; this includes many routes and file loads.

mod batch;
mod convert;
mod gateway;
mod listing;
mod load;
mod own;
mod reply;
mod warn;

pub use listing::{CounterList, Listing, RouteList};

use crate::path::PathTarget;
use crate::route_batch::RouteBatch;
use std::net::IpAddr;
use volley_model::{Applied, IfAddress, Mac, ModelError, Prefix};
use volley_object::{Bulk, FieldType};

use crate::family::{self, Af, V4, V6};
use crate::source::{Fib, Neighbor, Path, Side, Source};

type Done = Result<Applied, ModelError>;

impl Fib {
    /// Enables or disables directed broadcasts of an interface.
    pub(crate) fn directed_broadcast_of(&mut self, interface: &str, on: bool) -> Done {
        let iface = self.named(interface)?;
        let done = self.set_directed_broadcast(iface, on);
        self.model_result(done)
            .map(|changed| Applied::changed(changed.into()))
    }

    /// Adds a configured address to an interface, or removes it.
    pub fn configured_address(&mut self, interface: &str, address: IfAddress, there: bool) -> Done {
        let iface = self.named(interface)?;
        if !there {
            let done = self.del_configured(iface, address);
            return self.model_result(done).map(|()| Applied::one());
        }
        self.give_way(iface, address);
        let done = self.add_address(iface, address);
        self.model_result(done)?;
        Ok(with_notes(Applied::one(), self.overlaps(iface, address)))
    }

    /// Adds an address that was not configured to an interface, or removes it.
    pub fn automatic_address(
        &mut self,
        interface: &str,
        address: IfAddress,
        there: bool,
    ) -> Result<(), ModelError> {
        let iface = self.named(interface)?;
        if there {
            let done = self.add_automatic(iface, address);
            return self.model_result(done);
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
        self.model_result(done).map(|()| Applied::one())
    }

    /// Counts the route of a prefix by itself (`Some(true)`: and those of the prefixes inside it), or ends that. Many routes
    /// follow in slices ([`Self::count_more`]).
    pub(crate) fn route_counter(
        &mut self,
        table: u32,
        prefix: Prefix,
        count: Option<bool>,
    ) -> Done {
        let done = match prefix.family() {
            Af::V4 => {
                let prefix = batch::number::<V4>(&prefix);
                prefix.map(|prefix| self.count_route(table, prefix, count))
            }
            Af::V6 => {
                let prefix = batch::number::<V6>(&prefix);
                prefix.map(|prefix| self.count_route(table, prefix, count))
            }
        };
        self.model_result(done.unwrap_or(Ok(false)))
            .map(|changed| Applied::changed(changed.into()))
    }

    /// Sets the number of buckets of resilient groups; none for the smallest groups that the weights allow.
    pub(crate) fn set_resilient(&mut self, buckets: Option<usize>) -> bool {
        self.res.set_resilient(buckets)
    }
}

fn with_notes(applied: Applied, notes: Vec<String>) -> Applied {
    notes.into_iter().fold(applied, Applied::note)
}

/// One step of a request that may have to be rolled back: the paths that a prefix had before.
type Undo<F> = (family::Prefix<F>, Option<Vec<Path>>);

impl Fib {
    /// Binds an interface to a table of a family.
    pub(crate) fn bind(&mut self, name: &str, family: Af, table: u32) -> Done {
        let iface = self.named(name)?;
        let same = self.interface_table(iface, family) == table;
        let done = self.bind_interface(iface, family, table);
        self.model_result(done).map(|()| {
            if same {
                Applied::nothing()
            } else {
                Applied::one()
            }
        })
    }

    /// Makes an interface unnumbered: it uses the addresses of another. None ends that.
    pub(crate) fn unnumbered(&mut self, name: &str, uses: Option<&str>) -> Done {
        let iface = self.named(name)?;
        let numbered = uses.map(|uses| self.named(uses)).transpose()?;
        let done = self.set_unnumbered(iface, numbered);
        self.model_result(done)
            .map(|changed| Applied::changed(changed.into()))
    }

    /// Sets a static neighbour of an interface; without a MAC address, removes it.
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
        self.model_result(done)
            .map(|changed| Applied::changed(changed.into()))
    }

    /// Sets or removes routes of one source in a table: all of them, or none and an error.
    pub(crate) fn routes(&mut self, bulk: &Bulk) -> Done {
        let batch = batch_of(bulk)
            .ok_or_else(|| ModelError::invalid(bulk, "its prefixes are not of one IP version"))?;
        let had = match batch.family {
            Af::V4 => self.had::<V4>(&batch),
            Af::V6 => self.had::<V6>(&batch),
        };
        let changed = self.route_batch(&batch)?;
        let mut notes = Vec::new();
        for paths in &batch.sets {
            let new = paths.iter().filter(|path| !had.contains(&path.target));
            let new: Vec<_> = new.cloned().collect();
            notes.extend(self.gateways_elsewhere(batch.source, &new));
        }
        Ok(with_notes(Applied::changed(changed), notes))
    }

    /// The previous targets of the only route of a batch: warnings about them were already given.
    fn had<F: Side>(&self, batch: &RouteBatch) -> Vec<PathTarget> {
        let paths = || {
            let [(prefix, _)] = &batch.put[..] else {
                return None;
            };
            let index = self.table_index(F::AF, batch.table).ok()?;
            self.paths_of(index, batch::number::<F>(prefix)?, batch.source)
        };
        let paths = paths().unwrap_or_default().into_iter();
        let target = |path: Path| self.target(F::AF, batch.table, path.via);
        paths.map(target).collect()
    }

    /// Restores the previous routes; the memory for them was in use a moment ago.
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
}

/// Converts objects of the route class into a batch; none if their IP versions differ.
fn batch_of(bulk: &Bulk) -> Option<RouteBatch> {
    let first = bulk.puts().iter().map(|(item, _)| item);
    let first = first.chain(bulk.removed()).next()?;
    let family = Prefix::unpack(first)?.family();
    let prefix = |item| Prefix::unpack(item).filter(|it| it.family() == family);
    let put = bulk.puts().iter();
    let put = put.map(|(item, set)| Some((prefix(item)?, *set)));
    Some(RouteBatch {
        family,
        table: bulk.common(0)?,
        source: bulk.common(1)?,
        sets: bulk.field("paths")?,
        put: put.collect::<Option<_>>()?,
        gone: bulk.removed().iter().map(prefix).collect::<Option<_>>()?,
    })
}

#[cfg(test)]
mod tests;
