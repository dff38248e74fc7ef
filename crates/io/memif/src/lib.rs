//! memif 2.0: packets through memory that is shared with another program, as server (master) and client (slave).
//!
//! - [`wire`], [`socket`], [`session`]: messages, their transport, and their order.
//! - [`place`], [`region`], [`ring`]: the shared memory. Only `ring` has unsafe code.
//! - [`volley_shm::calls`]: the control thread's system calls, which a simulation makes fail.
//! - [`control`]: interfaces, sockets, connections, reconnection; on the control thread.
//! - [`node`]: `memif-input` receives for all interfaces; each interface has its own transmit node.
//!
//! **The peer is hostile.** Whatever it writes into shared memory, sends as a message or as a file descriptor, and
//! whatever it does to these afterwards, no worker crashes, blocks or accesses other memory. A violation takes the
//! interface down with a reason; the peer may connect again.
//!
//! Packets are copied in both directions. A shared buffer arena would let a peer change headers that are already checked,
//! and the buffers' chain links: that cannot be made safe.

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
use std::time::Duration;
use volley_graph::{Activation, GraphError, NodeId, ProcessInfo, Source, Watch};
use volley_iface::Registry;
use volley_shm::calls::{Calls, Kernel};

/// Interval of the periodic work without interfaces.
const QUIET: Duration = Duration::from_millis(100);

/// The crate's handle for the daemon. Connections live as long as it does.
pub struct Memif {
    control: Rc<RefCell<Control>>,
    _watches: [Watch; 2],
}

impl Memif {
    /// Do the pending work; for callers without an event loop.
    pub fn turn(&self) {
        self.control.borrow_mut().turn();
    }
}

/// Reason why memif cannot be registered.
#[derive(Debug, thiserror::Error)]
pub enum MemifError {
    /// The graph refused the node.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// A system call for epoll failed.
    #[error("memif: {0}")]
    System(#[from] std::io::Error),
}

/// Register `memif-input`, the interface kind `memif` and their requests. Socket 0 is the file `socket`.
pub fn register(registry: &mut Registry, socket: PathBuf) -> Result<Memif, MemifError> {
    register_with(registry, socket, Rc::new(Kernel))
}

/// As [`register`], with system calls that may fail.
pub fn register_with(
    registry: &mut Registry,
    socket: PathBuf,
    calls: Rc<dyn Calls>,
) -> Result<Memif, MemifError> {
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
    let control = Control::new(host, inboxes, Address(socket), calls)?;
    let events = control.events()?;
    let control = Rc::new(RefCell::new(control));
    let info = ProcessInfo {
        name: "memif",
        text: "Talks to memif peers, and looks after their links.",
    };
    // Weak references, because the control owns the owner of these closures.
    let (heard, tick) = (Rc::downgrade(&control), Rc::downgrade(&control));
    let watch = processes.watch(info.clone(), events, move || match heard.upgrade() {
        Some(control) => control.borrow_mut().turn(),
        None => Activation::Done,
    })?;
    let every = processes.every(info, move || {
        let control = tick.upgrade()?;
        let mut control = control.borrow_mut();
        control.turn();
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
