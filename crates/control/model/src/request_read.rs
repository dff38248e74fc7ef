//! Deserializes requests from JSON, also under their names in earlier versions.

use crate::request::Request;
use serde::de::value::StringDeserializer;
use serde::de::{DeserializeSeed, EnumAccess, Error, IntoDeserializer, VariantAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer, forward_to_deserialize_any};
use serde_json::Value as Json;
use std::fmt::{self, Formatter};
use std::marker::PhantomData;
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
        let error = PhantomData;
        Request::deserialize(Named {
            name,
            content,
            error,
        })
    }
}

/// The content of a request whose name was read.
struct Named<C, E> {
    name: String,
    content: C,
    error: PhantomData<E>,
}

impl<'de, E: Error, C: VariantAccess<'de, Error = E>> Deserializer<'de> for Named<C, E> {
    type Error = E;

    fn deserialize_any<T: Visitor<'de>>(self, visitor: T) -> Result<T::Value, E> {
        visitor.visit_enum(self)
    }

    fn deserialize_enum<T: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: T,
    ) -> Result<T::Value, E> {
        if variants.contains(&self.name.as_str()) {
            return visitor.visit_enum(self);
        }
        let content: Json = self.content.newtype_variant()?;
        let now = of_today(&self.name, &content);
        let now = now.ok_or_else(|| E::unknown_variant(&self.name, variants))?;
        let now = now.map_err(E::custom)?;
        now.deserialize_enum(name, variants, visitor)
            .map_err(E::custom)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct newtype_struct seq
        tuple tuple_struct map struct identifier ignored_any
    }
}

impl<'de, E: Error, C: VariantAccess<'de, Error = E>> EnumAccess<'de> for Named<C, E> {
    type Error = E;
    type Variant = C;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, C), E> {
        let name: StringDeserializer<E> = self.name.into_deserializer();
        Ok((seed.deserialize(name)?, self.content))
    }
}
