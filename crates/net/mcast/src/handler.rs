//! Multicast routes on the control thread, and the interface flags that follow from them.

use crate::mroute::{Groups, Mroute, Source};
use crate::show::{MrouteRow, MroutesReply, RouteOfGroup, ShowMroutes};
use crate::table::{Entry, MROUTES, Mfib, Name, Plane};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use volley_fib::{Family, Fib, FibError, V4, V6};
use volley_iface::{Change, Flag, IfIdx, IfTable, Interfaces, Registry, driver};
use volley_model::{Applied, ModelError, ObjectKind, Prefix, key_value};
use volley_object::{FieldType, ObjectKey};
use volley_tables::{Domain, Snap};

type Done = Result<Applied, ModelError>;

/// Routes of both families.
pub(crate) struct Control {
    v4: Mfib<V4>,
    v6: Mfib<V6>,
    table: Arc<IfTable>,
    /// Interfaces that accept multicast packets.
    taking: BTreeSet<u32>,
    /// Whether routes have changed since the last publication.
    changed: bool,
}

/// Access to one family's routes.
pub(crate) trait Side: Family {
    fn side(control: &Control) -> &Mfib<Self>;
    fn side_mut(control: &mut Control) -> &mut Mfib<Self>;
}

impl Side for V4 {
    fn side(control: &Control) -> &Mfib<V4> {
        &control.v4
    }
    fn side_mut(control: &mut Control) -> &mut Mfib<V4> {
        &mut control.v4
    }
}

impl Side for V6 {
    fn side(control: &Control) -> &Mfib<V6> {
        &control.v6
    }
    fn side_mut(control: &mut Control) -> &mut Mfib<V6> {
        &mut control.v6
    }
}

impl Control {
    pub fn new(domain: &Arc<Domain>, workers: usize, table: Arc<IfTable>) -> Self {
        Control {
            v4: Mfib::new(domain, workers),
            v6: Mfib::new(domain, workers),
            table,
            taking: BTreeSet::new(),
            changed: false,
        }
    }

    /// Snapshots for nodes.
    pub fn snaps(&self) -> (Snap<Plane<V4>>, Snap<Plane<V6>>) {
        (self.v4.snap(), self.v6.snap())
    }

    /// Updates the flag of each interface that accepts multicast packets.
    fn tell_interfaces(&mut self) {
        fn of<F: Family>(all: &Mfib<F>) -> impl Iterator<Item = u32> {
            all.iter()
                .flat_map(|(_, entry)| entry.accept.iter().copied())
        }
        let now: BTreeSet<u32> = of(&self.v4).chain(of(&self.v6)).collect();
        for gone in self.taking.difference(&now) {
            self.table.set(IfIdx(*gone), Flag::Multicast, false);
        }
        for new in now.difference(&self.taking) {
            self.table.set(IfIdx(*new), Flag::Multicast, true);
        }
        self.taking = now;
    }

    /// Removes a deleted interface from all routes.
    fn forget(&mut self, interface: IfIdx) {
        self.changed = true;
        self.v4.forget(interface.0);
        self.v6.forget(interface.0);
        self.publish();
    }

    /// Publishes all changes of routes, and the interface flags that follow from them.
    fn publish(&mut self) {
        if std::mem::take(&mut self.changed) {
            self.v4.publish();
            self.v6.publish();
            self.tell_interfaces();
        }
    }
}

/// Carries out requests about multicast routes, and answers queries.
#[derive(Clone)]
pub(crate) struct MrouteHandler {
    control: Rc<RefCell<Control>>,
    fib: Rc<RefCell<Fib>>,
    interfaces: Rc<RefCell<Interfaces>>,
}

impl MrouteHandler {
    pub fn new(
        control: Rc<RefCell<Control>>,
        fib: Rc<RefCell<Fib>>,
        interfaces: Rc<RefCell<Interfaces>>,
    ) -> Self {
        let ours = control.clone();
        interfaces.borrow_mut().listen(move |change| {
            if let Change::Deleted(gone) = change {
                ours.borrow_mut().forget(gone.index);
            }
        });
        MrouteHandler {
            control,
            fib,
            interfaces,
        }
    }

    fn indexes(&self, names: &BTreeSet<String>) -> Result<Vec<u32>, ModelError> {
        let all = self.interfaces.borrow();
        let index = |name: &String| {
            let index = all.index(name);
            index
                .map(|index| index.0)
                .map_err(|e| driver::to_model_error(&all, e))
        };
        names.iter().map(index).collect()
    }

