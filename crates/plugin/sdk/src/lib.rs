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
    Entry, Fingerprint, Host, HostAllocator, HostCalls, HostInterface, HostServices, LogLevel,
    NoServices, Outcome, Plugin, PluginArc, PluginClass, PluginEdge, PluginFeature, PluginListener,
    PluginMetric, PluginProtocol, PluginTask, PluginVerb, Published, RegisterError, Scenario,
    enter, plugin,
};

/// Objects: settings and things with a name, each a struct from which the router derives file, commands and HTTP.
pub mod object {
    pub use volley_object::{Choice, FieldError, Object, ObjectKey, Value, Verb, at_most, refuse};
}

/// A test bench for nodes: packets in, node, packets out, at every vector length and instruction-set level.
pub mod harness {
    pub use volley_graph::harness::*;
    pub use volley_graph::{Domain, Level};
}

/// Published tables: a control thread writes, workers read.
pub mod tables {
    pub use volley_tables::qsbr::{Domain, Guard, Publisher, Reader, Snap};
    pub use volley_tables::{LpmError, lpm4};
}

/// Code that is compiled for each instruction-set level, for loops over columns outside of nodes.
pub mod kernel {
    pub use volley_simd::{Bits, Isa, Kernel, Level, all_equal, any_bit, call, or_all};
}

/// Packets that a node lends to code without its types.
pub mod lend {
    pub use volley_graph::{EmptyVector, LentPackets, Offsets};
}

/// Headers as structs over bytes.
pub mod wire {
    pub use volley_wire::*;
}

/// Names of a node's file.
pub mod prelude {
    pub use crate::object::{Choice, FieldError, Object, ObjectKey, Verb, refuse};
    pub use crate::{
        Host, HostInterface, LogLevel, Plugin, PluginArc, PluginProtocol, Published, RegisterError,
        Scenario,
    };
    // What the derive macros write names this crate.
    pub use volley_graph::{
        ArcId, Batch, Col, Column, ColumnInfo, ColumnKind, Consumed, Counters, Cx, Feature, Isa,
        Life, NewVector, NoCounters, NoNext, Node, NodeId, Output, Packet, PacketTrace, PacketView,
        Severity, Source, Stage, StageCx, Trace, TraceNames, Vector, WakeConditions, Words,
        counters, nexts, prefetch, prefetch_write,
    };
    #[doc(hidden)]
    pub use volley_object;
}
