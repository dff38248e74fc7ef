//! What the thread that writes is given to do.

use crate::record::LogRecord;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

/// What the writer is given.
pub(crate) enum Job {
    Record(Arc<LogRecord>),
    /// Something was suppressed.
    Wake,
    /// Open the file again.
    Reopen,
    /// Everything before this is written.
    Flush(SyncSender<()>),
}
