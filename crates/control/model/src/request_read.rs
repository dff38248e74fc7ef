//! Deserializes requests from JSON, also under their names in earlier versions.

use crate::request::Request;
use serde::de::value::{EnumAccessDeserializer, StrDeserializer};
use serde::de::{DeserializeSeed, EnumAccess, Error, IntoDeserializer, VariantAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value as Json;
use std::fmt::{self, Formatter};
use volley_object::{BulkReader, of_today};

impl Serialize for Request {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Request::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for Request {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_enum("Request", &[], Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Request;

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("a request: an object with one field, whose name is that of the request")
    }

    fn visit_enum<A: EnumAccess<'de>>(self, data: A) -> Result<Request, A::Error> {
        let (name, content) = data.variant::<String>()?;
        if let Some(reader) = BulkReader::formerly(&name) {
            let bulk = content.newtype_variant_seed(reader)?;
            return Ok(Request::Bulk(Box::new(bulk)));
        }
        let mut content = Some(content);
        let named = Named {
            name: &name,
            content: &mut content,
        };
        let read = Request::deserialize(EnumAccessDeserializer::new(named));
        // No request of today has this name when the content was not read.
        let Some(content) = content else { return read };
        let content: Json = content.newtype_variant()?;
        match of_today(&name, &content) {
            Some(now) => {
                Request::deserialize(now.map_err(A::Error::custom)?).map_err(A::Error::custom)
            }
            None => read,
        }
    }
}

/// A request whose name was read, and its content.
struct Named<'n, C> {
    name: &'n str,
    content: &'n mut Option<C>,
}

impl<'de, C: VariantAccess<'de>> EnumAccess<'de> for Named<'_, C> {
    type Error = C::Error;
    type Variant = C;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, C), C::Error> {
        let name: StrDeserializer<'_, C::Error> = self.name.into_deserializer();
        let name = seed.deserialize(name)?;
        let content = self.content.take();
        Ok((
            name,
            content.ok_or_else(|| C::Error::missing_field("content"))?,
        ))
    }
}
