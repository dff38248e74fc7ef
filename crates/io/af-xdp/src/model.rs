//! The object of this crate: an interface of the kernel, through XDP sockets.

use volley_iface::{check_host_name, check_namespace};
use volley_object::{Choice, Class, DefinitionError, FieldError, Object, refuse};

/// Interface of the Linux kernel, through XDP sockets (AF_XDP): Volley takes the packets that the kernel's interface receives
/// away from the kernel, and sends packets on it.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "af_xdp", interface = "af_xdp", machine, check = XdpInterface::check, formerly = "af-xdp")]
#[object(
    set = "create interface af_xdp host-if <host> {name <name> | netns <namespace> | num-rx-queues <queues> | ring-size <ring> | \
           native@mode=native | generic@mode=generic | zero-copy@copy=zero | no-zero-copy@copy=copy | wait@wait=on | mac <+mac> | \
           mtu <+mtu>}"
)]
#[object(unset = "delete af_xdp interface <name>")]
#[object(example = "create interface af_xdp host-if veth0")]
pub struct XdpInterface {
    /// Name of the interface; without one, that of the kernel's interface.
    #[object(key, derived = XdpInterface::usual_name, example = "veth0")]
    pub name: String,
    /// Name of the kernel's interface.
    #[object(example = "veth0")]
    pub host: String,
    /// Network namespace of the kernel's interface: a name of `ip netns`, a path, or pid:N; Volley's own where it is not set.
    #[object(example = "red")]
    pub namespace: Option<String>,
    /// Receive queues, from the first on; all that the kernel's interface has, where it is not set.
    #[object(range = 1u32..=64)]
    pub queues: Option<u32>,
    /// Entries of each ring, a power of two.
    #[object(default = 1024, range = 64u32..=32_768)]
    pub ring: u32,
    /// Place where the XDP program runs.
    #[object(default = XdpMode::Auto)]
    pub mode: XdpMode,
    /// Whether packets are copied between the memory of the driver and that of Volley.
    #[object(default = XdpCopy::Auto)]
    pub copy: XdpCopy,
    /// The kernel's interface may be missing: Volley uses it as soon as it appears.
    #[object(default = false, request)]
    pub wait: bool,
}

/// Where the XDP program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum XdpMode {
    /// Run the program in the driver if it can, else in the kernel's generic path.
    Auto,
    /// Run the program in the driver, or fail.
    Native,
    /// Run the program in the kernel's generic path, which every driver has.
    Generic,
}

/// Whether packets are copied between the memory of the driver and that of Volley.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum XdpCopy {
    /// Copy packets only where the driver cannot do without.
    Auto,
    /// Copy packets between the driver and Volley.
    Copy,
    /// Let the driver read and write packets in place, or fail.
    Zero,
}

impl XdpInterface {
    fn usual_name(&self) -> String {
        self.host.clone()
    }

    fn check(&self) -> Result<(), FieldError> {
        check_host_name("host", &self.host)?;
        check_namespace("namespace", self.namespace.as_deref())?;
        if !self.ring.is_power_of_two() {
            return refuse("ring", format!("must be a power of two, not {}", self.ring));
        }
        if self.mode == XdpMode::Generic && self.copy == XdpCopy::Zero {
            let why = "must not be zero with the generic path, which copies";
            return refuse("copy", why);
        }
        Ok(())
    }
}

/// The classes of this crate.
pub fn classes() -> Result<Vec<Class>, DefinitionError> {
    Ok(vec![XdpInterface::class()?])
}
