//! Errors of the control plane: each is one sentence that says what, where, and how to correct it.

use crate::limits::NAMES_LISTED;
use crate::role::Role;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Kinds of objects in errors and events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ObjectKind {
    /// Interface (`pg0`).
    Interface,
    /// Any other object; its name begins with its kind (`node ip4-input`).
    Object,
}

/// Why a request or query was refused. A refused request changed nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "error", rename_all = "kebab-case")]
pub enum ModelError {
    /// The object does not exist.
    #[error("there is no {}{}", called(.kind, .name), listed(.known))]
    NotFound {
        /// Kind of object.
        kind: ObjectKind,
        /// The requested name.
        name: String,
        /// Names that exist (may be empty; the message lists the first dozen).
        known: Vec<String>,
    },
    /// The object exists already.
    #[error("{} exists already: delete it first or choose another name", called(.kind, .name))]
    Exists {
        /// Kind of object.
        kind: ObjectKind,
        /// Name of the object.
        name: String,
    },
    /// A value is wrong, alone or in the current state.
    #[error("{what} is not valid: {why}")]
    Invalid {
        /// The value, as the user wrote it.
        what: String,
        /// The error and what is allowed.
        why: String,
    },
    /// A request exceeds a limit.
    #[error("{what} is {asked}, the limit is {limit}")]
    Limit {
        /// The limited quantity.
        what: String,
        /// Maximum.
        limit: u64,
        /// Requested amount.
        asked: u64,
    },
    /// Another object needs the object.
    #[error("{} is in use by {by}: remove that first", called(.kind, .name))]
    InUse {
        /// Kind of object.
        kind: ObjectKind,
        /// Name of the object.
        name: String,
        /// The object that needs it.
        by: String,
    },
    /// The request is well-formed, but Volley does not support it (yet).
    #[error("{what} is not supported; {instead}")]
    Unsupported {
        /// The requested function.
        what: String,
        /// What to use instead.
        instead: String,
    },
    /// A configuration has errors: all of them, one a line.
    #[error("{}", .errors.join("\n"))]
    Config {
        /// The errors with their positions.
        errors: Vec<String>,
    },
    /// The client lacks the right.
    #[error(
        "{client} has {}, and this needs the role {needed}: {}",
        .role.map_or("no role".to_owned(), |role| format!("the role {role}")),
        remedy(.client, *.needed)
    )]
    Forbidden {
        /// `user NAME` or `token NAME`.
        client: String,
        /// The role that the client has.
        role: Option<Role>,
        /// The role that is needed.
        needed: Role,
    },
    /// A file named by the request could not be used.
    #[error("{path}{}: {why}", .place.as_ref().map(|p| format!(", {p}")).unwrap_or_default())]
    File {
        /// Path of the file.
        path: String,
        /// Line, record or byte of the error, if known.
        place: Option<String>,
        /// The error.
        why: String,
    },
}

/// Advice on how a client gets a role.
fn remedy(client: &str, needed: Role) -> String {
    match client.strip_prefix("user ") {
        Some(name) => format!(
            "a user with the role configure gives it by `set user {} role {needed}`",
            volley_object::quote(name)
        ),
        None => "use another token, or change the token's role in the token file".to_owned(),
    }
}

impl ModelError {
    /// The object does not exist; `known` are the existing names.
    pub fn not_found<S: Into<String>>(
        kind: ObjectKind,
        name: impl fmt::Display,
        known: impl IntoIterator<Item = S>,
    ) -> ModelError {
        let known = known.into_iter().map(Into::into).collect();
        let name = name.to_string();
        ModelError::NotFound { kind, name, known }
    }

    /// The object exists already.
    pub fn exists(kind: ObjectKind, name: impl fmt::Display) -> ModelError {
        let name = name.to_string();
        ModelError::Exists { kind, name }
    }

    /// A value is wrong.
    pub fn invalid(what: impl fmt::Display, why: impl fmt::Display) -> ModelError {
        ModelError::Invalid {
            what: what.to_string(),
            why: why.to_string(),
        }
    }

    /// A request exceeds a limit.
    pub fn limit(what: impl fmt::Display, asked: u64, limit: u64) -> ModelError {
        let what = what.to_string();
        ModelError::Limit { what, limit, asked }
    }

    /// Another object needs the object.
    pub fn in_use(kind: ObjectKind, name: impl fmt::Display, by: impl fmt::Display) -> ModelError {
        ModelError::InUse {
            kind,
            name: name.to_string(),
            by: by.to_string(),
        }
    }

    /// Volley does not support the request.
    pub fn unsupported(what: impl fmt::Display, instead: impl fmt::Display) -> ModelError {
        ModelError::Unsupported {
            what: what.to_string(),
            instead: instead.to_string(),
        }
    }

    /// A file could not be used.
    pub fn file(path: impl AsRef<std::path::Path>, why: impl fmt::Display) -> ModelError {
        ModelError::File {
            path: path.as_ref().display().to_string(),
            place: None,
            why: why.to_string(),
        }
    }
}

/// Kind and name.
fn called(kind: &ObjectKind, name: &str) -> String {
    match kind {
        ObjectKind::Object => name.to_owned(),
        ObjectKind::Interface => format!("interface {name}"),
    }
}

/// The first names that exist, as the end of a sentence.
pub fn listed<'n>(known: impl IntoIterator<Item = &'n String>) -> String {
    let mut known = known.into_iter().map(String::as_str);
    let first: Vec<&str> = known.by_ref().take(NAMES_LISTED).collect();
    match known.count() {
        _ if first.is_empty() => String::new(),
        0 => format!("; there are: {}", first.join(", ")),
        more => format!("; there are: {} and {more} more", first.join(", ")),
    }
}

/// A text that cannot be parsed: the position, and what was expected. `column` counts characters from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize, JsonSchema)]
#[error("column {column}: {message}")]
pub struct SyntaxError {
    /// Character of the line, from 1.
    pub column: usize,
    /// One sentence without the position.
    pub message: String,
}

impl SyntaxError {
    /// An error at a column.
    pub fn new(column: usize, message: impl fmt::Display) -> SyntaxError {
        let message = message.to_string();
        SyntaxError { column, message }
    }

    /// The same error in a text that starts `columns` characters further right.
    pub fn shifted(mut self, columns: usize) -> SyntaxError {
        self.column += columns;
        self
    }
}

impl From<volley_object::DefinitionError> for ModelError {
    fn from(error: volley_object::DefinitionError) -> Self {
        ModelError::invalid(format!("{} {}", error.kind, error.class), error.why)
    }
}

impl From<SyntaxError> for volley_object::TextError {
    fn from(error: SyntaxError) -> Self {
        volley_object::TextError {
            column: Some(error.column),
            why: error.message,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_one_sentence() {
        let e = ModelError::not_found(ObjectKind::Interface, "pg7", ["pg0", "pg1"]);
        assert_eq!(
            e.to_string(),
            "there is no interface pg7; there are: pg0, pg1"
        );
        let many = (0..20).map(|i| format!("n{i}"));
        let e = ModelError::not_found(ObjectKind::Object, "x", many).to_string();
        assert!(e.ends_with("n11 and 8 more"), "{e}");
        let e = ModelError::File {
            path: "a.mrt".into(),
            place: Some("byte 12".into()),
            why: "truncated".into(),
        };
        assert_eq!(e.to_string(), "a.mrt, byte 12: truncated");
    }
}
