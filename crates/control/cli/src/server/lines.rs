//! Reads lines from a client, and sends answers.

use super::limits::Limits;
use super::protocol::Answer;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::unix::ReadHalf;
use tokio::time::timeout;

/// Texts up to this length in bytes are processed on the control thread; longer texts on a helper thread.
pub(super) const LONG: usize = 1 << 16;

/// Runs work on a helper thread if its text is long.
pub(super) async fn by_length<T: Send + 'static>(
    bytes: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> std::io::Result<T> {
    match bytes > LONG {
        true => Ok(tokio::task::spawn_blocking(work).await?),
        false => Ok(work()),
    }
}

pub(super) async fn send(
    output: &mut (impl AsyncWrite + Unpin),
    answer: Answer,
) -> std::io::Result<()> {
    let length = answer.text.len();
    let mut line = by_length(length, move || serde_json::to_vec(&answer.harmless())).await??;
    line.push(b'\n');
    output.write_all(&line).await
}

pub(super) enum Line {
    Text(Vec<u8>),
    Closed,
    Bad(String),
}

/// The lines of a client.
pub(super) struct Lines<'s> {
    input: BufReader<ReadHalf<'s>>,
    /// The part of a line that was read.
    held: Vec<u8>,
}

impl<'s> Lines<'s> {
    pub(super) fn new(input: ReadHalf<'s>) -> Self {
        let (input, held) = (BufReader::new(input), Vec::new());
        Lines { input, held }
    }

    /// The next line. Cancelling the call loses nothing of a line.
    pub(super) async fn next(&mut self, limits: Limits) -> Line {
        // Between lines a client may be silent for any time.
        if self.held.is_empty() && self.input.fill_buf().await.is_err() {
            return Line::Closed;
        }
        let rest = (limits.line + 1).saturating_sub(self.held.len());
        let mut input = (&mut self.input).take(rest as u64);
        let read = input.read_until(b'\n', &mut self.held);
        match timeout(limits.finish_line, read).await {
            Ok(Ok(_)) if self.held.pop_if(|last| *last == b'\n').is_some() => {
                Line::Text(std::mem::take(&mut self.held))
            }
            Ok(Ok(_)) if self.held.len() > limits.line => {
                Line::Bad(format!("the line is longer than {} bytes", limits.line))
            }
            Ok(_) => Line::Closed,
            Err(_) => Line::Bad(format!(
                "the line was not finished within {} s",
                limits.finish_line.as_secs_f32()
            )),
        }
    }
}
