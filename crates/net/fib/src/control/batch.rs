//! Batches of routes of one source, as another routing table supplies them, and all routes of a source.

use crate::path;
use crate::route_batch::{RouteBatch, RouteSet};
use hashbrown::HashMap;
use volley_model::{self as model, ModelError};

use crate::error::FibError;
use crate::family::{Af, Prefix, V4, V6};
use crate::source::{Fib, Path, Side, Source, Via};

/// Up to this many routes, one after the other is faster than a batch.
const FEW: usize = 16;

impl Fib {
    /// Carries out a batch: all of it, or nothing and an error. Returns how many routes changed.
    pub fn route_batch(&mut self, batch: &RouteBatch) -> Result<u64, ModelError> {
        match batch.family {
            Af::V4 => self.batch_in::<V4>(batch),
            Af::V6 => self.batch_in::<V6>(batch),
        }
    }

    fn batch_in<F: Side>(&mut self, batch: &RouteBatch) -> Result<u64, ModelError> {
        let index = self.table_index(F::AF, batch.table);
        let index = self.model_result(index)?;
        let sets = batch
            .sets
            .iter()
            .map(|paths| self.paths(F::AF, batch.table, paths));
        let sets: Vec<Vec<Path>> = sets.collect::<Result<_, _>>()?;
        let row = |(prefix, set): &(model::Prefix, u32)| {
            let p = number::<F>(prefix)?;
            sets.get(*set as usize).map(|_| (p.addr(), p.len(), *set))
        };
        let rows: Option<Vec<_>> = batch.put.iter().map(row).collect();
        let gone: Option<Vec<Prefix<F>>> = batch.gone.iter().map(number::<F>).collect();
        let (Some(rows), Some(gone)) = (rows, gone) else {
            let why = "a prefix is of the other family, or names a set that is not there";
            return Err(ModelError::invalid("a batch of routes", why));
        };
        let put = match rows.len() > FEW && !has_hosts::<F>(&sets, &rows) {
            true => self
                .load::<F>(batch.table, batch.source, &sets, &rows)
                .map(|_| rows.len() as u64),
            false => self.put_each::<F>(index, batch.source, &sets, &rows),
        };
        let put = self.model_result(put)?;
        // A removal needs no free capacity: nothing can fail from here on.
        let removed = gone
            .into_iter()
            .filter(|prefix| self.remove_in(index, *prefix, batch.source));
        Ok(put + removed.count() as u64)
    }

    fn put_each<F: Side>(
        &mut self,
        index: u32,
        source: Source,
        sets: &[Vec<Path>],
        rows: &[(F::Addr, u8, u32)],
    ) -> Result<u64, FibError> {
        let (mut changed, mut undo) = (0, Vec::with_capacity(rows.len()));
        for &(addr, len, set) in rows {
            let prefix = Prefix::<F>::around(addr, len);
            let before = self.paths_of(index, prefix, source);
            match self.set_in(index, prefix, source, &sets[set as usize]) {
                Ok(did) => changed += u64::from(did),
                Err(error) => {
                    self.take_back(index, source, undo);
                    return Err(error);
                }
            }
            undo.push((prefix, before));
        }
        Ok(changed)
    }

    /// All routes of a source in a table, active or not.
    pub fn route_set(&self, af: Af, table: u32, source: Source) -> Result<RouteSet, ModelError> {
        match af {
            Af::V4 => self.set_of::<V4>(table, source),
            Af::V6 => self.set_of::<V6>(table, source),
        }
    }

    fn set_of<F: Side>(&self, number: u32, source: Source) -> Result<RouteSet, ModelError> {
        let index = self.table_index(F::AF, number);
        let index = self.model_result(index)?;
        let (mut set, mut places) = (RouteSet::default(), HashMap::new());
        for (prefix, list) in self.lists_of::<F>(index, source) {
            let list = self.res.leaves.root(list);
            let at = *places.entry(list).or_insert_with(|| {
                set.sets.push(self.written_paths::<F>(number, list));
                set.sets.len() as u32 - 1
            });
            let prefix = model::Prefix::masked(F::ip(prefix.addr()), prefix.len());
            set.routes.extend(prefix.ok().map(|prefix| (prefix, at)));
        }
        Ok(set)
    }

