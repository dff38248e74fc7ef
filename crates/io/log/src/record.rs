//! Records of the log, and their levels.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use volley_model::{Timestamp, escape};
use volley_object::Choice;

/// The level of a record, or the least serious level that is logged.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Default,
    Serialize,
    Deserialize,
    JsonSchema,
    Choice,
)]
#[serde(rename_all = "kebab-case")]
pub enum LogLevel {
    /// No records.
    Off,
    /// Something failed: packets or changes are lost until an operator acts.
    Error,
    /// Something is wrong, but the router continues.
    Warn,
    /// Events that operators look up later: links, commits, clients.
    #[default]
    Info,
    /// Details that explain other records: each neighbour, each refused request.
    Debug,
    /// All records.
    Trace,
}

/// One record of the log.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LogRecord {
    /// Number of the record, from 1, without gaps, so that readers detect missing records.
    pub sequence: u64,
    /// Time of the event.
    pub time: Timestamp,
    /// Level of the record.
    pub level: LogLevel,
    /// Part of the daemon that logged the record.
    pub module: String,
    /// Description of the event, one sentence.
    pub message: String,
    /// Details of the event by name, such as `interface`, `user` or `commit`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<String, String>,
}

impl LogRecord {
    /// Message and details as one line without terminal control characters.
    pub fn text(&self) -> String {
        let mut out = escape(&self.message).into_owned();
        for (name, value) in &self.fields {
            let value = escape(value);
            let bare = !value.is_empty() && !value.contains([' ', '"', '=']);
            out += &match bare {
                true => format!(" {}={value}", escape(name)),
                false => format!(" {}=\"{}\"", escape(name), value.replace('"', "\\\"")),
            };
        }
        out
    }
}

impl fmt::Display for LogRecord {
    /// Time, level, module, message and details as one line without terminal control characters.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let module = escape(&self.module);
        write!(
            f,
            "{} {:<5} {module}: {}",
            self.time,
            self.level,
            self.text()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_one_line_whatever_it_holds() {
        let record = LogRecord {
            sequence: 1,
            time: Timestamp(1_795_321_052_000_250),
            level: LogLevel::Warn,
            module: "memif".into(),
            message: "peer \x1b[31mred\nforged line".into(),
            fields: [("peer", "a \"b\"\u{9b}2J"), ("interface", "memif0/0")]
                .map(|(k, v)| (k.to_owned(), v.to_owned()))
                .into(),
        };
        assert_eq!(
            record.to_string(),
            "2026-11-22T04:17:32.000250Z warn  memif: peer \\u{1b}[31mred\\nforged line \
             interface=memif0/0 peer=\"a \\\"b\\\"\\u{9b}2J\""
        );
    }
}
