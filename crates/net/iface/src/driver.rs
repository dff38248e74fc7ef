//! The interface to drivers: an interface and its transmit node are created together, and changes of the interface are
//! passed to the driver, which may refuse them.
//!
//! Everything here is on the control thread. A driver's `control.rs` keeps a [`DriverHost`] and the [`IfIdx`] of each
//! of its interfaces (never the name, which can change).

use crate::gso::GsoProtocol;
use crate::states::{AdminState, RxMode, Switch};
use crate::{IfError, IfIdx, Interfaces, Link};
use std::cell::RefCell;
use std::rc::Rc;
use volley_graph::{Engine, Node, Processes};
use volley_model::{ModelError, ObjectKind};

/// Reason why a driver refuses a change: the second half of a sentence that begins with the change ("the kernel says: Operation
/// not permitted; run Volley with CAP_NET_ADMIN").
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PortRefusal(pub String);

impl PortRefusal {
    /// A refusal with this text.
    pub fn new(why: impl std::fmt::Display) -> Self {
        PortRefusal(why.to_string())
    }
}

/// The driver's side of one interface. Called before a change is made; after a refusal nothing is changed. The
/// defaults are for a driver that has nothing to set. Not called while [`Interfaces`] or [`Engine`] are borrowed.
pub trait Port {
    /// The interface is set up or down.
    fn set_admin(&mut self, _state: AdminState) -> Result<(), PortRefusal> {
        Ok(())
    }
    /// The MAC address is changed.
    fn set_mac(&mut self, _mac: [u8; 6]) -> Result<(), PortRefusal> {
        Ok(())
    }
    /// The L3 MTU is changed, in bytes.
    fn set_mtu(&mut self, _mtu: u32) -> Result<(), PortRefusal> {
        Ok(())
    }
    /// The MAC address is no longer configured. Returns the new effective address: `made_up` if no device has one.
    fn unset_mac(&mut self, made_up: [u8; 6]) -> Result<[u8; 6], PortRefusal> {
        self.set_mac(made_up)?;
        Ok(made_up)
    }
    /// The MTU is no longer configured. Returns the new effective MTU: `default` if no device has one.
    fn unset_mtu(&mut self, default: u32) -> Result<u32, PortRefusal> {
        self.set_mtu(default)?;
        Ok(default)
    }
    /// Promiscuous mode is enabled or disabled.
    fn set_promiscuous(&mut self, _on: Switch) -> Result<(), PortRefusal> {
        Ok(())
    }
    /// The receive mode is changed.
    fn set_rx_mode(&mut self, _mode: RxMode) -> Result<(), PortRefusal> {
        Ok(())
    }
    /// Current speed of the link in bit/s, according to the device; none if unknown.
    fn speed_bps(&self) -> Option<u64> {
        None
    }
    /// Lines of `show hardware` that follow those of [`NewInterface`].
    fn details(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A driver without anything to set.
pub struct NoPort;

impl Port for NoPort {}

/// The requests of [`volley_graph::Offload`] that a transmit node completes. The others are completed in software
/// before packets reach it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Caps {
    /// Completes partial checksums.
    pub checksum: bool,
    /// Segments TCP over IPv4.
    pub tcp4: bool,
    /// Segments TCP over IPv6.
    pub tcp6: bool,
    /// Segments UDP.
    pub udp: bool,
}

impl Caps {
    /// No offload: every packet is complete when it reaches the node.
    pub const NONE: Caps = Caps {
        checksum: false,
        tcp4: false,
        tcp6: false,
        udp: false,
    };

    /// The names of the offloads.
    pub fn names(self) -> Vec<&'static str> {
        let all = [
            (self.checksum, "checksum"),
            (self.tcp4, "tcp4"),
            (self.tcp6, "tcp6"),
            (self.udp, "udp"),
        ];
        let on = all.into_iter().filter(|(on, _)| *on);
        on.map(|(_, name)| name).collect()
    }

