//! Bridge domains: interfaces between which frames are forwarded by MAC address (IEEE 802.1Q).

use crate::addr::Mac;
use crate::error::{ModelError, ObjectKind};
use crate::limits;
use crate::name::check_name;
use crate::request::Request;
use crate::validate::{unicast, within};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Formatter};

type Check = Result<(), ModelError>;

fn yes() -> bool {
    true
}

fn usual_age() -> u32 {
    BridgeDomain::default().mac_age_min
}

fn usual_limit() -> u32 {
    BridgeDomain::default().mac_limit
}

/// A bridge domain: what its ports do with frames.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct BridgeDomain {
    /// Its number, 1..=16777215.
    pub id: u32,
    /// Remember which station is behind which port.
    #[serde(default = "yes")]
    pub learn: bool,
    /// Send frames for groups and everybody out of all other ports.
    #[serde(default = "yes")]
    pub flood: bool,
    /// The same for stations that are not known.
    #[serde(default = "yes")]
    pub uu_flood: bool,
    /// Forward frames for known stations.
    #[serde(default = "yes")]
    pub forward: bool,
    /// Minutes after which a silent station is forgotten; 0 = never.
    #[serde(default = "usual_age")]
    pub mac_age_min: u32,
    /// Stations that are learned at most.
    #[serde(default = "usual_limit")]
    pub mac_limit: u32,
    /// Of the groups 01:80:c2:00:00:00 to :0f those that are flooded all the same, bit 0 the first.
    #[serde(default)]
    pub group_fwd_mask: u32,
}

impl Default for BridgeDomain {
    fn default() -> Self {
        BridgeDomain {
            id: 1,
            learn: true,
            flood: true,
            uu_flood: true,
            forward: true,
            // IEEE 802.1Q, table 8-6.
            mac_age_min: 5,
            mac_limit: 65_536,
            group_fwd_mask: 0,
        }
    }
}

/// A port of a bridge domain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct BridgePort {
    /// Interface.
    pub interface: String,
    /// Bridge domain.
    pub domain: u32,
    /// Split-horizon group: no frame goes from a port to another one of its group; 0 = in none.
    #[serde(default)]
    pub shg: u32,
}

/// A station that is configured: it neither ages nor moves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct L2FibEntry {
    /// Its address.
    pub mac: Mac,
    /// Bridge domain.
    pub domain: u32,
    /// The port behind which it is; none = frames from and for it are dropped (`filter`).
    #[serde(default)]
    pub interface: Option<String>,
}

fn domain(id: u32) -> Check {
    within("bridge domain", id, limits::BRIDGE_DOMAIN)
}

impl BridgeDomain {
    /// Checks everything that needs no state.
    pub fn validate(&self) -> Check {
        domain(self.id)?;
        within("mac-age", self.mac_age_min, limits::MAC_AGE_MIN)?;
        within("mac-limit", self.mac_limit, limits::MAC_LIMIT)?;
        within("group-fwd-mask", self.group_fwd_mask, 0..=0xffff)
    }
}

impl BridgePort {
    /// Checks everything that needs no state.
    pub fn validate(&self) -> Check {
        check_name(ObjectKind::Interface, &self.interface)?;
        domain(self.domain)?;
        within("shg", self.shg, 0..=255)
    }
}

impl L2FibEntry {
    /// Checks everything that needs no state.
    pub fn validate(&self) -> Check {
        domain(self.domain)?;
        let name = self.interface.as_deref();
        name.map_or(Ok(()), |name| check_name(ObjectKind::Interface, name))?;
        unicast(self.mac)
    }
}

impl Display for BridgeDomain {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let usual = BridgeDomain::default();
        write!(f, "bridge-domain add {}", self.id)?;
        for (on, word) in [
            (self.learn, " no-learn"),
            (self.flood, " no-flood"),
            (self.uu_flood, " no-uu-flood"),
            (self.forward, " no-forward"),
        ] {
            f.write_str(if on { "" } else { word })?;
        }
        for (word, value, usual) in [
            ("mac-age", self.mac_age_min, usual.mac_age_min),
            ("mac-limit", self.mac_limit, usual.mac_limit),
            ("group-fwd-mask", self.group_fwd_mask, usual.group_fwd_mask),
        ] {
            if value != usual {
                write!(f, " {word} {value}")?;
            }
        }
        Ok(())
    }
}

impl Display for BridgePort {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "set interface l2 bridge {} {}",
            self.interface, self.domain
        )?;
        if self.shg != 0 {
            write!(f, " shg {}", self.shg)?;
        }
        Ok(())
    }
}

impl Display for L2FibEntry {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "l2fib add {} {}", self.mac, self.domain)?;
        match &self.interface {
            Some(name) => write!(f, " {} static", crate::spell::apart(name)),
            None => f.write_str(" filter"),
        }
    }
}

/// Checks requests of bridge domains; any other is fine here.
pub(crate) fn validate(request: &Request) -> Check {
    match request {
        Request::BridgeDomainSet(it) => it.validate(),
        Request::BridgeDomainDel { id } => domain(*id),
        Request::BridgePortSet(it) => it.validate(),
        Request::L2FibAdd(it) => it.validate(),
        Request::L2FibDel { mac, domain: id } => domain(*id).and_then(|()| unicast(*mac)),
        Request::L2FibFlush {
            interface,
            domain: id,
        } => {
            let name = interface.as_deref();
            name.map_or(Ok(()), |name| check_name(ObjectKind::Interface, name))?;
            id.map_or(Ok(()), domain)
        }
        _ => Ok(()),
    }
}

/// Spells requests of bridge domains; false for any other.
pub(crate) fn spell(request: &Request, f: &mut Formatter<'_>) -> Result<bool, fmt::Error> {
    match request {
        Request::BridgeDomainSet(it) => write!(f, "{it}")?,
        Request::BridgeDomainDel { id } => write!(f, "bridge-domain del {id}")?,
        Request::BridgePortSet(it) => write!(f, "{it}")?,
        Request::L2FibAdd(it) => write!(f, "{it}")?,
        Request::L2FibDel { mac, domain } => write!(f, "l2fib del {mac} {domain}")?,
        Request::L2FibFlush { interface, domain } => {
            f.write_str("l2fib flush-mac")?;
            if let Some(name) = interface {
                write!(f, " interface {name}")?;
            }
            if let Some(id) = domain {
                write!(f, " bridge-domain {id}")?;
            }
        }
        _ => return Ok(false),
    }
    Ok(true)
}
