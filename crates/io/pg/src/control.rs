//! The packet generator on the control thread: its interfaces, streams and captures.

use crate::capture::PgCapture;
use crate::compile::{Setting, check_preload, compile, describe};
use crate::model::PgInterface;
use crate::node::pg_input::PgInput;
use crate::show::{PacketGeneratorReply, PgCaptureRow, StreamRow};
use crate::spec::StreamSpec;
use crate::stream::{GONE, Inbox, MAX_STREAMS, OFF, ON, Preload, Shared, Stream};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use volley_graph::Source;
use volley_iface::driver::DriverHost;
use volley_iface::{IfIdx, NewInterface, Registry};
use volley_model::{Applied, Handler, InterfaceSpec, ModelError, ObjectKind, Request, key_value};
use volley_pcap::FileFormat;
use volley_pcap::interface::{attach, without_hardware};
use volley_pcap::node::capture_tx::Capturing;
use volley_pcap::spool::{CaptureWriter, Plain, RECORDS, Sink, WHOLE};
use volley_tables::qsbr::Publisher;

/// Name of the interface type.
const KIND: &str = "packet-generator";

struct Entry {
    spec: StreamSpec,
    /// The interface that its packets count as received on.
    rx: Option<IfIdx>,
    limit: Option<u64>,
    worker: usize,
    shared: Arc<Shared>,
}

struct Port {
    interface: IfIdx,
    capture: Publisher<Capturing>,
    sink: Option<(Sink, Option<u64>)>,
}

/// The state of the packet generator on the control thread.
pub(crate) struct Control {
    host: DriverHost,
    inboxes: Vec<Arc<Inbox>>,
    /// The number of streams of each worker, including deleted ones that the worker has not returned yet.
    held: Vec<usize>,
    streams: Vec<Entry>,
    ports: Vec<Port>,
    seed: u64,
}

impl Control {
    pub(crate) fn new(host: DriverHost, inboxes: Vec<Arc<Inbox>>) -> Self {
        Control {
            host,
            held: vec![0; inboxes.len()],
            inboxes,
            streams: Vec::new(),
            ports: Vec::new(),
            seed: 1,
        }
    }

    /// Write the captured packets, and free streams that workers have returned.
    fn drain(&mut self) -> usize {
        let all = self.inboxes.iter();
        for stream in all.flat_map(|inbox| std::iter::from_fn(|| inbox.gone.pop())) {
            self.held[stream.shared.worker()] -= 1;
        }
        let sinks = self.ports.iter_mut().filter_map(|p| p.sink.as_mut());
        sinks.map(|(sink, _)| sink.drain(&Plain)).sum()
    }

    fn create(&mut self, spec: &InterfaceSpec) -> Result<Applied, ModelError> {
        let domain = self.host.engine.borrow().domain().clone();
        let capture = Publisher::new(&domain, None);
        let new = NewInterface {
            rx_node: PgInput::NAME,
            // Packets come from streams, each of which runs on one worker.
            rx_queues: Vec::new(),
            ..without_hardware(spec, KIND)
        };
        let interface = attach(&self.host, new, capture.snap())?;
        self.ports.push(Port {
            interface,
            capture,
            sink: None,
        });
        Ok(Applied::one().named(&spec.name))
    }

    fn delete(&mut self, name: &str) -> Option<Result<Applied, ModelError>> {
        let index = self.host.index(name).ok()?;
        let at = self.ports.iter().position(|p| p.interface == index)?;
        let enters = |e: &&Entry| e.rx == Some(index);
        if let Some(user) = self.streams.iter().find(enters) {
            let by = format!("stream {}", user.spec.name);
            return Some(Err(ModelError::in_use(ObjectKind::Interface, name, by)));
        }
        if let Err(error) = self.host.detach(index) {
            return Some(Err(error));
        }
        let closed = self.close(at);
        self.ports.remove(at);
        Some(closed.map(|_| Applied::one()))
    }

