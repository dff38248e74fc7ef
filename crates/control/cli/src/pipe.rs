//! `COMMAND | grep X | count | json`: what the text of an answer goes through.

use crate::token::{Token, tokens};
use volley_model::SyntaxError;

/// Pipes of one line at most.
const MAX_PIPES: usize = 8;

/// One pipe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pipe {
    /// Keep lines that contain this text.
    Grep(String),
    /// Keep lines that do not contain this text.
    GrepNot(String),
    /// Number of lines.
    Count,
    /// The answer as JSON instead of text. Comes first, wherever it is written.
    Json,
}

impl Pipe {
    /// The text behind the pipe.
    pub fn run(&self, text: &str) -> String {
        let kept = |keep: &dyn Fn(&str) -> bool| {
            text.lines()
                .filter(|l| keep(l))
                .map(|l| format!("{l}\n"))
                .collect()
        };
        match self {
            Pipe::Grep(what) => kept(&|line| line.contains(what)),
            Pipe::GrepNot(what) => kept(&|line| !line.contains(what)),
            Pipe::Count => format!("{}\n", text.lines().count()),
            Pipe::Json => text.to_string(),
        }
    }
}

/// Parts a line into its command and its pipes. A last word `json` of a `show` command is a pipe, too.
pub(crate) fn split(line: &str) -> Result<(String, Vec<Pipe>), SyntaxError> {
    let all = tokens(line, 1)?;
    let end = line.trim_end().chars().count() + 1;
    let mut parts = all.split(|t| t.is("|"));
    let command = parts.next().unwrap_or_default();
    let mut pipes = Vec::new();
    for part in parts {
        if pipes.len() == MAX_PIPES {
            let column = part.first().map_or(end, |t| t.column);
            return Err(SyntaxError::new(
                column,
                format!("more than {MAX_PIPES} pipes"),
            ));
        }
        pipes.push(pipe(part, end)?);
    }
    let mut stop = all.iter().find(|t| t.is("|")).map(|t| t.column - 1);
    if let [first, .., last] = command {
        let show = first.text.len() > 1 && "show".starts_with(&first.text);
        if show && last.is("json") {
            stop = Some(last.column - 1);
            pipes.push(Pipe::Json);
        }
    }
    let command = line.chars().take(stop.unwrap_or(usize::MAX)).collect();
    Ok((command, pipes))
}

fn pipe(part: &[Token], end: usize) -> Result<Pipe, SyntaxError> {
    let words: Vec<&str> = part.iter().map(|t| t.text.as_str()).collect();
    Ok(match words[..] {
        ["grep", "-v", what] => Pipe::GrepNot(what.to_string()),
        ["grep", what] => Pipe::Grep(what.to_string()),
        ["count"] => Pipe::Count,
        ["json"] => Pipe::Json,
        _ => {
            let column = part.first().map_or(end, |t| t.column);
            let message = "expected a pipe: grep TEXT, grep -v TEXT, count or json";
            return Err(SyntaxError::new(column, message));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pipes_are_parted_from_the_command() {
        let (command, pipes) = split("show errors | grep \"a | b\" | count").unwrap();
        assert_eq!(command.trim_end(), "show errors");
        assert_eq!(pipes, [Pipe::Grep("a | b".into()), Pipe::Count]);
        assert_eq!(
            split("sh ver json").unwrap(),
            ("sh ver ".to_string(), vec![Pipe::Json])
        );
        let e = split("show errors | less").unwrap_err().to_string();
        assert!(e.starts_with("column 15: expected a pipe"), "{e}");
        assert!(split("show errors |").is_err());
    }

    #[test]
    fn pipes_run() {
        assert_eq!(Pipe::Grep("a".into()).run("ab\nc\n"), "ab\n");
        assert_eq!(Pipe::GrepNot("a".into()).run("ab\nc\n"), "c\n");
        assert_eq!(Pipe::Count.run("ab\nc\n"), "2\n");
    }
}
