//! Bodies: read within limits, then parsed to typed values; an error contains its position.

use crate::error::Problem;
use crate::limits::Limits;
use crate::shows::actions;
use axum::body::{Body, HttpBody};
use axum::http::StatusCode;
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use serde_path_to_error::Segment;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use volley_model::{ConfigAction, Request};
use volley_object::{VerbClass, classes};

/// Total size of the bodies of all clients in memory.
#[derive(Clone, Default)]
pub(crate) struct Memory(Arc<AtomicUsize>);

/// The share of one body in the total; dropping the value releases it.
struct Held {
    memory: Memory,
    bytes: usize,
}

impl Held {
    fn more(&mut self, bytes: usize, limit: usize) -> bool {
        self.bytes += bytes;
        self.memory.0.fetch_add(bytes, Relaxed) + bytes <= limit
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.memory.0.fetch_sub(self.bytes, Relaxed);
    }
}

/// A whole body, and its share of the memory.
pub(crate) struct Bytes {
    pub bytes: Vec<u8>,
    _held: Held,
}

/// Reads a body. A client that stalls or sends too much gets an error.
pub(crate) async fn read(body: Body, limits: Limits, memory: &Memory) -> Result<Bytes, Problem> {
    let too_large = || {
        let message = format!("the body is larger than {} bytes", limits.body);
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", message)
    };
    if body.size_hint().lower() > limits.body as u64 {
        return Err(too_large());
    }
    let by = tokio::time::Instant::now() + limits.finish_body;
    let (memory, mut body) = (memory.clone(), body);
    let mut read = Bytes {
        bytes: Vec::new(),
        _held: Held { memory, bytes: 0 },
    };
    loop {
        let frame = tokio::time::timeout_at(by, body.frame()).await;
        let frame = frame.map_err(|_| {
            let seconds = limits.finish_body.as_secs_f32();
            let message = format!("the body was not finished within {seconds} s");
            Problem::new(StatusCode::REQUEST_TIMEOUT, "timeout", message)
        })?;
        let Some(frame) = frame else {
            return Ok(read);
        };
        let frame = frame.map_err(|e| Problem::malformed(format!("the body breaks off: {e}")))?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if read.bytes.len() + data.len() > limits.body {
            return Err(too_large());
        }
        if !read._held.more(data.len(), limits.all_bodies) {
            let message = "the bodies of all clients together are too large now; try again later";
            return Err(Problem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "busy",
                message,
            ));
        }
        read.bytes.extend_from_slice(&data);
    }
}

/// Parses a value; the first `own` lines, and one step of the path, are not from the client.
fn parse<T: DeserializeOwned>(text: &[u8], own: usize) -> Result<T, Problem> {
    let mut json = serde_json::Deserializer::from_slice(text);
    let read = serde_path_to_error::deserialize(&mut json);
    let read = read.map_err(|error| {
        let steps: Vec<&Segment> = error.path().iter().skip(own).collect();
        let mut place = String::new();
        for step in &steps {
            let dot = !place.is_empty() && !matches!(step, Segment::Seq { .. });
            place += if dot { "." } else { "" };
            place += &step.to_string();
        }
        let index = match steps.first() {
            Some(Segment::Seq { index }) => Some(*index),
            _ => None,
        };
        let mut problem = reported(error.inner(), &place, own);
        problem.index = index;
        problem
    })?;
    json.end().map_err(|e| reported(&e, "", own))?;
    Ok(read)
}

/// An error as one sentence with its position.
fn reported(error: &serde_json::Error, place: &str, own: usize) -> Problem {
    let (line, column) = (error.line().saturating_sub(own).max(1), error.column());
    let text = error.to_string();
    let what = text.rfind(" at line ").map_or(&text[..], |at| &text[..at]);
    let at = match place {
        "" | "?" => String::new(),
        place => format!(" at {place}"),
    };
    let message = format!("the body is not valid{at} (line {line} column {column}): {what}");
    let problem = Problem::malformed(message);
    match at.is_empty() {
        true => problem,
        false => problem.at(place.to_owned()),
    }
}

/// Parses one request.
pub fn read_request(body: &[u8]) -> Result<Request, Problem> {
    parse(body, 0)
}

/// Parses the requests of a transaction.
pub fn read_transaction(body: &[u8]) -> Result<Vec<Request>, Problem> {
    parse(body, 0)
}

/// Finds the verb of a path.
pub fn verb(name: &str) -> Result<VerbClass, Problem> {
    let all = classes();
    let verb = all.verb(name).cloned();
    verb.ok_or_else(|| Problem::no_such("do", name, all.verbs().map(VerbClass::name)))
}

