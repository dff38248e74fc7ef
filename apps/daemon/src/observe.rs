//! What operators see of the engine: clocks, counters, drops, traces, the graph, buffers, memory, the version.

mod drops;
pub(crate) mod memory;
mod process;

use crate::show::{
    ArenaRow, BuffersReply, DropsReply, ErrorRow, ErrorsReply, GraphNode, GraphReply, HolderRow,
    NodeEdge, NodeReply, NodeRuntime, RuntimeReply, Severity as ModelSeverity, ShowBuffers,
    ShowDrops, ShowErrors, ShowGraph, ShowNode, ShowProcess, ShowRuntime, ShowTrace, ShowVersion,
    TraceReply, TraceStep, TracedPacket, VersionReply, WorkerRuntime,
};
use crate::verbs::{ErrorsClear, RuntimeClear, TraceAdd, TraceClear};
use crate::workers::WorkerManager;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;
use volley_graph::buf::{DATA, PoolReport, STRIDE};
use volley_graph::{
    CounterReport, Engine, NodeReport, NodeState, Processes, Severity, ShareReport, TraceFilter,
};
use volley_iface::{Interfaces, Registry};
use volley_model::{Applied, ModelError, ObjectKind};
use volley_pcap::Filter;

/// The owner of queries about the engine.
pub struct Observer {
    engine: Rc<RefCell<Engine>>,
    interfaces: Rc<RefCell<Interfaces>>,
    processes: Processes,
    worker_set: Rc<RefCell<WorkerManager>>,
    started: Instant,
    cleared: Instant,
    /// Rounds, busy rounds and packets of each worker at the last clear.
    base: Vec<(u64, u64, u64)>,
}

impl Observer {
    /// Creates an observer and makes it the owner of its queries and verbs.
    pub fn register(registry: &mut Registry, worker_set: &Rc<RefCell<WorkerManager>>) {
        let processes = registry.processes.clone();
        let observer = Observer::new(registry, processes, worker_set.clone());
        let observer = Rc::new(RefCell::new(observer));
        let shared = observer.clone();
        registry.perform(move |_: RuntimeClear| shared.borrow_mut().clear_runtime());
        let shared = observer.clone();
        registry.perform(move |_: ErrorsClear| shared.borrow().clear_errors());
        let shared = observer.clone();
        registry.perform(move |_: TraceClear| shared.borrow().clear_traces());
        let shared = observer.clone();
        registry.perform(move |trace: TraceAdd| shared.borrow().start_trace(&trace));
        Observer::answer(registry, &observer);
    }

    fn answer(registry: &mut Registry, observer: &Rc<RefCell<Observer>>) {
        let shared = observer.clone();
        registry.answer(move |_: ShowVersion| Ok(shared.borrow().version()));
        registry.answer(move |_: ShowProcess| Ok(process::report()));
        let shared = observer.clone();
        registry.answer(move |_: ShowRuntime| Ok(shared.borrow().runtime()));
        let shared = observer.clone();
        registry.answer(move |_: ShowErrors| Ok(shared.borrow().errors()));
        let shared = observer.clone();
        registry.answer(move |_: ShowDrops| Ok(shared.borrow().drops()));
        let shared = observer.clone();
        registry.answer(move |asked: ShowTrace| {
            Ok(shared.borrow().trace(asked.max.unwrap_or(u64::MAX)))
        });
        let shared = observer.clone();
        registry.answer(move |asked: ShowNode| shared.borrow().node(&asked.name));
        let shared = observer.clone();
        registry.answer(move |_: ShowGraph| Ok(shared.borrow().graph()));
        let shared = observer.clone();
        registry.answer(move |_: ShowBuffers| Ok(shared.borrow().buffers()));
    }

    /// An observer of the daemon's engine and interfaces.
    fn new(
        registry: &Registry,
        processes: Processes,
        worker_set: Rc<RefCell<WorkerManager>>,
    ) -> Self {
        drops::follow(registry);
        Observer {
            engine: registry.engine.clone(),
            interfaces: registry.interfaces.clone(),
            processes,
            worker_set,
            started: Instant::now(),
            cleared: Instant::now(),
            base: Vec::new(),
        }
    }

    fn version(&self) -> VersionReply {
        let engine = self.engine.borrow();
        VersionReply {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: option_env!("VOLLEY_COMMIT").map(str::to_owned),
            build: if cfg!(debug_assertions) {
                "debug"
            } else {
                "release"
            }
            .to_owned(),
            cpu: cpu_name(),
            isa: engine.settings().level.to_string(),
            vector_size: engine.vector_size() as u32,
            workers: engine.worker_set().count() as u32,
            uptime_s: self.started.elapsed().as_secs_f64(),
            pid: std::process::id(),
        }
    }

