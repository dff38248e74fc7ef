//! Texts that are tables of fields in the file and in JSON.

use crate::FieldError;
use crate::kind::Kind;
use crate::value::{Value, shown};
use serde_json::{Map, Value as Json};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ptr;

/// The syntax of a text that is a table in the file and in JSON, and several words on the command line.
#[derive(Clone, Copy, Debug)]
pub struct TextTable {
    /// The fields of the table.
    pub fields: fn() -> &'static [TableField],
    /// Writes a table as text, from the values of its fields in order.
    pub text: fn(&[Option<Value>]) -> Result<String, FieldError>,
    /// Parses a text in normal form to the values of the fields.
    pub values: fn(&str) -> Vec<Option<Value>>,
    /// Words with which a text begins on the command line, so that several texts can follow each other. The first of them may
    /// precede each of the others.
    pub begins: &'static [&'static str],
}

/// A field of such a table.
#[derive(Clone, Debug)]
pub struct TableField {
    /// Name of the field in the file and in JSON.
    pub name: &'static str,
    /// Meaning of the field.
    pub doc: &'static str,
    /// Type of the value.
    pub kind: Kind,
    /// The class of the referenced objects, which cannot be removed while the field names them.
    pub needs: Option<&'static str>,
    /// Whether the field identifies a table in a list of tables.
    pub key: bool,
}

impl TableField {
    /// Help: meaning and accepted values.
    pub fn help(&self) -> String {
        let doc = self.doc.trim_end_matches('.');
        match (self.needs, &self.kind) {
            (Some(class), Kind::Text(_)) => format!("{doc}: {}", name_of(class)),
            (_, kind) => format!("{doc}: {}", kind.describe()),
        }
    }
}

impl TextTable {
    /// The names of the fields, as sentences list them.
    pub fn names(&self) -> String {
        let names: Vec<&str> = (self.fields)().iter().map(|field| field.name).collect();
        names.join(", ")
    }

    /// The references of a text: class and value of each.
    pub(crate) fn references(&self, text: &str) -> Vec<(&'static str, Value)> {
        let fields = (self.fields)().iter().zip((self.values)(text));
        fields
            .filter_map(|(field, value)| Some((field.needs?, value?)))
            .collect()
    }

    /// Renames an object of `class` in every reference of the text.
    pub(crate) fn renamed(&self, text: &str, class: &str, from: &str, to: &str) -> String {
        let mut values = (self.values)(text);
        for (field, value) in (self.fields)().iter().zip(&mut values) {
            let named = value.as_ref().and_then(Value::as_text) == Some(from);
            if field.needs == Some(class) && named {
                *value = Some(Value::text(to));
            }
        }
        (self.text)(&values).unwrap_or_else(|_| text.to_owned())
    }

    /// The text of a table in JSON. An error is one sentence.
    pub(crate) fn read(&self, map: &Map<String, Json>) -> Result<String, String> {
        let fields = (self.fields)();
        if let Some(key) = map
            .keys()
            .find(|key| !fields.iter().any(|f| f.name == *key))
        {
            let (shown, names) = (shown(key), self.names());
            return Err(format!(
                "has an unknown field `{shown}`, expected one of {names}"
            ));
        }
        let value = |field: &TableField| match map.get(field.name) {
            None | Some(Json::Null) => Ok(None),
            Some(json) => {
                let value = field.kind.read_json(json);
                let value = value.and_then(|value| field.kind.check(&value));
                value
                    .map(Some)
                    .map_err(|why| format!("{} {why}", field.name))
            }
        };
        let values: Result<Vec<Option<Value>>, String> = fields.iter().map(value).collect();
        (self.text)(&values?).map_err(|error| error.to_string())
    }

    /// A list of tables that was read from JSON: many objects have an equal list, which is stored once.
    pub(crate) fn remembered(
        &'static self,
        kind: &Kind,
        json: &Json,
        read: impl FnOnce() -> Result<Value, String>,
    ) -> Result<Value, String> {
        const MOST: usize = 4096;
        let key = (ptr::from_ref(self).addr(), json.to_string());
        if let Some(found) = READ.with_borrow(|all| all.get(&key).cloned()) {
            return Ok(found);
        }
        let value = read()?;
        let value = kind.check(&value)?;
        READ.with_borrow_mut(|all| {
            if all.len() >= MOST {
                all.clear();
                NORMAL.with_borrow_mut(HashSet::clear);
            }
            NORMAL.with_borrow_mut(|all| all.insert(address(&value)));
            all.insert(key, value.clone());
        });
        Ok(value)
    }

    /// Whether a list was read from JSON and stored: such a list is in normal form.
    pub(crate) fn is_remembered(value: &Value) -> bool {
        NORMAL.with_borrow(|all| all.contains(&address(value)))
    }

    /// The table of a text in JSON.
    pub(crate) fn write(&self, text: &str) -> Map<String, Json> {
        let fields = (self.fields)().iter().zip((self.values)(text));
        let entry = |(field, value): (&TableField, Option<Value>)| {
            let value = field.kind.to_json(&value?);
            Some((field.name.to_owned(), value))
        };
        fields.filter_map(entry).collect()
    }
}

thread_local! {
    /// Lists in their normal form, by table and JSON.
    static READ: RefCell<HashMap<(usize, String), Value>> = RefCell::default();
    /// The addresses of these lists.
    static NORMAL: RefCell<HashSet<usize>> = RefCell::default();
}

/// The address of a list; 0 for any other value.
fn address(value: &Value) -> usize {
    match value {
        Value::List(all) => ptr::from_ref(&**all).addr(),
        _ => 0,
    }
}

/// The phrase for the name of an object of a class.
pub(crate) fn name_of(class: &str) -> String {
    let article = match class.starts_with(['a', 'e', 'i', 'o']) {
        true => "an",
        false => "a",
    };
    format!("the name of {article} {}", class.replace('_', " "))
}
