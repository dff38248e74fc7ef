//! Objects of registered classes in the file: their tables and keys, derived from the definitions.

use crate::field::{Doc, Field, Section, sections};
use crate::interface;
use crate::plan::Plan;
use crate::schema::{INTERFACE, Key, Table};
use toml::de::DeTable;
use volley_model::Request;
use volley_object::{
    Class, Classes, FieldDef, FieldError, Instance, Kind, Place, TextTable, Value, kept, names,
};

/// A table for the lifetime of the process.
pub(crate) fn table_of(
    name: &str,
    repeats: bool,
    keys: Vec<(&'static str, String)>,
) -> &'static Table {
    let key = |(name, text): (&'static str, String)| Key {
        name,
        text: kept(text),
    };
    kept(Table {
        name: kept(name.to_owned()),
        repeats,
        keys: kept(keys.into_iter().map(key).collect::<Vec<Key>>()),
    })
}

pub(crate) fn rows(fields: &[FieldDef]) -> Vec<(&'static str, String)> {
    let row = |field: &FieldDef| {
        let table = field.kind.table().filter(|_| field.inline);
        let inner = table.into_iter().flat_map(rows_of);
        let text = match table {
            Some(_) => format!("{}; or the keys of one here:", field.file_help()),
            None => field.file_help(),
        };
        std::iter::once((field.name, text))
            .chain(inner)
            .collect::<Vec<_>>()
    };
    fields.iter().flat_map(row).collect()
}

/// The table of a class that is not part of `[[interface]]`.
fn table(class: &Class) -> Option<&'static Table> {
    match class.def().file {
        Place::Table(name) | Place::Map(name) => Some(table_of(name, false, rows(class.values()))),
        Place::List(name) => Some(table_of(name, true, rows(class.fields()))),
        _ => None,
    }
}

/// The tables of all classes that are not part of `[[interface]]`.
pub(crate) fn tables(classes: &Classes) -> Vec<&'static Table> {
    let all = classes.startup().chain(classes.iter());
    all.filter_map(table).collect()
}

/// The table of a class that is not part of `[[interface]]`, and the inline tables of its keys.
pub(crate) fn tables_of(class: &Class) -> Vec<&'static Table> {
    let Some(own) = table(class) else {
        return Vec::new();
    };
    let inner = |field: &FieldDef| match field.kind {
        Kind::Text(kind) if !field.inline => {
            let name = format!("{}.{}", own.name, field.name);
            kind.table.map(|it| table_of(&name, false, rows_of(it)))
        }
        _ => None,
    };
    let inner = class.values().iter().filter_map(inner);
    std::iter::once(own).chain(inner).collect()
}

/// The keys of an inline table that other interfaces write as text, and their meanings.
fn rows_of(table: &TextTable) -> Vec<(&'static str, String)> {
    let fields = (table.fields)().iter();
    fields.map(|field| (field.name, field.help())).collect()
}

fn interface_key(class: &Class) -> Option<&'static str> {
    match class.def().file {
        _ if class.is_interface() => None,
        Place::Interface(name) | Place::InterfaceMap(name) | Place::InterfaceList(name) => {
            Some(name)
        }
        _ => None,
    }
}

/// `[[interface]]` with the keys of all interface settings.
pub(crate) fn interface_table(classes: &Classes) -> &'static Table {
    let own = INTERFACE.keys.iter();
    let mut keys: Vec<(&str, String)> = own.map(|k| (k.name, k.text.to_owned())).collect();
    interface::add_keys(&mut keys, classes);
    for class in classes.iter() {
        if let Some(name) = interface_key(class) {
            let parts: Vec<String> = inner_fields(class).iter().map(|f| f.file_help()).collect();
            let text = match &parts[..] {
                [one] if matches!(class.def().file, Place::Interface(_)) => one.clone(),
                _ => format!("{} ({})", class.doc(), form(class)),
            };
            keys.push((name, text));
        }
    }
    table_of(INTERFACE.name, INTERFACE.repeats, keys)
}

/// The notation of a value in `[[interface]]`.
fn form(class: &Class) -> String {
    let names = names(inner_fields(class));
    match (class.def().file, class.keys().get(1)) {
        (Place::InterfaceMap(_), Some(key)) if class.values().len() == 1 => {
            format!("table of {} = {names}", key.name)
        }
        (Place::InterfaceMap(_), Some(key)) => {
            format!("table of {} = {{ {names} }}", key.name)
        }
        (Place::InterfaceList(_), _) if inner_fields(class).len() == 1 => {
            format!("list of {names}")
        }
        (Place::InterfaceList(_), _) => format!("list of tables with {names}"),
        _ => match plain(class) {
            Some(only) => format!("{}, or table with {names}", only.name),
            None => format!("table with {names}"),
        },
    }
}

