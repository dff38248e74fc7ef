//! Interfaces, as the stack and as the driver sees them.

use crate::addr::{IfAddress, Mac};
use crate::interface::{AdminState, RxMode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Interfaces.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct InterfacesReply {
    /// In order of index.
    pub interfaces: Vec<InterfaceRow>,
}

/// One interface.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct InterfaceRow {
    /// Its name.
    pub name: String,
    /// Its index.
    pub index: u32,
    /// `packet-generator`, `pcap`, `local`, ...
    pub kind: String,
    /// Administrative state.
    pub state: AdminState,
    /// State of the link.
    pub link: AdminState,
    /// Why the link is down, when it is.
    #[serde(default)]
    pub link_reason: Option<String>,
    /// The device that the interface is on is missing, and is used as soon as it appears.
    #[serde(default)]
    pub waiting: bool,
    /// How its receive queues are watched.
    #[serde(default)]
    pub rx_mode: RxMode,
    /// MAC address; none where there is no Ethernet.
    pub mac: Option<Mac>,
    /// Effective L3 MTU in bytes.
    pub mtu: u32,
    /// Configured L3 MTU of an interface over one of the kernel's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configured_mtu: Option<u32>,
    /// The MTU of the kernel's interface behind the interface; none = there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_mtu: Option<u32>,
    /// Speed of the link in bit/s; none = the device does not say, or there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed_bps: Option<u64>,
    /// Addresses, in the order they were added.
    pub addresses: Vec<IfAddress>,
    /// Addresses that it made itself, of what the routers of its link advertise.
    #[serde(default)]
    pub automatic: Vec<IfAddress>,
    /// The interface whose addresses it uses, where it has none of its own.
    #[serde(default)]
    pub unnumbered: Option<String>,
    /// IP tables it is bound to.
    pub tables: InterfaceTables,
    /// Whose frames it takes, and by which tags; none = it is no sub-interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub_interface: Option<SubInterfaceRow>,
    /// Received, bytes without frame check sequence.
    pub rx: Counter,
    /// Transmitted.
    pub tx: Counter,
    /// Packets received on it and dropped anywhere.
    pub drops: u64,
    /// Receive errors.
    pub rx_errors: u64,
    /// Transmit errors.
    pub tx_errors: u64,
    /// Counters of the kind or of features (`ip4`, `rx-no-buffer`), only those not zero.
    pub more: Vec<NamedValue>,
    /// What passed lately: over the last 1, 10 and 60 seconds; none before the first two looks of the daemon.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rates: Vec<InterfaceRate>,
    /// What it is for, in an operator's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// Whose frames a sub-interface takes, and by which VLAN tags (IEEE 802.1Q).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SubInterfaceRow {
    /// The interface whose frames it takes.
    pub parent: String,
    /// Its number, the last part of its name.
    pub id: u32,
    /// What kind of tag the outer one is.
    #[serde(default)]
    pub tag: VlanTag,
    /// The VLAN of the outer tag, 1 to 4094.
    pub vlan: u16,
    /// The VLAN of the second tag; none = there is no second one.
    #[serde(default)]
    pub inner: Option<u16>,
}

/// What kind of tag the outer one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VlanTag {
    /// A customer's tag, type 0x8100.
    #[default]
    Dot1q,
    /// A service provider's tag, type 0x88a8.
    Dot1ad,
}

impl SubInterfaceRow {
    /// What it is called.
    pub fn name(&self) -> String {
        format!("{}.{}", self.parent, self.id)
    }
}

/// What passed an interface in a span of time; bytes without frame check sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct InterfaceRate {
    /// Seconds of the span: 1, 10 or 60. Where the interface is younger, it is since then.
    pub span_s: u32,
    /// Received packets a second.
    pub rx_pps: u64,
    /// Received bits a second.
    pub rx_bps: u64,
    /// Transmitted packets a second.
    pub tx_pps: u64,
    /// Transmitted bits a second.
    pub tx_bps: u64,
}

/// Tables of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct InterfaceTables {
    /// IPv4 table.
    pub ip4: u32,
    /// IPv6 table.
    pub ip6: u32,
}

/// Packets and bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Counter {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

/// A counter by name.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct NamedValue {
    /// Name.
    pub name: String,
    /// Value.
    pub value: u64,
}

/// Interfaces as drivers see them.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct HardwareReply {
    /// In order of index.
    pub hardware: Vec<HardwareRow>,
}

/// One interface as its driver sees it.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct HardwareRow {
    /// Its name.
    pub name: String,
    /// Its index.
    pub index: u32,
    /// Driver.
    pub driver: String,
    /// State of the link.
    pub link: AdminState,
    /// Why the link is down, when it is.
    #[serde(default)]
    pub link_reason: Option<String>,
    /// MAC address.
    pub mac: Option<Mac>,
    /// Largest frame in bytes.
    pub max_frame: u32,
    /// Receive queues.
    pub rx_queues: u32,
    /// Transmit queues.
    pub tx_queues: u32,
    /// How the receive queues are watched.
    #[serde(default)]
    pub rx_mode: RxMode,
    /// Whether it takes frames for any MAC address.
    #[serde(default)]
    pub promiscuous: bool,
    /// What the transmit side does by itself: `checksum`, `tcp4`, `tcp6`, `udp`.
    #[serde(default)]
    pub offloads: Vec<String>,
    /// Counters by queue, of queues that have counted something.
    #[serde(default)]
    pub queues: Vec<QueueRow>,
    /// What the driver has to say, a line each (files, modes, counters).
    pub details: Vec<String>,
}

/// What passed one queue.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct QueueRow {
    /// `rx` or `tx`.
    pub direction: String,
    /// Its number.
    pub queue: u32,
    /// What passed.
    pub passed: Counter,
}

/// Which worker watches which receive queue.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct RxPlacementReply {
    /// By worker, then interface, then queue.
    pub placement: Vec<RxPlacementRow>,
}

/// One receive queue.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct RxPlacementRow {
    /// The worker.
    pub worker: u32,
    /// The node that receives.
    pub node: String,
    /// The interface.
    pub interface: String,
    /// The queue's number.
    pub queue: u32,
    /// How it is watched.
    pub mode: RxMode,
}
