//! Commands from a standard input that is no terminal: run one after the other; each error names its line.

use super::connection::Connection;
use super::error::ClientError;
use super::files::MAX_BATCH;
use super::run::carry_out;
use super::screen::Screen;
use crate::script::Lines;
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
    let mut lines = Lines::new(input, MAX_BATCH);
    let (mut failed, mut all) = (0, 0);
    while let Some((first, command)) = lines.next().map_err(|(line, why)| at_line(line, &why))? {
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
