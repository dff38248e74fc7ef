//! The control thread's side of `pcap trace`.

use super::monitor::Monitors;
use super::query::Directions;
use super::show::PcapTraceReply;
use super::{Filter, Session, Sessions, TraceTap};
use crate::FileFormat;
use crate::interface::file_error;
use crate::model::PcapTraceOn;
use crate::spool::{CaptureWriter, Describe, Ending, Note, RECORDS, Sink, WHOLE};
use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use volley_graph::{Engine, NodeId};
use volley_iface::driver::to_model_error;
use volley_iface::{CapturePoint, Direction, Interfaces};
use volley_model::{Applied, ModelError, ObjectKind};

/// The capture into a file, at most one at a time, and the clients of `monitor`.
pub struct Control {
    pub(super) engine: Rc<RefCell<Engine>>,
    pub(super) interfaces: Rc<RefCell<Interfaces>>,
    tap: Arc<TraceTap>,
    /// False when the interface table has the tap of another owner.
    attached: bool,
    /// The capture as workers see it.
    session: Option<Arc<Session>>,
    pub(super) monitors: Monitors,
    spec: Option<PcapTraceOn>,
    sink: Option<Sink>,
    /// The result of the last capture.
    ended: Ending,
    /// The last capture failed, and no request has reported it to the operator yet.
    failed: bool,
    news: Option<String>,
    /// Replaced session lists that a worker was still using; freed here and not by the worker.
    old: Vec<Arc<Sessions>>,
}

/// Names for comments and interfaces.
pub(super) struct Words<'a> {
    pub(super) engine: &'a Engine,
    pub(super) interfaces: &'a Interfaces,
}

