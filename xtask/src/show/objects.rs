//! The items of "One definition per object".

use super::{Item, Work, item};
use crate::home::Home;
use crate::report::Outcome;
use crate::run::Program;

/// The most that a small feature may change outside its crate.
const FILES: usize = 3;
const LINES: usize = 10;

pub const ITEMS: &[Item] = &[
    item(
        "cost",
        "files and lines outside its crate that DHCP relay needed, pages and Cargo.lock not counted",
        Work::Look(|home| Outcome::of(cost(home, "crates/net/dhcp-relay"))),
    ),
    item(
        "dhcp-relay-unit",
        "option 82 and Relay-forward messages byte by byte, hostile bytes, a reason for each drop",
        Work::Command(&["test", "-p", "volley-dhcp-relay"]),
    ),
    item(
        "dhcp-relay",
        "leases of a real server through the relay, for IPv4 and IPv6; every field read by scapy; several tables",
        Work::Command(&["test", "-p", "volley", "--test", "dhcp_relay"]),
    ),
];

/// What the commit that adds a crate changes outside of the crate.
fn cost(home: &Home, crate_dir: &str) -> Result<String, String> {
    let git = |args: &[&str]| {
        let program = Program::new(home, "git").args(args.iter().copied());
        program.require().map(|output| output.stdout)
    };
    let manifest = format!("{crate_dir}/Cargo.toml");
    let added = git(&["log", "--diff-filter=A", "--format=%H", "--", &manifest])?;
    let commit = added.lines().last();
    let commit = commit.ok_or_else(|| format!("no commit of this checkout adds {manifest}"))?;
    let changes = git(&["show", "--numstat", "--no-renames", "--format=", commit])?;
    let outside = outside(&changes, crate_dir);
    let (files, lines) = (outside.len(), outside.iter().map(|it| it.0).sum::<usize>());
    let names: Vec<&str> = outside.iter().map(|it| it.1).collect();
    let short = commit.get(..9).unwrap_or(commit);
    let text = format!(
        "{files} files, {lines} lines in {short} (at most {FILES}, {LINES}): {}",
        names.join(", ")
    );
    match files <= FILES && lines <= LINES {
        true => Ok(text),
        false => Err(text),
    }
}

/// Lines added and removed, and name, of each file of `git show --numstat` that is neither of the crate nor a page.
fn outside<'t>(numstat: &'t str, crate_dir: &str) -> Vec<(usize, &'t str)> {
    let inside = format!("{crate_dir}/");
    let file = |line: &'t str| {
        let mut columns = line.split('\t');
        let mut count = || columns.next()?.parse::<usize>().ok();
        // A binary file has no count of lines: it counts as one.
        let (more, less) = (count().unwrap_or(1), count().unwrap_or(0));
        let name = columns.next()?;
        let page = name.starts_with("docs/") || name.ends_with(".md") || name == "Cargo.lock";
        (!page && !name.starts_with(&inside)).then_some((more + less, name))
    };
    numstat.lines().filter_map(file).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_and_the_crate_itself_are_not_counted() {
        let numstat = "1\t0\tCargo.toml\n30\t2\tCargo.lock\n9\t0\tcrates/net/lamp/src/lib.rs\n\
            2\t1\tapps/volley/src/main.rs\n5\t0\tdocs/lamp.md\n1\t0\tREADME.md\n\
            4\t0\tcrates/net/lamp-post/src/lib.rs\n-\t-\tlogo.png\n";
        let want = vec![
            (1, "Cargo.toml"),
            (3, "apps/volley/src/main.rs"),
            (4, "crates/net/lamp-post/src/lib.rs"),
            (1, "logo.png"),
        ];
        assert_eq!(outside(numstat, "crates/net/lamp"), want);
    }
}
