//! Reads the whole file, table by table, and puts the requests in dependency order.

use crate::error::ConfigErrors;
use crate::field::{Doc, Field, Section, sections, unknown};
use crate::plan::{Plan, valid};
use crate::{Config, interface, object};
use toml::de::DeTable;
use volley_model::{InterfaceSpec, Request};
use volley_object::{Class, Instance, Invocation, Value};

pub(crate) fn read(file: &str, text: &str) -> Result<Config, ConfigErrors> {
    let (root, syntax) = DeTable::parse_recoverable(text);
    let doc = Doc::new(file, text);
    for error in &syntax {
        let at = error.span().map_or(0, |s| s.start);
        doc.error(at, "", error.message().replace('\n', ", "));
    }
    let mut config = Config::default();
    if syntax.is_empty() {
        config = tables(&doc, root.get_ref());
    }
    doc.finish().map(|()| config)
}

fn tables<'a>(doc: &'a Doc<'a>, root: &'a DeTable<'a>) -> Config {
    let mut plan = Plan::default();
    let not_brought = bring(doc, root, &mut plan);
    let classes = volley_object::classes();
    let (of_interfaces, of_classes) = (object::interface_table(&classes), object::tables(&classes));
    let names = of_classes.iter().map(|table| table.name);
    let names = std::iter::once(of_interfaces.name).chain(names);
    for key in root
        .keys()
        .filter(|k| !names.clone().any(|n| n == k.get_ref()))
    {
        doc.error(
            key.span().start,
            "",
            unknown(key.get_ref(), "the file", names.clone()),
        );
        for why in &not_brought {
            doc.error(key.span().start, "", why.clone());
        }
    }
    let others = classes.iter().filter(|class| class.def().brings.is_none());
    for class in classes.startup().chain(others) {
        object::read(doc, root, class, &mut plan);
    }
    for (_, value) in root
        .iter()
        .filter(|(k, _)| k.get_ref() == of_interfaces.name)
    {
        for section in sections(doc, of_interfaces, value) {
            interface(section, &mut plan);
        }
    }
    doc.check_uses("interface", &plan.names);
    for class in classes.iter() {
        let declared = plan.objects_of.remove(class.name()).unwrap_or_default();
        doc.check_uses(class.name(), &declared);
    }
    let steps = [
        plan.first,
        plan.interfaces,
        plan.objects,
        plan.states,
        plan.starts,
    ];
    Config {
        startup: plan.startup,
        requests: steps.into_iter().flatten().collect(),
    }
}

/// Reads the objects that bring classes, and registers these classes; returns why some are missing.
fn bring<'a>(doc: &'a Doc<'a>, root: &'a DeTable<'a>, plan: &mut Plan) -> Vec<String> {
    let mut missing = Vec::new();
    let classes = volley_object::classes();
    for class in classes.iter() {
        let Some(brings) = class.def().brings else {
            continue;
        };
        object::read(doc, root, class, plan);
        let objects = plan.first.iter().chain(&plan.objects);
        let objects = objects.filter_map(|request| match request {
            Request::Set(object) if object.class() == class => Some(object),
            _ => None,
        });
        missing.extend(objects.filter_map(|object| brings(object).err()));
    }
    missing
}

fn interface(section: Section<'_>, plan: &mut Plan) {
    let name = section
        .required("name")
        .and_then(|f| f.declares("interface", &mut plan.names));
    let kind = kind(&section, name.as_deref());
    // Recorded before the type is read, so that all errors of a file are reported at once.
    let at = plan.interfaces.len();
    if let Some(name) = &name {
        object::of_interface(&section, name, plan);
    }
    let created_with = std::mem::take(&mut plan.created_with);
    let (Some(name), Some(kind)) = (name, kind) else {
        return;
    };
    let starts = kind.class().def().starts;
    let mut spec = InterfaceSpec::of_object(kind);
    for setting in created_with {
        spec.create_with(&setting);
    }
    let create = Request::InterfaceCreate(spec);
    if valid(&section, &create) {
        plan.interfaces.insert(at, create);
    }
    if let Some(start) = starts
        && let Some(field) = section.get(start.key)
    {
        started(&field, name.clone(), start.verb, plan);
    }
}

/// Adds the verb that a key of an interface starts.
fn started(field: &Field<'_>, interface: String, verb: &str, plan: &mut Plan) {
    let Some(file) = field.path() else {
        return;
    };
    let fields = [
        ("interface", Value::text(interface)),
        ("file", Value::text(file.to_string_lossy())),
    ];
    match Invocation::of_fields(verb, &fields) {
        Ok(started) => plan.starts.push(Request::Do(started)),
        Err(error) => field.error(error.to_string()),
    }
}

fn kind(section: &Section<'_>, name: Option<&str>) -> Option<Instance> {
    let classes = volley_object::classes();
    let all = classes.interfaces().into_iter();
    let all: Vec<(&str, &Class)> = all.map(|class| (class.def().interface, class)).collect();
    let class = section.required("kind")?.one_of(&all)?;
    interface::refuse(section, class, &classes);
    interface::read(class, section, name)
}
