//! Interfaces of kinds `vhost-user` and `virtio-user` on the control thread: sockets, peers and link state.
//!
//! [`Ports::service`] does all pending work of an interface and never blocks. It is called when one of the interface's
//! sockets is readable, and every [`TICK`] for events without a socket: a fault that a worker found, or a reconnect that
//! is due.

use crate::backend::Backend;
use crate::fault::Fault;
use crate::feature::{self, Wanted};
use crate::frontend::Frontend;
use crate::model::{SocketRole, VhostUser, VirtioUser};
use crate::node::vhost_user_input::{VIRTIO_NAME, VhostInput};
use crate::node::vhost_user_tx::VhostTx;
use crate::protocol::{Arrived, Bind, Link as Socket, Listener, connect};
use crate::wire::{List, MAX_PAIRS, PortList, Stuck, VhostPort};
use std::cell::{Cell, RefCell};
use std::os::fd::AsFd;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracing::{info, warn};
use volley_graph::{Activation, ProcessInfo, Source, Watch};
use volley_iface::driver::{Caps, DriverHost, Port as DriverPort};
use volley_iface::{IfIdx, Link, NewInterface};
use volley_model::{Applied, Handler, InterfaceSpec, ModelError, Request};
use volley_shm::Account;
use volley_shm::calls::{Call, Calls};

mod show;

/// Interval of the periodic service of an interface.
pub const TICK: Duration = Duration::from_millis(10);
/// Time before a client connects again.
const PATIENCE: Duration = Duration::from_millis(200);
/// Maximum number of messages handled before other interfaces are serviced.
const MESSAGES: usize = 64;

const INFO: ProcessInfo = ProcessInfo {
    name: "vhost-user-process",
    text: "Control channels of vhost-user and virtio-user interfaces.",
};

/// The peer of an interface.
struct Peer {
    socket: Socket,
    end: End,
    _watch: Option<Watch>,
}

/// The local end of the connection.
enum End {
    Back(Backend),
    Front(Frontend),
}

impl End {
    fn pairs(&self) -> usize {
        match self {
            End::Back(end) => end.pairs(),
            End::Front(end) => end.pairs(),
        }
    }

    fn features(&self) -> u64 {
        match self {
            End::Back(end) => end.features(),
            End::Front(end) => end.features(),
        }
    }

    fn is_blocked(&self) -> bool {
        match self {
            End::Back(end) => end.is_blocked(),
            End::Front(end) => end.is_blocked(),
        }
    }
}

/// One interface.
struct Port {
    index: IfIdx,
    front: bool,
    spec: VirtioUser,
    wire: Arc<VhostPort>,
    listener: Option<Listener>,
    _listen: Option<Watch>,
    peer: Option<Peer>,
    retry: Instant,
    pairs: usize,
    fault: Option<Fault>,
    connections: u64,
    faults: u64,
    /// Memory charged to the interface's peers.
    account: Arc<Account>,
    reconciled: Option<Instant>,
}

/// All interfaces of the two kinds.
pub struct Ports {
    host: DriverHost,
    me: Weak<RefCell<Ports>>,
    ports: Vec<Port>,
    vhost: PortList,
    virtio: PortList,
    calls: Rc<dyn Calls>,
    _tick: Option<Watch>,
}

impl Ports {
    /// An empty set of interfaces.
    pub fn new(
        host: DriverHost,
        vhost: List,
        virtio: List,
        calls: Rc<dyn Calls>,
    ) -> Rc<RefCell<Self>> {
        Rc::new_cyclic(|me| {
            RefCell::new(Ports {
                host,
                me: me.clone(),
                ports: Vec::new(),
                vhost: PortList::new(vhost),
                virtio: PortList::new(virtio),
                calls,
                _tick: None,
            })
        })
    }

