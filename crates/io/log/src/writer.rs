//! The thread that writes records to their destination, so that no other thread waits for it.

use crate::error::LogError;
use crate::file::File;
use crate::job::Job;
use crate::journald::Journald;
use crate::record::{LogLevel, LogRecord};
use crate::settings::{LogDestination, LogSettings};
use crate::shared::Shared;
use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};
use volley_model::Timestamp;

/// The capacity of the writer's queue; further records are not written, but counted.
pub(crate) const QUEUE: usize = 4096;
/// The interval of checks for suppressed records to report.
const LOOK: Duration = Duration::from_secs(1);

/// The destination of records.
pub(crate) enum Sink {
    Stderr {
        colour: bool,
    },
    File(File),
    Journald(Journald),
    Nowhere,
    /// The destination of a test.
    #[cfg(test)]
    Test(Box<dyn Write + Send>),
}

impl Sink {
    /// Open the destination of the settings.
    pub fn of(settings: &LogSettings) -> Result<Sink, LogError> {
        let journald = || {
            Journald::open()
                .map(Sink::Journald)
                .map_err(LogError::Journald)
        };
        let colour = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        Ok(match (settings.destination, &settings.file) {
            (LogDestination::None, _) => Sink::Nowhere,
            (LogDestination::Journald, _) => journald()?,
            (LogDestination::Auto, _) if crate::journald::is_stderr() => journald()?,
            (LogDestination::File, Some(file)) => Sink::File(File::open(file, settings)?),
            _ => Sink::Stderr { colour },
        })
    }

    fn write(&mut self, record: &LogRecord) -> io::Result<()> {
        match self {
            Sink::Stderr { colour } => {
                let line = line(record, *colour);
                io::stderr().lock().write_all(line.as_bytes())
            }
            Sink::File(file) => file.write(record),
            Sink::Journald(journald) => journald.write(record),
            Sink::Nowhere => Ok(()),
            #[cfg(test)]
            Sink::Test(to) => to.write_all(line(record, false).as_bytes()),
        }
    }
}

impl fmt::Display for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Sink::Stderr { .. } => f.write_str("stderr"),
            Sink::File(file) => write!(f, "file {}", file.path().display()),
            Sink::Journald(_) => f.write_str("journald"),
            Sink::Nowhere => f.write_str("none"),
            #[cfg(test)]
            Sink::Test(_) => f.write_str("a test"),
        }
    }
}

/// A record as a line of text, with the level in colour on a terminal.
fn line(record: &LogRecord, colour: bool) -> String {
    if !colour {
        return format!("{record}\n");
    }
    let paint = match record.level {
        LogLevel::Off | LogLevel::Error => "31",
        LogLevel::Warn => "33",
        LogLevel::Info => "32",
        LogLevel::Debug | LogLevel::Trace => "36",
    };
    let (time, level, module) = (record.time, record.level, &record.module);
    format!(
        "{time} \x1b[{paint}m{level:<5}\x1b[0m {module}: {}\n",
        record.text()
    )
}

/// Writes records to their destination, on a dedicated thread.
pub struct Writer {
    jobs: Receiver<Job>,
    sink: Sink,
    shared: Arc<Shared>,
    /// The number of dropped records that were reported.
    reported: u64,
}

impl Writer {
    pub(crate) fn new(jobs: Receiver<Job>, sink: Sink, shared: Arc<Shared>) -> Writer {
        Writer {
            jobs,
            sink,
            shared,
            reported: 0,
        }
    }

    /// Start the thread. It inherits the capabilities of the calling thread.
    pub fn spawn(self) -> Result<(), LogError> {
        let thread = std::thread::Builder::new().name("volley-log".into());
        let started = thread.spawn(move || self.run());
        started.map(drop).map_err(LogError::Thread)
    }

    /// Write until the process ends.
    pub(crate) fn run(mut self) {
        let mut waiting = false;
        loop {
            let job = match waiting {
                true => self.jobs.recv_timeout(LOOK),
                false => self.jobs.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match job {
                Ok(Job::Record(record)) => self.write(&record),
                Ok(Job::Reopen) => {
                    if let Sink::File(file) = &mut self.sink {
                        self.shared.written(file.reopen());
                    }
                }
                Ok(Job::Flush(done)) => _ = done.try_send(()),
                Ok(Job::Wake) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            waiting = self.shared.report(Instant::now());
        }
    }

    fn write(&mut self, record: &LogRecord) {
        let dropped = self.shared.dropped.load(Relaxed);
        if dropped > self.reported {
            let lost = dropped - self.reported;
            let done = self.sink.write(&LogRecord {
                time: Timestamp::now(),
                level: LogLevel::Warn,
                module: "daemon".into(),
                message: format!("{lost} records are missing here: the destination did not keep up; `show log` has the newest"),
                ..LogRecord::default()
            });
            if done.is_ok() {
                self.reported = dropped;
            }
        }
        let done = self.sink.write(record);
        self.shared.written(done);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_of_the_level_only() {
        let record = LogRecord {
            level: LogLevel::Warn,
            module: "config".into(),
            message: "a\x1b[2Jb".into(),
            ..LogRecord::default()
        };
        assert_eq!(
            line(&record, true),
            "1970-01-01T00:00:00.000000Z \x1b[33mwarn \x1b[0m config: a\\u{1b}[2Jb\n"
        );
        assert_eq!(
            line(&record, false),
            "1970-01-01T00:00:00.000000Z warn  config: a\\u{1b}[2Jb\n"
        );
    }
}
