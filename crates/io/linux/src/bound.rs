//! Interfaces over existing interfaces of the kernel: attached when the kernel's interface exists, at once or later, and
//! attached again when it returns (a device that is deleted and created again, a cable adapter, a move between
//! namespaces).
//!
//! The configured name identifies the kernel's interface. While no interface of the kernel has the name, the
//! configuration of Volley's interface stays and the interface waits. Receive queues are added and removed by the
//! [`QueueMigration`]; transmit nodes read the queues from a published value, so neither side stops a worker.

use crate::driver::{duplicate, state};
use crate::node::transmit::TransmitQueues;
use crate::status::Placed;
use crate::{KernelLink, KernelLinks, LinuxError, Namespace, RxQueue, Status, TxQueue};
use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;
use volley_graph::{Activation, ProcessInfo, Watch};
use volley_iface::AdminState;
use volley_iface::driver::{DriverHost, Port, PortRefusal};
use volley_iface::{IfIdx, Link as State, QueueMigration, TxQueuePool};
use volley_model::ModelError;
use volley_tables::Publisher;

/// Interval between attempts to attach while the kernel reports no change: the namespace is missing, or the interface is
/// busy.
const RETRY: Duration = Duration::from_secs(1);

/// Number of workers that share the queues of an interface.
#[derive(Clone, Copy, Debug)]
pub struct Sharers {
    /// Maximum number of workers.
    pub places: usize,
    /// Present number of workers.
    pub workers: usize,
}

/// Resources opened on an interface of the kernel.
pub struct Opened<R, T> {
    /// Receive queues.
    pub rx: Vec<R>,
    /// Transmit queues.
    pub tx: Vec<T>,
    /// Lines of `show hardware`.
    pub details: Vec<String>,
    /// Resources that must live as long as the queues are used.
    pub keep: Box<dyn Any>,
}

/// Opens a driver's queues on an interface of the kernel.
pub trait Opener: 'static {
    /// A receive queue.
    type Rx: RxQueue;
    /// A transmit queue.
    type Tx: TxQueue;

    /// Open queues on `link`, an Ethernet interface of `namespace`.
    fn open(
        &mut self,
        namespace: &Namespace,
        link: &KernelLink,
        sharers: Sharers,
    ) -> Result<Opened<Self::Rx, Self::Tx>, LinuxError>;

    /// Whether the open queues support frames of this MTU. If not, they are opened again.
    fn has_room(&self, _mtu: u32) -> bool {
        true
    }
}

/// An interface of the kernel, by name, and the settings that Volley requests. Shared with the interface's port.
pub(crate) struct Device {
    host: DriverHost,
    /// Volley's interface, once it is created.
    index: Option<IfIdx>,
    name: String,
    namespace: Namespace,
    /// Identity of the namespace of `links`: its name may refer to another namespace meanwhile.
    space: Option<(u64, u64)>,
    links: Option<Rc<KernelLinks>>,
    /// The kernel's interface that Volley's is attached to.
    pub(crate) link: Option<KernelLink>,
    pub(crate) details: Vec<String>,
    own_mac: bool,
    own_mtu: Option<u32>,
    /// Original MTU of the kernel's interface, and the one that Volley has set.
    given: Option<(u32, u32)>,
    up: bool,
}

impl Device {
    pub(crate) fn new(
        host: DriverHost,
        (name, namespace): (&str, Namespace),
        own_mac: bool,
        own_mtu: Option<u32>,
    ) -> Self {
        Device {
            host,
            index: None,
            name: name.to_owned(),
            namespace,
            space: None,
            links: None,
            link: None,
            details: Vec::new(),
            own_mac,
            own_mtu,
            given: None,
            up: false,
        }
    }

