//! Interfaces, sockets and connections on the control thread: listening, connecting and reconnecting.
//!
//! Nothing here blocks. [`Control::turn`] is called when a socket is readable and at least every [`TICK`]. It does a
//! bounded amount of work, so a peer that sends without end delays no other work.

use crate::MemifInput;
use crate::link::ConnectionRings;
use crate::model::{Memif, MemifRole};
use crate::node::memif_input::{Assigned, Inbox};
use crate::node::memif_tx::{Connected, MemifTx};
use crate::session::{Joined, Joining, Offer, Served, Serving, hello};
use crate::socket::{Address, Channel, ChannelError, ListenError, Listener, receive, send, watch};
use crate::wire::{Init, Message, Text};
use rustix::event::epoll;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracing::{info, warn};
use volley_graph::{Activation, Source};
use volley_iface::AdminState;
use volley_iface::driver::{DriverHost, NewInterface};
use volley_iface::{IfIdx, Link as State};
use volley_model::{Applied, InterfaceSpec, ModelError, ObjectKind};
use volley_shm::Account;
use volley_shm::calls::{Call, Calls};
use volley_tables::qsbr::Publisher;

/// Name of the interface kind.
pub const KIND: &str = "memif";
/// Default L3 MTU.
pub const MTU: u32 = 9000;
/// Maximum interval between two checks of the connections.
pub const TICK: Duration = Duration::from_millis(20);
/// Maximum duration of a handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Limits of a slave's pause between connection attempts.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LAST_PAUSE: Duration = Duration::from_secs(1);
/// A connection that lasts at least this long resets the pause.
const STEADY: Duration = Duration::from_secs(1);
/// Maximum number of concurrent handshakes on one socket.
const TALKING: usize = 32;
/// Maximum number of events and messages per call of `turn`.
const EVENTS: usize = 64;

/// A socket.
pub(crate) struct Socket {
    pub(crate) address: Address,
    pub(crate) listener: Option<Listener>,
    /// Accepting failed: the listener is not watched until then.
    paused: Option<Instant>,
}

/// An interface.
pub(crate) struct Port {
    pub(crate) index: IfIdx,
    pub(crate) spec: Memif,
    pub(crate) link: Option<Arc<ConnectionRings>>,
    pub(crate) peer: String,
    pub(crate) reason: String,
    pub(crate) connections: u64,
    /// Memory charged to the interface's peers.
    account: Arc<Account>,
    reconciled: Option<Instant>,
    /// Admin state, as far as known.
    wanted: bool,
    connected: Publisher<Connected>,
    connection: Option<u64>,
    since: Instant,
    again: Option<Instant>,
    pause: Duration,
}

enum HandshakeState {
    Serving { socket: u32, session: Serving },
    Joining(Joining),
}

struct Connection {
    channel: Channel,
    talk: HandshakeState,
    since: Instant,
    /// The interface, once it is known.
    port: Option<IfIdx>,
}

/// The crate's state on the control thread.
pub struct Control {
    host: DriverHost,
    pub(crate) sockets: BTreeMap<u32, Socket>,
    pub(crate) ports: BTreeMap<IfIdx, Port>,
    connections: BTreeMap<u64, Connection>,
    inboxes: Vec<Arc<Inbox>>,
    events: OwnedFd,
    next: u64,
    calls: Rc<dyn Calls>,
}

/// Event keys from here on are connections, below are sockets.
const CONNECTIONS: u64 = 1 << 32;

impl Control {
    /// No interfaces; socket 0 at `default`.
    pub fn new(
        host: DriverHost,
        inboxes: Vec<Arc<Inbox>>,
        default: Address,
        calls: Rc<dyn Calls>,
    ) -> std::io::Result<Self> {
        let events = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let socket = Socket {
            address: default,
            listener: None,
            paused: None,
        };
        Ok(Control {
            host,
            sockets: BTreeMap::from([(0, socket)]),
            ports: BTreeMap::new(),
            connections: BTreeMap::new(),
            inboxes,
            events,
            next: CONNECTIONS,
            calls,
        })
    }

    /// A file descriptor that becomes readable when work is pending.
    pub fn events(&self) -> std::io::Result<OwnedFd> {
        self.events.try_clone()
    }

