//! Jobs for the writer's thread.

use crate::record::LogRecord;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

/// A job for the writer.
pub(crate) enum Job {
    Record(Arc<LogRecord>),
    /// Records were suppressed.
    Wake,
    /// Open the file again.
    Reopen,
    /// Confirm that everything before this job is written.
    Flush(SyncSender<()>),
}
