//! What the handlers of all paths share: the way to the control thread, bodies, replies.

use crate::body::{self, Memory};
use crate::control::Control;
use crate::error::Problem;
use crate::limits::Limits;
use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

/// Larger bodies are read, and larger answers written, on another thread: this one has others to answer.
pub(crate) const LARGE: usize = 64 << 10;

/// What a handler has.
#[derive(Clone)]
pub(crate) struct Hands {
    pub(crate) control: Control,
    limits: Limits,
    memory: Memory,
}

impl Hands {
    /// What the handlers of one listener share.
    pub(crate) fn new(control: Control, limits: Limits) -> Hands {
        Hands {
            control,
            limits,
            memory: Memory::default(),
        }
    }
}

/// A reply, or the reason of a refusal.
pub(crate) type Answer = Result<Response, Problem>;

/// A reply with this JSON.
pub(crate) fn json_text(text: String) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], text + "\n").into_response()
}

/// An error of this interface itself.
pub(crate) fn internal(error: impl ToString) -> Problem {
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", error)
}

/// An answer written here.
pub(crate) fn json<T: Serialize>(value: &T) -> Answer {
    let text = serde_json::to_string(value).map_err(internal)?;
    Ok(json_text(text))
}

/// Work that another thread does.
pub(crate) async fn elsewhere<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Problem> {
    tokio::task::spawn_blocking(work).await.map_err(internal)
}

/// An answer that may be large.
pub(crate) async fn large<T: Serialize + Send + 'static>(value: T) -> Answer {
    let text = elsewhere(move || serde_json::to_string(&value)).await?;
    Ok(json_text(text.map_err(internal)?))
}

/// Reads a body to a value.
pub(crate) async fn value<T: Send + 'static>(
    hands: &Hands,
    body: Body,
    read: impl FnOnce(&[u8]) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let body = body::read(body, hands.limits, &hands.memory).await?;
    match body.bytes.len() > LARGE {
        true => elsewhere(move || read(&body.bytes)).await?,
        false => read(&body.bytes),
    }
}
