//! How feature crates take part: each carries out the requests that are its own.

use crate::error::ModelError;
use crate::request::Request;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Most notes of one change: an operator reads no more of them.
const NOTES: usize = 100;

/// What a request did.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Applied {
    /// Objects made, changed or removed (those of a bulk request count one each); 0 = it was so already.
    pub changed: u64,
    /// Name of the object made, when there is one.
    pub name: Option<String>,
    /// Sentences for the operator ("loaded 1042325 routes in 0.9 s"), normally none.
    pub notes: Vec<String>,
}

impl Applied {
    /// `changed` objects changed.
    pub fn changed(changed: u64) -> Applied {
        Applied {
            changed,
            ..Applied::default()
        }
    }

    /// One object changed.
    pub fn one() -> Applied {
        Applied::changed(1)
    }

    /// It was so already.
    pub fn nothing() -> Applied {
        Applied::changed(0)
    }

    /// With the name of the object made.
    pub fn named(mut self, name: impl Into<String>) -> Applied {
        self.name = Some(name.into());
        self
    }

    /// With one more sentence for the operator.
    pub fn note(mut self, note: impl Into<String>) -> Applied {
        self.notes.push(note.into());
        self
    }

    /// Adds what another owner did for the same verb.
    pub fn and(mut self, other: Applied) -> Applied {
        self.changed = self.changed.saturating_add(other.changed);
        self.name = self.name.or(other.name);
        for note in other.notes {
            if self.notes.len() < NOTES && !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
        self
    }
}

/// A part of the daemon that carries out requests. Runs on the control thread only.
///
/// The daemon asks its handlers in order; `None` = "not mine, ask the next".
pub trait Handler {
    /// Carries out a request: all of it, or none and an error. It has passed [`Request::validate`]. Requests about objects
    /// of a class and verbs go to their owners, and so do queries.
    fn apply(&mut self, _request: &Request) -> Option<Result<Applied, ModelError>> {
        None
    }

    /// Check whether a request of an interactive client can be carried out at once. A file or a commit is not checked: a
    /// device that is missing may still appear.
    fn ready(&mut self, _request: &Request) -> Option<Result<(), ModelError>> {
        None
    }
}
