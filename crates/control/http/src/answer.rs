//! Shared by the handlers of all paths: access to the control thread, bodies, replies.

use crate::body::{self, Memory};
use crate::control::{Api, Control, Later};
use crate::error::Problem;
use crate::limits::Limits;
use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use std::rc::Rc;
use volley_model::Client;

/// Larger bodies are parsed, and larger answers serialized, on another thread, so that this thread can serve other clients.
pub(crate) const LARGE: usize = 64 << 10;

/// State of a handler.
#[derive(Clone)]
pub(crate) struct Hands {
    control: Control,
    limits: Limits,
    memory: Memory,
}

impl Hands {
    /// Creates the state that the handlers of one listener share.
    pub(crate) fn new(control: Control, limits: Limits) -> Hands {
        Hands {
            control,
            limits,
            memory: Memory::default(),
        }
    }
}

/// State of a handler for one request: includes the client.
pub(crate) struct Caller {
    hands: Hands,
    client: Client,
}

impl FromRequestParts<Hands> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, hands: &Hands) -> Result<Caller, Problem> {
        let client = parts.extensions.get::<Client>().cloned();
        let client = client.ok_or_else(Problem::ending)?;
        let hands = hands.clone();
        Ok(Caller { hands, client })
    }
}

impl Caller {
    /// Runs work on the control thread, in the name of the client.
    pub(crate) async fn ask<T: Send + 'static, E: Send + 'static>(
        &self,
        work: impl FnOnce(Rc<dyn Api>) -> Later<'static, Result<T, E>> + Send + 'static,
    ) -> Result<T, Problem>
    where
        Problem: From<E>,
    {
        let done = self.hands.control.ask_for(self.client.clone(), work);
        Ok(done.await??)
    }

    /// Reads a body and parses it.
    pub(crate) async fn value<T: Send + 'static>(
        &self,
        body: Body,
        read: impl FnOnce(&[u8]) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let body = body::read(body, self.hands.limits, &self.hands.memory).await?;
        match body.bytes.len() > LARGE {
            true => elsewhere(move || read(&body.bytes)).await?,
            false => read(&body.bytes),
        }
    }
}

/// The parameters of a path, by name.
pub(crate) fn parameters(text: Option<&str>) -> Result<Vec<(String, String)>, Problem> {
    let read = serde_urlencoded::from_str(text.unwrap_or_default());
    read.map_err(|e| Problem::malformed(format!("the parameters are not readable: {e}")))
}

/// A reply, or the reason of a refusal.
pub(crate) type Answer = Result<Response, Problem>;

/// A reply with this JSON text.
pub(crate) fn json_text(text: String) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], text + "\n").into_response()
}

/// An internal error of the HTTP interface.
pub(crate) fn internal(error: impl ToString) -> Problem {
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", error)
}

/// Serializes an answer on this thread.
pub(crate) fn json<T: Serialize>(value: &T) -> Answer {
    let text = serde_json::to_string(value).map_err(internal)?;
    Ok(json_text(text))
}

/// Runs work on another thread.
pub(crate) async fn elsewhere<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Problem> {
    tokio::task::spawn_blocking(work).await.map_err(internal)
}

/// Serializes an answer that may be large.
pub(crate) async fn large<T: Serialize + Send + 'static>(value: T) -> Answer {
    let text = elsewhere(move || serde_json::to_string(&value)).await?;
    Ok(json_text(text.map_err(internal)?))
}
