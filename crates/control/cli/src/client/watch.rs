//! `watch`: runs a command repeatedly, until Ctrl-C.

use super::connection::Connection;
use super::error::ClientError;
use super::follow::Interrupt;
use super::screen::Screen;
use std::io::Write;
use std::time::Duration;

/// Clears the terminal and moves the cursor to the top left corner.
const CLEAR: &str = "\x1b[2J\x1b[H";

/// Runs a line at an interval, at most `times` times (0: until Ctrl-C). On a terminal each answer replaces the previous one.
pub fn watch(
    connection: &mut Connection,
    line: &str,
    every_s: u64,
    times: u64,
    screen: Screen,
    out: &mut dyn Write,
) -> Result<(), ClientError> {
    let mut interrupt = Interrupt::new()?;
    let mut done = 0;
    loop {
        let answer = connection.exec(line, false)?;
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
        if done == times || interrupt.within(Duration::from_secs(every_s)) {
            return Ok(());
        }
    }
}
