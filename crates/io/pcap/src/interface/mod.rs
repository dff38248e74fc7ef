//! The interface kind `pcap`: receives what one capture file holds, transmits into another.
//!
//! Files to receive are read whole when the interface is made, so a faulty file is refused then and workers never read.

mod player;

pub use player::{Inbox, Player};

use crate::node::capture_tx::{CaptureTx, Capturing};
use crate::spool::{Plain, RECORDS, Sink, Spool, WHOLE};
use crate::{FileFormat, LinkType, read_packets};
use player::{Played, Progress};
use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use volley_graph::{Engine, NodeId};
use volley_iface::{IfError, IfIdx, Interfaces, NewInterface};
use volley_model::{
    Applied, Handler, InterfaceKind, InterfaceSpec, ModelError, ObjectKind, PcapFiles, Query,
    Reply, Request,
};
use volley_tables::qsbr::Publisher;

/// Name of the kind.
pub const KIND: &str = "pcap";
/// L3 MTU unless the interface's maker says otherwise.
pub const MTU: u32 = 9000;

struct Port {
    name: String,
    progress: Option<Arc<Progress>>,
    sink: Option<Sink>,
    /// Keeps the transmit node's capture published.
    _capture: Publisher<Capturing>,
}

/// All interfaces of the kind, on the control thread.
pub struct Ports {
    engine: Rc<RefCell<Engine>>,
    interfaces: Rc<RefCell<Interfaces>>,
    inboxes: Vec<Arc<Inbox>>,
    ports: Vec<Port>,
}

impl Ports {
    /// None yet.
    pub fn new(
        engine: Rc<RefCell<Engine>>,
        interfaces: Rc<RefCell<Interfaces>>,
        inboxes: Vec<Arc<Inbox>>,
    ) -> Self {
        Ports {
            engine,
            interfaces,
            inboxes,
            ports: Vec::new(),
        }
    }

    /// Write what workers transmitted; returns how many packets.
    pub fn drain(&mut self) -> usize {
        for inbox in &self.inboxes {
            while inbox.gone.pop().is_some() {}
        }
        let sinks = self.ports.iter_mut().filter_map(|p| p.sink.as_mut());
        sinks.map(|sink| sink.drain(&Plain)).sum()
    }

    fn create(&mut self, spec: &InterfaceSpec, files: &PcapFiles) -> Result<Applied, ModelError> {
        if self.interfaces.borrow().by_name(&spec.name).is_some() {
            return Err(ModelError::exists(ObjectKind::Interface, &spec.name));
        }
        let packets = files.rx.as_deref().map(load).transpose()?;
        let spool = files
            .tx
            .as_ref()
            .map(|_| Spool::new(RECORDS, WHOLE, u64::MAX));
        let sink = match (&files.tx, &spool) {
            (Some(path), Some(spool)) => {
                let clock = self.engine.borrow().settings().clock.clone();
                let sink = Sink::create(spool.clone(), path, FileFormat::for_path(path), &clock);
                Some(sink.map_err(|e| ModelError::file(path, e))?)
            }
            _ => None,
        };
        let domain = self.engine.borrow().domain().clone();
        let capture = Publisher::new(&domain, spool);
        let index = Arc::new(AtomicU32::new(0));
        let details = details(files, packets.as_ref().map(|p| p.len()));
        let interface = add(
            &self.engine,
            &self.interfaces,
            spec,
            KIND,
            details,
            &index,
            capture.snap(),
        )?;
        let progress = packets.map(|packets| self.play(interface, packets, files));
        self.ports.push(Port {
            name: spec.name.clone(),
            progress,
            sink,
            _capture: capture,
        });
        Ok(Applied::one().named(&spec.name))
    }

    fn play(&self, rx: IfIdx, packets: Box<[Played]>, files: &PcapFiles) -> Arc<Progress> {
        let progress = Arc::new(Progress::default());
        let player = Player::new(rx.0, packets, files.repeat, files.pace, progress.clone());
        // There are as many places as interfaces.
        let _ = self.inboxes[0].new.push(Box::new(player));
        progress
    }

    fn delete(&mut self, name: &str) -> Option<Result<Applied, ModelError>> {
        let at = self.ports.iter().position(|p| p.name == name)?;
        if let Err(error) = remove(&self.engine, &self.interfaces, name) {
            return Some(Err(error));
        }
        let port = self.ports.remove(at);
        if let Some(progress) = port.progress {
            progress.gone.store(true, Relaxed);
        }
        let closed = port.sink.map_or(Ok(0), |sink| {
            let path = sink.path().to_owned();
            sink.finish(&Plain).map_err(|e| ModelError::file(path, e))
        });
        Some(closed.map(|_| Applied::one()))
    }
}

fn details(files: &PcapFiles, packets: Option<usize>) -> Vec<String> {
    let rx = files.rx.as_ref().map(|path| {
        let packets = packets.unwrap_or(0);
        format!("rx {} ({packets} packets)", path.display())
    });
    let tx = files
        .tx
        .as_ref()
        .map(|path| format!("tx {}", path.display()));
    rx.into_iter().chain(tx).collect()
}

