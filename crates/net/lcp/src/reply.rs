//! The Linux mirror.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Interfaces with a twin, and their synchronisation with the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LcpReply {
    /// Interfaces with a twin, in the order they got it.
    pub pairs: Vec<LcpRow>,
    /// What is mirrored of the kernel's routes.
    pub tables: Vec<LcpTableRow>,
    /// How the mirror is doing; none while no interface has a twin.
    pub mirror: Option<LcpSyncStatus>,
}

/// An interface and its twin.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LcpRow {
    /// The interface.
    pub interface: String,
    /// Volley's end of the twin.
    pub tap: String,
    /// The twin in the kernel.
    pub host: String,
    /// Its network namespace; none = Volley's.
    pub namespace: Option<String>,
    /// Its number in the kernel; 0 while the mirror does not know it.
    pub host_index: u32,
    /// The twin is an 802.1Q device on that of the parent.
    #[serde(default)]
    pub vlan: bool,
}

/// Mirrored routes of one table.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LcpTableRow {
    /// Number of Volley's table.
    pub table: u32,
    /// Number of the kernel's table.
    pub kernel_table: u32,
    /// IPv4 prefixes.
    pub ip4: u64,
    /// IPv6 prefixes.
    pub ip6: u64,
    /// IPv4 prefixes of Volley's own routes that the kernel has.
    #[serde(default)]
    pub told_ip4: u64,
    /// IPv6 prefixes of them.
    #[serde(default)]
    pub told_ip6: u64,
}

/// How the mirror is doing.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LcpSyncStatus {
    /// What it is about: `following`, `resynchronising` or `stopped: ` and why.
    pub state: String,
    /// Messages of the kernel read.
    pub messages: u64,
    /// Times the kernel had no room for a message: each is followed by a resynchronisation.
    pub overruns: u64,
    /// Resynchronisations that have come to their end.
    pub resyncs: u64,
    /// How long the last one took, in milliseconds.
    pub resync_ms: u64,
    /// Prefixes whose change has not reached the forwarding table.
    pub waiting: u64,
    /// Changes that the other side refused.
    pub refused: u64,
    /// The last of them, as a sentence.
    pub last_refused: Option<String>,
}

/// Differences between the kernel and the forwarding table.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LcpAuditReply {
    /// Objects that were compared: links, addresses, neighbours, routes.
    pub compared: u64,
    /// How many differ.
    pub differing: u64,
    /// The first thousand of them.
    pub differences: Vec<LcpDifference>,
}

/// What the kernel and Volley do not have alike.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LcpDifference {
    /// link, mtu, mac, table, device, address, neighbor, route (the kernel's, in Volley) or own-route (Volley's, in the kernel).
    pub kind: String,
    /// Which one.
    pub what: String,
    /// As the kernel has it; empty when it has none.
    pub kernel: String,
    /// As Volley has it; empty when it has none.
    pub volley: String,
}
