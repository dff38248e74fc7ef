//! `volley ctl`: one line, a file of lines, or interactive, over the daemon's socket.

mod connection;
mod files;
mod follow;
mod interactive;
mod probe;
mod screen;
mod script;
mod watch;

pub use connection::{ClientError, Connection};
pub use interactive::interactive;
pub use screen::Screen;
pub use script::{ScriptOptions, script};
pub use watch::watch;

use crate::server::{Answer, Ask, Follow, Op};
use crate::{Action, Builtin, Command, render};
use std::io::Write;
use std::path::Path;
use volley_model::Query;
use volley_model::reply::ArpingReply;

/// Runs one line and writes its answer.
pub fn one_shot(
    socket: &Path,
    line: &str,
    json: bool,
    out: &mut dyn Write,
) -> Result<(), ClientError> {
    let mut connection = Connection::open(socket)?;
    carry_out(&mut connection, line, json, Screen::of_stdout(), out)
}

/// Runs one line, where the client has to do something itself, or the daemon has.
fn carry_out(
    connection: &mut Connection,
    line: &str,
    json: bool,
    screen: Screen,
    out: &mut dyn Write,
) -> Result<(), ClientError> {
    let command = crate::parse_line(line);
    if let Ok(command) = &command
        && let Some(done) = probed(connection, (line, command), json, out)
    {
        return done;
    }
    let is_arping = matches!(&command, Ok(command) if matches!(command.action, Action::Query(Query::Arping(_), _)));
    match command.map(|c| c.action) {
        Ok(Action::Builtin(Builtin::Exec { file, undo })) => {
            let run = if undo { all_or_none } else { batch };
            return run(connection, &file, json, out);
        }
        Ok(Action::Builtin(Builtin::Watch {
            every_s,
            times,
            line,
        })) => {
            return watch(connection, &line, every_s, times, screen, out);
        }
        _ => {}
    }
    let answer = connection.exec(line, json)?;
    let Some(data) = answer.data.filter(|_| json) else {
        return screen.show(&answer.text, out);
    };
    writeln!(out, "{}", Answer::json(&data)).map_err(ClientError::Output)?;
    match is_arping.then(|| serde_json::from_value::<ArpingReply>(data)) {
        Some(Ok(reply)) if reply.received == 0 => Err(ClientError::Refused {
            column: None,
            message: render::arping_failure(&reply),
        }),
        _ => Ok(()),
    }
}

/// Prints the answers of a ping, traceroute, arping or monitor as they come; none where it is another command, or its
/// answer is to be data or goes through a pipe.
fn probed(
    connection: &mut Connection,
    (line, command): (&str, &Command),
    json: bool,
    out: &mut dyn Write,
) -> Option<Result<(), ClientError>> {
    if json || !command.pipes.is_empty() {
        return None;
    }
    if let Some(what) = Follow::of(&command.action) {
        return Some(follow::run(connection, line, &what, out));
    }
    match &command.action {
        Action::Query(query, _) => probe::run(connection, query, out),
        _ => None,
    }
}

/// Largest file of commands, in bytes.
const MAX_BATCH: u64 = 64 << 20;

/// A text file, or standard input by the names `-` and `/dev/stdin`.
fn read(file: &str) -> Result<String, ClientError> {
    let bad = |why: String| ClientError::Batch {
        place: file.to_string(),
        why,
    };
    let text = match file {
        "-" | "/dev/stdin" => volley_file::read_stdin(MAX_BATCH),
        file => volley_file::read_text(file.as_ref(), MAX_BATCH),
    };
    text.map_err(|e| bad(e.to_string()))
}

/// Runs the lines of a file as one transaction: all of them or none. An error is told with file and line.
pub fn all_or_none(
    connection: &mut Connection,
    file: &str,
    json: bool,
    out: &mut dyn Write,
) -> Result<(), ClientError> {
    let ask = Ask {
        json,
        ..Ask::new(Op::Transact, read(file)?)
    };
    let answer = connection.ask(&ask)?;
    if let Some(failure) = answer.error {
        let place = failure
            .line
            .map_or_else(|| file.to_string(), |line| format!("{file}:{line}"));
        let why = failure.message;
        return Err(ClientError::Batch { place, why });
    }
    match answer.data {
        Some(data) => writeln!(out, "{}", Answer::json(&data)),
        None => out.write_all(answer.text.as_bytes()),
    }
    .map_err(ClientError::Output)
}

/// Runs the lines of a file; the first error stops it and is told with file and line.
pub fn batch(
    connection: &mut Connection,
    file: &str,
    json: bool,
    out: &mut dyn Write,
) -> Result<(), ClientError> {
    let text = read(file)?;
    for (first, command) in commands(&text) {
        let answer = connection
            .exec(&command, json)
            .map_err(|e| ClientError::Batch {
                place: format!("{file}:{first}"),
                why: e.to_string(),
            })?;
        out.write_all(answer.text.as_bytes())
            .map_err(ClientError::Output)?;
    }
    Ok(())
}

/// The commands of a text, each with the number of its first line. A brace that is open goes on in the next line.
pub(crate) fn commands(text: &str) -> Vec<(usize, String)> {
    let mut all = Vec::new();
    let (mut held, mut first) = (String::new(), 1);
    for (i, line) in text.lines().enumerate() {
        if held.is_empty() {
            first = i + 1;
        } else {
            held.push('\n');
        }
        held += line;
        if !open(&held) {
            all.push((first, std::mem::take(&mut held)));
        }
    }
    if !held.is_empty() {
        all.push((first, held));
    }
    all
}

/// True when a brace of the text is not closed yet.
pub(crate) fn open(text: &str) -> bool {
    matches!(crate::token::tokens(text, 1), Err(e) if e.message.starts_with("this brace"))
}