    /// Create an interface.
    pub fn create(&mut self, spec: &InterfaceSpec, memif: &Memif) -> Result<(), ModelError> {
        self.host.check_free(&spec.name)?;
        let Some(socket) = self.sockets.get(&memif.socket) else {
            let why = format!(
                "there is none: make it with 'create memif socket id {} filename ...'",
                memif.socket
            );
            let what = format!("memif socket id {}", memif.socket);
            return Err(ModelError::invalid(what, why));
        };
        let others = self
            .ports
            .values()
            .filter(|p| p.spec.socket == memif.socket);
        for other in others {
            if other.spec.id == memif.id {
                let what = format!("memif id {} on socket {}", memif.id, memif.socket);
                let why = format!(
                    "interface {} has it: choose another id",
                    self.name(other.index)
                );
                return Err(ModelError::invalid(what, why));
            }
            if other.spec.role != memif.role {
                let what = format!("role {} on memif socket {}", memif.role, memif.socket);
                let why = format!(
                    "interface {} is {} there, and a socket serves one role: use another socket",
                    self.name(other.index),
                    other.spec.role
                );
                return Err(ModelError::invalid(what, why));
            }
        }
        if memif.role == MemifRole::Master && socket.listener.is_none() {
            self.listen(memif.socket)?;
        }
        let made = self.attach(spec, memif);
        if made.is_err() {
            self.close_unused();
        }
        made
    }

    fn listen(&mut self, id: u32) -> Result<(), ModelError> {
        let Some(socket) = self.sockets.get_mut(&id) else {
            return Ok(());
        };
        let failed = |e: ListenError| ModelError::file(&socket.address.0, e);
        let listener = Listener::bind(&socket.address).map_err(failed)?;
        let watched = watch(&*self.calls, &self.events, listener.as_fd(), id.into());
        watched.map_err(|e| failed(ListenError::from(e)))?;
        (socket.listener, socket.paused) = (Some(listener), None);
        Ok(())
    }

    /// Close listeners that no master uses any more.
    fn close_unused(&mut self) {
        for (id, socket) in &mut self.sockets {
            let master = |p: &Port| p.spec.socket == *id && p.spec.role == MemifRole::Master;
            if !self.ports.values().any(master) {
                socket.listener = None;
            }
        }
    }

    fn attach(&mut self, spec: &InterfaceSpec, memif: &Memif) -> Result<(), ModelError> {
        let size = self.host.engine.borrow().settings().vector_size;
        let domain = self.host.engine.borrow().domain().clone();
        let connected = Publisher::new(&domain, None);
        let (snap, table) = (
            connected.snap(),
            self.host.interfaces.borrow().table().clone(),
        );
        let mut new = NewInterface::new(&spec.name, KIND);
        new.mac = spec.mac.map(|mac| mac.0);
        new.mtu = spec.mtu.unwrap_or(MTU);
        new.default_mtu = MTU;
        new.rx_node = MemifInput::NAME;
        new.link = State::down("no peer is connected");
        (new.rx_queues, new.tx_queues) = (Vec::new(), 0);
        let index = self.host.attach(new, move |worker, index| {
            MemifTx::new(worker, table.clone(), index.0, snap.clone(), size)
        })?;
        let now = self.calls.now();
        let port = Port {
            index,
            spec: memif.clone(),
            link: None,
            peer: String::new(),
            reason: "the interface is down".to_owned(),
            connections: 0,
            account: Account::new(),
            reconciled: None,
            wanted: false,
            connected,
            connection: None,
            since: now,
            again: None,
            pause: FIRST_PAUSE,
        };
        self.ports.insert(index, port);
        Ok(())
    }

    /// Index of the memif interface with this name.
    pub fn find(&self, name: &str) -> Option<IfIdx> {
        let index = self.host.interfaces.borrow().by_name(name)?.index;
        self.ports.contains_key(&index).then_some(index)
    }

    /// Present name of an interface.
    pub fn name(&self, index: IfIdx) -> String {
        self.host.interfaces.borrow().name(index.0)
    }

    /// Delete an interface.
    pub fn delete(&mut self, index: IfIdx) -> Result<(), ModelError> {
        self.host.detach(index)?;
        self.part(index, "the interface was deleted", self.calls.now());
        self.ports.remove(&index);
        self.close_unused();
        Ok(())
    }

