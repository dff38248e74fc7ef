//! The log: levels, modules, records, and where records go.

use crate::error::ModelError;
use crate::escape::escape;
use crate::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use volley_object::Choice;

/// How much a record matters, and how much is logged.
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
    /// Nothing.
    Off,
    /// Something failed: packets or changes are lost until an operator acts.
    Error,
    /// Something is wrong, and the router goes on.
    Warn,
    /// What an operator wants to read afterwards: links, commits, clients.
    #[default]
    Info,
    /// What explains the others: each neighbour, each refused request.
    Debug,
    /// Everything.
    Trace,
}

impl FromStr for LogLevel {
    type Err = ModelError;

    fn from_str(text: &str) -> Result<Self, ModelError> {
        let found = LogLevel::ALL.iter().find(|(name, ..)| *name == text);
        let why = "choose off, error, warn, info, debug or trace";
        let bad = || ModelError::invalid(format!("log level '{}'", escape(text)), why);
        found.map(|(.., level)| *level).ok_or_else(bad)
    }
}

/// Every module of the log, with what it logs. A record's module is one of these.
pub const LOG_MODULES: [(&str, &str); 11] = [
    (
        "daemon",
        "start and end of the daemon, its configuration at start, the log itself",
    ),
    (
        "config",
        "changes, commits, confirmations, deadlines, rollbacks, and who made them",
    ),
    (
        "client",
        "clients of the command line and of HTTP that connect, leave or are refused",
    ),
    (
        "interface",
        "interfaces that are created, deleted, renamed or set up or down, and their links",
    ),
    (
        "neighbor",
        "neighbours that are learned, move or do not answer; duplicate addresses",
    ),
    ("worker", "workers that are added or removed, or stall"),
    ("fib", "routing tables that are loaded from files"),
    (
        "memif",
        "memif peers that connect, disconnect or break the protocol",
    ),
    ("vhost", "vhost-user and virtio-user peers, likewise"),
    ("capture", "captures that start and end"),
    (
        "library",
        "whatever libraries log; not more than warn unless it has a level of its own",
    ),
];

/// Checks that a module of the log exists.
fn check_log_module(module: &str) -> Result<(), ModelError> {
    if LOG_MODULES.iter().any(|(name, _)| *name == module) {
        return Ok(());
    }
    let names: Vec<&str> = LOG_MODULES.iter().map(|(name, _)| *name).collect();
    let what = format!("log module '{}'", escape(module));
    Err(ModelError::invalid(
        what,
        format!("choose one of {}", names.join(", ")),
    ))
}

/// Which records are logged: a level, and modules that have another one. Written `info,memif=debug`.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LogLevels {
    /// The level of modules that have none of their own.
    pub level: LogLevel,
    /// Levels of single modules.
    pub modules: BTreeMap<String, LogLevel>,
}

impl LogLevels {
    /// The level of a module.
    pub fn of(&self, module: &str) -> LogLevel {
        let own = self.modules.get(module);
        own.copied().unwrap_or(match module {
            "library" => self.level.min(LogLevel::Warn),
            _ => self.level,
        })
    }

    /// The most verbose level of all.
    pub fn most(&self) -> LogLevel {
        let own = self.modules.values().copied().max();
        own.map_or(self.level, |own| own.max(self.level))
    }
}

impl fmt::Display for LogLevels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.level)?;
        let mut all = self.modules.iter();
        all.try_for_each(|(module, level)| write!(f, ",{module}={level}"))
    }
}

impl FromStr for LogLevels {
    type Err = ModelError;

    fn from_str(text: &str) -> Result<Self, ModelError> {
        let mut levels = LogLevels::default();
        for part in text.split(',').map(str::trim) {
            match part.split_once('=') {
                Some((module, level)) => {
                    check_log_module(module)?;
                    levels.modules.insert(module.to_owned(), level.parse()?);
                }
                None => levels.level = part.parse()?,
            }
        }
        Ok(levels)
    }
}

/// Where records go, beside the memory that `show log` reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LogDestination {
    /// The systemd journal when systemd connected standard error to it, else standard error.
    #[default]
    Auto,
    /// The systemd journal.
    Journald,
    /// Standard error, as text.
    Stderr,
    /// A file.
    File,
    /// Nowhere else.
    None,
}

