//! Answers in several parts: each part is sent as soon as it exists, until the answer ends or the client stops it.

use super::backend::{Backend, Pending};
use super::limits::Limits;
use super::lines::{Line, Lines, send};
use super::protocol::{Answer, Ask, Failure};
use crate::parse_line;
use tokio::net::unix::WriteHalf;
use volley_object::ReplyPart;

/// An answer in several parts. Dropping the value ends its source.
pub trait AnswerStream {
    /// The next part; the last one is marked. Cancelling the call loses no part.
    fn next(&mut self) -> Pending<'_, ReplyPart>;

    /// Stops the answer on request of the client: the parts that exist already follow, then the end.
    fn stop(&mut self);
}

/// Serves one request. False when the client has disconnected.
pub(super) async fn serve(
    ask: &Ask,
    backend: &dyn Backend,
    (output, lines): (&mut WriteHalf<'_>, &mut Lines<'_>),
    limits: Limits,
) -> bool {
    let mut answers = match begin(&ask.line, backend) {
        Ok(answers) => answers,
        Err(refused) => return send(output, refused.into()).await.is_ok(),
    };
    let mut stopped = false;
    loop {
        let part = tokio::select! {
            biased;
            line = lines.next(limits), if !stopped => match line {
                // Any line from the client stops the answer.
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
            Ok(part) => {
                let more = !part.is_last;
                (answer(part), more)
            }
            Err(error) => (Failure::new(error).into(), false),
        };
        // A client may read at any speed: the memory for unread parts is bounded by its stream.
        if send(output, answer).await.is_err() {
            return false;
        }
        if !more {
            // If the client sends a stop later, the session ignores it.
            return true;
        }
    }
}

fn begin(line: &str, backend: &dyn Backend) -> Result<Box<dyn AnswerStream>, Failure> {
    let command = parse_line(line)?;
    let asked = command.action.stream();
    let asked = asked
        .ok_or_else(|| Failure::of_line("the answer to this command does not come in parts"))?;
    backend.follow(asked).map_err(Failure::new)
}

fn answer(part: ReplyPart) -> Answer {
    let digit = |n: u8| char::from_digit(n.into(), 16).unwrap_or_default();
    let digits = |byte: &u8| [digit(byte >> 4), digit(byte & 15)];
    Answer {
        text: part.text,
        bytes: part.bytes.iter().flat_map(digits).collect(),
        more: !part.is_last,
        error: part.failure.map(Failure::new),
        ..Answer::default()
    }
}

/// Decodes hexadecimal digits; `None` if the text has other characters.
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
        let part = ReplyPart {
            bytes: all.clone(),
            ..ReplyPart::default()
        };
        assert_eq!(bytes(&answer(part).bytes), Some(all));
        assert_eq!(
            (bytes("0"), bytes("0g"), bytes("")),
            (None, None, Some(vec![]))
        );
    }
}
