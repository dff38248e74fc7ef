//! Sets up a scenario: interfaces, neighbours, routes, streams. Everything uses typed requests, except the routes, which
//! are loaded in bulk like `ip route load`.

use super::BenchError;
use super::args::{Args, Scenario, Style};
use super::rtc::{Bound, Rtc};
use super::tables::{self, Rows};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};
use volley_daemon::stack::{Stack, StackError};
use volley_daemon::{EngineSettings, IsaChoice};
use volley_fib::{Path, RouteCounter, Source, StaticNeighbor, V4, V6, Via};
use volley_graph::{Clock, Node, Worker};
use volley_iface::AdminState;
use volley_iface::{Admin, ReceiveFeature};
use volley_l2::ShowBridgeDomains;
use volley_l2::model::{BridgeDomain, BridgePort, L2FibEntry, L2Patch, MAC_LIMIT, Xconnect};
use volley_model::{InterfaceSpec, Mac, ModelError, Prefix, Request};
use volley_object::Object;
use volley_pg::model::PgInterface;
use volley_pg::{Edit, EditKind, Preload, Sizes, StreamSpec, Value};
use volley_reference::{Hop, Reference, Table};

/// The receiving interface of each family.
const RX_L2: &str = "pg0";
const RX_IP4: &str = "pg1";
const RX_IP6: &str = "pg2";
/// The transmitting interface of all packets.
pub const TX: &str = "pg3";
/// Largest IP packet on every interface.
const MTU: u32 = 9000;
/// Destination address of frames that are cross-connected.
pub const L2_DST: [u8; 6] = [0x02, 0, 0, 0, 0, 0x98];
/// First next hops: benchmark address space (RFC 2544, RFC 5180).
const HOPS4: u32 = 0xc612_0001;
const HOPS6: u128 = 0x2001_0002_0000_0000_0000_0000_0000_0001;

/// Where packets of a scenario enter, for other generators than that of the benchmark.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Receiving interface.
    pub interface: &'static str,
    /// Destination MAC address.
    pub mac: [u8; 6],
    /// Destination of a synthetic table without prefixes.
    pub address: IpAddr,
}

impl Scenario {
    /// The entries whose packets take turns.
    pub fn entries(self) -> Vec<Entry> {
        let ip4 = || Entry {
            interface: RX_IP4,
            mac: RX_MAC,
            address: Ipv4Addr::new(20, 0, 0, 1).into(),
        };
        let ip6 = || Entry {
            interface: RX_IP6,
            mac: RX_MAC,
            address: Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into(),
        };
        let l2 = |mac| Entry {
            interface: RX_L2,
            mac,
            ..ip4()
        };
        match self {
            Scenario::Xc | Scenario::L2xc => vec![l2(L2_DST)],
            Scenario::Bridge => vec![l2(station(4, 0))],
            Scenario::Ip4 => vec![ip4()],
            Scenario::Ip6 => vec![ip6()],
            Scenario::Mix => vec![l2(L2_DST), ip4(), ip6()],
        }
    }
}

/// A benchmark that is ready to run.
pub struct Bench {
    /// The control plane.
    pub stack: Stack,
    /// The first worker, which the benchmark steps.
    pub worker: Worker,
    /// The other workers, each with its own streams.
    pub others: Vec<Worker>,
    /// The expected output.
    pub reference: Reference,
    /// Number of prefixes in the tables.
    pub prefixes: usize,
    /// Whether frames leave unchanged, whatever their destination.
    pub is_bridge: bool,
    /// Seconds from rows in memory to a usable table.
    pub load_seconds: f64,
}

fn mac_of(rank: u32) -> [u8; 6] {
    let [a, b, c, d] = rank.to_be_bytes();
    [0x02, 0x01, a, b, c, d]
}

/// MAC address of the receiving and of the transmitting interface.
const RX_MAC: [u8; 6] = [0x02, 0, 0, 0, 0, 0x01];
const TX_MAC: [u8; 6] = [0x02, 0, 0, 0, 0, 0x02];

