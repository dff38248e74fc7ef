//! memif 2.0: packets through memory that is shared with another program, as server (master) and client (slave).
//!
//! - [`wire`], [`socket`], [`session`]: messages, their transport, and which may come when.
//! - [`place`], [`region`], [`ring`]: the shared memory. The last one is the only unsafe code.
//! - [`control`]: interfaces, sockets, connections, reconnection; on the control thread.
//! - [`node`]: `memif-input` receives for all interfaces, each interface has a transmit node of its own.
//!
//! **The peer is hostile.** Whatever it writes into shared memory, sends as a message or as a file descriptor, and
//! whatever it does to these afterwards, no worker crashes, waits or touches other memory. What breaks the rules takes
//! the interface down with a reason; its peer may come back.
//!
//! Packets are copied, both ways. Sharing the buffer arena itself would put headers that were already checked, and the
//! buffers' own chain links, where a peer can change them: that cannot be made safe.

#![deny(unsafe_code)]

pub mod control;
pub mod fault;
pub mod handler;
pub mod link;
pub mod model;
pub mod node;
pub mod place;
pub mod region;
#[allow(unsafe_code)]
pub mod ring;
pub mod session;
pub mod show;
pub mod socket;
pub mod wire;

pub use handler::MemifHandler;
pub use model::classes;
pub use node::memif_input::MemifInput;
pub use node::memif_tx::MemifTx;
pub use show::{MemifReply, MemifRow, MemifSocketRow, ShowMemif};

use control::{Control, TICK};
use node::memif_input::Inbox;
use socket::Address;
use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use volley_graph::{Activation, GraphError, NodeId, ProcessInfo, Source, Watch};
use volley_iface::Registry;

/// Between two looks when there is no interface.
const QUIET: Duration = Duration::from_millis(100);

/// What the daemon keeps of this crate: as long as it does, connections live.
pub struct Memif {
    control: Rc<RefCell<Control>>,
    _watches: [Watch; 2],
}

impl Memif {
    /// Do what is due now: for whoever has no event loop.
    pub fn turn(&self) {
        self.control.borrow_mut().turn(Instant::now());
    }
}

/// Why memif cannot be brought in.
#[derive(Debug, thiserror::Error)]
pub enum MemifError {
    /// The graph does not take its node.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// The system refuses what it takes to wait for peers.
    #[error("memif: {0}")]
    System(#[from] std::io::Error),
}

/// Bring in `memif-input`, the interface kind `memif` and their requests. Socket 0 is the file `socket`.
pub fn register(registry: &mut Registry, socket: PathBuf) -> Result<Memif, MemifError> {
    let mut inboxes = Vec::new();
    {
        let mut engine = registry.engine.borrow_mut();
        let (workers, size) = (engine.settings().workers, engine.settings().vector_size);
        let table = registry.table();
        inboxes.extend((0..workers).map(|_| Arc::new(Inbox::default())));
        let mine = inboxes.clone();
        let drop = engine.node(volley_graph::DROP_NODE).unwrap_or(NodeId(0));
        engine.add_source(MemifInput::NAME, move |worker| {
            MemifInput::new(worker, table.clone(), mine[worker].clone(), drop, size)
        })?;
    }
    let host = registry.host();
    let processes = host.processes.clone();
    let control = Control::new(host, inboxes, Address(socket))?;
    let events = control.events()?;
    let control = Rc::new(RefCell::new(control));
    let info = ProcessInfo {
        name: "memif",
        text: "Talks to memif peers, and looks after their links.",
    };
    // Weak, for the control holds what holds these.
    let (heard, tick) = (Rc::downgrade(&control), Rc::downgrade(&control));
    let watch = processes.watch(info.clone(), events, move || match heard.upgrade() {
        Some(control) => control.borrow_mut().turn(Instant::now()),
        None => Activation::Done,
    })?;
    let every = processes.every(info, move || {
        let control = tick.upgrade()?;
        let mut control = control.borrow_mut();
        control.turn(Instant::now());
        Some(if control.ports.is_empty() {
            QUIET
        } else {
            TICK
        })
    });
    let handler = MemifHandler::new(control.clone());
    handler.own(registry);
    registry.handlers.push(Box::new(handler));
    Ok(Memif {
        control,
        _watches: [watch, every],
    })
}
