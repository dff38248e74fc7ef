//! The interface type `pcap`: receives the packets of one capture file, transmits into another.
//!
//! A file to receive is read completely when the interface is created: a faulty file is refused then, and workers read no
//! files.

mod player;

pub use player::Player;

use crate::model::PcapInterface;
use crate::node::capture_tx::{CaptureTx, Capturing};
use crate::node::pcap_input::PcapInput;
use crate::spool::{CaptureWriter, Plain, RECORDS, Sink, WHOLE};
use crate::{FileFormat, LinkType, read_packets};
use player::{Played, Progress};
use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use volley_graph::Source;
use volley_iface::driver::DriverHost;
use volley_iface::{IfIdx, NewInterface, QueueMigration};
use volley_model::{Applied, Handler, InterfaceSpec, ModelError, Request};
use volley_tables::qsbr::{Publisher, Snap};

/// Name of the interface type.
pub const KIND: &str = "pcap";
/// Default L3 MTU.
pub const MTU: u32 = 9000;

struct Port {
    interface: IfIdx,
    progress: Option<Arc<Progress>>,
    sink: Option<Sink>,
    /// Keeps the published capture of the transmit node.
    _capture: Publisher<Capturing>,
}

/// All interfaces of the type, on the control thread.
pub struct Ports {
    host: DriverHost,
    migration: Arc<QueueMigration<Player>>,
    ports: Vec<Port>,
}

impl Ports {
    /// No interfaces.
    pub fn new(host: DriverHost, migration: Arc<QueueMigration<Player>>) -> Self {
        Ports {
            host,
            migration,
            ports: Vec::new(),
        }
    }

    /// Whether an interface transmits into a file.
    pub(crate) fn is_writing(&self) -> bool {
        self.ports.iter().any(|p| p.sink.is_some())
    }

    /// Sentences about failures that have not been reported yet.
    pub(crate) fn news(&mut self) -> Vec<String> {
        let sinks = self.ports.iter_mut().filter_map(|p| p.sink.as_mut());
        sinks.filter_map(Sink::news).collect()
    }

    /// Write the packets that workers transmitted; returns the number of packets.
    pub fn drain(&mut self) -> usize {
        self.migration.collect_retired();
        let sinks = self.ports.iter_mut().filter_map(|p| p.sink.as_mut());
        sinks.map(|sink| sink.drain(&Plain)).sum()
    }

    fn create(
        &mut self,
        spec: &InterfaceSpec,
        files: &PcapInterface,
    ) -> Result<Applied, ModelError> {
        self.host.check_free(&spec.name)?;
        let packets = files.rx.as_deref().map(load).transpose()?;
        let spool = files
            .tx
            .as_ref()
            .map(|_| CaptureWriter::new(RECORDS, WHOLE, u64::MAX));
        let sink = match (&files.tx, &spool) {
            (Some(path), Some(spool)) => {
                let clock = self.host.engine.borrow().settings().clock.clone();
                let sink = Sink::create(spool.clone(), path, FileFormat::for_path(path), &clock);
                Some(sink.map_err(|e| ModelError::file(path, e))?)
            }
            _ => None,
        };
        let domain = self.host.engine.borrow().domain().clone();
        let capture = Publisher::new(&domain, spool);
        let placed = self.host.assign_workers(usize::from(packets.is_some()));
        let worker = placed.first().copied().unwrap_or(0);
        let new = NewInterface {
            details: details(files, packets.as_ref().map(|p| p.len())),
            rx_queues: vec![worker],
            rx_node: PcapInput::NAME,
            ..without_hardware(spec, KIND)
        };
        let interface = attach(&self.host, new, capture.snap())?;
        let progress = packets.map(|packets| self.play((interface, worker), packets, files));
        self.ports.push(Port {
            interface,
            progress,
            sink,
            _capture: capture,
        });
        Ok(Applied::one().named(&spec.name))
    }

    fn play(
        &self,
        (rx, worker): (IfIdx, usize),
        packets: Box<[Played]>,
        files: &PcapInterface,
    ) -> Arc<Progress> {
        let progress = Arc::new(Progress::default());
        let player = Player::new(rx.0, packets, files.r#loop, files.pace, progress.clone());
        // The number of slots equals the number of interfaces.
        let (way, migration) = (
            self.migration.assign(worker, player),
            self.migration.clone(),
        );
        let steer = move |_, worker| migration.migrate(&way, worker);
        self.host.set_queue_mover(rx, steer);
        self.host.wake();
        progress
    }

    fn delete(&mut self, name: &str) -> Option<Result<Applied, ModelError>> {
        let index = self.host.index(name).ok()?;
        let at = self.ports.iter().position(|p| p.interface == index)?;
        if let Err(error) = self.host.detach(index) {
            return Some(Err(error));
        }
        let port = self.ports.remove(at);
        if let Some(progress) = port.progress {
            progress.gone.store(true, Relaxed);
            self.host.wake();
        }
        let closed = port.sink.map_or(Ok(String::new()), |sink| {
            let path = sink.path().to_owned();
            let end = sink.finish(&Plain);
            end.sentence(&path).map_err(|e| ModelError::file(path, e))
        });
        Some(closed.map(|_| Applied::one()))
    }
}

/// The settings of an interface without hardware, from its request.
pub fn without_hardware(spec: &InterfaceSpec, kind: &'static str) -> NewInterface {
    NewInterface {
        mac: spec.mac.map(|m| m.0),
        mtu: spec.mtu.unwrap_or(MTU),
        default_mtu: MTU,
        ..NewInterface::new(&spec.name, kind)
    }
}

/// Make an interface whose transmit node is a [`CaptureTx`].
pub fn attach(
    host: &DriverHost,
    new: NewInterface,
    capture: Snap<Capturing>,
) -> Result<IfIdx, ModelError> {
    let table = host.interfaces.borrow().table().clone();
    host.attach(new, move |worker, interface| {
        CaptureTx::new(worker, table.clone(), interface, capture.clone())
    })
}

fn details(files: &PcapInterface, packets: Option<usize>) -> Vec<String> {
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

/// A file's packets, with times relative to the first one; every packet must be a frame that Volley can carry.
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

/// Why a captured packet cannot be sent; none if it can.
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

/// A capture file's error for the operator: its text already names the file.
pub fn file_error(path: &Path, error: &crate::PcapError) -> ModelError {
    let (text, name) = (error.to_string(), path.display().to_string());
    let why = text.strip_prefix(&format!("{name}: ")).unwrap_or(&text);
    ModelError::file(path, why)
}

/// Carries out requests about pcap interfaces.
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
            Request::InterfaceCreate(spec) => {
                let files = spec.kind_as()?;
                Some(self.0.borrow_mut().create(spec, &files))
            }
            Request::InterfaceDelete { name } => self.0.borrow_mut().delete(name),
            _ => None,
        }
    }
}
