//! Handlers: each feature crate carries out its requests.

use crate::error::ModelError;
use crate::request::Request;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum number of notes of one change: more would not be read.
const NOTES: usize = 100;

/// The result of a request.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Applied {
    /// Number of objects created, changed or removed (for a bulk request, each object counts); 0: the state was as requested
    /// already.
    pub changed: u64,
    /// Name of the created object, if any.
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

    /// The state was as requested already.
    pub fn nothing() -> Applied {
        Applied::changed(0)
    }

    /// Adds the name of the created object.
    pub fn named(mut self, name: impl Into<String>) -> Applied {
        self.name = Some(name.into());
        self
    }

    /// Adds a sentence for the operator.
    pub fn note(mut self, note: impl Into<String>) -> Applied {
        self.notes.push(note.into());
        self
    }

    /// Adds the result of another owner of the same verb.
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

/// A part of the daemon that carries out requests. Runs only on the control thread.
///
/// The daemon calls its handlers in order; a handler returns `None` for a request that belongs to another handler.
pub trait Handler {
    /// Carries out a request completely, or changes nothing and returns an error. The request has passed [`Request::validate`].
    /// Requests about objects of a class, verbs and queries go to their owners.
    fn apply(&mut self, _request: &Request) -> Option<Result<Applied, ModelError>> {
        None
    }

    /// Checks whether a request of an interactive client can be carried out now. A file or a commit is not checked: a missing
    /// device may still appear.
    fn ready(&mut self, _request: &Request) -> Option<Result<(), ModelError>> {
        None
    }
}
