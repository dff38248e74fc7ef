//! Runs one line, or the lines of a file.

use super::connection::Connection;
use super::error::ClientError;
use super::files::read;
use super::follow;
use super::screen::Screen;
use super::watch::watch;
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
    let command = crate::parse_line(line);
    if let Ok(command) = &command
        && let Some(done) = probed(connection, (line, command), json, out)
    {
        return done;
    }
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
    let answer = connection.answer(line, json)?;
    // A failed run may have data nevertheless.
    if let Some(data) = answer.data.as_ref().filter(|_| json) {
        writeln!(out, "{}", Answer::json(data)).map_err(ClientError::Output)?;
        return answer.accepted().map(drop);
    }
    screen.show(&answer.accepted()?.text, out)
}

/// Prints an answer of several parts as they arrive; `None` if the command has a single answer, or if the answer is written as
/// data or through a pipe.
pub(super) fn probed(
    connection: &mut Connection,
    (line, command): (&str, &Command),
    json: bool,
    out: &mut dyn Write,
) -> Option<Result<(), ClientError>> {
    if json || !command.pipes.is_empty() {
        return None;
    }
    let asked = command.action.stream()?;
    Some(follow::run(connection, line, asked, out))
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
