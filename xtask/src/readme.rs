//! Checks README.md: its commands run, and their outputs have the shape that the page shows.
//!
//! A block to check looks like this (the limit is in seconds):
//!
//! ```text
//! <!-- xtask: run `cargo run --release -- demo` limit 600 -->
//! (a fenced block with the command after `$ ` and its output)
//! <!-- xtask: end -->
//! ```
//!
//! The commands run as in a clone without shared data beside it: the page shows what a new user sees, and does not depend
//! on the data of this machine.
//!
//! Two outputs have the same shape if they are equal after every number became `N` and blanks were joined; lines of the
//! page that are `...` match any lines.

use crate::home::Home;
use crate::report::{Fail, Outcome, Pass};
use crate::run::Program;

const PAGE: &str = "README.md";
const OPEN: &str = "<!-- xtask: run `";
const CLOSE: &str = "<!-- xtask: end -->";

/// One marked block of the page.
#[derive(Debug, PartialEq, Eq)]
struct Block {
    command: String,
    limit_seconds: u64,
    /// Lines between the fences, without the command line.
    shown: Vec<String>,
    /// First and last line of the fenced text in the page, from 0.
    span: (usize, usize),
}

/// Runs every marked block; with `update` it writes the new output into the page.
pub fn run(home: &Home, update: bool) -> Outcome {
    let path = home.root.join(PAGE);
    let page = match std::fs::read_to_string(&path) {
        Ok(page) => page,
        Err(error) => return Fail(format!("{PAGE}: {error}")),
    };
    match blocks(&page).and_then(|blocks| run_all(home, &page, &blocks, update)) {
        Ok((text, count)) if update => match std::fs::write(&path, text) {
            Ok(()) => Pass(format!("{count} blocks refreshed")),
            Err(error) => Fail(format!("{PAGE}: {error}")),
        },
        Ok((_, count)) => Pass(format!("{count} blocks run and show what they print")),
        Err(reason) => Fail(reason),
    }
}

fn run_all(
    home: &Home,
    page: &str,
    blocks: &[Block],
    update: bool,
) -> Result<(String, usize), String> {
    let mut lines: Vec<String> = page.lines().map(str::to_owned).collect();
    // From the last to the first, so that earlier line numbers stay valid.
    for block in blocks.iter().rev() {
        let output = Program::new(home, "bash")
            .args(["-c", &block.command])
            .env("VOLLEY_SHARED", "")
            .limit_seconds(block.limit_seconds)
            .require()?
            .stdout;
        if update {
            let mut fresh = vec![format!("$ {}", block.command)];
            fresh.extend(
                output
                    .trim_end()
                    .lines()
                    .map(|line| line.trim_end().to_owned()),
            );
            lines.splice(block.span.0..=block.span.1, fresh);
        } else if let Err(line) = same_shape(&block.shown, &output) {
            return Err(format!(
                "{PAGE}: `{}` no longer prints a line like `{line}`; `cargo xtask readme --update` refreshes it",
                block.command
            ));
        }
    }
    Ok((lines.join("\n") + "\n", blocks.len()))
}

fn blocks(page: &str) -> Result<Vec<Block>, String> {
    let lines: Vec<&str> = page.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(rest) = line.trim().strip_prefix(OPEN) else {
            continue;
        };
        let complain = |what: &str| format!("{PAGE}:{}: {what}", at + 1);
        let (command, options) = rest
            .split_once('`')
            .ok_or_else(|| complain("the command has no closing backtick"))?;
        let end = lines[at..]
            .iter()
            .position(|line| line.trim() == CLOSE)
            .ok_or_else(|| complain("the block has no end mark"))?
            + at;
        let fences: Vec<usize> = (at..end)
            .filter(|&place| lines[place].starts_with("```"))
            .collect();
        let [first, last] = fences[..] else {
            return Err(complain("the block needs one fenced text"));
        };
        let shown = lines[first + 1..last]
            .iter()
            .filter(|line| !line.starts_with("$ "))
            .map(|line| (*line).to_owned());
        let seconds = options
            .split_whitespace()
            .skip_while(|word| *word != "limit")
            .nth(1);
        found.push(Block {
            command: command.to_owned(),
            limit_seconds: seconds.and_then(|word| word.parse().ok()).unwrap_or(120),
            shown: shown.collect(),
            span: (first + 1, last - 1),
        });
    }
    Ok(found)
}

