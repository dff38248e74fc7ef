//! State of interfaces that Volley and the Linux control plane share.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parent and VLAN tags (IEEE 802.1Q) of a sub-interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SubInterfaceRow {
    /// Name of the parent interface.
    pub parent: String,
    /// Number of the sub-interface, the last part of its name.
    pub id: u32,
    /// Type of the outer tag.
    #[serde(default)]
    pub tag: VlanTag,
    /// The VLAN of the outer tag, 1 to 4094.
    pub vlan: u16,
    /// The VLAN of the inner tag; none = there is no inner tag.
    #[serde(default)]
    pub inner: Option<u16>,
}

/// Type of the outer tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VlanTag {
    /// C-tag (customer), type 0x8100.
    #[default]
    Dot1q,
    /// S-tag (service provider), type 0x88a8.
    Dot1ad,
}

impl SubInterfaceRow {
    /// Name of the sub-interface.
    pub fn name(&self) -> String {
        format!("{}.{}", self.parent, self.id)
    }
}

/// IP tables of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct InterfaceTables {
    /// IPv4 table.
    pub ip4: u32,
    /// IPv6 table.
    pub ip6: u32,
}