    /// The present interface of the kernel with this name; `None` while there is none.
    pub(crate) fn find(&mut self) -> Result<Option<KernelLink>, LinuxError> {
        let links = match &self.links {
            Some(links) => links.clone(),
            None => {
                let links = Rc::new(KernelLinks::open(&self.namespace)?);
                self.space = self.namespace.identity();
                self.links.insert(links).clone()
            }
        };
        match links.by_name(&self.name) {
            Ok(link) if link.mac.is_none() => Err(LinuxError::NotEthernet(link.name)),
            Ok(link) => Ok(Some(link)),
            Err(LinuxError::NoLink(..)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reason why there is no link, as a clause.
    pub(crate) fn waiting(&self, error: Option<&LinuxError>) -> State {
        let place = self.namespace.place();
        let why = match error {
            None | Some(LinuxError::Namespace(..)) => String::new(),
            Some(error) => format!(": {error}"),
        };
        State::Waiting(format!("waiting for {}{place}{why}", self.name))
    }

    /// Raise the MTU of the kernel's interface to the MTU of Volley's. Refused if the kernel does not permit it. A larger
    /// MTU stays (sub-interfaces with several tags need it), unless Volley has set it.
    pub(crate) fn fit(&mut self, mtu: u32) -> Result<(), LinuxError> {
        let (Some(links), Some(link)) = (&self.links, &mut self.link) else {
            return Ok(());
        };
        let mtu = mtu.max(self.given.map_or(link.mtu, |(had, _)| had));
        if link.mtu == mtu {
            return Ok(());
        }
        match links.set_mtu(link.index, mtu) {
            Ok(()) => {
                let had = self.given.map_or(link.mtu, |(had, _)| had);
                self.given = Some((had, mtu));
                link.mtu = mtu;
                Ok(())
            }
            // Frames of Volley's MTU fit the kernel's interface anyway.
            Err(_) if mtu < link.mtu => Ok(()),
            Err(LinuxError::System(_, error)) => {
                let what = format!(
                    "the kernel's interface {} has MTU {} and does not take {mtu}",
                    link.name, link.mtu
                );
                Err(LinuxError::System(what, error))
            }
            Err(error) => Err(error),
        }
    }

    /// Restore the MTU of the kernel's interface, unless another program has changed it meanwhile.
    pub(crate) fn give_back(&mut self) {
        if let (Some(links), Some((had, given))) = (&self.links, self.given.take())
            && let Ok(link) = links.by_name(&self.name)
            && link.mtu == given
        {
            // If the MTU cannot be set, it stays.
            let _ = links.set_mtu(link.index, had);
        }
    }
}

/// Applies settings of Volley's interface to the kernel's.
pub(crate) struct DevicePort(pub Rc<RefCell<Device>>);

impl Port for DevicePort {
    fn set_admin(&mut self, state: AdminState) -> Result<(), PortRefusal> {
        let mut device = self.0.borrow_mut();
        let up = state == AdminState::Up;
        if let (true, Some(links), Some(link)) = (up, &device.links, &device.link) {
            links.set_up(link.index, true).map_err(PortRefusal::new)?;
        }
        device.up = up;
        Ok(())
    }

    fn set_mac(&mut self, _mac: [u8; 6]) -> Result<(), PortRefusal> {
        self.0.borrow_mut().own_mac = true;
        Ok(())
    }

    fn set_mtu(&mut self, mtu: u32) -> Result<(), PortRefusal> {
        let mut device = self.0.borrow_mut();
        device.fit(mtu).map_err(PortRefusal::new)?;
        device.own_mtu = Some(mtu);
        if let (Some(index), Some(link)) = (device.index, &device.link) {
            device.host.set_device_mtu(index, link.mtu);
        }
        Ok(())
    }

    fn unset_mac(&mut self, made_up: [u8; 6]) -> Result<[u8; 6], PortRefusal> {
        let mut device = self.0.borrow_mut();
        device.own_mac = false;
        let kernel = device.link.as_ref().and_then(|link| link.mac);
        Ok(kernel.unwrap_or(made_up))
    }

    fn unset_mtu(&mut self, default: u32) -> Result<u32, PortRefusal> {
        let mut device = self.0.borrow_mut();
        device.own_mtu = None;
        device.give_back();
        if device.link.is_some()
            && let Some(link) = device.find().map_err(PortRefusal::new)?
        {
            device.link = Some(link);
        }
        if let (Some(index), Some(link)) = (device.index, &device.link) {
            device.host.set_device_mtu(index, link.mtu);
        }
        let kernel = device.link.as_ref().map(|link| link.mtu);
        Ok(kernel.unwrap_or(default))
    }

    fn speed_bps(&self) -> Option<u64> {
        let device = self.0.borrow();
        let (links, link) = (device.links.as_ref()?, device.link.as_ref()?);
        links.speed_bps(link.index)
    }

    fn details(&self) -> Vec<String> {
        self.0.borrow().details.clone()
    }
}

struct Attached {
    status: Arc<Status>,
    _keep: Box<dyn Any>,
}

/// A Volley interface over an interface of the kernel that may be missing.
pub(crate) struct Bound<O: Opener> {
    host: DriverHost,
    migration: Arc<QueueMigration<Placed<O::Rx>>>,
    index: IfIdx,
    opener: O,
    transmit_queues: Publisher<TransmitQueues<O::Tx>>,
    device: Rc<RefCell<Device>>,
    attached: Option<Attached>,
    watch: Option<Watch>,
    me: Weak<RefCell<Bound<O>>>,
}

impl<O: Opener> Bound<O> {
    pub(crate) fn new(
        (host, migration): (DriverHost, Arc<QueueMigration<Placed<O::Rx>>>),
        index: IfIdx,
        (opener, transmit_queues): (O, Publisher<TransmitQueues<O::Tx>>),
        device: Rc<RefCell<Device>>,
    ) -> Rc<RefCell<Self>> {
        device.borrow_mut().index = Some(index);
        Rc::new_cyclic(|me| {
            RefCell::new(Bound {
                host,
                migration,
                index,
                opener,
                transmit_queues,
                device,
                attached: None,
                watch: None,
                me: me.clone(),
            })
        })
    }

    /// Give the opened queues to the workers.
    pub(crate) fn put(&mut self, opened: Opened<O::Rx, O::Tx>) {
        let Opened {
            rx,
            tx,
            details,
            keep,
        } = opened;
        self.device.borrow_mut().details = details;
        let status = Arc::<Status>::default();
        status.set_interface(self.index.0);
        let places = self.host.reassign_workers(self.index, rx.len());
        let workers = self.host.engine.borrow().worker_set().count();
        let count = tx.len().min(workers) as u32;
        self.host.set_queues(self.index, places.clone(), count);
        self.transmit_queues
            .publish(TransmitQueues::new(&status, TxQueuePool::new(tx)));
        let queues = rx.into_iter().zip(places).enumerate();
        let put = |(number, (rx, worker))| {
            self.migration
                .assign(worker, Placed::new(&status, number, rx))
        };
        let ways: Vec<_> = queues.map(put).collect();
        let migration = self.migration.clone();
        self.host.set_queue_mover(self.index, move |queue, worker| {
            if let Some(way) = ways.get(queue) {
                migration.migrate(way, worker);
            }
        });
        self.attached = Some(Attached {
            status,
            _keep: keep,
        });
        self.host.wake();
    }

    /// Take the queues from the workers, because the kernel's interface is no longer attached.
    fn detach(&mut self) {
        let Some(attached) = self.attached.take() else {
            return;
        };
        attached.status.set_gone();
        self.host.set_queue_mover(self.index, |_, _| {});
        let none = TransmitQueues::new(&attached.status, TxQueuePool::new([]));
        self.transmit_queues.publish(none);
        let mut device = self.device.borrow_mut();
        device.link = None;
        device.details.clear();
        self.host.wake();
    }

    fn wait(&mut self, error: Option<&LinuxError>) {
        let why = self.device.borrow().waiting(error);
        self.host.set_link(self.index, why);
    }

    /// Attach to the kernel's interface, or set the reason why that failed.
    fn attach(&mut self, link: KernelLink) {
        let (namespace, link, up) = {
            let mut device = self.device.borrow_mut();
            (device.link, device.given) = (Some(link.clone()), None);
            if let Some(mtu) = device.own_mtu {
                // The kernel's smaller MTU applies then, and is shown.
                let _ = device.fit(mtu);
            }
            let now = device.link.clone().unwrap_or(link);
            (device.namespace.clone(), now, device.up)
        };
        let sharers = Sharers {
            places: self.migration.workers(),
            workers: self.host.engine.borrow().worker_set().count(),
        };
        match self.opener.open(&namespace, &link, sharers) {
            Ok(opened) => self.put(opened),
            Err(error) => {
                self.device.borrow_mut().link = None;
                return self.wait(Some(&error));
            }
        }
        let links = self.device.borrow().links.clone();
        if let (true, Some(links)) = (up, links) {
            // The interface's state shows the result.
            let _ = links.set_up(link.index, true);
        }
        let now = self.device.borrow_mut().find();
        self.follow(now.ok().flatten().unwrap_or(link));
    }

    /// Copy the state of the kernel's interface to Volley's.
    fn follow(&mut self, now: KernelLink) {
        let own_mac = {
            let mut device = self.device.borrow_mut();
            device.link = Some(now.clone());
            device.own_mac
        };
        if let Some(mac) = now.mac.filter(|_| !own_mac) {
            self.host.set_mac(self.index, mac);
        }
        self.host.set_device_mtu(self.index, now.mtu);
        let state = state(&now, Some(&now));
        if let (State::Up, Some(attached)) = (&state, &self.attached) {
            attached.status.clear_fault();
        }
        self.host.set_link(self.index, state);
    }

    /// Whether the name of the namespace now refers to another namespace.
    fn has_moved(&self) -> bool {
        let device = self.device.borrow();
        let now = device.namespace.identity();
        device.links.is_some() && now.is_some() && now != device.space
    }

    fn listen(&mut self) {
        let links = self.device.borrow().links.clone();
        let (Some(links), None) = (links, &self.watch) else {
            return;
        };
        let info = ProcessInfo {
            name: "linux-links",
            text: "Follows the state of the kernel's interfaces.",
        };
        let me = self.me.clone();
        let look = move || match me.upgrade() {
            Some(bound) => {
                bound.borrow_mut().look();
                Activation::Idle
            }
            None => Activation::Done,
        };
        // Without a watch the kernel is polled periodically.
        let fd = duplicate(&links).ok();
        self.watch = fd.and_then(|fd| self.host.processes.watch(info, fd, look).ok());
    }

    /// Check the kernel's interface.
    pub(crate) fn look(&mut self) {
        if self.has_moved() {
            self.detach();
            self.watch = None;
            self.device.borrow_mut().links = None;
        }
        let links = self.device.borrow().links.clone();
        let gone: BTreeSet<u32> = links.map_or_else(BTreeSet::new, |links| links.news().gone);
        let found = self.device.borrow_mut().find();
        self.listen();
        let attached = self.device.borrow().link.as_ref().map(|link| link.index);
        if let Some(index) = attached {
            let there = |now: &KernelLink| now.index == index && !gone.contains(&index);
            match &found {
                Ok(Some(now)) if there(now) && self.opener.has_room(now.mtu) => {
                    return self.follow(now.clone());
                }
                // If the kernel cannot be queried, the state stays until the next check.
                Err(error) if !matches!(error, LinuxError::NotEthernet(_)) => return,
                _ => {
                    self.wait(None);
                    self.detach();
                }
            }
        }
        match found {
            Ok(Some(link)) => self.attach(link),
            Ok(None) => self.wait(None),
            Err(error) => self.wait(Some(&error)),
        }
    }

    /// End Volley's interface; if it was `deleted`, restore the kernel's interface.
    pub(crate) fn end(&mut self, deleted: bool) {
        self.watch = None;
        if let Some(attached) = self.attached.take() {
            attached.status.set_gone();
            let none = TransmitQueues::new(&attached.status, TxQueuePool::new([]));
            self.transmit_queues.publish(none);
        }
        if deleted {
            self.device.borrow_mut().give_back();
        }
    }

    /// Retry periodically: the kernel does not report every change that matters.
    pub(crate) fn retry(bound: &Rc<RefCell<Self>>) -> Watch {
        let info = ProcessInfo {
            name: "linux-waiting",
            text: "Looks for interfaces of the kernel that are missing.",
        };
        let (me, host) = (Rc::downgrade(bound), bound.borrow().host.clone());
        host.processes.every(info, move || {
            me.upgrade()?.borrow_mut().look();
            Some(RETRY)
        })
    }
}

/// Refuse an interface whose kernel interface is missing, unless the request permits that.
pub fn check_present(
    name: &str,
    (host, namespace): (&str, &Namespace),
    wait: bool,
) -> Result<(), ModelError> {
    let missing = match KernelLinks::open(namespace).and_then(|links| links.by_name(host)) {
        Err(error @ (LinuxError::NoLink(..) | LinuxError::Namespace(..))) if !wait => error,
        _ => return Ok(()),
    };
    let why = format!("{missing}; add `wait` to have the interface used as soon as it appears");
    Err(ModelError::invalid(format!("interface {name}"), why))
}
