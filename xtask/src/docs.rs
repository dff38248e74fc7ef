//! Generated pages: they fail when they are stale, and `--update` rewrites them.

use crate::ahead::BUILD;
use crate::home::Home;
use crate::report::{Fail, Outcome, Pass};
use crate::run::Program;
use crate::sdk;

/// Page, and the arguments of `volley` whose output it is.
const PAGES: [(&str, &[&str]); 7] = [
    ("docs/generated/click-elements.md", &["doc", "click"]),
    ("docs/generated/commands.md", &["doc", "commands"]),
    ("docs/generated/counters.md", &["doc", "counters"]),
    ("docs/generated/packet-fields.md", &["doc", "fields"]),
    ("docs/generated/graph.dot", &["doc", "graph"]),
    ("docs/generated/openapi.json", &["doc", "openapi"]),
    ("docs/generated/volley-toml.md", &["doc", "file"]),
];

/// Compares (or writes) every page with the release binary of the present checkout: an older one would print older pages.
pub fn run(home: &Home, update: bool) -> Outcome {
    let mut problems = Vec::new();
    // It needs no build.
    if let Err(problem) = sdk::page(home).and_then(|fresh| kept(home, sdk::PAGE, fresh, update)) {
        problems.push(problem);
    }
    if let Err(reason) = Program::cargo(home).args(BUILD).require() {
        return Fail(reason);
    }
    for (page, args) in PAGES {
        if let Err(problem) = one(home, page, args, update) {
            problems.push(problem);
        }
    }
    match problems.is_empty() {
        true => Pass(format!("{} pages", PAGES.len() + 1)),
        false => Fail(problems.join("\n")),
    }
}

fn one(home: &Home, page: &str, args: &[&str], update: bool) -> Result<(), String> {
    let fresh = Program::new(home, home.volley())
        .args(args)
        .limit_seconds(60)
        .require()?
        .stdout;
    kept(home, page, fresh, update)
}

/// Compares (or writes) one page.
fn kept(home: &Home, page: &str, fresh: String, update: bool) -> Result<(), String> {
    let path = home.root.join(page);
    if update {
        let folder = path.parent().unwrap_or(&home.root);
        return std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::write(&path, fresh))
            .map_err(|error| format!("{page}: {error}"));
    }
    let stored = std::fs::read_to_string(&path)
        .map_err(|error| format!("{page}: {error}; `cargo xtask docs --update` writes it"))?;
    match first_difference(&stored, &fresh) {
        None => Ok(()),
        Some(line) => Err(format!(
            "{page}:{line}: stale; `cargo xtask docs --update` writes it again"
        )),
    }
}

fn first_difference(stored: &str, fresh: &str) -> Option<usize> {
    if stored == fresh {
        return None;
    }
    let same = stored
        .lines()
        .zip(fresh.lines())
        .take_while(|(a, b)| a == b)
        .count();
    Some(same + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_stale_line_is_named() {
        assert_eq!(first_difference("a\nb\n", "a\nb\n"), None);
        assert_eq!(first_difference("a\nb\n", "a\nc\n"), Some(2));
        assert_eq!(first_difference("a\n", "a\nb\n"), Some(2));
        assert_eq!(first_difference("", "a\n"), Some(1));
    }
}