    /// Create a socket, or change the address of an unused one.
    pub fn set_socket(&mut self, id: u32, address: Address) -> Result<Applied, ModelError> {
        if let Some((other, _)) = self.sockets.iter().find(|(_, s)| s.address == address) {
            if *other == id {
                return Ok(Applied::nothing());
            }
            let what = format!("filename {}", address.0.display());
            let why = format!("memif socket {other} has it: use that one");
            return Err(ModelError::invalid(what, why));
        }
        self.is_unused(id)?;
        let socket = Socket {
            address,
            listener: None,
            paused: None,
        };
        self.sockets.insert(id, socket);
        Ok(Applied::one())
    }

    fn is_unused(&self, id: u32) -> Result<(), ModelError> {
        match self.ports.values().find(|p| p.spec.socket == id) {
            Some(port) => {
                let by = format!("interface {}", self.name(port.index));
                let socket = format!("memif socket {id}");
                Err(ModelError::in_use(ObjectKind::Object, socket, by))
            }
            None => Ok(()),
        }
    }

    /// Remove a socket.
    pub fn delete_socket(&mut self, id: u32) -> Result<(), ModelError> {
        self.is_unused(id)?;
        let known = self.sockets.keys().map(u32::to_string);
        let known: Vec<String> = known.collect();
        match self.sockets.remove(&id) {
            Some(_) => Ok(()),
            None => {
                let socket = format!("memif socket {id}");
                Err(ModelError::not_found(ObjectKind::Object, socket, known))
            }
        }
    }

    /// Do the pending work.
    pub fn turn(&mut self) -> Activation {
        let now = self.calls.now();
        let mut events = Vec::with_capacity(EVENTS);
        self.learn_states();
        self.inboxes.iter().for_each(|inbox| inbox.free());
        let zero = rustix::event::Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let waited = epoll::wait(
            &self.events,
            rustix::buffer::spare_capacity(&mut events),
            Some(&zero),
        );
        for event in &events {
            match event.data.u64() {
                number if number < CONNECTIONS => self.accept(number as u32, now),
                number => self.hear(number, now),
            }
        }
        self.look_after(now);
        if waited.is_ok_and(|n| n > 0) {
            Activation::Again
        } else {
            Activation::Idle
        }
    }

    /// Read the interfaces' admin states.
    fn learn_states(&mut self) {
        let all = self.host.interfaces.borrow();
        for (index, port) in &mut self.ports {
            port.wanted = all.get(*index).is_some_and(|i| i.state == AdminState::Up);
        }
    }

    fn accept(&mut self, socket: u32, now: Instant) {
        for _ in 0..EVENTS {
            let listener = self.sockets.get(&socket).and_then(|s| s.listener.as_ref());
            let Some(listener) = listener else { return };
            let may_fail = self.calls.before(Call::Accept);
            let channel = match may_fail.and_then(|()| listener.next()) {
                Ok(Some(channel)) => channel,
                Ok(None) => return,
                Err(error) => return self.pause(socket, error, now),
            };
            let session = Serving::new(self.calls.clone());
            let talk = HandshakeState::Serving { socket, session };
            let talking = self.connections.values().filter(|c| {
                c.port.is_none()
                    && matches!(c.talk, HandshakeState::Serving { socket: s, .. } if s == socket)
            });
            // A connection beyond the limit gets no reply and is closed.
            if talking.count() < TALKING
                && send(&*self.calls, &channel, &hello(), None).is_ok()
                && let Err(error) = self.begin(channel, talk, None, now)
            {
                warn!(target: "memif", "a connection cannot be watched, and is closed: {error}");
            }
        }
    }

    /// Stop watching a listener for a while after accepting failed, as it does without free file descriptors: the connection
    /// still waits, and would wake the control thread again and again.
    fn pause(&mut self, id: u32, error: Errno, now: Instant) {
        let Some(socket) = self.sockets.get_mut(&id) else {
            return;
        };
        let path = socket.address.0.display();
        warn!(target: "memif", "{path}: a connection cannot be accepted: {error}");
        if let Some(listener) = &socket.listener {
            let _ = epoll::delete(&self.events, listener);
            socket.paused = Some(now + LAST_PAUSE);
        }
    }

