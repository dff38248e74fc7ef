//! The command reference, generated from the table.

use crate::grammar::{CommandDef, Grammar};
use std::fmt::Write;

/// The reference as Markdown.
pub fn reference() -> String {
    let mut out = String::from(
        "# Commands\n\nGenerated from the table of commands (`volley-cli`); do not edit.\n\n\
         Words may be shortened as long as they stay unambiguous. `[x]` may be left out, `(a | b)` is one of them,\n\
         `{a | b}` any number of them in any order. A name that could be taken for a keyword, or text with blanks, goes in\n\
         `\"quotes\"`; `#` begins a comment. Behind a command: `| grep TEXT`, `| grep -v TEXT`, `| count`, `| json`;\n\
         `json` may also be the last word of a `show` command.\n",
    );
    let mut last = "";
    let grammar = Grammar::now();
    let mut commands: Vec<&CommandDef> = grammar.commands.iter().collect();
    // A group begins where its first command is; commands of classes join the group of their first word.
    let first = |c: &CommandDef| commands_of(&grammar, group(c));
    commands.sort_by_key(|c| first(c));
    for command in commands {
        let group = group(command);
        if group != last {
            let _ = write!(out, "\n## {group}\n");
            last = group;
        }
        let pattern = squeeze(command.pattern);
        let _ = write!(
            out,
            "\n### `{pattern}`\n\n{} Example: `{}`\n",
            command.text, command.example
        );
    }
    out
}

fn group(command: &CommandDef) -> &'static str {
    let first = command
        .pattern
        .trim_start_matches(['(', '['])
        .split([' ', '~'])
        .next();
    match first.unwrap_or_default() {
        "ip" => "ip, ip6",
        "help" | "quit" | "history" | "exec" => "The command line itself",
        "create" | "delete" => "create, delete",
        word => word,
    }
}

/// The place of the first command of a group.
fn commands_of(grammar: &Grammar, wanted: &str) -> Option<usize> {
    grammar.commands.iter().position(|c| group(c) == wanted)
}

fn squeeze(pattern: &str) -> String {
    let words: Vec<_> = pattern.split_whitespace().collect();
    words
        .join(" ")
        .replace("~s ", "[s] ")
        .replace("~es ", "[es] ")
        .replace('~', "")
}

/// Commands that begin with these words, one a line, each with its sentence.
pub(crate) fn listing(beginning: &str) -> String {
    let words: Vec<_> = beginning.split_whitespace().collect();
    let fits = |c: &&CommandDef| {
        let mut parts = c.pattern.split_whitespace();
        words.iter().all(|w| {
            parts
                .next()
                .is_some_and(|p| p.trim_start_matches(['(', '[']).starts_with(w))
        })
    };
    let mut out = String::new();
    let grammar = Grammar::now();
    for command in grammar.commands.iter().filter(fits) {
        let _ = writeln!(out, "{}\n    {}", squeeze(command.pattern), command.text);
    }
    if out.is_empty() {
        out = format!("no command begins with '{}'\n", beginning.escape_debug());
    }
    out
}
