//! What the router and its mirror in the kernel know of interfaces alike.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whose frames a sub-interface takes, and by which VLAN tags (IEEE 802.1Q).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SubInterfaceRow {
    /// The interface whose frames it takes.
    pub parent: String,
    /// Its number, the last part of its name.
    pub id: u32,
    /// What kind of tag the outer one is.
    #[serde(default)]
    pub tag: VlanTag,
    /// The VLAN of the outer tag, 1 to 4094.
    pub vlan: u16,
    /// The VLAN of the second tag; none = there is no second one.
    #[serde(default)]
    pub inner: Option<u16>,
}

/// What kind of tag the outer one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VlanTag {
    /// A customer's tag, type 0x8100.
    #[default]
    Dot1q,
    /// A service provider's tag, type 0x88a8.
    Dot1ad,
}

impl SubInterfaceRow {
    /// What it is called.
    pub fn name(&self) -> String {
        format!("{}.{}", self.parent, self.id)
    }
}

/// Tables of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct InterfaceTables {
    /// IPv4 table.
    pub ip4: u32,
    /// IPv6 table.
    pub ip6: u32,
}