    /// The offloads as bits, in the order of [`volley_graph::Offload::needs`].
    pub fn bits(self) -> u32 {
        let class = |on, protocol| u32::from(on) << (1 + protocol as u8);
        u32::from(self.checksum)
            | class(self.tcp4, GsoProtocol::Tcp4)
            | class(self.tcp6, GsoProtocol::Tcp6)
            | class(self.udp, GsoProtocol::Udp)
    }
}

/// The properties of a new interface. Begin with [`NewInterface::new`].
pub struct NewInterface {
    /// The name.
    pub name: String,
    /// The type of the driver.
    pub kind: &'static str,
    /// The MAC address; with none, a locally administered one is derived from the name.
    pub mac: Option<[u8; 6]>,
    /// The maximum length of an IP packet, in bytes.
    pub mtu: u32,
    /// The configured MTU; `mtu` is lower when the device's limit is lower.
    pub configured_mtu: Option<u32>,
    /// The MTU of an interface of this type without a configured one.
    pub default_mtu: u32,
    /// Constant lines of `show hardware`.
    pub details: Vec<String>,
    /// The current link state.
    pub link: Link,
    /// The offloads of the transmit node.
    pub caps: Caps,
    /// The source node that receives for the interface.
    pub rx_node: &'static str,
    /// The worker of each receive queue.
    pub rx_queues: Vec<usize>,
    /// The number of transmit queues.
    pub tx_queues: u32,
    /// The driver's side.
    pub port: Box<dyn Port>,
}

impl NewInterface {
    /// An interface with link up, MTU 1500, one queue each way on worker 0, and a driver with nothing to set.
    pub fn new(name: impl Into<String>, kind: &'static str) -> Self {
        NewInterface {
            name: name.into(),
            kind,
            mac: None,
            mtu: 1500,
            configured_mtu: None,
            default_mtu: 1500,
            details: Vec::new(),
            link: Link::Up,
            caps: Caps::NONE,
            rx_node: "",
            rx_queues: vec![0],
            tx_queues: 1,
            port: Box::new(NoPort),
        }
    }
}

/// The daemon for drivers: creates interfaces. From [`crate::Registry::host`].
#[derive(Clone)]
pub struct DriverHost {
    /// The graph.
    pub engine: Rc<RefCell<Engine>>,
    /// The interfaces.
    pub interfaces: Rc<RefCell<Interfaces>>,
    /// The processes for handshakes, link events and reconnects: [`Processes::watch`] and [`Processes::every`].
    pub processes: Processes,
}

impl DriverHost {
    /// Creates an interface, down, and its transmit node `NAME-tx` (`make` creates the instance of each worker). After an error
    /// neither exists.
    pub fn attach<N: Node>(
        &self,
        new: NewInterface,
        mut make: impl FnMut(usize, IfIdx) -> N + 'static,
    ) -> Result<IfIdx, ModelError> {
        let index = self.interfaces.borrow().require_free(&new.name);
        let index = index.map_err(|e| self.to_model_error(e))?;
        let node = tx_name(&new.name);
        let added = self
            .engine
            .borrow_mut()
            .add(&node, move |worker| make(worker, index));
        let added = added.map_err(|e| ModelError::invalid(format!("interface {}", new.name), e))?;
        let made = self.interfaces.borrow_mut().create(new, added);
        made.map_err(|error| {
            let _ = self.engine.borrow_mut().remove(&node);
            self.to_model_error(error)
        })
    }

    /// Undoes [`DriverHost::attach`]. Packets that are queued for the transmit node are dropped.
    pub fn detach(&self, index: IfIdx) -> Result<(), ModelError> {
        let name = self.interfaces.borrow().name(index.0);
        let gone = self.interfaces.borrow_mut().delete(&name);
        gone.map_err(|e| self.to_model_error(e))?;
        let node = self.engine.borrow_mut().remove(&tx_name(&name));
        node.map_err(|e| ModelError::invalid(format!("interface {name}"), e))
    }

