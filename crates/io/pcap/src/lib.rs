//! Capture files, and their use with interfaces.
//!
//! - [`mod@file`] reads pcap and pcapng (plain or compressed) and writes both; it is independent of the graph.
//! - [`spool`] passes packets from workers to a file: bounded, lock-free, losses are counted.
//! - [`interface`] is the interface type `pcap`: receives from one file, transmits into another.
//! - [`trace`] is `pcap trace`: captures on any interface, with a filter, and of dropped packets with the reason.
#![forbid(unsafe_code)]

pub mod file;
mod filter_text;
pub mod interface;
pub mod model;
pub mod node;
pub mod spool;
pub mod trace;

pub use file::{
    Capture, FileFormat, LinkType, Output, Packet, PacketRef, PcapError, Reader, Writer,
    WriterOptions, read_packets,
};
pub use filter_text::{FilterText, TRACE_PACKETS};
pub use interface::PcapHandler;
pub use model::{PcapTraceOff, PcapTraceOn, classes};
pub use node::capture_tx::CaptureTx;
pub use node::pcap_input::PcapInput;
pub use trace::{
    Filter, Monitor, MonitorReply, MonitorSession, PcapTraceReply, ShowPcapTrace, ended_early,
};

use std::cell::RefCell;
use std::rc::Rc;
use volley_graph::{GraphError, NodeId, Source};
use volley_iface::{MAX_INTERFACES, QueueMigration, Registry};

/// Called with a sentence for the operator.
type Listener = Box<dyn Fn(&str)>;

/// The daemon's handle of this crate: the daemon calls [`Pcap::drain`] often, and once more at the end.
pub struct Pcap {
    ports: Rc<RefCell<interface::Ports>>,
    trace: Rc<RefCell<trace::Control>>,
    listener: RefCell<Listener>,
}

impl Pcap {
    /// Write the packets that workers have queued since the last call; returns the number of packets.
    pub fn drain(&self) -> usize {
        let written = self.ports.borrow_mut().drain() + self.trace.borrow_mut().drain();
        let news = self.ports.borrow_mut().news();
        for sentence in news.iter().chain(&self.trace.borrow_mut().news()) {
            self.listener.borrow()(sentence);
        }
        written
    }

    /// Report failures to write captures, one sentence each, when they happen.
    pub fn listen(&self, listener: impl Fn(&str) + 'static) {
        *self.listener.borrow_mut() = Box::new(listener);
    }

    /// Whether any file is written.
    pub fn is_capturing(&self) -> bool {
        self.ports.borrow().is_writing() || self.trace.borrow().is_on()
    }
}

/// Register `pcap-input`, the interface type `pcap`, `pcap trace` and their requests.
pub fn register(registry: &mut Registry) -> Result<Pcap, GraphError> {
    let workers = registry.engine.borrow().settings().workers;
    let migration = QueueMigration::new(workers, MAX_INTERFACES);
    {
        let mut engine = registry.engine.borrow_mut();
        let (table, size) = (registry.table(), engine.settings().vector_size);
        let drop = engine.node(volley_graph::DROP_NODE).unwrap_or(NodeId(0));
        let migration = migration.clone();
        engine.add_source(PcapInput::NAME, move |worker| {
            PcapInput::new(worker, table.clone(), migration.clone(), drop, size)
        })?;
    }
    let engine = registry.engine.clone();
    let interfaces = registry.interfaces.clone();
    let ports = interface::Ports::new(registry.host(), migration);
    let ports = Rc::new(RefCell::new(ports));
    let trace = Rc::new(RefCell::new(trace::Control::new(engine, interfaces)));
    registry
        .handlers
        .push(Box::new(PcapHandler::new(ports.clone())));
    let shown = trace.clone();
    registry.answer(move |_: ShowPcapTrace| Ok(shown.borrow_mut().report()));
    let captured = trace.clone();
    registry.stream(move |it: Monitor| MonitorSession::begin(&captured, &it));
    let captured = trace.clone();
    registry.perform(move |it: PcapTraceOn| captured.borrow_mut().start(&it));
    let captured = trace.clone();
    registry.perform(move |_: PcapTraceOff| captured.borrow_mut().off());
    Ok(Pcap {
        ports,
        trace,
        listener: RefCell::new(Box::new(|_| ())),
    })
}