/// The fields of an inline table in `[[interface]]`.
fn inner_fields(class: &Class) -> &[FieldDef] {
    match class.def().file {
        Place::InterfaceList(_) => class.fields().get(1..).unwrap_or_default(),
        _ => class.values(),
    }
}

/// The field whose plain value may replace an inline table in `[[interface]]`: the only field, or the only required field.
pub(crate) fn plain(class: &Class) -> Option<&FieldDef> {
    let fields = inner_fields(class);
    let mut required = fields.iter().filter(|field| field.required());
    match (fields, class.def().file) {
        ([only], _) => Some(only),
        (_, Place::Interface(_)) => required.next().filter(|_| required.next().is_none()),
        _ => None,
    }
}

/// Reads the objects of a class that have separate tables.
pub(crate) fn read<'a>(doc: &'a Doc<'a>, root: &'a DeTable<'a>, class: &Class, plan: &mut Plan) {
    let Some(table) = table(class) else {
        return;
    };
    for (_, value) in root.iter().filter(|(key, _)| key.get_ref() == table.name) {
        if let Place::Map(_) = class.def().file {
            let whole = Field::whole(doc, table.name, value);
            for (key, field) in whole.entries() {
                if let Some(section) = field.section(table) {
                    let key = [(class.keys().first(), Value::text(key))];
                    object(class, &section, &key, plan);
                }
            }
            continue;
        }
        for section in sections(doc, table, value) {
            object(class, &section, &[], plan);
        }
    }
}

/// Reads the settings of an interface.
pub(crate) fn of_interface(section: &Section<'_>, interface: &str, plan: &mut Plan) {
    let classes = volley_object::classes();
    // Referenced settings come first.
    let mut classes: Vec<&Class> = classes.iter().collect();
    classes.sort();
    for class in classes {
        let field = interface_key(class).and_then(|name| section.get(name));
        let Some(field) = field else {
            unsaid(class, interface, plan);
            continue;
        };
        let owner = (class.keys().first(), Value::text(interface));
        match class.def().file {
            Place::InterfaceMap(_) => {
                for (key, field) in field.entries() {
                    let keys = [owner.clone(), (class.keys().get(1), Value::text(key))];
                    setting(class, &field, &keys, plan);
                }
            }
            Place::InterfaceList(_) => {
                for field in field.list() {
                    setting(class, &field, std::slice::from_ref(&owner), plan);
                }
            }
            _ => setting(class, &field, &[owner], plan),
        }
    }
}

/// Adds the setting that an interface has when the file does not contain its key, if the class defines one.
fn unsaid(class: &Class, interface: &str, plan: &mut Plan) {
    let owner = Some(Value::text(interface));
    let value = class.values().first().and_then(|it| it.in_file.clone());
    let setting = value.map(|value| class.instance(vec![owner, Some(value)]));
    if let Some(Ok(setting)) = setting {
        plan.of_interface(setting);
    }
}

/// A value of a field.
pub(crate) type Given<'c> = (Option<&'c FieldDef>, Value);

/// A setting of an interface: a table of its fields, or the value of one of them.
fn setting(class: &Class, field: &Field<'_>, keys: &[Given<'_>], plan: &mut Plan) {
    let name = interface_key(class).unwrap_or_default();
    if let (Some(only), false) = (plain(class), field.is_table()) {
        if let Some(value) = value(only, field) {
            let mut given = keys.to_vec();
            given.push((Some(only), value));
            if let Some(object) = finish(class, &given, plan, |why| field.error(why)) {
                refers(&object, |name| (only.name == name).then(|| field.clone()));
                plan_of(object, plan);
            }
        }
        return;
    }
    let schema = table_of(name, false, rows(inner_fields(class)));
    if let Some(inner) = field.section(schema) {
        object(class, &inner, keys, plan);
    }
}

