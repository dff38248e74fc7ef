//! The messages on the socket.

use crate::grammar::Candidate;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use volley_model::{SyntaxError, acts_on_terminals, escape, escape_lines};

/// A request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    /// The operation on the line.
    pub op: Op,
    /// The line; for completion and help, up to the cursor.
    pub line: String,
    /// `exec`: include the data of the answer.
    #[serde(default)]
    pub json: bool,
    /// `exec`: the text of the configuration file that the line names. The client reads the file: the client's user has the
    /// permission, and the daemon may have another root folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl Ask {
    /// Creates a request for a line.
    pub fn new(op: Op, line: impl Into<String>) -> Ask {
        Ask {
            op,
            line: line.into(),
            json: false,
            text: None,
        }
    }
}

/// Operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Op {
    /// Run the line.
    Exec,
    /// Run the commands of several lines as one transaction: all of them or none.
    Transact,
    /// Return completions of the line.
    Complete,
    /// Return the help for the end of the line.
    Help,
    /// Run the line, and send each part of the answer as soon as it exists.
    Follow,
    /// Stop the stream: the rest of its answer follows. `stop` itself has no answer.
    Stop,
}

/// An answer: either `error`, or the other fields; a run that has failed has both.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct Answer {
    /// Text of the answer; may be empty.
    #[serde(default)]
    pub text: String,
    /// Data of the answer, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<serde_json::Value>,
    /// Completion: index in characters (from 0) of the unfinished word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<usize>,
    /// Completion: the candidates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<Candidate>,
    /// Follow: this is a part of the answer, and more parts follow.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
    /// Follow: bytes of the answer, as hexadecimal digits.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub bytes: String,
    /// The request was refused and changed nothing; if data are present, the run has ended with a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
}

/// Why a request was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Column in characters, from 1, of an error in the line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
    /// Number of the failed line, from 1, when several were given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// One sentence.
    pub message: String,
}

impl Answer {
    /// Escapes characters that would control the client's terminal, also in quoted names and comments.
    pub(crate) fn harmless(mut self) -> Answer {
        if let Cow::Owned(text) = escape_lines(&self.text) {
            self.text = text;
        }
        if let Some(failure) = &mut self.error {
            failure.message = escape_lines(&failure.message).into_owned();
        }
        for word in &mut self.candidates {
            word.text = escape(&word.text).into_owned();
            word.show = escape(&word.show).into_owned();
            word.help = escape(&word.help).into_owned();
        }
        self
    }

    /// Data as lines of JSON; control characters are written as `\uXXXX`, so that they do not control a terminal.
    pub(crate) fn json(data: &serde_json::Value) -> String {
        let text = format!("{data:#}");
        let plain = |c: char| c == '\n' || !acts_on_terminals(c);
        if text.chars().all(plain) {
            return text;
        }
        let written = |c: char| match plain(c) {
            true => c.to_string(),
            false => format!("\\u{:04x}", u32::from(c)),
        };
        text.chars().map(written).collect()
    }

    pub(crate) fn text(text: String) -> Answer {
        Answer {
            text,
            ..Answer::default()
        }
    }
}

impl Failure {
    pub(crate) fn new(message: impl ToString) -> Failure {
        Failure {
            column: None,
            line: None,
            message: message.to_string(),
        }
    }

    /// A refusal of a line that is no command for this operation.
    pub(crate) fn of_line(why: &str) -> Failure {
        SyntaxError::new(1, why).into()
    }

    /// The same failure with the number of its line.
    pub(crate) fn at_line(self, line: usize) -> Failure {
        let line = Some(line);
        Failure { line, ..self }
    }
}

impl From<SyntaxError> for Failure {
    fn from(error: SyntaxError) -> Failure {
        let column = Some(error.column);
        Failure {
            column,
            ..Failure::new(error.message)
        }
    }
}

impl From<Failure> for Answer {
    fn from(failure: Failure) -> Answer {
        Answer {
            error: Some(failure),
            ..Answer::default()
        }
    }
}
