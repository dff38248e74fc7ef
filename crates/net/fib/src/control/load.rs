//! Loading of route files: their next hops become paths, then the routes of both families are installed, or none.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Instant;

use volley_model::{Applied, ModelError};

use super::Done;
use crate::error::FibError;
use crate::family::{Af, Prefix, V4, V6};
use crate::load::{Hops, ReadOptions, Routes, read_routes};
use crate::route_file::{Fold, RouteFile};
use crate::source::{Fib, Path, Side, Source, Via};

/// Routes of one family, ready for the FIB: paths, and rows with indexes of paths.
struct Ready<F: Side> {
    paths: Vec<Vec<Path>>,
    rows: Vec<(F::Addr, u8, u32)>,
}

impl Fib {
    /// Loads the routes of a file in addition to those of other files in its table.
    pub(crate) fn load_file(&mut self, load: &RouteFile) -> Done {
        let start = Instant::now();
        let options = ReadOptions {
            format: load.format,
            only: load.only(),
            limit: load.limit,
        };
        let read = read_routes(&load.path, options);
        let Routes { v4, v6, hops, .. } = self.model_result(read)?;
        let v4 = self.ready::<V4>(load, v4, &hops)?;
        let v6 = self.ready::<V6>(load, v6, &hops)?;
        let new = self.both(load, &v4, &v6)?;
        let all = v4.rows.len() + v6.rows.len();
        let secs = start.elapsed().as_secs_f64();
        let note = format!("loaded {all} routes in {secs:.2} s, {new} of them new");
        Ok(Applied::changed(all as u64).note(note))
    }

    /// Removes all routes of source `file` from a table, in both families.
    pub(crate) fn unload_files(&mut self, table: u32) -> Done {
        let gone4 = self.unload_in::<V4>(table);
        let gone6 = self.unload_in::<V6>(table);
        match (gone4, gone6) {
            (Err(e), Err(_)) => self.model_result(Err(e)),
            (a, b) => Ok(Applied::changed(a.unwrap_or(0) + b.unwrap_or(0))),
        }
    }

    fn unload_in<F: Side>(&mut self, table: u32) -> Result<u64, FibError> {
        let index = self.table_index(F::AF, table)?;
        let routes = self.table::<F>(index).map(|t| t.routes.sorted());
        let mut gone = 0;
        for (prefix, _) in routes.unwrap_or_default() {
            gone += u64::from(self.remove_in(index, prefix, Source::File));
        }
        Ok(gone)
    }

    /// The smaller family is loaded first, since it may have to be rolled back.
    fn both(
        &mut self,
        load: &RouteFile,
        v4: &Ready<V4>,
        v6: &Ready<V6>,
    ) -> Result<usize, ModelError> {
        if v4.rows.len() < v6.rows.len() {
            self.pair(load.table, v4, v6)
        } else {
            self.pair(load.table, v6, v4)
        }
    }

    fn pair<A: Side, B: Side>(
        &mut self,
        table: u32,
        first: &Ready<A>,
        second: &Ready<B>,
    ) -> Result<usize, ModelError> {
        let before = self.before(table, first)?;
        let new = self.put_in(table, first)?;
        match self.put_in(table, second) {
            Ok(more) => Ok(new + more),
            Err(e) => {
                let index = self.table_index(A::AF, table);
                self.take_back(self.model_result(index)?, Source::File, before);
                Err(e)
            }
        }
    }

    fn before<F: Side>(
        &self,
        table: u32,
        ready: &Ready<F>,
    ) -> Result<Vec<super::Undo<F>>, ModelError> {
        if ready.rows.is_empty() {
            return Ok(Vec::new());
        }
        let index = self.table_index(F::AF, table);
        let index = self.model_result(index)?;
        let undo = |&(addr, len, _): &(F::Addr, u8, u32)| {
            let prefix = Prefix::around(addr, len);
            (prefix, self.paths_of(index, prefix, Source::File))
        };
        Ok(ready.rows.iter().map(undo).collect())
    }

