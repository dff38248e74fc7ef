//! A small daemon for tests: the crate's interfaces, a source that sends the test's frames, and a collector of received
//! frames. The test steps it.
#![allow(dead_code)]

pub mod guest;
#[path = "../../../shm/tests/support/process.rs"]
pub mod process;
pub mod testpmd;

use std::collections::VecDeque;
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use volley_graph::buf::Pool;
use volley_graph::{
    Clock, Consumed, Cx, Domain, Engine, Isa, Level, NoCounters, NoNext, Node, NodeId, Output,
    PacketTrace, Settings, Source, Vector, WakeConditions, Worker, nexts,
};
use volley_iface::AdminState;
use volley_iface::{Admin, IfCounts, ReceiveFeature, Registry};
use volley_model::{InterfaceSpec, ModelError, Request};
use volley_object::{Instance, Object};
use volley_shm::calls::{Calls, Kernel};
use volley_vhost::model::{SocketRole, VhostUser, VirtioUser};
use volley_vhost::show::{ShowVhostUser, VhostUserRow};

nexts! { enum NoEdge { Drop => "error-drop" } }

/// Frames to send: the transmit node, the frame.
type Todo = Arc<Mutex<VecDeque<(NodeId, Vec<u8>)>>>;
/// Received frames: the interface, the frame.
type Got = Arc<Mutex<Vec<(u32, Vec<u8>)>>>;

struct Feed {
    todo: Todo,
    burst: usize,
}

impl Source for Feed {
    const NAME: &'static str = "feed";
    type Next = NoEdge;
    type Count = NoCounters;

    fn poll<I: Isa>(&mut self, _: &Cx<'_, NoCounters>, out: &mut Output<'_, I, NoEdge>) -> usize {
        let mut todo = self.todo.lock().unwrap();
        let Some((node, _)) = todo.front() else {
            return 0;
        };
        let node = *node;
        let same = todo.iter().take_while(|(n, _)| *n == node).count();
        let mut fresh = out.alloc(same.min(self.burst), 999);
        for row in 0..fresh.len() {
            let (_, frame) = todo.pop_front().unwrap();
            assert!(fresh.write(row, &frame));
        }
        if fresh.is_empty() {
            return 0;
        }
        fresh.send_to(node)
    }

    fn may_sleep(&self, _: u64, _: u64) -> bool {
        true
    }

    fn arm(&mut self, _: &mut WakeConditions) -> bool {
        self.todo.lock().unwrap().is_empty()
    }
}

struct Collect {
    got: Got,
}

impl Node for Collect {
    const NAME: &'static str = "collect";
    type Next = NoNext;
    type Count = NoCounters;
    type Trace = PacketTrace;

    fn run<I: Isa>(&mut self, _: &Cx<'_, NoCounters>, v: Vector<'_, I, NoNext>) -> Consumed {
        let mut got = self.got.lock().unwrap();
        for row in 0..v.len() {
            let view = v.view(row);
            let bytes: Vec<u8> = view.slices().flatten().copied().collect();
            got.push((view.rx(), bytes));
        }
        drop(got);
        v.free()
    }
}

pub struct Bench {
    pub registry: Registry,
    pub workers: Vec<Worker>,
    pub pool: Arc<Pool>,
    todo: Todo,
    got: Got,
}

impl Bench {
    pub fn new() -> Bench {
        Bench::with(Level::detect(), 256)
    }

    pub fn with(level: Level, vector_size: usize) -> Bench {
        Bench::with_calls(level, vector_size, Rc::new(Kernel))
    }

    pub fn with_calls(level: Level, vector_size: usize, calls: Rc<dyn Calls>) -> Bench {
        let buffers = 8192;
        let pool = Pool::new(buffers).unwrap();
        let settings = Settings {
            vector_size,
            buffers,
            level,
            workers: 1,
            clock: Clock::system(),
        };
        let engine = Engine::new(settings, pool.clone(), Domain::new()).unwrap();
        let mut registry = Registry::new(engine);
        volley_iface::register(&mut registry).unwrap();
        volley_vhost::register_with(&mut registry, calls).unwrap();
        let (todo, got) = (Todo::default(), Got::default());
        {
            let mut engine = registry.engine.borrow_mut();
            let feed = todo.clone();
            let add = engine.add_source("feed", move |_| Feed {
                todo: feed.clone(),
                burst: vector_size,
            });
            add.unwrap();
            let out = got.clone();
            let add = engine.add("collect", move |_| Collect { got: out.clone() });
            add.unwrap();
            engine.set_receiver("collect").unwrap();
        }
        let workers = registry.engine.borrow_mut().build().unwrap();
        Bench {
            registry,
            workers,
            pool,
            todo,
            got,
        }
    }

    pub fn apply(&mut self, request: &Request) -> Result<Option<String>, ModelError> {
        request.validate()?;
        let mut handlers = std::mem::take(&mut self.registry.handlers);
        let answer = handlers.iter_mut().find_map(|h| h.apply(request));
        self.registry.handlers = handlers;
        let done = answer.expect("somebody takes the request").map(|a| a.name);
        self.step();
        done
    }

    pub fn create(&mut self, name: &str, kind: Instance) -> Result<(), ModelError> {
        let spec = InterfaceSpec {
            name: name.into(),
            kind: kind.named(name),
            mac: None,
            mtu: None,
        };
        self.apply(&Request::InterfaceCreate(spec))?;
        self.up(name, AdminState::Up);
        Ok(())
    }

