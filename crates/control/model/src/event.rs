//! Events: the changes of a transaction, and warnings for operators.

use crate::error::ObjectKind;
use crate::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One object that a transaction made, changed or removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// Its number, from 1, without gaps: a reader that misses one knows.
    pub sequence: u64,
    /// When the transaction was carried out.
    pub time: Timestamp,
    /// Who made the change: a user, `token NAME`, or a part of the daemon; empty when it is not known.
    #[serde(default)]
    pub user: String,
    /// The transaction it belongs to; 0 = none.
    pub transaction: u64,
    /// What happened.
    pub kind: ChangeKind,
    /// Kind of object.
    pub object: ObjectKind,
    /// Its name.
    pub name: String,
    /// What it was, as commands.
    pub before: Vec<String>,
    /// What it is, as commands; of a warning, what is wrong.
    pub after: Vec<String>,
}

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeKind {
    /// It is new.
    Created,
    /// It is different.
    Changed,
    /// It is gone.
    Deleted,
    /// It is what it was, and something is wrong with it.
    Warned,
}