    fn create(
        &mut self,
        spec: &InterfaceSpec,
        (vhost, front): (&VirtioUser, bool),
    ) -> Result<Applied, ModelError> {
        let name = match spec.name.as_str() {
            "" => self.vacant(front),
            name => name.to_owned(),
        };
        self.host.check_free(&name)?;
        let listener = (vhost.role == SocketRole::Server).then(|| listen(vhost));
        let listener = listener.transpose()?;
        let (number, placed) = (Rc::new(Cell::new(None)), self.host.assign_workers(1));
        let new = NewInterface {
            mac: spec.mac.map(|m| m.0),
            mtu: spec.mtu.unwrap_or(9000),
            default_mtu: 9000,
            link: Link::down(waiting(vhost)),
            rx_node: if front { VIRTIO_NAME } else { VhostInput::NAME },
            port: Box::new(Side(self.me.clone(), number.clone())),
            rx_queues: placed.clone(),
            ..NewInterface::new(&name, if front { "virtio-user" } else { "vhost-user" })
        };
        let size = self.host.engine.borrow().settings().vector_size;
        let table = self.host.interfaces.borrow().table().clone();
        // The nodes of all workers share one `VhostPort`, created when the interface's index is known: on the first call.
        let made: Rc<RefCell<Option<Arc<VhostPort>>>> = Rc::default();
        let wire_of = made.clone();
        let index = self.host.attach(new, move |worker, index| {
            let wire = wire_of
                .borrow_mut()
                .get_or_insert_with(|| VhostPort::new(index))
                .clone();
            VhostTx::new(worker, table.clone(), wire, size)
        })?;
        number.set(Some(index));
        let wire = made
            .borrow_mut()
            .get_or_insert_with(|| VhostPort::new(index))
            .clone();
        let (to, worker_set) = (wire.clone(), self.host.engine.borrow().worker_set().clone());
        let places = placed.iter().zip(&to.places);
        places.for_each(|(w, place)| place.set(*w));
        self.host.set_queue_mover(index, move |queue, worker| {
            if let Some(place) = to.places.get(queue) {
                place.request(worker, &worker_set);
            }
        });
        let watch = listener.as_ref().and_then(|l| self.watch(index, l.as_fd()));
        self.ports.push(Port {
            index,
            front,
            spec: vhost.clone(),
            wire,
            listener,
            _listen: watch,
            peer: None,
            retry: self.calls.now(),
            pairs: 0,
            fault: None,
            connections: 0,
            faults: 0,
            account: Account::new(),
            reconciled: None,
        });
        self.publish();
        self.tick();
        self.service(index);
        Ok(Applied::one().named(name))
    }

    /// `VirtualEthernet0/0/N` or `virtioN` with the lowest unused number.
    fn vacant(&self, front: bool) -> String {
        let interfaces = self.host.interfaces.borrow();
        let names = (0..).map(|n| match front {
            true => format!("virtio{n}"),
            false => format!("VirtualEthernet0/0/{n}"),
        });
        let mut free = names.filter(|name| interfaces.by_name(name).is_none());
        free.next().unwrap_or_default()
    }

    fn delete(&mut self, name: &str) -> Option<Result<Applied, ModelError>> {
        let index = self.host.index(name).ok()?;
        let at = self.ports.iter().position(|p| p.index == index)?;
        if let Err(error) = self.host.detach(index) {
            return Some(Err(error));
        }
        // Dropping the port drops the peer and its rings; workers find the slots empty until they read the new list.
        drop(self.ports.remove(at));
        self.publish();
        Some(Ok(Applied::one()))
    }

    /// Publish the list of interfaces to the workers.
    fn publish(&mut self) {
        for (roll, front) in [(&mut self.vhost, false), (&mut self.virtio, true)] {
            let mine = self.ports.iter().filter(|p| p.front == front);
            roll.show(mine.map(|p| p.wire.clone()).collect());
        }
        self.host.wake();
    }

    fn tick(&mut self) {
        if self._tick.is_some() {
            return;
        }
        let me = self.me.clone();
        let body = move || {
            let ports = me.upgrade()?;
            if let Ok(mut ports) = ports.try_borrow_mut() {
                ports.service_all();
            }
            Some(TICK)
        };
        self._tick = Some(self.host.processes.every(INFO, body));
    }

    fn watch(&self, index: IfIdx, fd: std::os::fd::BorrowedFd<'_>) -> Option<Watch> {
        let me = self.me.clone();
        let body = move || {
            let Some(ports) = me.upgrade() else {
                return Activation::Done;
            };
            let more = ports
                .try_borrow_mut()
                .map_or(true, |mut ports| ports.service(index));
            if more {
                Activation::Again
            } else {
                Activation::Idle
            }
        };
        self.calls.before(Call::Watch).ok()?;
        let fd = fd.try_clone_to_owned().ok()?;
        // If the watch fails, the periodic tick services the interface, a little later.
        self.host.processes.watch(INFO, fd, body).ok()
    }

    /// Service all interfaces.
    pub fn service_all(&mut self) {
        self.vhost.reap();
        self.virtio.reap();
        let all: Vec<IfIdx> = self.ports.iter().map(|p| p.index).collect();
        all.into_iter().for_each(|index| _ = self.service(index));
    }

