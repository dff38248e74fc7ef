//! Control thread part: the runs, their packets, and the reports of workers.

use crate::lane::{Event, LONGEST, PingQueues, ProbeReply, RUNS, Request};
use crate::packet::Echo;
use crate::reply::ProbeResult;
use crate::run::{MILLISECOND, Plan, Run};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use volley_fib::dataplane::{DataPlane, Dpo, DpoKind};
use volley_fib::{Family as Version, Fib, V4, V6};
use volley_graph::{Clock, Engine, Guard};
use volley_iface::Interfaces;
use volley_model::{Family, IfAddress, ModelError};

/// Interval of the process while a run is active.
const BUSY: Duration = Duration::from_millis(2);
/// Interval of the process otherwise.
const QUIET: Duration = Duration::from_millis(50);

/// Parameters of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spec {
    pub destination: IpAddr,
    pub source: Option<IpAddr>,
    pub table: u32,
    pub size: usize,
    pub plan: Plan,
    pub timeout_ms: u32,
}

pub(crate) struct Entry {
    pub run: Run,
    pub echo: Echo,
    rx: u32,
}

pub(crate) struct Control {
    engine: Rc<RefCell<Engine>>,
    interfaces: Rc<RefCell<Interfaces>>,
    fib: Rc<RefCell<Fib>>,
    lanes: Vec<Arc<PingQueues>>,
    clock: Clock,
    runs: BTreeMap<u16, Entry>,
    next_id: u16,
}

/// The result of an answer, by type and code.
fn probe_result(from: IpAddr, kind: u8, code: u8) -> ProbeResult {
    use ProbeResult as S;
    match (from, kind, code) {
        (IpAddr::V4(_), 0, _) | (IpAddr::V6(_), 129, _) => S::Reply,
        (IpAddr::V4(_), 11, _) | (IpAddr::V6(_), 3, _) => S::TimeExceeded,
        (IpAddr::V4(_), 3, 0 | 6) | (IpAddr::V6(_), 1, 0) => S::NetUnreachable,
        (IpAddr::V4(_), 3, 1 | 7) | (IpAddr::V6(_), 1, 3) => S::HostUnreachable,
        (IpAddr::V4(_), 3, 9 | 10 | 13) | (IpAddr::V6(_), 1, 1) => S::Prohibited,
        (IpAddr::V4(_), 3, 4) | (IpAddr::V6(_), 2, _) => S::TooBig,
        _ => S::Other,
    }
}

/// Result of a lookup: the egress interface, or the router itself.
enum RouteResult {
    To(u32),
    Here,
    Nowhere,
}

impl Control {
    pub fn new(
        engine: Rc<RefCell<Engine>>,
        interfaces: Rc<RefCell<Interfaces>>,
        fib: Rc<RefCell<Fib>>,
        lanes: Vec<Arc<PingQueues>>,
    ) -> Self {
        let clock = engine.borrow().settings().clock.clone();
        Control {
            engine,
            interfaces,
            fib,
            lanes,
            clock,
            runs: BTreeMap::new(),
            // Answers to the runs of an earlier daemon must match no run.
            next_id: std::process::id() as u16,
        }
    }

    /// Begins a run; returns its identifier and source address.
    pub fn start(&mut self, spec: Spec) -> Result<(u16, IpAddr), ModelError> {
        if self.runs.len() >= RUNS {
            let why = format!("{RUNS} of them run already; try again when one has ended");
            return Err(ModelError::invalid("ping or traceroute", why));
        }
        let (from, rx) = self.way(&spec)?;
        let id = self.free_id();
        let timeout = u64::from(spec.timeout_ms) * MILLISECOND;
        let echo = Echo {
            from,
            to: spec.destination,
            hops: 0,
            id,
            number: 0,
            size: spec.size,
        };
        let run = Run::new(spec.plan, timeout, self.clock.now_ns());
        self.runs.insert(id, Entry { run, echo, rx });
        self.expect();
        self.turn();
        Ok((id, from))
    }

    fn free_id(&mut self) -> u16 {
        loop {
            self.next_id = self.next_id.wrapping_add(1);
            if !self.runs.contains_key(&self.next_id) {
                return self.next_id;
            }
        }
    }

    fn expect(&self) {
        for lane in &self.lanes {
            lane.set_expected(self.runs.keys().copied());
        }
    }

    /// A run, and the current time.
    pub fn run(&mut self, id: u16) -> Option<(&mut Run, u64)> {
        let now = self.clock.now_ns();
        self.runs.get_mut(&id).map(|entry| (&mut entry.run, now))
    }

    /// Ends a run.
    pub fn remove(&mut self, id: u16) {
        self.runs.remove(&id);
        self.expect();
    }

