//! Types of the model as types of fields of objects.

use crate::{Family, IfAddress, Mac, Prefix};
use std::net::IpAddr;
use volley_object::{FieldError, refuse, text_field};

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

text_field!(
    Mac,
    "a MAC address",
    Mac,
    ["02:fe:00:00:00:01", "02:fe:00:00:00:02"]
);
text_field!(Prefix, "a prefix", Prefix, ["10.0.0.0/8", "2001:db8::/32"]);
text_field!(
    IfAddress,
    "an address with its prefix length",
    Prefix,
    ["192.0.2.1/24", "2001:db8::1/64"]
);

impl volley_object::Choice for Family {
    const ALL: &'static [(&'static str, &'static str, Self)] =
        &[("ip4", "IPv4", Family::V4), ("ip6", "IPv6", Family::V6)];
}

impl volley_object::FieldType for Family {
    fn kind() -> volley_object::Kind {
        volley_object::choice_kind::<Self>()
    }

    fn from_value(value: &volley_object::Value) -> Option<Self> {
        volley_object::choice_from(value)
    }

    fn to_value(&self) -> volley_object::Value {
        volley_object::choice_value(self)
    }
}