    /// Service an interface; true if more work is pending.
    pub fn service(&mut self, index: IfIdx) -> bool {
        let Some(at) = self.ports.iter().position(|p| p.index == index) else {
            return false;
        };
        let (port, calls) = (&mut self.ports[at], &*self.calls);
        let mut more = false;
        port.account.reconcile(&mut port.reconciled);
        let ended = match port.trouble() {
            Some(fault) => Some(Err(fault)),
            None => port.converse(calls).map_or_else(
                |fault| Some(Err(fault)),
                |talk| {
                    more = talk == HandshakeState::More;
                    (talk == HandshakeState::Closed).then_some(Ok(()))
                },
            ),
        };
        if let Some(end) = ended {
            let interface = || self.host.interfaces.borrow().name(index.0);
            match &end {
                Ok(()) => info!(target: "vhost", interface = interface(), "peer disconnected"),
                Err(fault) => {
                    warn!(target: "vhost", interface = interface(), "peer disconnected: {fault}");
                }
            }
            port.hang_up(end.err(), calls.now());
        }
        if port.peer.is_none()
            && port.wire.is_clear()
            && let Some(socket) = port.meet(calls)
        {
            self.welcome(at, socket);
            more = true;
        }
        self.tell(at);
        more
    }

    /// Set up a new peer.
    fn welcome(&mut self, at: usize, socket: Socket) {
        let watch = self.watch(self.ports[at].index, socket.as_fd());
        let port = &mut self.ports[at];
        let interface = || self.host.interfaces.borrow().name(port.index.0);
        info!(target: "vhost", interface = interface(), "peer connected");
        port.connections += 1;
        let (wanted, wire) = (wanted(&port.spec, port.front), port.wire.clone());
        let end = if port.front {
            let size = (port.spec.ring as u16, port.spec.queues as usize);
            match Frontend::new(wanted, wire, size, &socket, self.calls.clone()) {
                Ok(end) => End::Front(end),
                Err(fault) => return port.hang_up(Some(fault), self.calls.now()),
            }
        } else {
            let end = Backend::new(wanted, wire, port.account.clone());
            End::Back(end.with_calls(self.calls.clone()))
        };
        port.peer = Some(Peer {
            socket,
            end,
            _watch: watch,
        });
    }

    /// Update the interface's link state, queues and capabilities.
    fn tell(&mut self, at: usize) {
        let port = &mut self.ports[at];
        let pairs = port.peer.as_ref().map_or(0, |p| p.end.pairs());
        let link = match (&port.peer, pairs, &port.fault) {
            (Some(_), 1.., _) => Link::Up,
            (Some(_), 0, _) => Link::down("the peer is not ready"),
            (None, _, Some(fault)) => Link::down(fault),
            (None, _, None) => Link::down(waiting(&port.spec)),
        };
        let (index, changed) = (port.index, pairs != port.pairs);
        port.pairs = pairs;
        let features = port.peer.as_ref().map_or(0, |p| p.end.features());
        let caps = caps(features, port.front);
        if changed {
            let worker_set = self.host.engine.borrow().worker_set().clone();
            let rx = self.host.reassign_workers(index, pairs.max(1));
            let wire = port.wire.clone();
            for (place, worker) in wire.places.iter().zip(&rx) {
                place.request(*worker, &worker_set);
            }
            self.host.set_queues(index, rx, pairs.max(1) as u32);
            self.host.set_caps(index, caps);
            self.host.wake();
        }
        let same = {
            let interfaces = self.host.interfaces.borrow();
            interfaces.get(index).is_some_and(|i| i.link == link)
        };
        if !same {
            self.host.set_link(index, link);
        }
    }
}

/// Result of reading a peer's messages.
#[derive(PartialEq, Eq)]
enum HandshakeState {
    Idle,
    More,
    Closed,
}

impl Port {
    /// A fault of the peer other than a faulty message.
    fn trouble(&self) -> Option<Fault> {
        let blocked = self.peer.as_ref().is_some_and(|peer| peer.end.is_blocked());
        let text =
            "the peer fills the event counter that it is notified by, so that a write blocks";
        let found = self.wire.take_fault().map(Fault::from);
        found.or_else(|| blocked.then(|| Fault::new("notification-blocked", text)))
    }

