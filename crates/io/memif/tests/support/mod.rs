//! A Volley with memif interfaces that a test steps, and a peer without a graph.
#![allow(dead_code)]

pub mod hostile;
#[path = "../../../shm/tests/support/process.rs"]
pub mod process;
pub mod testpmd;

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use volley_graph::buf::Pool;
use volley_graph::{Clock, Domain, Engine, Level, Settings, Worker, WorkerThreads};
use volley_iface::Admin;
use volley_iface::AdminState;
use volley_iface::{IfCounts, Interfaces, Registry};
use volley_memif::link::ConnectionRings;
use volley_memif::model::{Memif, MemifRole, MemifSocket};
use volley_memif::ring::Scratch;
use volley_memif::session::{Joined, Joining, Offer, Served, Serving, hello};
use volley_memif::socket::{Address, Channel, Listener};
use volley_memif::wire::{Message, Text};
use volley_memif::{MemifReply, MemifRow, ShowMemif};
use volley_model::{Handler, InterfaceSpec, ModelError, Request};
use volley_object::Object;
use volley_shm::calls::{Calls, Kernel};

/// A Volley with memif and patches.
pub struct Router {
    pub engine: Rc<RefCell<Engine>>,
    pub interfaces: Rc<RefCell<Interfaces>>,
    pub workers: Vec<Worker>,
    pub pool: Arc<Pool>,
    handlers: Vec<Box<dyn Handler>>,
    owners: volley_model::Owners,
    pub memif: volley_memif::Memif,
    running: Option<WorkerThreads>,
}

/// Enough packets for a ring, a vector and the caches.
pub const BUFFERS: usize = 8192;

impl Router {
    pub fn new(socket: &Path, workers: usize) -> Router {
        Router::with(socket, workers, Rc::new(Kernel))
    }

    /// A Volley with system calls that may fail.
    pub fn with(socket: &Path, workers: usize, calls: Rc<dyn Calls>) -> Router {
        let pool = Pool::new(BUFFERS).unwrap();
        let settings = Settings {
            vector_size: 256,
            buffers: BUFFERS,
            level: Level::detect(),
            workers,
            clock: Clock::system(),
        };
        let engine = Engine::new(settings, pool.clone(), Domain::new()).unwrap();
        let mut registry = Registry::new(engine);
        volley_iface::register(&mut registry).unwrap();
        volley_l2::register(&mut registry).unwrap();
        let memif = volley_memif::register_with(&mut registry, socket.to_owned(), calls).unwrap();
        let workers = registry.engine.borrow_mut().build().unwrap();
        let Registry {
            engine,
            interfaces,
            handlers,
            owners,
            ..
        } = registry;
        Router {
            engine,
            interfaces,
            workers,
            pool,
            handlers,
            owners,
            memif,
            running: None,
        }
    }

    pub fn apply(&mut self, request: Request) -> Result<(), ModelError> {
        request.validate()?;
        let owned = self.owners.apply(&request);
        let mut handlers = self.handlers.iter_mut();
        let answer = owned.or_else(|| handlers.find_map(|h| h.apply(&request)));
        answer.expect("a handler takes the request").map(|_| ())
    }

    pub fn socket(&mut self, id: u32, filename: PathBuf) -> Result<(), ModelError> {
        let socket = MemifSocket { id, filename }.instance();
        self.apply(Request::Set(socket.expect("the socket is well-formed")))
    }

    pub fn no_socket(&mut self, id: u32) -> Result<(), ModelError> {
        let class = MemifSocket::class().unwrap();
        let key = class.key(vec![u64::from(id).into()]).unwrap();
        self.apply(Request::Unset(key))
    }

    /// Create an interface and set it up.
    pub fn memif(&mut self, memif: Memif) -> String {
        let spec = InterfaceSpec::of(&memif).unwrap();
        self.apply(Request::InterfaceCreate(spec.clone())).unwrap();
        let name = spec.name;
        self.state(&name, AdminState::Up);
        name
    }

    pub fn create(&mut self, memif: Memif) -> Result<(), ModelError> {
        let spec = InterfaceSpec::of(&memif).unwrap();
        self.apply(Request::InterfaceCreate(spec))
    }

    pub fn delete(&mut self, name: &str) -> Result<(), ModelError> {
        self.apply(Request::InterfaceDelete { name: name.into() })
    }

    pub fn state(&mut self, name: &str, state: AdminState) {
        self.apply(Admin::request(name, state).unwrap()).unwrap();
    }

    pub fn patch(&mut self, rx: &str, tx: &str) {
        let (rx, tx) = (rx.to_owned(), tx.to_owned());
        let patch = volley_l2::model::L2Patch { rx, tx };
        self.apply(Request::set(&patch).unwrap()).unwrap();
    }

    /// One round of workers and control thread.
    pub fn step(&mut self) {
        self.memif.turn();
        self.workers.iter_mut().for_each(|w| _ = w.step());
        self.engine.borrow().settled();
    }

    /// Run the workers on threads; from now on [`Router::step`] does the control thread's part only.
    pub fn start(&mut self, cores: &[usize]) {
        let workers = std::mem::take(&mut self.workers);
        self.running = Some(WorkerThreads::start(workers, cores).unwrap());
    }

    /// Stop the worker threads.
    pub fn stop(&mut self) {
        if let Some(running) = self.running.take() {
            self.workers = running.stop();
        }
    }

