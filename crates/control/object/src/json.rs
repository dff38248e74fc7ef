//! Objects in JSON: the class and all fields in one flat map.

use crate::class::{Class, FieldDef};
use crate::instance::{Instance, ObjectKey};
use crate::kind::Kind;
use crate::registry::{Classes, classes};
use crate::value::Value;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value as Json};
use std::borrow::Cow;

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Bool(it) => serializer.serialize_bool(*it),
            Value::Number(it) => serializer.serialize_u64(*it),
            Value::Text(it) => serializer.serialize_str(it),
            Value::List(all) => serializer.collect_seq(all.iter()),
        }
    }
}

impl Value {
    /// A value from JSON; none when no field can hold it.
    pub fn from_json(json: &Json) -> Option<Value> {
        Some(match json {
            Json::Bool(it) => Value::Bool(*it),
            Json::Number(it) => Value::Number(it.as_u64()?),
            Json::String(it) => Value::text(it),
            Json::Array(all) => {
                let all: Option<Vec<Value>> = all.iter().map(Value::from_json).collect();
                Value::List(all?.into())
            }
            Json::Null | Json::Object(_) => return None,
        })
    }
}

impl Serialize for Instance {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("class", self.class().name())?;
        for (at, field) in self.class().fields().iter().enumerate() {
            if let Some(value) = self.slot(at) {
                map.serialize_entry(field.name, value)?;
            }
        }
        map.end()
    }
}

impl Serialize for ObjectKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("class", self.class().name())?;
        for (field, value) in self.class().keys().iter().zip(self.values()) {
            map.serialize_entry(field.name, value)?;
        }
        map.end()
    }
}

impl Class {
    /// The values of fields from a JSON map. An error is one sentence that names the field.
    pub fn slots_of(
        &self,
        map: &Map<String, Json>,
        fields: &[FieldDef],
    ) -> Result<Vec<Option<Value>>, String> {
        let allowed = || {
            let names: Vec<&str> = fields.iter().map(|f| f.name).collect();
            names.join(", ")
        };
        for key in map.keys().filter(|key| *key != "class") {
            if !fields.iter().any(|f| f.name == key) {
                let shown: String = key.chars().take(64).collect();
                let (shown, noun) = (shown.escape_debug(), self.noun());
                return Err(format!(
                    "unknown field `{shown}` of {noun}, expected one of {}",
                    allowed()
                ));
            }
        }
        let slot = |field: &FieldDef| match map.get(field.name) {
            None | Some(Json::Null) => Ok(None),
            Some(json) => {
                let wrong = || format!("{} must be {}", field.name, field.kind.describe());
                Value::from_json(json).map(Some).ok_or_else(wrong)
            }
        };
        fields.iter().map(slot).collect()
    }

    /// An object from a JSON map, with or without `class`.
    pub fn from_json(&self, map: &Map<String, Json>) -> Result<Instance, String> {
        let slots = self.slots_of(map, self.fields())?;
        self.instance(slots).map_err(|e| e.to_string())
    }

    /// A key from a JSON map, with or without `class`.
    pub fn key_from_json(&self, map: &Map<String, Json>) -> Result<ObjectKey, String> {
        let slots = self.slots_of(map, self.keys())?;
        self.key_of_slots(slots).map_err(|e| e.to_string())
    }

    /// The JSON Schema of an object; `key`: of its key only; `class`: with the field `class`.
    pub fn schema(&self, key: bool, class: bool) -> Json {
        let fields = if key { self.keys() } else { self.fields() };
        let mut properties = Map::new();
        let mut required = Vec::new();
        if class {
            let named = serde_json::json!({ "const": self.name() });
            properties.insert("class".to_owned(), named);
            required.push("class");
        }
        for field in fields {
            properties.insert(field.name.to_owned(), field.schema());
            if field.required() {
                required.push(field.name);
            }
        }
        serde_json::json!({
            "type": "object",
            "title": self.noun(),
            "description": self.doc(),
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        })
    }
}