    /// Handle the messages that the peer has sent.
    fn converse(&mut self, calls: &dyn Calls) -> Result<HandshakeState, Fault> {
        let Some(peer) = &mut self.peer else {
            return Ok(HandshakeState::Idle);
        };
        for _ in 0..MESSAGES {
            if !calls.before_receive().map_err(Fault::of_socket)? {
                return Ok(HandshakeState::Idle);
            }
            let message = match peer.socket.receive()? {
                Arrived::Message(message) => message,
                Arrived::Nothing => return Ok(HandshakeState::Idle),
                Arrived::Closed => return Ok(HandshakeState::Closed),
            };
            if !message.files.is_empty() {
                calls.before(Call::ReceiveFile).map_err(Fault::of_socket)?;
            }
            match &mut peer.end {
                End::Back(end) => {
                    if let Some(answer) = end.handle(message)? {
                        calls.before(Call::Send).map_err(Fault::of_socket)?;
                        peer.socket.send(&answer, &[])?;
                    }
                }
                End::Front(end) => end.handle(message, &peer.socket)?,
            }
        }
        Ok(HandshakeState::More)
    }

    /// Close the connection, which the peer ended or which has a fault.
    fn hang_up(&mut self, fault: Option<Fault>, now: Instant) {
        // Dropping the peer drops its rings.
        self.peer = None;
        // A peer that closes the socket while a message is sent to it has disconnected; this is not a fault.
        self.fault = fault.filter(|f| f.name != "peer-closed");
        if !self.wire.is_clear() {
            self.fault = Some(Stuck.into());
        }
        self.faults += u64::from(self.fault.is_some());
        self.retry = now + PATIENCE;
    }

    /// Accept or connects to the next peer.
    fn meet(&mut self, calls: &dyn Calls) -> Option<Socket> {
        if let Some(listener) = &self.listener {
            calls.before(Call::Accept).ok()?;
            return listener.accept().ok().flatten();
        }
        let now = calls.now();
        if now < self.retry {
            return None;
        }
        self.retry = now + PATIENCE;
        calls.before(Call::Connect).ok()?;
        connect(&self.spec.socket).ok()
    }
}

fn listen(spec: &VirtioUser) -> Result<Listener, ModelError> {
    Listener::bind(&spec.socket).map_err(|why| match why {
        Bind::System(e) => ModelError::file(&spec.socket, e),
        other => ModelError::invalid(format!("socket {}", spec.socket.display()), other),
    })
}

fn waiting(spec: &VirtioUser) -> &'static str {
    match spec.role {
        SocketRole::Server => "no peer has connected to its socket",
        SocketRole::Client => "no peer answers at its socket",
    }
}

fn wanted(spec: &VirtioUser, front: bool) -> Wanted {
    Wanted {
        gso: spec.gso,
        packed: spec.packed,
        event_idx: spec.event_idx,
        mq: !front || spec.queues > 1,
    }
}

/// Offloads that the peer performs on transmitted packets.
fn caps(features: u64, front: bool) -> Caps {
    let bits = if front {
        [feature::CSUM, feature::HOST_TSO4, feature::HOST_TSO6]
    } else {
        [
            feature::GUEST_CSUM,
            feature::GUEST_TSO4,
            feature::GUEST_TSO6,
        ]
    };
    let [checksum, tcp4, tcp6] = bits.map(|bit| features & bit != 0);
    Caps {
        checksum,
        tcp4,
        tcp6,
        udp: false,
    }
}

/// The driver's side of an interface.
struct Side(Weak<RefCell<Ports>>, Rc<Cell<Option<IfIdx>>>);

impl DriverPort for Side {
    fn details(&self) -> Vec<String> {
        let (Some(ports), Some(index)) = (self.0.upgrade(), self.1.get()) else {
            return Vec::new();
        };
        let ports = ports.try_borrow();
        ports.map_or_else(|_| Vec::new(), |ports| ports.details(index))
    }
}

/// The request handler of both interface kinds.
pub struct VhostHandler(pub Rc<RefCell<Ports>>);

impl Handler for VhostHandler {
    fn apply(&mut self, request: &Request) -> Option<Result<Applied, ModelError>> {
        match request {
            Request::InterfaceCreate(spec) => {
                let (vhost, front) = match spec.kind_as::<VirtioUser>() {
                    Some(vhost) => (vhost, true),
                    None => (spec.kind_as::<VhostUser>()?.into(), false),
                };
                Some(self.0.borrow_mut().create(spec, (&vhost, front)))
            }
            Request::InterfaceDelete { name } => self.0.borrow_mut().delete(name),
            _ => None,
        }
    }
}
