//! Objects in JSON: one flat map of the class and all fields.

use crate::class::Class;
use crate::field::FieldDef;
use crate::instance::{Instance, ObjectKey};
use crate::kind::Kind;
use crate::registry::{Classes, classes};
use crate::table::slots_of;
use crate::value::{Value, shown};
use schemars::{Schema, json_schema};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value as Json};

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
    /// A value from JSON; `None` when no field can have such a value.
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
        self.serialize_as("class", serializer)
    }
}

impl Instance {
    /// Serializes as one flat map that begins with the name of the class, under the key `tag`.
    pub(crate) fn serialize_as<S: Serializer>(
        &self,
        tag: &'static str,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry(tag, self.class().name())?;
        for (at, field) in self.class().fields().iter().enumerate() {
            match self.slot(at) {
                Some(value) if field.kind.table().is_some() => {
                    map.serialize_entry(field.name, &field.kind.to_json(value))?;
                }
                Some(value) => map.serialize_entry(field.name, value)?,
                None => {}
            }
        }
        map.end()
    }

    /// The object in another version of its class: fields that the version adds get their defaults. An error, one sentence, when
    /// a value does not fit or the version has no field for it.
    pub fn carried_over(&self, class: &Class) -> Result<Instance, String> {
        let key = self.key();
        let Ok(Json::Object(mut map)) = serde_json::to_value(self) else {
            return Err(format!("{key} has no JSON"));
        };
        for (at, field) in self.class().fields().iter().enumerate() {
            if class.fields().iter().any(|it| it.name == field.name) {
                continue;
            }
            if field.key || self.is_set(at) {
                let field = field.dashed();
                return Err(format!(
                    "{key} has a value of {field}, which the new version does not have: reset it first"
                ));
            }
            map.remove(field.name);
        }
        let carried = class.from_json(&map);
        carried.map_err(|why| format!("{key} does not fit the new version: {why}"))
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
    /// The values of fields from a JSON map in which the name of the class is the key `tag`, or absent. An error is one sentence
    /// that names the field.
    pub(crate) fn slots_of(
        &self,
        tag: Option<&str>,
        map: &Map<String, Json>,
        fields: &[FieldDef],
    ) -> Result<Vec<Option<Value>>, String> {
        let of = format!(" of {}", self.noun());
        slots_of(map, fields, tag, ("", &of))
    }

    /// An object from a JSON map, with or without `class`.
    pub fn from_json(&self, map: &Map<String, Json>) -> Result<Instance, String> {
        let slots = self.slots_of(Some("class"), map, self.fields())?;
        self.instance(slots).map_err(|e| e.to_string())
    }

    /// A key from a JSON map, with or without `class`.
    pub fn key_from_json(&self, map: &Map<String, Json>) -> Result<ObjectKey, String> {
        let slots = self.slots_of(Some("class"), map, self.keys())?;
        self.key_or_group(slots).map_err(|e| e.to_string())
    }

    /// The JSON Schema of an object; `key`: only of its key; `class`: with the field `class`.
    pub fn schema(&self, key: bool, class: bool) -> Json {
        let fields = if key { self.keys() } else { self.fields() };
        self.schema_of(fields, class.then_some("class"))
    }

    /// The JSON Schema of a map of fields, optionally with the name of the class under the key `tag`.
    pub(crate) fn schema_of(&self, fields: &[FieldDef], tag: Option<&'static str>) -> Json {
        let mut properties = Map::new();
        let mut required = Vec::new();
        if let Some(tag) = tag {
            let named = serde_json::json!({ "const": self.name() });
            properties.insert(tag.to_owned(), named);
            required.push(tag);
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
            let default = self.default.as_ref().map(|it| self.kind.to_json(it));
            if let Some(default) = default {
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
            Kind::Number { min, max, .. } => {
                serde_json::json!({ "type": "integer", "minimum": min, "maximum": max })
            }
            Kind::Choice(all) => {
                let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
                serde_json::json!({ "type": "string", "enum": names })
            }
            Kind::Text(text) if let Some(table) = text.table => {
                let property = |field: &FieldDef| (field.name.to_owned(), field.schema());
                let properties: Map<String, Json> = (table.fields)().iter().map(property).collect();
                serde_json::json!({
                    "type": "object",
                    "title": text.noun,
                    "properties": properties,
                    "additionalProperties": false,
                })
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

/// The object of a request in the format of an earlier version: `{"interface-lamp": {"name": "pg0"}}`. `None` if no class had
/// such requests.
fn former(all: &Classes, name: &str, content: &Json) -> Option<Result<Instance, String>> {
    let had = |class: &&Class| had_name(class, name) && !class.is_interface();
    let class = all.iter().filter(|_| !name.is_empty()).find(had)?;
    Some(class.from_json(&of_before(class, content.as_object()?)))
}

/// Converts a request of an earlier version to the current JSON, by the class that can convert it, see
/// [`crate::ClassDef::upgrade`], or by the verb that replaced it.
fn upgrade(all: &Classes, name: &str, content: &Json) -> Option<Json> {
    let mut upgrades = all.iter().filter_map(|class| class.def().upgrade);
    let upgraded = upgrades.find_map(|upgrade| upgrade(name, content));
    upgraded.or_else(|| {
        let mut verbs = all.verbs().filter(|_| !name.is_empty());
        let verb = verbs.find(|verb| had_name(verb.class(), name))?;
        let mut invocation = content.as_object()?.clone();
        invocation.insert("verb".to_owned(), verb.name().into());
        Some(serde_json::json!({ "do": invocation }))
    })
}

/// The current request in JSON for a request of earlier versions; `None` if there was no such request.
pub fn of_today(name: &str, content: &Json) -> Option<Result<Json, String>> {
    let all = classes();
    if let Some(now) = upgrade(&all, name, content) {
        return Some(Ok(now));
    }
    let object = former(&all, name, content)?;
    let set = |object: Instance| serde_json::json!({ "set": object });
    Some(object.map(set))
}

fn had_name(class: &Class, name: &str) -> bool {
    class.def().formerly.split(' ').next() == Some(name)
}

/// The type and fields of an interface in JSON, without its name: `{"class": "lamp", "bulbs": 3}`.
pub fn interface_to_json(interface: &Instance) -> Json {
    let mut map = Map::new();
    map.insert("class".to_owned(), interface.class().name().into());
    for (at, field) in interface.class().fields().iter().enumerate().skip(1) {
        let value = interface
            .slot(at)
            .filter(|_| !field.request || interface.is_set(at));
        if let Some(value) = value.map(|value| field.kind.to_json(value)) {
            map.insert(field.name.to_owned(), value);
        }
    }
    map.into()
}

/// The JSON Schema of the results of [`interface_to_json`], for all types of interfaces.
pub fn interface_schema() -> Schema {
    let all = classes();
    let all = all.interfaces().into_iter();
    let all: Vec<Json> = all
        .map(|class| class.schema_of(class.values(), Some("class")))
        .collect();
    json_schema!({ "oneOf": all })
}

/// The interface with a name, from the format of [`interface_to_json`] or of earlier versions: `{"lamp": {"bulbs": 3}}`, or
/// `"lamp"`.
pub fn interface_from_json(name: &str, json: &Json) -> Result<Instance, String> {
    let all = classes();
    let before = |kind: &str| {
        let found = all.iter().find(|c| c.is_interface() && had_name(c, kind));
        found.cloned().ok_or_else(|| {
            let known = all.interfaces();
            let known: Vec<&str> = known.iter().map(|class| class.name()).collect();
            unknown(("kind", " of interfaces"), kind, &known)
        })
    };
    let (class, mut fields) = match json {
        Json::Object(map) if map.contains_key("class") => {
            let class = of_map(&all, map)?;
            if !class.is_interface() {
                return Err(format!("{} is no kind of interfaces", class.noun()));
            }
            (class, map.clone())
        }
        Json::Object(map) if map.len() == 1 => {
            let (kind, fields) = map.iter().next().unzip();
            let class = before(kind.map_or("", String::as_str))?;
            let fields = fields.and_then(Json::as_object);
            let fields = fields.map(|fields| of_before(&class, fields));
            (class, fields.unwrap_or_default())
        }
        Json::String(kind) => (before(kind)?, Map::new()),
        _ => return Err("kind must be an object with the field `class`".to_owned()),
    };
    let key = class.fields().first().map_or("name", |field| field.name);
    if fields
        .insert(key.to_owned(), name.into())
        .is_some_and(|it| it != name)
    {
        return Err(format!("{key} must be {name}, as the interface is called"));
    }
    class.from_json(&fields)
}

/// Converts the fields of an object from those of earlier versions. Words of `formerly` after the first: `old=new`;
/// `old.word=new` for a value `{"word": value}`; `old@other.word=new` where another field has the value `word`; `old=` drops a
/// field.
fn of_before(class: &Class, fields: &Map<String, Json>) -> Map<String, Json> {
    let words = || class.def().formerly.split(' ').skip(1);
    let rules = || words().filter_map(|word| word.split_once('='));
    let mut converted = Map::new();
    for (old, value) in fields {
        let applies = |rule: &str| match (rule.split_once('@'), rule.split_once('.')) {
            (Some((field, condition)), _) => {
                let (other, word) = condition.split_once('.').unwrap_or_default();
                (field == old && fields.get(other)? == word).then_some(value)
            }
            (None, Some((field, word))) => value.get(word).filter(|_| field == old),
            (None, None) => (rule == old).then_some(value),
        };
        let found = rules().find_map(|(rule, new)| Some((new, applies(rule)?)));
        let (new, value) = found.unwrap_or((old, value));
        let is_bool = class
            .field(new)
            .is_some_and(|(_, f)| matches!(f.kind, Kind::Bool));
        let value = match value.as_str() {
            Some("on") if is_bool => true.into(),
            Some("off") if is_bool => false.into(),
            _ => value.clone(),
        };
        if !new.is_empty() {
            converted.insert(new.to_owned(), value);
        }
    }
    converted
}

/// The class that a map names.
pub(crate) fn of_map(all: &Classes, map: &Map<String, Json>) -> Result<Class, String> {
    let Some(Json::String(name)) = map.get("class") else {
        return Err("`class` must be the name of a class of objects".to_owned());
    };
    all.get(name).cloned().ok_or_else(|| {
        let known: Vec<&str> = all.iter().map(Class::name).collect();
        unknown(("class", " of objects"), name, &known)
    })
}

/// One sentence: the name does not exist, and which names exist.
pub(crate) fn unknown((what, of): (&str, &str), name: &str, known: &[&str]) -> String {
    let (shown, known) = (shown(name), known.join(", "));
    format!("there is no {what} '{shown}'{of}; there are: {known}")
}

/// The class that a map names, and the values of its fields.
pub(crate) fn given(map: &Map<String, Json>) -> Result<(Class, Vec<Option<Value>>), String> {
    let class = of_map(&classes(), map)?;
    let slots = class.slots_of(Some("class"), map, class.fields())?;
    Ok((class, slots))
}

/// Deserialization of a map with the name of a class, and the schemas of all such maps.
macro_rules! of_json {
    ($ty:ty, $name:literal, $read:expr, $schemas:expr) => {
        impl<'de> ::serde::Deserialize<'de> for $ty {
            fn deserialize<D: ::serde::Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
                type Map = ::serde_json::Map<String, ::serde_json::Value>;
                let read: fn(&Map) -> Result<$ty, String> = $read;
                read(&Map::deserialize(json)?).map_err(::serde::de::Error::custom)
            }
        }
        impl ::schemars::JsonSchema for $ty {
            fn schema_name() -> ::std::borrow::Cow<'static, str> {
                $name.into()
            }
            fn json_schema(_: &mut ::schemars::SchemaGenerator) -> ::schemars::Schema {
                let all: Vec<::serde_json::Value> = $schemas();
                ::schemars::json_schema!({ "oneOf": all })
            }
        }
    };
}
pub(crate) use of_json;

of_json!(
    Instance,
    "Object",
    |map| of_map(&classes(), map)?.from_json(map),
    || schemas(false)
);
of_json!(
    ObjectKey,
    "ObjectKey",
    |map| of_map(&classes(), map)?.key_from_json(map),
    || schemas(true)
);

/// The schemas of the objects of all classes except interfaces, or of their keys.
fn schemas(key: bool) -> Vec<Json> {
    let all = classes();
    let all = all.iter().filter(|class| !class.is_interface());
    all.map(|class| class.schema(key, true)).collect()
}
