//! The assembled router: engine, interfaces, FIB, nodes, drivers, and the owner of each request.
//!
//! Everything here is used on the control thread. [`Stack::apply`] changes the state that workers will use; [`Stack::settled`]
//! reports when all of them use it.

use crate::latency::Latencies;
use crate::observe::{Observer, memory};
use crate::settings::{EngineSettings, IsaChoice};
use crate::show::{MemoryReply, ShowMemory};
use crate::watch::Log;
use crate::workers::WorkerManager;
use std::cell::RefCell;
use std::rc::Rc;
use volley_fib::{Address, Fib, IfInfo};
use volley_graph::buf::BufError;
use volley_graph::{Clock, Domain, Engine, GraphError, Level, Processes, Settings, Worker};
use volley_iface::{Change, Gateways, Interface, Interfaces, Publishers, Registry};
use volley_model::{Applied, Family, Handler, ModelError, ObjectKind, Owners, Request};
use volley_object::{
    Answer, Asked, DefinitionError, FieldError, Object, ObjectKey, Query, Run, Running, Stream,
    Verb,
};
use volley_rights::Rights;

/// Why Volley cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StackError {
    /// The graph is not closed, or too large.
    #[error("the graph cannot be built: {0}")]
    Graph(#[from] GraphError),
    /// There is no memory for packet buffers.
    #[error(transparent)]
    Buffers(#[from] BufError),
    /// The processor lacks the configured instruction-set level.
    #[error("isa: {0}")]
    Level(#[from] volley_simd::LevelError),
    /// memif cannot be set up.
    #[error(transparent)]
    Memif(#[from] volley_memif::MemifError),
    /// A class of objects contradicts itself or another one.
    #[error(transparent)]
    Definition(#[from] volley_object::DefinitionError),
    /// A class of objects, a query or a verb has no owner.
    #[error("{0} has no owner: the crate that defines it does not register one")]
    Unowned(String),
    /// A setting is out of range.
    #[error("engine.{0}")]
    Setting(#[from] FieldError),
    /// A request or a query was refused.
    #[error(transparent)]
    Refused(#[from] ModelError),
}

/// The parts of the router, on the control thread.
pub struct Stack {
    /// The graph.
    pub engine: Rc<RefCell<Engine>>,
    /// Adds and removes workers.
    pub worker_set: Rc<RefCell<WorkerManager>>,
    /// The interfaces.
    pub interfaces: Rc<RefCell<Interfaces>>,
    /// Routes, neighbours, addresses.
    pub fib: Rc<RefCell<Fib>>,
    /// Process nodes.
    pub processes: Processes,
    /// The packet generator.
    pub pg: volley_pg::Pg,
    pub(crate) neighbors: volley_neighbor::Neighbors,
    pub(crate) lcp: volley_lcp::LcpTaps,
    /// The rights of clients.
    pub rights: Rights,
    /// Plugins.
    pub plugins: volley_plugin_host::Plugins,
    /// Captures.
    pub pcap: volley_pcap::Pcap,
    /// Graphs in Click's language.
    pub click: volley_click::Click,
    _memif: volley_memif::Memif,
    _multicast: volley_mcast::Multicast,
    handlers: RefCell<Vec<Box<dyn Handler>>>,
    /// Owners of classes of objects.
    owners: RefCell<Owners>,
    /// Publish the changes of a slice of a transaction.
    pub(crate) publishers: Publishers,
    /// The latest requests that were carried out, for `show pauses`.
    log: Rc<RefCell<Log>>,
    /// How long replies took.
    pub(crate) latencies: Rc<Latencies>,
}

/// The level that a configuration requests.
pub fn level(choice: IsaChoice) -> Result<Level, volley_simd::LevelError> {
    choice.to_string().parse()
}

fn engine_settings(settings: &EngineSettings, clock: Clock) -> Result<Settings, StackError> {
    Ok(Settings {
        vector_size: settings.vector_room() as usize,
        buffers: settings.buffers as usize,
        level: level(settings.isa)?,
        workers: settings.places() as usize,
        clock,
    })
}

/// The limits of memory for peers that share memory.
fn peer_limits(settings: &EngineSettings) -> volley_shm::Limits {
    let usual = volley_shm::Limits::of_machine();
    let bytes = |mb: Option<u32>, usual| mb.map_or(usual, |mb| u64::from(mb) << 20);
    volley_shm::Limits {
        memory: bytes(settings.peer_memory_mb, usual.memory),
        charge: bytes(settings.peer_charge_mb, usual.charge),
    }
}

/// The registry and the FIB, on which everything else depends.
fn foundation(
    settings: &EngineSettings,
    clock: Clock,
) -> Result<(Registry, Rc<RefCell<Fib>>), StackError> {
    settings.instance()?;
    peer_limits(settings).set();
    let pool = volley_graph::pool(settings.buffers as usize)?;
    let domain = Domain::new();
    let engine_settings = engine_settings(settings, clock)?;
    let fib = Fib::for_workers(&domain, settings.places() as usize);
    let fib = Rc::new(RefCell::new(fib));
    let mut registry = Registry::new(Engine::new(engine_settings, pool, domain)?);
    volley_fib::own(&mut registry.owners, &fib)?;
    Ok((registry, fib))
}

/// Registers the queries about the engine, its workers and the control plane.
fn observed(
    registry: &mut Registry,
    worker_set: &Rc<RefCell<WorkerManager>>,
    fib: &Rc<RefCell<Fib>>,
) -> (Rc<RefCell<Log>>, Rc<Latencies>) {
    Observer::register(registry, worker_set);
    crate::perfmon::register(registry);
    answer_memory(registry, fib);
    let log = crate::watch::register(registry, worker_set);
    (log, crate::latency::register(registry))
}

/// Answers `show memory` for a router without a configuration: the daemon knows what its configuration takes.
fn answer_memory(registry: &mut Registry, fib: &Rc<RefCell<Fib>>) {
    let (engine, fib) = (registry.engine.clone(), fib.clone());
    registry.answer(move |_: ShowMemory| Ok(memory_of(&engine.borrow(), &fib.borrow(), 0)));
}

/// The memory of this process; `configuration`: bytes of the objects of the configuration.
fn memory_of(engine: &Engine, fib: &Fib, configuration: u64) -> MemoryReply {
    let sizes = memory::Sizes {
        buffers: memory::of_buffers(&engine.pool().reports()),
        fib: fib.stats(),
        configuration,
    };
    memory::report(memory::Kernel::of_process(), &sizes)
}

impl Stack {
    /// Assembles the router; its workers can then be stepped or started.
    pub fn new(
        settings: &EngineSettings,
        clock: Clock,
    ) -> Result<(Stack, Vec<Worker>), StackError> {
        crate::objects::register()?;
        let (mut registry, fib) = foundation(settings, clock)?;
        let rights = Rights::default();
        rights.own(&mut registry.owners)?;
        let size = settings.vector_size as usize;
        registry.engine.borrow_mut().set_vector_size(size)?;
        let processes = registry.processes.clone();
        // First: the others are notified when a worker is added or removed.
        let worker_set = crate::workers::register(&mut registry);
        registry.handlers.push(Box::new(FibHandler(fib.clone())));
        note_addresses(&registry, &fib);
        volley_iface::register(&mut registry)?;
        let plugins = plugins(&mut registry)?;
        volley_ethernet::register(&mut registry)?;
        // Before drivers: a parent must wait for its sub-interfaces.
        volley_vlan::register(&mut registry)?;
        volley_l2::register(&mut registry)?;
        // Before IP, whose error nodes read the meaning of all other nodes' drops.
        let lcp = volley_lcp::register(&mut registry)?;
        let neighbors = volley_neighbor::register(&mut registry, fib.clone())?;
        let multicast = volley_mcast::register(&mut registry, fib.clone(), neighbors.sender())?;
        features(&mut registry, &fib)?;
        ip(&mut registry, &fib)?;
        neighbors.listen(warn_of_neighbor);
        let pg = volley_pg::register(&mut registry)?;
        seed(&registry, &pg, settings);
        let (pcap, click) = captures(&mut registry)?;
        let memif = drivers(&mut registry, settings)?;
        follow_interfaces(&registry.interfaces, &fib);
        crate::notice::register(&mut registry)?;
        let first = settings.workers as usize;
        let workers = registry.engine.borrow_mut().build_first(first)?;
        let (log, latencies) = observed(&mut registry, &worker_set, &fib);
        let owners = complete(&mut registry)?;
        let Registry {
            engine,
            interfaces,
            handlers,
            publishers,
            ..
        } = registry;
        Ok((
            Stack {
                engine,
                worker_set,
                interfaces,
                fib,
                processes,
                pg,
                neighbors,
                lcp,
                rights,
                plugins,
                pcap,
                click,
                _memif: memif,
                _multicast: multicast,
                handlers: RefCell::new(handlers),
                owners: RefCell::new(owners),
                publishers,
                log,
                latencies,
            },
            workers,
        ))
    }

    /// Carries out one change: all of it, or none and an error.
    pub fn apply(&self, request: &Request) -> Result<Applied, ModelError> {
        let done = self.apply_step(request);
        self.finish();
        done
    }

    /// One step of a transaction. The consequences of changed addresses are computed once for the whole transaction
    /// ([`Stack::finish`]); computing them for each address would take time that grows with the square of their number.
    pub(crate) fn apply_step(&self, request: &Request) -> Result<Applied, ModelError> {
        self.publishers.publish_before(request);
        let of_address = request.object_of(Address::CLASS).is_some();
        if of_address {
            self.fib.borrow_mut().tell_own_later();
        } else {
            self.conclude();
        }
        let done = self.carry_out_step(request);
        if !of_address {
            self.conclude();
        }
        done
    }

    /// Ends a transaction: publishes its changes, and computes the consequences of changed addresses.
    pub(crate) fn finish(&self) {
        self.publishers.publish();
        self.conclude();
    }

    /// Computes the consequences of changed addresses.
    fn conclude(&self) {
        self.fib.borrow_mut().tell_own_now();
        self.neighbors.refresh();
        self.engine.borrow().wake();
    }

    fn carry_out_step(&self, request: &Request) -> Result<Applied, ModelError> {
        request.validate()?;
        self.log.borrow_mut().begin(request);
        let done = self.lcp_step(request);
        let done = done.unwrap_or_else(|| self.carry_out(request));
        self.log.borrow_mut().end();
        done
    }

    /// Makes `apply` the owner of a class that is added while the daemon runs.
    pub(crate) fn own<T: Object + 'static>(
        &self,
        apply: impl FnMut(&ObjectKey, Option<T>) -> Result<Applied, ModelError> + 'static,
    ) -> Result<(), DefinitionError> {
        self.owners.borrow_mut().own(apply).map(|_class| ())
    }

    /// Makes `answer` the owner of a query that is added while the daemon runs.
    pub(crate) fn own_query<Q: Query + 'static>(
        &self,
        answer: impl FnMut(Q) -> Result<Q::Reply, ModelError> + 'static,
    ) -> Result<(), DefinitionError> {
        self.owners.borrow_mut().answer(answer)
    }

    /// Makes `begin` the owner of a query, whose reply comes in items, that is added while the daemon runs.
    pub(crate) fn own_stream<Q: Stream + 'static, R: Run<Reply = Q::Reply> + 'static>(
        &self,
        begin: impl FnMut(Q) -> Result<R, ModelError> + 'static,
    ) -> Result<(), DefinitionError> {
        self.owners.borrow_mut().stream(begin)
    }

    /// The memory of this process; `configuration`: bytes of the objects of the configuration.
    pub(crate) fn memory(&self, configuration: u64) -> MemoryReply {
        memory_of(&self.engine.borrow(), &self.fib.borrow(), configuration)
    }

    /// Begins a run of a query whose reply comes in items.
    pub(crate) fn begin(&self, asked: &Asked) -> Result<Running, ModelError> {
        self.owners.borrow_mut().begin(asked)
    }

    /// Makes `perform` an owner of a verb that is added while the daemon runs.
    pub(crate) fn perform<V: Verb + 'static>(
        &self,
        perform: impl FnMut(V) -> Result<Applied, ModelError> + 'static,
    ) -> Result<(), DefinitionError> {
        self.owners.borrow_mut().perform(perform)
    }

    /// Removes the owners of a verb.
    pub(crate) fn retire(&self, verb: &str) {
        self.owners.borrow_mut().retire(verb);
    }

    /// Removes the owner of a query.
    pub(crate) fn withdraw(&self, query: &str) {
        self.owners.borrow_mut().withdraw(query);
    }

    /// Answers a query of a feature's crate.
    pub fn ask<Q: Query>(&self, query: &Q) -> Result<Q::Reply, ModelError> {
        self.owners.borrow_mut().ask(query)
    }

    /// Removes the owner of a class.
    pub(crate) fn disown(&self, class: &str) {
        self.owners.borrow_mut().disown(class);
    }

    /// Refuses a request that cannot be carried out now, though it may be later: see [`Handler::ready`].
    pub fn ready(&self, request: &Request) -> Result<(), ModelError> {
        let mut handlers = self.handlers.borrow_mut();
        let answer = handlers.iter_mut().find_map(|h| h.ready(request));
        answer.unwrap_or(Ok(()))
    }

    /// Carries out one change with its consequences in the graph, either for a client or as a part of a larger change.
    pub(crate) fn carry_out(&self, request: &Request) -> Result<Applied, ModelError> {
        let gone = match request {
            Request::InterfaceDelete { name } => self.interfaces.borrow().index(name).ok(),
            _ => None,
        };
        let done = self.handed_out(request)?;
        if let Some(index) = gone {
            // A full queue of changes can refuse this: workers then get it with the next change, and until then no packet comes
            // from a deleted interface.
            let _ = self.engine.borrow_mut().clear_features(index.0);
        }
        Ok(done)
    }

    /// Calls the owner of the request's object, or the first handler that accepts the request.
    fn handed_out(&self, request: &Request) -> Result<Applied, ModelError> {
        if let Some(done) = self.owners.borrow_mut().apply(request) {
            return done;
        }
        let mut handlers = self.handlers.borrow_mut();
        let done = handlers.iter_mut().find_map(|it| it.apply(request));
        done.unwrap_or_else(|| Err(self.nobody(request)))
    }

    /// The error for a request without an owner: it names something that does not exist.
    fn nobody(&self, request: &Request) -> ModelError {
        let known: Vec<String> = self
            .interfaces
            .borrow()
            .iter()
            .map(|i| i.name.clone())
            .collect();
        match request {
            Request::InterfaceDelete { name } => {
                ModelError::not_found(ObjectKind::Interface, name.clone(), known)
            }
            other => ModelError::unsupported(other, "a command that `help` lists"),
        }
    }

    /// Answers a query.
    pub fn query(&self, asked: &Asked) -> Result<Answer, ModelError> {
        self.owners.borrow_mut().query(asked)
    }

    /// Whether every worker uses every change so far. Frees what changes have replaced, and goes on with work in slices.
    pub fn settled(&self) -> bool {
        self.fib.borrow_mut().reclaim();
        let counts = self.count_more();
        let stays = self.worker_set.borrow_mut().tend();
        self.engine.borrow().settled() && stays && !counts
    }

    /// Counts the next slice of the routes that are to be counted alone; true if others remain.
    pub(crate) fn count_more(&self) -> bool {
        self.fib.borrow_mut().count_more()
    }

    /// Whether any capture is active.
    pub fn is_capturing(&self) -> bool {
        self.pg.is_capturing() || self.pcap.is_capturing() || self.click.is_writing()
    }

    /// Writes the packets that captures have gathered; returns how many.
    pub fn drain(&self) -> usize {
        self.processes.run_manual();
        let written = self.pg.drain() + self.pcap.drain() + self.click.drain();
        self.pg.news().iter().for_each(|text| report(text));
        written
    }
}

/// Registers captures, and graphs that read and write capture files.
fn captures(
    registry: &mut Registry,
) -> Result<(volley_pcap::Pcap, volley_click::Click), GraphError> {
    let pcap = volley_pcap::register(registry)?;
    pcap.listen(report);
    Ok((pcap, volley_click::Click::register(registry)?))
}

/// Logs what could not be written to a capture file.
fn report(text: &str) {
    tracing::warn!(target: "capture", "{text}");
}

/// Gives the configured seed to the generator and to MAC addresses.
fn seed(registry: &Registry, pg: &volley_pg::Pg, settings: &EngineSettings) {
    if let Some(seed) = settings.seed {
        pg.set_seed(seed);
        registry.interfaces.borrow_mut().set_mac_seed(seed);
    }
}

/// Logs a warning about a neighbour.
fn warn_of_neighbor(interface: &str, text: &str) {
    tracing::warn!(target: "neighbor", interface, "{interface}: {text}");
}

/// The owners of all classes of objects; an error when a definition was refused or a class has no owner.
fn complete(registry: &mut Registry) -> Result<Owners, StackError> {
    if let Some(error) = std::mem::take(&mut registry.refused).into_iter().next() {
        return Err(error.into());
    }
    let owners = std::mem::take(&mut registry.owners);
    match owners.unowned(&volley_object::classes()) {
        Some(class) => Err(StackError::Unowned(class)),
        None => Ok(owners),
    }
}

/// Registers the drivers of interfaces of the kernel, of other programs and of guests.
fn drivers(
    registry: &mut Registry,
    settings: &EngineSettings,
) -> Result<volley_memif::Memif, StackError> {
    volley_tap::register(registry)?;
    volley_af_packet::register(registry)?;
    volley_af_xdp::register(registry)?;
    let memif_socket = settings.socket().with_file_name("memif.sock");
    let memif = volley_memif::register(registry, memif_socket)?;
    volley_vhost::register(registry)?;
    volley_dpdk::register(registry)?;
    Ok(memif)
}

/// Registers plugins, which are loaded later.
fn plugins(registry: &mut Registry) -> Result<volley_plugin_host::Plugins, DefinitionError> {
    let table = registry.interfaces.clone();
    let name = move |index| table.borrow().name(index);
    let plugins =
        volley_plugin_host::Plugins::new(registry.engine.clone(), &registry.processes, name);
    let table = registry.interfaces.clone();
    let known = |it: &volley_iface::Interface| volley_plugin_host::HostInterface {
        name: it.name.clone(),
        index: it.index.0,
        mac: it.mac,
        mtu: it.mtu,
    };
    plugins.serve(move || table.borrow().iter().map(known).collect());
    let table = registry.table();
    plugins.listen(move |protocol, node, on| {
        use volley_plugin_host::PluginProtocol::{EtherType, Ip4, Ip6, Udp4, Udp6};
        let done = match protocol {
            EtherType(number) => table.listen_ethertype(number, node, on),
            Ip4(number) => table.listen_ip(Family::V4, number, node, on),
            Ip6(number) => table.listen_ip(Family::V6, number, node, on),
            Udp4(port) => table.listen_udp(Family::V4, port, node, on),
            Udp6(port) => table.listen_udp(Family::V6, port, node, on),
        };
        done.map_err(|why| why.to_string())
    });
    plugins.own(&mut registry.owners)?;
    Ok(plugins)
}

/// Registers the features of the list, which use the FIB and the gateways that it knows.
fn features(registry: &mut Registry, fib: &Rc<RefCell<Fib>>) -> Result<(), GraphError> {
    registry.provide(fib.clone());
    registry.provide(gateways(fib));
    crate::features::register(registry)
}

/// Registers the nodes of IP, which use the FIB.
fn ip(registry: &mut Registry, fib: &Rc<RefCell<Fib>>) -> Result<(), GraphError> {
    let (fib4, fib6) = (fib.borrow().dataplane4(), fib.borrow().dataplane6());
    volley_ip::register(registry, fib4, fib6)
}

/// Updates the FIB when interfaces change.
fn follow_interfaces(interfaces: &Rc<RefCell<Interfaces>>, fib: &Rc<RefCell<Fib>>) {
    let fib = fib.clone();
    let info = |i: &Interface| IfInfo {
        index: i.index.0,
        name: i.name.clone(),
        mac: i.mac,
        mtu: u16::try_from(i.mtu).unwrap_or(u16::MAX),
        up: i.is_up(),
    };
    interfaces.borrow_mut().listen(move |change| {
        // The only error is a full adjacency table; its routes then drop packets with a counter.
        let _ = match change {
            Change::Created(i) | Change::Updated(i) => fib.borrow_mut().set_interface(info(i)),
            Change::Deleted(i) => fib.borrow_mut().remove_interface(i.index.0),
        };
    });
}

/// The gateways that the default routes name.
fn gateways(fib: &Rc<RefCell<Fib>>) -> Gateways {
    let fib = fib.clone();
    Gateways::new(move |interface| fib.borrow().gateway(interface.0))
}

/// Adds addresses and tables to the rows of `show interfaces`.
fn note_addresses(registry: &Registry, fib: &Rc<RefCell<Fib>>) {
    let fib = fib.clone();
    registry.interface_notes.push(move |row| {
        let fib = fib.borrow();
        row.automatic = fib.automatic_addresses(row.index).to_vec();
        let all = fib.addresses(row.index).iter().copied();
        row.addresses = all.filter(|a| !row.automatic.contains(a)).collect();
        let numbered = fib.numbered(row.index).and_then(|it| fib.interface(it));
        row.unnumbered = numbered.map(|numbered| numbered.name.clone());
        row.tables.ip4 = fib.interface_table(row.index, Family::V4);
        row.tables.ip6 = fib.interface_table(row.index, Family::V6);
    });
}

/// The FIB as a handler.
struct FibHandler(Rc<RefCell<Fib>>);

impl Handler for FibHandler {
    fn apply(&mut self, request: &Request) -> Option<Result<Applied, ModelError>> {
        if let Request::InterfaceDelete { name } = request {
            return self.refuse_deletion(name);
        }
        None
    }
}

impl FibHandler {
    /// Refuses to delete an interface that routes of other objects use.
    fn refuse_deletion(&self, name: &str) -> Option<Result<Applied, ModelError>> {
        let fib = self.0.borrow();
        let index = fib.interface_index(name)?;
        let by = fib.user_of(index)?;
        Some(Err(ModelError::in_use(ObjectKind::Interface, name, by)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use volley_iface::{Link, ShowInterfaces};

    fn shown(stack: &Stack, query: &impl Query) -> String {
        let reply = stack.query(&query.asked().unwrap());
        reply.unwrap().text(volley_cli::View::Table)
    }

    #[test]
    fn routes_follow_the_link() {
        let (stack, _workers) = Stack::new(&EngineSettings::default(), Clock::manual()).unwrap();
        let config = volley_config::parse(
            "[[interface]]\nname = \"pg0\"\nkind = \"pg\"\naddresses = [\"192.0.2.1/24\"]\n",
        );
        for request in config.unwrap().requests {
            stack.apply(&request).unwrap();
        }
        let connected = || {
            let asked = volley_fib::ShowFib {
                family: volley_model::Family::V4,
                table: None,
                prefix: None,
                address: Some("192.0.2.77".parse().unwrap()),
                summary: false,
                limit: None,
            };
            let answer = stack.ask(&asked);
            answer.is_ok_and(|fib| fib.tables[0].routes[0].prefix.to_string() == "192.0.2.0/24")
        };
        assert!(connected());
        let index = stack.interfaces.borrow().index("pg0").unwrap();
        let set = |link| stack.interfaces.borrow_mut().set_link(index, link);
        set(Link::down("the peer is gone"));
        assert!(!connected());
        let shown = shown(&stack, &ShowInterfaces { name: None });
        assert!(shown.contains("no-link") && shown.contains("pg0: no link: the peer is gone"));
        set(Link::Up);
        assert!(connected());
    }
}
