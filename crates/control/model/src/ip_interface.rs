//! What an interface does with IP packets beyond forwarding them, and how paths share flows; all of it is off unless somebody
//! asks for it.

use crate::error::ModelError;
use crate::interface::Switch;
use crate::limits;
use crate::validate::within;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Formatter};

/// How the sources of received packets are checked (reverse path forwarding, RFC 3704 and RFC 8704).
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Urpf {
    /// A route to the source leads out of the receiving interface.
    Strict,
    /// A route to the source leads anywhere.
    Loose,
}

impl Urpf {
    /// Both, by the words for them.
    pub const ALL: [(&'static str, Urpf); 2] = [("strict", Urpf::Strict), ("loose", Urpf::Loose)];
}

impl Display for Urpf {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Urpf::Strict => "strict",
            Urpf::Loose => "loose",
        })
    }
}

/// What an interface does, or does not.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum IpSwitch {
    /// Packets from elsewhere to the broadcast address of its networks are sent to all hosts there (RFC 2644).
    DirectedBroadcast,
    /// Senders on it are told of a better first hop (RFC 1812, 5.2.7.2; RFC 4861, 8.2).
    Redirects,
    /// Fragments of datagrams in transit that come in by it are treated as other packets of their flow.
    VirtualReassembly,
}

impl IpSwitch {
    /// All, by the words for them.
    pub const ALL: [(&'static str, IpSwitch); 3] = [
        ("directed-broadcast", IpSwitch::DirectedBroadcast),
        ("redirects", IpSwitch::Redirects),
        ("virtual-reassembly", IpSwitch::VirtualReassembly),
    ];
}

impl Display for IpSwitch {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            IpSwitch::DirectedBroadcast => "directed-broadcast",
            IpSwitch::Redirects => "redirects",
            IpSwitch::VirtualReassembly => "virtual-reassembly",
        })
    }
}

/// How the flows of a route are shared out among its paths. What a request does not name gets its default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Multipath {
    /// On: when a path goes, flows of the others stay where they are, and when it returns as few as can be move to it.
    pub resilient: Switch,
    /// Buckets of a resilient route, a power of two.
    pub buckets: u32,
}

impl Default for Multipath {
    fn default() -> Self {
        Multipath {
            resilient: Switch::Off,
            buckets: 256,
        }
    }
}

impl Multipath {
    pub(crate) fn validate(&self) -> Result<(), ModelError> {
        within("buckets", self.buckets, limits::MULTIPATH_BUCKETS)?;
        if self.buckets.is_power_of_two() {
            return Ok(());
        }
        Err(ModelError::invalid(
            format!("buckets {}", self.buckets),
            "it is no power of two",
        ))
    }
}

impl Display for Multipath {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let usual = Multipath::default();
        if self.resilient != usual.resilient {
            f.write_str(" resilient")?;
        }
        if self.buckets != usual.buckets {
            write!(f, " buckets {}", self.buckets)?;
        }
        Ok(())
    }
}
