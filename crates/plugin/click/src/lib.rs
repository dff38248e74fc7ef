//! Elements of the Click modular router as nodes of the graph, wired by a file in Click's language (`docs/click.md`).
//!
//! - [`Spec`] declares an element class once: ports, arguments, handlers, text. The list is in `elements`.
//! - [`graph::build`] makes nodes of a configuration: an element is a node, a connection is an edge. Packets are pushed between
//!   nodes; a queue releases packets as fast as the elements up to its reader allow.
//! - [`Click`] owns the graph that runs in the daemon, and its handlers.
#![forbid(unsafe_code)]

mod arguments;
mod assemble;
mod batches;
mod cells;
mod columns;
mod control;
mod difference;
mod element;
mod elements;
mod fast;
pub mod graph;
pub mod handlers;
mod link;
mod live;
mod member;
mod model;
mod names;
mod node;
mod pace;
mod packet;
pub mod page;
mod print;
mod spec;
mod turn;
mod watch;

pub use arguments::Arguments;
pub use cells::Cells;
pub use control::Click;
pub use element::{
    Build, ControlOutput, Each, Element, Emit, Fast, Generate, Made, Maker, PacketAction, Queues,
    Reason, Room, Verdict, Watch, Written,
};
pub use elements::{GROUPS, all, find, names};
pub use link::Link;
pub use live::{ChangeError, Live};
pub use model::{
    ClickGraph, ClickReload, ClickReply, ClickWrite, ElementRow, HandlerValue, ShowClick, classes,
};
pub use names::{NamedAddresses, Names};
pub use pace::{Bucket, Front, Pace};
pub use print::Style;
pub use spec::{Argument, Context, Format, Handler, HandlerKind, Kind, Need, Spec};
pub use turn::TurnKind;
