//! The action of a command line.

use crate::own::{Exec, Watch};
use crate::pipe::Pipe;
use crate::render::View;
use volley_model::{ConfigAction, Request};
use volley_object::Asked;

/// A parsed command line.
#[derive(Clone, Debug, PartialEq)]
pub struct Command {
    /// The action of the line.
    pub action: Action,
    /// The pipes that the output passes through, in order.
    pub pipes: Vec<Pipe>,
}

/// The action of a command line.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// No action: the line is empty or a comment.
    Nothing,
    /// A change of the configuration.
    Request(Box<Request>),
    /// A query, and the form in which its answer is shown.
    Query(Asked, View),
    /// An operation on the configuration as a whole.
    Config(ConfigAction),
    /// A command that the command line carries out itself.
    Builtin(Builtin),
}

impl Action {
    /// The query, if its reply comes in items over time; `None` for every other action.
    pub(crate) fn stream(&self) -> Option<&Asked> {
        match self {
            Action::Query(asked, _) => Some(asked).filter(|asked| asked.is_stream()),
            _ => None,
        }
    }

    /// Whether the answer comes as a whole, and the command can be repeated (`watch`).
    pub(crate) fn shows(&self) -> bool {
        match self {
            Action::Query(asked, _) => asked.query().has_whole(),
            other => matches!(other, Action::Config(_)),
        }
    }
}

/// A command that the command line carries out itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Builtin {
    /// List the commands that begin with this text.
    Help(String),
    /// Leave the command line.
    Quit,
    /// List the lines typed.
    History,
    /// Run the commands of a file.
    Exec(Exec),
    /// Run a command repeatedly.
    Watch(Watch),
}