    /// Watch listeners again whose pause has ended.
    fn resume(&mut self, now: Instant) {
        for (id, socket) in &mut self.sockets {
            let Some(listener) = socket.listener.as_ref() else {
                continue;
            };
            if socket.paused.is_some_and(|until| until <= now) {
                let (file, number) = (listener.as_fd(), u64::from(*id));
                let watched = watch(&*self.calls, &self.events, file, number);
                socket.paused = watched.is_err().then(|| now + LAST_PAUSE);
            }
        }
    }

    fn begin(
        &mut self,
        channel: Channel,
        talk: HandshakeState,
        port: Option<IfIdx>,
        now: Instant,
    ) -> Result<(), Errno> {
        let number = self.next;
        self.next += 1;
        watch(&*self.calls, &self.events, channel.as_fd(), number)?;
        if let Some(port) = port.and_then(|port| self.ports.get_mut(&port)) {
            port.connection = Some(number);
        }
        let connection = Connection {
            channel,
            talk,
            since: now,
            port,
        };
        self.connections.insert(number, connection);
        Ok(())
    }

    /// Receive messages of a connection.
    fn hear(&mut self, number: u64, now: Instant) {
        for _ in 0..EVENTS {
            let Some(connection) = self.connections.get(&number) else {
                return;
            };
            match receive(&*self.calls, &connection.channel) {
                Ok(None) => return,
                Ok(Some((message, file))) => {
                    if let (Message::Init(init), HandshakeState::Serving { socket, session }) =
                        (message, &connection.talk)
                        && session.peer.is_none()
                    {
                        let socket = *socket;
                        self.hear_holder(number, socket, init.id, now);
                    }
                    if let Err(reason) = self.answer(number, message, file, now) {
                        let polite = !matches!(message, Message::Disconnect { .. });
                        return self.end(number, &reason, polite, now);
                    }
                }
                Err(error) => {
                    let polite = !matches!(error, ChannelError::Gone);
                    return self.end(number, &error.to_string(), polite, now);
                }
            }
        }
    }

    /// Read from the connection that holds the interface which connection `number` requests: its end may not be noticed
    /// yet.
    fn hear_holder(&mut self, number: u64, socket: u32, id: u32, now: Instant) {
        let mut ports = self.ports.values();
        let port = ports.find(|p| p.spec.socket == socket && p.spec.id == id);
        if let Some(holder) = port.and_then(|p| p.connection)
            && holder != number
        {
            self.hear(holder, now);
        }
    }

