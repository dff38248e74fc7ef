//! Interfaces that stand for, or on, interfaces of the Linux kernel.

use crate::addr::{IfAddress, Mac};
use crate::interface::Switch;
use crate::validate::{unicast, within};
use crate::{ModelError, quote};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Formatter};
use std::ops::RangeInclusive;

type Check = Result<(), ModelError>;

/// Longest name of an interface of the kernel, in bytes.
const HOST_NAME: usize = 15;
/// Queues of a tap.
pub const TAP_QUEUES: RangeInclusive<u32> = 1..=256;
/// Queues of a tap that vhost-net serves.
pub const VHOST_QUEUES: RangeInclusive<u32> = 1..=16;
/// Queues of the other kinds.
pub const QUEUES: RangeInclusive<u32> = 1..=64;
/// Frames of a packet socket's ring.
pub const PACKET_RING: RangeInclusive<u32> = 64..=65_536;
/// Entries of an XDP socket's ring.
pub const XDP_RING: RangeInclusive<u32> = 64..=32_768;

/// What is wrong with the name of an interface of the kernel, if anything.
pub fn host_name_fault(name: &str) -> Option<&'static str> {
    let odd = |b: u8| {
        b.is_ascii_whitespace() || b.is_ascii_control() || b == b'/' || b == b':' || b == b'%'
    };
    if name.is_empty() || name.len() > HOST_NAME {
        return Some("use 1 to 15 characters");
    }
    let is_odd = name == "." || name == ".." || name.bytes().any(odd);
    is_odd.then_some("use letters, digits and - _ . @ only")
}

/// What is wrong with the name of a network namespace, if anything.
pub fn namespace_fault(name: &str) -> Option<&'static str> {
    let bad = name.is_empty() || name.contains('\0') || name == "." || name == "..";
    bad.then_some("give a name that `ip netns list` shows, a path, or pid:N")
}

fn host_name(name: &str) -> Check {
    host_name_fault(name).map_or(Ok(()), |why| {
        let what = format!("kernel interface name '{}'", name.escape_debug());
        Err(ModelError::invalid(what, why))
    })
}

fn namespace(name: Option<&String>) -> Check {
    let bad = name.and_then(|n| Some((n, namespace_fault(n)?)));
    bad.map_or(Ok(()), |(n, why)| {
        let what = format!("network namespace '{}'", n.escape_debug());
        Err(ModelError::invalid(what, why))
    })
}

impl TapSpec {
    pub(crate) fn validate(&self, interface: &str) -> Check {
        host_name(self.host.as_deref().unwrap_or(interface))?;
        namespace(self.namespace.as_ref())?;
        within("queues", self.queues, TAP_QUEUES)?;
        if self.vhost == TapVhost::On {
            if self.mode == TapMode::Tun {
                let why = "vhost-net serves Ethernet taps only: leave vhost or tun out";
                return Err(ModelError::invalid(format!("interface {interface}"), why));
            }
            within("queues with vhost on", self.queues, VHOST_QUEUES)?;
        }
        if let Some(mac) = self.host_mac {
            unicast(mac)?;
        }
        self.host_mtu
            .map_or(Ok(()), |mtu| within("host mtu", mtu, crate::limits::MTU))
    }
}

impl PacketSpec {
    pub(crate) fn validate(&self) -> Check {
        host_name(&self.host)?;
        namespace(self.namespace.as_ref())?;
        within("queues", self.queues, QUEUES)?;
        within("ring", self.ring, PACKET_RING)
    }
}

impl XdpSpec {
    pub(crate) fn validate(&self) -> Check {
        host_name(&self.host)?;
        namespace(self.namespace.as_ref())?;
        within("queues", self.queues.unwrap_or(1), QUEUES)?;
        within("ring", self.ring, XDP_RING)?;
        if !self.ring.is_power_of_two() {
            let why = "it must be a power of two";
            return Err(ModelError::invalid(format!("ring {}", self.ring), why));
        }
        if self.mode == XdpMode::Generic && self.copy == XdpCopy::Zero {
            let why = "the generic path copies: leave zero-copy or generic out";
            return Err(ModelError::invalid(
                format!("interface on {}", self.host),
                why,
            ));
        }
        Ok(())
    }
}

type Out<'a, 'b> = &'a mut Formatter<'b>;

fn opt(f: Out<'_, '_>, word: &str, value: Option<impl Display>) -> fmt::Result {
    value.map_or(Ok(()), |v| write!(f, " {word} {v}"))
}

/// A text where a keyword could stand as well.
fn word(text: &str) -> String {
    match quote(text) {
        plain if plain == text => format!("\"{text}\""),
        quoted => quoted,
    }
}

fn switched_off(f: Out<'_, '_>, switch: Switch, words: &str) -> fmt::Result {
    match switch {
        Switch::On => Ok(()),
        Switch::Off => write!(f, " {words}"),
    }
}

