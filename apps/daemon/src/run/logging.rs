//! Where the daemon's log goes, from start to end.

use super::{RunError, privileges};
use std::str::FromStr;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use volley_log::{Log, LogDestination, LogLevel, LogSettings};
use volley_object::choice_named;

/// The longest time that the end of the daemon waits for the last records.
const LAST: Duration = Duration::from_millis(500);

/// A destination in the syntax of `--log-to`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogTo {
    destination: LogDestination,
    file: Option<std::path::PathBuf>,
}

impl FromStr for LogTo {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || {
            format!("'{text}' is no destination: give auto, journald, stderr, none or file:PATH")
        };
        if let Some(path) = text.strip_prefix("file:") {
            let file = (!path.is_empty()).then(|| path.into()).ok_or_else(bad)?;
            return Ok(LogTo {
                destination: LogDestination::File,
                file: Some(file),
            });
        }
        let found = choice_named(text).ok();
        let found = found.filter(|to| *to != LogDestination::File);
        Ok(LogTo {
            destination: found.ok_or_else(bad)?,
            file: None,
        })
    }
}

impl LogTo {
    /// Stores the destination in the settings.
    pub fn settle(&self, settings: &mut LogSettings) {
        settings.destination = self.destination;
        settings.file.clone_from(&self.file);
    }
}

/// Starts the log. This thread opens the file, because the writer's thread has no capabilities.
pub fn start(settings: &LogSettings) -> Result<(), RunError> {
    let writer = Log::of_process().start(settings)?;
    privileges::without(move || writer.spawn())??;
    Ok(())
}

/// For commands other than the daemon: logs warnings to standard error.
pub fn warnings() {
    let settings = LogSettings {
        level: LogLevel::Warn,
        destination: LogDestination::Stderr,
        ..LogSettings::default()
    };
    // Standard error always exists, and a command works without its warnings.
    if let Ok(writer) = Log::of_process().start(&settings) {
        let _ = writer.spawn();
    }
}

/// Waits until the last records are written.
pub fn end() {
    Log::of_process().flush(LAST);
}

/// On SIGHUP the log opens its file again. Without a file SIGHUP does nothing; it never ends the daemon.
pub fn follow_hangups() -> std::io::Result<()> {
    let mut hangups = signal(SignalKind::hangup())?;
    tokio::task::spawn_local(async move {
        while hangups.recv().await.is_some() {
            Log::of_process().reopen();
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use volley_object::Object;

    #[test]
    fn destinations_are_read() {
        let mut settings = LogSettings::default();
        let to: LogTo = "file:/var/log/v".parse().unwrap();
        to.settle(&mut settings);
        assert_eq!(settings.file.as_deref(), Some("/var/log/v".as_ref()));
        assert!(settings.instance().is_ok());
        "stderr".parse::<LogTo>().unwrap().settle(&mut settings);
        assert_eq!(settings.destination, LogDestination::Stderr);
        assert!(settings.instance().is_ok());
        for bad in ["", "file", "file:", "syslog"] {
            assert!(bad.parse::<LogTo>().is_err(), "{bad}");
        }
    }
}
