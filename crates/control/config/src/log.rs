//! `[log]`: which records are logged, and where they go.

use crate::field::Section;
use crate::schema::{Key, Table};
use volley_model::{
    LOG_MODULES, LogDestination, LogFormat, LogLevel, LogLevels, LogSettings, limits,
};
use volley_object::Choice;

const fn k(name: &'static str, text: &'static str) -> Key {
    Key { name, text }
}

pub(crate) static LOG: Table = Table {
    name: "log",
    repeats: false,
    keys: &[
        k("level", "off, error, warn, info, debug or trace (info)"),
        k(
            "modules",
            "levels of single modules, such as { interface = \"debug\" }, each with its own (level)",
        ),
        k(
            "destination",
            "journald, stderr, file, none; or auto: journald when systemd connected standard error to it, else stderr (auto)",
        ),
        k("file", "path of the file, for destination file"),
        k("format", "lines of the file: text or json (text)"),
        k(
            "file_size",
            "bytes after which the file is renamed to FILE.1 and a new one is begun, 0 for never (16777216)",
        ),
        k("file_count", "renamed files that are kept, 0 to 100 (4)"),
    ],
};

/// The model's list as keys.
const fn modules() -> [Key; LOG_MODULES.len()] {
    let mut keys = [k("", ""); LOG_MODULES.len()];
    let mut at = 0;
    while at < keys.len() {
        keys[at] = k(LOG_MODULES[at].0, LOG_MODULES[at].1);
        at += 1;
    }
    keys
}

static MODULE_KEYS: [Key; LOG_MODULES.len()] = modules();

pub(crate) static MODULES: Table = Table {
    name: "log.modules",
    repeats: false,
    keys: &MODULE_KEYS,
};

/// The levels by name.
fn by_name() -> Vec<(&'static str, LogLevel)> {
    let all = LogLevel::ALL.iter();
    all.map(|(name, _, level)| (*name, *level)).collect()
}

pub(crate) fn log(section: Section<'_>) -> LogSettings {
    let usual = LogSettings::default();
    let level = section.get("level").and_then(|f| f.one_of(&by_name()));
    let mut levels = LogLevels {
        level: level.unwrap_or_default(),
        ..LogLevels::default()
    };
    let modules = section.get("modules").and_then(|f| f.section(&MODULES));
    for (module, _) in modules.iter().flat_map(|_| LOG_MODULES) {
        let field = modules.as_ref().and_then(|section| section.get(module));
        if let Some(level) = field.and_then(|f| f.one_of(&by_name())) {
            levels.modules.insert(module.to_owned(), level);
        }
    }
    let destination = section.get("destination");
    let destination = destination.and_then(|f| f.one_of(&LogDestination::ALL));
    let format = section
        .get("format")
        .and_then(|f| f.one_of(&LogFormat::ALL));
    let size = section
        .get("file_size")
        .and_then(|f| f.uint(limits::LOG_FILE_SIZE));
    let count = section
        .get("file_count")
        .and_then(|f| f.uint32(limits::LOG_FILES));
    let settings = LogSettings {
        levels,
        destination: destination.unwrap_or_default(),
        file: section.get("file").and_then(|f| f.path()),
        format: format.unwrap_or_default(),
        file_size: size.unwrap_or(usual.file_size),
        file_count: count.unwrap_or(usual.file_count),
    };
    if let Err(error) = settings.validate() {
        section.error(error);
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_section_is_read_whole_and_its_errors_name_the_place() {
        let text = "[log]\nlevel = \"warn\"\nmodules = { memif = \"debug\", client = \"off\" }\n\
            destination = \"file\"\nfile = \"/var/log/volley.log\"\nformat = \"json\"\nfile_size = 0\nfile_count = 9\n\
            [engine]\nworkers = 2\n";
        let log = crate::parse(text).unwrap().engine.log;
        assert_eq!(log.levels.to_string(), "warn,client=off,memif=debug");
        assert_eq!(log.destination, LogDestination::File);
        assert_eq!(log.file.as_deref(), Some("/var/log/volley.log".as_ref()));
        assert_eq!(
            (log.format, log.file_size, log.file_count),
            (LogFormat::Json, 0, 9)
        );
        assert_eq!(crate::parse("").unwrap().engine.log, LogSettings::default());
        for (text, part) in [
            ("[log]\nlevel = \"loud\"", "must be one of off, error"),
            (
                "[log]\nmodules = { memiff = \"debug\" }",
                "did you mean 'memif'?",
            ),
            ("[log]\ndestination = \"file\"", "name the file"),
            ("[log]\nfile = \"/x\"", "set destination = \"file\" as well"),
        ] {
            let error = crate::parse(text).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
