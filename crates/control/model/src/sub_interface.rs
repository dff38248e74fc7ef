//! Sub-interfaces: frames of another interface that have certain VLAN tags (IEEE 802.1Q).

use crate::addr::Mac;
use crate::error::ModelError;
use crate::validate::within;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Formatter};
use std::ops::RangeInclusive;

type Check = Result<(), ModelError>;

/// Numbers of VLANs; 0 and 4095 are none.
const VLAN: RangeInclusive<u16> = 1..=4094;

/// A sub-interface. It is called `PARENT.ID`, and takes the frames that have these tags and no others. MAC address, link
/// and promiscuous mode are its parent's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SubInterfaceSpec {
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

impl SubInterfaceSpec {
    /// What it is called.
    pub fn name(&self) -> String {
        format!("{}.{}", self.parent, self.id)
    }

    pub(crate) fn validate(&self, name: &str, mac: Option<Mac>) -> Check {
        if name != self.name() {
            let why = format!(
                "a sub-interface is called after its parent and its number: {}",
                self.name()
            );
            return Err(ModelError::invalid(format!("interface {name}"), why));
        }
        if mac.is_some() {
            let why = format!("it has that of its parent: set that of {}", self.parent);
            return Err(ModelError::invalid(format!("MAC address of {name}"), why));
        }
        within("VLAN", self.vlan, VLAN)?;
        self.inner
            .map_or(Ok(()), |inner| within("inner VLAN", inner, VLAN))
    }
}

impl Display for SubInterfaceSpec {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let tag = match self.tag {
            VlanTag::Dot1q => "dot1q",
            VlanTag::Dot1ad => "dot1ad",
        };
        write!(f, "{} {} {tag} {}", self.parent, self.id, self.vlan)?;
        if let Some(inner) = self.inner {
            write!(f, " inner-dot1q {inner}")?;
        }
        f.write_str(" exact-match")
    }
}