/// The request that creates an object.
fn set(object: &impl Object) -> Result<Request, BenchError> {
    Request::set(object).map_err(|e| BenchError::Args(e.to_string()))
}

fn hop(rank: u32) -> Hop {
    Hop {
        mac: mac_of(rank),
        source: TX_MAC,
        tx: TX.to_owned(),
        mtu: MTU as usize,
        address: None,
    }
}

/// MAC address of a host on the bridge; those behind one port have the same prefix.
fn station(port: u8, n: u32) -> [u8; 6] {
    let [_, b, c, d] = n.to_be_bytes();
    [0x02, port, 0, b, c, d]
}

impl Bench {
    /// Set up a scenario.
    pub fn new(args: &Args) -> Result<Bench, BenchError> {
        let isa: IsaChoice = args.level.isa.parse().map_err(StackError::from)?;
        let settings = EngineSettings {
            vector_size: args.vector_size,
            buffers: (args.workers * (args.in_circulation() + 8 * args.vector_size as usize) + 4096)
                as u32,
            workers: args.workers as u32,
            isa,
            seed: Some(args.seed),
            ..EngineSettings::default()
        };
        let (stack, workers) = Stack::new(&settings, Clock::system())?;
        let mut workers = workers.into_iter();
        let worker = workers.next();
        let worker = worker.ok_or_else(|| BenchError::Args("no worker".into()))?;
        let reference = Reference::new(
            RX_MAC,
            Table::new(&[], Vec::new()),
            Table::new(&[], Vec::new()),
        );
        let mut bench = Bench {
            stack,
            worker,
            others: workers.collect(),
            reference,
            prefixes: 0,
            is_bridge: args.scenario == Scenario::Bridge,
            load_seconds: 0.0,
        };
        bench.interfaces()?;
        if args.route_counters {
            bench.count_routes()?;
        }
        // A table that no packet uses has one route: a large one takes minutes.
        let prefixes = |used: bool| args.prefixes.filter(|_| used);
        let count4 = prefixes(args.scenario.has_ip4()).map(|n| n.v4);
        let count6 = prefixes(args.scenario.has_ip6()).map(|n| n.v6);
        let (table4, length) = (args.table.as_deref(), args.prefix_length);
        let rows4 = tables::rows4(table4, count4, length, args.seed)?;
        let rows6 = tables::rows6(args.table6.as_deref(), count6, args.seed)?;
        bench.routes(args.scenario, &rows4, &rows6)?;
        bench.style(args)?;
        bench.streams(args, &rows4, &rows6)?;
        if bench.is_bridge {
            bench.learn(args.macs().0.into())?;
        }
        bench.settle();
        Ok(bench)
    }

    /// Apply a change and wait until the worker uses it.
    pub fn apply(&mut self, request: Request) -> Result<(), BenchError> {
        self.stack.apply(&request)?;
        self.settle();
        Ok(())
    }

    /// Wait until all workers use every change.
    pub fn settle(&mut self) {
        while !self.stack.settled() {
            self.step();
        }
    }

    /// Rounds of the first worker for this time.
    pub fn run_for(&mut self, limit: Duration) {
        let start = Instant::now();
        while start.elapsed() < limit {
            self.worker.steps(16);
        }
    }

    /// One round of each worker.
    pub fn step(&mut self) {
        self.worker.step();
        for worker in &mut self.others {
            worker.step();
        }
    }

    fn interfaces(&mut self) -> Result<(), BenchError> {
        for name in [RX_L2, RX_IP4, RX_IP6, TX] {
            let mac = Some(Mac(if name == TX { TX_MAC } else { RX_MAC }));
            let pg = PgInterface {
                name: name.to_owned(),
            };
            let spec = InterfaceSpec::of(&pg);
            let spec = spec.map_err(|e| ModelError::invalid(name, e))?;
            let spec = InterfaceSpec {
                mac,
                mtu: Some(MTU),
                ..spec
            };
            self.apply(Request::InterfaceCreate(spec))?;
            self.apply(set(&Admin {
                interface: name.to_owned(),
                state: AdminState::Up,
            })?)?;
        }
        Ok(())
    }

