//! From what the automaton read to a typed request or query.

mod args;
mod config;
mod interface;
mod object;

use crate::grammar::{Id, Piece, aliased, run};
use crate::pipe::{self, Pipe};
use crate::render::View;
use crate::{MAX_LINE, token};
use args::Args;
use volley_model::{ConfigAction, ModelError, Request, SyntaxError};
use volley_object::Asked;

/// A line that was understood.
#[derive(Clone, Debug, PartialEq)]
pub struct Command {
    /// What it asks for.
    pub action: Action,
    /// What its text goes through, in order.
    pub pipes: Vec<Pipe>,
}

/// What a line asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Nothing: the line is empty or a comment.
    Nothing,
    /// A change.
    Request(Box<Request>),
    /// A question, and how its answer is shown.
    Query(Asked, View),
    /// Something done with the configuration as a whole.
    Config(ConfigAction),
    /// Something the command line does itself.
    Builtin(Builtin),
}

impl Action {
    /// The query whose reply comes in items over time; none where it is another action.
    pub(crate) fn stream(&self) -> Option<&Asked> {
        match self {
            Action::Query(asked, _) => Some(asked).filter(|asked| asked.is_stream()),
            _ => None,
        }
    }

    /// Whether the answer is there as a whole, and can be asked for again and again.
    fn shows(&self) -> bool {
        match self {
            Action::Query(asked, _) => asked.query().has_whole(),
            other => matches!(other, Action::Config(_)),
        }
    }
}

/// What the command line does itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Builtin {
    /// List commands that begin so.
    Help(String),
    /// Leave.
    Quit,
    /// List lines typed.
    History,
    /// Run the commands of a file.
    Exec {
        /// The file.
        file: String,
        /// All of them or none: one transaction.
        undo: bool,
    },
    /// Run a command again and again.
    Watch {
        /// Seconds in between.
        every_s: u64,
        /// How often; 0 = until Ctrl-C.
        times: u64,
        /// The command, pipes included.
        line: String,
    },
}

/// Reads one line.
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
    let mut args = Args::new(&pieces, end);
    let action = build(definition.id, &mut args)?;
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

/// A value that is wrong by itself: at the word that has it, when there is one, else at the start.
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

fn build(id: Id, args: &mut Args<'_>) -> Result<Action, SyntaxError> {
    let request = match id {
        Id::Object(command) => object::request(command, args)?,
        Id::Query(command) => return object::query(command, args),
        Id::Verb(command) => object::invocation(command, args)?,
        Id::Help => return args.rest().map(|t| Action::Builtin(Builtin::Help(t))),
        Id::Quit => return Ok(Action::Builtin(Builtin::Quit)),
        Id::History => return Ok(Action::Builtin(Builtin::History)),
        Id::Exec => {
            let (file, undo) = (args.text()?, args.has("undo"));
            return Ok(Action::Builtin(Builtin::Exec { file, undo }));
        }
        Id::ConfigCheck
        | Id::ConfigShow
        | Id::ConfigDiff
        | Id::ConfigCommit
        | Id::ConfigConfirm
        | Id::ConfigRollback
        | Id::ConfigHistory
        | Id::ConfigExport => return config::action(id, args).map(Action::Config),
        Id::DeleteInterface | Id::SetName => interface::set(id, args)?,
        // Read with the command that it repeats, before the grammar of that command.
        Id::Watch => return Err(SyntaxError::new(1, "`watch` needs a command to repeat")),
    };
    Ok(Action::Request(Box::new(request)))
}
