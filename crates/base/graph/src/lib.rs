//! The vector engine: nodes, vectors with columns, the dispatcher, feature arcs, traces and clocks.
//!
//! A packet is a *row* of a vector: its buffer index, position and length are columns, and so is everything that one
//! node tells the next about it. A node is handed a whole [`Vector`] by value and must give back [`Done`], which only
//! the sending verbs make: a packet cannot be lost or sent twice.
//!
//! Contract of the data path: no allocation, no locks, no system calls, no formatting. The control thread hands
//! prepared changes over a lock-free queue ([`Engine`]); a worker swaps them in between two vectors and never waits.

mod agenda;
mod arc;
mod body;
mod changes;
mod channel;
mod clock;
mod column;
mod counters;
mod crew;
mod cx;
mod drop_book;
mod drop_node;
mod engine;
mod errand;
mod error;
mod frame;
mod handoff;
pub mod harness;
mod hold;
mod ids;
mod lanes;
mod lend;
mod macros;
mod node;
mod numa;
mod offload;
mod output;
mod packet;
mod placement;
mod process;
mod ranks;
mod receive;
mod rest;
mod running;
mod share;
mod shot;
mod stage;
mod stats;
mod trace;
mod unfold;
mod vector;
mod worker;

pub use arc::{ArcId, ArcReport, Feature, Spot};
pub use channel::{GAP_US, Gap};
pub use clock::Clock;
pub use column::{Column, Words, strip_rows};
pub use counters::{CounterInfo, Counters, NoCounters, Severity};
pub use crew::{Crew, MAX_WORKERS};
pub use cx::Cx;
pub use drop_book::{DropSample, SAMPLE};
pub use drop_node::{DROP_NODE, DropNode, DropTap};
pub use engine::{Engine, EngineNames, LOOP, Settings};
pub use errand::{Errand, Runner};
pub use error::GraphError;
pub use frame::Col;
pub use handoff::{Handed, HandoffReport, handoff_code};
pub use hold::{Held, Part};
pub use ids::NodeId;
pub use node::{Nexts, NoNext, Node, Source};
pub use numa::{MemoryNode, memory_nodes, node_of, pool};
pub use offload::{BadOffload, Checksum, Gso, GsoKind, Offload};
pub use output::{Aside, Fresh, Output, STRIP};
pub use packet::{Packet, PacketView, Slices};
pub use process::{ProcessInfo, Processes, Turn, Watch};
pub use receive::MAX_SEGMENTS;
pub use rest::Rest;
pub use running::{Running, Seat, cores};
pub use share::{RESERVE, Share, ShareReport};
pub use shot::{NoShot, Shot, Stand};
pub use stage::{Batch, Hands, Stage};
pub use stats::{CounterReport, DropReport, NodeReport, NodeState};
pub use trace::{Glance, Names, Trace, TraceFilter, TraceStep, Traced};
pub use unfold::{Copies, Fate, Offspring};
pub use vector::{Done, Vector};
pub use worker::{Change, Worker};

pub use volley_buf as buf;
pub use volley_simd::{
    Bits, Isa, Level, all_equal, cycles, cycles_per_second, mask, or_all, prefetch, prefetch_write,
    sum,
};
pub use volley_tables::qsbr::Domain;
pub use volley_tables::qsbr::Guard;
