//! memif interfaces and sockets.

use crate::memif::MemifRole;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// To [`crate::Query::Memif`].
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct MemifReply {
    /// Sockets by number.
    pub sockets: Vec<MemifSocketRow>,
    /// Interfaces by index.
    pub interfaces: Vec<MemifRow>,
}

/// One socket.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct MemifSocketRow {
    /// Its number.
    pub id: u32,
    /// Its file, or `@name`.
    pub filename: String,
    /// Whether masters listen there now.
    pub listening: bool,
    /// Interfaces that use it.
    pub interfaces: u32,
}

/// One interface.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct MemifRow {
    /// Its name.
    pub name: String,
    /// Number on the socket.
    pub id: u32,
    /// Its socket.
    pub socket_id: u32,
    /// Which side.
    pub role: MemifRole,
    /// Whether a peer is connected.
    pub connected: bool,
    /// Who; empty when nobody is.
    pub peer: String,
    /// Why nobody is, when nobody is.
    pub reason: String,
    /// Whether a secret is asked for.
    pub has_secret: bool,
    /// Connections so far.
    pub connections: u64,
    /// Regions of shared memory.
    pub regions: u32,
    /// Their bytes.
    pub region_bytes: u64,
    /// Rings to receive by: descriptors of each.
    pub rx_rings: Vec<u32>,
    /// Rings to transmit by: descriptors of each.
    pub tx_rings: Vec<u32>,
    /// Times the peer was woken.
    pub interrupts: u64,
}
