//! Events as a stream, in two forms: server-sent events, and JSON lines. A reader that is too slow is told how many it lost.

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream::unfold;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::time::Duration;
use volley_control::{Reader, Told};

/// A sign of life comes after so much silence: a peer that is gone is noticed by it.
const SILENCE: Duration = Duration::from_secs(15);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Sse,
    Lines,
}

impl Form {
    fn write(self, name: &str, id: Option<u64>, data: &Value) -> Bytes {
        let text = match self {
            Form::Lines => {
                let line = json!({ name: data });
                format!("{line}\n")
            }
            Form::Sse => {
                let id = id.map_or(String::new(), |id| format!("id: {id}\n"));
                format!("event: {name}\n{id}data: {data}\n\n")
            }
        };
        text.into()
    }

    fn alive(self) -> Bytes {
        match self {
            Form::Lines => "\n".into(),
            Form::Sse => ": alive\n\n".into(),
        }
    }
}

/// The stream from the event `next` on: JSON lines when the client accepts `application/x-ndjson`.
pub(crate) fn stream(headers: &HeaderMap, reader: Reader, next: u64) -> Response {
    let accept = headers.get(header::ACCEPT).and_then(|v| v.to_str().ok());
    let form = match accept {
        Some(kinds) if kinds.contains("application/x-ndjson") => Form::Lines,
        _ => Form::Sse,
    };
    let begin = Some(form.write("start", None, &json!({ "next_event": next })));
    let items = unfold((reader, begin), move |(mut reader, begin)| async move {
        if let Some(begin) = begin {
            return Some((Ok::<_, Infallible>(begin), (reader, None)));
        }
        let item = match tokio::time::timeout(SILENCE, reader.next()).await {
            Err(_) => form.alive(),
            Ok(Told::Ended) => return None,
            Ok(Told::Lost(lost)) => form.write("lost", None, &json!({ "events": lost })),
            Ok(Told::Event(event)) => {
                let data = serde_json::to_value(&*event).unwrap_or_default();
                form.write("change", Some(event.sequence), &data)
            }
        };
        Some((Ok(item), (reader, None)))
    });
    let kind = match form {
        Form::Lines => "application/x-ndjson",
        Form::Sse => "text/event-stream",
    };
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (headers, Body::from_stream(items)).into_response()
}
