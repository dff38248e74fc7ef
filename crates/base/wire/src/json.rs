//! MAC addresses, prefixes and interface addresses as text in JSON.

use crate::{IfAddress, MacAddr, Prefix};
use alloc::string::String;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Implements serde as text, for types with `FromStr` and `Display`.
macro_rules! as_text {
    ($($t:ty, $name:literal: $text:literal),*) => {$(
        impl Serialize for $t {
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $t {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                String::deserialize(d)?.parse().map_err(D::Error::custom)
            }
        }
        impl JsonSchema for $t {
            fn schema_name() -> alloc::borrow::Cow<'static, str> {
                $name.into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "description": $text })
            }
        }
    )*};
}
as_text!(
    MacAddr, "Mac": "MAC address such as `02:fe:00:00:00:01`.",
    Prefix, "Prefix": "Prefix such as `10.0.0.0/8`, host bits zero.",
    IfAddress, "IfAddress": "Address and subnet length such as `192.0.2.1/24`."
);
