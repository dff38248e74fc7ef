//! Objects of IP: settings of the router and of interfaces.

use crate::reassembly::{ShowReassembly, ShowVirtualReassembly};
use volley_model::Family;
use volley_object::{Choice, Class, DefinitionError, Object, Query};

/// ICMP and ICMPv6 errors that the router sends to the sources of packets that it drops (RFC 1812, 4.3.2; RFC 4443, 2.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Object)]
#[object(class = "icmp", file = "[icmp]")]
#[object(
    set = "set ip icmp {fields}",
    example = "set ip icmp rate 5000 burst 200"
)]
pub struct IcmpSettings {
    /// Send ICMP errors.
    #[object(default = true)]
    pub errors: bool,
    /// ICMP errors of one class (time exceeded, unreachable, too big, parameter problem) that a worker sends; 0 = unlimited.
    #[object(default = 1000, range = 0u32..=10_000_000, unit = "a second")]
    pub rate: u32,
    /// ICMP errors of one class in a burst.
    #[object(default = 50, range = 1u32..=100_000)]
    pub burst: u32,
    /// ICMP errors to each receiver, packet-too-big errors not counted; 0 = unlimited.
    #[object(default = 1, range = 0u32..=10_000_000, unit = "a second")]
    pub receiver_rate: u32,
}

/// Datagrams that a worker can store.
pub(crate) const MAX_REASSEMBLIES: u32 = 4096;
/// Fragments that a worker can store.
pub(crate) const MAX_BUFFERS: u32 = 8192;

/// Reassembly of fragments, for the router itself (full) and in transit (virtual), of one IP version. The limits hold for
/// each worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Object)]
#[object(class = "reassembly", file = "[reassembly.*]")]
#[object(set = "set <family> reassembly {fields}")]
#[object(example = "set ip4 reassembly max-reassemblies 256 timeout 15")]
pub struct ReassemblySettings {
    /// IP version.
    #[object(key)]
    pub family: Family,
    /// Datagrams that wait for fragments, or in transit whose flow is known; the oldest one is dropped for a new one.
    #[object(default = 1024, range = 1..=MAX_REASSEMBLIES)]
    pub max_reassemblies: u32,
    /// Fragments of one datagram; in transit those that wait for the first fragment.
    #[object(default = 64, range = 2u32..=8192)]
    pub max_reassembly_length: u32,
    /// Fragments of all datagrams.
    #[object(default = 1024, range = 2..=MAX_BUFFERS)]
    pub max_buffers: u32,
    /// Time that a datagram waits for its fragments; 30 s for IPv4 and 60 s for IPv6 where it is not set.
    #[object(range = 1u32..=120, unit = "s")]
    pub timeout: Option<u32>,
    /// Time that fragments in transit wait for the first one, and that their flow is known after the last one.
    #[object(default = 100, range = 10u32..=10_000, unit = "ms")]
    pub virtual_timeout: u32,
}

impl ReassemblySettings {
    /// Default settings of one IP version.
    pub fn of_family(family: Family) -> Self {
        ReassemblySettings {
            family,
            max_reassemblies: 1024,
            max_reassembly_length: 64,
            max_buffers: 1024,
            timeout: None,
            virtual_timeout: 100,
        }
    }

    /// Seconds that a datagram waits for its fragments (RFC 791, 3.2 and RFC 1122, 3.3.2; RFC 8200, 4.5).
    pub fn seconds(&self) -> u32 {
        let usual = match self.family {
            Family::V4 => 30,
            Family::V6 => 60,
        };
        self.timeout.unwrap_or(usual)
    }
}

/// The check of the source of a received packet (reverse-path forwarding, RFC 3704 and RFC 8704).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum UrpfMode {
    /// A route to the source leads out of the receiving interface.
    Strict,
    /// A route to the source leads out of any interface.
    Loose,
}

/// Reverse-path check (uRPF) of the sources of packets that an interface receives, for one IP version.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "urpf", file = "interface.urpf.*")]
#[object(set = "set urpf (<family> | ip@family=ip4) [rx] <mode> <interface>")]
#[object(unset = "set urpf (<family> | ip@family=ip4) [rx] off <interface>")]
#[object(example = "set urpf ip4 rx strict pg0")]
pub struct Urpf {
    /// Receiving interface.
    #[object(key, part_of = "interface")]
    pub interface: String,
    /// IP version.
    #[object(key)]
    pub family: Family,
    /// Mode of the check.
    pub mode: UrpfMode,
}

/// ICMP redirects that tell a sender on the interface of a better first hop (RFC 1812, 5.2.7.2; RFC 4861, 8.2).
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "redirects", file = "interface.redirects")]
#[object(set = "set interface ip redirects <interface> <enabled>")]
#[object(example = "set interface ip redirects pg0 on")]
pub struct Redirects {
    /// Interface.
    #[object(key, part_of = "interface")]
    pub interface: String,
    /// Send redirects.
    #[object(default = false)]
    pub enabled: bool,
}

/// Virtual reassembly: fragments in transit that the interface receives take the path of the other packets of their flow.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "virtual_reassembly", file = "interface.virtual_reassembly")]
#[object(set = "set interface ip virtual-reassembly <interface> <enabled>")]
#[object(example = "set interface ip virtual-reassembly pg1 on")]
pub struct VirtualReassembly {
    /// Receiving interface.
    #[object(key, part_of = "interface")]
    pub interface: String,
    /// Treat fragments in transit as packets of their flow.
    #[object(default = false)]
    pub enabled: bool,
}

/// The classes of this crate.
pub fn classes() -> Result<Vec<Class>, DefinitionError> {
    ShowReassembly::query()?;
    ShowVirtualReassembly::query()?;
    Ok(vec![
        IcmpSettings::class()?,
        ReassemblySettings::class()?,
        Urpf::class()?,
        Redirects::class()?,
        VirtualReassembly::class()?,
    ])
}
