//! Ports of bridge domains, and learned stations.

use crate::error::{ModelError, ObjectKind};
use crate::limits;
use crate::name::check_name;
use crate::request::Request;
use crate::validate::within;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Formatter};

type Check = Result<(), ModelError>;

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

fn domain(id: u32) -> Check {
    within("bridge domain", id, limits::BRIDGE_DOMAIN)
}

impl BridgePort {
    /// Checks everything that needs no state.
    pub fn validate(&self) -> Check {
        check_name(ObjectKind::Interface, &self.interface)?;
        domain(self.domain)?;
        within("shg", self.shg, 0..=255)
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

/// Checks requests of bridge domains; any other is fine here.
pub(crate) fn validate(request: &Request) -> Check {
    match request {
        Request::BridgePortSet(it) => it.validate(),
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
        Request::BridgePortSet(it) => write!(f, "{it}")?,
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
