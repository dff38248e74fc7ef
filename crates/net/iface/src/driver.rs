//! What a driver leans on: an interface comes with its transmit node or not at all, and what happens to it is told to
//! the driver, which may refuse.
//!
//! Everything here lives on the control thread. A driver's `control.rs` keeps a [`DriverHost`] and the [`IfIdx`] of each of
//! its interfaces (never the name: it may change).

use crate::{IfError, IfIdx, Interfaces, Link};
use std::cell::RefCell;
use std::rc::Rc;
use volley_graph::{Engine, Node, Processes};
use volley_model::{AdminState, ModelError, ObjectKind, RxMode, Switch};

/// Why a driver does not do what is asked: the second half of a sentence that begins with what was asked ("the kernel
/// says: Operation not permitted; run Volley with CAP_NET_ADMIN").
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PortRefusal(pub String);

impl PortRefusal {
    /// With this text.
    pub fn new(why: impl std::fmt::Display) -> Self {
        PortRefusal(why.to_string())
    }
}

/// A driver's side of one interface. Called before the change is made; a refusal leaves everything as it was. The
/// defaults suit a driver that has nothing to set. Never called while [`Interfaces`] or [`Engine`] are borrowed.
pub trait Port {
    /// It is set up or down.
    fn set_admin(&mut self, _state: AdminState) -> Result<(), PortRefusal> {
        Ok(())
    }
    /// It gets another MAC address.
    fn set_mac(&mut self, _mac: [u8; 6]) -> Result<(), PortRefusal> {
        Ok(())
    }
    /// It gets another L3 MTU, in bytes.
    fn set_mtu(&mut self, _mtu: u32) -> Result<(), PortRefusal> {
        Ok(())
    }
    /// It takes frames for any MAC address, or for its own only.
    fn set_promiscuous(&mut self, _on: Switch) -> Result<(), PortRefusal> {
        Ok(())
    }
    /// Its receive queues are to be watched so.
    fn set_rx_mode(&mut self, _mode: RxMode) -> Result<(), PortRefusal> {
        Ok(())
    }
    /// Lines of `show hardware`, behind those the interface was made with.
    fn details(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A driver without anything to set.
pub struct NoPort;

impl Port for NoPort {}

/// What a transmit node does by itself with what [`volley_graph::Offload`] asks for. What it does not do is done in
/// software before packets reach it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Caps {
    /// Finishes partial checksums.
    pub checksum: bool,
    /// Cuts TCP over IPv4.
    pub tcp4: bool,
    /// Cuts TCP over IPv6.
    pub tcp6: bool,
    /// Cuts UDP.
    pub udp: bool,
}

impl Caps {
    /// Nothing: every packet is complete when it comes.
    pub const NONE: Caps = Caps {
        checksum: false,
        tcp4: false,
        tcp6: false,
        udp: false,
    };

    /// Names of what it does.
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

