//! The control thread's side of `pcap trace`.

use super::{Filter, Session, TraceTap, bit};
use crate::FileFormat;
use crate::interface::file_error;
use crate::spool::{Describe, Note, RECORDS, Sink, Spool, WHOLE};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use volley_graph::{Engine, NodeId};
use volley_iface::driver::explain;
use volley_iface::{Direction, Interfaces, Tapped};
use volley_model::reply::PcapTraceReply;
use volley_model::{
    Applied, Directions, Handler, ModelError, ObjectKind, PcapTrace, Query, Reply, Request,
};

/// The capture: at most one at a time.
pub struct Control {
    engine: Rc<RefCell<Engine>>,
    interfaces: Rc<RefCell<Interfaces>>,
    tap: Arc<TraceTap>,
    /// False when the interface table has somebody else's tap.
    attached: bool,
    spec: Option<PcapTrace>,
    sink: Option<Sink>,
    /// Packets and losses of a capture that is over.
    ended: (u64, u64),
    /// Sessions that a worker was in when they ended; freed here and not by the worker.
    old: Vec<Arc<Session>>,
}

/// Names for comments and interfaces.
struct Words<'a> {
    engine: &'a Engine,
    interfaces: &'a Interfaces,
}

impl Describe for Words<'_> {
    fn interface(&self, index: u32) -> String {
        self.interfaces.name(index)
    }

    fn comment(&self, note: &Note) -> Option<String> {
        if note.tag != bit(Tapped::Dropped) {
            return None;
        }
        let Some(reason) = note.reason else {
            return Some("dropped without a reason".to_owned());
        };
        let (node, counter) = NodeId::of_reason(reason);
        let info = self.engine.counter_info(node, counter);
        let why = info.map_or_else(String::new, |i| format!("{} ({})", i.name, i.text));
        Some(format!("{}: {why}", self.engine.name(node)))
    }
}

fn wanted(directions: Directions) -> u32 {
    let all = [
        (directions.rx, Tapped::Passing(Direction::Rx)),
        (directions.tx, Tapped::Passing(Direction::Tx)),
        (directions.drop, Tapped::Dropped),
    ];
    all.iter().filter(|(on, _)| *on).map(|(_, w)| bit(*w)).sum()
}

impl Control {
    /// No capture; puts the tap on the interface table.
    pub fn new(engine: Rc<RefCell<Engine>>, interfaces: Rc<RefCell<Interfaces>>) -> Self {
        let tap = Arc::new(TraceTap::default());
        let attached = interfaces.borrow().table().set_tap(tap.clone());
        Control {
            engine,
            interfaces,
            tap,
            attached,
            spec: None,
            sink: None,
            ended: (0, 0),
            old: Vec::new(),
        }
    }

    /// Whether a capture is written.
    pub(crate) fn is_on(&self) -> bool {
        self.sink.is_some()
    }

    /// Write what workers captured; closes the file when all packets asked for are in it.
    pub fn drain(&mut self) -> usize {
        self.old.retain(|session| Arc::strong_count(session) > 1);
        let Some(sink) = &mut self.sink else { return 0 };
        let (engine, interfaces) = (self.engine.borrow(), self.interfaces.borrow());
        let written = sink.drain(&Words {
            engine: &engine,
            interfaces: &interfaces,
        });
        let over = sink.spool().is_over() || sink.fault().is_some();
        drop((engine, interfaces));
        if over {
            // What went wrong in writing was kept by the sink; `off` has nobody left to tell it to.
            let _ = self.stop();
        }
        written
    }

    fn start(&mut self, spec: &PcapTrace) -> Result<Applied, ModelError> {
        if !self.attached {
            return Err(ModelError::in_use(
                ObjectKind::Capture,
                "pcap trace",
                "another tap",
            ));
        }
        let filter = spec.filter.as_deref().map(Filter::asked).transpose()?;
        let interface = spec.interface.as_deref().map(|name| {
            let all = self.interfaces.borrow();
            all.index(name).map_err(|e| explain(&all, e))
        });
        let interface = interface.transpose()?.map(|i| i.0);
        let snap = spec.snap.map_or(WHOLE, |n| n as usize);
        let records = RECORDS.min(usize::try_from(spec.max).unwrap_or(RECORDS));
        let spool = Spool::new(records, snap, spec.max);
        if self.sink.as_ref().is_some_and(|s| s.path() == spec.file) {
            self.stop()?;
        }
        let clock = self.engine.borrow().settings().clock.clone();
        let sink = Sink::create(spool.clone(), &spec.file, FileFormat::PcapNg, &clock)
            .map_err(|e| file_error(&spec.file, &e))?;
        self.stop()?;
        let session = Session {
            spool,
            interface,
            filter,
        };
        self.tap
            .set(wanted(spec.directions), Some(Arc::new(session)));
        (self.sink, self.spec) = (Some(sink), Some(spec.clone()));
        Ok(Applied::one())
    }

    /// End the capture and close its file.
    fn stop(&mut self) -> Result<Applied, ModelError> {
        let old = self.tap.set(0, None);
        let Some(sink) = self.sink.take() else {
            return Ok(Applied::nothing());
        };
        if let Some(old) = old {
            // A worker that is in the session is out of it within one packet.
            for _ in 0..10_000 {
                if Arc::strong_count(&old) == 1 {
                    break;
                }
                std::thread::yield_now();
            }
            self.old.push(old);
        }
        let (path, lost) = (sink.path().to_owned(), sink.spool().lost());
        self.ended = (sink.packets(), lost);
        let (engine, interfaces) = (self.engine.borrow(), self.interfaces.borrow());
        let words = Words {
            engine: &engine,
            interfaces: &interfaces,
        };
        let packets = sink
            .finish(&words)
            .map_err(|e| ModelError::file(&path, e))?;
        self.ended = (packets, lost);
        let note = format!("{packets} packets in {}, {lost} lost", path.display());
        Ok(Applied::one().note(note))
    }

    fn report(&self) -> PcapTraceReply {
        let sink = self.sink.as_ref();
        let (packets, lost) = sink.map_or(self.ended, |s| (s.packets(), s.spool().lost()));
        PcapTraceReply {
            spec: self.spec.clone(),
            active: sink.is_some(),
            packets,
            lost,
        }
    }
}

/// Carries out capture requests.
pub struct TraceHandler(Rc<RefCell<Control>>);

impl TraceHandler {
    /// A handler over the daemon's capture.
    pub fn new(control: Rc<RefCell<Control>>) -> Self {
        TraceHandler(control)
    }
}

impl Handler for TraceHandler {
    fn apply(&mut self, request: &Request) -> Option<Result<Applied, ModelError>> {
        match request {
            Request::PcapTraceOn(spec) => Some(self.0.borrow_mut().start(spec)),
            Request::PcapTraceOff => Some(self.0.borrow_mut().stop()),
            _ => None,
        }
    }

    fn query(&mut self, query: &Query) -> Option<Result<Reply, ModelError>> {
        let Query::PcapTrace = query else { return None };
        self.0.borrow_mut().drain();
        Some(Ok(Reply::PcapTrace(self.0.borrow().report())))
    }
}