/// How an interface of kind tap is made by the command line, without MAC address and MTU.
pub(crate) fn spell_tap(f: Out<'_, '_>, name: &str, tap: &TapSpec) -> fmt::Result {
    write!(f, "create tap name {}", word(name))?;
    if tap.mode == TapMode::Tun {
        f.write_str(" tun")?;
    }
    opt(f, "host-if-name", tap.host.as_deref().map(word))?;
    opt(f, "host-ns", tap.namespace.as_deref().map(word))?;
    opt(f, "host-mac-addr", tap.host_mac)?;
    opt(f, "host-mtu-size", tap.host_mtu)?;
    for address in &tap.host_addresses {
        opt(f, "host-ip-addr", Some(address))?;
    }
    opt(f, "num-rx-queues", Some(tap.queues).filter(|n| *n != 1))?;
    switched_off(f, tap.offload, "no-offload")?;
    f.write_str(match tap.vhost {
        TapVhost::Auto => "",
        TapVhost::On => " vhost on",
        TapVhost::Off => " vhost off",
    })
}

pub(crate) fn spell_host(f: Out<'_, '_>, name: &str, host: &PacketSpec) -> fmt::Result {
    write!(
        f,
        "create host-interface name {} as {}",
        word(&host.host),
        word(name)
    )?;
    opt(f, "netns", host.namespace.as_deref().map(word))?;
    opt(f, "num-rx-queues", Some(host.queues).filter(|n| *n != 1))?;
    let usual = PacketSpec::default().ring;
    opt(f, "ring-size", Some(host.ring).filter(|n| *n != usual))?;
    switched_off(f, host.offload, "no-offload")?;
    waits(f, host.wait)
}

fn waits(f: Out<'_, '_>, wait: bool) -> fmt::Result {
    f.write_str(if wait { " wait" } else { "" })
}

pub(crate) fn spell_xdp(f: Out<'_, '_>, name: &str, xdp: &XdpSpec) -> fmt::Result {
    let (host, name) = (word(&xdp.host), word(name));
    write!(f, "create interface af_xdp host-if {host} name {name}")?;
    opt(f, "netns", xdp.namespace.as_deref().map(word))?;
    opt(f, "num-rx-queues", xdp.queues)?;
    let usual = XdpSpec::default().ring;
    opt(f, "ring-size", Some(xdp.ring).filter(|n| *n != usual))?;
    f.write_str(match xdp.mode {
        XdpMode::Auto => "",
        XdpMode::Native => " native",
        XdpMode::Generic => " generic",
    })?;
    f.write_str(match xdp.copy {
        XdpCopy::Auto => "",
        XdpCopy::Copy => " no-zero-copy",
        XdpCopy::Zero => " zero-copy",
    })?;
    waits(f, xdp.wait)
}

/// A tap or tun: Volley makes an interface in the kernel and is its other end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TapSpec {
    /// Frames or IP packets.
    pub mode: TapMode,
    /// The kernel's interface; none = named like ours.
    pub host: Option<String>,
    /// The network namespace it is made in: a name of `ip netns`, a path, or `pid:N`; none = Volley's.
    pub namespace: Option<String>,
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
    /// Whether the kernel's vhost-net carries the packets.
    pub vhost: TapVhost,
}

impl Default for TapSpec {
    fn default() -> Self {
        TapSpec {
            mode: TapMode::default(),
            host: None,
            namespace: None,
            host_mac: None,
            host_mtu: None,
            host_addresses: Vec::new(),
            queues: 1,
            offload: Switch::On,
            vhost: TapVhost::default(),
        }
    }
}

/// Whether the kernel's vhost-net carries a tap's packets, through rings in memory and without a system call for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TapVhost {
    /// Where this machine has it and it can: Ethernet taps with at most 16 queues.
    #[default]
    Auto,
    /// Always: refused where it cannot.
    On,
    /// Never.
    Off,
}

/// What a tap carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TapMode {
    /// Ethernet frames.
    #[default]
    Tap,
    /// IP packets.
    Tun,
}

/// An interface of the kernel through a packet socket (AF_PACKET): Volley takes copies of what it receives, and sends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    /// Super-segments are exchanged with the kernel: a ring's slots have room for them. Without, they have room for the
    /// MTU, and peers must not make any.
    pub offload: Switch,
    /// Part of a request only: the kernel's interface may be missing, and is used as soon as it appears.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub wait: bool,
}

impl Default for PacketSpec {
    fn default() -> Self {
        PacketSpec {
            host: String::new(),
            namespace: None,
            queues: 1,
            ring: 1024,
            offload: Switch::On,
            wait: false,
        }
    }
}

/// An interface of the kernel through XDP sockets (AF_XDP): Volley takes what it receives away from the kernel, and sends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    /// Part of a request only: the kernel's interface may be missing, and is used as soon as it appears.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub wait: bool,
}

impl Default for XdpSpec {
    fn default() -> Self {
        XdpSpec {
            host: String::new(),
            namespace: None,
            queues: None,
            ring: 1024,
            mode: XdpMode::default(),
            copy: XdpCopy::default(),
            wait: false,
        }
    }
}

/// Where the XDP program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
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
