//! Definitions of fields.

use crate::FieldError;
use crate::kind::{FieldType, Kind};
use crate::place::Reference;
use crate::table::name_of;
use crate::value::Value;

/// One field of a class.
#[derive(Clone, Debug, Default)]
pub struct FieldDef {
    /// Name of the field in the file and in JSON, snake_case; on the command line with dashes.
    pub name: &'static str,
    /// Meaning of the field: the text for operators.
    pub doc: &'static str,
    /// Whether the field is part of the key.
    pub key: bool,
    /// Type of the value.
    pub kind: Kind,
    /// Whether the field may be absent.
    pub optional: bool,
    /// Default value.
    pub default: Option<Value>,
    /// Unit of a number, or empty.
    pub unit: &'static str,
    /// An example value, or empty.
    pub example: &'static str,
    /// The class of the objects to which the field refers.
    pub reference: Option<Reference>,
    /// For a key: the value of the built-in object, which always exists.
    pub built_in: Option<Value>,
    /// For a key of type choice: an object in the file without this field is created once for each choice.
    pub each: bool,
    /// For a list: the order of the values has no meaning, and duplicates are removed.
    pub set: bool,
    /// For a list: the minimum number of values.
    pub least: usize,
    /// Computes the value from the other fields if none is given.
    pub derived: Option<Derived>,
    /// Part of the request that creates an object, not of the object: the field is not in the file and is not stored.
    pub request: bool,
    /// Not shown to users.
    pub secret: bool,
    /// The value for an interface in the file that has no key for the object.
    pub in_file: Option<Value>,
    /// For a parameter of a query: its value in a command that does not name it.
    pub typed: Option<Value>,
    /// For a list: adding an object appends its items to those of the existing object.
    pub joined: bool,
    /// Number of consecutive keys in a request, including the first one: part of requests and the file, not of the object.
    pub repeats: bool,
    /// For a list of tables: in the file, the keys of one table may be beside those of the object.
    pub inline: bool,
    /// For a key: objects with this value are not part of a saved configuration, and are not replaced by a configuration.
    pub unsaved: Option<Value>,
}

/// The names of fields, as sentences list them.
pub fn names<'f>(fields: impl IntoIterator<Item = &'f FieldDef>) -> String {
    let names: Vec<&str> = fields.into_iter().map(|field| field.name).collect();
    names.join(", ")
}

/// Computes the value of a field from the values of all fields.
pub type Derived = fn(&[Option<Value>]) -> Option<Value>;

impl FieldDef {
    /// A field of a type.
    pub fn new<T: FieldType>(name: &'static str, doc: &'static str, key: bool) -> FieldDef {
        FieldDef {
            name,
            doc,
            key,
            kind: T::kind(),
            optional: T::OPTIONAL,
            default: T::usual().filter(|_| !key),
            set: T::SET,
            ..FieldDef::default()
        }
    }

    /// Sets the minimum number of values of a list: an object must give them.
    pub fn at_least(&mut self, least: usize) {
        self.least = least;
        self.default = None;
    }

    /// The normal form of a checked list.
    pub(crate) fn normal(&self, value: Value) -> Result<Value, FieldError> {
        let Value::List(all) = &value else {
            return Ok(value);
        };
        if all.len() < self.least {
            let why = format!("must have at least {}: {}", self.least, self.help());
            return Err(self.error(why));
        }
        if !self.set {
            return Ok(value);
        }
        let mut all = all.to_vec();
        all.sort();
        match all.windows(2).find(|two| two[0] == two[1]) {
            Some(two) => Err(self.error(format!("must not have {} twice", two[0]))),
            None => Ok(Value::List(all.into())),
        }
    }

    /// Sets the bounds of a number, or of the numbers in a list. A negative bound makes the range empty, and the class is
    /// refused.
    pub fn limit<N: TryInto<u64>>(&mut self, (low, high): (N, N)) {
        let low = low.try_into().unwrap_or(u64::MAX);
        let high = high.try_into().unwrap_or(0);
        let kind = match &mut self.kind {
            Kind::List(inner) => inner,
            other => other,
        };
        if let Kind::Number { min, max, .. } = kind {
            (*min, *max) = (low, high);
        }
    }

