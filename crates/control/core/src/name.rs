//! Names of objects in sentences, events and differences.

use crate::key::Key;
use std::fmt::{self, Display, Formatter};
use volley_model::ObjectKind;

impl Key {
    /// Kind and name of the object, as in error messages.
    pub fn called(&self) -> (ObjectKind, String) {
        match self {
            Key::Global(key) | Key::Setting(key) | Key::Last(key) => {
                (ObjectKind::Object, key.to_string())
            }
            Key::Bulk(key) => (ObjectKind::Object, key.to_string()),
            Key::Interface(name) => (ObjectKind::Interface, name.clone()),
        }
    }
}

impl Key {
    /// The interruption of traffic when the object changes, or when it is deleted and created again.
    pub(crate) fn interruption(&self) -> String {
        match self {
            Key::Interface(name) => format!(
                "interface {name} is deleted and created again: its traffic stops meanwhile"
            ),
            Key::Setting(it) if !it.class().def().interrupts.is_empty() => it.interruption(),
            other => format!("{other} is deleted and created again: its traffic stops meanwhile"),
        }
    }
}

impl Display for Key {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Key::Interface(name) => write!(f, "interface {name}"),
            other => f.write_str(&other.called().1),
        }
    }
}