    /// Chooses a worker for each of this number of receive queues: see [`Interfaces::assign_workers`].
    pub fn assign_workers(&self, queues: usize) -> Vec<usize> {
        self.interfaces.borrow().assign_workers(queues)
    }

    /// As [`DriverHost::assign_workers`], for an existing interface: its queues stay on their workers.
    pub fn reassign_workers(&self, index: IfIdx, queues: usize) -> Vec<usize> {
        self.interfaces.borrow().reassign_workers(index, queues)
    }

    /// Sets the function that moves receive queues of an interface: `steer` gets the queue and its new worker. Workers are
    /// notified after each call.
    pub fn set_queue_mover(&self, index: IfIdx, steer: impl Fn(usize, usize) + 'static) {
        let engine = self.engine.clone();
        let steer = move |queue, worker| {
            steer(queue, worker);
            engine.borrow().wake();
        };
        self.interfaces
            .borrow_mut()
            .set_queue_mover(index, Rc::new(steer));
    }

    /// The index of an interface.
    pub fn index(&self, name: &str) -> Result<IfIdx, ModelError> {
        let found = self.interfaces.borrow().index(name);
        found.map_err(|e| self.to_model_error(e))
    }

    /// An error if the name is in use. Called before files or sockets are opened for the interface.
    pub fn check_free(&self, name: &str) -> Result<(), ModelError> {
        match self.interfaces.borrow().by_name(name) {
            Some(_) => Err(ModelError::exists(ObjectKind::Interface, name)),
            None => Ok(()),
        }
    }

    /// Sets the link state of an interface.
    pub fn set_link(&self, index: IfIdx, link: Link) {
        self.interfaces.borrow_mut().set_link(index, link);
    }

    /// Sets the MAC address of the device of an interface.
    pub fn set_mac(&self, index: IfIdx, mac: [u8; 6]) {
        self.interfaces.borrow_mut().set_mac(index, mac);
    }

    /// Sets the MTU of the kernel's interface behind an interface: see [`Interfaces::set_device_mtu`].
    pub fn set_device_mtu(&self, index: IfIdx, mtu: u32) {
        self.interfaces.borrow_mut().set_device_mtu(index, mtu);
    }

    /// Sets the offloads of an interface's transmit node after they changed (a peer has connected, features were negotiated).
    pub fn set_caps(&self, index: IfIdx, caps: Caps) {
        self.interfaces.borrow_mut().set_caps(index, caps);
    }

    /// Sets the queues of an interface after they changed (a peer has connected): the worker of each receive queue, and the
    /// number of transmit queues.
    pub fn set_queues(&self, index: IfIdx, rx: Vec<usize>, tx: u32) {
        self.interfaces.borrow_mut().set_queues(index, rx, tx);
    }

    /// Notifies the workers that work was enqueued for a source, and wakes those that are asleep.
    pub fn wake(&self) {
        self.engine.borrow().wake();
    }

    /// An interface error as a model error, with its text for the operator.
    pub fn to_model_error(&self, error: IfError) -> ModelError {
        to_model_error(&self.interfaces.borrow(), error)
    }
}

/// The name of an interface's transmit node.
pub fn tx_name(interface: &str) -> String {
    format!("{interface}-tx")
}

/// An interface error as a model error, with its text for the operator.
pub fn to_model_error(interfaces: &Interfaces, error: IfError) -> ModelError {
    match error {
        IfError::Missing(name) => {
            let known: Vec<String> = interfaces.iter().map(|i| i.name.clone()).collect();
            ModelError::not_found(ObjectKind::Interface, name, known)
        }
        IfError::Exists(name) => ModelError::exists(ObjectKind::Interface, name),
        IfError::Full(limit) => {
            let limit = limit as u64;
            ModelError::limit("number of interfaces", limit + 1, limit)
        }
    }
}
