//! Typed access to the parsed file: every reader reports errors with their positions and continues.

use crate::error::{ConfigError, ConfigErrors, Lines};
use crate::schema::Table;
use indexmap::IndexSet;
use std::cell::RefCell;
use std::fmt::Display;
use std::path::PathBuf;
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use volley_model::listed;
use volley_object::{Value, article, shown};

/// The file: its errors so far, its declarations and its references.
pub(crate) struct Doc<'a> {
    file: &'a str,
    lines: Lines<'a>,
    errors: RefCell<Vec<(usize, String, String)>>,
    uses: RefCell<Vec<Use>>,
}

/// Names declared in the file, in file order.
pub(crate) type Names = IndexSet<String>;

/// A reference to a name.
struct Use {
    at: usize,
    key: String,
    /// The class of the referenced object.
    class: &'static str,
    name: String,
}

impl<'a> Doc<'a> {
    pub(crate) fn new(file: &'a str, text: &'a str) -> Doc<'a> {
        Doc {
            file,
            lines: Lines::new(text),
            errors: RefCell::default(),
            uses: RefCell::default(),
        }
    }

    pub(crate) fn error(&self, at: usize, key: &str, message: impl Display) {
        let entry = (at, key.to_string(), message.to_string());
        self.errors.borrow_mut().push(entry);
    }

    /// Reports every reference of a class to a name that is not declared.
    pub(crate) fn check_uses(&self, class: &str, declared: &Names) {
        let (known, noun) = (listed(declared), class.replace('_', " "));
        let missing = |u: &&Use| u.class == class && !declared.contains(&u.name);
        for u in self.uses.borrow().iter().filter(missing) {
            let name = &u.name;
            let message = format!("there is no {noun} {name} in this file{known}");
            self.error(u.at, &u.key, message);
        }
    }

    /// All errors in order of position, or none.
    pub(crate) fn finish(self) -> Result<(), ConfigErrors> {
        let mut errors = self.errors.into_inner();
        errors.sort_by_key(|(at, _, _)| *at);
        let place = |(at, key, message)| {
            let (line, column) = self.lines.place(at);
            let file = self.file.to_string();
            ConfigError {
                file,
                line,
                column,
                key,
                message,
            }
        };
        let errors: Vec<_> = errors.into_iter().map(place).collect();
        if errors.is_empty() {
            Ok(())
        } else {
            Err(ConfigErrors(errors))
        }
    }
}

/// One table of the file.
#[derive(Clone, Copy)]
pub(crate) struct Section<'a> {
    pub(crate) doc: &'a Doc<'a>,
    pub(crate) schema: &'static Table,
    pub(crate) at: usize,
    table: &'a DeTable<'a>,
}

impl<'a> Section<'a> {
    /// Creates the section, and reports unknown keys.
    pub(crate) fn new(
        doc: &'a Doc<'a>,
        schema: &'static Table,
        at: usize,
        table: &'a DeTable<'a>,
    ) -> Self {
        let section = Section {
            doc,
            schema,
            at,
            table,
        };
        for key in table.keys() {
            if !schema.keys.iter().any(|k| k.name == key.get_ref()) {
                let names = schema.keys.iter().map(|k| k.name);
                doc.error(
                    key.span().start,
                    "",
                    unknown(key.get_ref(), &schema.title(), names),
                );
            }
        }
        section
    }

    pub(crate) fn error(&self, message: impl Display) {
        self.doc.error(self.at, self.schema.name, message);
    }

    pub(crate) fn get(&self, key: &'static str) -> Option<Field<'a>> {
        debug_assert!(
            self.schema.keys.iter().any(|k| k.name == key),
            "{key} is not in the schema"
        );
        let mut found = self.table.iter().filter(|(k, _)| k.get_ref() == key);
        found.next().map(|(_, value)| Field {
            doc: self.doc,
            key: format!("{}.{key}", self.schema.name),
            value,
        })
    }

    pub(crate) fn required(&self, key: &'static str) -> Option<Field<'a>> {
        let field = self.get(key);
        if field.is_none() {
            let text = self
                .schema
                .keys
                .iter()
                .find(|k| k.name == key)
                .map_or("", |k| k.text);
            self.error(format!("the key '{key}' is missing: {text}"));
        }
        field
    }
}

/// The error "unknown key", with the most similar allowed key and all allowed keys.
pub(crate) fn unknown<'n>(
    key: &str,
    place: &str,
    names: impl Iterator<Item = &'n str> + Clone,
) -> String {
    let near = volley_model::nearest(key, names.clone());
    let hint = near.map_or_else(String::new, |name| format!("did you mean '{name}'? "));
    let (shown, all) = (shown(key), names.collect::<Vec<_>>().join(", "));
    format!("unknown key '{shown}' in {place}: {hint}allowed are {all}")
}

/// One value of the file.
#[derive(Clone)]
pub(crate) struct Field<'a> {
    doc: &'a Doc<'a>,
    key: String,
    value: &'a Spanned<DeValue<'a>>,
}

/// The tables of a value: one, or the elements of a list if the table repeats.
pub(crate) fn sections<'a>(
    doc: &'a Doc<'a>,
    schema: &'static Table,
    value: &'a Spanned<DeValue<'a>>,
) -> Vec<Section<'a>> {
    let section = |value: &'a Spanned<DeValue<'a>>| match value.get_ref() {
        DeValue::Table(table) => Some(Section::new(doc, schema, value.span().start, table)),
        _ => {
            doc.error(
                value.span().start,
                schema.name,
                format!("must be a table {}", schema.title()),
            );
            None
        }
    };
    match value.get_ref() {
        DeValue::Array(array) if schema.repeats => array.iter().filter_map(section).collect(),
        _ if schema.repeats => {
            let message = format!("must be written {}", schema.title());
            doc.error(value.span().start, schema.name, message);
            Vec::new()
        }
        _ => section(value).into_iter().collect(),
    }
}

