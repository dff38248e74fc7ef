//! The session of one client.

use super::backend::Backend;
use super::follow;
use super::limits::Limits;
use super::lines::{Line, Lines, by_length, send};
use super::listen::Place;
use super::protocol::{Answer, Ask, Failure, Op};
use crate::grammar::{complete, help};
use crate::pipe::Pipe;
use crate::{Action, Builtin, Command, parse_line};
use crate::{reference, render};
use std::rc::Rc;
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::time::timeout;
use tracing::{debug, warn};
use volley_model::{
    Client, ConfigAction, ConfigReply, ConfigSource, ModelError, Peer, Request, Via,
};

/// Time within which a client that is disconnected may read the reason.
const GOODBYE: Duration = Duration::from_millis(500);

pub(super) async fn serve(
    mut stream: UnixStream,
    backend: Rc<dyn Backend>,
    limits: Limits,
    place: Option<Place>,
) {
    let client = client_of(&stream, Via::Cli, place.is_some()).await;
    let Client { user, from, .. } = &client;
    if place.is_none() {
        warn!(target: "client", %user, %from, via = %Via::Cli, "refused: {} clients are connected", limits.clients);
        let text = format!(
            "{} clients are connected, no more are allowed; try again later",
            limits.clients
        );
        let _ = timeout(GOODBYE, send(&mut stream, Failure::new(text).into())).await;
        return;
    }
    debug!(target: "client", %user, %from, via = %Via::Cli, "connected");
    let backend = backend.for_client(&client).unwrap_or(backend);
    converse(&mut stream, &*backend, limits, &client).await;
    debug!(target: "client", %user, %from, via = %Via::Cli, "disconnected");
}

/// The client behind a connection: with names, which may take time in a directory service, or as numbers.
pub async fn client_of(stream: &UnixStream, via: Via, with_names: bool) -> Client {
    let Ok(shown) = stream.peer_cred() else {
        return Client::of_peer(via, None, None);
    };
    let (uid, gid) = (shown.uid(), shown.gid());
    let number = Peer {
        uid,
        name: None,
        groups: Vec::new(),
    };
    let peer = match with_names {
        true => tokio::task::spawn_blocking(move || volley_rights::peer(uid, gid)).await,
        false => Ok(number.clone()),
    };
    Client::of_peer(via, Some(peer.unwrap_or(number)), shown.pid())
}

async fn converse(stream: &mut UnixStream, backend: &dyn Backend, limits: Limits, client: &Client) {
    let Client { user, from, .. } = client;
    let (input, mut output) = stream.split();
    let mut lines = Lines::new(input);
    loop {
        let answer = match lines.next(limits).await {
            Line::Text(line) => match read(&line) {
                Ok(ask) if ask.op == Op::Follow => {
                    let places = (&mut output, &mut lines);
                    if follow::serve(&ask, backend, places, limits).await {
                        continue;
                    }
                    return;
                }
                // The answer that `stop` refers to has ended already.
                Ok(ask) if ask.op == Op::Stop => continue,
                Ok(ask) => answer(&ask, backend).await.unwrap_or_else(Answer::from),
                Err(refused) => refused.into(),
            },
            Line::Closed => return,
            Line::Bad(why) => {
                debug!(target: "client", %user, %from, via = %Via::Cli, "cut off: {why}");
                let _ = timeout(GOODBYE, send(&mut output, Failure::new(why).into())).await;
                return;
            }
        };
        if let Some(failure) = &answer.error {
            debug!(target: "client", %user, %from, via = %Via::Cli, "refused: {}", failure.message);
        }
        match timeout(limits.read_answer, send(&mut output, answer)).await {
            Ok(Ok(())) => {}
            // The client does not read, or has disconnected.
            _ => return,
        }
    }
}

/// Parses a request.
fn read(line: &[u8]) -> Result<Ask, Failure> {
    let line = std::str::from_utf8(line).map_err(|e| {
        Failure::new(format!(
            "the request is not UTF-8 text: byte {} does not belong there",
            e.valid_up_to()
        ))
    })?;
    serde_json::from_str(line).map_err(|e| {
        Failure::new(format!(
            "the request is not of the form {{\"op\":\"exec\",\"line\":\"show version\"}}: {e}"
        ))
    })
}

async fn answer(ask: &Ask, backend: &dyn Backend) -> Result<Answer, Failure> {
    Ok(match ask.op {
        Op::Exec => return exec(ask, backend).await,
        Op::Transact => return transact(&ask.line, ask.json, backend).await,
        Op::Help => Answer::text(help(&ask.line, backend)),
        Op::Complete => {
            let found = complete(&ask.line, backend);
            Answer {
                start: Some(found.start),
                candidates: found.candidates,
                ..Answer::default()
            }
        }
        // The caller handles them.
        Op::Follow | Op::Stop => Answer::default(),
    })
}

