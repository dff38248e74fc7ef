//! `COMMAND | grep X | head 3 | count | json`: filters of an answer's text.

use crate::token::{Token, tokens};
use volley_model::SyntaxError;

/// Maximum number of pipes in a line.
const MAX_PIPES: usize = 8;

/// Default number of lines of `head` and `tail`.
const LINES: usize = 10;

/// One pipe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pipe {
    /// Keep lines that contain this text.
    Grep(String),
    /// Keep lines that do not contain this text.
    GrepNot(String),
    /// Keep this number of first lines.
    Head(usize),
    /// Keep this number of last lines.
    Tail(usize),
    /// Keep all lines from the first that contains this text.
    Begin(String),
    /// Show the text a page at a time, which is the default on a terminal.
    More,
    /// Replace the text by its number of lines.
    Count,
    /// Print the answer as JSON instead of text. Applied first, at any position in the line.
    Json,
}

impl Pipe {
    /// Applies the pipe to a text.
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
            Pipe::Head(most) => text.split_inclusive('\n').take(*most).collect(),
            Pipe::Tail(most) => {
                let lines = text.lines().count();
                let skip = lines.saturating_sub(*most);
                text.split_inclusive('\n').skip(skip).collect()
            }
            Pipe::Begin(what) => {
                let lines = text.split_inclusive('\n');
                lines.skip_while(|line| !line.contains(what)).collect()
            }
            Pipe::Count => format!("{}\n", text.lines().count()),
            Pipe::Json | Pipe::More => text.to_string(),
        }
    }
}

/// Splits a line into its command and its pipes. A last word `json` of a `show` command is a pipe, too.
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
        ["grep", "-v", what] | ["exclude", what] => Pipe::GrepNot(what.to_string()),
        ["grep" | "include", what] => Pipe::Grep(what.to_string()),
        ["begin", what] => Pipe::Begin(what.to_string()),
        ["head"] => Pipe::Head(LINES),
        ["tail"] => Pipe::Tail(LINES),
        ["head", "-n", most] | ["head", most] => Pipe::Head(lines(most, part)?),
        ["tail", "-n", most] | ["tail", most] => Pipe::Tail(lines(most, part)?),
        ["more"] => Pipe::More,
        ["count"] => Pipe::Count,
        ["json"] => Pipe::Json,
        _ => {
            let column = part.first().map_or(end, |t| t.column);
            let message = "expected a pipe: grep TEXT (or include TEXT), grep -v TEXT (or exclude TEXT), begin TEXT, head N, \
                 tail N, more, count or json";
            return Err(SyntaxError::new(column, message));
        }
    })
}

/// A number of lines: `5`, or `-5` as in a shell.
fn lines(text: &str, part: &[Token]) -> Result<usize, SyntaxError> {
    let number = text.strip_prefix('-').unwrap_or(text).parse().ok();
    let column = part.last().map_or(1, |t| t.column);
    number.ok_or_else(|| SyntaxError::new(column, "expected a number of lines"))
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
        let through = |line: &str| {
            let (_, pipes) = split(line).unwrap();
            pipes
                .iter()
                .fold("a\nb\nc\nd\n".to_owned(), |text, pipe| pipe.run(&text))
        };
        for (pipe, left) in [
            ("head 2", "a\nb\n"),
            ("head -n 1", "a\n"),
            ("head -3", "a\nb\nc\n"),
            ("tail 1", "d\n"),
            ("tail", "a\nb\nc\nd\n"),
            ("begin c", "c\nd\n"),
            ("include b", "b\n"),
            ("exclude b | head 2", "a\nc\n"),
            ("more | tail 9", "a\nb\nc\nd\n"),
        ] {
            assert_eq!(through(&format!("show errors | {pipe}")), left, "{pipe}");
        }
        assert!(split("show errors | head x").is_err());
    }
}
