//! Events: changes of the configuration, sent to readers. A slow reader does not delay the sender or other readers.

use crate::key::{Key, Value};
use crate::make;
use crate::secret::without_secrets;
use crate::state::{Changes, State};
use tokio::sync::broadcast;
use volley_model::{ChangeKind, Event, ObjectKind, Request, Timestamp};

/// Events that are queued for the slowest reader; older events are lost for that reader, and counted.
pub const HELD: usize = 16_384;

/// The sender of events.
#[derive(Debug)]
pub struct Events {
    /// Number of the next event.
    pub(crate) next: u64,
    sender: broadcast::Sender<Event>,
}

impl Default for Events {
    fn default() -> Self {
        Events {
            next: 1,
            sender: broadcast::Sender::new(HELD),
        }
    }
}

/// One reader of events, from the moment of its creation.
#[derive(Debug)]
pub struct Reader(broadcast::Receiver<Event>);

/// The result of reading events, or records of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Read<T> {
    /// The next one.
    Next(T),
    /// The reader was too slow: this many were lost.
    Lost(u64),
    /// No more follow.
    Ended,
}

impl Reader {
    /// Waits for the next event.
    pub async fn next(&mut self) -> Read<Box<Event>> {
        match self.0.recv().await {
            Ok(event) => Read::Next(Box::new(event)),
            Err(broadcast::error::RecvError::Lagged(lost)) => Read::Lost(lost),
            Err(broadcast::error::RecvError::Closed) => Read::Ended,
        }
    }
}

impl Events {
    /// Returns a new reader.
    pub fn reader(&self) -> Reader {
        Reader(self.sender.subscribe())
    }

    /// Sends a fault of an object that no transaction has changed.
    pub(crate) fn warn(&mut self, object: ObjectKind, name: &str, what: &str) {
        let event = Event {
            sequence: self.next,
            time: Timestamp::now(),
            user: String::new(),
            transaction: 0,
            kind: ChangeKind::Warned,
            object,
            name: name.to_owned(),
            before: Vec::new(),
            after: vec![what.to_owned()],
        };
        self.emit(event);
    }

    fn emit(&mut self, event: Event) {
        self.next += 1;
        // Without a reader the event is dropped.
        let _ = self.sender.send(event);
    }

    /// Sends the next events of a transaction, for at most `most` objects; false when all are sent.
    pub(crate) fn send(&mut self, report: &mut Report, now: &State, most: usize) -> bool {
        let has_reader = self.sender.receiver_count() > 0;
        let until = report.sent.saturating_add(most);
        while report.sent < until {
            let Some((key, before)) = report.changes.before.get_index(report.sent) else {
                return false;
            };
            report.sent += 1;
            let after = now.get(key);
            let kind = match (before, after) {
                (None, Some(_)) => ChangeKind::Created,
                (Some(_), None) => ChangeKind::Deleted,
                (Some(a), Some(b)) if a != b || report.changes.has_moved(key, now) => {
                    ChangeKind::Changed
                }
                _ => continue,
            };
            if !has_reader {
                self.next += 1;
                continue;
            }
            let (object, name) = key.called();
            let shown = |value| {
                let requests = created(key, value).into_iter();
                requests.map(|it| without_secrets(it).to_string()).collect()
            };
            self.emit(Event {
                sequence: self.next,
                time: report.time,
                user: report.user.clone(),
                transaction: report.transaction,
                kind,
                object,
                name,
                before: before.as_ref().map_or(Vec::new(), shown),
                after: after.map_or(Vec::new(), shown),
            });
        }
        true
    }
}

/// The events of a transaction that has ended, some of which may not be sent yet.
#[derive(Debug)]
pub struct Report {
    /// Number of the transaction.
    pub transaction: u64,
    user: String,
    time: Timestamp,
    changes: Changes,
    sent: usize,
}

impl Report {
    pub(crate) fn new(transaction: u64, user: String, changes: Changes) -> Report {
        Report {
            transaction,
            user,
            time: Timestamp::now(),
            changes,
            sent: 0,
        }
    }

    /// Puts the events in order of dependence, before the first is sent.
    pub fn sort(&mut self) {
        self.changes.before.sort_unstable_keys();
    }

    /// Number of objects.
    pub fn len(&self) -> usize {
        self.changes.before.len()
    }

    /// Whether no object has changed.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The requests that create an object.
pub fn created(key: &Key, value: &Value) -> Vec<Request> {
    make::create(key, value, &|_: &Key| None)
}
