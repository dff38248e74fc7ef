//! The Linux mirror: interfaces with a twin in the kernel, and what the kernel's routes are handed to the FIB as.

use crate::addr::{Family, Prefix};
use crate::error::{ModelError, ObjectKind};
use crate::kernel::check_host;
use crate::name::check_name;
use crate::request::Request;
use crate::route::{Path, RouteSource};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Formatter};
use volley_object::quote;

/// An interface and its twin: a tap in the kernel with the same MAC address and MTU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LcpTap {
    /// The interface.
    pub interface: String,
    /// Its twin in the kernel.
    pub host: String,
    /// The network namespace of the twin: a name of `ip netns`, a path, or `pid:N`; none = Volley's.
    #[serde(default)]
    pub namespace: Option<String>,
    /// Of a sub-interface: the twin is an 802.1Q device on its parent's twin, not a tap of its own.
    #[serde(default)]
    pub vlan: bool,
}

impl LcpTap {
    /// Volley's end of the twin, an interface of its own.
    pub fn tap(&self) -> String {
        lcp_tap_name(&self.interface)
    }

    /// The interface whose twin this one stands on; none = it stands by itself.
    pub fn parent_tap(&self) -> Option<&str> {
        let parent = self.interface.rsplit_once('.').map(|(parent, _)| parent);
        parent.filter(|_| self.vlan)
    }

    pub(crate) fn validate(&self) -> Result<(), ModelError> {
        check_name(ObjectKind::Interface, &self.interface)?;
        check_name(ObjectKind::Interface, &self.tap())?;
        if self.vlan && self.parent_tap().is_none() {
            let why = "only a sub-interface, called PARENT.NUMBER, has an 802.1Q device on its parent's twin";
            return Err(ModelError::invalid(
                format!("lcp of {}", self.interface),
                why,
            ));
        }
        check_host(&self.host, self.namespace.as_deref())
    }
}

/// Name of Volley's end of the twin of an interface.
pub fn lcp_tap_name(interface: &str) -> String {
    format!("tap-{interface}")
}

impl Display for LcpTap {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (interface, host) = (quote(&self.interface), quote(&self.host));
        write!(f, "lcp create {interface} host-if {host}")?;
        if self.vlan {
            f.write_str(" vlan")?;
        }
        match &self.namespace {
            Some(namespace) => write!(f, " netns {}", quote(namespace)),
            None => Ok(()),
        }
    }
}

/// What becomes of many routes of one source at once. The mirror's own: the command line has no words for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteBatch {
    /// IP version.
    pub family: Family,
    /// IP table.
    pub table: u32,
    /// Whose routes they are.
    pub source: RouteSource,
    /// Sets of paths that the routes name.
    pub sets: Vec<Vec<Path>>,
    /// Prefixes that have the paths of a set from now on; a prefix is named once.
    pub put: Vec<(Prefix, u32)>,
    /// Prefixes whose route goes.
    pub gone: Vec<Prefix>,
}

/// All routes of one source in a table.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct RouteSet {
    /// Sets of paths that the routes name.
    pub sets: Vec<Vec<Path>>,
    /// Prefixes in no order, each with its set.
    pub routes: Vec<(Prefix, u32)>,
}

/// Checks requests of the mirror, and has the path batcher look at any other.
pub(crate) fn validate(request: &Request) -> Result<(), ModelError> {
    match request {
        Request::LcpCreate(pair) => pair.validate(),
        Request::LcpDelete { interface } => check_name(ObjectKind::Interface, interface),
        _ => Ok(()),
    }
}

pub(crate) fn spell(f: &mut Formatter<'_>, request: &Request) -> fmt::Result {
    match request {
        Request::LcpCreate(pair) => write!(f, "{pair}"),
        Request::LcpDelete { interface } => write!(f, "lcp delete {}", quote(interface)),
        _ => f.write_str("lcp resync"),
    }
}