    /// As bits, in the order of [`volley_graph::Offload::needs`].
    pub fn bits(self) -> u32 {
        let bit = |on, at| u32::from(on) << at;
        bit(self.checksum, 0) | bit(self.tcp4, 1) | bit(self.tcp6, 2) | bit(self.udp, 3)
    }
}

/// What a driver says of the interface it makes. Begin with [`NewInterface::new`].
pub struct NewInterface {
    /// Its name.
    pub name: String,
    /// What kind of driver it has.
    pub kind: &'static str,
    /// Its MAC address; none asks for a locally administered one made from the name.
    pub mac: Option<[u8; 6]>,
    /// The largest IP packet it takes, in bytes.
    pub mtu: u32,
    /// The configured MTU; `mtu` is lower where the device takes less.
    pub configured_mtu: Option<u32>,
    /// What the driver has to say that does not change.
    pub details: Vec<String>,
    /// Its link as it is now.
    pub link: Link,
    /// What its transmit node does by itself.
    pub caps: Caps,
    /// The source node that receives for it.
    pub rx_node: &'static str,
    /// The worker of each receive queue.
    pub rx_queues: Vec<usize>,
    /// Transmit queues.
    pub tx_queues: u32,
    /// The driver's side of it.
    pub port: Box<dyn Port>,
}

impl NewInterface {
    /// An interface with link, MTU 1500, one queue each way on worker 0, and a driver with nothing to set.
    pub fn new(name: impl Into<String>, kind: &'static str) -> Self {
        NewInterface {
            name: name.into(),
            kind,
            mac: None,
            mtu: 1500,
            configured_mtu: None,
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

/// Where interfaces are made: a driver's hand on the daemon. From [`crate::Registry::host`].
#[derive(Clone)]
pub struct DriverHost {
    /// The graph.
    pub engine: Rc<RefCell<Engine>>,
    /// The interfaces.
    pub interfaces: Rc<RefCell<Interfaces>>,
    /// Where handshakes, link events and reconnects run: [`Processes::watch`] and [`Processes::every`].
    pub processes: Processes,
}

impl DriverHost {
    /// Make an interface, down, and its transmit node `NAME-tx` (`make` is asked for one instance per worker), with both
    /// or neither there in the end.
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

    /// Undo [`DriverHost::attach`]. Packets that are still on their way to the transmit node are dropped.
    pub fn detach(&self, index: IfIdx) -> Result<(), ModelError> {
        let name = self.interfaces.borrow().name(index.0);
        let gone = self.interfaces.borrow_mut().delete(&name);
        gone.map_err(|e| self.to_model_error(e))?;
        let node = self.engine.borrow_mut().remove(&tx_name(&name));
        node.map_err(|e| ModelError::invalid(format!("interface {name}"), e))
    }

    /// A worker for each of so many receive queues: see [`Interfaces::assign_workers`].
    pub fn assign_workers(&self, queues: usize) -> Vec<usize> {
        self.interfaces.borrow().assign_workers(queues)
    }

    /// As [`DriverHost::assign_workers`], for an interface that is there: queues that it had stay where they are.
    pub fn reassign_workers(&self, index: IfIdx, queues: usize) -> Vec<usize> {
        self.interfaces.borrow().reassign_workers(index, queues)
    }

    /// The driver's way to move receive queues of an interface: `steer` is told the queue and its new worker.
    /// Workers are notified each time.
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

    /// An interface's number.
    pub fn index(&self, name: &str) -> Result<IfIdx, ModelError> {
        let found = self.interfaces.borrow().index(name);
        found.map_err(|e| self.to_model_error(e))
    }

    /// Refuse a name that is taken: before files are opened or sockets made for it.
    pub fn check_free(&self, name: &str) -> Result<(), ModelError> {
        match self.interfaces.borrow().by_name(name) {
            Some(_) => Err(ModelError::exists(ObjectKind::Interface, name)),
            None => Ok(()),
        }
    }

    /// An interface's link comes or goes.
    pub fn set_link(&self, index: IfIdx, link: Link) {
        self.interfaces.borrow_mut().set_link(index, link);
    }

    /// An interface has the MAC address of the device behind it.
    pub fn set_mac(&self, index: IfIdx, mac: [u8; 6]) {
        self.interfaces.borrow_mut().set_mac(index, mac);
    }

    /// The MTU of the kernel's interface behind an interface: see [`Interfaces::set_device_mtu`].
    pub fn set_device_mtu(&self, index: IfIdx, mtu: u32) {
        self.interfaces.borrow_mut().set_device_mtu(index, mtu);
    }

    /// What an interface's transmit node does by itself has changed (a peer came, features were negotiated).
    pub fn set_caps(&self, index: IfIdx, caps: Caps) {
        self.interfaces.borrow_mut().set_caps(index, caps);
    }

    /// An interface's queues have changed (a peer came): the worker of each receive queue, and how many transmit queues.
    pub fn set_queues(&self, index: IfIdx, rx: Vec<usize>, tx: u32) {
        self.interfaces.borrow_mut().set_queues(index, rx, tx);
    }

    /// Something was put into a source's inbox: workers look for it, and those that sleep wake up.
    pub fn wake(&self) {
        self.engine.borrow().wake();
    }

    /// An interface error as the operator is told it.
    pub fn to_model_error(&self, error: IfError) -> ModelError {
        to_model_error(&self.interfaces.borrow(), error)
    }
}

/// Name of an interface's transmit node.
pub fn tx_name(interface: &str) -> String {
    format!("{interface}-tx")
}

/// An interface error as the operator is told it.
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
