//! The object of this crate: the LCP tap of an interface.

use crate::show::{ShowLcp, ShowLcpAudit};
use volley_iface::{check_host_name, check_namespace};
use volley_model::check_name;
use volley_object::{
    Class, DefinitionError, FieldError, Object, Query, Reference, Value, Verb, refuse,
};

/// LCP tap: an interface of the Linux kernel with the MAC address and MTU of an interface of Volley. Volley keeps the two
/// synchronised.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "lcp", file = "interface.lcp", check = LcpTap::check)]
#[object(group("lcp", "The Linux control plane: interfaces with a tap in the kernel."))]
#[object(recreate, separate, machine, references = LcpTap::references)]
#[object(formerly = "lcp-create host=host_if namespace=netns")]
#[object(set = "lcp create <interface> host-if <host_if> {vlan@vlan=on | netns <netns>}")]
#[object(unset = "lcp delete <interface>")]
#[object(example = "lcp create wan0 host-if wan0 netns frr")]
#[object(
    interrupts = "the kernel interface of <interface> is deleted and created again: the control plane loses its routes there"
)]
pub struct LcpTap {
    /// Interface that has the LCP tap.
    #[object(key, part_of = "interface")]
    pub interface: String,
    /// Name of the LCP tap in the kernel.
    #[object(example = "wan0")]
    pub host_if: String,
    /// Network namespace of the LCP tap: a name of `ip netns`, a path, or pid:N; Volley's own where it is not set.
    #[object(example = "frr")]
    pub netns: Option<String>,
    /// Of a sub-interface: the LCP tap is an 802.1Q device on the LCP tap of the parent interface.
    #[object(default = false)]
    pub vlan: bool,
}

impl LcpTap {
    /// Volley's end of the LCP tap; this end is an interface too.
    pub fn tap(&self) -> String {
        format!("tap-{}", self.interface)
    }

    /// The interface on whose LCP tap this one is an 802.1Q device; none = this one is a tap.
    pub fn parent_tap(&self) -> Option<&str> {
        let parent = self.interface.rsplit_once('.').map(|(parent, _)| parent);
        parent.filter(|_| self.vlan)
    }

    /// The LCP tap of the parent cannot be deleted before this one.
    fn references(&self, tell: &mut dyn FnMut(Reference, Value)) {
        if let Some(parent) = self.parent_tap() {
            tell(Reference::needs("lcp"), Value::text(parent));
        }
    }

    fn check(&self) -> Result<(), FieldError> {
        if let Err(error) = check_name("interface", &self.tap()) {
            return refuse("interface", format!("has an LCP tap of its name: {error}"));
        }
        if self.vlan && self.parent_tap().is_none() {
            let why = "is for a sub-interface, called PARENT.NUMBER";
            return refuse("vlan", why);
        }
        check_host_name("host_if", &self.host_if)?;
        check_namespace("netns", self.netns.as_deref())
    }
}

/// Read everything of the kernel once more.
#[derive(Clone, Debug, PartialEq, Eq, Verb)]
#[verb(name = "lcp-resync", command = "lcp resync", example = "lcp resync")]
pub struct LcpResync;

/// The classes of this crate.
pub fn classes() -> Result<Vec<Class>, DefinitionError> {
    ShowLcp::query()?;
    ShowLcpAudit::query()?;
    LcpResync::verb()?;
    Ok(vec![LcpTap::class()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tap(interface: &str) -> LcpTap {
        LcpTap {
            interface: interface.into(),
            host_if: "h".into(),
            netns: None,
            vlan: false,
        }
    }

    #[test]
    fn what_the_kernel_cannot_have_is_refused() {
        let refused = |it: LcpTap| it.instance().map_err(|e| e.field);
        assert!(refused(tap("pg0")).is_ok());
        let host = |host: &str| LcpTap {
            host_if: host.into(),
            ..tap("pg0")
        };
        for bad in ["", "a b", ".", "a/b", "a-name-that-is-too-long"] {
            assert_eq!(refused(host(bad)), Err("host_if"), "{bad}");
        }
        let netns = Some("..".into());
        let bad = LcpTap {
            netns,
            ..tap("pg0")
        };
        assert_eq!(refused(bad), Err("netns"));
        let vlan = |name| LcpTap {
            vlan: true,
            ..tap(name)
        };
        assert_eq!(refused(vlan("pg0")), Err("vlan"));
        assert!(refused(vlan("pg0.7")).is_ok());
        assert_eq!(refused(tap(&"x".repeat(60))), Err("interface"));
    }

    #[test]
    fn a_device_on_the_tap_of_its_parent_needs_that() {
        let found = |it: &LcpTap| {
            let mut all = Vec::new();
            let object = it.instance().unwrap();
            object.references(&mut |class, value, _| all.push(format!("{class} {value}")));
            all
        };
        let vlan = |vlan| LcpTap {
            vlan,
            ..tap("pg0.7")
        };
        assert_eq!(found(&vlan(false)), ["interface pg0.7"]);
        assert_eq!(found(&vlan(true)), ["interface pg0.7", "lcp pg0"]);
    }
}