    /// Act as the control thread for a while.
    pub fn pass(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            self.step();
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// One round of the workers only.
    pub fn work(&mut self) {
        self.workers.iter_mut().for_each(|w| _ = w.step());
    }

    pub fn report(&mut self) -> MemifReply {
        self.owners.ask(&ShowMemif).unwrap()
    }

    pub fn row(&mut self, name: &str) -> MemifRow {
        let rows = self.report().interfaces;
        rows.into_iter().find(|r| r.name == name).unwrap()
    }

    pub fn counts(&self, name: &str) -> IfCounts {
        let all = self.interfaces.borrow();
        all.counts(all.by_name(name).unwrap())
    }

    /// Reason why an interface has no link, as `show hardware` prints it.
    pub fn link_reason(&self, name: &str) -> Option<String> {
        let all = self.interfaces.borrow();
        all.by_name(name).unwrap().link.reason().map(str::to_owned)
    }

    pub fn errors(&self, node: &str, counter: &str) -> u64 {
        let counters = self.engine.borrow().counters();
        let mine = |c: &&volley_graph::CounterReport| c.node == node && c.info.name == counter;
        counters.iter().filter(mine).map(|c| c.count).sum()
    }

    /// Step until `done`, or fail.
    pub fn until(&mut self, what: &str, mut done: impl FnMut(&mut Router) -> bool) {
        let end = Instant::now() + Duration::from_secs(20);
        while !done(self) {
            assert!(Instant::now() < end, "waited 20 s for: {what}");
            self.step();
            if self.running.is_some() {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }

    /// Number of buffers that are not free.
    pub fn in_use(&self) -> usize {
        self.pool.report().in_use()
    }
}

pub fn master(id: u32) -> Memif {
    Memif {
        id,
        ..Memif::default()
    }
}

pub fn slave(id: u32, socket: u32) -> Memif {
    Memif {
        id,
        socket,
        role: MemifRole::Slave,
        ..Memif::default()
    }
}

pub fn offer(id: u32) -> Offer {
    Offer {
        id,
        secret: String::new(),
        name: "peer".into(),
        rx_queues: 1,
        tx_queues: 1,
        log2: 8,
        buffer_size: 2048,
    }
}

/// A peer without a graph.
pub struct Peer {
    pub channel: Channel,
    pub link: Arc<ConnectionRings>,
    pub scratch: Scratch,
}

impl Peer {
    /// Connect as client; `turn` is called repeatedly meanwhile.
    pub fn join(address: &Path, offer: Offer, mut turn: impl FnMut()) -> Result<Peer, String> {
        let channel = Channel::connect(&Address(address.to_owned())).map_err(|e| e.to_string())?;
        let mut session = Joining::new(offer);
        let end = Instant::now() + Duration::from_secs(10);
        loop {
            turn();
            assert!(Instant::now() < end, "no answer");
            let Some((message, file)) = channel.receive().map_err(|e| e.to_string())? else {
                continue;
            };
            match session.receive(message, file)? {
                Joined::Next => {
                    let (message, file) = session.say().ok_or("nothing to say")?;
                    channel.send(&message, file).map_err(|e| e.to_string())?;
                }
                Joined::Up(link) => {
                    let scratch = Scratch::default();
                    return Ok(Peer {
                        channel,
                        link,
                        scratch,
                    });
                }
            }
        }
    }

    /// Act as server for the next client.
    pub fn serve(listener: &Listener, mut turn: impl FnMut()) -> Peer {
        let end = Instant::now() + Duration::from_secs(10);
        let mut wait = || {
            turn();
            assert!(Instant::now() < end, "nobody came");
        };
        let channel = loop {
            wait();
            if let Some(channel) = listener.accept() {
                break channel;
            }
        };
        channel.send(&hello(), None).unwrap();
        let mut session = Serving::default();
        loop {
            wait();
            let Some((message, file)) = channel.receive().unwrap() else {
                continue;
            };
            match session
                .receive(message, file, |_| Ok(volley_shm::Account::new()))
                .unwrap()
            {
                Served::Ack => channel.send(&Message::Ack, None).unwrap(),
                Served::Up(link) => {
                    channel
                        .send(&Message::Connected(Text::new("peer")), None)
                        .unwrap();
                    let scratch = Scratch::default();
                    return Peer {
                        channel,
                        link,
                        scratch,
                    };
                }
            }
        }
    }

    /// Put packets into queue `queue`; returns the number that fitted.
    pub fn send(&mut self, queue: usize, packets: &[Vec<u8>]) -> usize {
        let turn = self.link.tx()[queue].turn().unwrap();
        let mut leaving = turn.tx().leaving(&mut self.scratch, packets.len()).unwrap();
        let fits = |p: &&Vec<u8>| leaving.put(p).unwrap() == volley_memif::ring::Sent::Whole;
        let sent = packets.iter().take_while(fits).count();
        leaving.publish();
        sent
    }

    /// Receive the packets of queue `queue`.
    pub fn receive(&mut self, queue: usize) -> Vec<Vec<u8>> {
        let rx = &self.link.rx()[queue].rx;
        let arrived = rx.arrived(&mut self.scratch, 256).unwrap();
        let packet = |row| {
            let mut packet = Vec::new();
            arrived.gather(row, &mut packet);
            assert_eq!(packet.len(), arrived.len_of(row));
            packet
        };
        let packets = (0..arrived.packets()).map(packet).collect();
        arrived.release();
        packets
    }

    pub fn receive_all(&mut self) -> Vec<Vec<u8>> {
        (0..self.link.rx().len())
            .flat_map(|q| self.receive(q))
            .collect()
    }
}

/// A packet whose bytes identify it.
pub fn packet(number: u32, len: usize) -> Vec<u8> {
    let mut seed = number.wrapping_mul(0x9e37_79b1) | 1;
    let mut bytes: Vec<u8> = (0..len)
        .map(|_| {
            seed ^= seed << 13;
            seed ^= seed >> 17;
            seed ^= seed << 5;
            seed as u8
        })
        .collect();
    let n = len.min(4);
    bytes[..n].copy_from_slice(&number.to_be_bytes()[..n]);
    bytes
}
