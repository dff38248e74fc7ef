//! `arping` and `monitor`: each part of the answer is printed when it comes, and Ctrl-C ends it with its summary.

use super::connection::Connection;
use super::error::ClientError;
use super::probe::Interrupt;
use crate::server::{Answer, Ask, Follow, Op, bytes};
use std::io::{ErrorKind, IsTerminal, Write};
use std::time::Duration;

/// Between two looks whether the user has enough.
const LOOK: Duration = Duration::from_millis(50);

/// Runs a line whose answer comes in parts.
pub(super) fn run(
    connection: &mut Connection,
    line: &str,
    what: &Follow,
    out: &mut dyn Write,
) -> Result<(), ClientError> {
    let packets = matches!(what, Follow::Monitor(monitor) if monitor.pcapng);
    if packets && std::io::stdout().is_terminal() {
        return Err(ClientError::Refused {
            column: None,
            message: "standard output is a terminal, which shows no captures: write `volley ctl monitor ... pcapng | wireshark -k -i -`"
                .to_owned(),
        });
    }
    let done = parts(connection, line, packets, out);
    if !matches!(done, Ok(()) | Err(ClientError::Refused { .. })) {
        // What comes of it still is no answer to another request.
        connection.close();
    }
    match done {
        // Who reads the output has seen enough.
        Err(ClientError::Output(e)) if e.kind() == ErrorKind::BrokenPipe => Ok(()),
        done => done,
    }
}

fn parts(
    connection: &mut Connection,
    line: &str,
    packets: bool,
    out: &mut dyn Write,
) -> Result<(), ClientError> {
    let mut interrupt = Interrupt::new()?;
    connection.begin(&Ask::new(Op::Follow, line))?;
    let (mut held, mut stopped) = (Vec::new(), false);
    loop {
        let answer = connection.next_within(&mut held, LOOK)?;
        if let Some(answer) = answer {
            let more = answer.more;
            show(answer, packets, out)?;
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

/// Prints a part: where standard output has the packets, text goes to standard error.
fn show(answer: Answer, packets: bool, out: &mut dyn Write) -> Result<(), ClientError> {
    let odd = || {
        let why = "bytes are not hexadecimal";
        ClientError::Broken(std::io::Error::new(ErrorKind::InvalidData, why))
    };
    let bytes = bytes(&answer.bytes).ok_or_else(odd)?;
    let written = match packets {
        true => out
            .write_all(&bytes)
            .and_then(|()| std::io::stderr().write_all(answer.text.as_bytes())),
        false => out.write_all(answer.text.as_bytes()),
    };
    written
        .and_then(|()| out.flush())
        .map_err(ClientError::Output)?;
    match answer.error {
        Some(failure) => Err(ClientError::Refused {
            column: failure.column,
            message: failure.message,
        }),
        None => Ok(()),
    }
}
