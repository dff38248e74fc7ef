//! Reads the whole file, table by table, and puts the requests in dependency order.

use crate::error::ConfigErrors;
use crate::field::{Doc, Field, Referred, Section, sections, unknown};
use crate::plan::{Plan, valid};
use crate::schema as s;
use crate::{Config, interface, log, object};
use toml::de::DeTable;
use volley_model::{
    ApiSettings, Capabilities, EngineSettings, InterfaceSpec, IsaChoice, ObjectKind, Request,
    Seccomp, limits,
};
use volley_object::{Class, Instance, Value};

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

type Reader = fn(Section<'_>, &mut Plan);

const READERS: [(&s::Table, Reader); 5] = [
    (&s::INTERFACE, interface),
    (&s::ENGINE, |_, _| ()),
    (&s::PROCESS, |_, _| ()),
    (&s::API, |_, _| ()),
    (&log::LOG, |_, _| ()),
];

fn tables<'a>(doc: &'a Doc<'a>, root: &'a DeTable<'a>) -> Config {
    let mut config = Config::default();
    let mut plan = Plan::default();
    let classes = volley_object::classes();
    let of_classes = object::tables(&classes);
    let names = READERS.iter().map(|(schema, _)| schema.name);
    let names = names.chain(of_classes.iter().map(|table| table.name));
    for key in root
        .keys()
        .filter(|k| !names.clone().any(|n| n == k.get_ref()))
    {
        doc.error(
            key.span().start,
            "",
            unknown(key.get_ref(), "the file", names.clone()),
        );
    }
    for class in classes.iter() {
        object::read(doc, root, class, &mut plan);
    }
    for (schema, reader) in READERS {
        let is_interface = std::ptr::eq(schema, &s::INTERFACE);
        let schema = match is_interface {
            true => object::interface_table(&classes),
            false => schema,
        };
        for (_, value) in root.iter().filter(|(k, _)| k.get_ref() == schema.name) {
            for section in sections(doc, schema, value) {
                match schema.name {
                    "engine" => {
                        config.engine = engine(section);
                    }
                    // Behind `engine` in the list, so that they stay.
                    "api" => config.engine.api = api(section),
                    "log" => config.engine.log = log::log(section),
                    "process" => process(section, &mut config.engine),
                    _ => reader(section, &mut plan),
                }
            }
        }
    }
    doc.check_uses(Referred::Kind(ObjectKind::Interface), &plan.names);
    for class in classes.iter() {
        let declared = plan.objects_of.remove(class.name()).unwrap_or_default();
        doc.check_uses(Referred::Class(class.name()), &declared);
    }
    let steps = [
        plan.first,
        plan.interfaces,
        plan.objects,
        plan.states,
        plan.starts,
    ];
    config.requests = steps.into_iter().flatten().collect();
    config
}

fn process(section: Section<'_>, engine: &mut EngineSettings) {
    let capabilities = section.get("capabilities");
    let chosen = capabilities.and_then(|f| f.one_of(&Capabilities::ALL));
    engine.capabilities = chosen.unwrap_or_default();
    let seccomp = section.get("seccomp");
    let chosen = seccomp.and_then(|f| f.one_of(&Seccomp::ALL));
    engine.seccomp = chosen.unwrap_or_default();
}

fn engine(section: Section<'_>) -> EngineSettings {
    let mut e = EngineSettings::default();
    let get = |key, range| section.get(key).and_then(|f| f.uint32(range));
    e.vector_size = get("vector_size", limits::VECTOR_SIZE).unwrap_or(e.vector_size);
    e.max_vector_size = get("max_vector_size", limits::VECTOR_SIZE);
    e.buffers = get("buffers", limits::BUFFERS).unwrap_or(e.buffers);
    e.workers = get("workers", limits::WORKERS).unwrap_or(e.workers);
    e.max_workers = get("max_workers", limits::WORKERS);
    e.worker_core = get("worker_core", limits::CORE);
    let cores = section.get("worker_cores");
    let cores = cores.map_or(Vec::new(), |f| f.list());
    let cores = cores.iter().filter_map(|f| f.uint32(limits::CORE));
    e.worker_cores = cores.collect();
    e.peer_memory_mb = get("peer_memory_mb", limits::PEER_MB);
    e.peer_charge_mb = get("peer_charge_mb", limits::PEER_MB);
    let isa = section.get("isa").and_then(|f| f.one_of(&IsaChoice::ALL));
    e.isa = isa.unwrap_or(e.isa);
    if let Some(path) = section.get("socket").and_then(|f| f.path()) {
        e.socket = path;
    }
    e.seed = section.get("seed").and_then(|f| f.uint(0..=u64::MAX));
    if let Err(error) = e.validate() {
        section.error(error);
    }
    e
}

fn api(section: Section<'_>) -> ApiSettings {
    let file = |key| section.get(key).and_then(|f| f.path());
    let api = ApiSettings {
        socket: file("socket"),
        listen: section.get("listen").and_then(|f| f.read()),
        certificate: file("certificate"),
        key: file("key"),
        token_file: file("token_file"),
        metrics_listen: section.get("metrics_listen").and_then(|f| f.read()),
    };
    if let Err(error) = api.validate() {
        section.error(error);
    }
    api
}

fn interface(section: Section<'_>, plan: &mut Plan) {
    let name = section
        .required("name")
        .and_then(|f| f.declares(ObjectKind::Interface, &mut plan.names));
    let kind = kind(&section, name.as_deref());
    // Before the kind is looked at: all errors of a file are reported at once.
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

/// A verb that a key of an interface starts.
fn started(field: &Field<'_>, interface: String, verb: &str, plan: &mut Plan) {
    let Some(file) = field.path() else {
        return;
    };
    let fields = [
        ("interface", Value::text(interface)),
        ("file", Value::text(file.to_string_lossy())),
    ];
    match Request::of_verb(verb, &fields) {
        Ok(started) => plan.start(started),
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