    fn runtime(&self) -> RuntimeReply {
        let engine = self.engine.borrow();
        let seconds = self.cleared.elapsed().as_secs_f64();
        let rate = |n: u64| {
            if seconds > 0.0 {
                n as f64 / seconds
            } else {
                0.0
            }
        };
        let running = self.worker_set.borrow().running();
        let worker = |w: usize| {
            let mut nodes = engine.runtime(w);
            nodes.extend(engine.loop_report(w));
            if engine.worker_set().iter().next() == Some(w) {
                nodes.extend(self.processes.report());
            }
            nodes.sort_by(|a, b| a.name.cmp(&b.name));
            let (rounds, busy, packets, _) = engine.load(w).unwrap_or_default();
            let base = self.base.get(w).copied().unwrap_or_default();
            let (rounds, busy, packets) = (rounds - base.0, busy - base.1, packets - base.2);
            let sum = |name: &str| {
                nodes
                    .iter()
                    .filter(|n| n.name == name)
                    .map(|n| n.vectors)
                    .sum()
            };
            WorkerRuntime {
                name: format!("worker{w}"),
                core: running
                    .as_ref()
                    .and_then(|r| r.borrow().core(w))
                    .map(|core| core as u32),
                seconds,
                vectors_per_loop: if busy == 0 {
                    0.0
                } else {
                    packets as f64 / busy as f64
                },
                loops_per_second: rate(rounds),
                rx_pps: rate(packets),
                tx_pps: rate(sum("interface-tx")),
                drop_pps: rate(sum("error-drop")),
                longest_round_us: engine.longest_round_us(w),
                rounds,
                busy_rounds: busy,
                rx_packets: packets,
                busy_s: engine.busy_seconds(w),
                sleeps: engine.sleeps(w),
                nodes: nodes.iter().map(row).collect(),
            }
        };
        RuntimeReply {
            workers: engine.worker_set().iter().map(worker).collect(),
        }
    }

    fn errors(&self) -> ErrorsReply {
        let counters = self.engine.borrow().counters();
        ErrorsReply {
            errors: counters
                .iter()
                .filter(|c| c.count > 0)
                .map(error_row)
                .collect(),
        }
    }

    fn drops(&self) -> DropsReply {
        drops::report(&self.engine.borrow(), &self.interfaces.borrow())
    }

    fn trace(&self, max: u64) -> TraceReply {
        let interfaces = self.interfaces.borrow();
        let traced = self.engine.borrow_mut().traces(&|i| interfaces.name(i));
        let step = |s: &volley_graph::TraceStep| TraceStep {
            time_s: s.at_ns as f64 / 1e9,
            node: s.node.clone(),
            text: s.text.clone(),
        };
        let packet = |t: &volley_graph::TraceReport| TracedPacket {
            packet: t.packet,
            worker: t.worker as u32,
            steps: t.steps.iter().map(step).collect(),
        };
        let shown = traced.len().min(usize::try_from(max).unwrap_or(usize::MAX));
        TraceReply {
            packets: traced[..shown].iter().map(packet).collect(),
            more: (traced.len() - shown) as u64,
        }
    }

    fn graph(&self) -> GraphReply {
        let engine = self.engine.borrow();
        let node = |(name, edges): (&str, &[&str])| GraphNode {
            name: name.to_owned(),
            kind: kind(&engine, name, edges).to_owned(),
            next: edges.iter().enumerate().map(edge).collect(),
        };
        let mut nodes: Vec<GraphNode> = engine.edges().map(|(n, e)| node((n, e))).collect();
        nodes.sort_by(|a, b| a.name.cmp(&b.name));
        GraphReply { nodes }
    }

    fn node(&self, name: &str) -> Result<NodeReply, ModelError> {
        let engine = self.engine.borrow();
        let known = || {
            engine
                .edges()
                .map(|(n, _)| n.to_owned())
                .collect::<Vec<_>>()
        };
        let id = engine.node(name).map_err(|_| {
            ModelError::not_found(ObjectKind::Object, format!("node {name}"), known())
        })?;
        let edges = engine
            .edges()
            .find(|(n, _)| *n == name)
            .map_or(&[][..], |(_, e)| e);
        let rows = |w: usize| {
            engine
                .runtime(w)
                .iter()
                .filter(|n| n.name == name)
                .map(row)
                .collect::<Vec<_>>()
        };
        Ok(NodeReply {
            name: name.to_owned(),
            index: u32::from(id.0),
            kind: kind(&engine, name, edges).to_owned(),
            next: edges.iter().enumerate().map(edge).collect(),
            previous: engine
                .edges()
                .filter(|(_, e)| e.contains(&name))
                .map(|(n, _)| n.to_owned())
                .collect(),
            runtime: engine.worker_set().iter().flat_map(rows).collect(),
            counters: engine
                .counters()
                .iter()
                .filter(|c| c.node == name)
                .map(error_row)
                .collect(),
        })
    }

