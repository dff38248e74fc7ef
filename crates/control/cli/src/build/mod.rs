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
    if let Some(watch) = watched(line)? {
        let action = Action::Builtin(watch);
        return Ok(Command {
            action,
            pipes: Vec::new(),
        });
    }
    let (command, pipes) = pipe::split(line)?;
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
    if let Action::Request(request) = &action {
        request.validate().map_err(|e| located(e, &pieces))?;
    }
    if pipes.contains(&Pipe::Json) && matches!(action, Action::Builtin(_)) {
        return Err(SyntaxError::new(
            1,
            "json is for show commands and changes only",
        ));
    }
    Ok(Command { action, pipes })
}

/// `watch [every SECONDS] [times N] COMMAND`: the rest of the line, pipes included, is the command.
fn watched(line: &str) -> Result<Option<Builtin>, SyntaxError> {
    let mut rest = line.trim_start();
    let Some(behind) = rest.strip_prefix("watch ") else {
        return Ok(None);
    };
    rest = behind.trim_start();
    let (mut every_s, mut times) = (1, 0);
    for (word, value) in [("every ", &mut every_s), ("times ", &mut times)] {
        let Some(behind) = rest.strip_prefix(word) else {
            continue;
        };
        let column = line.chars().count() - behind.chars().count() + 1;
        let (number, after) = behind.trim_start().split_once(' ').unwrap_or((behind, ""));
        let read = number.parse().ok().filter(|n| (1..=86_400).contains(n));
        *value = read.ok_or_else(|| SyntaxError::new(column, "expected a number, 1 to 86400"))?;
        rest = after.trim_start();
    }
    let column = line.chars().count() - rest.chars().count();
    let action = parse_line(rest).map_err(|e| e.shifted(column))?.action;
    match action.shows() {
        true => Ok(Some(Builtin::Watch {
            every_s,
            times,
            line: rest.to_owned(),
        })),
        false => Err(SyntaxError::new(
            column + 1,
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