    fn setting(&self, spec: &StreamSpec) -> Result<Setting, ModelError> {
        let engine = self.host.engine.borrow();
        let rx = spec.interface.as_deref();
        let rx = rx.map(|name| self.host.index(name).map(|i| i.0));
        let node = spec.node.as_deref().map(|name| {
            let known = engine.edges().map(|(name, _)| name);
            engine.node(name).map_err(|_| {
                ModelError::not_found(ObjectKind::Object, format!("node {name}"), known)
            })
        });
        Ok(Setting {
            rx: rx.transpose()?,
            node: node.transpose()?,
            seed: self.seed,
            vector_size: engine.settings().vector_size,
        })
    }

    /// Creates a stream, and replaces the one with this name if it exists. It does not send yet.
    fn make(&mut self, spec: &StreamSpec, preload: Option<Preload>) -> Result<Applied, ModelError> {
        self.drain();
        let worker = self.worker_of(spec)?;
        let setting = self.setting(spec)?;
        let rx = setting.rx.map(IfIdx);
        let parts = compile(spec, &setting)?;
        if let Some(preload) = preload {
            check_preload(spec, &parts, preload)?;
        }
        let limit = parts.limit;
        let stream = Box::new(Stream::new(parts, preload));
        let shared = stream.shared.clone();
        shared.worker.store(worker as u32, Relaxed);
        // The queue has a free slot: its capacity is the maximum number of streams.
        let _ = self.inboxes[worker].new.push(stream);
        self.held[worker] += 1;
        let entry = Entry {
            spec: spec.clone(),
            rx,
            limit,
            worker,
            shared,
        };
        match self.place_of(&spec.name) {
            Some(at) => std::mem::replace(&mut self.streams[at], entry)
                .shared
                .order(GONE),
            None => self.streams.push(entry),
        }
        Ok(Applied::one().named(&spec.name))
    }

    /// The worker of a new stream.
    fn worker_of(&self, spec: &StreamSpec) -> Result<usize, ModelError> {
        let worker_set = self.host.engine.borrow().worker_set().clone();
        let first = worker_set.accepting().next().unwrap_or(0);
        let worker = spec.worker.map_or(first, |worker| worker as usize);
        if worker >= self.inboxes.len() || !worker_set.has(worker) {
            let all: Vec<String> = worker_set.iter().map(|w| w.to_string()).collect();
            let why = format!(
                "there is none of that number; there are: {}",
                all.join(", ")
            );
            return Err(ModelError::invalid(format!("worker {worker}"), why));
        }
        if self.held[worker] == MAX_STREAMS {
            let (limit, what) = (MAX_STREAMS as u64, "number of streams of a worker");
            return Err(ModelError::limit(what, limit + 1, limit));
        }
        Ok(worker)
    }

    fn place_of(&self, name: &str) -> Option<usize> {
        self.streams.iter().position(|e| e.spec.name == name)
    }

    /// Whether an existing stream differs from a specification at most in `enabled`. Its interface may have been renamed.
    fn is_like(&self, entry: &Entry, spec: &StreamSpec) -> bool {
        let rx = spec.interface.as_deref().map(|name| self.host.index(name));
        let like = StreamSpec {
            interface: spec.interface.clone(),
            enabled: spec.enabled,
            ..entry.spec.clone()
        };
        like == *spec && entry.rx == rx.and_then(Result::ok)
    }

    /// Creates or changes a stream: one that is only enabled or disabled keeps its position in its packets.
    fn set_stream(&mut self, spec: &StreamSpec) -> Result<Applied, ModelError> {
        let at = self.place_of(&spec.name);
        let mut done = Applied::nothing();
        match at.filter(|at| self.is_like(&self.streams[*at], spec)) {
            Some(at) => self.streams[at].spec = spec.clone(),
            None => done = self.make(spec, None)?,
        }
        let switched = self.switch(Some(&spec.name), spec.enabled)?;
        done.changed = done.changed.max(switched.changed);
        Ok(done)
    }

    /// Moves the streams of a worker that is to end to the other workers, each to the one with the fewest.
    pub(crate) fn leave(&mut self, worker: usize) {
        self.steer_from(worker);
        // The other workers find them in their inboxes.
        self.host.wake();
    }