    /// One run of the process; returns the time until the next one.
    pub fn turn(&mut self) -> Duration {
        let now = self.clock.now_ns();
        for lane in &self.lanes {
            while let Some(heard) = lane.heard.pop() {
                if let Some(entry) = self.runs.get_mut(&heard.id) {
                    hear(entry, heard);
                }
            }
        }
        let mut asked = false;
        let worker = self.engine.borrow().worker_set().accepting().next();
        if let Some(lane) = worker.and_then(|worker| self.lanes.get(worker)) {
            for entry in self.runs.values_mut() {
                // Requests that do not fit now are sent by the next run of the process.
                while !lane.requests.is_full()
                    && let Some((number, hops)) = entry.run.next(now)
                {
                    asked |= send(lane, entry, number, hops);
                }
            }
        }
        if asked {
            self.engine.borrow().wake();
        }
        if self.runs.is_empty() { QUIET } else { BUSY }
    }

    /// The source address for a destination, and the interface whose table is used for the lookup.
    fn way(&self, spec: &Spec) -> Result<(IpAddr, u32), ModelError> {
        let family = Family::of(spec.destination);
        let (fib, engine) = (self.fib.borrow(), self.engine.borrow());
        let index = fib.table_index(family, spec.table);
        let index = index.map_err(|e| ModelError::invalid("table", e.to_string()))?;
        // A temporary reader: a permanent one would keep replaced tables alive.
        let reader = engine.domain().register();
        let leads = match family {
            Family::V4 => {
                let to = V4::number(spec.destination);
                leads(&fib.dataplane4(), reader.guard(), index, to)
            }
            Family::V6 => {
                let to = V6::number(spec.destination);
                leads(&fib.dataplane6(), reader.guard(), index, to)
            }
        };
        drop(reader);
        let in_table = |iface: u32| fib.interface_table(iface, family) == spec.table;
        let (tx, here) = match leads {
            RouteResult::To(tx) => (Some(tx), None),
            RouteResult::Here => (None, Some(spec.destination)),
            RouteResult::Nowhere => {
                let why = format!("no route of table {} leads to it", spec.table);
                return Err(ModelError::invalid(spec.destination, why));
            }
        };
        let all: Vec<u32> = fib.interfaces().map(|i| i.index).collect();
        let rx = tx.filter(|tx| in_table(*tx));
        let rx = rx.or_else(|| all.iter().copied().find(|i| in_table(*i)));
        let rx = rx.ok_or_else(|| {
            let why = format!("no interface is bound to table {}", spec.table);
            ModelError::invalid("table", why)
        })?;
        let from = match spec.source {
            Some(source) => own(&fib, &all, source)?,
            None => here.or_else(|| tx.and_then(|tx| IfAddress::nearest(&used(&fib, tx), spec.destination)))
                .ok_or_else(|| {
                    let name = self.interfaces.borrow().name(tx.unwrap_or(rx));
                    let why = format!("interface {name}, which leads there, has no address of that family: name one with `source`");
                    ModelError::invalid(spec.destination, why)
                })?,
        };
        Ok((from, rx))
    }
}

fn leads<F: Version>(
    plane: &DataPlane<F>,
    guard: Guard<'_>,
    table: u32,
    to: Option<F::Addr>,
) -> RouteResult {
    let (view, Some(to)) = (plane.read(guard), to) else {
        return RouteResult::Nowhere;
    };
    let found = view.follow(table, to);
    let found = match found.kind() {
        DpoKind::Multi => view.lbs().pick_through(found, 0),
        _ => found,
    };
    end(found, |adj| view.adjs().words(adj).tx_if)
}

fn end(found: Dpo, tx_if: impl Fn(u32) -> u32) -> RouteResult {
    match found.kind() {
        DpoKind::Adj | DpoKind::Incomplete => RouteResult::To(tx_if(found.index())),
        DpoKind::Glean => RouteResult::To(found.index()),
        DpoKind::Local => RouteResult::Here,
        _ => RouteResult::Nowhere,
    }
}

/// An interface's addresses in use, without tentative and duplicate ones.
fn used(fib: &Fib, iface: u32) -> Vec<IfAddress> {
    fib.used_addresses(iface).collect()
}

/// Checks that an address given by the operator belongs to the router.
fn own(fib: &Fib, all: &[u32], source: IpAddr) -> Result<IpAddr, ModelError> {
    let mut own = all.iter().flat_map(|i| fib.used_addresses(*i));
    if own.any(|a| a.addr() == source) {
        return Ok(source);
    }
    let why = "it is no address of the router";
    Err(ModelError::invalid(format!("source {source}"), why))
}

fn hear(entry: &mut Entry, heard: ProbeReply) {
    match heard.event {
        Event::Sent => entry.run.sent(heard.number, heard.at),
        Event::Answered {
            from,
            kind,
            code,
            hops,
        } => {
            let probe_result = probe_result(from, kind, code);
            entry
                .run
                .answered(heard.number, heard.at, from, probe_result, hops);
        }
    }
}

/// Sends a request to the worker; true if the queue had a free slot.
fn send(lane: &PingQueues, entry: &Entry, number: u16, hops: u8) -> bool {
    let (mut bytes, echo) = (
        [0; LONGEST],
        Echo {
            hops,
            number,
            ..entry.echo
        },
    );
    let Some(len) = echo.write(&mut bytes) else {
        return false;
    };
    let request = Request {
        rx: entry.rx,
        id: echo.id,
        number,
        len,
        bytes,
    };
    lane.requests.push(request).is_ok()
}
