//! The log: what the control thread and its helpers say by the macros of `tracing`.
//!
//! - A record passes the levels, then the limit of its class (call site and interface), then it is in memory for `show log`,
//!   with the readers of events, and in the queue of the [`Writer`], a thread that writes to the destination.
//! - Whoever logs never waits: no file, socket or terminal is touched in the thread that logs. A destination that does not
//!   keep up or refuses records loses them, and how many is counted and shown.
//! - Memory is bounded by number and bytes of records.
//! - Workers do not log: what happens there reaches the control thread as state, and is logged by it.
#![forbid(unsafe_code)]

mod collector;
mod error;
mod file;
mod job;
mod journald;
mod limit;
mod memory;
mod model;
mod record;
mod select;
mod settings;
mod shared;
mod text;
mod writer;

pub use error::LogError;
pub use model::{LogModule, LogReply, SetLogLevel, ShowLog, classes};
pub use record::{LogLevel, LogRecord};
pub use select::Select;
pub use settings::{LogDestination, LogFormat, LogLevels, LogSettings, ModuleLevels};
pub use writer::Writer;

use collector::Collector;
use job::Job;
use shared::Shared;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tokio::sync::broadcast;
use tracing_core::Dispatch;
use volley_model::{Applied, Owners};
use volley_object::DefinitionError;
use writer::{QUEUE, Sink};

/// The log of a process.
#[derive(Clone)]
pub struct Log(Arc<Shared>);

/// One reader of records, from the moment it was made.
#[derive(Debug)]
pub struct Reader(broadcast::Receiver<Arc<LogRecord>>);

/// What a reader gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// The next record.
    Record(Arc<LogRecord>),
    /// The reader was too slow: so many records are lost to it.
    Lost(u64),
    /// There will be no more.
    Ended,
}

impl Reader {
    /// Wait for the next record.
    pub async fn next(&mut self) -> Heard {
        match self.0.recv().await {
            Ok(record) => Heard::Record(record),
            Err(broadcast::error::RecvError::Lagged(lost)) => Heard::Lost(lost),
            Err(broadcast::error::RecvError::Closed) => Heard::Ended,
        }
    }
}

impl Log {
    /// The log of this process. Until [`Log::start`] nothing is logged.
    pub fn of_process() -> Log {
        static LOG: OnceLock<Log> = OnceLock::new();
        LOG.get_or_init(|| Log(Arc::default())).clone()
    }

    /// A log that nothing of the process goes to, for tests.
    #[cfg(test)]
    pub(crate) fn alone() -> Log {
        Log(Arc::default())
    }

    /// Begin to log. The destination is opened; the [`Writer`] that is returned must be run by a thread of its own.
    pub fn start(&self, settings: &LogSettings) -> Result<Writer, LogError> {
        let writer = self.writer(Sink::of(settings)?);
        self.0.configure(&settings.levels());
        // A second start in one process keeps the first one's collector, which is the same.
        let _ = tracing_core::dispatcher::set_global_default(self.dispatch());
        Ok(writer)
    }

    /// What `tracing` gives records to.
    pub(crate) fn dispatch(&self) -> Dispatch {
        Dispatch::new(Collector(self.0.clone()))
    }

    /// The thread's part, for a destination.
    pub(crate) fn writer(&self, sink: Sink) -> Writer {
        let (sender, jobs) = sync_channel(QUEUE);
        self.0.connect(sender, sink.to_string());
        Writer::new(jobs, sink, self.0.clone())
    }

    /// The records in memory that are selected, and how the log fares.
    pub fn show(&self, select: Select<'_>) -> LogReply {
        self.0.show(select)
    }

    /// The levels in force.
    pub fn levels(&self) -> LogLevels {
        self.0.levels()
    }

    /// Set the level of a module, or of those that have none of their own; none = the configured level.
    pub fn set_level(&self, module: Option<&'static str>, level: Option<LogLevel>) -> bool {
        self.0.set_level(module, level)
    }

    /// Makes the log the owner of its query and its verb.
    pub fn own(&self, owners: &mut Owners) -> Result<(), DefinitionError> {
        let shown = self.clone();
        owners.answer(move |asked: ShowLog| {
            let select = Select {
                max: asked.max,
                level: asked.level,
                module: asked.module.map(LogModule::name),
                after: asked.after,
            };
            Ok(shown.show(select))
        })?;
        let log = self.clone();
        owners.perform(move |set: SetLogLevel| {
            let module = set.module.map(LogModule::name);
            Ok(match log.set_level(module, set.level) {
                true => Applied::one(),
                false => Applied::nothing(),
            })
        })
    }

    /// A new reader of records.
    pub fn reader(&self) -> Reader {
        Reader(self.0.subscribe())
    }

    /// Have the writer open its file again.
    pub fn reopen(&self) {
        self.0.send(Job::Reopen);
    }

    /// Wait until everything logged so far is written, at most so long.
    pub fn flush(&self, patience: Duration) -> bool {
        let until = Instant::now() + patience;
        let (done, written) = sync_channel(1);
        while !self.0.send(Job::Flush(done.clone())) {
            if Instant::now() > until {
                return false;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let left = until.saturating_duration_since(Instant::now());
        written.recv_timeout(left).is_ok()
    }
}

#[cfg(test)]
mod tests;