    fn steer_from(&mut self, worker: usize) {
        let worker_set = self.host.engine.borrow().worker_set().clone();
        for entry in self.streams.iter_mut().filter(|e| e.worker == worker) {
            let others = worker_set.accepting().filter(|w| *w != worker);
            let Some(to) = others.min_by_key(|w| self.held[*w]) else {
                return;
            };
            (self.held[worker], self.held[to]) = (self.held[worker] - 1, self.held[to] + 1);
            entry.worker = to;
            self.inboxes[to].steer(&entry.shared, to);
        }
    }

    fn find(&self, name: &str) -> Result<usize, ModelError> {
        let names = self.streams.iter().map(|e| e.spec.name.as_str());
        let missing =
            || ModelError::not_found(ObjectKind::Object, format!("stream {name}"), names.clone());
        self.place_of(name).ok_or_else(missing)
    }

    /// Enables or disables one stream, or all.
    fn switch(&mut self, name: Option<&str>, on: bool) -> Result<Applied, ModelError> {
        let only = name.map(|name| self.find(name)).transpose()?;
        let entries = self.streams.iter().enumerate();
        let mut changed = 0;
        for (_, entry) in entries.filter(|(at, _)| only.is_none_or(|o| o == *at)) {
            if entry.shared.is_wanted() != on {
                entry.shared.order(if on { ON } else { OFF });
                changed += 1;
            }
        }
        Ok(Applied::changed(changed))
    }

    fn delete_stream(&mut self, name: &str) -> Result<Applied, ModelError> {
        let at = self.find(name)?;
        let entry = self.streams.remove(at);
        entry.shared.order(GONE);
        debug_assert!(self.held[entry.worker] > 0);
        Ok(Applied::one())
    }

    /// Carry out `packet-generator capture`.
    pub(crate) fn capture(&mut self, capture: &PgCapture) -> Result<Applied, ModelError> {
        let done = match &capture.file {
            Some(file) if !capture.off => self.capture_on(&capture.interface, file, capture.count),
            _ => self.capture_off(&capture.interface),
        };
        self.host.wake();
        done
    }

    fn capture_on(
        &mut self,
        name: &str,
        file: &Path,
        count: Option<u64>,
    ) -> Result<Applied, ModelError> {
        let at = self.port(name)?;
        if file.exists() {
            let why = "it exists already: delete it first or choose another name";
            return Err(ModelError::file(file, why));
        }
        if self.ports[at].sink.is_some() {
            return Err(ModelError::exists(
                ObjectKind::Object,
                format!("capture {name}"),
            ));
        }
        let clock = self.host.engine.borrow().settings().clock.clone();
        let spool = CaptureWriter::new(RECORDS, WHOLE, count.unwrap_or(u64::MAX));
        let sink = Sink::lazy(spool.clone(), file, FileFormat::for_path(file), &clock);
        let port = &mut self.ports[at];
        port.sink = Some((sink, count));
        port.capture.publish(Some(spool));
        Ok(Applied::one())
    }

    fn port(&self, name: &str) -> Result<usize, ModelError> {
        let all = self.host.interfaces.borrow();
        let index = all.index(name).ok();
        let at = self.ports.iter().position(|p| index == Some(p.interface));
        let names = self.ports.iter().map(|p| all.name(p.interface.0));
        at.ok_or_else(|| ModelError::not_found(ObjectKind::Interface, name, names))
    }

    fn capture_off(&mut self, name: &str) -> Result<Applied, ModelError> {
        self.close(self.port(name)?)
    }

    /// End the capture of port `at`, if there is one.
    fn close(&mut self, at: usize) -> Result<Applied, ModelError> {
        let domain = self.host.engine.borrow().domain().clone();
        let port = &mut self.ports[at];
        let Some((mut sink, _)) = port.sink.take() else {
            return Ok(Applied::nothing());
        };
        sink.drain(&Plain);
        let ticket = port.capture.publish(None);
        // A running worker completes its current vector soon; a stopped worker has none.
        for _ in 0..10_000 {
            if domain.passed(ticket) {
                break;
            }
            std::thread::yield_now();
        }
        let path: PathBuf = sink.path().to_owned();
        let note = sink.finish(&Plain).sentence(&path);
        let note = note.map_err(|e| ModelError::file(&path, e))?;
        Ok(Applied::one().note(note))
    }

