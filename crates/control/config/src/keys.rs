//! Keys and values of a table, written as TOML.

use std::fmt::Display;
use toml_writer::{ToTomlValue, TomlStringBuilder};

/// A text as a quoted string of TOML.
pub(crate) fn quoted(text: impl Display) -> String {
    let text = text.to_string();
    TomlStringBuilder::new(&text).as_basic().to_toml_value()
}

pub(crate) fn list(items: impl IntoIterator<Item = String>) -> String {
    let items: Vec<String> = items.into_iter().collect();
    format!("[{}]", items.join(", "))
}

/// Keys of one table, in order.
#[derive(Default)]
pub(crate) struct Keys(Vec<(&'static str, String)>);

impl Keys {
    pub(crate) fn text(&mut self, key: &'static str, value: impl Display) {
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
