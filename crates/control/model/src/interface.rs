//! Interfaces and what hangs on them: kinds, states, neighbours, feature bindings.

use crate::addr::Mac;
use crate::dpdk::DpdkSpec;
use crate::kernel::{PacketSpec, TapSpec, XdpSpec};
use crate::memif::MemifSpec;
use crate::sub_interface::SubInterfaceSpec;
use crate::vhost::VhostSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use volley_object::{FieldType, Instance, Value};

/// A new interface. It is created administratively down, in table 0, without addresses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InterfaceSpec {
    /// Its name, unique in the daemon.
    pub name: String,
    /// What stands behind it.
    pub kind: InterfaceKind,
    /// MAC address; none = a locally administered one is made from the engine's seed and the name.
    #[serde(default)]
    pub mac: Option<Mac>,
    /// L3 MTU in bytes; none = the kind's default (9000).
    #[serde(default)]
    pub mtu: Option<u32>,
}

/// Class of the MAC address of an interface.
const MAC: &str = "mac";
/// Class of the MTU of an interface.
const MTU: &str = "mtu";
/// Classes of the settings that an interface is created with, each of one value.
const CREATED_WITH: [&str; 2] = [MAC, MTU];

impl InterfaceSpec {
    /// Whether interfaces are created and deleted with the settings of a class.
    pub fn is_created_with(class: &str) -> bool {
        CREATED_WITH.contains(&class)
    }

    /// The settings that the interface is created with: class and value of each.
    pub fn settings(&self) -> Vec<(&'static str, Value)> {
        let mac = self.mac.map(|it| (MAC, it.to_value()));
        let mtu = self.mtu.map(|it| (MTU, it.to_value()));
        mac.into_iter().chain(mtu).collect()
    }

    /// Adds a setting that the interface is created with; a setting of another class changes nothing.
    pub fn create_with(&mut self, setting: &Instance) {
        match setting.class().name() {
            MAC => self.mac = setting.field(1),
            MTU => self.mtu = setting.field(1),
            _ => {}
        }
    }
}

/// What stands behind an interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InterfaceKind {
    /// Packet generator: receives what streams make, transmits into a capture or nowhere.
    Pg,
    /// Capture files: receives from one, transmits into another.
    Pcap(PcapFiles),
    /// A tap or tun that Volley makes in the kernel.
    Tap(TapSpec),
    /// An interface of the kernel through packet sockets.
    HostInterface(PacketSpec),
    /// An interface of the kernel through XDP sockets.
    AfXdp(XdpSpec),
    /// Memory shared with another program.
    Memif(MemifSpec),
    /// A vhost-user socket, for a guest or a program: we are the device.
    VhostUser(VhostSpec),
    /// A vhost-user socket of somebody else's device: we are the driver.
    VirtioUser(VhostSpec),
    /// A port of DPDK: a network card that it drives, or one of its virtual ports.
    Dpdk(DpdkSpec),
    /// Frames of another interface that have certain VLAN tags.
    SubInterface(SubInterfaceSpec),
}

impl InterfaceKind {
    /// Tells class and key of every object that an interface of this kind needs.
    pub fn references(&self, tell: &mut dyn FnMut(&'static str, Value)) {
        if let InterfaceKind::Memif(memif) = self {
            tell("memif_socket", Value::Number(memif.socket_id.into()));
        }
    }

    /// Name of the kind, such as `packet-generator` or `tap`.
    pub fn name(&self) -> &'static str {
        match self {
            InterfaceKind::Pg => "packet-generator",
            InterfaceKind::Pcap(_) => "pcap",
            InterfaceKind::Tap(_) => "tap",
            InterfaceKind::HostInterface(_) => "host-interface",
            InterfaceKind::AfXdp(_) => "af_xdp",
            InterfaceKind::Memif(_) => "memif",
            InterfaceKind::VhostUser(_) => "vhost-user",
            InterfaceKind::VirtioUser(_) => "virtio-user",
            InterfaceKind::Dpdk(_) => "dpdk",
            InterfaceKind::SubInterface(_) => "sub-interface",
        }
    }
}

/// Files of a pcap interface. At least one of them must be there.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PcapFiles {
    /// Packets to receive (pcap or pcapng).
    pub rx: Option<PathBuf>,
    /// Where transmitted packets are written (pcap; overwritten); none = they are dropped and counted as sent.
    pub tx: Option<PathBuf>,
    /// How often `rx` is played.
    pub repeat: Repeat,
    /// How fast `rx` is played.
    pub pace: Pace,
}

/// How often a file is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Repeat {
    /// This many times (at least once).
    Times(u64),
    /// Until the interface goes down.
    Forever,
}

impl Default for Repeat {
    fn default() -> Self {
        Repeat::Times(1)
    }
}

/// How fast a file is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pace {
    /// As fast as the graph takes the packets.
    #[default]
    Fast,
    /// With the gaps of the time stamps in the file.
    Recorded,
}

/// Administrative state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AdminState {
    /// Packets pass.
    Up,
    /// Packets are dropped and counted.
    #[default]
    Down,
}

/// Mode of receive queues.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Default,
    Serialize,
    Deserialize,
    JsonSchema,
    volley_object::Choice,
)]
#[serde(rename_all = "kebab-case")]
pub enum RxMode {
    /// A worker polls the queue all the time.
    Polling,
    /// A worker polls the queue when the driver signals packets.
    Interrupt,
    /// A worker polls the queue while packets come, and waits for a signal after a short silence.
    #[default]
    Adaptive,
}

/// Something switched on or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Switch {
    /// On.
    On,
    /// Off.
    Off,
}
