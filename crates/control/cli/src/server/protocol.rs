//! What goes over the socket.

use crate::grammar::Candidate;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use volley_model::{acts_on_terminals, escape, escape_lines};

/// A request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    /// What to do with the line.
    pub op: Op,
    /// The line; for completion and help, up to the cursor.
    pub line: String,
    /// `exec`: the data of the answer, too.
    #[serde(default)]
    pub json: bool,
    /// `exec`: the text of the configuration file that the line names. The client reads it: its user may read it, and the
    /// daemon may have another root folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl Ask {
    /// A request about a line.
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
    /// Run it.
    Exec,
    /// Run the commands of several lines as one transaction: all of them or none.
    Transact,
    /// How could it go on.
    Complete,
    /// What may come here.
    Help,
    /// Run it, and send each part of the answer when it comes.
    Follow,
    /// End the stream: the rest of its answer comes. The request itself has no answer.
    Stop,
}

/// An answer: either `error`, or the rest; a run that has failed has both.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct Answer {
    /// Text to show; empty when there is nothing to say.
    #[serde(default)]
    pub text: String,
    /// Data of the answer, when asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<serde_json::Value>,
    /// Completion: the character (from 0) at which the word begun starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<usize>,
    /// Completion: ways to go on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<Candidate>,
    /// Follow: this is a part of the answer, and more come.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
    /// Follow: bytes of the answer, in hexadecimal digits.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub bytes: String,
    /// The request was refused and changed nothing; beside data, the run that has ended has failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
}

/// Why a request was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Character of the line, from 1, when the line is at fault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
    /// Line, from 1, when several were given and one is at fault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// One sentence.
    pub message: String,
}

impl Answer {
    /// Nothing in the text acts on the terminal of the client, whatever names and comments it quotes.
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

    /// Data as lines of JSON that do not act on a terminal: characters that could are written as `\uXXXX`.
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

    /// The same failure, of a line.
    pub(crate) fn at_line(mut self, line: usize) -> Answer {
        if let Some(failure) = &mut self.error {
            failure.line = Some(line);
        }
        self
    }

    pub(crate) fn failure(column: Option<usize>, message: impl ToString) -> Answer {
        let message = message.to_string();
        let error = Some(Failure {
            column,
            line: None,
            message,
        });
        Answer {
            error,
            ..Answer::default()
        }
    }
}
