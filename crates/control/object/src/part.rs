//! Items that lists of objects get or lose.

use crate::FieldError;
use crate::class::{Class, FieldDef};
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

/// Items that lists of an object lose; the whole object where no item is given. `Display` gives the command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part(Instance);

/// What a part takes from an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Left {
    /// This is left.
    Some(Instance),
    /// Nothing is left: the object goes.
    Nothing,
    /// The object does not have this item.
    Missing(String),
}

impl Part {
    /// A part by the values of the fields in order; none = no items.
    pub fn new(class: &Class, slots: Vec<Option<Value>>) -> Result<Part, FieldError> {
        let mut slots = slots.into_iter();
        let mut checked = Vec::with_capacity(class.fields().len());
        for field in class.fields() {
            let value = match slots.next().flatten() {
                Some(value) => Some(field.kind.check(&value).map_err(|why| field.error(why))?),
                None if field.key && field.default.is_none() => {
                    return Err(field.error(format!("is missing: {}", field.help())));
                }
                None => field.default.clone(),
            };
            checked.push(value);
        }
        let whole = Instance::new(class.clone(), checked);
        Ok(Part(whole.normal()))
    }

    /// The class.
    pub fn class(&self) -> &Class {
        self.0.class()
    }

    /// The key of the object.
    pub fn key(&self) -> ObjectKey {
        self.0.key()
    }

    /// The values as those of an object.
    pub fn values(&self) -> &Instance {
        &self.0
    }

    /// What is left of an object.
    pub fn of(&self, object: &Instance) -> Left {
        let (mut taken, mut left) = (false, false);
        let mut slots = object.clone().into_slots();
        for (at, field) in self.class().fields().iter().enumerate() {
            let (Some(Value::List(given)), true) = (self.0.slot(at), field.joined) else {
                continue;
            };
            let mut all = slots[at]
                .as_ref()
                .map_or(Vec::new(), |it| it.elements().to_vec());
            for item in given.iter() {
                let found = all.iter().position(|it| is_same_item(field, it, item));
                let Some(found) = found else {
                    let singular = field.name.strip_suffix('s').unwrap_or(field.name);
                    return Left::Missing(format!("{singular} '{item}'"));
                };
                all.remove(found);
                taken = true;
            }
            left |= !all.is_empty();
            slots[at] = Some(Value::List(all.into()));
        }
        match taken && left {
            true => Left::Some(Instance::new(self.class().clone(), slots)),
            false => Left::Nothing,
        }
    }
}

/// Whether two items have the same key: of a table, the fields that say which item it is.
fn is_same_item(field: &FieldDef, a: &Value, b: &Value) -> bool {
    let (Some(table), Some(one), Some(other)) = (field.kind.table(), a.as_text(), b.as_text())
    else {
        return a == b;
    };
    let key = |text| {
        let fields = (table.fields)().iter().zip((table.values)(text));
        let key = fields.filter(|(field, _)| field.key);
        key.map(|(_, value)| value).collect::<Vec<_>>()
    };
    one == other || key(one) == key(other)
}

impl Instance {
    /// The object with the items that another object of this key has in its lists; of two items with the same key the later
    /// one is kept.
    pub fn joined(&self, before: &Instance) -> Result<Instance, FieldError> {
        let mut slots = self.clone().into_slots();
        for (at, field) in self.class().fields().iter().enumerate() {
            let (true, Some(Value::List(old))) = (field.joined, before.slot(at)) else {
                continue;
            };
            let new = slots[at].take();
            let new = new.as_ref().map_or(&[][..], Value::elements);
            let stays = |item: &&Value| !new.iter().any(|it| is_same_item(field, it, item));
            let all = old.iter().filter(stays).chain(new).cloned().collect();
            slots[at] = Some(Value::List(all));
        }
        self.class().instance(slots)
    }

    /// The object in its normal form.
    pub fn normal(self) -> Instance {
        let normal = self.class().def().normal;
        normal.and_then(|it| it(&self)).unwrap_or(self)
    }
}

impl Display for Part {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut patterns = self.class().take_patterns().iter();
        match patterns.find_map(|p| spell(p, &self.0)) {
            Some(command) => f.write_str(&command),
            None => write!(f, "take {} from {}", self.0.summary(), self.key()),
        }
    }
}

impl Serialize for Part {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let map = Map::deserialize(deserializer)?;
        let class = of_map(&classes(), &map).map_err(D::Error::custom)?;
        let slots = class.slots_of(&map, class.fields());
        let part = Part::new(&class, slots.map_err(D::Error::custom)?);
        part.map_err(D::Error::custom)
    }
}

impl JsonSchema for Part {
    fn schema_name() -> Cow<'static, str> {
        "Part".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let all = classes();
        let parts = all.iter().filter(|class| class.joins());
        let all: Vec<Json> = parts.map(|class| class.schema(false, true)).collect();
        json_schema!({ "oneOf": all })
    }
}
