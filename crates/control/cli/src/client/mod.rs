//! `volley ctl`: one line, a file of lines, or interactive, over the daemon's socket.

mod connection;
mod interactive;

pub use connection::{ClientError, Connection};
pub use interactive::interactive;

use std::io::Write;
use std::path::Path;

/// Runs one line and writes its answer.
pub fn one_shot(
    socket: &Path,
    line: &str,
    json: bool,
    out: &mut dyn Write,
) -> Result<(), ClientError> {
    let mut connection = Connection::open(socket)?;
    if let Ok(command) = crate::parse_line(line)
        && let crate::Action::Builtin(crate::Builtin::Exec(file)) = command.action
    {
        return batch(&mut connection, &file, json, out);
    }
    let answer = connection.exec(line, json)?;
    match answer.data.filter(|_| json) {
        Some(data) => writeln!(out, "{data:#}"),
        None => out.write_all(answer.text.as_bytes()),
    }
    .map_err(ClientError::Output)
}

/// Largest file of commands, in bytes.
const MAX_BATCH: u64 = 64 << 20;

/// Runs the lines of a file; the first error stops it and is told with file and line.
pub fn batch(
    connection: &mut Connection,
    file: &str,
    json: bool,
    out: &mut dyn Write,
) -> Result<(), ClientError> {
    let bad = |why: String| ClientError::Batch {
        place: file.to_string(),
        why,
    };
    let size = std::fs::metadata(file)
        .map_err(|e| bad(e.to_string()))?
        .len();
    if size > MAX_BATCH {
        return Err(bad(format!("has {size} bytes, the limit is {MAX_BATCH}")));
    }
    let text = std::fs::read_to_string(file).map_err(|e| bad(e.to_string()))?;
    let mut held = String::new();
    let mut first = 1;
    for (i, line) in text.lines().enumerate() {
        if held.is_empty() {
            first = i + 1;
        }
        held += line;
        // A brace that is still open goes on in the next line.
        if open(&held) && i + 1 < text.lines().count() {
            held.push('\n');
            continue;
        }
        let answer = connection
            .exec(&held, json)
            .map_err(|e| ClientError::Batch {
                place: format!("{file}:{first}"),
                why: e.to_string(),
            })?;
        out.write_all(answer.text.as_bytes())
            .map_err(ClientError::Output)?;
        held.clear();
    }
    Ok(())
}

/// True when a brace of the text is not closed yet.
pub(crate) fn open(text: &str) -> bool {
    matches!(crate::token::tokens(text, 1), Err(e) if e.message.starts_with("this brace"))
}
