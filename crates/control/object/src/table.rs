//! Texts that are tables of fields in the file and in JSON.

use crate::FieldError;
use crate::field::{FieldDef, names};
use crate::kind::Kind;
use crate::value::{Value, shown};
use serde_json::{Map, Value as Json};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ptr;

/// The syntax of a text that is a table in the file and in JSON, and several words on the command line.
#[derive(Clone, Copy, Debug)]
pub struct TextTable {
    /// The fields of the table. A key identifies a table in a list of tables; a reference is to an object that the text needs.
    pub fields: fn() -> &'static [FieldDef],
    /// Writes a table as text, from the values of its fields in order.
    pub text: fn(&[Option<Value>]) -> Result<String, FieldError>,
    /// Parses a text in normal form to the values of the fields.
    pub values: fn(&str) -> Vec<Option<Value>>,
    /// Words with which a text begins on the command line, so that several texts can follow each other. The first of them may
    /// precede each of the others.
    pub begins: &'static [&'static str],
}

impl TextTable {
    /// The references of a text: class and value of each.
    pub(crate) fn references(&self, text: &str) -> Vec<(&'static str, Value)> {
        let fields = (self.fields)().iter().zip((self.values)(text));
        fields
            .filter_map(|(field, value)| Some((field.reference?.class, value?)))
            .collect()
    }

    /// Renames an object of `class` in every reference of the text.
    pub(crate) fn renamed(&self, text: &str, class: &str, from: &str, to: &str) -> String {
        let mut values = (self.values)(text);
        for (field, value) in (self.fields)().iter().zip(&mut values) {
            let named = value.as_ref().and_then(Value::as_text) == Some(from);
            if field.reference.is_some_and(|it| it.class == class) && named {
                *value = Some(Value::text(to));
            }
        }
        (self.text)(&values).unwrap_or_else(|_| text.to_owned())
    }

    /// The text of a table in JSON. An error is one sentence.
    pub(crate) fn read(&self, map: &Map<String, Json>) -> Result<String, String> {
        let fields = (self.fields)();
        let given = slots_of(map, fields, None, ("has an ", ""))?;
        let checked = fields.iter().zip(given);
        let checked = checked.map(|(field, value)| field.checked(value));
        let checked: Result<Vec<Option<Value>>, FieldError> = checked.collect();
        let text = checked.and_then(|values| (self.text)(&values));
        text.map_err(|error| error.to_string())
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
        let entry = |(field, value): (&FieldDef, Option<Value>)| {
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

/// The values of fields from a JSON map that may also have the key `tag`; `before` and `of` complete the sentence about an
/// unknown field.
pub(crate) fn slots_of(
    map: &Map<String, Json>,
    fields: &[FieldDef],
    tag: Option<&str>,
    (before, of): (&str, &str),
) -> Result<Vec<Option<Value>>, String> {
    let mut keys = map.keys().filter(|key| Some(key.as_str()) != tag);
    if let Some(key) = keys.find(|key| !fields.iter().any(|f| f.name == *key)) {
        let (shown, allowed) = (shown(key), names(fields));
        return Err(format!(
            "{before}unknown field `{shown}`{of}, expected one of {allowed}"
        ));
    }
    let slot = |field: &FieldDef| match map.get(field.name) {
        None | Some(Json::Null) => Ok(None),
        Some(json) => {
            let value = field.kind.read_json(json);
            value
                .map(Some)
                .map_err(|why| format!("{} {why}", field.name))
        }
    };
    fields.iter().map(slot).collect()
}

/// The phrase for the name of an object of a class.
pub(crate) fn name_of(class: &str) -> String {
    let article = article(class);
    format!("the name of {article} {}", class.replace('_', " "))
}

/// The indefinite article of a noun.
pub fn article(noun: &str) -> &'static str {
    match noun.starts_with(['a', 'e', 'i', 'o']) {
        true => "an",
        false => "a",
    }
}
