//! What the author of a plugin needs, and nothing else: see `docs/plugins.md`.
//!
//! ```ignore
//! use volley_sdk::prelude::*;
//!
//! volley_sdk::plugin!(register);
//!
//! fn register(plugin: &mut Plugin) -> Result<(), RegisterError> {
//!     plugin.feature("ip4-unicast", |_worker| Stamp);
//!     Ok(())
//! }
//! ```
#![forbid(unsafe_code)]

pub use volley_graph::{counters, nexts};
pub use volley_plugin_abi::{
    Entry, Fingerprint, Host, HostAllocator, HostCalls, Outcome, Plugin, PluginFeature,
    RegisterError, enter, plugin,
};

/// A test bench for nodes: packets in, node, packets out, at every vector length and instruction-set level.
pub mod harness {
    pub use volley_graph::Domain;
    pub use volley_graph::harness::*;
}

/// Published tables: a control thread writes, workers read.
pub mod tables {
    pub use volley_tables::qsbr::{Publisher, Snap};
}

/// Headers as structs over bytes.
pub mod wire {
    pub use volley_wire::*;
}

/// Names of a node's file.
pub mod prelude {
    pub use crate::{Host, Plugin, RegisterError};
    pub use volley_graph::{
        Col, Column, ColumnInfo, ColumnKind, Consumed, Counters, Cx, Feature, Isa, Life,
        NoCounters, NoNext, Node, NodeId, Packet, PacketTrace, PacketView, Severity, Trace,
        TraceNames, Vector, Words, counters, nexts,
    };
}