/// Make an interface whose transmit node is a [`CaptureTx`], with both or neither there in the end.
pub fn add(
    engine: &Rc<RefCell<Engine>>,
    interfaces: &Rc<RefCell<Interfaces>>,
    spec: &InterfaceSpec,
    kind: &'static str,
    details: Vec<String>,
    index: &Arc<AtomicU32>,
    capture: volley_tables::qsbr::Snap<Capturing>,
) -> Result<IfIdx, ModelError> {
    let what = || format!("interface {}", spec.name);
    let (node, table) = (tx_name(&spec.name), interfaces.borrow().table().clone());
    let number = index.clone();
    let tx_node: NodeId = engine
        .borrow_mut()
        .add(&node, move |worker| {
            CaptureTx::new(worker, table.clone(), number.clone(), capture.clone())
        })
        .map_err(|e| ModelError::invalid(what(), e))?;
    let new = NewInterface {
        name: spec.name.clone(),
        kind,
        mac: spec.mac.map(|m| m.0),
        mtu: spec.mtu.unwrap_or(MTU),
        tx_node,
        details,
    };
    let made = interfaces.borrow_mut().create(new);
    match made {
        Ok(interface) => {
            index.store(interface.0, Relaxed);
            Ok(interface)
        }
        Err(error) => {
            let _ = engine.borrow_mut().remove(&node);
            Err(explain(&interfaces.borrow(), error))
        }
    }
}

/// Undo [`add`].
pub fn remove(
    engine: &Rc<RefCell<Engine>>,
    interfaces: &Rc<RefCell<Interfaces>>,
    name: &str,
) -> Result<(), ModelError> {
    let gone = interfaces.borrow_mut().delete(name);
    gone.map_err(|e| explain(&interfaces.borrow(), e))?;
    let node = engine.borrow_mut().remove(&tx_name(name));
    node.map_err(|e| ModelError::invalid(format!("interface {name}"), e))
}

fn tx_name(interface: &str) -> String {
    format!("{interface}-tx")
}

/// An interface error as the operator is told it.
pub fn explain(interfaces: &Interfaces, error: IfError) -> ModelError {
    match error {
        IfError::Missing(name) => {
            let known: Vec<String> = interfaces.iter().map(|i| i.name.clone()).collect();
            ModelError::not_found(ObjectKind::Interface, name, known)
        }
        IfError::Exists(name) => ModelError::exists(ObjectKind::Interface, name),
        IfError::Full => {
            let limit = volley_iface::MAX_INTERFACES as u64;
            ModelError::limit("number of interfaces", limit + 1, limit)
        }
    }
}

/// A file's packets with times from the first one's on; every one must be a frame that Volley can carry.
fn load(path: &Path) -> Result<Box<[Played]>, ModelError> {
    let capture = read_packets(path).map_err(|e| file_error(path, &e))?;
    let first_ns = capture.packets.first().map_or(0, |p| p.timestamp_ns);
    let frame = |(number, packet): (usize, crate::Packet)| {
        frame_fault(&packet).map_or(Ok(()), |why| {
            Err(ModelError::File {
                path: path.display().to_string(),
                place: Some(format!("packet {}", number + 1)),
                why,
            })
        })?;
        Ok(Played {
            at_ns: packet.timestamp_ns.saturating_sub(first_ns),
            bytes: packet.data.into(),
        })
    };
    capture.packets.into_iter().enumerate().map(frame).collect()
}

/// Why a captured packet cannot be sent, if it cannot.
pub fn frame_fault(packet: &crate::Packet) -> Option<String> {
    if packet.linktype != LinkType::ETHERNET {
        return Some(format!(
            "its packets are {}, only Ethernet can be sent",
            packet.linktype
        ));
    }
    (packet.data.len() > WHOLE)
        .then(|| format!("it has {} bytes, the limit is {WHOLE}", packet.data.len()))
}

/// A capture file's error as the operator is told it: its text names the file already.
pub fn file_error(path: &Path, error: &crate::PcapError) -> ModelError {
    let (text, name) = (error.to_string(), path.display().to_string());
    let why = text.strip_prefix(&format!("{name}: ")).unwrap_or(&text);
    ModelError::file(path, why)
}

/// Carries out requests about interfaces of the kind.
pub struct PcapHandler(Rc<RefCell<Ports>>);

impl PcapHandler {
    /// A handler over the daemon's ports.
    pub fn new(ports: Rc<RefCell<Ports>>) -> Self {
        PcapHandler(ports)
    }
}

impl Handler for PcapHandler {
    fn apply(&mut self, request: &Request) -> Option<Result<Applied, ModelError>> {
        match request {
            Request::InterfaceCreate(spec) => match &spec.kind {
                InterfaceKind::Pcap(files) => Some(self.0.borrow_mut().create(spec, files)),
                InterfaceKind::Pg => None,
            },
            Request::InterfaceDelete { name } => self.0.borrow_mut().delete(name),
            _ => None,
        }
    }

    fn query(&mut self, _query: &Query) -> Option<Result<Reply, ModelError>> {
        None
    }
}