impl LogDestination {
    /// Every destination with its name.
    pub const ALL: [(&'static str, LogDestination); 5] = [
        ("auto", LogDestination::Auto),
        ("journald", LogDestination::Journald),
        ("stderr", LogDestination::Stderr),
        ("file", LogDestination::File),
        ("none", LogDestination::None),
    ];
}

/// How records are written into a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LogFormat {
    /// One line of text each.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

impl LogFormat {
    /// Every format with its name.
    pub const ALL: [(&'static str, LogFormat); 2] =
        [("text", LogFormat::Text), ("json", LogFormat::Json)];
}

/// The settings of the log at start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LogSettings {
    /// Which records are logged.
    pub levels: LogLevels,
    /// Where they go.
    pub destination: LogDestination,
    /// The file, for destination `file`.
    pub file: Option<PathBuf>,
    /// How records are written into the file.
    pub format: LogFormat,
    /// Bytes after which the file is renamed to `FILE.1` and a new one is begun; 0 = never.
    pub file_size: u64,
    /// Renamed files that are kept.
    pub file_count: u32,
}

impl Default for LogSettings {
    fn default() -> Self {
        LogSettings {
            levels: LogLevels::default(),
            destination: LogDestination::Auto,
            file: None,
            format: LogFormat::Text,
            file_size: 16 << 20,
            file_count: 4,
        }
    }
}

impl LogSettings {
    /// Checks that a file is named when and only when records go into one, and that all modules exist.
    pub fn validate(&self) -> Result<(), ModelError> {
        let names = self.levels.modules.keys();
        names.map(String::as_str).try_for_each(check_log_module)?;
        match (self.destination, &self.file) {
            (LogDestination::File, None) => {
                let why = "name the file: set file as well";
                Err(ModelError::invalid("log.destination file", why))
            }
            (LogDestination::File, Some(_)) | (_, None) => Ok(()),
            (_, Some(file)) => {
                let why = "nothing is written into it: set destination = \"file\" as well, or leave file away";
                Err(ModelError::invalid(
                    format!("log.file {}", file.display()),
                    why,
                ))
            }
        }
    }
}

/// One record of the log.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LogRecord {
    /// The record's number, from 1, without gaps: a reader that misses one knows.
    pub sequence: u64,
    /// When it happened.
    pub time: Timestamp,
    /// How much it matters.
    pub level: LogLevel,
    /// Which part of the daemon logged it.
    pub module: String,
    /// What happened, one sentence.
    pub message: String,
    /// Its particulars by name, such as `interface`, `user` or `commit`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<String, String>,
}

impl LogRecord {
    /// Message and particulars as one line; nothing in it acts on a terminal.
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
    /// Time, level, module, message and particulars as one line; nothing in it acts on a terminal.
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
    fn levels_are_read_and_written() {
        let read: LogLevels = "warn, memif=debug,client=off".parse().unwrap();
        assert_eq!(read.to_string(), "warn,client=off,memif=debug");
        assert_eq!(read.of("memif"), LogLevel::Debug);
        assert_eq!(read.of("client"), LogLevel::Off);
        assert_eq!(read.of("config"), LogLevel::Warn);
        assert_eq!(read.most(), LogLevel::Debug);
        for (bad, part) in [
            ("loud", "choose off, error"),
            ("info,memiff=debug", "log module 'memiff'"),
            ("memif=", "log level ''"),
            ("", "log level ''"),
            ("\x1b[2J", "\\u{1b}[2J"),
        ] {
            let error = bad.parse::<LogLevels>().unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }

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

    #[test]
    fn a_file_and_its_destination_go_together() {
        let mut settings = LogSettings::default();
        assert_eq!(settings.validate(), Ok(()));
        settings.destination = LogDestination::File;
        assert!(settings.validate().is_err());
        settings.file = Some("/var/log/volley.log".into());
        assert_eq!(settings.validate(), Ok(()));
        settings.destination = LogDestination::Auto;
        assert!(settings.validate().is_err());
    }
}
