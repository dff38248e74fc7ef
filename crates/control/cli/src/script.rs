//! Texts of several commands.

use std::io::BufRead;

/// Commands of an input, each with the number of its first line. A command with an open brace continues in the next line.
pub(crate) struct Lines<R> {
    input: R,
    /// Number of lines read.
    at: usize,
    /// Maximum length of a command in bytes.
    most: u64,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(input: R, most: u64) -> Lines<R> {
        Lines { input, at: 0, most }
    }

    /// The next command; an error has the number of its line.
    pub(crate) fn next(&mut self) -> Result<Option<(usize, String)>, (usize, String)> {
        let (mut held, first) = (String::new(), self.at + 1);
        loop {
            let before = held.len();
            let read = self.input.read_line(&mut held);
            read.map_err(|error| (self.at + 1, error.to_string()))?;
            if held.len() == before {
                return Ok((!held.is_empty()).then_some((first, held)));
            }
            self.at += 1;
            if held.len() as u64 > self.most {
                let why = format!("the command has more than {} bytes", self.most);
                return Err((first, why));
            }
            if !open(&held) {
                let command = held.trim_end_matches(['\r', '\n']).to_owned();
                return Ok(Some((first, command)));
            }
        }
    }
}

/// The commands of a text, each with the number of its first line.
pub(crate) fn commands(text: &str) -> impl Iterator<Item = (usize, String)> {
    let mut lines = Lines::new(text.as_bytes(), u64::MAX);
    // Reading from memory does not fail.
    std::iter::from_fn(move || lines.next().ok().flatten())
}

/// Whether a brace of the text is still open.
pub(crate) fn open(text: &str) -> bool {
    matches!(crate::token::tokens(text, 1), Err(e) if e.message.starts_with("this brace"))
}