    /// Allows a unit or exponent in a number: 250k, 1.5M, 1e6.
    pub fn scale(&mut self) {
        if let Kind::Number { scaled, .. } = &mut self.kind {
            *scaled = true;
        }
    }

    /// The name on the command line.
    pub fn dashed(&self) -> String {
        self.name.replace('_', "-")
    }

    /// Whether the field is the IP version that distinguishes objects of a class.
    pub(crate) fn is_version(&self) -> bool {
        self.key && self.name == "family"
    }

    /// Whether every command for an object contains the value, as for a key without a default.
    pub fn is_essential(&self) -> bool {
        self.key && self.default.is_none() && self.derived.is_none()
    }

    /// Whether an object must give a value.
    pub fn required(&self) -> bool {
        !self.optional && self.default.is_none() && self.derived.is_none()
    }

    /// Description of the accepted values: for a reference the name of an object, for a text the field's example.
    fn takes(&self) -> String {
        match (&self.reference, &self.kind) {
            (Some(Reference { class, .. }), Kind::Text(_)) => name_of(class),
            (Some(Reference { class, .. }), Kind::List(_)) => {
                format!("a list, each {}", name_of(class))
            }
            (_, Kind::Text(text)) if !self.example.is_empty() => {
                format!("{} such as {}", text.noun, self.example)
            }
            (_, kind) => kind.describe(),
        }
    }

    /// The classes to which the field refers.
    pub(crate) fn named_classes(&self) -> Vec<&'static str> {
        let table = self.kind.table().map(|table| (table.fields)());
        let fields = table.into_iter().flatten().chain([self]);
        let named = fields.filter_map(|field| field.reference);
        named.map(|reference| reference.class).collect()
    }

    /// One line of help: meaning, accepted values and default.
    pub fn help(&self) -> String {
        let doc = self.doc.trim_end_matches('.');
        let unit = if self.unit.is_empty() {
            String::new()
        } else {
            format!(" {}", self.unit)
        };
        let takes = self.takes();
        match self.default.as_ref().or(self.typed.as_ref()) {
            Some(default) if default.elements().is_empty() || default.as_text() == Some("") => {
                format!("{doc}: {takes}")
            }
            Some(default) => format!("{doc}: {takes}{unit} (default {default})"),
            None if self.each => format!("{doc}: {takes} (all of them)"),
            None => format!("{doc}: {takes}{unit}"),
        }
    }

    /// The help for the file, which has true and false instead of on and off.
    pub fn file_help(&self) -> String {
        if let Some(value) = &self.in_file {
            let mut shown = self.clone();
            (shown.default, shown.in_file) = (Some(value.clone()), None);
            return shown.file_help();
        }
        let doc = self.doc.trim_end_matches('.');
        if let Some(table) = self.kind.table() {
            let names = names((table.fields)());
            return match self.kind {
                Kind::List(_) => format!("{doc}: a list, each a table with {names}"),
                _ => format!("{doc}: a table with {names}"),
            };
        }
        match (&self.kind, &self.default) {
            (Kind::Bool, Some(Value::Bool(default))) => {
                format!("{doc}: true or false (default {default})")
            }
            (Kind::Bool, _) => format!("{doc}: true or false"),
            _ => self.help(),
        }
    }

    /// Checks a value that is given for the field.
    pub(crate) fn checked(&self, given: Option<Value>) -> Result<Option<Value>, FieldError> {
        let checked = given.map(|value| self.kind.check(&value)).transpose();
        checked.map_err(|why| self.error(why))
    }

    /// The checked value, or the default. An error if there is neither.
    pub(crate) fn value_of(&self, given: Option<Value>) -> Result<Value, FieldError> {
        let value = self.checked(given)?;
        let value = value.or_else(|| self.default.clone());
        value.ok_or_else(|| self.missing())
    }

    pub(crate) fn missing(&self) -> FieldError {
        self.error(format!("is missing: {}", self.help()))
    }

    /// An error of this field.
    pub fn error(&self, why: impl Into<String>) -> FieldError {
        FieldError {
            field: self.name,
            why: why.into(),
        }
    }
}

/// The value of a field among the values of all fields, as its Rust type.
pub fn field_of<T: FieldType>(slots: &[Option<Value>], at: usize) -> Option<T> {
    T::from_slot(slots.get(at).and_then(Option::as_ref))
}