/// Runs the commands of a text as one transaction.
async fn transact(text: &str, data: bool, backend: &dyn Backend) -> Result<Answer, Failure> {
    // Long files are parsed on a helper thread, so that this thread can process packets and answer other clients.
    let text = text.to_owned();
    let read = tokio::task::spawn_blocking(move || read_all(&text)).await;
    let requests = read.map_err(Failure::new)??;
    let (lines, requests): (Vec<usize>, Vec<Request>) = requests.into_iter().unzip();
    let done = backend.transact(requests).await;
    let applied = done.map_err(|(index, error)| {
        let failure = Failure::new(error);
        match index.and_then(|i| lines.get(i)) {
            Some(line) => failure.at_line(*line),
            None => failure,
        }
    })?;
    let value = serde_json::to_value(&applied).ok();
    Ok(Answer {
        text: render::applied(&applied),
        data: value.filter(|_| data),
        ..Answer::default()
    })
}

/// The changes in a text, each with its line.
fn read_all(text: &str) -> Result<Vec<(usize, Request)>, Failure> {
    let mut requests = Vec::new();
    for (line, command) in crate::script::commands(text) {
        match parse_line(&command).map(|c| (c.action, c.pipes.is_empty())) {
            Ok((Action::Nothing, _)) => {}
            Ok((Action::Request(request), true)) if request.is_configuration() => {
                requests.push((line, *request));
            }
            Ok(_) => {
                let why = "this is no change of the configuration, so it cannot be undone";
                return Err(Failure::of_line(why).at_line(line));
            }
            Err(e) => {
                let message = e.to_string();
                let failure = Failure::from(e).at_line(line);
                return Err(Failure { message, ..failure });
            }
        }
    }
    Ok(requests)
}

/// Carries out an operation on the configuration, with the client's text as the file.
async fn configuration(
    mut action: ConfigAction,
    text: Option<&str>,
    backend: &dyn Backend,
) -> Result<ConfigReply, ModelError> {
    let Some((source, text)) = action.file_mut().zip(text) else {
        return backend.config(action).await;
    };
    let sent = ConfigSource::Text(text.to_owned());
    let ConfigSource::File(file) = std::mem::replace(source, sent) else {
        return backend.config(action).await;
    };
    backend.config(action).await.map_err(|error| match error {
        ModelError::Config { errors } => {
            // Errors in a text have the default file name: replace it.
            let named = |e: String| match e.strip_prefix("volley.toml:") {
                Some(rest) => format!("{}:{rest}", file.display()),
                None => e,
            };
            let errors = errors.into_iter().map(named).collect();
            ModelError::Config { errors }
        }
        other => other,
    })
}

/// Does work on a helper thread.
async fn elsewhere<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(Failure::new)
}

/// Runs one line.
async fn exec(ask: &Ask, backend: &dyn Backend) -> Result<Answer, Failure> {
    let data = ask.json;
    let Command { action, pipes } = parse_line(&ask.line)?;
    let wants_json = pipes.contains(&Pipe::Json);
    let mut failure = None;
    let written = move |text: &dyn Fn() -> String, value: Option<serde_json::Value>| {
        let text = match &value {
            Some(value) if wants_json => format!("{value:#}\n"),
            _ => text(),
        };
        (text, value.filter(|_| data))
    };
    let (text, value) = match action {
        Action::Nothing => return Ok(Answer::default()),
        Action::Builtin(Builtin::Help(words)) => (reference::listing(&words), None),
        Action::Builtin(_) => {
            let why = "this is a command of the interactive command line";
            return Err(Failure::of_line(why));
        }
        Action::Request(request) => {
            let done = backend.transact(vec![*request]).await;
            let applied = done.map_err(|(_, error)| Failure::new(error))?;
            let value = serde_json::to_value(&applied).ok();
            written(&|| render::applied(&applied), value)
        }
        Action::Config(action) => {
            let reply = configuration(action, ask.text.as_deref(), backend).await;
            let reply = reply.map_err(Failure::new)?;
            // The text of a configuration may be long.
            let wanted = data || wants_json;
            let write = move || {
                let value = wanted.then(|| serde_json::to_value(&reply).ok());
                written(&|| render::config(&reply), value.flatten())
            };
            elsewhere(write).await?
        }
        Action::Query(query, view) => {
            let reply = backend.query(query).await.map_err(Failure::new)?;
            // In data, the failure of a run is a separate field; in text, the text reports it.
            failure = data.then(|| reply.failure()).flatten();
            let wanted = data || wants_json;
            let is_large = reply.is_large();
            let write = move || {
                let value = wanted.then(|| reply.json());
                written(&|| reply.text(view), value)
            };
            match is_large {
                true => elsewhere(write).await?,
                false => write(),
            }
        }
    };
    let length = text.len();
    let filter = move || pipes.iter().fold(text, |text, pipe| pipe.run(&text));
    let text = by_length(length, filter).await.map_err(Failure::new)?;
    Ok(Answer {
        text,
        data: value,
        error: failure.map(Failure::new),
        ..Answer::default()
    })
}
