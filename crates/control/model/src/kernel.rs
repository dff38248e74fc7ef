//! Interfaces that stand for, or on, interfaces of the Linux kernel.

use crate::addr::{IfAddress, Mac};
use crate::interface::Switch;
use serde::{Deserialize, Serialize};

/// A tap or tun: Volley makes an interface in the kernel and is its other end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TapSpec {
    /// Frames or IP packets.
    pub mode: TapMode,
    /// The kernel's interface; none = named like ours.
    pub host_name: Option<String>,
    /// The network namespace it is made in: a name of `ip netns`, a path, or `pid:N`; none = Volley's.
    pub host_namespace: Option<String>,
    /// Its MAC address; none = the kernel's choice.
    pub host_mac: Option<Mac>,
    /// Its MTU; none = ours.
    pub host_mtu: Option<u32>,
    /// Its addresses.
    pub host_addresses: Vec<IfAddress>,
    /// Queues each way, 1..=256.
    pub queues: u32,
    /// Unfinished checksums and super-segments are exchanged with the kernel.
    pub offload: Switch,
}

impl Default for TapSpec {
    fn default() -> Self {
        TapSpec {
            mode: TapMode::default(),
            host_name: None,
            host_namespace: None,
            host_mac: None,
            host_mtu: None,
            host_addresses: Vec::new(),
            queues: 1,
            offload: Switch::On,
        }
    }
}

/// What a tap carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TapMode {
    /// Ethernet frames.
    #[default]
    Tap,
    /// IP packets.
    Tun,
}

/// An interface of the kernel through a packet socket (AF_PACKET): Volley takes copies of what it receives, and sends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PacketSpec {
    /// The kernel's interface.
    pub host: String,
    /// The network namespace it is in; none = Volley's.
    pub namespace: Option<String>,
    /// Receive queues, between which the kernel spreads flows, 1..=64.
    pub queues: u32,
    /// Frames that each receive ring holds, 64..=65536.
    pub ring: u32,
    /// Unfinished checksums and super-segments are exchanged with the kernel.
    pub offload: Switch,
}

impl Default for PacketSpec {
    fn default() -> Self {
        PacketSpec {
            host: String::new(),
            namespace: None,
            queues: 1,
            ring: 1024,
            offload: Switch::On,
        }
    }
}

/// An interface of the kernel through XDP sockets (AF_XDP): Volley takes what it receives away from the kernel, and sends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct XdpSpec {
    /// The kernel's interface.
    pub host: String,
    /// The network namespace it is in; none = Volley's.
    pub namespace: Option<String>,
    /// Queues, from the first on; none = all that it has.
    pub queues: Option<u32>,
    /// Entries of each ring, a power of two, 64..=32768.
    pub ring: u32,
    /// Where the XDP program runs.
    pub mode: XdpMode,
    /// Whether the driver copies.
    pub copy: XdpCopy,
}

impl Default for XdpSpec {
    fn default() -> Self {
        XdpSpec {
            host: String::new(),
            namespace: None,
            queues: None,
            ring: 2048,
            mode: XdpMode::default(),
            copy: XdpCopy::default(),
        }
    }
}

/// Where the XDP program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum XdpMode {
    /// In the driver if it can, else in the kernel's generic path.
    #[default]
    Auto,
    /// In the driver.
    Native,
    /// In the generic path, which every driver has.
    Generic,
}

/// Whether the driver copies packets between its memory and ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum XdpCopy {
    /// Not if it can do without.
    #[default]
    Auto,
    /// Always.
    Copy,
    /// Never: refused where the driver cannot.
    Zero,
}
