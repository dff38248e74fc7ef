//! The vector engine: nodes, vectors with columns, the dispatcher, feature arcs, traces and clocks.
//!
//! A packet is a *row* of a vector: its buffer index, position and length are columns, and so is all metadata that one
//! node passes to the next. A node receives a whole [`Vector`] by value and must return [`Consumed`], which only the
//! sending methods make: a packet cannot be lost or sent twice.
//!
//! Contract of the data path: no allocation, no locks, no system calls, no formatting. The control thread passes
//! prepared changes over a lock-free queue ([`Engine`]); a worker applies them between two vectors and never waits.
//!
//! The folders, each of which imports only those above it:
//! - `data`: columns, frames, packets, offload requests, identifiers, limits and shares, clocks;
//! - `queues`: pending frames, handoff rings, channels to workers, tables of feature arcs, records of traces and drops;
//! - `node_api`: the traits of nodes, their context, the vector, the output of a source, stages, the drop node;
//! - `worker`: the round, the sleep and the thread of a worker, and the instances of nodes;
//! - `engine`: the graph, its changes and reports on the control thread, process nodes; and [`harness`] to test nodes.

mod data;
mod engine;
pub mod harness;
mod node_api;
mod queues;
mod worker;

pub use data::clock::Clock;
pub use data::col::{Col, ColumnInfo, ColumnKind, Life};
pub use data::column::{Column, Words, strip_rows};
pub use data::counters::{CounterInfo, Counters, NoCounters, Severity};
pub use data::error::GraphError;
pub use data::events::{CounterGroup, EventReport, MAX_EVENTS, Reading};
pub use data::ids::NodeId;
pub use data::lost::{panic_text, remember_panic};
pub use data::numa::cores;
pub use data::numa::{MemoryNode, memory_nodes, node_of, pool};
pub use data::offload::{BadOffload, Checksum, Gso, GsoKind, Offload};
pub use data::packet::{Packet, PacketView, Slices};
pub use data::shares::{RESERVE, Share, ShareReport};
pub use data::worker_set::{MAX_WORKERS, WorkerSet};
pub use engine::arcs::{ArcReport, Feature};
pub use engine::foreign::{ForeignNode, SHARED_TYPES, SharedType};
pub use engine::periodic::{PeriodicRunner, PeriodicTask};
pub use engine::process::{Activation, ProcessInfo, Processes, Watch};
pub use engine::reports::LOOP;
pub use engine::state::{Engine, Settings};
pub use engine::stats::{CounterReport, DropReport, NodeReport, NodeState};
pub use engine::traces::EngineNames;
pub use engine::wired::{KeptNode, Rewiring, WiredNode};
pub use node_api::context::Cx;
pub use node_api::drop_node::{DROP_NODE, DropHook, DropNode};
pub use node_api::edges::{Nexts, NoNext};
pub use node_api::handoff::HandoffResult;
pub use node_api::held_packet::{HeldPacket, HoldAction};
pub use node_api::lend::{EmptyVector, LentPackets, Offsets};
pub use node_api::node::{Node, Source};
pub use node_api::output::{DeferredPackets, NewVector, Output, STRIP};
pub use node_api::receive::MAX_SEGMENTS;
pub use node_api::replicate::{ReplicaCounts, ReplicateAction, Replicator};
pub use node_api::rows::Rows;
pub use node_api::stage::{Batch, Stage, StageCx};
pub use node_api::vector::{Consumed, NextNode, Vector, node_code};
pub use queues::arcs::{ArcId, ArcPosition, RECEIVE, RECEIVE_ARC};
pub use queues::channel::{GAP_US, RoundGap};
pub use queues::drop_table::{DropSample, SAMPLE};
pub use queues::handoff::{HandoffReport, handoff_code};
pub use queues::trace::{PacketTrace, Trace, TraceFilter, TraceNames, TraceReport, TraceStep};
pub use queues::wakeup::WakeConditions;
pub use worker::guarded::NodeFault;
pub use worker::marks::mark_name;
pub use worker::round::{Change, Worker};
pub use worker::threads::{WorkerThread, WorkerThreads};

pub use volley_buf as buf;
pub use volley_simd::{
    Bits, Isa, Level, all_equal, any_bit, cycles, cycles_per_second, mask, or_all, prefetch,
    prefetch_write, prefetch_write_all, sum,
};
pub use volley_stack_sample::{SampleError, StackSample, StackSampler};
pub use volley_tables::qsbr::Domain;
pub use volley_tables::qsbr::GracePeriod;
pub use volley_tables::qsbr::Guard;
