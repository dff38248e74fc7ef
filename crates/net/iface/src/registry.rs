//! The registry through which a crate registers its nodes and handlers.

use crate::capture_hook::DropCounter;
use crate::node::interface_output::{InterfaceOutput, OUTPUT_ARC};
use crate::show::{InterfaceRow, ShowInterfaces};
use crate::show_queues::{ShowFeatures, ShowHardware, ShowRxPlacement};
use crate::{IfIdx, IfTable, InterfaceHandler, Interfaces};
use std::any::{Any, TypeId};
use std::cell::RefCell;
use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::rc::Rc;
use volley_graph::{Engine, GraphError, Node, Processes};
use volley_model::{Applied, Handler, IfAddress, ModelError, Owners, Request};
use volley_object::{DefinitionError, Object, ObjectKey, Query, Run, Stream, Verb};

type Note = Box<dyn Fn(&mut InterfaceRow)>;
type Publish = Box<dyn Fn()>;

/// What features add to the rows of `show interfaces`, such as addresses.
#[derive(Clone, Default)]
pub struct InterfaceNotes(Rc<RefCell<Vec<Note>>>);

impl InterfaceNotes {
    /// Registers a function that adds to each row.
    pub fn push(&self, note: impl Fn(&mut InterfaceRow) + 'static) {
        self.0.borrow_mut().push(Box::new(note));
    }

    /// The addresses of an interface, in the order they were added, and behind them the automatic ones.
    pub fn addresses(&self, interface: IfIdx) -> Vec<IfAddress> {
        let mut row = InterfaceRow {
            index: interface.0,
            ..InterfaceRow::default()
        };
        self.add(std::slice::from_mut(&mut row));
        [row.addresses, row.automatic].concat()
    }

    pub(crate) fn add(&self, rows: &mut [InterfaceRow]) {
        for row in rows {
            self.0.borrow().iter().for_each(|note| note(row));
        }
    }
}

/// The gateways of interfaces: the next hops of the default routes of IPv4 that leave by them.
#[derive(Clone)]
pub struct Gateways(Rc<dyn Fn(IfIdx) -> Option<Ipv4Addr>>);

impl Gateways {
    /// Gateways by a function.
    pub fn new(of: impl Fn(IfIdx) -> Option<Ipv4Addr> + 'static) -> Self {
        Gateways(Rc::new(of))
    }

    /// The gateway of an interface.
    pub fn of(&self, interface: IfIdx) -> Option<Ipv4Addr> {
        (self.0)(interface)
    }
}

