//! Commands from a standard input that is no terminal: run one after the other; each error names its line.

use super::connection::Connection;
use super::error::ClientError;
use super::files::MAX_BATCH;
use super::run::carry_out;
use super::screen::Screen;
use crate::script::open;
use crate::{Action, Builtin, parse_line};
use std::io::{BufRead, Write};
use std::path::Path;

/// How a script handles errors and answers.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScriptOptions {
    /// Continue after a failed command; the script fails nevertheless.
    pub keep_going: bool,
    /// Write answers in JSON.
    pub json: bool,
}

/// Runs the commands of an input, each as soon as its line is complete. The first error ends the script. With `keep_going`,
/// errors go to `errors`, and the script fails at its end. `quit` ends the script.
pub fn script(
    socket: &Path,
    input: &mut dyn BufRead,
    options: ScriptOptions,
    out: &mut dyn Write,
    errors: &mut dyn Write,
) -> Result<(), ClientError> {
    let mut connection = Connection::open(socket)?;
    let screen = Screen {
        pages: false,
        ..Screen::of_stdout()
    };
    let mut lines = Lines { input, at: 0 };
    let (mut failed, mut all) = (0, 0);
    while let Some((first, command)) = lines.next()? {
        let action = parse_line(&command).map(|c| c.action);
        match action {
            Ok(Action::Nothing) => continue,
            Ok(Action::Builtin(Builtin::Quit)) => break,
            _ => all += 1,
        }
        let done = carry_out(&mut connection, &command, options.json, screen, out);
        out.flush().map_err(ClientError::Output)?;
        match done {
            Ok(()) => {}
            Err(ClientError::Output(error)) => return Err(ClientError::Output(error)),
            Err(error) => {
                let broken = matches!(error, ClientError::Broken(_));
                let error = at_line(first, &error);
                if broken || !options.keep_going {
                    return Err(error);
                }
                failed += 1;
                writeln!(errors, "volley: {error}").map_err(ClientError::Output)?;
            }
        }
    }
    match failed {
        0 => Ok(()),
        failed => Err(ClientError::Script { failed, all }),
    }
}

fn at_line(line: usize, why: &dyn std::fmt::Display) -> ClientError {
    ClientError::Batch {
        place: format!("stdin:{line}"),
        why: why.to_string(),
    }
}

/// Commands of an input, each with the number of its first line. A command with an open brace continues in the next line.
struct Lines<'a> {
    input: &'a mut dyn BufRead,
    /// Number of lines read.
    at: usize,
}

impl Lines<'_> {
    fn next(&mut self) -> Result<Option<(usize, String)>, ClientError> {
        let (mut held, first) = (String::new(), self.at + 1);
        loop {
            let before = held.len();
            let read = self.input.read_line(&mut held);
            read.map_err(|error| at_line(self.at + 1, &error))?;
            if held.len() == before {
                return Ok((!held.is_empty()).then_some((first, held)));
            }
            self.at += 1;
            if held.len() as u64 > MAX_BATCH {
                let why = format!("the command has more than {MAX_BATCH} bytes");
                return Err(at_line(first, &why));
            }
            if !open(&held) {
                let command = held.trim_end_matches(['\r', '\n']).to_owned();
                return Ok(Some((first, command)));
            }
        }
    }
}
