//! `watch`: a command again and again, until Ctrl-C.

use super::connection::Connection;
use super::error::ClientError;
use super::screen::Screen;
use std::io::Write;
use std::time::Duration;

/// Clears a terminal and goes to its first place.
const CLEAR: &str = "\x1b[2J\x1b[H";

/// Runs a line every so many seconds, at most `times` (0: until Ctrl-C). On a terminal each answer takes the place of
/// the last one.
pub fn watch(
    connection: &mut Connection,
    line: &str,
    every_s: u64,
    times: u64,
    screen: Screen,
    out: &mut dyn Write,
) -> Result<(), ClientError> {
    let terminal = |e: std::io::Error| ClientError::Terminal(e.to_string());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(terminal)?;
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
        if done == times {
            return Ok(());
        }
        let stopped = runtime.block_on(async {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => true,
                () = tokio::time::sleep(Duration::from_secs(every_s)) => false,
            }
        });
        if stopped {
            return Ok(());
        }
    }
}