    /// The reply to `show packet-generator`.
    pub fn report(&mut self) -> PacketGeneratorReply {
        self.drain();
        let all = self.host.interfaces.borrow();
        let stream = |e: &Entry| StreamRow {
            name: e.spec.name.clone(),
            enabled: e.shared.is_enabled(),
            enters: {
                let rx = e.rx.map(|rx| all.name(rx.0));
                let names: Vec<String> = rx.into_iter().chain(e.spec.node.clone()).collect();
                names.join(" at ")
            },
            sent: e.shared.sent.load(Relaxed),
            limit: e.limit,
            rate_pps: e.spec.rate,
            parameters: describe(&e.spec),
        };
        let capture = |port: &Port| {
            let (sink, count) = port.sink.as_ref()?;
            Some(PgCaptureRow {
                interface: all.name(port.interface.0),
                file: sink.path().display().to_string(),
                packets: sink.state().packets,
                count: *count,
                fault: sink.state().fault,
            })
        };
        PacketGeneratorReply {
            streams: self.streams.iter().map(stream).collect(),
            captures: self.ports.iter().filter_map(capture).collect(),
        }
    }
}

/// The daemon's handle of this crate: the daemon calls [`Pg::drain`] often, and once more at the end.
#[derive(Clone)]
pub struct Pg(Rc<RefCell<Control>>);

impl Pg {
    pub(crate) fn new(control: Rc<RefCell<Control>>) -> Self {
        Pg(control)
    }

    /// Write the packets that workers have captured since the last call; returns the number of packets.
    pub fn drain(&self) -> usize {
        self.0.borrow_mut().drain()
    }

    /// Sentences about failures to write captures that have not been reported yet.
    pub fn news(&self) -> Vec<String> {
        let mut control = self.0.borrow_mut();
        let sinks = control.ports.iter_mut().filter_map(|p| p.sink.as_mut());
        sinks.filter_map(|(sink, _)| sink.news()).collect()
    }

    /// Whether any capture is active.
    pub fn is_capturing(&self) -> bool {
        self.0.borrow().ports.iter().any(|p| p.sink.is_some())
    }

    /// Set the seed of streams without one, from now on.
    pub fn set_seed(&self, seed: u64) {
        self.0.borrow_mut().seed = seed;
    }

    /// Create a stream whose packets are preloaded. It does not send yet.
    pub fn preloaded(&self, spec: &StreamSpec, preload: Preload) -> Result<Applied, ModelError> {
        let control = &mut *self.0.borrow_mut();
        let done = control.make(spec, Some(preload));
        control.host.wake();
        done
    }

    /// Enable or disable a stream, or all (without a name).
    pub fn switch(&self, name: Option<&str>, on: bool) -> Result<Applied, ModelError> {
        let control = &mut *self.0.borrow_mut();
        let done = control.switch(name, on);
        control.host.wake();
        done
    }

    /// Whether no stream sends, and every packet that was made is processed.
    pub fn is_quiet(&self) -> bool {
        let control = self.0.borrow();
        !control.streams.iter().any(|e| e.shared.is_enabled())
    }
}

/// Registers the packet generator as the owner of streams.
pub(crate) fn own(registry: &mut Registry, control: &Rc<RefCell<Control>>) {
    let control = control.clone();
    registry.own(move |key, now: Option<StreamSpec>| {
        let mut control = control.borrow_mut();
        let done = match &now {
            Some(spec) => control.set_stream(spec),
            None => control.delete_stream(&key_value::<String>(key, 0)),
        };
        // Workers check their inboxes and their streams for the change.
        control.host.wake();
        done
    });
}

/// Carries out requests of the packet generator.
pub struct PgHandler(Rc<RefCell<Control>>);

impl PgHandler {
    pub(crate) fn new(control: Rc<RefCell<Control>>) -> Self {
        PgHandler(control)
    }
}

impl Handler for PgHandler {
    fn apply(&mut self, request: &Request) -> Option<Result<Applied, ModelError>> {
        let mut control = self.0.borrow_mut();
        let done = match request {
            Request::InterfaceCreate(spec) => {
                let _: PgInterface = spec.kind_as()?;
                control.create(spec)
            }
            Request::InterfaceDelete { name } => return control.delete(name),
            _ => return None,
        };
        // Workers check their inboxes and their streams for any change.
        control.host.wake();
        Some(done)
    }
}