/// The values of the fields that a table contains; `each`: the field of which the object has every choice. `None` after an error.
/// `inner` is the table with the fields, if the file has it; `section` gets the errors about missing keys. Fields for which `skip`
/// is true are not in the table.
pub(crate) fn fields<'c>(
    class: &'c Class,
    section: &Section<'_>,
    inner: Option<&Section<'_>>,
    skip: impl Fn(&FieldDef) -> bool,
) -> Option<(Vec<Given<'c>>, Option<&'c FieldDef>)> {
    let (mut given, mut whole, mut each) = (Vec::new(), true, None);
    for field in class.fields().iter().filter(|field| !skip(field)) {
        let inline = field.kind.table().filter(|_| field.inline).zip(inner);
        match inner.and_then(|inner| inner.get(field.name)) {
            Some(found) if let Some(name) = inline.and_then(|(it, inner)| inner_key(it, inner)) => {
                let list = field.name;
                found.error(format!(
                    "give either '{list}' or the keys of one here, such as '{name}', not both"
                ));
                whole = false;
            }
            Some(found) => match value(field, &found) {
                Some(value) => given.push((Some(field), value)),
                None => whole = false,
            },
            None if let Some((table, inner)) = inline => match text_in(table, inner, None) {
                Some(text) => given.push((Some(field), Value::List([Value::text(text)].into()))),
                None => whole = false,
            },
            None if field.each => each = Some(field),
            None if field.required() => {
                let (name, help) = (field.name, field.file_help());
                section.error(format!("the key '{name}' is missing: {help}"));
                whole = false;
            }
            None => {}
        }
    }
    whole.then_some((given, each))
}

/// Reads an object from a table, with key values that the table does not contain.
fn object(class: &Class, section: &Section<'_>, keys: &[Given<'_>], plan: &mut Plan) {
    let is_given = |field: &FieldDef| {
        let mut keys = keys.iter().filter_map(|(f, _)| *f);
        keys.any(|f| f.name == field.name)
    };
    let Some((mut given, each)) = fields(class, section, Some(section), is_given) else {
        return;
    };
    given.extend(keys.iter().cloned());
    let choices = each.map_or(Vec::new(), |field| field.kind.samples());
    let all = choices.into_iter().map(|value| Some((each, value)));
    let all: Vec<Option<Given<'_>>> = match each {
        Some(_) => all.collect(),
        None => vec![None],
    };
    for one in all {
        let given: Vec<Given<'_>> = given.iter().cloned().chain(one).collect();
        if let Some(object) = finish(class, &given, plan, |why| section.error(why)) {
            refers(&object, |name| section.get(name));
            plan_of(object, plan);
        }
    }
}

/// The first key of a table that a section contains directly.
fn inner_key(table: &TextTable, section: &Section<'_>) -> Option<&'static str> {
    let mut names = (table.fields)().iter().map(|field| field.name);
    names.find(|name| section.get(name).is_some())
}

/// Records the references of a complete object that depend on its IP version: the file must declare the objects.
fn refers<'f>(object: &Instance, field: impl Fn(&'static str) -> Option<Field<'f>>) {
    let Some(version) = object.ip_version() else {
        return;
    };
    let classes = volley_object::classes();
    let has_versions = |name: &str| classes.get(name).is_some_and(Class::has_versions);
    let note = |field: &Field<'_>, class: &'static str, value: &Value| {
        let names = value.elements().iter();
        names.for_each(|name| refers_to(field, class, name, Some(version)));
    };
    for (at, def) in object.class().fields().iter().enumerate() {
        let Some(value) = object.slot(at) else {
            continue;
        };
        if let Some(table) = def.kind.table() {
            let tables = field(def.name).map(|it| it.tables()).unwrap_or_default();
            for inner in (table.fields)() {
                let Some(class) = inner.reference.map(|it| it.class) else {
                    continue;
                };
                if !has_versions(class) {
                    continue;
                }
                if def.inline
                    && let Some(it) = field(inner.name)
                    && let Some(value) = it.value(String::new)
                {
                    note(&it, class, &value);
                }
                let named = tables.iter().flatten().filter(|it| it.0 == inner.name);
                let values = named.filter_map(|(_, it)| Some((it, it.value(String::new)?)));
                values.for_each(|(it, value)| note(it, class, &value));
            }
        }
        let reference = def.reference.filter(|it| has_versions(it.class));
        if let Some(reference) = reference
            && let Some(field) = field(def.name)
        {
            note(&field, reference.class, value);
        }
    }
}

/// Records that a field names an object: with an IP version an object of that version, else an object without one. Objects that
/// are created elsewhere or built in are not recorded.
pub(crate) fn refers_to(field: &Field<'_>, class: &'static str, name: &Value, version: Option<u8>) {
    if class == "interface" {
        return field.refers_to(class, name.to_string());
    }
    let classes = volley_object::classes();
    let class_of = classes.get(class);
    let class_of = class_of.filter(|it| it.has_versions() == version.is_some());
    let key = class_of.and_then(|it| it.key_named(name, version));
    if let Some(key) = key.filter(|key| !key.is_built_in()) {
        field.refers_to(class, key.name());
    }
}

