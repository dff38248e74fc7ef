//! The control thread's part of a driver for Linux interfaces: creates an interface completely or not at all, follows the
//! kernel's interface behind it, and deletes it.

use crate::bound::{Bound, Device, DevicePort, Opener, Sharers};
use crate::node::input::{Input, RxQueue};
use crate::node::transmit::{Transmit, TransmitQueues, TxQueue};
use crate::status::{MAX_QUEUES, Placed};
use crate::{KernelLink, KernelLinks, LinuxError, Namespace, Status};
use std::any::Any;
use std::cell::{OnceCell, RefCell};
use std::os::fd::{AsRawFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use volley_graph::{Activation, Domain, GraphError, Node, NodeId, ProcessInfo, Source, Watch};
use volley_iface::driver::{Caps, DriverHost};
use volley_iface::{
    IfIdx, IfTable, Link as State, NewInterface, QueueMigration, QueueTarget, Registry, TxQueuePool,
};
use volley_model::{Applied, InterfaceSpec, ModelError};
use volley_tables::Publisher;

/// Interval of the check for queues that workers have returned.
const COLLECT_INTERVAL: Duration = Duration::from_millis(50);

/// An interface of Volley over one of the kernel's.
pub struct KernelInterface {
    /// The interface; its link is set here, its queues by [`Driver::attach`].
    pub new: NewInterface,
    /// Shared with the queues.
    pub status: Arc<Status>,
    /// The namespace of the kernel's interface.
    pub links: Rc<KernelLinks>,
    /// The kernel's interface.
    pub link: KernelLink,
    /// Reason why there is permanently no link, whatever the state of the kernel's interface; empty if there is none.
    pub ended: Rc<OnceCell<String>>,
    /// Resources that must live as long as the interface.
    pub keep: Box<dyn Any>,
}

impl KernelInterface {
    /// An interface over the kernel's `link`.
    pub fn new(
        new: NewInterface,
        links: Rc<KernelLinks>,
        link: KernelLink,
        keep: Box<dyn Any>,
    ) -> Self {
        KernelInterface {
            new,
            status: Arc::default(),
            links,
            link,
            ended: Rc::default(),
            keep,
        }
    }
}

struct Entry {
    index: IfIdx,
    /// Called at the end of the interface; the argument is true if the interface was deleted.
    end: Box<dyn Fn(bool)>,
    _keep: Box<dyn Any>,
}

/// All interfaces of a kind.
pub struct Driver<R: RxQueue> {
    host: DriverHost,
    migration: Arc<QueueMigration<Placed<R>>>,
    domain: Arc<Domain>,
    entries: Vec<Entry>,
    _reaper: Watch,
}

impl<R: RxQueue> Driver<R> {
    /// Register the receive node of the interface kind, without interfaces.
    pub fn register(registry: &mut Registry) -> Result<Self, GraphError> {
        let host = registry.host();
        let workers = host.engine.borrow().settings().workers;
        let migration = QueueMigration::<Placed<R>>::new(workers, MAX_QUEUES);
        {
            let mut engine = host.engine.borrow_mut();
            let (table, size) = (registry.table(), engine.settings().vector_size);
            let drop = engine.node(volley_graph::DROP_NODE).unwrap_or(NodeId(0));
            let migration = migration.clone();
            engine.add_source(Input::<R>::NAME, move |worker| {
                Input::new(worker, table.clone(), migration.clone(), drop, size)
            })?;
        }
        let domain = host.engine.borrow().domain().clone();
        let (returned, replaced) = (migration.clone(), domain.clone());
        let info = ProcessInfo {
            name: "linux-queues",
            text: "Closes queues of deleted Linux interfaces once no worker has them.",
        };
        let reaper = host.processes.every(info, move || {
            returned.collect_retired();
            replaced.reclaim();
            Some(COLLECT_INTERVAL)
        });
        Ok(Driver {
            host,
            migration,
            domain,
            entries: Vec::new(),
            _reaper: reaper,
        })
    }

    /// The host in which interfaces are created.
    pub fn host(&self) -> &DriverHost {
        &self.host
    }

    /// Maximum number of workers.
    pub fn places(&self) -> usize {
        self.migration.workers()
    }

    /// Present number of workers.
    pub fn workers(&self) -> usize {
        self.host.engine.borrow().worker_set().count()
    }

    /// Close queues that workers have returned.
    pub fn reap(&self) {
        self.migration.collect_retired();
        self.domain.reclaim();
    }

    /// A function that closes returned queues, for a driver that needs the device's queues.
    pub fn reaper(&self) -> Rc<dyn Fn()> {
        let (migration, domain) = (self.migration.clone(), self.domain.clone());
        Rc::new(move || {
            migration.collect_retired();
            domain.reclaim();
        })
    }

    /// Create the interface. Each receive queue is assigned to the worker with the fewest queues. Each worker has its own
    /// transmit queue if there are enough; otherwise workers share them.
    pub fn attach<T: TxQueue>(
        &mut self,
        mut kernel: KernelInterface,
        rx: Vec<R>,
        tx: Vec<T>,
    ) -> Result<IfIdx, ModelError> {
        let (new, workers) = (&mut kernel.new, self.workers());
        new.rx_queues = self.host.assign_workers(rx.len());
        new.tx_queues = tx.len().min(workers) as u32;
        new.rx_node = R::INPUT;
        let (placed, status) = (new.rx_queues.clone(), kernel.status.clone());
        let (table, size) = self.surroundings();
        let transmit_queues =
            self.transmit_queues(TransmitQueues::new(&status, TxQueuePool::new(tx)));
        let (shared, snap) = (status.clone(), transmit_queues.snap());
        let index = self.attach_without_queues(kernel, move |worker, index| {
            shared.set_interface(index.0);
            Transmit::new(worker, index, table.clone(), size, snap.clone())
        })?;
        // There are twice as many slots as interfaces are permitted; a queue beyond them is not polled.
        let queues = rx.into_iter().zip(placed).enumerate();
        let put = |(number, (rx, worker))| {
            self.migration
                .assign(worker, Placed::new(&status, number, rx))
        };
        let ways: Vec<Arc<QueueTarget>> = queues.map(put).collect();
        let migration = self.migration.clone();
        self.host.set_queue_mover(index, move |queue, worker| {
            if let Some(way) = ways.get(queue) {
                migration.migrate(way, worker);
            }
        });
        self.host.wake();
        Ok(index)
    }

    fn transmit_queues<T: TxQueue>(
        &self,
        first: TransmitQueues<T>,
    ) -> Publisher<TransmitQueues<T>> {
        Publisher::new(self.host.engine.borrow().domain(), first)
    }

    /// Create an interface over an existing or future interface of the kernel, by name and namespace; it waits while that
    /// is missing. `caps` are the offloads that the queues perform.
    pub fn bind<O: Opener<Rx = R>>(
        &mut self,
        spec: &InterfaceSpec,
        (kind, caps): (&'static str, Caps),
        wanted: (&str, Namespace),
        mut opener: O,
    ) -> Result<IfIdx, ModelError> {
        let about = |error: LinuxError| error.about(&spec.name);
        let (mac, namespace) = (spec.mac.map(|m| m.0), wanted.1.clone());
        let mut device = Device::new(self.host.clone(), wanted, mac.is_some(), spec.mtu);
        let found = match device.find() {
            Err(LinuxError::Namespace(..)) => None,
            found => found.map_err(about)?,
        };
        let (mut new, mut opened) = (NewInterface::new(&spec.name, kind), None);
        new.link = device.waiting(None);
        new.mac = mac.or(found.as_ref().and_then(|link| link.mac));
        if let Some(link) = found {
            device.link = Some(link.clone());
            new.link = state(&link, Some(&link));
            let done = device.fit(spec.mtu.unwrap_or(link.mtu)).and_then(|()| {
                let now = device.link.clone().unwrap_or(link);
                new.mtu = now.mtu;
                let sharers = Sharers {
                    places: self.places(),
                    workers: self.workers(),
                };
                opener.open(&namespace, &now, sharers)
            });
            opened = Some(done.map_err(|error| {
                device.give_back();
                about(error)
            })?);
        }
        new.configured_mtu = spec.mtu;
        new.mtu = spec.mtu.unwrap_or(new.mtu);
        (new.caps, new.rx_node) = (caps, R::INPUT);
        (new.rx_queues, new.tx_queues) = (Vec::new(), 0);
        let device = Rc::new(RefCell::new(device));
        new.port = Box::new(DevicePort(device.clone()));
        let (table, size) = self.surroundings();
        let transmit_queues =
            self.transmit_queues(TransmitQueues::new(&Arc::default(), TxQueuePool::new([])));
        let snap = transmit_queues.snap();
        let made = self.host.attach(new, move |worker, index| {
            Transmit::new(worker, index, table.clone(), size, snap.clone())
        });
        let index = made.inspect_err(|_| device.borrow_mut().give_back())?;
        let parts = (self.host.clone(), self.migration.clone());
        let bound = Bound::new(parts, index, (opener, transmit_queues), device);
        if let Some(opened) = opened {
            bound.borrow_mut().put(opened);
        }
        bound.borrow_mut().look();
        let timer = Bound::retry(&bound);
        self.entries.push(Entry {
            index,
            end: Box::new(move |deleted| bound.borrow_mut().end(deleted)),
            _keep: Box::new(timer),
        });
        Ok(index)
    }

    /// The interface table and the vector size, which nodes are created with.
    pub fn surroundings(&self) -> (Arc<IfTable>, usize) {
        let table = self.host.interfaces.borrow().table().clone();
        (table, self.host.engine.borrow().settings().vector_size)
    }

    /// Create an interface whose packets do not use queues of this driver; `make` creates its transmit node for a worker.
    pub fn attach_without_queues<N: Node>(
        &mut self,
        kernel: KernelInterface,
        make: impl FnMut(usize, IfIdx) -> N + 'static,
    ) -> Result<IfIdx, ModelError> {
        let KernelInterface {
            mut new,
            status,
            links,
            link,
            ended,
            keep,
        } = kernel;
        new.link = state(&link, Some(&link));
        let (name, mtu) = (new.name.clone(), link.mtu);
        let index = self.host.attach(new, make)?;
        self.host.set_device_mtu(index, mtu);
        let watch =
            follow(&self.host, index, (links, link), (status.clone(), ended)).map_err(|error| {
                let _ = self.host.detach(index);
                error.about(&name)
            })?;
        self.entries.push(Entry {
            index,
            end: Box::new(move |_| status.set_gone()),
            _keep: Box::new((watch, keep)),
        });
        Ok(index)
    }

    /// Delete an interface if it belongs to this driver.
    pub fn delete(&mut self, name: &str) -> Option<Result<Applied, ModelError>> {
        let index = self.host.index(name).ok()?;
        let at = self.entries.iter().position(|e| e.index == index)?;
        if let Err(error) = self.host.detach(index) {
            return Some(Err(error));
        }
        (self.entries.remove(at).end)(true);
        self.host.wake();
        self.reap();
        Some(Ok(Applied::one()))
    }
}

impl<R: RxQueue> Drop for Driver<R> {
    fn drop(&mut self) {
        self.entries.iter().for_each(|e| (e.end)(false));
    }
}

/// State of Volley's interface for the present state of the kernel's interface, previously `was`.
pub(crate) fn state(was: &KernelLink, now: Option<&KernelLink>) -> State {
    let name = &was.name;
    match now {
        None => State::down(format!("the kernel's interface {name} is gone")),
        Some(now) if !now.up => State::down(format!("the kernel's interface {name} is down")),
        Some(now) if !now.carrier => {
            State::down(format!("the kernel's interface {name} has no carrier"))
        }
        Some(_) => State::Up,
    }
}

pub(crate) fn duplicate(links: &KernelLinks) -> Result<OwnedFd, LinuxError> {
    let events = links.events();
    events
        .try_clone_to_owned()
        .map_err(|e| LinuxError::System(format!("descriptor {}", events.as_raw_fd()), e))
}

/// Keep an interface's link in step with the kernel's interface, until the interface ends.
fn follow(
    host: &DriverHost,
    index: IfIdx,
    (links, link): (Rc<KernelLinks>, KernelLink),
    (status, ended): (Arc<Status>, Rc<OnceCell<String>>),
) -> Result<Watch, LinuxError> {
    let info = ProcessInfo {
        name: "linux-links",
        text: "Follows the state of the kernel's interfaces.",
    };
    let (fd, hand) = (duplicate(&links)?, host.interfaces.clone());
    let last = RefCell::new(None);
    let look = move || {
        // An event that arrived with the deletion: the index may belong to another interface now.
        if status.is_gone() {
            return Activation::Done;
        }
        let first = last.borrow().is_none();
        if links.changed() || first {
            // If the kernel cannot be queried, the state stays; the next event queries again.
            if let Ok(now) = links.by_index(link.index) {
                let mtu = now.as_ref().map(|now| now.mtu);
                let now = match (ended.get(), &now) {
                    // The loss of the kernel's interface takes precedence, since it mostly causes the other fault.
                    (Some(why), Some(_)) => State::down(why),
                    (_, now) => state(&link, now.as_ref()),
                };
                if now == State::Up {
                    status.clear_fault();
                }
                hand.borrow_mut().set_link(index, now.clone());
                if let Some(mtu) = mtu {
                    hand.borrow_mut().set_device_mtu(index, mtu);
                }
                *last.borrow_mut() = Some(now);
            }
        }
        Activation::Idle
    };
    let watch = host.processes.watch(info, fd, look);
    watch.map_err(|e| LinuxError::System("watching the kernel's interfaces".into(), e))
}
