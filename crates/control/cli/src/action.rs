//! What a line asks for.

use crate::pipe::Pipe;
use crate::render::View;
use volley_model::{ConfigAction, Request};
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
    pub(crate) fn shows(&self) -> bool {
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
