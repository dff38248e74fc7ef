//! Scripts in a graph with one node: whole vectors, errors and limits, reload, and the router in `examples/lua`.

mod limits;
mod router;
mod scatter;
mod scripts;
mod shared;

use crate::api::{Environment, Loaded, TableSet, lock};
use crate::link::{Config, Link};
use crate::node::lua_input::{DeviceInput, Ip4Unicast, LuaScripts, OnArc};
use crate::state::{ScriptError, ScriptState, Source};
use crossbeam_queue::ArrayQueue;
use std::sync::{Arc, Mutex};
use volley_sdk::HostInterface;
use volley_sdk::harness::{Domain, In, Out};
use volley_sdk::prelude::*;

/// The script's interfaces: pg0 with index 1 and pg1 with index 2.
fn interfaces() -> Arc<[HostInterface]> {
    let interface = |index: u8| HostInterface {
        name: format!("pg{}", index - 1),
        index: u32::from(index),
        mac: [2, 0, 0, 0, 0, index],
        mtu: 1500,
    };
    Arc::new([interface(1), interface(2)])
}

/// A script in a graph, and what it reports.
#[derive(Clone)]
struct Bench {
    source: Arc<Source>,
    tables: Arc<Mutex<TableSet>>,
    errors: Arc<ArrayQueue<ScriptError>>,
    log: Arc<ArrayQueue<String>>,
}

impl Bench {
    fn new(text: &str) -> Bench {
        let source = Source {
            path: "/etc/volley/test.lua".to_owned(),
            text: text.to_owned(),
            memory: 1 << 20,
            instructions: 50_000,
            queue: 300,
            is_layer3: false,
        };
        Bench::of(source)
    }

    fn of(source: Source) -> Bench {
        Bench {
            source: Arc::new(source),
            tables: Arc::new(Mutex::new(TableSet::new(Domain::new()))),
            errors: Arc::new(ArrayQueue::new(10_000)),
            log: Arc::new(ArrayQueue::new(10)),
        }
    }

    fn load(&self) -> Result<(ScriptState, Loaded), String> {
        let (tables, log) = (self.tables.clone(), self.log.clone());
        let environment = Environment::new(("test", 0), interfaces(), tables, log);
        let loaded = ScriptState::load(&self.source, 256, &environment)?;
        lock(&self.tables).load(&loaded.1)?;
        Ok(loaded)
    }

    fn link(&self) -> Arc<Link> {
        let link = Link::new(self.errors.clone());
        link.give(config(1, Some(self.load().unwrap().0)));
        link
    }

    fn node<A: OnArc>(&self) -> LuaScripts<A> {
        LuaScripts::new(self.link(), 256)
    }

    /// Runs packets through the script at every vector length and level.
    fn run(&self, packets: &[In]) -> Vec<Out> {
        let bench = self.clone();
        let domain = Domain::new();
        match self.source.is_layer3 {
            false => {
                let make = move |_| bench.node::<DeviceInput>();
                volley_sdk::harness::run(packets, &domain, make)
            }
            true => {
                let make = move |_| bench.node::<Ip4Unicast>();
                volley_sdk::harness::run(packets, &domain, make)
            }
        }
    }

    /// The texts of errors, each once.
    fn errors(&self) -> Vec<String> {
        let mut all = Vec::new();
        while let Some(error) = self.errors.pop() {
            all.push(error.text);
        }
        all.dedup();
        all
    }
}

fn config(number: u64, state: Option<ScriptState>) -> Box<Config> {
    Box::new(Config {
        scripts: vec![(number, state.map(Box::new))],
        by_interface: Vec::new(),
        others: 0,
    })
}

/// An Ethernet frame with a UDP packet to 10.0.1.2, from `rx` to the MAC address of its interface.
fn frame(rx: u32, dst: [u8; 4], ttl: u8) -> In {
    use volley_sdk::wire::ip4::Ip4Header;
    use volley_sdk::wire::{IntoBytes, IpProto};
    let mut bytes = vec![2, 0, 0, 0, 0, rx as u8, 2, 0, 0, 0, 0, 0x99, 8, 0];
    let header = Ip4Header::new([10, 0, 0, 9].into(), dst.into(), IpProto::UDP, ttl, 20);
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend([0x12, 0x34, 0, 80, 0, 20, 0, 0]);
    bytes.extend([0xab; 18]);
    In::new(&bytes).rx(rx)
}

/// The scalar level.
fn level() -> volley_sdk::harness::Level {
    let all = volley_sdk::harness::Level::available();
    all.into_iter().next().unwrap()
}
