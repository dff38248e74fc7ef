//! Types of interfaces in the file: the keys of `[[interface]]` for each type, derived from the classes.

use crate::field::{Field, Section};
use crate::object::{rows, table_of, value};
use std::collections::BTreeMap;
use volley_object::{Class, Classes, FieldDef, FieldError, Instance, Place, names};

/// The fields of a type that appear in the file.
fn fields(class: &Class) -> impl Iterator<Item = &FieldDef> {
    class.values().iter().filter(|field| !field.request)
}

/// The key of the inline table with the fields; `None`: the fields are keys of the interface.
pub(crate) fn table_key(class: &Class) -> Option<&'static str> {
    match class.def().file {
        Place::Interface(key) => Some(key),
        _ => None,
    }
}

/// The keys of `[[interface]]` for a type, and their meanings.
fn keys(class: &Class) -> Vec<(&'static str, String)> {
    let mut all: Vec<(&'static str, String)> = match table_key(class) {
        Some(key) => {
            vec![(key, format!("table with {}", names(fields(class))))]
        }
        None => fields(class).map(|f| (f.name, f.file_help())).collect(),
    };
    let starts = class.def().starts;
    all.extend(starts.map(|start| (start.key, start.doc.to_owned())));
    all
}

/// Adds the keys of all types; a key with one meaning for several types is added once.
pub(crate) fn add_keys(all: &mut Vec<(&'static str, String)>, classes: &Classes) {
    type Meaning = (Vec<&'static str>, String);
    let mut found: Vec<(&'static str, Vec<Meaning>)> = Vec::new();
    for class in classes.interfaces() {
        for (key, text) in keys(class) {
            let at = found.iter().position(|(name, _)| *name == key);
            let at = at.unwrap_or_else(|| {
                found.push((key, Vec::new()));
                found.len() - 1
            });
            let meanings = &mut found[at].1;
            match meanings.iter_mut().find(|(_, known)| *known == text) {
                Some((kinds, _)) => kinds.push(class.def().interface),
                None => meanings.push((vec![class.def().interface], text)),
            }
        }
    }
    let one = |(kinds, text): &Meaning| match &kinds[..] {
        [kind] => format!("kind {kind}: {text}"),
        kinds => format!("kinds {}: {text}", kinds.join(", ")),
    };
    let whole = |meanings: &[Meaning]| meanings.iter().map(one).collect::<Vec<_>>().join("; ");
    all.extend(found.iter().map(|(key, meanings)| (*key, whole(meanings))));
    if let Some((_, text)) = all.iter_mut().find(|(key, _)| *key == "kind") {
        let kinds = classes.interfaces().into_iter();
        let kinds: Vec<&str> = kinds.map(|class| class.def().interface).collect();
        *text = format!("kind of the interface: {}", kinds.join(", "));
    }
}

/// Reports keys that the type does not have.
pub(crate) fn refuse(section: &Section<'_>, class: &Class, classes: &Classes) {
    let kind = class.def().interface;
    let mut foreign: BTreeMap<&'static str, Vec<&'static str>> = BTreeMap::new();
    for class in classes.interfaces() {
        for (key, _) in keys(class) {
            let kinds = foreign.entry(key).or_default();
            kinds.push(class.def().interface);
        }
    }
    foreign.retain(|_, kinds| !kinds.contains(&kind));
    for (key, kinds) in foreign {
        if let Some(field) = section.get(key) {
            field.error(format!("is for kind {} only", kinds.join(", ")));
        }
    }
}

/// Reads an interface of a class from its table; `None` after an error.
pub(crate) fn read(class: &Class, section: &Section<'_>, name: Option<&str>) -> Option<Instance> {
    let inner = match table_key(class) {
        None => Some(*section),
        Some(key) => match section.get(key) {
            Some(field) => {
                let fields: Vec<FieldDef> = fields(class).cloned().collect();
                Some(field.section(table_of(&format!("interface.{key}"), false, rows(&fields)))?)
            }
            None => None,
        },
    };
    let found = |name: &'static str| inner.and_then(|inner| inner.get(name));
    let (mut slots, mut whole) = (Vec::new(), true);
    for field in class.fields() {
        let found = found_of(field, &found);
        slots.push(match &found {
            _ if field.key => Some(name.unwrap_or_default().into()),
            Some(found) => {
                let value = value(field, found);
                whole &= value.is_some();
                value
            }
            None if field.required() => {
                let (name, help) = (field.name, field.file_help());
                section.error(format!("the key '{name}' is missing: {help}"));
                whole = false;
                None
            }
            None => None,
        });
    }
    // A field that is not a key of the file follows from the name. A missing name was reported already.
    let wrong = |FieldError { field, why }: FieldError| {
        let of_name = class
            .field(field)
            .is_some_and(|(_, it)| it.key || it.request);
        if of_name && name.is_none() {
            return;
        }
        let place = match of_name {
            true => section.get("name"),
            false => found(field),
        };
        match place {
            Some(place) => place.error(why),
            None => section.error(format!("{field} {why}")),
        }
    };
    let made = whole.then(|| class.instance(slots))?;
    made.map_err(wrong).ok()
}

fn found_of<'f>(
    field: &FieldDef,
    found: &impl Fn(&'static str) -> Option<Field<'f>>,
) -> Option<Field<'f>> {
    (!field.key && !field.request).then(|| found(field.name))?
}
