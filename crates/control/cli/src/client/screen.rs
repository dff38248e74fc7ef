//! Output on a terminal, in pages and in colour. Without a terminal, text is written unchanged.

use super::error::ClientError;
use std::io::{IsTerminal, Write};
use std::process::{Command, Stdio};

/// An answer with more lines than this goes through the pager.
const PAGE: usize = 24;

const RED: &str = "\x1b[31m";
const GREEN: &str = "\x1b[32m";
const BOLD: &str = "\x1b[1m";
const PLAIN: &str = "\x1b[0m";

/// Capabilities of the terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Screen {
    /// Escape sequences for colours are written.
    pub colour: bool,
    /// Long answers go through the pager.
    pub pages: bool,
}

impl Screen {
    /// The capabilities of standard output: colours unless `NO_COLOR` is set, pages unless `PAGER` is empty.
    pub fn of_stdout() -> Screen {
        let terminal = std::io::stdout().is_terminal();
        let no_colour = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        let no_pager = std::env::var_os("PAGER").is_some_and(|v| v.is_empty());
        Screen {
            colour: terminal && !no_colour,
            pages: terminal && !no_pager,
        }
    }

    /// Colours the text: added lines green, removed lines red, the first line of a table bold.
    pub fn painted(self, text: &str) -> String {
        if !self.colour {
            return text.to_owned();
        }
        let many = text.lines().count() > 1;
        let paint = |(at, line): (usize, &str)| {
            let colour = if line.starts_with("+ ") {
                GREEN
            } else if line.starts_with("- ") {
                RED
            } else if at == 0 && many && line.contains("  ") {
                BOLD
            } else {
                return format!("{line}\n");
            };
            format!("{colour}{line}{PLAIN}\n")
        };
        text.lines().enumerate().map(paint).collect()
    }

    /// Colours an error red.
    pub fn error(self, text: &str) -> String {
        match self.colour {
            true => format!("{RED}{text}{PLAIN}"),
            false => text.to_owned(),
        }
    }

    /// Writes an answer.
    pub fn show(self, text: &str, out: &mut dyn Write) -> Result<(), ClientError> {
        let painted = self.painted(text);
        if self.pages && text.lines().count() > PAGE && paged(&painted) {
            return Ok(());
        }
        put(painted.as_bytes(), out)
    }
}

/// Writes bytes so that the user sees them at once.
pub(super) fn put(bytes: &[u8], out: &mut dyn Write) -> Result<(), ClientError> {
    let written = out.write_all(bytes).and_then(|()| out.flush());
    written.map_err(ClientError::Output)
}

/// Sends a text to the pager; false when no pager can be started.
fn paged(text: &str) -> bool {
    let named = std::env::var("PAGER").unwrap_or_else(|_| "less -FRX".into());
    let mut words = named.split_whitespace();
    let Some(program) = words.next() else {
        return false;
    };
    let child = Command::new(program)
        .args(words)
        .stdin(Stdio::piped())
        .spawn();
    let Ok(mut child) = child else {
        return false;
    };
    if let Some(mut input) = child.stdin.take() {
        // An error means that the user has left the pager.
        let _ = input.write_all(text.as_bytes());
    }
    let _ = child.wait();
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_for_terminals() {
        let text = "name  state\npg0   up\n+ a\n- b\n";
        assert_eq!(Screen::default().painted(text), text);
        let colour = Screen {
            colour: true,
            pages: false,
        };
        let painted = colour.painted(text);
        assert!(painted.starts_with("\x1b[1mname  state\x1b[0m\npg0   up\n\x1b[32m+ a"));
        assert_eq!(colour.painted("one line\n"), "one line\n");
    }
}