    fn answer(
        &mut self,
        number: u64,
        message: Message,
        file: Option<OwnedFd>,
        now: Instant,
    ) -> Result<(), String> {
        let named = self.connections.get(&number).and_then(|c| c.port);
        let (ports, connections) = (&mut self.ports, &mut self.connections);
        let Some(Connection {
            channel,
            talk,
            port,
            ..
        }) = connections.get_mut(&number)
        else {
            return Ok(());
        };
        let calls = self.calls.clone();
        let say = |message: &Message, file: Option<BorrowedFd<'_>>| {
            send(&*calls, channel, message, file).map_err(|e| e.to_string())
        };
        let link = match talk {
            HandshakeState::Serving { socket, session } => {
                let admit = |init: &Init| {
                    let (index, account) = admit(ports, *socket, number, init)?;
                    *port = Some(index);
                    Ok(account)
                };
                match session.receive(message, file, admit)? {
                    Served::Ack => return say(&Message::Ack, None),
                    Served::Up(link) => {
                        let name = named.map_or_else(String::new, |index| {
                            self.host.interfaces.borrow().name(index.0)
                        });
                        say(&Message::Connected(Text::new(&name)), None)?;
                        Some((link, session.peer.clone().unwrap_or_default()))
                    }
                }
            }
            HandshakeState::Joining(session) => match session.receive(message, file)? {
                Joined::Next => {
                    if let Some((message, file)) = session.say() {
                        say(&message, file)?;
                    }
                    None
                }
                Joined::Up(link) => Some((link, session.peer.clone())),
            },
        };
        if let (Some((link, peer)), Some(index)) = (link, *port) {
            self.come_up(index, link, peer, now);
        }
        Ok(())
    }

    fn come_up(&mut self, index: IfIdx, link: Arc<ConnectionRings>, peer: String, now: Instant) {
        let Some(port) = self.ports.get_mut(&index) else {
            return;
        };
        let interface = || self.host.interfaces.borrow().name(index.0);
        info!(target: "memif", interface = interface(), peer, "peer connected");
        port.connected.publish(Some(link.clone()));
        port.peer = peer;
        port.connections += 1;
        port.since = now;
        port.reason.clear();
        let (rx, tx) = (link.rx().len(), link.tx().len() as u32);
        port.link = Some(link.clone());
        let placed = self.host.reassign_workers(index, rx);
        for (queue, worker) in link.rx().iter().zip(&placed) {
            queue.place.set(*worker);
        }
        self.host.set_queues(index, placed, tx);
        let (peer, engine) = (Arc::downgrade(&link), self.host.engine.clone());
        self.host.set_queue_mover(index, move |queue, worker| {
            let peer = peer.upgrade();
            if let Some(queue) = peer.as_ref().and_then(|p| p.rx().get(queue)) {
                queue.place.request(worker, engine.borrow().worker_set());
            }
        });
        self.publish_queues();
        self.host.set_link(index, State::Up);
    }

    /// Publish the list of queues to each worker; each queue names its owner.
    pub(crate) fn publish_queues(&mut self) {
        let worker_set = self.host.engine.borrow().worker_set().clone();
        for (worker, inbox) in self.inboxes.iter().enumerate() {
            if !worker_set.has(worker) {
                inbox.clear();
                continue;
            }
            let mut queues = Vec::new();
            for port in self.ports.values() {
                let Some(link) = &port.link else { continue };
                queues.extend((0..link.rx().len()).map(|queue| Assigned {
                    interface: port.index.0,
                    link: link.clone(),
                    queue,
                }));
            }
            inbox.hand(queues);
        }
        self.host.wake();
    }

    /// End an interface's connection, if it has one, with a reason.
    fn part(&mut self, index: IfIdx, reason: &str, now: Instant) {
        let connection = self.ports.get(&index).and_then(|p| p.connection);
        if let Some(number) = connection {
            self.end(number, reason, true, now);
        }
    }

    /// End a connection.
    fn end(&mut self, number: u64, reason: &str, polite: bool, now: Instant) {
        let Some(connection) = self.connections.remove(&number) else {
            return;
        };
        if polite {
            let (code, reason) = (0, Text::new(reason));
            let message = Message::Disconnect { code, reason };
            let _ = send(&*self.calls, &connection.channel, &message, None);
        }
        let _ = epoll::delete(&self.events, connection.channel.as_fd());
        let Some(port) = connection.port.and_then(|p| self.ports.get_mut(&p)) else {
            info!(target: "memif", "a connection that is no interface's ended: {reason}");
            return;
        };
        if port.connection != Some(number) {
            return;
        }
        port.connection = None;
        let index = port.index;
        let (peer, interface) = (&port.peer, || self.host.interfaces.borrow().name(index.0));
        if port
            .link
            .as_ref()
            .is_some_and(|link| link.fault().is_some())
        {
            warn!(target: "memif", interface = interface(), peer, "peer disconnected: {reason}");
        } else if port.link.is_some() {
            info!(target: "memif", interface = interface(), peer, "peer disconnected: {reason}");
        } else {
            info!(target: "memif", interface = interface(), peer, "no connection: {reason}");
        }
        port.reason = reason.to_owned();
        port.peer.clear();
        let was_up = port.link.take().is_some();
        if was_up && now.duration_since(port.since) >= STEADY {
            port.pause = FIRST_PAUSE;
        }
        port.again = Some(now + port.pause);
        port.pause = (port.pause * 2).min(LAST_PAUSE);
        if was_up {
            port.connected.publish(None);
        }
        self.host.set_link(index, State::down(reason));
        if was_up {
            self.host.set_queues(index, Vec::new(), 0);
            self.publish_queues();
        }
    }

    /// Work without a message: faults that workers found, handshakes that time out, slaves that connect again, and
    /// interfaces whose admin state changed.
    fn look_after(&mut self, now: Instant) {
        let late: Vec<u64> = self
            .connections
            .iter()
            .filter(|(_, c)| {
                let up = c
                    .port
                    .and_then(|p| self.ports.get(&p))
                    .is_some_and(|p| p.link.is_some());
                !up && now.duration_since(c.since) > HANDSHAKE
            })
            .map(|(number, _)| *number)
            .collect();
        for number in late {
            self.end(number, "the handshake took too long", true, now);
        }
        self.resume(now);
        let indices: Vec<IfIdx> = self.ports.keys().copied().collect();
        for index in indices {
            self.look_after_port(index, now);
        }
    }

    fn look_after_port(&mut self, index: IfIdx, now: Instant) {
        let Some(port) = self.ports.get_mut(&index) else {
            return;
        };
        port.account.reconcile(&mut port.reconciled);
        if let Some(fault) = port.link.as_ref().and_then(|link| link.fault()) {
            return self.part(index, &format!("peer fault: {fault}"), now);
        }
        if !port.wanted {
            if port.connection.is_some() {
                self.part(index, "the interface is down", now);
            } else if port.reason.is_empty() {
                port.reason = "the interface is down".to_owned();
            }
            if let Some(port) = self.ports.get_mut(&index) {
                (port.again, port.pause) = (None, FIRST_PAUSE);
            }
            return;
        }
        let due = port.again.is_none_or(|again| again <= now);
        if port.spec.role == MemifRole::Slave && port.connection.is_none() && due {
            self.join(index, now);
        }
    }

    /// Connect a slave.
    fn join(&mut self, index: IfIdx, now: Instant) {
        let Some(port) = self.ports.get(&index) else {
            return;
        };
        let Some(socket) = self.sockets.get(&port.spec.socket) else {
            return;
        };
        let path = socket.address.0.display().to_string();
        let may_fail = self.calls.before(Call::Connect);
        let begun = match may_fail.and_then(|()| Channel::connect(&socket.address)) {
            Ok(channel) => {
                let spec = &port.spec;
                let offer = Offer {
                    id: spec.id,
                    secret: spec.secret.clone().unwrap_or_default(),
                    name: self.host.interfaces.borrow().name(index.0),
                    rx_queues: spec.rx_queues as u16,
                    tx_queues: spec.tx_queues as u16,
                    log2: spec.ring_size.trailing_zeros() as u8,
                    buffer_size: spec.buffer_size,
                };
                let session = Joining::with(offer, self.calls.clone());
                let talk = HandshakeState::Joining(session);
                self.begin(channel, talk, Some(index), now)
            }
            Err(error) => Err(error),
        };
        if let (Err(error), Some(port)) = (begun, self.ports.get_mut(&index)) {
            port.reason = format!("{path}: {error}");
            port.again = Some(now + port.pause);
            port.pause = (port.pause * 2).min(LAST_PAUSE);
            let link = State::down(&port.reason);
            self.host.set_link(index, link);
        }
    }
}

