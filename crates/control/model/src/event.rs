//! Events: the changes of a transaction, and warnings for operators.

use crate::error::ObjectKind;
use crate::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One object that a transaction created, changed or removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// Number of the event, from 1, without gaps: a reader can detect lost events.
    pub sequence: u64,
    /// When the transaction was carried out.
    pub time: Timestamp,
    /// User who made the change, `token NAME`, or a part of the daemon; empty if unknown.
    #[serde(default)]
    pub user: String,
    /// Number of the transaction; 0: none.
    pub transaction: u64,
    /// Kind of change.
    pub kind: ChangeKind,
    /// Kind of object.
    pub object: ObjectKind,
    /// Name of the object.
    pub name: String,
    /// The object before the change, as commands.
    pub before: Vec<String>,
    /// The object after the change, as commands; for a warning, the fault.
    pub after: Vec<String>,
}

/// Kind of change of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeKind {
    /// The object was created.
    Created,
    /// The object was changed.
    Changed,
    /// The object was deleted.
    Deleted,
    /// The object is unchanged, but has a fault.
    Warned,
}