/// Builds a verb whose parameters are the body; without a body, they have their defaults.
pub fn read_invocation(verb: &VerbClass, body: &[u8]) -> Result<Request, Problem> {
    let parameters: Map<String, Value> = match body.trim_ascii().is_empty() {
        true => Map::new(),
        false => parse(body, 0)?,
    };
    let invoked = verb.invoke_with(&parameters);
    invoked
        .map(Request::Do)
        .map_err(|why| Problem::malformed(format!("/v1/do/{}: {why}", verb.name())))
}

/// Parses an action on the configuration: the name comes from the path, the rest from the body.
pub fn read_action(name: &str, body: &[u8]) -> Result<ConfigAction, Problem> {
    let all = actions();
    if all.iter().all(|action| action.name != name) {
        let known = all.iter().map(|it| &it.name[..]);
        return Err(Problem::no_such("config", name, known));
    }
    let body = match body.trim_ascii() {
        b"" => b"{}",
        _ => body,
    };
    let text = [b"{\"", name.as_bytes(), b"\":\n", body, b"\n}"].concat();
    parse(&text, 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use volley_log::{LogLevel, SetLogLevel};

    #[test]
    fn errors_name_request_and_key() {
        let body = br#"[{"interface-delete":{"name":"pg0"}},
            {"interface-delete":{"name":5}}]"#;
        let problem = read_transaction(body).unwrap_err();
        assert_eq!(problem.index, Some(1));
        assert_eq!(problem.place.as_deref(), Some("[1].interface-delete.name"));
        assert!(problem.message.contains("line 2"), "{}", problem.message);
        let problem = read_request(br#"{"interface-delete":{"name":"a","x":1}}"#).unwrap_err();
        assert!(
            problem.message.contains("unknown field `x`"),
            "{}",
            problem.message
        );
        assert!(read_request(br#"{"interface-delete":{"name":"a"}} 1"#).is_err());
        assert!(read_request(b"").is_err());
        assert!(read_request(&[b'['; 100_000]).is_err());
    }

    #[test]
    fn verbs_are_read_by_their_path_and_by_what_they_were_called() {
        volley_log::classes().unwrap();
        let level = verb("log-level").unwrap();
        let set = |level: Option<LogLevel>| {
            Request::of(&SetLogLevel {
                level,
                module: None,
            })
        };
        let debug = set(Some(LogLevel::Debug)).unwrap();
        let read = read_invocation(&level, br#"{"level":"debug"}"#);
        assert_eq!(read, Ok(debug.clone()));
        for body in ["", " ", "{}"] {
            let read = read_invocation(&level, body.as_bytes());
            assert_eq!(read, Ok(set(None).unwrap()), "{body:?}");
        }
        for (body, why) in [
            (
                r#"{"level":"loud"}"#,
                "level must be off, error, warn, info, debug or trace",
            ),
            (r#"{"lewel":"info"}"#, "unknown field `lewel`"),
            (r#"{"verb":"log-level"}"#, "unknown field `verb`"),
            ("[]", "not valid"),
        ] {
            let problem = read_invocation(&level, body.as_bytes()).unwrap_err();
            assert!(problem.message.contains(why), "{}", problem.message);
        }
        assert_eq!(verb("log-lewel").unwrap_err().code, "no-such-path");
        let before = r#"{"log-level":{"module":null,"level":"debug"}}"#;
        assert_eq!(read_request(before.as_bytes()), Ok(debug.clone()));
        let both = format!(r#"[{{"interface-delete":{{"name":"a"}}}},{before}]"#);
        assert_eq!(read_transaction(both.as_bytes()).unwrap()[1], debug);
        let wrong = br#"[{"log-level":{"level":"loud"}}]"#;
        let problem = read_transaction(wrong).unwrap_err();
        assert_eq!(problem.index, Some(0));
        assert!(
            problem.message.contains("debug or trace"),
            "{}",
            problem.message
        );
    }

    #[test]
    fn actions_are_read_by_their_path() {
        let read = read_action("commit", br#"{"source":"running","comment":"a"}"#);
        assert!(matches!(read, Ok(ConfigAction::Commit { .. })));
        assert_eq!(read_action("confirm", b""), Ok(ConfigAction::Confirm {}));
        assert_eq!(read_action("confirm", b"{}"), Ok(ConfigAction::Confirm {}));
        assert!(read_action("confirm", br#"{"x":1}"#).is_err());
        let problem = read_action("rollback", b"{\"number\":\n-1}").unwrap_err();
        assert_eq!(problem.place.as_deref(), Some("number"));
        assert!(problem.message.contains("line 2"), "{}", problem.message);
        assert_eq!(
            read_action("explode", b"").unwrap_err().code,
            "no-such-path"
        );
        // A body cannot close the surrounding bracket early.
        assert!(read_action("rollback", br#"{"number":1}, "x": {}"#).is_err());
    }
}
