//! Events as a stream, in two formats: server-sent events, and JSON lines. There are two kinds: changes by transactions, and
//! log records. A reader that is too slow gets the number of lost events.

use crate::answer::parameters;
use crate::control::Events;
use crate::error::Problem;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream::unfold;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::time::Duration;
use volley_control::Read;
use volley_model::Event;

/// Interval of keep-alives in an idle stream, by which a disconnected peer is detected.
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

    fn change(self, read: Read<Box<Event>>) -> Option<Bytes> {
        self.item(read, "events", |event| {
            let data = serde_json::to_value(&*event).unwrap_or_default();
            self.write("change", Some(event.sequence), &data)
        })
    }

    fn log(self, read: Read<Value>) -> Option<Bytes> {
        self.item(read, "records", |record| self.write("log", None, &record))
    }

    /// Writes what was read; `lost` is the name of the number of what was lost.
    fn item<T>(self, read: Read<T>, lost: &str, next: impl Fn(T) -> Bytes) -> Option<Bytes> {
        match read {
            Read::Next(item) => Some(next(item)),
            Read::Lost(count) => Some(self.write("lost", None, &json!({ lost: count }))),
            Read::Ended => None,
        }
    }
}

/// The kinds of events that a client reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kinds {
    changes: bool,
    log: bool,
}

impl Kinds {
    /// Parses `kind=change` or `kind=log`; without a parameter, both kinds.
    pub fn read(text: Option<&str>) -> Result<Kinds, Problem> {
        let mut kinds = Kinds {
            changes: true,
            log: true,
        };
        for (key, text) in parameters(text)? {
            (kinds.changes, kinds.log) = match (&key[..], &text[..]) {
                ("kind", "change") => (true, false),
                ("kind", "log") => (false, true),
                ("kind", _) => {
                    let message = format!("parameter 'kind' is '{text}', it must be change or log");
                    return Err(Problem::malformed(message).at(key));
                }
                _ => {
                    let message = format!("/v1/events has no parameter '{key}'; it takes: kind");
                    return Err(Problem::malformed(message).at(key));
                }
            };
        }
        Ok(kinds)
    }
}

/// The stream of events from now on: JSON lines when the client accepts `application/x-ndjson`.
pub(crate) fn stream(headers: &HeaderMap, sources: Events, kinds: Kinds) -> Response {
    let accept = headers.get(header::ACCEPT).and_then(|v| v.to_str().ok());
    let form = match accept {
        Some(accepted) if accepted.contains("application/x-ndjson") => Form::Lines,
        _ => Form::Sse,
    };
    let begin = json!({ "next_event": sources.next });
    let begin = Some(form.write("start", None, &begin));
    let items = unfold((sources, begin), move |(mut sources, begin)| async move {
        if let Some(begin) = begin {
            return Some((Ok::<_, Infallible>(begin), (sources, None)));
        }
        let item = tokio::select! {
            // A change is logged after it was made: send the change first.
            biased;
            reported = sources.changes.next(), if kinds.changes => form.change(reported)?,
            read = sources.log.next(), if kinds.log => form.log(read)?,
            () = tokio::time::sleep(SILENCE) => form.alive(),
        };
        Some((Ok(item), (sources, None)))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_chosen() {
        let read = |text: &str| Kinds::read(Some(text)).map(|k| (k.changes, k.log));
        assert_eq!(read(""), Ok((true, true)));
        assert_eq!(read("kind=change"), Ok((true, false)));
        assert_eq!(read("kind=log"), Ok((false, true)));
        for bad in ["kind=all", "kinds=log", "x"] {
            assert_eq!(read(bad).unwrap_err().code, "malformed", "{bad}");
        }
    }
}
