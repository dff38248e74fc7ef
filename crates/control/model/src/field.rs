//! Checks of fields of several features.

use std::net::IpAddr;
use volley_object::{FieldError, refuse};

/// Checks that a field is the address of one host.
pub fn one_host(field: &'static str, address: IpAddr) -> Result<(), FieldError> {
    match address.is_multicast() || address.is_unspecified() {
        true => refuse(
            field,
            format!("must be the address of one host, not {address}"),
        ),
        false => Ok(()),
    }
}
