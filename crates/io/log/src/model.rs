//! The modules of the log, `show log` and `set log level`.

use crate::record::{LogLevel, LogRecord};
use crate::settings::LogSettings;
use crate::text;
use schemars::JsonSchema;
use serde::Serialize;
use volley_object::{
    Choice, Class, DefinitionError, Object, Query, QueryClass, Verb, VerbClass, choice_name,
    choice_named,
};

/// A module of the log, with what it logs. A record's module is one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum LogModule {
    /// Start and end of the daemon, its configuration at start, the log itself.
    Daemon,
    /// Changes, commits, confirmations, deadlines, rollbacks, and who made them.
    Config,
    /// Clients of the command line and of HTTP that connect, leave or are refused.
    Client,
    /// Interfaces that are created, deleted, renamed or set up or down, and their links.
    Interface,
    /// Neighbours that are learned, move or do not answer; duplicate addresses.
    Neighbor,
    /// Workers that are added or removed, or stall.
    Worker,
    /// Routing tables that are loaded from files.
    Fib,
    /// Memif peers that connect, disconnect or break the protocol.
    Memif,
    /// vhost-user and virtio-user peers, likewise.
    Vhost,
    /// Captures that start and end.
    Capture,
    /// Lines of the elements Print and IPPrint of graphs in Click's language, without a rate limit.
    Click,
    /// Records of libraries; at most warn unless the module has its own level.
    Library,
}

impl LogModule {
    /// The name of the module.
    pub fn name(self) -> &'static str {
        choice_name(&self)
    }

    /// The module of a `tracing` target: the target itself, or that of the crate.
    pub(crate) fn of_target(target: &str) -> &'static str {
        let first = target.split("::").next().unwrap_or_default();
        let name = first.strip_prefix("volley_").unwrap_or(first);
        choice_named(name).map_or("library", LogModule::name)
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

/// Registers the settings, the query and the verb of this crate.
pub fn classes() -> Result<(Class, QueryClass, VerbClass), DefinitionError> {
    Ok((
        LogSettings::class()?,
        ShowLog::query()?,
        SetLogLevel::verb()?,
    ))
}
