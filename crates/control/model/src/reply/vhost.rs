//! vhost-user and virtio-user interfaces.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// vhost-user and virtio-user interfaces.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct VhostUserReply {
    /// In order of creation.
    pub interfaces: Vec<VhostUserRow>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct VhostUserRow {
    /// Interface.
    pub name: String,
    /// `vhost-user` (back end) or `virtio-user` (front end).
    pub kind: String,
    /// Socket.
    pub socket: String,
    /// `server` or `client`.
    pub role: String,
    /// What is going on.
    pub state: String,
    /// Features that both sides have, by name.
    pub features: String,
    /// Why the last peer was turned away, if one was: name and sentence.
    pub fault: Option<String>,
    /// Peers that connected.
    pub connections: u64,
    /// Peers that were turned away for a fault.
    pub faults: u64,
    /// Shared memory, a line for each region.
    pub regions: Vec<String>,
    /// Rings in service.
    pub rings: Vec<VhostRingRow>,
}

/// A ring.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct VhostRingRow {
    /// `rx` or `tx`, as we see it.
    pub way: String,
    /// Queue.
    pub queue: u32,
    /// Descriptors.
    pub size: u32,
    /// Packets since the interface was made.
    pub packets: u64,
    /// How often the other side was told.
    pub notifications: u64,
}
