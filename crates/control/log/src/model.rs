//! `show log` and `set log level`.

use crate::text;
use schemars::JsonSchema;
use serde::Serialize;
use volley_model::{LOG_MODULES, LogLevel, LogRecord};
use volley_object::{
    Choice, DefinitionError, FieldType, Kind, Query, QueryClass, Value, Verb, VerbClass,
    choice_from, choice_kind, choice_value,
};

/// A module of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogModule(&'static str);

impl LogModule {
    /// Its name.
    pub fn name(self) -> &'static str {
        self.0
    }
}

static MODULES: [(&str, &str, LogModule); LOG_MODULES.len()] = {
    let mut all = [("", "", LogModule("")); LOG_MODULES.len()];
    let mut at = 0;
    while at < all.len() {
        let (name, text) = LOG_MODULES[at];
        all[at] = (name, text, LogModule(name));
        at += 1;
    }
    all
};

impl Choice for LogModule {
    const ALL: &'static [(&'static str, &'static str, Self)] = &MODULES;
}

impl FieldType for LogModule {
    fn kind() -> Kind {
        choice_kind::<Self>()
    }

    fn from_value(value: &Value) -> Option<Self> {
        choice_from(value)
    }

    fn to_value(&self) -> Value {
        choice_value(self)
    }
}

/// The newest records of the log (100), of a level and more serious ones, of one module.
#[derive(Clone, Debug, PartialEq, Eq, Query)]
#[query(name = "log", large, reply = LogReply, text = text::log)]
#[query(show = "show log {<max> | level <level> | module <module>}")]
#[query(example = "show log 20 level warn module interface")]
pub struct ShowLog {
    /// Most records to show; none = 100.
    pub max: Option<u64>,
    /// Only records of this level and of more serious ones.
    pub level: Option<LogLevel>,
    /// Only records of this module.
    pub module: Option<LogModule>,
    /// Only records behind this number.
    pub after: Option<u64>,
}

/// The log as `show log` has it.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct LogReply {
    /// The records, oldest first.
    pub records: Vec<LogRecord>,
    /// The levels in force, such as `info,memif=debug`.
    pub levels: String,
    /// Where records go, beside the memory.
    pub destination: String,
    /// Number of the oldest record in memory; 0 = there is none.
    pub oldest: u64,
    /// Number of the newest record; 0 = there is none.
    pub newest: u64,
    /// Records left out because too many alike came at once.
    pub suppressed: u64,
    /// Records that were not written to the destination because it does not keep up.
    pub dropped: u64,
    /// Records that the destination refused.
    pub failed: u64,
    /// Why the destination refused the last record, while it does.
    pub fault: Option<String>,
}

/// Set the level of the log, or of one module of it, until Volley ends; default is the level that the configuration gives.
#[derive(Clone, Debug, PartialEq, Eq, Verb)]
#[verb(name = "log-level", formerly = "log-level")]
#[verb(command = "set log level (<level> | default) [module <module>]")]
#[verb(example = "set log level debug module interface")]
pub struct SetLogLevel {
    /// Level; none = the level that the configuration gives.
    pub level: Option<LogLevel>,
    /// Only this module of the log; none = all that have no level of their own.
    pub module: Option<LogModule>,
}

/// Registers the query and the verb of this crate.
pub fn classes() -> Result<(QueryClass, VerbClass), DefinitionError> {
    Ok((ShowLog::query()?, SetLogLevel::verb()?))
}
