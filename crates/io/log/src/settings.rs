//! Which records are logged, and where they go: the levels, and the table `[log]` of the file.

use crate::model::LogModule;
use crate::record::LogLevel;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::OnceLock;
use volley_model::escape;
use volley_object::{
    Choice, FieldDef, FieldError, FieldType, Object, TextTable, Value, choice_named, refuse,
    syntax_field,
};

/// The valid range of the size limit of a file.
const FILE_SIZE: std::ops::RangeInclusive<u64> = 0..=1 << 40;

/// The levels of modules that have their own. Text form `memif=debug,client=off`; in the configuration file a table.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ModuleLevels(BTreeMap<&'static str, LogLevel>);

static TABLE: TextTable = TextTable {
    fields: of_table,
    text: text_of_table,
    values: |text| {
        let all: ModuleLevels = text.parse().unwrap_or_default();
        let level = |module: &str| all.get(module).map(|level| level.to_value());
        modules().map(level).collect()
    },
    begins: &[],
};

syntax_field!(
    ModuleLevels,
    "levels of modules",
    Any,
    ["memif=debug"],
    "",
    Some(&TABLE)
);

fn modules() -> impl Iterator<Item = &'static str> {
    LogModule::ALL.iter().map(|(name, ..)| *name)
}

fn of_table() -> &'static [FieldDef] {
    static FIELDS: OnceLock<Vec<FieldDef>> = OnceLock::new();
    FIELDS.get_or_init(|| {
        let field = |(name, doc, _): &(&'static str, &'static str, LogModule)| FieldDef {
            optional: true,
            ..FieldDef::new::<LogLevel>(name, doc, false)
        };
        LogModule::ALL.iter().map(field).collect()
    })
}

fn text_of_table(levels: &[Option<Value>]) -> Result<String, FieldError> {
    let all = modules().zip(levels);
    let all = all.filter_map(|(module, level)| Some(format!("{module}={}", level.as_ref()?)));
    Ok(all.collect::<Vec<String>>().join(","))
}

/// Parses a word of the levels; an error lists the choices.
fn word<T: Choice>(what: &str, word: &str) -> Result<T, String> {
    choice_named(word).map_err(|why| format!("{what} '{}' is not valid: {why}", escape(word)))
}

impl ModuleLevels {
    /// The level of a module, if it has its own.
    pub fn get(&self, module: &str) -> Option<LogLevel> {
        self.0.get(module).copied()
    }

    /// Sets or removes the level of a module.
    pub(crate) fn set(&mut self, module: &'static str, level: Option<LogLevel>) {
        match level {
            Some(level) => _ = self.0.insert(module, level),
            None => _ = self.0.remove(module),
        }
    }

    /// Parses `memif=debug`.
    fn read(&mut self, module: &str, level: &str) -> Result<(), String> {
        let module: LogModule = word("log module", module)?;
        self.set(module.name(), Some(word("log level", level)?));
        Ok(())
    }
}

impl fmt::Display for ModuleLevels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (module, level)) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(f, "{comma}{module}={level}")?;
        }
        Ok(())
    }
}

impl FromStr for ModuleLevels {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut all = ModuleLevels::default();
        for part in text.split(',').filter(|_| !text.is_empty()) {
            let (module, level) = part.split_once('=').unwrap_or((part, ""));
            all.read(module, level)?;
        }
        Ok(all)
    }
}

/// The levels of records that are logged: a level, and modules with another one. Text form `info,memif=debug`.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct LogLevels {
    /// The level of modules without their own.
    pub level: LogLevel,
    /// Levels of single modules.
    pub modules: ModuleLevels,
}

impl LogLevels {
    /// The effective level of a module.
    pub fn of(&self, module: &str) -> LogLevel {
        self.modules.get(module).unwrap_or(match module {
            "library" => self.level.min(LogLevel::Warn),
            _ => self.level,
        })
    }

    /// The most verbose of all levels.
    pub fn most(&self) -> LogLevel {
        let own = self.modules.0.values().copied().max();
        own.map_or(self.level, |own| own.max(self.level))
    }
}

impl fmt::Display for LogLevels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let comma = if self.modules.0.is_empty() { "" } else { "," };
        write!(f, "{}{comma}{}", self.level, self.modules)
    }
}

impl FromStr for LogLevels {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut levels = LogLevels::default();
        for part in text.split(',').map(str::trim) {
            match part.split_once('=') {
                Some((module, level)) => levels.modules.read(module, level)?,
                None => levels.level = word("log level", part)?,
            }
        }
        Ok(levels)
    }
}