    fn buffers(&self) -> BuffersReply {
        let row = |report: &PoolReport| ArenaRow {
            name: "default".to_owned(),
            numa: report.node,
            slot_bytes: STRIDE as u32,
            data_bytes: DATA as u32,
            total: report.total as u64,
            free: report.shared_free as u64,
            cached: report.cached_free as u64,
            used: report.in_use() as u64,
            failures: report.failures,
            backing: report.backing.to_string(),
        };
        let holder = |share: ShareReport| HolderRow {
            name: share.name.to_owned(),
            limit: share.limit,
            limit_each: share.each,
            held: share.held,
            evicted: share.evicted,
            refused: share.refused,
        };
        let engine = self.engine.borrow();
        let reports = engine.pool().reports();
        BuffersReply {
            reserve: engine.reserved_buffers(),
            holders: engine.shares().into_iter().map(holder).collect(),
            arenas: reports.iter().map(row).collect(),
        }
    }

    fn clear_runtime(&mut self) -> Result<Applied, ModelError> {
        let mut engine = self.engine.borrow_mut();
        engine.clear_runtime();
        self.cleared = Instant::now();
        let now = (0..engine.settings().workers).map(|w| engine.load(w));
        let now = now.map(|load| load.map(|(r, b, p, _)| (r, b, p)));
        self.base = now.map(Option::unwrap_or_default).collect();
        Ok(Applied::one())
    }

    fn clear_errors(&self) -> Result<Applied, ModelError> {
        self.engine.borrow_mut().clear_counters();
        Ok(Applied::one())
    }

    fn clear_traces(&self) -> Result<Applied, ModelError> {
        let cleared = self.engine.borrow_mut().clear_traces();
        let cleared = cleared.map(|()| Applied::one());
        cleared.map_err(|e| ModelError::invalid("clear trace", e))
    }

    fn start_trace(&self, spec: &TraceAdd) -> Result<Applied, ModelError> {
        let (node, count) = (&spec.node[..], spec.count);
        let filter = spec.filter.as_deref().map(Filter::asked).transpose()?;
        let filter = filter.map(|f| Arc::new(f) as Arc<dyn TraceFilter>);
        let mut engine = self.engine.borrow_mut();
        let known = || {
            engine
                .edges()
                .map(|(n, _)| n.to_owned())
                .collect::<Vec<_>>()
        };
        if engine.node(node).is_err() {
            return Err(ModelError::not_found(
                ObjectKind::Object,
                format!("node {node}"),
                known(),
            ));
        }
        let packets = u32::try_from(count).unwrap_or(u32::MAX);
        engine
            .trace(node, packets, filter)
            .map_err(|e| ModelError::invalid("trace add", e))?;
        Ok(Applied::one())
    }
}

fn row(n: &NodeReport) -> NodeRuntime {
    let state = match n.state {
        NodeState::Polling => "polling",
        NodeState::Interrupt => "interrupt wait",
        NodeState::Active => "active",
        NodeState::Process => "event wait",
        NodeState::Loop => "loop",
    };
    let mut row = NodeRuntime::new(&n.name, state, n.calls, n.vectors, n.suspends, n.clocks);
    row.max_vector = n.largest as u32;
    row
}

fn error_row(c: &CounterReport) -> ErrorRow {
    ErrorRow {
        count: c.count,
        node: c.node.clone(),
        reason: c.info.name.to_owned(),
        severity: match c.info.severity {
            Severity::Info => ModelSeverity::Info,
            Severity::Warn => ModelSeverity::Warn,
            Severity::Error => ModelSeverity::Error,
        },
        text: c.info.text.to_owned(),
    }
}

fn kind(engine: &Engine, name: &str, edges: &[&str]) -> &'static str {
    let source = |n: &NodeReport| matches!(n.state, NodeState::Polling | NodeState::Interrupt);
    let polled = |n: &NodeReport| n.name == name && source(n);
    match edges {
        _ if engine.runtime(0).iter().any(polled) => "source",
        [] => "sink",
        _ => "internal",
    }
}

fn edge((index, to): (usize, &&str)) -> NodeEdge {
    NodeEdge {
        index: index as u32,
        node: (*to).to_owned(),
    }
}

fn cpu_name() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = info
        .lines()
        .find_map(|l| l.strip_prefix("model name")?.split_once(": "));
    line.map_or_else(
        || std::env::consts::ARCH.to_owned(),
        |(_, name)| name.to_owned(),
    )
}