impl FieldDef {
    /// The JSON Schema of the field.
    pub fn schema(&self) -> Json {
        let mut schema = self.kind.schema();
        if let Json::Object(map) = &mut schema {
            let doc = match self.unit {
                "" => self.doc.to_owned(),
                unit => format!("{} In {unit}.", self.doc),
            };
            map.insert("description".to_owned(), doc.into());
            let default = self.default.as_ref().map(serde_json::to_value);
            if let Some(Ok(default)) = default {
                map.insert("default".to_owned(), default);
            }
        }
        schema
    }
}

impl Kind {
    fn schema(&self) -> Json {
        match self {
            Kind::Bool => serde_json::json!({ "type": "boolean" }),
            Kind::Number { min, max } => {
                serde_json::json!({ "type": "integer", "minimum": min, "maximum": max })
            }
            Kind::Choice(all) => {
                let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
                serde_json::json!({ "type": "string", "enum": names })
            }
            Kind::Text(text) if text.shape.is_any() => {
                serde_json::json!({ "type": "string" })
            }
            Kind::Text(text) => {
                serde_json::json!({ "type": "string", "examples": text.samples })
            }
            Kind::List(inner) => {
                serde_json::json!({ "type": "array", "items": inner.schema() })
            }
        }
    }
}

/// The object of a request as an earlier version wrote it: `{"interface-lamp": {"name": "pg0"}}`. None where no class had such
/// requests.
pub fn formerly(json: &[u8]) -> Option<Result<Instance, String>> {
    let request: Map<String, Json> = serde_json::from_slice(json).ok()?;
    let (name, fields) = request.iter().next().filter(|_| request.len() == 1)?;
    let all = classes();
    let had = |class: &&Class| class.def().formerly.split(' ').next() == Some(name);
    let class = all.iter().filter(|_| !name.is_empty()).find(had)?;
    let renamed = |old: &String| {
        let words = class.def().formerly.split(' ').skip(1);
        let mut pairs = words.filter_map(|word| word.split_once('='));
        let new = pairs.find(|(from, _)| from == old).map(|(_, to)| to);
        Some(new.unwrap_or(old).to_owned()).filter(|new| !new.is_empty())
    };
    let fields = fields.as_object()?.iter();
    let fields = fields.filter_map(|(field, value)| Some((renamed(field)?, value.clone())));
    Some(class.from_json(&fields.collect()))
}

/// The class that a map names.
fn class_of(all: &Classes, map: &Map<String, Json>) -> Result<Class, String> {
    let Some(Json::String(name)) = map.get("class") else {
        return Err("`class` must be the name of a class of objects".to_owned());
    };
    all.get(name).cloned().ok_or_else(|| {
        let shown: String = name.chars().take(64).collect();
        let known: Vec<&str> = all.iter().map(Class::name).collect();
        let (shown, known) = (shown.escape_debug(), known.join(", "));
        format!("there is no class '{shown}' of objects; there are: {known}")
    })
}

impl<'de> Deserialize<'de> for Instance {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let map = Map::deserialize(deserializer)?;
        let class = class_of(&classes(), &map).map_err(D::Error::custom)?;
        class.from_json(&map).map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for ObjectKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let map = Map::deserialize(deserializer)?;
        let class = class_of(&classes(), &map).map_err(D::Error::custom)?;
        class.key_from_json(&map).map_err(D::Error::custom)
    }
}

fn one_of(key: bool) -> Schema {
    let all = classes();
    let all: Vec<Json> = all.iter().map(|class| class.schema(key, true)).collect();
    json_schema!({ "oneOf": all })
}

impl JsonSchema for Instance {
    fn schema_name() -> Cow<'static, str> {
        "Object".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        one_of(false)
    }
}

impl JsonSchema for ObjectKey {
    fn schema_name() -> Cow<'static, str> {
        "ObjectKey".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        one_of(true)
    }
}
