//! Reads lines from a client, and sends answers.

use super::limits::Limits;
use super::protocol::Answer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

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

pub(super) async fn send(stream: &mut UnixStream, answer: Answer) -> std::io::Result<()> {
    let length = answer.text.len();
    let mut line = by_length(length, move || serde_json::to_vec(&answer.harmless())).await??;
    line.push(b'\n');
    stream.write_all(&line).await
}

pub(super) enum Line {
    Text(Vec<u8>),
    Closed,
    Bad(String),
}

/// Bytes read and not yet used.
#[derive(Default)]
pub(super) struct Lines {
    held: Vec<u8>,
    searched: usize,
}

impl Lines {
    pub(super) async fn next(&mut self, stream: &mut UnixStream, limits: Limits) -> Line {
        let mut deadline = None;
        loop {
            if let Some(at) = self.held[self.searched..].iter().position(|b| *b == b'\n') {
                let rest = self.held.split_off(self.searched + at + 1);
                let mut line = std::mem::replace(&mut self.held, rest);
                self.searched = 0;
                line.pop();
                return Line::Text(line);
            }
            self.searched = self.held.len();
            if self.held.len() > limits.line {
                return Line::Bad(format!("the line is longer than {} bytes", limits.line));
            }
            let mut chunk = [0; 8192];
            let read = match self.held.is_empty() {
                // Between lines a client may be silent for any time.
                true => stream.read(&mut chunk).await,
                false => {
                    let wait = limits.finish_line;
                    let by = *deadline.get_or_insert_with(|| tokio::time::Instant::now() + wait);
                    match tokio::time::timeout_at(by, stream.read(&mut chunk)).await {
                        Ok(read) => read,
                        Err(_) => {
                            return Line::Bad(format!(
                                "the line was not finished within {} s",
                                wait.as_secs_f32()
                            ));
                        }
                    }
                }
            };
            match read {
                Ok(n @ 1..) => self.held.extend_from_slice(&chunk[..n]),
                _ => return Line::Closed,
            }
        }
    }
}
