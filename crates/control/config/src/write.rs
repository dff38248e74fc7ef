//! Writes requests out as a configuration file: what [`crate::parse`] reads back as the same requests.

use crate::object_write::{self, Written};
use std::collections::BTreeMap;
use std::fmt::{Display, Write};
use volley_model::{InterfaceSpec, Request};
use volley_object::Instance;

/// A text in quotes, as TOML wants it.
pub(crate) fn quoted(text: impl Display) -> String {
    let mut out = String::from("\"");
    for c in text.to_string().chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c if c.is_control() => _ = write!(out, "\\u{:04X}", u32::from(c)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

pub(crate) fn list(items: impl IntoIterator<Item = String>) -> String {
    let items: Vec<String> = items.into_iter().collect();
    format!("[{}]", items.join(", "))
}

/// Keys of one table, in order.
#[derive(Default)]
pub(crate) struct Keys(Vec<(&'static str, String)>);

impl Keys {
    fn text(&mut self, key: &'static str, value: impl Display) {
        self.0.push((key, quoted(value)));
    }

    pub(crate) fn plain(&mut self, key: &'static str, value: impl Display) {
        self.0.push((key, value.to_string()));
    }

    pub(crate) fn extend(&mut self, more: Keys) {
        self.0.extend(more.0);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn lines(&self) -> String {
        let line = |(k, v): &(&str, String)| format!("{k} = {v}\n");
        self.0.iter().map(line).collect()
    }

    pub(crate) fn braces(&self) -> String {
        let part = |(k, v): &(&str, String)| format!("{k} = {v}");
        let parts: Vec<String> = self.0.iter().map(part).collect();
        format!("{{ {} }}", parts.join(", "))
    }
}

/// Requests as a file. What the file has no words for stands in it as a comment.
pub fn write(requests: &[Request]) -> String {
    let mut writer = Writer::default();
    requests.iter().for_each(|r| writer.request(r));
    writer.finish()
}

#[derive(Default)]
struct Writer {
    /// Tables that stand before the interfaces.
    first: String,
    order: Vec<String>,
    interfaces: BTreeMap<String, Interface>,
    rest: String,
    wordless: String,
}

#[derive(Default)]
struct Interface {
    keys: Keys,
    /// Values of keys that gather several objects: the key, its brackets, the entries.
    gathered: BTreeMap<&'static str, (bool, Vec<String>)>,
    /// Objects of classes of which the file says one value by not saying it: the key and the value, if they are said.
    said: BTreeMap<&'static str, Option<(&'static str, String)>>,
}

impl Writer {
    fn interface(&mut self, name: &str) -> &mut Interface {
        self.interfaces.entry(name.to_owned()).or_default()
    }

    fn object(&mut self, request: &Request, object: &volley_object::Instance) {
        let written = object_write::written(object);
        if object_write::said_without(object.class()).is_some()
            && let Written::Interface(name, key, value) = written
        {
            let said = (!object_write::is_unsaid(object)).then_some((key, value));
            let class = object.class().name();
            self.interface(&name).said.insert(class, said);
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
                let said = interface.said.remove(class.name());
                let said = said.unwrap_or_else(|| object_write::said_without(class));
                if let Some((key, value)) = said {
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
    crate::interface::write(&spec.kind, &mut keys);
    keys
}
