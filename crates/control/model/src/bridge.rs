//! Learned stations of bridge domains.

use crate::error::{ModelError, ObjectKind};
use crate::limits;
use crate::name::check_name;
use crate::request::Request;
use crate::validate::within;
use std::fmt::{self, Formatter};

/// Checks requests about learned stations; any other is fine here.
pub(crate) fn validate(request: &Request) -> Result<(), ModelError> {
    match request {
        Request::L2FibFlush {
            interface,
            domain: id,
        } => {
            let name = interface.as_deref();
            name.map_or(Ok(()), |name| check_name(ObjectKind::Interface, name))?;
            id.map_or(Ok(()), |id| {
                within("bridge domain", id, limits::BRIDGE_DOMAIN)
            })
        }
        _ => Ok(()),
    }
}

/// Spells requests about learned stations; false for any other.
pub(crate) fn spell(request: &Request, f: &mut Formatter<'_>) -> Result<bool, fmt::Error> {
    match request {
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