    /// Table, group and source of an object's key.
    fn name<F: Family>(&self, key: &ObjectKey) -> Result<Name<F>, ModelError> {
        let wrong = |why: &dyn std::fmt::Display| ModelError::invalid(key, why);
        let mixed = || wrong(&"mixes IP versions");
        let at = |at: usize| key.values().get(at);
        let group = at(0).and_then(Groups::from_value).ok_or_else(mixed)?.0;
        let source = at(1).and_then(Source::from_value).ok_or_else(mixed)?.0;
        let table = self.fib.borrow().table_index(F::AF, key_value(key, 2));
        let source = source.map(|source| F::number(source).ok_or_else(mixed));
        Ok(Name {
            table: table.map_err(|e: FibError| wrong(&e))?,
            group: F::number(group.addr()).ok_or_else(mixed)?,
            len: group.len(),
            source: source.transpose()?,
        })
    }

    /// Sets the route of a key; none removes it. The end of a slice publishes the change ([`Registry::publish_later`]). Packets in flight are forwarded by the old or the new route.
    fn put<F: Side>(&self, key: &ObjectKey, now: Option<&Mroute>) -> Done {
        let name = self.name::<F>(key)?;
        let Some(it) = now else {
            let mut control = self.control.borrow_mut();
            if !F::side_mut(&mut control).remove(&name) {
                return Err(ModelError::not_found(ObjectKind::Object, key, [""; 0]));
            }
            control.changed = true;
            return Ok(Applied::one());
        };
        let (accept, forward) = (self.indexes(&it.accept)?, self.indexes(&it.forward)?);
        let mut control = self.control.borrow_mut();
        let done = F::side_mut(&mut control).set(name, accept, forward);
        done.map_err(|_| {
            let most = MROUTES as u64;
            ModelError::limit("number of multicast routes", most + 1, most)
        })?;
        control.changed = true;
        Ok(Applied::one())
    }

    /// Registers the handler as the owner of multicast routes and of their query.
    pub fn own(self, registry: &mut Registry) {
        let control = self.control.clone();
        registry.publish_later::<Mroute>(move || control.borrow_mut().publish());
        let shown = self.clone();
        registry.answer(move |query: ShowMroutes| match query.family {
            volley_model::Family::V4 => shown.rows::<V4>(query.table),
            volley_model::Family::V6 => shown.rows::<V6>(query.table),
        });
        registry.own(move |key, now: Option<Mroute>| {
            let group = key.values().first().and_then(Groups::from_value);
            match group.map(|it| it.0.family()) {
                Some(volley_model::Family::V6) => self.put::<V6>(key, now.as_ref()),
                _ => self.put::<V4>(key, now.as_ref()),
            }
        });
    }

    fn rows<F: Side>(&self, table: Option<u32>) -> Result<MroutesReply, ModelError> {
        let (control, fib) = (self.control.borrow(), self.fib.borrow());
        if let Some(number) = table {
            let index = fib.table_index(F::AF, number);
            index.map_err(|e| ModelError::invalid(format!("table {number}"), e))?;
        }
        let all = self.interfaces.borrow();
        // Sorted by name: the order of creation must not be visible.
        let names = |of: &[u32]| {
            let mut names: Vec<_> = of.iter().map(|index| all.name(*index)).collect();
            names.sort_unstable();
            names
        };
        let row = |(name, entry): (&Name<F>, &Entry)| {
            let number = fib.table_number(F::AF, name.table)?;
            let sums = entry.counts.sums();
            Some(MrouteRow {
                route: RouteOfGroup {
                    group: Prefix::masked(F::ip(name.group), name.len).ok()?,
                    source: name.source.map(F::ip),
                    table: number,
                    accept: names(&entry.accept),
                    forward: names(&entry.forward),
                },
                packets: sums.packets,
                bytes: sums.bytes,
                wrong_interface: sums.wrong,
            })
        };
        let mut routes: Vec<MrouteRow> = F::side(&control).iter().filter_map(row).collect();
        routes.retain(|row| table.is_none_or(|table| row.route.table == table));
        routes.sort_by_key(|row| (row.route.table, row.route.group, row.route.source));
        Ok(MroutesReply { routes })
    }
}