/// Reads a value of a field and checks it here, so that an error has its position.
pub(crate) fn value(field: &FieldDef, found: &Field<'_>) -> Option<Value> {
    let text = |table, found: &Field<'_>| text_of(table, found, None).map(Value::text);
    match (field.kind.table(), &field.kind) {
        (Some(table), Kind::List(_)) => {
            // All elements are read, so that all errors are found; one failure makes the whole fail.
            let all = found.elements()?;
            let all: Vec<Option<Value>> = all.iter().map(|one| text(table, one)).collect();
            let all: Option<Vec<Value>> = all.into_iter().collect();
            all.map(|all| Value::List(all.into()))
        }
        (Some(table), _) => text(table, found),
        (None, _) => plain_value(field, found, None),
    }
}

/// A value that is not a table, in an object of this IP version.
fn plain_value(field: &FieldDef, found: &Field<'_>, version: Option<u8>) -> Option<Value> {
    let value = found.value(|| field.kind.describe())?;
    let value = found.check(field.kind.check(&value))?;
    if let Some(reference) = field.reference {
        let names = value.elements().iter();
        names.for_each(|name| refers_to(found, reference.class, name, version));
    }
    Some(value)
}

/// An inline table as text, in an object of this IP version.
pub(crate) fn text_of(table: &TextTable, found: &Field<'_>, version: Option<u8>) -> Option<String> {
    let section = found.section(table_of(found.key(), false, rows_of(table)))?;
    text_in(table, &section, version)
}

/// The fields of a table that a section contains directly, as text.
pub(crate) fn text_in(
    table: &TextTable,
    section: &Section<'_>,
    version: Option<u8>,
) -> Option<String> {
    let fields = (table.fields)();
    let (mut values, mut whole) = (Vec::with_capacity(fields.len()), true);
    for field in fields {
        let given = section.get(field.name);
        let read = given.map(|it| plain_value(field, &it, version));
        whole &= !matches!(read, Some(None));
        values.push(read.flatten());
    }
    let text = whole.then(|| (table.text)(&values))?;
    let wrong = |error: FieldError| match fields.iter().find(|f| f.name == error.field) {
        Some(field) if let Some(it) = section.get(field.name) => it.error(error.why),
        _ => section.error(error.why),
    };
    text.map_err(wrong).ok()
}

/// Builds an object from its fields.
pub(crate) fn made(class: &Class, given: &[Given<'_>]) -> Result<Instance, FieldError> {
    let slot = |field: &FieldDef| {
        let mut found = given.iter();
        let found = found.find(|(f, _)| f.is_some_and(|f| f.name == field.name));
        let value = found.map(|(_, value)| value.clone());
        // A key of a map is text in the file, even if the class has another type.
        match (value, field.key) {
            (Some(Value::Text(text)), true) => {
                field.kind.read(&text).ok().or(Some(Value::Text(text)))
            }
            (value, _) => value,
        }
    };
    class.instance(class.fields().iter().map(slot).collect())
}

/// Builds the object from its fields and records its declaration; `None` after an error.
fn finish(
    class: &Class,
    given: &[Given<'_>],
    plan: &mut Plan,
    error: impl Fn(String),
) -> Option<Instance> {
    let object = made(class, given)
        .map_err(|why| error(why.to_string()))
        .ok()?;
    let key = object.key();
    if key.is_unsaved() {
        error(format!(
            "{key} is made by other programs while the router runs: no file has it"
        ));
        return None;
    }
    // Several tables of one object are merged, if the class allows that.
    if !plan.keys.insert(key.to_string()) && !class.joins() {
        error(format!("{key} is declared twice"));
        return None;
    }
    let names = plan.objects_of.entry(class.name()).or_default();
    names.insert(key.name());
    Some(object)
}

fn plan_of(object: Instance, plan: &mut Plan) {
    let class = object.class().clone();
    if class.def().startup {
        return plan.startup.set(object);
    }
    if interface_key(&class).is_some() {
        return plan.of_interface(object);
    }
    let request = match class.joins() {
        true => Request::Add(object),
        false => Request::Set(object),
    };
    match class.refers() {
        _ if class.def().last => plan.starts.push(request),
        true => plan.objects.push(request),
        false => plan.first.push(request),
    }
}