impl Drop for Control {
    /// Notify the peers; sockets are removed with their listeners.
    fn drop(&mut self) {
        let reason = Text::new("Volley ends");
        for connection in self.connections.values() {
            let message = Message::Disconnect { code: 0, reason };
            let _ = connection.channel.send(&message, None);
        }
    }
}

/// Whether a client may connect to the interface that it names.
fn admit(
    ports: &mut BTreeMap<IfIdx, Port>,
    socket: u32,
    number: u64,
    init: &Init,
) -> Result<(IfIdx, Arc<Account>), String> {
    let wanted = |p: &&mut Port| p.spec.socket == socket && p.spec.id == init.id;
    let port = ports.values_mut().find(wanted);
    let port = port.ok_or("unmatched interface id")?;
    if port.spec.role == MemifRole::Slave {
        return Err("cannot connect to slave".into());
    }
    if !port.wanted {
        return Err("the interface is down".into());
    }
    if port.connection.is_some() {
        return Err("already connected".into());
    }
    if let Some(secret) = &port.spec.secret {
        if init.secret.is_empty() {
            return Err("secret required".into());
        }
        if init.secret != Text::new(secret) {
            return Err("incorrect secret".into());
        }
    }
    port.connection = Some(number);
    Ok((port.index, port.account.clone()))
}
