//! Events as a stream, in two formats: server-sent events, and JSON lines. There are two kinds: changes by transactions, and
//! log records. A reader that is too slow gets the number of lost events.

use crate::control::Events;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream::unfold;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::time::Duration;
use volley_control::Read;
use volley_model::Event;
use volley_object::{Choice, Verb};

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

/// A kind of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub(crate) enum EventKind {
    /// Changes by transactions.
    Change,
    /// Records of the log.
    Log,
}

/// Events from now on.
#[derive(Verb)]
#[verb(name = "events")]
pub(crate) struct Wanted {
    /// Only events of this kind.
    pub(crate) kind: Option<EventKind>,
}

impl Wanted {
    fn has(&self, kind: EventKind) -> bool {
        self.kind.is_none_or(|only| only == kind)
    }
}

/// The stream of events from now on: JSON lines when the client accepts `application/x-ndjson`.
pub(crate) fn stream(headers: &HeaderMap, sources: Events, wanted: &Wanted) -> Response {
    let accept = headers.get(header::ACCEPT).and_then(|v| v.to_str().ok());
    let form = match accept {
        Some(accepted) if accepted.contains("application/x-ndjson") => Form::Lines,
        _ => Form::Sse,
    };
    let (changes, log) = (wanted.has(EventKind::Change), wanted.has(EventKind::Log));
    let begin = json!({ "next_event": sources.next });
    let begin = Some(form.write("start", None, &begin));
    let items = unfold((sources, begin), move |(mut sources, begin)| async move {
        if let Some(begin) = begin {
            return Some((Ok::<_, Infallible>(begin), (sources, None)));
        }
        let item = tokio::select! {
            // A change is logged after it was made: send the change first.
            biased;
            reported = sources.changes.next(), if changes => form.change(reported)?,
            read = sources.log.next(), if log => form.log(read)?,
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
    use crate::shows::read_parameters;

    #[test]
    fn kinds_are_chosen() {
        let read = |text: &str| read_parameters::<Wanted>("/v1/events", Some(text));
        for (text, kind) in [
            ("", None),
            ("kind=change", Some(EventKind::Change)),
            ("kind=log", Some(EventKind::Log)),
        ] {
            assert_eq!(read(text).unwrap().kind, kind);
        }
        for (bad, why) in [
            (
                "kind=all",
                "parameter 'kind' must be change or log, not 'all'",
            ),
            (
                "kinds=log",
                "/v1/events has no parameter 'kinds'; it takes: kind",
            ),
            ("x", "no parameter 'x'"),
        ] {
            let problem = read(bad).err().unwrap();
            assert_eq!(problem.code, "malformed", "{bad}");
            assert!(problem.message.contains(why), "{}", problem.message);
        }
    }
}
