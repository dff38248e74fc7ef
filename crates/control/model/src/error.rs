//! Errors of the control plane: each one sentence that says what, where, and how to mend it.

use crate::limits::NAMES_LISTED;
use crate::role::Role;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Kinds of objects that requests name.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum ObjectKind {
    /// Interface (`pg0`).
    Interface,
    /// Graph node (`ip4-input`).
    Node,
    /// Feature of an arc.
    Feature,
    /// Feature arc (`ip4-unicast`).
    Arc,
    /// IP table (VRF).
    Table,
    /// Route.
    Route,
    /// Path of a route.
    Path,
    /// Address of an interface.
    Address,
    /// Neighbour.
    Neighbor,
    /// Packet capture.
    Capture,
    /// The path batcher's settings.
    PathBatcher,
    /// Queue of the path batcher.
    PathQueue,
    /// Rule of the path batcher.
    PathRule,
    /// Worker.
    Worker,
    /// An object of a registered class.
    Object,
}

impl fmt::Display for ObjectKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ObjectKind::Interface => "interface",
            ObjectKind::Node => "node",
            ObjectKind::Feature => "feature",
            ObjectKind::Arc => "feature arc",
            ObjectKind::Table => "table",
            ObjectKind::Route => "route",
            ObjectKind::Path => "path",
            ObjectKind::Address => "address",
            ObjectKind::Neighbor => "neighbor",
            ObjectKind::Capture => "capture",
            ObjectKind::PathBatcher => "path batcher",
            ObjectKind::PathQueue => "path-batcher queue",
            ObjectKind::PathRule => "path-batcher rule",
            ObjectKind::Worker => "worker",
            ObjectKind::Object => "object",
        })
    }
}

/// Why a request or query was refused. A refused request changed nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "error", rename_all = "kebab-case")]
pub enum ModelError {
    /// The object is not there.
    #[error("there is no {}{}", called(.kind, .name), listed(.known))]
    NotFound {
        /// Kind of object.
        kind: ObjectKind,
        /// The name asked for.
        name: String,
        /// Names that exist (may be empty; the message lists the first dozen).
        known: Vec<String>,
    },
    /// The object is there already.
    #[error("{} exists already: delete it first or choose another name", called(.kind, .name))]
    Exists {
        /// Kind of object.
        kind: ObjectKind,
        /// Its name.
        name: String,
    },
    /// A value is wrong by itself or does not fit the state.
    #[error("{what} is not valid: {why}")]
    Invalid {
        /// Which value, as the user wrote it.
        what: String,
        /// What is wrong and what would be right.
        why: String,
    },
    /// More was asked than there may be.
    #[error("{what} is {asked}, the limit is {limit}")]
    Limit {
        /// Which quantity.
        what: String,
        /// Largest allowed.
        limit: u64,
        /// Asked for.
        asked: u64,
    },
    /// Something still needs the object.
    #[error("{} is in use by {by}: remove that first", called(.kind, .name))]
    InUse {
        /// Kind of object.
        kind: ObjectKind,
        /// Its name.
        name: String,
        /// Who uses it.
        by: String,
    },
    /// Well-formed, but not (yet) something Volley does.
    #[error("{what} is not supported; {instead}")]
    Unsupported {
        /// What was asked.
        what: String,
        /// What to do instead.
        instead: String,
    },
    /// A configuration has errors: all of them, one a line.
    #[error("{}", .errors.join("\n"))]
    Config {
        /// Each with its place.
        errors: Vec<String>,
    },
    /// The client may not do this.
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
        /// The role that it needs.
        needed: Role,
    },
    /// A file named by the request could not be used.
    #[error("{path}{}: {why}", .place.as_ref().map(|p| format!(", {p}")).unwrap_or_default())]
    File {
        /// Its path.
        path: String,
        /// Line, record or byte where it went wrong, when known.
        place: Option<String>,
        /// What is wrong.
        why: String,
    },
}

/// How a client gets a role.
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
    /// The object is not there; `known` are the names that are.
    pub fn not_found<S: Into<String>>(
        kind: ObjectKind,
        name: impl fmt::Display,
        known: impl IntoIterator<Item = S>,
    ) -> ModelError {
        let known = known.into_iter().map(Into::into).collect();
        let name = name.to_string();
        ModelError::NotFound { kind, name, known }
    }

    /// The object is there already.
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

    /// More was asked than allowed.
    pub fn limit(what: impl fmt::Display, asked: u64, limit: u64) -> ModelError {
        let what = what.to_string();
        ModelError::Limit { what, limit, asked }
    }

    /// Something still needs the object.
    pub fn in_use(kind: ObjectKind, name: impl fmt::Display, by: impl fmt::Display) -> ModelError {
        ModelError::InUse {
            kind,
            name: name.to_string(),
            by: by.to_string(),
        }
    }

    /// Not something Volley does.
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

/// Kind and name. The name of an object of a class begins with its class.
fn called(kind: &ObjectKind, name: &str) -> String {
    match kind {
        ObjectKind::Object => name.to_owned(),
        kind => format!("{kind} {name}"),
    }
}

fn listed(known: &[String]) -> String {
    if known.is_empty() {
        return String::new();
    }
    let shown = known.iter().take(NAMES_LISTED).cloned();
    let more = known.len().saturating_sub(NAMES_LISTED);
    let tail = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    format!(
        "; there are: {}{tail}",
        shown.collect::<Vec<_>>().join(", ")
    )
}

/// A text that does not read: where, and what was expected. `column` counts characters from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize, JsonSchema)]
#[error("column {column}: {message}")]
pub struct SyntaxError {
    /// Character of the line, from 1.
    pub column: usize,
    /// One sentence without the place.
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
        let e = ModelError::not_found(ObjectKind::Node, "x", many).to_string();
        assert!(e.ends_with("n11 and 8 more"), "{e}");
        let e = ModelError::File {
            path: "a.mrt".into(),
            place: Some("byte 12".into()),
            why: "truncated".into(),
        };
        assert_eq!(e.to_string(), "a.mrt, byte 12: truncated");
    }
}