    fn put_in<F: Side>(&mut self, table: u32, ready: &Ready<F>) -> Result<usize, ModelError> {
        if ready.rows.is_empty() {
            return Ok(0);
        }
        let done = self.load::<F>(table, Source::File, &ready.paths, &ready.rows);
        self.model_result(done)
    }

    /// Builds the paths of every rank that occurs.
    fn ready<F: Side>(
        &self,
        load: &RouteFile,
        mut rows: Vec<(F::Addr, u8, u32)>,
        hops: &Hops,
    ) -> Result<Ready<F>, ModelError> {
        let mut paths = Vec::new();
        if rows.is_empty() {
            return Ok(Ready { paths, rows });
        }
        let index = self.table_index(F::AF, load.table);
        let index = self.model_result(index)?;
        let (count, fold) = self.choices(load, hops)?;
        let mut places: Vec<Option<u32>> = vec![None; count as usize];
        for row in &mut rows {
            let choice = fold.index(row.2.into(), count);
            let place = &mut places[choice as usize];
            let at = match *place {
                Some(at) => at,
                None => {
                    paths.push(self.choice(F::AF, index, load, hops, choice)?);
                    *place.insert(paths.len() as u32 - 1)
                }
            };
            row.2 = at;
        }
        Ok(Ready { paths, rows })
    }

    /// Number of different paths, and how ranks are folded into them.
    fn choices(&self, load: &RouteFile, hops: &Hops) -> Result<(u64, Fold), ModelError> {
        match (load.next_hops, load.paths.len() as u64) {
            (Some(_), _) => Ok((u64::from(load.count).max(1), load.fold)),
            (None, 0) if hops.are_numbers() => Err(ModelError::file(
                &load.path,
                "its next hops are numbers: say which paths they mean",
            )),
            (None, 0) => Ok((hops.count().max(1), Fold::Modulo)),
            (None, count) => Ok((count, load.fold)),
        }
    }

    fn choice(
        &self,
        af: Af,
        index: u32,
        load: &RouteFile,
        hops: &Hops,
        choice: u64,
    ) -> Result<Vec<Path>, ModelError> {
        let at = choice as usize;
        if let Some(first) = load.next_hops {
            return self.next_hop(af, load, first, choice);
        }
        if let Some(path) = load.paths.get(at) {
            return self.paths(af, load.table, std::slice::from_ref(path));
        }
        let none = || ModelError::invalid("the list of next hops", "it is empty");
        let addr = *hops.addresses.get(at).ok_or_else(none)?;
        Ok(vec![Via::Recursive { addr, table: index }.into()])
    }

    /// The path over the next hop of a rank; rank 0 is the first next hop.
    fn next_hop(
        &self,
        af: Af,
        load: &RouteFile,
        first: IpAddr,
        rank: u64,
    ) -> Result<Vec<Path>, ModelError> {
        let no = |why| ModelError::invalid("the list of next hops", why);
        if Af::of(first) != af {
            let why = FibError::Path {
                path: format!("from {first}"),
                why: "the file has routes of the other IP version: load one family at a time",
            };
            return self.model_result(Err(why));
        }
        let interfaces = &load.interfaces;
        let name = interfaces.get(rank as usize % interfaces.len().max(1));
        let name = name.ok_or_else(|| no("no interface"))?;
        let addr = further(first, rank);
        let addr = addr.ok_or_else(|| no("it runs over the end of the addresses"))?;
        let iface = self.named(name)?;
        Ok(vec![Via::NextHop { addr, iface }.into()])
    }
}

/// The address `n` after `addr`.
fn further(addr: IpAddr, n: u64) -> Option<IpAddr> {
    Some(match addr {
        IpAddr::V4(a) => {
            Ipv4Addr::from_bits(a.to_bits().checked_add(u32::try_from(n).ok()?)?).into()
        }
        IpAddr::V6(a) => Ipv6Addr::from_bits(a.to_bits().checked_add(n.into())?).into(),
    })
}
