//! The log: records of the control thread and its helper threads by the macros of `tracing`.
//!
//! - A record must pass the levels and the rate limit of its class (call site and interface). Then it is kept in memory for
//!   `show log`, sent to the event subscribers, and queued for the [`Writer`], a thread that writes to the destination.
//! - A thread that logs never waits: it accesses no file, socket or terminal. If a destination is too slow or refuses records,
//!   they are lost and counted, and the count is shown.
//! - Memory is bounded by number and bytes of records.
//! - Workers do not log: the control thread logs their events when it reads their state.
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

/// A reader of the records that are logged after its creation.
#[derive(Debug)]
pub struct Reader(broadcast::Receiver<Arc<LogRecord>>);

/// The result of [`Reader::next`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// The next record.
    Record(Arc<LogRecord>),
    /// The reader was too slow: this number of records is lost to it.
    Lost(u64),
    /// The log has ended.
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

    /// A log that gets no records of the process, for tests.
    #[cfg(test)]
    pub(crate) fn alone() -> Log {
        Log(Arc::default())
    }

    /// Start the log. The destination is opened; the caller must run the returned [`Writer`] on a dedicated thread.
    pub fn start(&self, settings: &LogSettings) -> Result<Writer, LogError> {
        let writer = self.writer(Sink::of(settings)?);
        self.0.configure(&settings.levels());
        // A second start in one process keeps the first subscriber, which is the same.
        let _ = tracing_core::dispatcher::set_global_default(self.dispatch());
        Ok(writer)
    }

    /// The `tracing` subscriber.
    pub(crate) fn dispatch(&self) -> Dispatch {
        Dispatch::new(Collector(self.0.clone()))
    }

    /// The writer for a destination.
    pub(crate) fn writer(&self, sink: Sink) -> Writer {
        let (sender, jobs) = sync_channel(QUEUE);
        self.0.connect(sender, sink.to_string());
        Writer::new(jobs, sink, self.0.clone())
    }

    /// The selected records in memory, and the state of the log.
    pub fn show(&self, select: Select<'_>) -> LogReply {
        self.0.show(select)
    }

    /// The active levels.
    pub fn levels(&self) -> LogLevels {
        self.0.levels()
    }

    /// Set the level of a module, or the level of all modules without their own; none = the configured level.
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

    /// Let the writer open its file again.
    pub fn reopen(&self) {
        self.0.send(Job::Reopen);
    }

    /// Wait until all records so far are written, at most this long.
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
