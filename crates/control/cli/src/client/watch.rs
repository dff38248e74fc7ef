//! `watch`: runs a command repeatedly, until Ctrl-C.

use super::connection::Connection;
use super::error::ClientError;
use super::follow::Interrupt;
use super::screen::Screen;
use crate::own::Watch;
use std::io::Write;
use std::time::Duration;

/// Clears the terminal and moves the cursor to the top left corner.
const CLEAR: &str = "\x1b[2J\x1b[H";

/// Runs a line repeatedly. On a terminal each answer replaces the previous one.
pub(super) fn watch(
    connection: &mut Connection,
    watched: &Watch,
    screen: Screen,
    out: &mut dyn Write,
) -> Result<(), ClientError> {
    let mut interrupt = Interrupt::new()?;
    let (mut done, every) = (0, Duration::from_secs(watched.every.into()));
    loop {
        let answer = connection.exec(&watched.command.0, false)?;
        if screen.pages {
            out.write_all(CLEAR.as_bytes())
                .map_err(ClientError::Output)?;
        }
        let quiet = Screen {
            pages: false,
            ..screen
        };
        quiet.show(&answer.text, out)?;
        done += 1;
        if Some(done) == watched.times || interrupt.within(every) {
            return Ok(());
        }
    }
}