    /// Count each route of table 0 by itself.
    fn count_routes(&mut self) -> Result<(), BenchError> {
        let all: [IpAddr; 2] = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
        for addr in all {
            let prefix = Prefix::masked(addr, 0);
            let prefix = prefix.map_err(|e| BenchError::Args(e.to_string()))?;
            self.apply(set(&RouteCounter {
                prefix,
                table: 0,
                longer: true,
            })?)?;
        }
        Ok(())
    }

    fn routes(
        &mut self,
        scenario: Scenario,
        rows4: &Rows<u32>,
        rows6: &Rows<u128>,
    ) -> Result<(), BenchError> {
        let count = |ranks: &mut dyn Iterator<Item = u32>| ranks.max().map_or(0, |rank| rank + 1);
        let (mut table4, mut table6) = (Table::new(&[], Vec::new()), Table::new(&[], Vec::new()));
        if scenario.has_ip4() {
            let hops = count(&mut rows4.iter().map(|r| r.2));
            let paths = self.neighbors(hops, |r| IpAddr::V4(Ipv4Addr::from_bits(HOPS4 + r)))?;
            let start = Instant::now();
            self.stack
                .fib
                .borrow_mut()
                .load::<V4>(0, Source::Static, &paths, rows4)?;
            self.load_seconds += start.elapsed().as_secs_f64();
            self.prefixes += rows4.len();
            table4 = Table::new(rows4, (0..hops).map(hop).collect());
        }
        if scenario.has_ip6() {
            let hops = count(&mut rows6.iter().map(|r| r.2));
            let paths = self.neighbors(hops, |r| {
                IpAddr::V6(Ipv6Addr::from_bits(HOPS6 + u128::from(r)))
            })?;
            let start = Instant::now();
            self.stack
                .fib
                .borrow_mut()
                .load::<V6>(0, Source::Static, &paths, rows6)?;
            self.load_seconds += start.elapsed().as_secs_f64();
            self.prefixes += rows6.len();
            table6 = Table::new(rows6, (0..hops).map(hop).collect());
        }
        self.reference = Reference::new(RX_MAC, table4, table6);
        Ok(())
    }

    /// Create static neighbours for every next hop; returns the paths to them in order of rank.
    fn neighbors(
        &mut self,
        count: u32,
        address: impl Fn(u32) -> IpAddr,
    ) -> Result<Vec<Vec<Path>>, BenchError> {
        let iface = self.stack.interfaces.borrow().index(TX).map_or(0, |i| i.0);
        let mut paths = Vec::new();
        for rank in 0..count {
            let neighbor = StaticNeighbor {
                interface: TX.to_owned(),
                address: address(rank),
                mac: Mac(mac_of(rank)),
            };
            self.stack.apply(&set(&neighbor)?)?;
            paths.push(vec![Path::from(Via::NextHop {
                addr: address(rank),
                iface,
            })]);
        }
        self.settle();
        Ok(paths)
    }

    /// Configure patch, cross-connect, or the run-to-completion node instead of the graph.
    fn style(&mut self, args: &Args) -> Result<(), BenchError> {
        let (rx, tx) = (RX_L2.to_owned(), TX.to_owned());
        match args.scenario {
            Scenario::Xc => self.apply(set(&L2Patch { rx, tx })?)?,
            Scenario::L2xc | Scenario::Mix => self.apply(set(&Xconnect { rx, tx })?)?,
            Scenario::Bridge => self.bridge(args.macs().1)?,
            Scenario::Ip4 | Scenario::Ip6 => {}
        }
        match args.style {
            Style::Rtc => self.run_to_completion::<1, 0>(args),
            Style::Graph => Ok(()),
        }
    }

