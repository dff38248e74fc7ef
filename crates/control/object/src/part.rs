//! Items that are added to lists of objects or removed from them.

use crate::FieldError;
use crate::class::{Class, Effect};
use crate::field::FieldDef;
use crate::instance::{Instance, ObjectKey};
use crate::json::{given, of_json};
use crate::registry::classes;
use crate::value::Value;
use serde::Serialize;
use std::fmt::{self, Display, Formatter};

/// Items to remove from the lists of an object; without items, the whole object is removed. `Display` gives the command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Part(Instance);

/// The result of removing items from an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Left {
    /// The remaining object.
    Some(Instance),
    /// No value remains: the object is removed.
    Nothing,
    /// The object does not have this item.
    Missing(String),
}

impl Part {
    /// A part by the values of the fields in order; `None`: no items.
    pub fn new(class: &Class, slots: Vec<Option<Value>>) -> Result<Part, FieldError> {
        let mut slots = slots.into_iter();
        let value = |field: &FieldDef| {
            let given = slots.next().flatten();
            match field.key {
                true => field.value_of(given).map(Some),
                false => Ok(field.checked(given)?.or_else(|| field.default.clone())),
            }
        };
        let checked = class.fields().iter().map(value);
        let checked = checked.collect::<Result<_, FieldError>>()?;
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

    /// The values, as an object.
    pub fn values(&self) -> &Instance {
        &self.0
    }

    /// Removes the items from an object.
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

/// Whether two items have the same key: for tables, the fields that identify an item.
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
    /// The object merged with the list items of another object with this key; of two items with the same key the later one is
    /// kept.
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
        match self.0.spelled(Effect::Take) {
            Some(command) => f.write_str(&command),
            None => write!(f, "take {} from {}", self.0.summary(), self.key()),
        }
    }
}

of_json!(
    Part,
    "Part",
    |map| {
        let (class, slots) = given(map)?;
        Part::new(&class, slots).map_err(|error| error.to_string())
    },
    || {
        let all = classes();
        let parts = all.iter().filter(|class| class.joins());
        parts.map(|class| class.schema(false, true)).collect()
    }
);
