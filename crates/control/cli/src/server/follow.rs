//! Answers that come in parts, each when it is there, until they end or the client has enough.

use super::backend::{Backend, Pending};
use super::limits::Limits;
use super::lines::{Line, Lines, send};
use super::protocol::{Answer, Ask};
use crate::build::{Action, parse_line};
use tokio::net::UnixStream;
use volley_model::{ArpingQuery, Monitor, Query, Role};

/// What a client follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Follow {
    /// Answers to requests for an address.
    Arping(ArpingQuery),
    /// Packets.
    Monitor(Monitor),
}

impl Follow {
    /// The role that a client needs: an `arping` sends packets, and a `monitor` shows those of others.
    pub fn role(&self) -> Role {
        match self {
            Follow::Arping(_) | Follow::Monitor(_) => Role::Operate,
        }
    }

    /// The stream that an action requests; none where its answer does not come in parts.
    pub(crate) fn of(action: &Action) -> Option<Follow> {
        match action {
            Action::Monitor(monitor) => Some(Follow::Monitor((**monitor).clone())),
            Action::Query(Query::Arping(arping), _) => Some(Follow::Arping(arping.clone())),
            _ => None,
        }
    }
}

/// A part of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnswerPart {
    /// Lines of text.
    pub text: String,
    /// Bytes for the standard output of the client.
    pub bytes: Vec<u8>,
    /// This is the last part, and the request failed: one sentence.
    pub failure: Option<String>,
}

/// An answer that comes in parts. Dropping it ends what makes it.
pub trait AnswerStream {
    /// The next part, none at the end. A call that is given up loses nothing.
    fn next(&mut self) -> Pending<'_, Option<AnswerPart>>;

    /// The client has enough: the parts that exist already come, and the end.
    fn stop(&mut self);
}

/// Serves one request. False when the client is gone.
pub(super) async fn serve(
    ask: &Ask,
    backend: &dyn Backend,
    (stream, lines): (&mut UnixStream, &mut Lines),
    limits: Limits,
) -> bool {
    let begun = match parse_line(&ask.line).map(|command| Follow::of(&command.action)) {
        Ok(Some(what)) => backend.follow(what).map_err(|e| Answer::failure(None, e)),
        Ok(None) => {
            let why = "the answer to this command does not come in parts";
            Err(Answer::failure(Some(1), why))
        }
        Err(e) => Err(Answer::failure(Some(e.column), e.message)),
    };
    let mut answers = match begun {
        Ok(answers) => answers,
        Err(refused) => return send(stream, &refused.harmless()).await.is_ok(),
    };
    let mut stopped = false;
    loop {
        let part = tokio::select! {
            biased;
            line = lines.next(stream, limits), if !stopped => match line {
                // Whatever it says, the client has enough.
                Line::Text(_) => {
                    stopped = true;
                    answers.stop();
                    continue;
                }
                Line::Closed | Line::Bad(_) => return false,
            },
            part = answers.next() => part,
        };
        let (answer, more) = match part {
            Ok(Some(part)) => {
                let more = part.failure.is_none();
                (answer(part), more)
            }
            Ok(None) => (Answer::default(), false),
            Err(error) => (Answer::failure(None, error), false),
        };
        // A client may read as slowly as it likes: what it does not read costs what is bounded by its stream.
        if send(stream, &answer.harmless()).await.is_err() {
            return false;
        }
        if !more {
            // A stop that is still on its way is ignored by the conversation.
            return true;
        }
    }
}

fn answer(part: AnswerPart) -> Answer {
    let digit = |n: u8| char::from_digit(n.into(), 16).unwrap_or_default();
    let digits = |byte: &u8| [digit(byte >> 4), digit(byte & 15)];
    Answer {
        text: part.text,
        bytes: part.bytes.iter().flat_map(digits).collect(),
        more: part.failure.is_none(),
        error: part
            .failure
            .and_then(|why| Answer::failure(None, why).error),
        ..Answer::default()
    }
}

/// The bytes of an answer; none where they are no hexadecimal digits.
pub(crate) fn bytes(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pairs = text.as_bytes().chunks(2);
    let byte = |pair: &[u8]| Some((digit(*pair.first()?)? << 4 | digit(*pair.get(1)?)?) as u8);
    pairs.map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_carried_whole() {
        let all: Vec<u8> = (0..=255).collect();
        let part = AnswerPart {
            bytes: all.clone(),
            ..AnswerPart::default()
        };
        assert_eq!(bytes(&answer(part).bytes), Some(all));
        assert_eq!(
            (bytes("0"), bytes("0g"), bytes("")),
            (None, None, Some(vec![]))
        );
    }
}