impl Describe for Words<'_> {
    fn interface(&self, index: u32) -> String {
        self.interfaces.name(index)
    }

    fn comment(&self, note: &Note) -> Option<String> {
        if note.tag != CapturePoint::Dropped.bit() {
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

pub(super) fn wanted(directions: Directions) -> u32 {
    let all = [
        (directions.rx, CapturePoint::Passing(Direction::Rx)),
        (directions.tx, CapturePoint::Passing(Direction::Tx)),
        (directions.drop, CapturePoint::Dropped),
    ];
    all.iter().filter(|(on, _)| *on).map(|(_, w)| w.bit()).sum()
}

impl Control {
    /// Starts without a capture; sets the tap of the interface table.
    pub fn new(engine: Rc<RefCell<Engine>>, interfaces: Rc<RefCell<Interfaces>>) -> Self {
        let tap = Arc::new(TraceTap::default());
        let attached = interfaces.borrow().table().set_capture_hook(tap.clone());
        Control {
            engine,
            interfaces,
            tap,
            attached,
            session: None,
            monitors: Monitors::default(),
            spec: None,
            sink: None,
            ended: Ending::default(),
            failed: false,
            news: None,
            old: Vec::new(),
        }
    }

    /// Whether a capture is written.
    pub(crate) fn is_on(&self) -> bool {
        self.sink.is_some()
    }

    /// Write the packets that workers captured; closes the file when the requested number of packets is reached.
    pub fn drain(&mut self) -> usize {
        self.old.retain(|sessions| Arc::strong_count(sessions) > 1);
        let Some(sink) = &mut self.sink else { return 0 };
        let (engine, interfaces) = (self.engine.borrow(), self.interfaces.borrow());
        let written = sink.drain(&Words {
            engine: &engine,
            interfaces: &interfaces,
        });
        let over = sink.spool().is_over() || sink.is_broken();
        drop((engine, interfaces));
        if over {
            // `pcap trace off` reports a failure of this capture.
            self.failed = self.stop().is_some_and(|(_, end)| end.fault.is_some());
        }
        written
    }

    /// A sentence about a failure that has not been reported yet.
    pub(crate) fn news(&mut self) -> Option<String> {
        self.news.take()
    }

    /// The interface and the filter of a request.
    pub(super) fn asked(
        &self,
        interface: Option<&str>,
        filter: Option<&str>,
    ) -> Result<(Option<u32>, Option<Filter>), ModelError> {
        if !self.attached {
            let name = "capture packets that pass interfaces";
            return Err(ModelError::in_use(ObjectKind::Object, name, "another tap"));
        }
        let filter = filter.map(Filter::asked).transpose()?;
        let interface = interface.map(|name| {
            let all = self.interfaces.borrow();
            all.index(name).map_err(|e| to_model_error(&all, e))
        });
        Ok((interface.transpose()?.map(|i| i.0), filter))
    }

    /// Publish the current sessions to workers, and wait until no worker uses an older list.
    pub(super) fn publish(&mut self) {
        let monitors = self.monitors.sessions();
        let now = self.session.iter().cloned().chain(monitors).collect();
        let Some(old) = self.tap.set(now) else { return };
        // A worker uses a list for at most one packet.
        for _ in 0..10_000 {
            if Arc::strong_count(&old) == 1 {
                return;
            }
            std::thread::yield_now();
        }
        self.old.push(old);
    }

    /// Carry out `pcap trace`: replaces the running capture.
    pub(crate) fn start(&mut self, spec: &PcapTraceOn) -> Result<Applied, ModelError> {
        let (interface, filter) = self.asked(spec.interface.as_deref(), spec.filter.as_deref())?;
        let snap = spec.max_bytes_per_packet.map_or(WHOLE, |n| n as usize);
        let records = RECORDS.min(usize::try_from(spec.max).unwrap_or(RECORDS));
        let spool = CaptureWriter::new(records, snap, spec.max);
        if self.sink.as_ref().is_some_and(|s| s.path() == spec.file) {
            self.stop();
        }
        let clock = self.engine.borrow().settings().clock.clone();
        let sink = Sink::create(spool.clone(), &spec.file, FileFormat::PcapNg, &clock)
            .map_err(|e| file_error(&spec.file, &e))?;
        let replaced = self.stop();
        self.session = Some(Arc::new(Session {
            wants: wanted(Directions {
                rx: spec.rx,
                tx: spec.tx,
                drop: spec.drop,
            }),
            spool,
            interface,
            filter,
        }));
        self.publish();
        (self.sink, self.spec) = (Some(sink), Some(spec.clone()));
        self.failed = false;
        let note = replaced.map(|(path, end)| match end.sentence(&path) {
            Ok(sentence) => sentence,
            Err(why) => format!("{}: {why}", path.display()),
        });
        Ok(note.into_iter().fold(Applied::one(), Applied::note))
    }

    /// Carry out `pcap trace off`: an error when the file could not be written.
    pub(crate) fn off(&mut self) -> Result<Applied, ModelError> {
        let failed = std::mem::take(&mut self.failed);
        let ended = match self.stop() {
            Some(ended) => ended,
            None if failed => (self.path(), self.ended.clone()),
            None => return Ok(Applied::nothing()),
        };
        let (path, end) = ended;
        let note = end
            .sentence(&path)
            .map_err(|why| ModelError::file(&path, why))?;
        Ok(Applied::one().note(note))
    }

    fn path(&self) -> PathBuf {
        self.spec
            .as_ref()
            .map_or_else(PathBuf::new, |spec| spec.file.clone())
    }

    /// End the capture and close its file; returns the result, if there was a capture.
    fn stop(&mut self) -> Option<(PathBuf, Ending)> {
        if self.session.take().is_some() {
            self.publish();
        }
        let mut sink = self.sink.take()?;
        let path = sink.path().to_owned();
        let (engine, interfaces) = (self.engine.borrow(), self.interfaces.borrow());
        let words = Words {
            engine: &engine,
            interfaces: &interfaces,
        };
        sink.drain(&words);
        self.news = sink.news().or(self.news.take());
        self.ended = sink.finish(&words);
        Some((path, self.ended.clone()))
    }

    /// The reply to `show pcap trace`.
    pub fn report(&mut self) -> PcapTraceReply {
        self.drain();
        let sink = self.sink.as_ref();
        let Ending {
            packets,
            lost,
            fault,
        } = sink.map_or_else(|| self.ended.clone(), Sink::state);
        PcapTraceReply {
            spec: self.spec.clone(),
            active: sink.is_some(),
            packets,
            lost,
            fault,
        }
    }
}
