//! `docs/router-in-5-minutes.md`: its file and its commands, in one shell, in an empty folder. The output must match the page.

mod support;

use std::path::Path;
use std::process::{Command, Stdio};
use support::{Folder, text};

const PAGE: &str = "../../docs/router-in-5-minutes.md";
/// A line before the output of each command.
const MARK: &str = "@@@ next";

/// Fenced blocks of a language.
fn blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("```{language}\n");
    let inside = |part: &'a str| part.split_once("```").map(|(block, _)| block);
    page.split(fence.as_str())
        .skip(1)
        .filter_map(inside)
        .collect()
}

/// Commands with the lines shown below each.
fn commands(page: &str) -> Vec<(&str, Vec<&str>)> {
    let mut all: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in blocks(page, "console").into_iter().flat_map(str::lines) {
        match line.strip_prefix("$ ") {
            Some(command) => all.push((command, Vec::new())),
            None => all.last_mut().unwrap().1.push(line),
        }
    }
    all
}

/// Whether a line of output matches a line of the page; ` ...` at the end of the page's line matches anything.
fn like(shown: &str, line: &str) -> bool {
    match shown.strip_suffix("...") {
        Some(start) => line.starts_with(start.trim_end()),
        None => shown.trim_end() == line.trim_end(),
    }
}

/// Matches output with the lines of the page in order; a line `...` matches any lines. Returns the missing line.
fn missing<'a>(shown: &[&'a str], output: &str) -> Option<&'a str> {
    let (mut rest, mut gap) = (output.lines(), false);
    for wanted in shown {
        if *wanted == "..." {
            gap = true;
            continue;
        }
        let found = match gap {
            true => rest.any(|line| like(wanted, line)),
            false => rest.next().is_some_and(|line| like(wanted, line)),
        };
        if !found {
            return Some(wanted);
        }
        gap = false;
    }
    None
}

#[test]
fn the_page_does_what_it_shows() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let page = std::fs::read_to_string(page).unwrap();
    let folder = Folder::new();
    let file = blocks(&page, "toml")[0];
    std::fs::write(folder.file("router.toml"), file).unwrap();
    let commands = commands(&page);
    assert!(commands.len() > 15);
    let mut script = "set -m\ntrap 'kill $(jobs -p) 2>/dev/null' EXIT\n".to_owned();
    for (command, _) in &commands {
        script += &format!("echo '{MARK}'\n{command}\n[ $? = 0 ] || exit 1\n");
    }
    let program = Path::new(env!("CARGO_BIN_EXE_volley"));
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("timeout")
        .args(["100", "bash", "-c", &script])
        .env(
            "PATH",
            format!("{}:{path}", program.parent().unwrap().display()),
        )
        .current_dir(&folder.0)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let reported = text(&output.stdout);
    let errors = text(&output.stderr);
    let parts: Vec<&str> = reported.split(&format!("{MARK}\n")).skip(1).collect();
    for ((command, shown), part) in commands.iter().zip(&parts) {
        let line = missing(shown, part);
        assert_eq!(line, None, "`{command}` prints\n{part}{errors}");
    }
    let last = commands[parts.len() - 1].0;
    assert!(output.status.success(), "`{last}` fails: {errors}");
    assert_eq!(parts.len(), commands.len());
}

#[test]
fn lines_are_compared_as_the_page_means_them() {
    assert_eq!(missing(&["a", "...", "c ..."], "a\nb\nc 5\n"), None);
    assert_eq!(missing(&["a", "c"], "a\nb\nc\n"), Some("c"));
    assert_eq!(missing(&["...", "z"], "a\n"), Some("z"));
}
