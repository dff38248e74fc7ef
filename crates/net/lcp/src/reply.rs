//! Replies of the queries of the Linux control plane.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Interfaces with an LCP tap, and their synchronisation with the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LcpReply {
    /// Interfaces with an LCP tap, in the order of their creation.
    pub pairs: Vec<LcpRow>,
    /// Counts of synchronised routes of the kernel, by table.
    pub tables: Vec<LcpTableRow>,
    /// State of the synchronisation; none while no interface has an LCP tap.
    pub mirror: Option<LcpSyncStatus>,
}

/// An interface and its LCP tap.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LcpRow {
    /// The interface.
    pub interface: String,
    /// Volley's end of the LCP tap.
    pub tap: String,
    /// Name of the LCP tap in the kernel.
    pub host: String,
    /// Network namespace of the LCP tap; none = Volley's.
    pub namespace: Option<String>,
    /// Index of the LCP tap in the kernel (ifindex); 0 while it is not known.
    pub host_index: u32,
    /// The LCP tap is an 802.1Q device on the LCP tap of the parent interface.
    #[serde(default)]
    pub vlan: bool,
}

/// Synchronised routes of one table.
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
    pub reported_ip4: u64,
    /// IPv6 prefixes of Volley's own routes that the kernel has.
    #[serde(default)]
    pub reported_ip6: u64,
}

/// State of the synchronisation with the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LcpSyncStatus {
    /// Current activity: `following`, `resynchronising` or `stopped: ` with the reason.
    pub state: String,
    /// Messages read from the kernel.
    pub messages: u64,
    /// Number of times that the kernel dropped messages because the socket buffer was full: each is followed by a
    /// resynchronisation.
    pub overruns: u64,
    /// Completed resynchronisations.
    pub resyncs: u64,
    /// Duration of the last resynchronisation, in milliseconds.
    pub resync_ms: u64,
    /// Prefixes whose change has not reached the forwarding table.
    pub waiting: u64,
    /// Changes that the other side refused.
    pub refused: u64,
    /// The last refused change, as a sentence.
    pub last_refused: Option<String>,
}

/// Differences between the kernel and the forwarding table.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LcpAuditReply {
    /// Objects that were compared: links, addresses, neighbours, routes.
    pub compared: u64,
    /// Number of objects that differ.
    pub differing: u64,
    /// The first thousand differences.
    pub differences: Vec<LcpDifference>,
}

/// A difference between the kernel and Volley.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LcpDifference {
    /// link, mtu, mac, table, device, address, neighbor, route (the kernel's in Volley) or own-route (Volley's in the kernel).
    pub kind: String,
    /// Name of the object that differs.
    pub what: String,
    /// Value in the kernel; empty if the kernel does not have the object.
    pub kernel: String,
    /// Value in Volley; empty if Volley does not have the object.
    pub volley: String,
}