    /// Process packets in the node bench-rtc instead of the graph: each step of its loop has `STEP` packets, and prefetches those of the
    /// step `AHEAD` steps later.
    ///
    /// # Errors
    /// If the graph refuses the node.
    pub fn run_to_completion<const STEP: usize, const AHEAD: usize>(
        &mut self,
        args: &Args,
    ) -> Result<(), BenchError> {
        let table = self.stack.interfaces.borrow().table().clone();
        let (fib4, fib6) = (
            self.stack.fib.borrow().dataplane4(),
            self.stack.fib.borrow().dataplane6(),
        );
        let shortest = match args.scenario {
            Scenario::Xc => Some(0),
            Scenario::L2xc | Scenario::Mix => Some(14),
            _ => None,
        };
        let rx = self.stack.interfaces.borrow().index(RX_L2);
        let bound = shortest.zip(rx.ok());
        let bound = bound.map(|(shortest, rx)| Bound { rx: rx.0, shortest });
        let size = args.vector_size as usize;
        let engine = self.stack.engine.clone();
        let name = Rtc::<STEP, AHEAD>::NAME;
        let node = engine.borrow_mut().add(name, move |_| {
            Rtc::<STEP, AHEAD>::new(table.clone(), fib4.clone(), fib6.clone(), bound, size)
        });
        node.map_err(StackError::Graph)?;
        self.settle();
        // Must run before the scenario's patch, which consumes the packets.
        let feature = ReceiveFeature::new(&engine, name, &[]);
        let feature = feature.map_err(StackError::Graph)?;
        for name in [RX_L2, RX_IP4, RX_IP6] {
            let index = self.stack.interfaces.borrow().index(name);
            if let Ok(index) = index {
                feature.set(index, true).map_err(StackError::Graph)?;
            }
        }
        self.settle();
        Ok(())
    }

    /// Two ports; every destination is configured on the transmitting one.
    fn bridge(&mut self, destinations: u32) -> Result<(), BenchError> {
        let domain = 1;
        let usual = BridgeDomain::defaults([u64::from(domain).into()]);
        let usual = usual.ok_or_else(|| BenchError::Args("no bridge domain 1".to_owned()))?;
        self.apply(set(&BridgeDomain {
            mac_limit: *MAC_LIMIT.end(),
            ..usual
        })?)?;
        for interface in [RX_L2, TX] {
            self.apply(set(&BridgePort {
                interface: interface.to_owned(),
                domain,
                shg: 0,
            })?)?;
        }
        for n in 0..destinations {
            let (mac, interface) = (Mac(station(4, n)), Some(TX.to_owned()));
            self.stack.apply(&set(&L2FibEntry {
                domain,
                mac,
                interface,
                filter: false,
            })?)?;
        }
        Ok(())
    }

    /// Let the bridge learn the sources from their frames.
    fn learn(&mut self, sources: u64) -> Result<(), BenchError> {
        self.enable(true)?;
        let start = Instant::now();
        loop {
            self.worker.step();
            self.stack.processes.run_manual();
            let reply = self.stack.ask(&ShowBridgeDomains { id: None })?;
            let known = reply.domains.iter().map(|d| d.learned).sum::<u64>();
            if known == sources {
                return self.enable(false);
            }
            if start.elapsed().as_secs() >= 60 {
                let text = format!("{known} of {sources} stations were learned");
                return Err(BenchError::Wrong(text));
            }
        }
    }