    fn written_paths<F: Side>(&self, table: u32, list: u32) -> Vec<path::Path> {
        let paths = self.res.list(list).map_or(&[][..], |l| &l.key.paths);
        let say = |path: &Path| path::Path {
            target: self.target(F::AF, table, path.via),
            weight: path.weight.into(),
            preference: path.preference,
            onlink: path.onlink,
        };
        paths.iter().map(say).collect()
    }

    /// Prefixes of a source, each with its path list.
    fn lists_of<F: Side>(&self, index: u32, source: Source) -> Vec<(Prefix<F>, u32)> {
        let Some(table) = self.table::<F>(index) else {
            return Vec::new();
        };
        let of = |list| self.res.source_of(list);
        let own = |(prefix, list): (Prefix<F>, u32)| {
            if of(list) == Some(source) {
                return Some((prefix, list));
            }
            let mut all = table.sources(prefix, of).into_iter();
            all.find(|s| s.0 == source).map(|s| (prefix, s.1))
        };
        table.routes.iter().filter_map(own).collect()
    }

    /// Removes the routes of a source over an interface, in all tables. Returns their number.
    pub fn forget_via(&mut self, iface: u32, source: Source) -> u64 {
        self.forget_in::<V4>(iface, source) + self.forget_in::<V6>(iface, source)
    }

    fn forget_in<F: Side>(&mut self, iface: u32, source: Source) -> u64 {
        let numbers = self.numbers(F::AF).into_iter();
        let indexes: Vec<u32> = numbers
            .filter_map(|n| self.table_index(F::AF, n).ok())
            .collect();
        let mut gone = 0;
        for index in indexes {
            let over = |list: u32| {
                let paths = self.res.list(list).map_or(&[][..], |l| &l.key.paths);
                paths.iter().any(|p| p.via.iface() == Some(iface))
            };
            let mut all = self.lists_of::<F>(index, source);
            all.retain(|(_, list)| over(*list));
            for (prefix, _) in all {
                gone += u64::from(self.remove_in(index, prefix, source));
            }
        }
        gone
    }
}

/// Whether a row is a host on an interface: each such host is its own next hop, so these routes share no paths.
fn has_hosts<F: Side>(sets: &[Vec<Path>], rows: &[(F::Addr, u8, u32)]) -> bool {
    let attached = |path: &Path| matches!(path.via, Via::Attached { .. });
    let of_hosts: Vec<bool> = sets.iter().map(|set| set.iter().any(attached)).collect();
    let mut rows = rows.iter();
    rows.any(|&(_, len, set)| len == F::BITS && of_hosts[set as usize])
}