    pub fn up(&mut self, name: &str, state: AdminState) {
        let set = Admin::request(name, state).unwrap();
        self.registry.owners.apply(&set).unwrap().unwrap();
    }

    pub fn delete(&mut self, name: &str) {
        let name = name.to_owned();
        self.apply(&Request::InterfaceDelete { name }).unwrap();
    }

    /// One round of control thread and worker; returns the number of packets that entered.
    pub fn step(&mut self) -> usize {
        self.registry.processes.run_manual();
        self.registry.engine.borrow().domain().reclaim();
        self.workers.iter_mut().map(Worker::step).sum()
    }

    /// Run rounds until `done` returns true, for at most `seconds`.
    pub fn until(&mut self, seconds: u64, mut done: impl FnMut(&mut Bench) -> bool) -> bool {
        let end = Instant::now() + Duration::from_secs(seconds);
        while Instant::now() < end {
            self.registry.processes.run_manual();
            let entered = (0..16).map(|_| self.step_worker()).sum::<usize>();
            if done(self) {
                return true;
            }
            if entered == 0 {
                std::thread::sleep(Duration::from_micros(200));
            }
        }
        false
    }

    pub fn step_worker(&mut self) -> usize {
        self.workers.iter_mut().map(Worker::step).sum()
    }

    pub fn is_up(&self, name: &str) -> bool {
        let interfaces = self.registry.interfaces.borrow();
        interfaces.by_name(name).unwrap().is_up()
    }

    pub fn reason(&self, name: &str) -> String {
        let interfaces = self.registry.interfaces.borrow();
        let link = interfaces.by_name(name).unwrap().link.clone();
        link.reason().unwrap_or("").to_owned()
    }

    pub fn show(&mut self, name: &str) -> VhostUserRow {
        let name = Some(name.to_owned());
        let reply = self.registry.owners.ask(&ShowVhostUser { name });
        reply.unwrap().interfaces.remove(0)
    }

    pub fn counts(&self, name: &str) -> IfCounts {
        let interfaces = self.registry.interfaces.borrow();
        interfaces.counts(interfaces.by_name(name).unwrap())
    }

    pub fn index(&self, name: &str) -> u32 {
        self.registry.interfaces.borrow().index(name).unwrap().0
    }

    /// Send frames by an interface, from the next round on.
    pub fn send(&self, name: &str, frames: impl IntoIterator<Item = Vec<u8>>) {
        let node = self
            .registry
            .engine
            .borrow()
            .node(&format!("{name}-tx"))
            .unwrap();
        let mut todo = self.todo.lock().unwrap();
        todo.extend(frames.into_iter().map(|f| (node, f)));
        drop(todo);
        self.registry.engine.borrow().wake();
    }

    /// Frames that interfaces have received since the last call.
    pub fn got(&self) -> Vec<(u32, Vec<u8>)> {
        std::mem::take(&mut self.got.lock().unwrap())
    }

    /// All counters that are not zero.
    pub fn drops(&self) -> Vec<String> {
        let all = self.registry.engine.borrow().counters();
        let some = all.iter().filter(|c| c.count > 0);
        some.map(|c| format!("{} {} {}", c.node, c.info.name, c.count))
            .collect()
    }

    /// Counter of a node, summed over all workers.
    pub fn counter(&self, node: &str, name: &str) -> u64 {
        let engine = self.registry.engine.borrow();
        let all = engine.counters();
        let mine = all.iter().filter(|c| c.node == node && c.info.name == name);
        mine.map(|c| c.count).sum()
    }

    /// Transmit everything that one interface receives on another.
    pub fn patch(&self, rx: &str, tx: &str) {
        let interfaces = self.registry.interfaces.borrow();
        let node: &'static str = format!("{tx}-tx").leak();
        let feature = ReceiveFeature::consumer(&self.registry.engine, node).unwrap();
        let rx = interfaces.index(rx).unwrap();
        feature.enable(&interfaces, rx).unwrap();
    }
}

pub fn spec(socket: &Path, role: SocketRole) -> VirtioUser {
    VirtioUser {
        name: String::new(),
        socket: socket.to_owned(),
        role,
        gso: false,
        packed: false,
        event_idx: false,
        queues: 1,
        ring: 512,
    }
}

/// The back end at a socket.
pub fn back_end(it: VirtioUser) -> Instance {
    let back = VhostUser {
        name: it.name,
        socket: it.socket,
        role: it.role,
        gso: it.gso,
        packed: it.packed,
        event_idx: it.event_idx,
    };
    back.instance().unwrap()
}

/// The front end at a socket.
pub fn front_end(it: VirtioUser) -> Instance {
    it.instance().unwrap()
}

/// A frame of `len` bytes that depends on `seed`, with an IPv4 header for the flow hash.
pub fn frame(len: usize, seed: u32) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9) | 1;
    (0..len)
        .map(|at| {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            match at {
                12 => 8,
                13 => 0,
                _ => state as u8,
            }
        })
        .collect()
}

/// One test at a time: they count this process's files, and share the machine with busy peers.
pub fn alone() -> std::sync::MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(|e| e.into_inner())
}

/// Whether a program is installed; prints a note if it is not.
pub fn has(program: &str) -> bool {
    if std::env::var_os("VOLLEY_SMALL").is_some() {
        println!("skipped: VOLLEY_SMALL is set, and {program} takes long");
        return false;
    }
    let found = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .any(|dir| dir.join(program).is_file());
    if !found {
        println!("skipped: {program} is not installed");
    }
    found
}
