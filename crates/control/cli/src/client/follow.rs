//! Answers in several parts (`ping`, `monitor`): each part is printed on arrival; Ctrl-C ends the answer with its summary.

use super::connection::Connection;
use super::error::ClientError;
use super::screen::put;
use crate::server::{Answer, Ask, Op, bytes};
use std::io::{ErrorKind, IsTerminal, Write};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use volley_object::Asked;

/// Interval at which the client checks for Ctrl-C.
const LOOK: Duration = Duration::from_millis(50);

/// Ctrl-C, checked between two parts of an answer, or between two answers.
pub(super) struct Interrupt {
    runtime: Runtime,
    signal: Signal,
}

impl Interrupt {
    pub(super) fn new() -> Result<Interrupt, ClientError> {
        let terminal = |e: std::io::Error| ClientError::Terminal(e.to_string());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(terminal)?;
        let signal = {
            let _inside = runtime.enter();
            signal(SignalKind::interrupt()).map_err(terminal)?
        };
        Ok(Interrupt { runtime, signal })
    }

    /// Waits for a time; true when the user has pressed Ctrl-C.
    pub(super) fn within(&mut self, span: Duration) -> bool {
        let signal = &mut self.signal;
        self.runtime.block_on(async {
            tokio::select! {
                biased;
                _ = signal.recv() => true,
                () = tokio::time::sleep(span) => false,
            }
        })
    }
}

/// Runs a line whose answer comes in parts.
pub(super) fn run(
    connection: &mut Connection,
    line: &str,
    asked: &Asked,
    out: &mut dyn Write,
) -> Result<(), ClientError> {
    let reader = asked.reader();
    if let Some(reader) = reader
        && std::io::stdout().is_terminal()
    {
        return Err(ClientError::Refused {
            column: None,
            message: format!(
                "standard output is a terminal, which shows no captures: write `volley ctl {} | {reader}`",
                line.trim()
            ),
        });
    }
    let done = parts(connection, line, reader.is_some(), out);
    if !matches!(done, Ok(()) | Err(ClientError::Refused { .. })) {
        // The remaining parts must not be read as the answer to another request.
        connection.close();
    }
    match done {
        // The reader of the output has closed the pipe.
        Err(ClientError::Output(e)) if e.kind() == ErrorKind::BrokenPipe => Ok(()),
        done => done,
    }
}

fn parts(
    connection: &mut Connection,
    line: &str,
    is_bytes: bool,
    out: &mut dyn Write,
) -> Result<(), ClientError> {
    let mut interrupt = Interrupt::new()?;
    connection.begin(&Ask::new(Op::Follow, line))?;
    let (mut held, mut stopped) = (Vec::new(), false);
    loop {
        let answer = connection.next_within(&mut held, LOOK)?;
        if let Some(answer) = answer {
            let more = answer.more;
            show(answer, is_bytes, out)?;
            if !more {
                return Ok(());
            }
        }
        if interrupt.within(Duration::ZERO) {
            if stopped {
                connection.close();
                return Ok(());
            }
            stopped = true;
            connection.send(&Ask::new(Op::Stop, ""))?;
        }
    }
}

/// Prints a part. If bytes go to standard output, text goes to standard error.
fn show(answer: Answer, is_bytes: bool, out: &mut dyn Write) -> Result<(), ClientError> {
    let odd = || {
        let why = "bytes are not hexadecimal";
        ClientError::Broken(std::io::Error::new(ErrorKind::InvalidData, why))
    };
    let bytes = bytes(&answer.bytes).ok_or_else(odd)?;
    let text = answer.text.as_bytes();
    match is_bytes {
        true => {
            put(&bytes, out)?;
            put(text, &mut std::io::stderr())?;
        }
        false => put(text, out)?,
    }
    answer.accepted().map(drop)
}