impl<'a> Field<'a> {
    /// The value of a top-level key of the file.
    pub(crate) fn whole(doc: &'a Doc<'a>, key: &str, value: &'a Spanned<DeValue<'a>>) -> Field<'a> {
        let key = key.to_owned();
        Field { doc, key, value }
    }

    /// The value as a path that is not empty.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        let text = self.text()?;
        if text.is_empty() || text.contains('\0') {
            self.error("must be the path of a file");
            return None;
        }
        Some(text.into())
    }

    /// The names of the table and of the field, such as `interface.mtu`.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    pub(crate) fn error(&self, message: impl Display) {
        self.doc.error(self.value.span().start, &self.key, message);
    }

    fn wrong_type<T>(&self, wanted: &str) -> Option<T> {
        let found = self.value.get_ref().type_str();
        self.error(format!("must be {wanted}, not {} {found}", article(found)));
        None
    }

    pub(crate) fn text(&self) -> Option<&'a str> {
        let text = self.value.get_ref().as_str();
        text.or_else(|| self.wrong_type("a string"))
    }

    /// The value, or `None` after the error was reported at this field.
    pub(crate) fn check<T, E: Display>(&self, result: Result<T, E>) -> Option<T> {
        result.map_err(|e| self.error(e)).ok()
    }

    /// The value of a string from this list.
    pub(crate) fn one_of<T: Copy>(&self, choices: &[(&str, T)]) -> Option<T> {
        let text = self.text()?;
        let found = choices.iter().find(|(name, _)| *name == text);
        if found.is_none() {
            let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
            let (names, shown) = (names.join(", "), shown(text));
            self.error(format!("must be one of {names}, not '{shown}'"));
        }
        found.map(|(_, value)| *value)
    }

    /// Converts the value to that of an object's field; reports a value of another type, with `wanted` as the expected type.
    pub(crate) fn value(&self, wanted: impl Fn() -> String) -> Option<Value> {
        match self.value.get_ref() {
            DeValue::Boolean(it) => Some(Value::Bool(*it)),
            DeValue::String(text) => Some(Value::text(text)),
            DeValue::Integer(number) => {
                let read = u64::from_str_radix(number.as_str(), number.radix());
                let wrong = |_| self.error(format!("must be {}, not {number}", wanted()));
                read.map_err(wrong).ok().map(Value::Number)
            }
            DeValue::Array(_) => {
                let all = self.list();
                let all = all
                    .iter()
                    .map(|one| one.value(&wanted as &dyn Fn() -> String));
                let all: Option<Vec<Value>> = all.collect();
                all.map(|all| Value::List(all.into()))
            }
            _ => self.wrong_type(&wanted()),
        }
    }

    /// The entries of a table with free keys, each key as a separate field.
    pub(crate) fn entries(&self) -> Vec<(String, Field<'a>)> {
        let Some(table) = self.value.get_ref().as_table() else {
            self.wrong_type::<()>("a table");
            return Vec::new();
        };
        let entry = |(key, value): (
            &'a Spanned<std::borrow::Cow<'a, str>>,
            &'a Spanned<DeValue<'a>>,
        )| {
            let name = key.get_ref().to_string();
            let field = Field {
                doc: self.doc,
                key: format!("{}.{name}", self.key),
                value,
            };
            (name, field)
        };
        table.iter().map(entry).collect()
    }

    /// Whether the value is a table.
    pub(crate) fn is_table(&self) -> bool {
        self.value.get_ref().is_table()
    }

    /// The elements of an array; `None` for another type, which is reported.
    pub(crate) fn elements(&self) -> Option<Vec<Field<'a>>> {
        let field = |value| Field {
            doc: self.doc,
            key: self.key.clone(),
            value,
        };
        match self.value.get_ref().as_array() {
            Some(array) => Some(array.iter().map(field).collect()),
            None => self.wrong_type("a list"),
        }
    }

    /// The entries of the table, or of each table of the array.
    pub(crate) fn tables(&self) -> Vec<Vec<(String, Field<'a>)>> {
        let all = match self.value.get_ref() {
            DeValue::Array(_) => self.list(),
            _ => vec![self.clone()],
        };
        let tables = all.iter().filter(|it| it.is_table());
        tables.map(Field::entries).collect()
    }

    /// The elements of an array; none for another type, which is reported.
    pub(crate) fn list(&self) -> Vec<Field<'a>> {
        self.elements().unwrap_or_default()
    }

    /// The value as an inline table.
    pub(crate) fn section(&self, schema: &'static Table) -> Option<Section<'a>> {
        let Some(table) = self.value.get_ref().as_table() else {
            return self.wrong_type("a table");
        };
        Some(Section::new(
            self.doc,
            schema,
            self.value.span().start,
            table,
        ))
    }

    /// Records a reference to a name that the file must declare.
    pub(crate) fn refers_to(&self, class: &'static str, name: String) {
        let at = self.value.span().start;
        let key = self.key.clone();
        self.doc.uses.borrow_mut().push(Use {
            at,
            key,
            class,
            name,
        });
    }

    /// The name that this field declares; reports a duplicate.
    pub(crate) fn declares(&self, kind: &str, declared: &mut Names) -> Option<String> {
        let name = self.text()?.to_string();
        self.check(volley_model::check_name(kind, &name))?;
        if !declared.insert(name.clone()) {
            self.error(format!("{kind} {name} is declared twice"));
            return None;
        }
        Some(name)
    }
}
