//! `ping` and `traceroute` from the router: a source node sends echo requests, and another node receives their answers (RFC
//! 792, RFC 4443). A process on the control thread manages the runs; `docs/icmp.md` is the operator's page.
#![forbid(unsafe_code)]

mod control;
#[cfg(fuzzing)]
pub mod fuzzing;
mod lane;
mod model;
pub mod node;
mod packet;
mod reply;
mod run;
mod text;

pub use model::{Ping, Traceroute, classes};
pub use reply::{PingReply, ProbeAnswer, ProbeResult, TraceHop, TracerouteReply};

use control::{Control, Spec};
use lane::PingQueues;
use node::ping_input::PingInput;
use node::ping_output::PingOutput;
use run::{MILLISECOND, Plan, Tally};
use std::cell::RefCell;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use volley_fib::Fib;
use volley_graph::{GraphError, Node, ProcessInfo, Source};
use volley_iface::Registry;
use volley_model::ModelError;
use volley_object::{Progress, Run};

/// The run of one client. Dropping the value ends the run.
struct ProbeId {
    control: Rc<RefCell<Control>>,
    id: u16,
    destination: IpAddr,
    source: IpAddr,
}

impl Drop for ProbeId {
    fn drop(&mut self) {
        self.control.borrow_mut().remove(self.id);
    }
}

impl ProbeId {
    fn begin(control: &Rc<RefCell<Control>>, spec: Spec) -> Result<ProbeId, ModelError> {
        let (id, source) = control.borrow_mut().start(spec)?;
        Ok(ProbeId {
            control: control.clone(),
            id,
            destination: spec.destination,
            source,
        })
    }

    /// Completed requests in groups of this size, the tally of all, and whether the run is finished.
    fn take(&self, group: usize) -> (Vec<run::Probe>, Tally, bool) {
        match self.control.borrow_mut().run(self.id) {
            Some((run, now)) => {
                let probes = run.take(group, now);
                (probes, run.tally(), run.is_done(now))
            }
            None => (Vec::new(), Tally::default(), true),
        }
    }

    fn stop(&self) {
        if let Some((run, _)) = self.control.borrow_mut().run(self.id) {
            run.stop();
        }
    }
}

/// A run of `ping`.
struct PingRun {
    probes: ProbeId,
    size: u32,
}

impl PingRun {
    fn begin(control: &Rc<RefCell<Control>>, ping: &Ping) -> Result<PingRun, ModelError> {
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
        Ok(PingRun {
            probes: ProbeId::begin(control, spec)?,
            size: ping.size,
        })
    }
}

impl Run for PingRun {
    type Reply = PingReply;

    fn take(&mut self) -> Progress<PingReply> {
        let (probes, tally, is_over) = self.probes.take(1);
        let reply = PingReply {
            destination: self.probes.destination,
            source: self.probes.source,
            size: self.size,
            sent: tally.sent,
            received: tally.received,
            min_us: tally.min_us,
            avg_us: tally.avg_us(),
            max_us: tally.max_us,
            answers: probes.into_iter().map(|probe| probe.answer).collect(),
        };
        Progress { reply, is_over }
    }

    fn stop(&mut self) {
        self.probes.stop();
    }
}

/// Data bytes after the ICMP header of a `traceroute` request.
const TRACE_SIZE: usize = 32;

/// A run of `traceroute`.
struct TraceRun {
    probes: ProbeId,
    each: usize,
}

impl TraceRun {
    fn begin(control: &Rc<RefCell<Control>>, trace: &Traceroute) -> Result<TraceRun, ModelError> {
        let plan = Plan::Trace {
            most: trace.most_hops as u8,
            each: trace.probes,
        };
        let spec = Spec {
            destination: trace.destination,
            source: trace.source,
            table: trace.table,
            size: TRACE_SIZE,
            plan,
            timeout_ms: trace.timeout_ms,
        };
        Ok(TraceRun {
            probes: ProbeId::begin(control, spec)?,
            each: trace.probes.max(1) as usize,
        })
    }
}

impl Run for TraceRun {
    type Reply = TracerouteReply;

    fn take(&mut self) -> Progress<TracerouteReply> {
        let (probes, tally, is_over) = self.probes.take(self.each);
        let hop = |all: &[run::Probe]| TraceHop {
            hops: all.first().map_or(0, |probe| u32::from(probe.hops)),
            answers: all.iter().map(|probe| probe.answer).collect(),
        };
        let reply = TracerouteReply {
            destination: self.probes.destination,
            source: self.probes.source,
            reached: tally.received > 0,
            hops: probes.chunks(self.each).map(hop).collect(),
        };
        Progress { reply, is_over }
    }

    fn stop(&mut self) {
        self.probes.stop();
    }
}

/// Registers the nodes, the process that manages the runs, and the owner of the queries. The registry provides the routes.
pub fn register(registry: &mut Registry) -> Result<(), GraphError> {
    let fib: Rc<RefCell<Fib>> = registry.provided()?;
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
    let pings = control.clone();
    registry.stream(move |ping: Ping| {
        // The process lives as long as the owner.
        let _turns = &turns;
        PingRun::begin(&pings, &ping)
    });
    registry.stream(move |trace: Traceroute| TraceRun::begin(&control, &trace));
    Ok(())
}
