//! Errors of requests: a status, a code for programs, a sentence for people, and the position.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;
use volley_control::TransactionError;
use volley_model::{ModelError, escape};

/// The reason of a refusal. A refused request changed nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Problem {
    #[serde(skip)]
    status: u16,
    /// Code of the error: `not-found`, `exists`, `invalid`, `limit`, `in-use`, `unsupported`, `config`, `file`, `forbidden` (of
    /// the model), `malformed`, `too-large`, `timeout`, `busy`, `no-such-path`, `method`, `unauthorized`, `internal` (of this
    /// interface).
    pub code: String,
    /// One sentence: what, where, how to correct it.
    pub message: String,
    /// Index of the failed request in a transaction, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<usize>,
    /// Position in the body, such as `[3].interface-delete.name`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
}

/// The body of every answer that reports an error.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Refusal {
    /// The reason of the refusal.
    pub error: Problem,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, code: &str, message: impl ToString) -> Problem {
        Problem {
            status: status.as_u16(),
            code: code.to_owned(),
            message: message.to_string(),
            index: None,
            place: None,
        }
    }

    pub(crate) fn malformed(message: impl ToString) -> Problem {
        let message = message.to_string();
        Problem::new(StatusCode::BAD_REQUEST, "malformed", escape(&message))
    }

    pub(crate) fn no_such_path(message: impl ToString) -> Problem {
        let message = message.to_string();
        Problem::new(StatusCode::NOT_FOUND, "no-such-path", escape(&message))
    }

    /// There is no path of this name below a path; `known` are the names that exist.
    pub(crate) fn no_such<'n>(
        below: &str,
        name: &str,
        known: impl Iterator<Item = &'n str>,
    ) -> Problem {
        let known = known.collect::<Vec<_>>().join(", ");
        Problem::no_such_path(format!(
            "there is no /v1/{below}/{name}; there are: {known}"
        ))
    }

    pub(crate) fn method(message: impl ToString) -> Problem {
        Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method", message)
    }

    pub(crate) fn ending() -> Problem {
        let message = "the daemon is ending, or failed to answer; its log says more";
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "internal", message)
    }

    pub(crate) fn at(mut self, place: String) -> Problem {
        self.place = Some(place);
        self
    }
}

impl From<ModelError> for Problem {
    fn from(error: ModelError) -> Self {
        let status = match error {
            ModelError::Forbidden { .. } => StatusCode::FORBIDDEN,
            ModelError::NotFound { .. } => StatusCode::NOT_FOUND,
            ModelError::Exists { .. } | ModelError::InUse { .. } => StatusCode::CONFLICT,
            _ => StatusCode::UNPROCESSABLE_ENTITY,
        };
        // The code is the name of the error in the model.
        let json = serde_json::to_value(&error).unwrap_or_default();
        Problem::new(status, json["error"].as_str().unwrap_or_default(), error)
    }
}

impl From<TransactionError> for Problem {
    fn from(error: TransactionError) -> Self {
        let mut problem = Problem::from(*error.error.clone());
        problem.index = error.index;
        problem.message = error.to_string();
        problem
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::BAD_REQUEST);
        let text = serde_json::to_string(&Refusal { error: self }).unwrap_or_default();
        let kind = [(header::CONTENT_TYPE, "application/json")];
        (status, kind, text + "\n").into_response()
    }
}
