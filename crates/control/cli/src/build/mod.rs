//! Builds a typed request or query from the words that the automaton matched.

mod object;

use crate::action::{Action, Builtin, Command};
use crate::grammar::{Id, Of, Piece, aliased, run};
use crate::pipe::{self, Pipe};
use crate::{MAX_LINE, token};
use volley_model::{ModelError, SyntaxError};

/// Parses one line.
pub fn parse_line(line: &str) -> Result<Command, SyntaxError> {
    if line.len() > MAX_LINE {
        let message = format!("the line has {} bytes, the limit is {MAX_LINE}", line.len());
        return Err(SyntaxError::new(1, message));
    }
    let line = &*aliased(line);
    // The pipes of a line that begins with `watch` belong to the command that it repeats.
    let (command, pipes) = match line.trim_start().starts_with("watch ") {
        true => (line.to_owned(), Vec::new()),
        false => pipe::split(line)?,
    };
    if token::tokens(&command, 1)?.is_empty() {
        if pipes.is_empty() {
            return Ok(Command {
                action: Action::Nothing,
                pipes,
            });
        }
        return Err(SyntaxError::new(1, "a command is missing before the pipe"));
    }
    let (definition, pieces) = run(&command)?;
    let end = command.trim_end().chars().count() + 1;
    let action = build(definition.id, &pieces, end)?;
    match &action {
        Action::Request(request) => request.validate().map_err(|e| located(e, &pieces))?,
        Action::Builtin(Builtin::Watch(it)) => check_watched(&it.command.0, &pieces)?,
        _ => {}
    }
    if pipes.contains(&Pipe::Json) && matches!(action, Action::Builtin(_)) {
        return Err(SyntaxError::new(
            1,
            "json is for show commands and changes only",
        ));
    }
    Ok(Command { action, pipes })
}

/// Checks the command that `watch` repeats, which is the last word of its line.
fn check_watched(line: &str, pieces: &[Piece]) -> Result<(), SyntaxError> {
    let column = match pieces.last() {
        Some(Piece::Slot(_, token)) => token.column,
        _ => 1,
    };
    let action = parse_line(line).map_err(|e| e.shifted(column - 1))?.action;
    match action.shows() {
        true => Ok(()),
        false => Err(SyntaxError::new(
            column,
            "only commands that show something can be watched",
        )),
    }
}

/// Places the error of a value at the word with the value, if there is one, else at the start of the line.
fn located(error: ModelError, pieces: &[Piece]) -> SyntaxError {
    let what = match &error {
        ModelError::Invalid { what, .. } | ModelError::Unsupported { what, .. } => what.as_str(),
        _ => "",
    };
    let words: Vec<_> = what
        .split_whitespace()
        .map(|w| w.trim_matches(['\'', ':', ',']))
        .collect();
    let column = pieces.iter().find_map(|piece| match piece {
        Piece::Slot(_, token) if words.contains(&token.text.as_str()) => Some(token.column),
        _ => None,
    });
    SyntaxError::new(column.unwrap_or(1), error)
}

fn build(id: Id, pieces: &[Piece], end: usize) -> Result<Action, SyntaxError> {
    match id.of {
        Of::Own => object::own(id, pieces, end),
        Of::Query => object::query(id, pieces, end),
        Of::Verb => object::invocation(id, pieces, end),
        Of::Object(_) | Of::Default => object::request(id, pieces, end),
    }
}
