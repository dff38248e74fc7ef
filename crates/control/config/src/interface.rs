//! Types of interfaces in the file: the keys of `[[interface]]` for each type, derived from the classes.

use crate::field::Section;
use crate::object::{self, rows, table_of};
use std::collections::BTreeMap;
use volley_object::{Class, Classes, FieldDef, FieldError, Instance, Place, Value, names};

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
    let given = object::fields(class, section, inner.as_ref(), |field| {
        field.key || field.request
    });
    // A field that is not a key of the file follows from the name. A missing name was reported already.
    let wrong = |FieldError { field, why }: FieldError| {
        let of_name = class
            .field(field)
            .is_some_and(|(_, it)| it.key || it.request);
        let place = match of_name {
            true if name.is_none() => return,
            true => section.get("name"),
            false => inner.and_then(|inner| inner.get(field)),
        };
        match place {
            Some(place) => place.error(why),
            None => section.error(format!("{field} {why}")),
        }
    };
    let (mut given, _) = given?;
    given.push((
        class.fields().first(),
        Value::text(name.unwrap_or_default()),
    ));
    object::made(class, &given).map_err(wrong).ok()
}
