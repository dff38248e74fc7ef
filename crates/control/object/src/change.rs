//! Changes of some fields of objects that are there.

use crate::FieldError;
use crate::by_name::class_of;
use crate::class::Class;
use crate::instance::{Instance, ObjectKey};
use crate::json::of_map;
use crate::pattern::spell;
use crate::registry::classes;
use crate::value::Value;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value as Json};
use std::borrow::Cow;
use std::fmt::{self, Display, Formatter};

/// Values for some fields: of the object with the values of the key, or without any of them of all objects of the class.
/// `Display` gives the command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change(Instance);

impl Change {
    /// A change by the values of the fields in order; none = the field stays.
    pub fn new(class: &Class, slots: Vec<Option<Value>>) -> Result<Change, FieldError> {
        let keys = class.keys().len();
        let given = slots.iter().take(keys).flatten().count();
        if let (Some(field), true) = (class.keys().first(), given > 0 && given < keys) {
            return Err(field.error("is one of several values of the key: give all or none"));
        }
        let mut checked = Vec::with_capacity(class.fields().len());
        let mut slots = slots.into_iter();
        for field in class.fields() {
            let value = slots.next().flatten();
            let value = value.map(|value| field.kind.check(&value)).transpose();
            checked.push(value.map_err(|why| field.error(why))?);
        }
        Ok(Change(Instance::new(class.clone(), checked)))
    }

    /// A change of objects of the class of this name, by the names of fields.
    pub fn of_fields(class: &str, fields: &[(&str, Value)]) -> Result<Change, FieldError> {
        let class = class_of(class)?;
        let value = |name: &str| {
            let found = fields.iter().find(|(n, _)| *n == name);
            found.map(|(_, value)| value.clone())
        };
        Change::new(
            &class,
            class.fields().iter().map(|f| value(f.name)).collect(),
        )
    }

    /// The class.
    pub fn class(&self) -> &Class {
        self.0.class()
    }

    /// The key of the only object that is changed; none = all objects of the class are.
    pub fn key(&self) -> Option<ObjectKey> {
        let keys = 0..self.class().keys().len();
        let slots: Vec<_> = keys.map(|at| self.0.slot(at).cloned()).collect();
        let all = slots.iter().all(Option::is_some);
        all.then(|| self.class().key_of_slots(slots).ok()).flatten()
    }

    /// The object as it is changed.
    pub fn of(&self, object: &Instance) -> Result<Instance, FieldError> {
        let slot = |at| self.0.slot(at).or_else(|| object.slot(at)).cloned();
        let fields = 0..self.class().fields().len();
        self.class().instance(fields.map(slot).collect())
    }
}

impl Display for Change {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut patterns = self.class().change_patterns().iter();
        match patterns.find_map(|p| spell(p, &self.0)) {
            Some(command) => f.write_str(&command),
            None => write!(f, "change {}: {}", self.class().noun(), self.0.summary()),
        }
    }
}

impl Serialize for Change {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Change {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let map = Map::deserialize(deserializer)?;
        let class = of_map(&classes(), &map).map_err(D::Error::custom)?;
        let slots = class.slots_of(&map, class.fields());
        let change = Change::new(&class, slots.map_err(D::Error::custom)?);
        change.map_err(D::Error::custom)
    }
}

impl JsonSchema for Change {
    fn schema_name() -> Cow<'static, str> {
        "Change".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let all = classes();
        let changes = all.iter().filter(|c| !c.change_patterns().is_empty());
        let schema = |class: &Class| {
            let mut schema = class.schema(false, true);
            schema["required"] = serde_json::json!(["class"]);
            schema
        };
        let all: Vec<Json> = changes.map(schema).collect();
        json_schema!({ "oneOf": all })
    }
}
