//! The object of this crate: a tap.

use volley_iface::{check_host_name, check_namespace};
use volley_model::{IfAddress, Mac};
use volley_object::{Choice, Class, DefinitionError, FieldError, Object, refuse};

/// Tap or tun: an interface that Volley makes in the Linux kernel, with Volley at its other end.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "tap", interface = "tap", machine, check = TapInterface::check, formerly = "tap")]
#[object(
    set = "create tap {name <name> | id <id> | tun@mode=tun | host-if-name <host> | host-ns <namespace> | host-mac-addr <host_mac> | \
           host-mtu-size <host_mtu> | (host-ip-addr | host-ip4-addr | host-ip6-addr) <host_addresses> | num-rx-queues <queues> | \
           no-offload@offload=off | vhost <vhost> | mac <+mac> | mtu <+mtu>}"
)]
#[object(unset = "delete tap interface <name>")]
#[object(example = "create tap id 0 host-if-name lan host-ns red host-ip4-addr 10.0.0.2/24")]
pub struct TapInterface {
    /// Name of the interface; without one, tap or tun with the number.
    #[object(key, derived = TapInterface::usual_name, example = "tap0")]
    pub name: String,
    /// Number of the tap, which gives the name where there is none.
    #[object(default = 0, request)]
    pub id: u32,
    /// Packets that the tap carries.
    #[object(default = TapMode::Tap)]
    pub mode: TapMode,
    /// Name of the kernel's end; without one, that of the interface.
    #[object(example = "lan")]
    pub host: Option<String>,
    /// Network namespace of the kernel's end: a name of `ip netns`, a path, or pid:N; Volley's own where it is not set.
    #[object(example = "red")]
    pub namespace: Option<String>,
    /// MAC address of the kernel's end; without one the kernel makes one.
    pub host_mac: Option<Mac>,
    /// MTU of the kernel's end; without one, that of the interface.
    #[object(range = 68u32..=65_535, unit = "bytes")]
    pub host_mtu: Option<u32>,
    /// Addresses of the kernel's end.
    #[object(example = "10.0.0.2/24")]
    pub host_addresses: Vec<IfAddress>,
    /// Queues each way; 16 at most with vhost-net.
    #[object(default = 1, range = 1u32..=256)]
    pub queues: u32,
    /// Leave checksums and segmentation to the kernel, and finish those of the kernel.
    #[object(default = true)]
    pub offload: bool,
    /// Whether the kernel's vhost-net carries the packets, through rings in memory and without a system call for each.
    #[object(default = TapVhost::Auto)]
    pub vhost: TapVhost,
}

/// What a tap carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum TapMode {
    /// Ethernet frames.
    Tap,
    /// IP packets without Ethernet.
    Tun,
}

/// Whether the kernel's vhost-net carries a tap's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum TapVhost {
    /// Let vhost-net carry the packets where the machine has it and it can: Ethernet taps with at most 16 queues.
    Auto,
    /// Let vhost-net carry the packets, or fail.
    On,
    /// Let workers read and write the tap.
    Off,
}

/// The maximum number of queues of a tap that vhost-net serves.
const VHOST_QUEUES: u32 = 16;

impl TapInterface {
    fn usual_name(&self) -> String {
        format!("{}{}", self.mode, self.id)
    }

    fn check(&self) -> Result<(), FieldError> {
        match &self.host {
            Some(host) => check_host_name("host", host)?,
            None => check_host_name("name", &self.name)?,
        }
        check_namespace("namespace", self.namespace.as_deref())?;
        if let Some(why) = self.host_mac.and_then(Mac::not_of_one_host) {
            return refuse("host_mac", format!("must be {why}"));
        }
        if self.vhost == TapVhost::On {
            if self.mode == TapMode::Tun {
                let why = "must not be on for a tun: vhost-net serves Ethernet taps only";
                return refuse("vhost", why);
            }
            if self.queues > VHOST_QUEUES {
                let why = format!("must be a number from 1 to {VHOST_QUEUES} with vhost on");
                return refuse("queues", why);
            }
        }
        Ok(())
    }
}

/// The classes of this crate.
pub fn classes() -> Result<Vec<Class>, DefinitionError> {
    Ok(vec![TapInterface::class()?])
}
