//! Looking at packets: traces through the graph and captures into pcap files.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Trace the next packets that enter the graph at a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TraceSpec {
    /// Node (`pg-input`).
    pub node: String,
    /// Packets, 1..=1000000.
    pub count: u64,
    /// Only packets that match this expression, written as for a capture.
    #[serde(default)]
    pub filter: Option<String>,
}

/// Where packets are captured. At least one must be true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Directions {
    /// On receipt from an interface.
    pub rx: bool,
    /// On transmission to an interface.
    pub tx: bool,
    /// When dropped.
    pub drop: bool,
}

/// Capture packets into a pcap file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PcapTrace {
    /// Where.
    pub directions: Directions,
    /// Only this interface; none = any.
    #[serde(default)]
    pub interface: Option<String>,
    /// Stop after this many packets, 1..=1000000.
    pub max: u64,
    /// Bytes kept of each packet; none = all.
    #[serde(default)]
    pub snap: Option<u32>,
    /// File to write (overwritten).
    pub file: PathBuf,
    /// Only packets that match this expression; checked by the capture's owner.
    #[serde(default)]
    pub filter: Option<String>,
}

/// Show packets to one client as they pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Monitor {
    /// Where.
    pub directions: Directions,
    /// Only this interface; none = any.
    pub interface: Option<String>,
    /// End after this many packets, up to 1000000; none = when the client ends it.
    pub count: Option<u64>,
    /// Bytes kept of each packet; none = all.
    pub snap: Option<u32>,
    /// Only packets that match this expression, written as for a capture.
    pub filter: Option<String>,
    /// A capture in the format pcapng, instead of a line of text for each packet.
    pub pcapng: bool,
}
