//! The packet generator: streams of packets made from templates or capture files, and the interfaces that receive them.
//!
//! A stream is compiled on the control thread ([`StreamSpec`] to packets with a few writes
//! each) and passed to a worker's `pg-input` over a lock-free queue. The worker copies, edits and sends packets; it allocates
//! nothing. The same seed gives the same packets, at every vector size.
#![forbid(unsafe_code)]

mod capture;
mod compile;
mod control;
mod make;
pub mod model;
pub mod node;
mod send;
mod show;
mod spec;
mod stream;
mod turns;

pub use capture::PgCapture;
pub use control::{Pg, PgHandler};
pub use model::classes;
pub use node::pg_input::PgInput;
pub use show::{PacketGeneratorReply, PgCaptureRow, ShowPacketGenerator, StreamRow};
pub use spec::{
    ClassicPacket, Edit, EditKind, EditTarget, FieldPath, ImixPart, Sizes, StreamSpec, Template,
    Value,
};
pub use stream::{MAX_STREAMS, Preload};

use std::cell::RefCell;
use std::rc::Rc;
use volley_graph::{GraphError, NodeId, Source};
use volley_iface::{Registry, WorkerDelete};
use volley_model::Applied;

/// Register `pg-input`, the interface type `packet-generator` and their requests.
pub fn register(registry: &mut Registry) -> Result<Pg, GraphError> {
    let table = registry.table();
    let mut engine = registry.engine.borrow_mut();
    let (workers, size) = (engine.settings().workers, engine.settings().vector_size);
    let inboxes = stream::Inbox::for_workers(workers);
    let drop_node = engine.node(volley_graph::DROP_NODE).unwrap_or(NodeId(0));
    let mine = inboxes.clone();
    engine.add_source(PgInput::NAME, move |worker| {
        PgInput::new(worker, table.clone(), mine.clone(), drop_node, size)
    })?;
    drop(engine);
    let control = control::Control::new(registry.host(), inboxes);
    let control = Rc::new(RefCell::new(control));
    let shown = control.clone();
    registry.answer(move |_: ShowPacketGenerator| Ok(shown.borrow_mut().report()));
    let streams = control.clone();
    registry.perform(move |gone: WorkerDelete| {
        streams.borrow_mut().leave(gone.worker as usize);
        Ok(Applied::nothing())
    });
    let captured = control.clone();
    registry.perform(move |it: PgCapture| captured.borrow_mut().capture(&it));
    control::own(registry, &control);
    registry
        .handlers
        .push(Box::new(PgHandler::new(control.clone())));
    Ok(Pg::new(control))
}