/// Functions that publish what the requests of their class have changed. For a table that is published as a whole: a
/// transaction with many requests publishes it once per slice, because a copy for each request would take time and memory
/// that grow with the square of their number.
#[derive(Default)]
pub struct Publishers(Vec<(&'static str, Publish)>);

impl Publishers {
    /// Publishes the changes of all classes.
    pub fn publish(&self) {
        self.0.iter().for_each(|(_, publish)| publish());
    }

    /// Publishes the changes of all classes but the one of a request: other requests may depend on them.
    pub fn publish_before(&self, request: &Request) {
        let others = self
            .0
            .iter()
            .filter(|(class, _)| request.object_of(class).is_none());
        others.for_each(|(_, publish)| publish());
    }
}

/// The parts of a daemon during its start. On the control thread.
pub struct Registry {
    /// The graph.
    pub engine: Rc<RefCell<Engine>>,
    /// The interfaces.
    pub interfaces: Rc<RefCell<Interfaces>>,
    /// Process nodes.
    pub processes: Processes,
    /// Handlers of requests, in the order in which the daemon tries them.
    pub handlers: Vec<Box<dyn Handler>>,
    /// Owners of classes of objects, of queries and of verbs.
    pub owners: Owners,
    /// Definitions that were refused: the daemon does not start with one.
    pub refused: Vec<DefinitionError>,
    /// What features add to the rows of `show interfaces`.
    pub interface_notes: InterfaceNotes,
    /// Functions that publish the changes of many steps at once.
    pub publishers: Publishers,
    /// What crates registered earlier provide for later ones, by type.
    provided: HashMap<TypeId, Box<dyn Any>>,
}

impl Registry {
    /// A registry around a new engine.
    pub fn new(engine: Engine) -> Self {
        let table = IfTable::with_workers(engine.settings().workers, engine.worker_set().clone());
        Registry {
            engine: Rc::new(RefCell::new(engine)),
            interfaces: Rc::new(RefCell::new(Interfaces::new(table))),
            processes: Processes::default(),
            handlers: Vec::new(),
            owners: Owners::default(),
            refused: Vec::new(),
            interface_notes: InterfaceNotes::default(),
            publishers: Publishers::default(),
            provided: HashMap::new(),
        }
    }

    /// Provides a handle for crates that register later, such as that of the routes; so every feature has the same `register`.
    pub fn provide<T: Clone + 'static>(&mut self, handle: T) {
        self.provided.insert(TypeId::of::<T>(), Box::new(handle));
    }

    /// A handle that an earlier crate provides; otherwise an error that names the type.
    pub fn provided<T: Clone + 'static>(&self) -> Result<T, GraphError> {
        let found = self.provided.get(&TypeId::of::<T>());
        let handle = found.and_then(|it| it.downcast_ref::<T>()).cloned();
        handle.ok_or(GraphError::NotProvided(std::any::type_name::<T>()))
    }

    /// Makes `apply` the owner of a class of objects, see [`Owners::own`].
    pub fn own<T: Object + 'static>(
        &mut self,
        apply: impl FnMut(&ObjectKey, Option<T>) -> Result<Applied, ModelError> + 'static,
    ) {
        self.refused.extend(self.owners.own(apply).err());
    }

    /// As [`Registry::own`], for a setting of an interface: `apply` gets the interface in place of the key's first value.
    pub fn own_setting<T: Object + 'static>(
        &mut self,
        mut apply: impl FnMut(IfIdx, &ObjectKey, Option<T>) -> Result<Applied, ModelError> + 'static,
    ) {
        let interfaces = self.interfaces.clone();
        self.own(move |key, now| {
            let index = {
                let all = interfaces.borrow();
                let index = all.index(key.owner().unwrap_or_default());
                index.map_err(|e| crate::driver::to_model_error(&all, e))?
            };
            apply(index, key, now)
        });
    }

    /// Registers the function that publishes what the requests of a class have changed. It is called at the end of each slice
    /// of a transaction and before a request of another class, also if nothing has changed.
    pub fn publish_later<T: Object + 'static>(&mut self, publish: impl Fn() + 'static) {
        self.publishers.0.push((T::CLASS, Box::new(publish)));
    }

    /// Makes `answer` the owner of a query, see [`Owners::answer`].
    pub fn answer<Q: Query + 'static>(
        &mut self,
        answer: impl FnMut(Q) -> Result<Q::Reply, ModelError> + 'static,
    ) {
        self.refused.extend(self.owners.answer(answer).err());
    }

    /// Makes `begin` the owner of a query whose reply comes in items, see [`Owners::stream`].
    pub fn stream<Q: Stream + 'static, R: Run<Reply = Q::Reply> + 'static>(
        &mut self,
        begin: impl FnMut(Q) -> Result<R, ModelError> + 'static,
    ) {
        self.refused.extend(self.owners.stream(begin).err());
    }

    /// Makes `perform` the owner of a verb, or one of its owners, see [`Owners::perform`].
    pub fn perform<V: Verb + 'static>(
        &mut self,
        perform: impl FnMut(V) -> Result<Applied, ModelError> + 'static,
    ) {
        self.refused.extend(self.owners.perform(perform).err());
    }

    /// The daemon for drivers.
    pub fn host(&self) -> crate::driver::DriverHost {
        crate::driver::DriverHost {
            engine: self.engine.clone(),
            interfaces: self.interfaces.clone(),
            processes: self.processes.clone(),
        }
    }

    /// The interface table of the workers.
    pub fn table(&self) -> std::sync::Arc<IfTable> {
        self.interfaces.borrow().table().clone()
    }
}

/// Registers this crate: `interface-output` and the requests for all interfaces.
pub fn register(registry: &mut Registry) -> Result<(), GraphError> {
    let table = registry.table();
    {
        let mut engine = registry.engine.borrow_mut();
        engine.set_drop_hook(std::sync::Arc::new(DropCounter(table.clone())));
        engine.set_gso_names(crate::gso::NAMES);
        let arc = engine.arc(
            OUTPUT_ARC,
            InterfaceOutput::NAME,
            crate::node::interface_tx::InterfaceTx::NAME,
        );
        let size = engine.settings().vector_size;
        let output_table = table.clone();
        engine.add(InterfaceOutput::NAME, move |_| {
            InterfaceOutput::new(output_table.clone(), arc, size)
        })?;
        engine.add(crate::node::interface_tx::InterfaceTx::NAME, move |_| {
            crate::node::interface_tx::InterfaceTx::new(table.clone(), size)
        })?;
    }
    let handler = InterfaceHandler::new(registry);
    crate::model::own(registry, &handler);
    answer(registry, &handler);
    registry.handlers.push(Box::new(handler));
    Ok(())
}

/// Makes the handler the owner of the queries for interfaces.
fn answer(registry: &mut Registry, handler: &InterfaceHandler) {
    let shown = handler.clone();
    registry.answer(move |asked: ShowInterfaces| shown.shown(&asked));
    let shown = handler.clone();
    registry.answer(move |asked: ShowHardware| shown.hardware(&asked));
    let shown = handler.clone();
    registry.answer(move |asked: ShowRxPlacement| shown.placement(&asked));
    let shown = handler.clone();
    registry.answer(move |asked: ShowFeatures| shown.features(&asked));
}
