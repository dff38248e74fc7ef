//! Objects and keys of a class that the registry finds by name.

use crate::FieldError;
use crate::class::{Class, Effect};
use crate::instance::{Instance, ObjectKey};
use crate::registry::classes;
use crate::value::Value;

pub(crate) fn class_of(name: &str) -> Result<Class, FieldError> {
    let classes = classes();
    classes.get(name).cloned().ok_or_else(|| FieldError {
        field: "class",
        why: format!("must be registered: {name}"),
    })
}

impl ObjectKey {
    /// The key of an object of the class of this name, from the values of the key fields in order.
    pub fn of_values(
        class: &str,
        values: impl IntoIterator<Item = Value>,
    ) -> Result<ObjectKey, FieldError> {
        let class = class_of(class)?;
        class.key(values.into_iter().collect())
    }

    /// The command that removes the object with this key, in any class of the group.
    pub fn unset_any_command(&self) -> String {
        let classes = classes();
        let group = classes.group_of(self.class()).chain([self.class()]);
        let spelled = group.filter_map(|class| {
            let mut patterns = class.patterns(Effect::UnsetAny).iter();
            patterns.find_map(|p| self.of_class(class).spelled_by(p))
        });
        let spelled = spelled.into_iter().next();
        spelled.unwrap_or_else(|| self.unset_command())
    }
}

impl Instance {
    /// An object of the class of this name, from some of its fields by name; the other fields get their defaults.
    pub fn of_fields(class: &str, fields: &[(&str, Value)]) -> Result<Instance, FieldError> {
        let class = class_of(class)?;
        class.instance(class.slots(fields))
    }

    /// A setting with one value, from the name of its class and the name of the object to which it belongs.
    pub fn of_value(class: &str, owner: &str, value: Value) -> Result<Instance, FieldError> {
        let classes = classes();
        let names = |class: &Class| class.fields().iter().map(|f| f.name).collect::<Vec<_>>();
        let fields = classes.get(class).map(names).unwrap_or_default();
        let values = [Value::text(owner), value];
        let fields: Vec<(&str, Value)> = fields.into_iter().zip(values).collect();
        Instance::of_fields(class, &fields)
    }
}
