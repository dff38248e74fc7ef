//! `ping` and `traceroute` from the router itself: echo requests that a source of the graph sends, and a node that takes their answers out
//! of it (RFC 792, RFC 4443). A process on the control thread keeps the runs; `docs/icmp.md` is the operator's page.
#![forbid(unsafe_code)]

mod control;
mod lane;
pub mod node;
mod packet;
mod run;

use control::{Control, Entry, Spec};
use lane::PingQueues;
use node::ping_input::PingInput;
use node::ping_output::PingOutput;
use run::{MILLISECOND, Plan};
use std::cell::RefCell;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use volley_fib::Fib;
use volley_graph::{GraphError, Node, ProcessInfo, Source, Watch};
use volley_iface::Registry;
use volley_model::reply::{PingReply, ProbeAnswer, ProbeResult, TraceHop, TracerouteReply};
use volley_model::{ModelError, PingQuery, Query, Reply, TracerouteQuery};

/// The pings and traceroutes of a daemon. Dropping it ends the process that keeps them.
pub struct Pings {
    control: Rc<RefCell<Control>>,
    _turns: Watch,
}

/// A run. Dropping it ends the run.
pub struct ProbeId {
    control: Rc<RefCell<Control>>,
    id: u16,
    destination: IpAddr,
    source: IpAddr,
    trace: Option<u32>,
}

impl Drop for ProbeId {
    fn drop(&mut self) {
        self.control.borrow_mut().remove(self.id);
    }
}

impl Pings {
    /// Begin what a query asks for; none when it is another query.
    pub fn start(&self, query: &Query) -> Option<Result<ProbeId, ModelError>> {
        match query {
            Query::Ping(ping) => Some(ping.validate().and_then(|()| self.ping(ping))),
            Query::Traceroute(trace) => Some(trace.validate().and_then(|()| self.trace(trace))),
            _ => None,
        }
    }

    fn ping(&self, ping: &PingQuery) -> Result<ProbeId, ModelError> {
        let plan = Plan::Ping {
            count: ping.count,
            interval: u64::from(ping.interval_ms) * MILLISECOND,
            hops: ping.hops as u8,
        };
        let spec = Spec {
            destination: ping.destination,
            source: ping.source,
            table: ping.table,
            size: ping.size as usize,
            plan,
            timeout_ms: ping.timeout_ms,
        };
        self.begin(spec, None)
    }

    fn trace(&self, trace: &TracerouteQuery) -> Result<ProbeId, ModelError> {
        let plan = Plan::Trace {
            most: trace.most_hops as u8,
            each: trace.probes,
        };
        let spec = Spec {
            destination: trace.destination,
            source: trace.source,
            table: trace.table,
            size: 32,
            plan,
            timeout_ms: trace.timeout_ms,
        };
        self.begin(spec, Some(trace.probes))
    }

    fn begin(&self, spec: Spec, trace: Option<u32>) -> Result<ProbeId, ModelError> {
        let mut control = self.control.borrow_mut();
        let (id, source) = control.start(spec)?;
        Ok(ProbeId {
            control: self.control.clone(),
            id,
            destination: spec.destination,
            source,
            trace,
        })
    }
}

impl ProbeId {
    /// What came of the run, when it has ended.
    pub fn reply(&self) -> Option<Reply> {
        let entry = self.control.borrow_mut().take(self.id)?;
        Some(match self.trace {
            None => Reply::Ping(self.pinged(&entry)),
            Some(each) => Reply::Traceroute(self.traced(&entry, each as usize)),
        })
    }

    fn pinged(&self, entry: &Entry) -> PingReply {
        let answers: Vec<Option<ProbeAnswer>> =
            entry.run.probes().iter().map(|p| p.answer).collect();
        let good = |a: &&ProbeAnswer| a.result == ProbeResult::Reply;
        let times = answers.iter().flatten().filter(good).map(|a| a.rtt_us);
        let times: Vec<u64> = times.collect();
        PingReply {
            destination: self.destination,
            source: self.source,
            size: entry.echo.size as u32,
            sent: answers.len() as u32,
            received: times.len() as u32,
            min_us: times.iter().copied().min(),
            avg_us: times.iter().sum::<u64>().checked_div(times.len() as u64),
            max_us: times.iter().copied().max(),
            answers,
        }
    }

    fn traced(&self, entry: &Entry, each: usize) -> TracerouteReply {
        let hops = entry.run.probes().chunks(each.max(1)).map(|all| TraceHop {
            hops: u32::from(all[0].hops),
            answers: all.iter().map(|p| p.answer).collect(),
        });
        let hops: Vec<TraceHop> = hops.collect();
        let there = |a: &ProbeAnswer| a.result == ProbeResult::Reply;
        TracerouteReply {
            destination: self.destination,
            source: self.source,
            reached: hops.iter().flat_map(|h| &h.answers).flatten().any(there),
            hops,
        }
    }
}

/// Bring in the nodes and the process that keeps the runs.
pub fn register(registry: &mut Registry, fib: Rc<RefCell<Fib>>) -> Result<Pings, GraphError> {
    let table = registry.table();
    let lanes: Vec<Arc<PingQueues>> = {
        let mut engine = registry.engine.borrow_mut();
        let workers = engine.settings().workers;
        let lanes: Vec<Arc<PingQueues>> = (0..workers).map(|_| Arc::default()).collect();
        let size = engine.settings().vector_size;
        let queues = lanes.clone();
        engine.add(PingInput::NAME, move |worker| {
            PingInput::new(queues[worker].clone(), table.clone())
        })?;
        let queues = lanes.clone();
        engine.add_source(PingOutput::NAME, move |worker| {
            PingOutput::new(queues[worker].clone(), size)
        })?;
        lanes
    };
    let (engine, interfaces) = (registry.engine.clone(), registry.interfaces.clone());
    let control = Rc::new(RefCell::new(Control::new(engine, interfaces, fib, lanes)));
    let info = ProcessInfo {
        name: "pings",
        text: "Sends the echo requests of ping and traceroute, and waits for their answers.",
    };
    let kept = Rc::downgrade(&control);
    let turns = registry.processes.every(info, move || {
        kept.upgrade().map(|control| control.borrow_mut().turn())
    });
    Ok(Pings {
        control,
        _turns: turns,
    })
}
