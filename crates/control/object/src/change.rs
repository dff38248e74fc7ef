//! Changes of some fields of existing objects.

use crate::FieldError;
use crate::by_name::class_of;
use crate::class::{Class, Effect};
use crate::instance::{Instance, ObjectKey};
use crate::json::{given, of_json};
use crate::registry::classes;
use crate::value::Value;
use serde::Serialize;
use std::fmt::{self, Display, Formatter};

/// New values for some fields: of the object with the given key, or, without a key, of all objects of the class. `Display`
/// gives the command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change(Instance);

impl Change {
    /// A change by the values of the fields in order; `None`: the field is not changed.
    pub fn new(class: &Class, slots: Vec<Option<Value>>) -> Result<Change, FieldError> {
        let keys = class.keys().len();
        let given = slots.iter().take(keys).flatten().count();
        if let (Some(field), true) = (class.keys().first(), given > 0 && given < keys) {
            return Err(field.error("is one of several values of the key: give all or none"));
        }
        let mut slots = slots.into_iter();
        let checked = class.fields().iter();
        let checked = checked.map(|field| field.checked(slots.next().flatten()));
        let checked = checked.collect::<Result<_, _>>()?;
        Ok(Change(Instance::new(class.clone(), checked)))
    }

    /// A change of objects of the class of this name, by the names of fields.
    pub fn of_fields(class: &str, fields: &[(&str, Value)]) -> Result<Change, FieldError> {
        let class = class_of(class)?;
        Change::new(&class, class.slots(fields))
    }

    /// The class.
    pub fn class(&self) -> &Class {
        self.0.class()
    }

    /// The key of the object to be changed; `None`: all objects of the class are changed.
    pub fn key(&self) -> Option<ObjectKey> {
        let keys = 0..self.class().keys().len();
        let slots: Vec<_> = keys.map(|at| self.0.slot(at).cloned()).collect();
        let all = slots.iter().all(Option::is_some);
        all.then(|| self.class().key_of_slots(slots).ok()).flatten()
    }

    /// The object after the change.
    pub fn of(&self, object: &Instance) -> Result<Instance, FieldError> {
        let slot = |at| self.0.slot(at).or_else(|| object.slot(at)).cloned();
        let fields = 0..self.class().fields().len();
        self.class().instance(fields.map(slot).collect())
    }
}

impl Display for Change {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0.spelled(Effect::Change) {
            Some(command) => f.write_str(&command),
            None => write!(f, "change {}: {}", self.class().noun(), self.0.summary()),
        }
    }
}

of_json!(
    Change,
    "Change",
    |map| {
        let (class, slots) = given(map)?;
        Change::new(&class, slots).map_err(|error| error.to_string())
    },
    || {
        let all = classes();
        let changes = all.iter();
        let changes = changes.filter(|class| !class.patterns(Effect::Change).is_empty());
        let schema = |class: &Class| {
            let mut schema = class.schema(false, true);
            schema["required"] = serde_json::json!(["class"]);
            schema
        };
        changes.map(schema).collect()
    }
);
