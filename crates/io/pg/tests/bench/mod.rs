//! A graph around the packet generator: it records received packets, and transmits each on its receive interface.
#![allow(dead_code)]

use std::sync::{Arc, Mutex};
use volley_graph::buf::Pool;
use volley_graph::*;
use volley_iface::Admin;
use volley_iface::AdminState;
use volley_iface::{Interfaces, Registry};
use volley_model::*;
use volley_pg::model::PgInterface;
use volley_pg::{PacketGeneratorReply, Pg, ShowPacketGenerator, StreamRow, StreamSpec};

/// Packets at the node behind the source: interface and bytes.
pub type Seen = Arc<Mutex<Vec<(u32, Vec<u8>)>>>;

nexts! { pub enum Out { Output => "interface-output" } }

struct Bounce(Seen);

impl Node for Bounce {
    const NAME: &'static str = "bounce";
    type Next = Out;
    type Count = NoCounters;
    type Trace = PacketTrace;
    fn run<I: Isa>(&mut self, _cx: &Cx<'_, NoCounters>, mut v: Vector<'_, I, Out>) -> Consumed {
        for row in 0..v.len() {
            let mut bytes = Vec::new();
            v.view(row).segments(0, |s| bytes.extend_from_slice(s));
            self.0.lock().unwrap().push((v.view(row).rx(), bytes));
        }
        let rx = v.column(Col::RX).to_vec();
        v.column_mut(Col::TX).copy_from_slice(&rx);
        v.send_all(Out::Output)
    }
}

/// A generator with its graph.
pub struct Bench {
    pub registry: Registry,
    pub worker: Worker,
    pub pg: Pg,
    pub seen: Seen,
    pub clock: Clock,
    pub pool: Arc<Pool>,
}

/// A generator with `buffers` buffers and interfaces `pg0`, `pg1`, `pg2`, all up.
pub fn bench(vector_size: usize, buffers: usize) -> Bench {
    let pool = Pool::new(buffers).unwrap();
    let clock = Clock::manual();
    let settings = Settings {
        vector_size,
        clock: clock.clone(),
        ..Settings::default()
    };
    let engine = Engine::new(settings, pool.clone(), Domain::new()).unwrap();
    let mut registry = Registry::new(engine);
    volley_iface::register(&mut registry).unwrap();
    let pg = volley_pg::register(&mut registry).unwrap();
    let seen = Seen::default();
    let mine = seen.clone();
    let mut engine = registry.engine.borrow_mut();
    let node = engine.add("bounce", move |_| Bounce(mine.clone()));
    node.and_then(|_| engine.set_receiver("bounce")).unwrap();
    drop(engine);
    let worker = registry.engine.borrow_mut().build().unwrap().pop().unwrap();
    let mut bench = Bench {
        registry,
        worker,
        pg,
        seen,
        clock,
        pool,
    };
    for name in ["pg0", "pg1", "pg2"] {
        let spec = InterfaceSpec::of(&PgInterface { name: name.into() }).unwrap();
        bench.ask(Request::InterfaceCreate(spec)).unwrap();
        bench.state(name, AdminState::Up);
    }
    bench
}

/// A stream of a template on `pg0`.
pub fn stream(name: &str, template: &str, edits: &[&str]) -> StreamSpec {
    StreamSpec {
        edits: edits.iter().map(|e| e.parse().unwrap()).collect(),
        limit: 100,
        seed: Some(7),
        ..StreamSpec::new(name, "pg0", template.parse().unwrap())
    }
}

impl Bench {
    pub fn ask(&mut self, request: Request) -> Result<Applied, ModelError> {
        request.validate()?;
        if let Some(done) = self.registry.owners.apply(&request) {
            return done;
        }
        let mut answers = self.registry.handlers.iter_mut();
        answers
            .find_map(|h| h.apply(&request))
            .expect("somebody's request")
    }

    pub fn state(&mut self, name: &str, state: AdminState) {
        self.ask(Admin::request(name, state).unwrap()).unwrap();
    }

    /// Carry out a request about an object by its owner.
    pub fn own(&mut self, request: &Request) -> Result<Applied, ModelError> {
        request.validate()?;
        self.registry.owners.apply(request).expect("an object")
    }

    pub fn set(&mut self, spec: &StreamSpec) -> Result<Applied, ModelError> {
        let request = Request::set(spec);
        let request = request.map_err(|e| ModelError::invalid("stream", e))?;
        self.own(&request)
    }

    pub fn add(&mut self, spec: StreamSpec) {
        self.set(&spec).unwrap();
    }

    pub fn delete(&mut self, name: &str) -> Result<Applied, ModelError> {
        let request = Request::unset_key("stream", [name.into()]);
        self.own(&request.unwrap())
    }

    pub fn enable(&mut self, name: Option<&str>) -> u64 {
        self.pg.switch(name, true).unwrap().changed
    }

    pub fn disable(&mut self, name: Option<&str>) {
        self.pg.switch(name, false).unwrap();
    }

    /// Step until no packet arrives, and write captures meanwhile.
    pub fn run(&mut self) {
        while self.worker.step() > 0 {
            self.pg.drain();
        }
        self.pg.drain();
    }

    /// Run one stream and return all its packets.
    pub fn play(&mut self, spec: StreamSpec) -> Vec<Vec<u8>> {
        self.add(spec);
        self.enable(None);
        self.run();
        self.packets()
    }

    /// The packets since the last call.
    pub fn packets(&mut self) -> Vec<Vec<u8>> {
        let seen = std::mem::take(&mut *self.seen.lock().unwrap());
        seen.into_iter().map(|(_, bytes)| bytes).collect()
    }

    pub fn report(&mut self) -> PacketGeneratorReply {
        self.registry.owners.ask(&ShowPacketGenerator).unwrap()
    }

    pub fn row(&mut self, name: &str) -> StreamRow {
        let rows = self.report().streams;
        rows.into_iter().find(|r| r.name == name).unwrap()
    }

    pub fn counter(&self, node: &str, name: &str) -> u64 {
        let counters = self.registry.engine.borrow().counters();
        let found = counters
            .iter()
            .find(|c| c.node == node && c.info.name == name);
        found.unwrap().count
    }

    pub fn counts(&self, name: &str) -> volley_iface::IfCounts {
        let all: std::cell::Ref<'_, Interfaces> = self.registry.interfaces.borrow();
        all.counts(all.by_name(name).unwrap())
    }

    pub fn in_use(&self) -> usize {
        self.pool.report().in_use()
    }
}