    fn streams(
        &mut self,
        args: &Args,
        rows4: &Rows<u32>,
        rows6: &Rows<u128>,
    ) -> Result<(), BenchError> {
        let distinct = args.distinct.max(1);
        let dst4 = tables::destinations(rows4, args.destinations, distinct, args.seed);
        let dst6 = tables::destinations(rows6, args.destinations, distinct, args.seed);
        let list4: Vec<Value> = dst4
            .iter()
            .map(|&d| Value::Ip4(Ipv4Addr::from_bits(d)))
            .collect();
        let list6: Vec<Value> = dst6
            .iter()
            .map(|&d| Value::Ip6(Ipv6Addr::from_bits(d)))
            .collect();
        match args.scenario {
            Scenario::Xc | Scenario::L2xc => self.stream(args, RX_L2, "l2", Vec::new())?,
            Scenario::Bridge => self.stream(args, RX_L2, "bridge", Vec::new())?,
            Scenario::Ip4 => self.stream(args, RX_IP4, "ip4", list4)?,
            Scenario::Ip6 => self.stream(args, RX_IP6, "ip6", list6)?,
            Scenario::Mix => {
                self.stream(args, RX_L2, "l2", Vec::new())?;
                self.stream(args, RX_IP4, "ip4", list4)?;
                self.stream(args, RX_IP6, "ip6", list6)?;
            }
        }
        Ok(())
    }

    fn stream(
        &mut self,
        args: &Args,
        rx: &str,
        family: &str,
        list: Vec<Value>,
    ) -> Result<(), BenchError> {
        let mac = Mac(RX_MAC);
        let template = match family {
            "ip6" => format!("eth src 02:00:00:00:00:99 dst {mac} / ip6 src 2001:2:1::1 dst 2001:db8::1 hops 64 / udp sport 1234 dport 80"),
            "ip4" => format!("eth src 02:00:00:00:00:99 dst {mac} / ip4 src 198.19.0.1 dst 20.0.0.1 ttl 64 / udp sport 1234 dport 80"),
            _ => "eth src 02:00:00:00:00:99 dst 02:00:00:00:00:98 / ip4 src 198.19.0.1 dst 20.0.0.1 ttl 64 / udp sport 1234 dport 80".to_owned(),
        };
        let bad =
            |e: volley_model::SyntaxError| BenchError::Args(format!("template `{template}`: {e}"));
        let mut edits = Vec::new();
        if let Some(first) = list.first() {
            let mut edit: Edit = format!("{family}.dst fixed {first}").parse().map_err(bad)?;
            edit.how = EditKind::List(list);
            edits.push(edit);
        }
        if self.is_bridge {
            let (sources, destinations) = args.macs();
            for (field, count, of) in [("eth.src", sources, 3), ("eth.dst", destinations, 4)] {
                let first = Mac(station(of, 0));
                let mut edit: Edit = format!("{field} fixed {first}").parse().map_err(bad)?;
                edit.how = EditKind::List(
                    (0..count)
                        .map(|n| Value::Mac(Mac(station(of, n))))
                        .collect(),
                );
                edits.push(edit);
            }
        }
        let name = format!("bench-{family}");
        let mut spec = StreamSpec {
            edits,
            size: Some(Sizes::Fixed(args.size)),
            max_frame: args.maxframe,
            seed: Some(args.seed),
            ..StreamSpec::new(&name, rx, template.parse().map_err(bad)?)
        };
        let packets = args.in_circulation();
        let streams = match args.scenario {
            Scenario::Mix => 3,
            _ => 1,
        };
        spec.rate = args
            .rate
            .map(|rate| (rate / streams / args.workers as u64).max(1));
        for worker in 0..args.workers {
            if worker > 0 {
                spec.name = format!("bench-{family}-{worker}");
                spec.worker = Some(worker as u32);
            }
            match spec.rate {
                None => self.stack.pg.preloaded(&spec, Preload { packets })?,
                // Packets that are made in advance have no times.
                Some(_) => self.stack.apply(&set(&spec)?)?,
            };
        }
        self.settle();
        Ok(())
    }

    /// Start or stop the streams.
    pub fn enable(&mut self, on: bool) -> Result<(), BenchError> {
        self.stack.pg.switch(None, on)?;
        self.settle();
        Ok(())
    }
}
