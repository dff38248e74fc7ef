//! Writes requests as a configuration file, which [`crate::parse`] reads back as the same requests.

use crate::interface::table_key;
use crate::keys::{Keys, list};
use crate::object_write::{self, Written};
use std::collections::BTreeMap;
use std::fmt::Write;
use volley_model::{InterfaceSpec, Request};
use volley_object::Instance;

/// Requests as a file. A request that the file format cannot express becomes a comment.
pub fn write(requests: &[Request]) -> String {
    let mut writer = Writer::default();
    requests.iter().for_each(|r| writer.request(r));
    writer.finish()
}

#[derive(Default)]
struct Writer {
    /// Tables before the interfaces.
    first: String,
    order: Vec<String>,
    interfaces: BTreeMap<String, Interface>,
    rest: String,
    wordless: String,
}

#[derive(Default)]
struct Interface {
    keys: Keys,
    /// Values of keys that combine several objects: the key, whether it is a list, and the entries.
    gathered: BTreeMap<&'static str, (bool, Vec<String>)>,
    /// Objects of classes of which the file expresses one value by omission: the key and the value to write otherwise.
    settings: BTreeMap<&'static str, Option<(&'static str, String)>>,
}

impl Writer {
    fn interface(&mut self, name: &str) -> &mut Interface {
        self.interfaces.entry(name.to_owned()).or_default()
    }

    fn object(&mut self, request: &Request, object: &volley_object::Instance) {
        let written = object_write::written(object);
        if object_write::written_without(object.class()).is_some()
            && let Written::Interface(name, key, value) = written
        {
            let setting = (!object_write::is_unsaid(object)).then_some((key, value));
            let class = object.class().name();
            self.interface(&name).settings.insert(class, setting);
            return;
        }
        match written {
            Written::First(text) => self.first += &text,
            Written::Rest(text) => self.rest += &text,
            Written::Interface(name, key, value) => self.interface(&name).keys.plain(key, value),
            Written::Gathered(name, key, is_list, value) => {
                let gathered = &mut self.interface(&name).gathered;
                let entry = gathered.entry(key).or_insert((is_list, Vec::new()));
                entry.1.push(value);
            }
            Written::Wordless => _ = writeln!(self.wordless, "# {request}"),
        }
    }

    fn request(&mut self, request: &Request) {
        match request {
            Request::Set(object) | Request::Add(object) => self.object(request, object),
            Request::InterfaceCreate(spec) => {
                self.order.push(spec.name.clone());
                self.interface(&spec.name).keys = interface(spec);
            }
            other => _ = writeln!(self.wordless, "# {other}"),
        }
    }

    fn finish(mut self) -> String {
        let mut out = self.first;
        let classes = volley_object::classes();
        for name in &self.order {
            let Some(mut interface) = self.interfaces.remove(name) else {
                continue;
            };
            for (key, (is_list, all)) in std::mem::take(&mut interface.gathered) {
                let all = match is_list {
                    true => list(all),
                    false => format!("{{ {} }}", all.join(", ")),
                };
                interface.keys.plain(key, all);
            }
            for class in classes.iter() {
                let setting = interface.settings.remove(class.name());
                let setting = setting.unwrap_or_else(|| object_write::written_without(class));
                if let Some((key, value)) = setting {
                    interface.keys.plain(key, value);
                }
            }
            let _ = write!(out, "\n[[interface]]\n{}", interface.keys.lines());
        }
        out += &self.rest;
        if !self.wordless.is_empty() {
            out += "\n# Commands for which the file has no words:\n";
            out += &self.wordless;
        }
        out.trim_start().to_owned()
    }
}

fn interface(spec: &InterfaceSpec) -> Keys {
    let mut keys = Keys::default();
    keys.text("name", &spec.name);
    keys.text("kind", spec.kind.class().def().interface);
    for (class, value) in spec.settings() {
        let setting = Instance::of_value(class, &spec.name, value);
        if let Ok(Written::Interface(_, key, text)) = setting.as_ref().map(object_write::written) {
            keys.plain(key, text);
        }
    }
    let fields = object_write::lines(&spec.kind, 1);
    match table_key(spec.kind.class()) {
        None => keys.extend(fields),
        Some(_) if fields.is_empty() => {}
        Some(key) => keys.plain(key, fields.braces()),
    }
    keys
}
