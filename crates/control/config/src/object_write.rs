//! Writes objects of registered classes into the file; defaults are omitted.

use crate::keys::{Keys, list, quoted};
use crate::object::plain;
use toml_writer::{ToTomlKey, TomlKeyBuilder};
use volley_object::{Class, FieldDef, Instance, Place, TextTable, Value};

/// A part of the file, by its position.
pub(crate) enum Written {
    /// Before the interfaces.
    First(String),
    /// After the interfaces.
    Rest(String),
    /// Into `[[interface]]`: the interface, the key, the value.
    Interface(String, &'static str, String),
    /// Like `Interface`, for a value that combines several objects: whether the value is a list, and one entry.
    Gathered(String, &'static str, bool, String),
    /// The file format cannot express the object.
    Wordless,
}

/// An object as a part of the file.
pub(crate) fn written(object: &Instance) -> Written {
    let class = object.class();
    let keys = class.keys().len();
    let by_place = |text| match class.refers() {
        true => Written::Rest(text),
        false => Written::First(text),
    };
    let owner = || object.slot(0).map(Value::to_string).unwrap_or_default();
    match class.def().file {
        Place::None => Written::Wordless,
        _ if object.key().is_unsaved() => Written::Wordless,
        Place::Table(name) => by_place(format!("\n[{name}]\n{}", lines(object, 0).lines())),
        Place::List(name) => by_place(format!("\n[[{name}]]\n{}", lines(object, 0).lines())),
        Place::Map(name) => {
            let key = toml_key(object.slot(0));
            by_place(format!("\n[{name}.{key}]\n{}", lines(object, 1).lines()))
        }
        Place::Interface(name) => Written::Interface(owner(), name, inner(object)),
        Place::InterfaceMap(name) => {
            let entry = format!("{} = {}", toml_key(object.slot(1)), inner(object));
            Written::Gathered(owner(), name, false, entry)
        }
        Place::InterfaceList(name) => {
            let entry = match (plain(class), object.slot(1)) {
                (Some(_), Some(only)) => text(only),
                _ => lines(object, keys.min(1)).braces(),
            };
            Written::Gathered(owner(), name, true, entry)
        }
    }
}

/// Whether the file expresses an object by omission: see `in_file` of the definition of its field.
pub(crate) fn is_unsaid(object: &Instance) -> bool {
    let value = object.class().values().first();
    let in_file = value.and_then(|field| field.in_file.as_ref());
    in_file.is_some() && in_file == object.slot(object.class().keys().len())
}

/// The key and the value for an interface without an object of a class, if omission means another value.
pub(crate) fn written_without(class: &Class) -> Option<(&'static str, String)> {
    let Place::Interface(key) = class.def().file else {
        return None;
    };
    let value = class.values().first().filter(|it| it.in_file.is_some())?;
    Some((key, text(value.default.as_ref()?)))
}

/// A key value as a TOML key.
fn toml_key(value: Option<&Value>) -> String {
    let text = value.map(Value::to_string).unwrap_or_default();
    let key = TomlKeyBuilder::new(&text);
    let bare = key.as_unquoted();
    bare.unwrap_or_else(|| key.as_basic()).to_toml_key()
}

/// The fields from `first` on that are part of the key or differ from their defaults.
pub(crate) fn lines(object: &Instance, first: usize) -> Keys {
    let mut keys = Keys::default();
    for (at, field) in object.class().fields().iter().enumerate().skip(first) {
        if let Some(value) = object
            .slot(at)
            .filter(|_| field.is_essential() || object.is_set(at) && !field.request)
        {
            match (field.kind.table(), value.elements()) {
                (Some(table), [Value::Text(one)]) if field.inline => {
                    keys.extend(keys_of(table, one))
                }
                _ => keys.plain(field.name, text_of(field, value)),
            }
        }
    }
    keys
}

/// The fields after the key: one value if the others have their defaults, or an inline table.
fn inner(object: &Instance) -> String {
    let class = object.class();
    let keys = class.keys().len();
    let plain = plain(class).and_then(|only| class.field(only.name));
    let is_set = |at: usize| object.is_set(at) && plain.is_none_or(|(only, _)| only != at);
    let alone = !(keys..class.fields().len()).any(is_set);
    match plain.and_then(|(at, _)| object.slot(at)) {
        Some(value) if alone => text(value),
        _ => lines(object, keys).braces(),
    }
}

/// The value of a field as TOML.
fn text_of(field: &FieldDef, value: &Value) -> String {
    match (field.kind.table(), value) {
        (Some(_), Value::List(all)) => list(all.iter().map(|one| text_of(field, one))),
        (Some(table), Value::Text(one)) => keys_of(table, one).braces(),
        _ => text(value),
    }
}

/// The keys of a text that the file writes as a table.
pub(crate) fn keys_of(table: &TextTable, one: &str) -> Keys {
    let mut keys = Keys::default();
    for (field, value) in (table.fields)().iter().zip((table.values)(one)) {
        if let Some(value) = value {
            keys.plain(field.name, text(&value));
        }
    }
    keys
}

fn text(value: &Value) -> String {
    match value {
        Value::Bool(it) => it.to_string(),
        Value::Number(it) => it.to_string(),
        Value::Text(it) => quoted(it),
        Value::List(all) => list(all.iter().map(text)),
    }
}