/// Every shown line must match a line of the output, in order; gaps are allowed only where the page has `...`.
fn same_shape<'a>(shown: &'a [String], output: &str) -> Result<(), &'a str> {
    let mut rest = output.lines().map(shape).peekable();
    let mut gap = false;
    for line in shown {
        if line.trim() == "..." {
            gap = true;
            continue;
        }
        let wanted = shape(line);
        if gap {
            while rest.peek().is_some_and(|have| *have != wanted) {
                rest.next();
            }
        }
        if rest.next().as_deref() != Some(wanted.as_str()) {
            return Err(line);
        }
        gap = false;
    }
    Ok(())
}

/// Numbers (with points and commas) become N unless they are part of a name such as `ip4`; blanks become one blank. Name
/// and features of the processor are replaced, since they depend on the machine.
fn shape(line: &str) -> String {
    if line.trim_start().starts_with("cpu ") {
        return "cpu".into();
    }
    let words: Vec<String> = line.split_whitespace().map(word_shape).collect();
    words.join(" ")
}

fn word_shape(word: &str) -> String {
    let mut out = String::new();
    let (mut in_number, mut in_name) = (false, false);
    for character in word.chars() {
        // A slower machine prints 850K where this one prints 1.2M.
        let digit = character.is_ascii_digit()
            || (in_number && matches!(character, '.' | ',' | 'K' | 'M' | 'G'));
        if digit && !in_number && !in_name {
            out.push('N');
        } else if !digit || in_name {
            out.push(character);
        }
        in_number = digit && !in_name;
        in_name = !in_number && character.is_alphanumeric();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = "# x\n<!-- xtask: run `echo 12 packets` limit 7 -->\n```text\n$ echo 12 packets\n99 packets\n```\n<!-- xtask: end -->\n";

    #[test]
    fn processors_are_each_machine_s_own() {
        let (here, there) = (
            "  cpu AMD EPYC, isa x86-64-v4",
            "  cpu Intel Xeon, isa scalar",
        );
        assert_eq!(shape(here), shape(there));
        assert_ne!(shape("isa x86-64-v4"), shape("isa x86-64-v3"));
    }

    #[test]
    fn blocks_are_found_with_their_places() {
        let found = blocks(SAMPLE).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(
            (
                found[0].command.as_str(),
                found[0].limit_seconds,
                found[0].span
            ),
            ("echo 12 packets", 7, (3, 4))
        );
        assert_eq!(found[0].shown, ["99 packets"]);
        assert!(
            blocks("<!-- xtask: run `x` -->\n```\n```\n")
                .unwrap_err()
                .contains("no end mark")
        );
        assert!(blocks("<!-- xtask: run `x` -->\n<!-- xtask: end -->\n").is_err());
    }

    #[test]
    fn shapes_forget_numbers_but_not_words() {
        let shown = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        assert!(
            same_shape(
                &shown("ip4-input   12.5  1,000"),
                "ip4-input 7.25 900\nmore\n"
            )
            .is_ok()
        );
        assert!(same_shape(&shown("in 6.32M, out 1K"), "in 850.1K, out 12\n").is_ok());
        assert!(same_shape(&shown("ip4-input 1"), "ip6-input 1\n").is_err());
        assert!(same_shape(&shown("a\n...\nc 1"), "a\nb\nb\nc 2\n").is_ok());
        assert!(same_shape(&shown("a\nc"), "a\nb\nc\n").is_err());
        assert!(same_shape(&shown("a\n...\nz"), "a\nb\n").is_err());
    }

    #[test]
    fn update_puts_the_real_output_in() {
        let home = Home::find().unwrap();
        let (text, count) = run_all(&home, SAMPLE, &blocks(SAMPLE).unwrap(), true).unwrap();
        assert_eq!(count, 1);
        assert!(
            text.contains("$ echo 12 packets\n12 packets\n```"),
            "{text}"
        );
        assert!(run_all(&home, SAMPLE, &blocks(SAMPLE).unwrap(), false).is_ok());
        let lie = SAMPLE.replace("99 packets", "99 frames");
        assert!(
            run_all(&home, &lie, &blocks(&lie).unwrap(), false)
                .unwrap_err()
                .contains("99 frames")
        );
    }
}