/// Where records go, beside the memory that `show log` reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Choice)]
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

/// How records are written into a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Choice)]
pub enum LogFormat {
    /// One line of text each.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// The log: which records are logged, and where they go.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "log", file = "[log]", startup, check = LogSettings::check)]
#[object(instead("show logging", "use `show log`"))]
pub struct LogSettings {
    /// Level of records that are logged, and of more serious ones.
    #[object(default = LogLevel::Info)]
    pub level: LogLevel,
    /// Levels of single modules, such as { interface = "debug" }, each instead of `level`.
    #[object(default = ModuleLevels::default())]
    pub modules: ModuleLevels,
    /// Where records go: `auto` is the systemd journal when systemd connected standard error to it, else standard error.
    #[object(default = LogDestination::Auto)]
    pub destination: LogDestination,
    /// Path of the file, for destination `file`.
    #[object(example = "/var/log/volley/volley.log")]
    pub file: Option<PathBuf>,
    /// Lines of the file: text, or a JSON object each.
    #[object(default = LogFormat::Text)]
    pub format: LogFormat,
    /// Size after which the file is renamed to FILE.1 and a new one is begun, 0 for never.
    #[object(default = 16 << 20, range = FILE_SIZE, unit = "bytes")]
    pub file_size: u64,
    /// Renamed files that are kept.
    #[object(default = 4, range = 0..=100)]
    pub file_count: u32,
}

impl LogSettings {
    /// The levels.
    pub fn levels(&self) -> LogLevels {
        let (level, modules) = (self.level, self.modules.clone());
        LogLevels { level, modules }
    }

    /// Sets the levels.
    pub fn set_levels(&mut self, levels: &LogLevels) {
        self.level = levels.level;
        self.modules.clone_from(&levels.modules);
    }

    /// A file is named when and only when records go into one.
    fn check(&self) -> Result<(), FieldError> {
        match (self.destination, &self.file) {
            (LogDestination::File, None) => refuse(
                "destination",
                "file needs the name of the file: set file as well",
            ),
            (LogDestination::File, Some(_)) | (_, None) => Ok(()),
            (_, Some(file)) => refuse(
                "file",
                format!(
                    "{}: nothing is written into it: set destination = \"file\" as well, or leave file away",
                    file.display()
                ),
            ),
        }
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
            let error = bad.parse::<LogLevels>().unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn a_file_and_its_destination_go_together() {
        let mut settings = LogSettings::default();
        assert_eq!(settings.check(), Ok(()));
        settings.destination = LogDestination::File;
        assert!(settings.check().is_err());
        settings.file = Some("/var/log/volley.log".into());
        assert_eq!(settings.check(), Ok(()));
        settings.destination = LogDestination::Auto;
        assert!(settings.check().is_err());
    }

    #[test]
    fn the_table_is_read_whole_and_its_errors_name_the_place() {
        crate::classes().unwrap();
        let text = "[log]\nlevel = \"warn\"\nmodules = { memif = \"debug\", client = \"off\" }\n\
            destination = \"file\"\nfile = \"/var/log/volley.log\"\nformat = \"json\"\nfile_size = 0\nfile_count = 9\n";
        let log: LogSettings = volley_config::parse(text).unwrap().startup.get();
        assert_eq!(log.levels().to_string(), "warn,client=off,memif=debug");
        assert_eq!(log.destination, LogDestination::File);
        assert_eq!(log.file.as_deref(), Some("/var/log/volley.log".as_ref()));
        assert_eq!(
            (log.format, log.file_size, log.file_count),
            (LogFormat::Json, 0, 9)
        );
        let usual: LogSettings = volley_config::parse("").unwrap().startup.get();
        assert_eq!(usual, LogSettings::default());
        for (text, part) in [
            (
                "[log]\nlevel = \"loud\"",
                "volley.toml:2:9: log.level: must be off, error",
            ),
            (
                "[log]\nmodules = { memiff = \"debug\" }",
                "volley.toml:2:13: unknown key 'memiff' in log.modules { }: did you mean 'memif'?",
            ),
            (
                "[log.modules]\nmemif = 3",
                "log.modules.memif: must be off, error",
            ),
            ("[log]\ndestination = \"file\"", "the name of the file"),
            ("[log]\nfile = \"/x\"", "set destination = \"file\" as well"),
        ] {
            let error = volley_config::parse(text).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        let all = volley_config::schema();
        let modules = all.iter().find(|table| table.name == "log.modules");
        assert_eq!(modules.unwrap().keys.len(), LogModule::ALL.len());
    }
}
