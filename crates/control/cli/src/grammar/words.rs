//! Commands of other routers with their equivalents, and the purpose of each group of commands.

use std::borrow::Cow;

/// First words of commands of other routers, and the equivalent command.
const ELSEWHERE: &[(&str, &str)] = &[
    (
        "no",
        "there is no `no` here: remove objects by `delete ...` or `... del ...`, switch settings `off`, and give an object its \
         defaults back by `default ...`",
    ),
    (
        "configure",
        "there is no configuration mode: commands change what runs at once, and `config commit` keeps it",
    ),
    (
        "enable",
        "there is no privileged mode: every command can be typed at once",
    ),
    (
        "end",
        "there is no configuration mode to leave; `quit` ends the command line",
    ),
    (
        "reload",
        "the service manager restarts the daemon: `systemctl restart volley`",
    ),
    (
        "copy",
        "use `config commit` to keep what runs, and `config export` to write it out",
    ),
    ("show configuration", "use `config show`"),
    (
        "show startup-config",
        "use `config history`, and `config show commit N` for one of the commits",
    ),
];

/// Commands of other routers that exist here under another name. Both names have two words. They are not part of the grammar:
/// their abbreviations (`show run`) are those of other commands.
const ALIASES: &[(&str, &str)] = &[("show running-config", "config show")];

/// Replaces the alias in a line by the command's name, padded to the same number of characters, so that columns stay valid.
pub(crate) fn aliased(line: &str) -> Cow<'_, str> {
    let behind = |alias: &str| {
        let (one, two) = alias.split_once(' ')?;
        let rest = line.trim_start().strip_prefix(one)?;
        let rest = rest.strip_prefix(' ')?.trim_start().strip_prefix(two)?;
        (rest.is_empty() || rest.starts_with([' ', '|'])).then_some(rest)
    };
    let found = ALIASES
        .iter()
        .find_map(|(a, here)| Some((behind(a)?, *here)));
    let Some((rest, here)) = found else {
        return line.into();
    };
    let width = line.len() - rest.len();
    format!("{here:width$}{rest}").into()
}

/// The equivalent of a command of another router.
pub(super) fn elsewhere(line: &str) -> Option<&'static str> {
    let typed: Vec<&str> = line.split_whitespace().collect();
    let begins = |words: &str| {
        let words: Vec<&str> = words.split(' ').collect();
        typed.starts_with(&words)
    };
    let classes = volley_object::classes();
    let all = ELSEWHERE.iter().copied().chain(classes.instead());
    let mut found = all.filter(|(words, _)| begins(words));
    found.next().map(|(_, text)| text)
}

/// The purpose of the commands that begin with these words.
const GROUPS: &[(&str, &str)] = &[
    (
        "clear",
        "Set counters back, and forget what was learned or traced.",
    ),
    (
        "config",
        "The configuration as a whole: check, compare, commit, roll back.",
    ),
    ("create", "Create interfaces and sockets."),
    ("default", "Give objects their defaults back."),
    ("delete", "Delete interfaces and sockets."),
    (
        "perfmon",
        "Count events of the processor and of the kernel for each node.",
    ),
    (
        "set",
        "Set properties of interfaces, neighbours, features and the router.",
    ),
    ("show", "Show state, counters and configuration."),
];

/// The purpose of a group of commands.
pub(super) fn group(words: &[&str]) -> Option<&'static str> {
    let words = words.join(" ");
    let found = GROUPS.binary_search_by_key(&words.as_str(), |(name, _)| name);
    let own = found.ok().map(|at| GROUPS[at].1);
    own.or_else(|| volley_object::classes().group_of_commands(&words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aliases_keep_their_columns() {
        for (line, same) in [
            ("show running-config", "config show        "),
            (
                "  show  running-config | head 1",
                "config show            | head 1",
            ),
            (
                "show running-config commit 3",
                "config show         commit 3",
            ),
            ("show running-configs", "show running-configs"),
            ("show runtime", "show runtime"),
        ] {
            assert_eq!(aliased(line), same);
            assert_eq!(aliased(line).len(), line.len());
        }
    }

    #[test]
    fn groups_are_in_order() {
        assert!(GROUPS.is_sorted_by_key(|(name, _)| *name));
        assert_eq!(
            group(&["show"]),
            Some("Show state, counters and configuration.")
        );
        assert_eq!(group(&["bogus"]), None);
    }
}
