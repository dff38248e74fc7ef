//! The object of this crate: an interface of the kernel, through packet sockets.

use volley_iface::{check_host_name, check_namespace};
use volley_object::{Class, DefinitionError, FieldError, Object};

/// Interface of the Linux kernel, through packet sockets (AF_PACKET): Volley takes copies of the packets that the kernel's
/// interface receives, and sends packets on it.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "host_interface", interface = "host-interface", machine, check = HostInterface::check)]
#[object(formerly = "host-interface")]
#[object(
    set = "create host-interface name <host> {as <name> | netns <namespace> | num-rx-queues <queues> | ring-size <ring> | \
           no-offload@offload=off | wait@wait=on | (mac | hw-addr) <+mac> | mtu <+mtu>}"
)]
#[object(unset = "delete host-interface interface <name>")]
#[object(example = "create host-interface name veth0")]
pub struct HostInterface {
    /// Name of the interface; without one, host- with the name of the kernel's interface.
    #[object(key, derived = HostInterface::usual_name, example = "host-veth0")]
    pub name: String,
    /// Name of the kernel's interface.
    #[object(example = "veth0")]
    pub host: String,
    /// Network namespace of the kernel's interface: a name of `ip netns`, a path, or pid:N; Volley's own where it is not set.
    #[object(example = "red")]
    pub namespace: Option<String>,
    /// Receive queues, between which the kernel spreads flows.
    #[object(default = 1, range = 1u32..=64)]
    pub queues: u32,
    /// Frames that the ring of each receive queue has room for.
    #[object(default = 1024, range = 64u32..=65_536)]
    pub ring: u32,
    /// Exchange super-segments with the kernel. Without offload, the frames of a ring have room for the MTU, and peers must not
    /// make super-segments.
    #[object(default = true)]
    pub offload: bool,
    /// The kernel's interface may be missing: Volley uses it as soon as it appears.
    #[object(default = false, request)]
    pub wait: bool,
}

impl HostInterface {
    fn usual_name(&self) -> String {
        format!("host-{}", self.host)
    }

    fn check(&self) -> Result<(), FieldError> {
        check_host_name("host", &self.host)?;
        check_namespace("namespace", self.namespace.as_deref())
    }
}

/// The classes of this crate.
pub fn classes() -> Result<Vec<Class>, DefinitionError> {
    Ok(vec![HostInterface::class()?])
}