pub(super) fn number<F: Side>(prefix: &model::Prefix) -> Option<Prefix<F>> {
    Some(Prefix::around(F::number(prefix.addr())?, prefix.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::{Path as ModelPath, PathTarget, RouteSource};
    use crate::source::IfInfo;
    use std::collections::BTreeMap;
    use volley_tables::Domain;

    fn fib() -> Fib {
        let mut fib = Fib::new(&Domain::new());
        for (index, name) in ["a", "b"].into_iter().enumerate() {
            let info = IfInfo {
                index: index as u32,
                name: name.into(),
                mac: [2, 0, 0, 0, 0, index as u8],
                mtu: 1500,
                up: true,
            };
            fib.set_interface(info).unwrap();
        }
        fib
    }

    fn batch(sets: Vec<Vec<ModelPath>>, put: Vec<(model::Prefix, u32)>) -> RouteBatch {
        RouteBatch {
            family: Af::V4,
            table: 0,
            source: RouteSource::LcpRt,
            sets,
            put,
            gone: Vec::new(),
        }
    }

    fn prefix(n: u32) -> model::Prefix {
        let addr = std::net::Ipv4Addr::from_bits(0x0a00_0000 + n * 256);
        model::Prefix::masked(addr.into(), 24).unwrap()
    }

    fn via(host: u8, name: &str) -> ModelPath {
        ModelPath::via(format!("192.0.2.{host}").parse().unwrap(), Some(name))
    }

    /// The expected content of the FIB, as a plain map.
    fn has(fib: &Fib) -> BTreeMap<model::Prefix, Vec<ModelPath>> {
        let set = fib.route_set(Af::V4, 0, RouteSource::LcpRt).unwrap();
        let of = |(prefix, at): &(model::Prefix, u32)| (*prefix, set.sets[*at as usize].clone());
        set.routes.iter().map(of).collect()
    }

    #[test]
    fn batches_of_any_size_do_what_a_plain_map_does() {
        let mut fib = fib();
        let sets = vec![vec![via(1, "a")], vec![via(1, "a"), via(2, "b")]];
        let mut want = BTreeMap::new();
        for (first, last) in [(0, 100), (50, 60), (90, 300)] {
            let put: Vec<_> = (first..last).map(|n| (prefix(n), n % 2)).collect();
            for (p, set) in &put {
                want.insert(*p, sets[*set as usize].clone());
            }
            let mut it = batch(sets.clone(), put);
            it.gone = (first..last).step_by(7).map(|n| prefix(n + 1000)).collect();
            it.gone.push(prefix(5));
            want.remove(&prefix(5));
            it.put.retain(|(p, _)| *p != prefix(5));
            fib.route_batch(&it).unwrap();
            assert_eq!(has(&fib), want);
        }
        assert_eq!(fib.forget_via(1, RouteSource::LcpRt), has_b(&want));
        want.retain(|_, paths| paths.len() == 1);
        assert_eq!(has(&fib), want);
    }

    fn has_b(all: &BTreeMap<model::Prefix, Vec<ModelPath>>) -> u64 {
        all.values().filter(|paths| paths.len() == 2).count() as u64
    }

    #[test]
    fn hosts_on_an_interface_are_neighbours_each() {
        let mut fib = fib();
        let host = |n: u32| model::Prefix::masked(std::net::Ipv4Addr::from_bits(n).into(), 32);
        let attached = vec![ModelPath::to(PathTarget::Interface("a".into()))];
        let put = (1..40).map(|n| (host(0x0a00_0000 + n).unwrap(), 0));
        let it = batch(vec![attached], put.collect());
        assert_eq!(fib.route_batch(&it), Ok(39));
        let shown = fib.show(0, Prefix::<V4>::around(0x0a00_0007, 32)).unwrap();
        let text = format!("{shown:?}");
        assert!(text.contains("10.0.0.7"), "{text}");
        assert_eq!(has(&fib).len(), 39);
    }

    #[test]
    fn what_the_operator_says_goes_before_and_the_kernels_route_is_still_known() {
        let mut fib = fib();
        let p = Prefix::<V4>::around(0x0a00_0000, 24);
        let drop = crate::source::Via::Unreachable.into();
        fib.set_route(0, p, RouteSource::Static, &[drop]).unwrap();
        fib.route_batch(&batch(vec![vec![via(1, "a")]], vec![(prefix(0), 0)]))
            .unwrap();
        let shown = fib.show(0, p).unwrap();
        assert_eq!(shown.sources, [RouteSource::Static, RouteSource::LcpRt]);
        assert_eq!(has(&fib)[&prefix(0)], [via(1, "a")]);
        let nowhere = ModelPath::to(PathTarget::Interface("c".into()));
        let refused = fib.route_batch(&batch(vec![vec![nowhere]], vec![(prefix(1), 0)]));
        assert!(refused.is_err() && has(&fib).len() == 1);
    }
}
