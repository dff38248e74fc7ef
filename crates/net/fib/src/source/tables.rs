//! All tables of one family, and the bindings of interfaces to tables.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use volley_model::IfAddress;
use volley_tables::{Domain, Publisher};

use super::fib::Fib;
use super::resolver::Resolver;
use super::table::Table;
use crate::dataplane::{DataPlane, Grow, Own, Slots, TableSet};
use crate::error::FibError;
use crate::family::{Family, Prefix, V4, V6};

pub(crate) struct Tables<F: Family> {
    domain: Arc<Domain>,
    tables: Vec<Option<Table<F>>>,
    indexes: Slots,
    by_number: BTreeMap<u32, u32>,
    none: F::Lpm,
    published: Publisher<TableSet<F>>,
    /// Own addresses of interfaces, as workers read them.
    own: Publisher<Own<F>>,
    bindings: Grow<AtomicU32>,
    /// Interfaces bound to another table than 0.
    bound: BTreeMap<u32, u32>,
    /// Prefixes, with the indexes of their tables, whose routes are still to be counted alone, or no longer.
    pub uncounted: Vec<(u32, Vec<Prefix<F>>)>,
}

impl<F: Family> Tables<F> {
    /// Table 0, still without its built-in routes.
    pub fn new(domain: &Arc<Domain>) -> Self {
        let none = F::lpm(domain);
        let first = TableSet {
            tables: Vec::new(),
            none: F::snap(&none),
        };
        let mut tables = Self {
            domain: domain.clone(),
            tables: Vec::new(),
            indexes: Slots::new(domain, 0),
            by_number: BTreeMap::new(),
            none,
            published: Publisher::new(domain, first),
            own: Publisher::new(domain, Vec::new()),
            bindings: Grow::new(domain, 64),
            bound: BTreeMap::new(),
            uncounted: Vec::new(),
        };
        tables.create(0);
        tables
    }

    fn create(&mut self, number: u32) -> u32 {
        let index = self.indexes.take();
        if self.tables.len() <= index as usize {
            self.tables.resize_with(index as usize + 1, || None);
        }
        self.tables[index as usize] = Some(Table::new(&self.domain, number));
        self.by_number.insert(number, index);
        self.publish();
        index
    }

    /// Adds an empty table and returns its index.
    pub fn add(&mut self, number: u32) -> Result<u32, FibError> {
        if self.by_number.contains_key(&number) {
            return Err(FibError::TableExists {
                af: F::AF,
                table: number,
            });
        }
        Ok(self.create(number))
    }

    /// Removes an unused table.
    pub fn remove(&mut self, index: u32) {
        if let Some(table) = self.tables.get_mut(index as usize).and_then(Option::take) {
            self.by_number.remove(&table.number);
            self.publish();
            self.indexes.give_back(index);
        }
    }

    fn publish(&mut self) {
        let snap = |t: &Option<Table<F>>| t.as_ref().map(|t| F::snap(&t.lpm));
        let tables = self.tables.iter().map(snap).collect();
        self.published.publish(TableSet {
            tables,
            none: F::snap(&self.none),
        });
    }

    /// Index of a table by its number.
    pub fn index(&self, number: u32) -> Result<u32, FibError> {
        let found = self.by_number.get(&number).copied();
        found.ok_or(FibError::NoTable {
            af: F::AF,
            table: number,
        })
    }

    pub fn get(&self, index: u32) -> Option<&Table<F>> {
        self.tables.get(index as usize).and_then(Option::as_ref)
    }

    pub fn get_mut(&mut self, index: u32) -> Option<&mut Table<F>> {
        self.tables.get_mut(index as usize).and_then(Option::as_mut)
    }

    /// Numbers and tables in order of number.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Table<F>)> {
        self.by_number
            .iter()
            .filter_map(|(number, index)| Some((*number, self.get(*index)?)))
    }

    /// Whether the route of any prefix is counted.
    pub fn has_marks(&self) -> bool {
        self.iter().any(|(_, table)| !table.counted.is_empty())
    }

    /// Binds an interface to a table.
    pub fn bind(&mut self, iface: u32, index: u32) {
        self.bindings
            .cell(iface as usize)
            .store(index, Ordering::Release);
        if index == 0 {
            self.bound.remove(&iface);
        } else {
            self.bound.insert(iface, index);
        }
    }

    /// Publishes the addresses of this family that an interface has.
    pub fn set_own(&mut self, iface: u32, addresses: &[IfAddress]) {
        let number = |a: &IfAddress| Some((F::number(a.addr())?, a.len()));
        let new: Box<[_]> = addresses.iter().filter_map(number).collect();
        let mut all = self.own.current().clone();
        let at = iface as usize;
        if all.get(at).map_or(&[][..], |own| own) == &new[..] {
            return;
        }
        if all.len() <= at {
            all.resize_with(at + 1, Box::default);
        }
        all[at] = new;
        self.own.publish(all);
    }

    /// Index of the table of an interface.
    pub fn table_of(&self, iface: u32) -> u32 {
        self.bound.get(&iface).copied().unwrap_or(0)
    }

    /// The list that forwards an address now; 0 if none does.
    pub fn cover(&self, index: u32, addr: F::Addr) -> u32 {
        self.get(index).map_or(0, |t| F::lookup(&t.lpm, addr))
    }

    pub fn reclaim(&mut self) {
        self.indexes.reclaim();
    }

    pub fn dataplane(&self, res: &Resolver) -> DataPlane<F> {
        DataPlane {
            tables: self.published.snap(),
            own: self.own.snap(),
            bindings: self.bindings.snap(),
            lbs: res.lbs.snap(),
            adjs: res.adjs.snap(),
            counters: res.lbs.counters.snaps(),
        }
    }
}

/// Access to one family's part of the FIB, for the FIB's generic methods.
pub trait Side: Family {
    #[doc(hidden)]
    #[expect(private_interfaces, reason = "the trait is sealed by its types")]
    fn side(fib: &Fib) -> (&Resolver, &Tables<Self>);
    #[doc(hidden)]
    #[expect(private_interfaces, reason = "the trait is sealed by its types")]
    fn side_mut(fib: &mut Fib) -> (&mut Resolver, &mut Tables<Self>);
}

impl Side for V4 {
    #[expect(private_interfaces, reason = "the trait is sealed by its types")]
    fn side(fib: &Fib) -> (&Resolver, &Tables<V4>) {
        (&fib.res, &fib.v4)
    }
    #[expect(private_interfaces, reason = "the trait is sealed by its types")]
    fn side_mut(fib: &mut Fib) -> (&mut Resolver, &mut Tables<V4>) {
        (&mut fib.res, &mut fib.v4)
    }
}

impl Side for V6 {
    #[expect(private_interfaces, reason = "the trait is sealed by its types")]
    fn side(fib: &Fib) -> (&Resolver, &Tables<V6>) {
        (&fib.res, &fib.v6)
    }
    #[expect(private_interfaces, reason = "the trait is sealed by its types")]
    fn side_mut(fib: &mut Fib) -> (&mut Resolver, &mut Tables<V6>) {
        (&mut fib.res, &mut fib.v6)
    }
}
