//! Runs one line, or the lines of a file.

use super::connection::Connection;
use super::error::ClientError;
use super::files::read;
use super::follow;
use super::screen::Screen;
use super::watch::watch;
use crate::own::Exec;
use crate::script::commands;
use crate::server::{Answer, Ask, Op};
use crate::{Action, Builtin, Command};
use std::io::Write;
use std::path::Path;

/// Runs one line and writes the answer.
pub fn one_shot(
    socket: &Path,
    line: &str,
    json: bool,
    out: &mut dyn Write,
) -> Result<(), ClientError> {
    let mut connection = Connection::open(socket)?;
    carry_out(&mut connection, line, json, Screen::of_stdout(), out)
}

/// Runs one line, in the client or on the daemon.
pub(super) fn carry_out(
    connection: &mut Connection,
    line: &str,
    json: bool,
    screen: Screen,
    out: &mut dyn Write,
) -> Result<(), ClientError> {
    if let Ok(command) = crate::parse_line(line)
        && let Some(done) = by_client(connection, (line, &command), json, screen, out)
    {
        return done;
    }
    let answer = connection.answer(line, json)?;
    // A failed run may have data nevertheless.
    if let Some(data) = answer.data.as_ref().filter(|_| json) {
        writeln!(out, "{}", Answer::json(data)).map_err(ClientError::Output)?;
        return answer.accepted().map(drop);
    }
    screen.show(&answer.accepted()?.text, out)
}

/// Carries out a command of which the client makes several requests or gets several answers; `None` for any other command, and
/// if the answer is written as data or through a pipe. An answer of several parts is printed as the parts arrive.
pub(super) fn by_client(
    connection: &mut Connection,
    (line, command): (&str, &Command),
    json: bool,
    screen: Screen,
    out: &mut dyn Write,
) -> Option<Result<(), ClientError>> {
    Some(match &command.action {
        Action::Builtin(Builtin::Exec(Exec { file, undo: true })) => {
            all_or_none(connection, file, json, out)
        }
        Action::Builtin(Builtin::Exec(it)) => batch(connection, &it.file, json, out),
        Action::Builtin(Builtin::Watch(it)) => watch(connection, it, screen, out),
        action if !json && command.pipes.is_empty() => {
            follow::run(connection, line, action.stream()?, out)
        }
        _ => return None,
    })
}

/// Runs the lines of a file as one transaction: all of them or none. An error names file and line.
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

/// Runs the lines of a file; the first error, which names file and line, stops it.
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
