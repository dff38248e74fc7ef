//! The page of requirements (`docs/compliance.md`): every row states whether Volley complies, and the things that it
//! names exist.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use xtask::home::Home;
use xtask::report::Outcome;

/// The four documents.
const TABLES: usize = 4;

pub fn run(home: &Home) -> Outcome {
    Outcome::of(look(home))
}

fn look(home: &Home) -> Result<String, String> {
    let read = |name: &str| {
        let path = home.root.join("docs").join(name);
        std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))
    };
    let (page, rules) = (read("compliance.md")?, rules(&read("forwarding-rules.md")?));
    let mut tests = BTreeSet::new();
    for folder in ["crates", "apps"] {
        collect(&home.root.join(folder), &mut tests).map_err(|e| format!("{folder}: {e}"))?;
    }
    judge(&page, &rules, &tests)
}

/// Numbers of rules: the first cell of a row.
fn rules(page: &str) -> BTreeSet<String> {
    let first = |line: &str| Some(line.strip_prefix("| ")?.split(' ').next()?.to_owned());
    page.lines().filter_map(first).collect()
}

/// Every test as `file::name`; a file `x/tests.rs` counts as `x`.
fn collect(folder: &Path, tests: &mut BTreeSet<String>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, tests)?;
        } else if path.extension().is_some_and(|e| e == "rs") {
            let name = |path: &Path| Some(path.file_stem()?.to_string_lossy().into_owned());
            let own = name(&path).unwrap_or_default();
            let above = path.parent().and_then(name).unwrap_or_default();
            let file = if own == "tests" { above } else { own };
            tests.extend(names(&std::fs::read_to_string(&path)?).map(|n| format!("{file}::{n}")));
        }
    }
    Ok(())
}

/// Functions directly after `#[test]`.
fn names(source: &str) -> impl Iterator<Item = &str> {
    let behind = source.split("#[test]").skip(1);
    behind.filter_map(|part| part.trim_start().strip_prefix("fn ")?.split('(').next())
}

fn judge(page: &str, rules: &BTreeSet<String>, tests: &BTreeSet<String>) -> Result<String, String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut faults, mut tables) = (Vec::new(), 0);
    for line in page.lines() {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [section, what, is, shown] = cells[..] else {
            continue;
        };
        if section == "section" {
            tables += 1;
            continue;
        }
        let named = named(shown);
        let missing = named
            .iter()
            .filter(|n| !rules.contains(**n) && !tests.contains(**n));
        faults.extend(missing.map(|n| format!("{section}: there is no {n}")));
        match is {
            "yes" if named.is_empty() && !shown.contains("below") => {
                faults.push(format!("{section}: nothing shows `{what}`"));
            }
            "differs" if shown.is_empty() => faults.push(format!("{section}: no reason is given")),
            "yes" | "differs" | "no" => {}
            other => faults.push(format!(
                "{section}: `{other}` is neither yes, differs nor no"
            )),
        }
        *counts.entry(is).or_default() += 1;
    }
    if tables != TABLES {
        faults.push(format!("{tables} tables, {TABLES} wanted"));
    }
    if !faults.is_empty() {
        return Err(faults.join("; "));
    }
    let of = |is| counts.get(is).copied().unwrap_or(0);
    Ok(format!(
        "{TABLES} tables, {} requirements: {} so, {} otherwise on purpose, {} not there",
        counts.values().sum::<usize>(),
        of("yes"),
        of("differs"),
        of("no")
    ))
}

/// Rules and tests that a cell names.
fn named(cell: &str) -> Vec<&str> {
    let rules = cell.split("rule ").skip(1);
    let rules = rules.filter_map(|rest| rest.split([',', ' ', ')', ';', '|']).next());
    let tests = cell
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|name| name.contains("::"));
    rules.chain(tests).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "| section | requirement | is it so | what shows it |\n";

    fn page(row: &str) -> String {
        format!("{HEAD}|---|---|---|---|\n{row}\n{HEAD}{HEAD}{HEAD}")
    }

    fn verdict(row: &str) -> Result<String, String> {
        let rules = ["4.6".to_owned()].into();
        let tests = ["icmp::pings".to_owned()].into();
        judge(&page(row), &rules, &tests)
    }

    #[test]
    fn rows_are_counted_and_what_they_name_is_looked_up() {
        let good = verdict("| 5.2 | sums | yes | rule 4.6, `icmp::pings` |").unwrap();
        assert!(good.contains("1 requirements: 1 so"), "{good}");
        assert!(
            verdict("| 5.2 | sums | no | |")
                .unwrap()
                .ends_with("1 not there")
        );
        for (row, fault) in [
            ("| 5.2 | sums | yes | rule 4.7 |", "there is no 4.7"),
            (
                "| 5.2 | sums | yes | `icmp::pongs` |",
                "there is no icmp::pongs",
            ),
            ("| 5.2 | sums | yes | so it is |", "nothing shows `sums`"),
            ("| 5.2 | sums | perhaps | rule 4.6 |", "neither yes"),
        ] {
            let message = verdict(row).unwrap_err();
            assert!(message.contains(fault), "{row}: {message}");
        }
        assert!(judge(HEAD, &BTreeSet::new(), &BTreeSet::new()).is_err());
    }

    #[test]
    fn rules_and_tests_are_found() {
        let found = rules("| # | condition |\n| 4.6 | sum | x |\ntext");
        assert!(found.contains("4.6"));
        let source = "#[test]\nfn one() {}\nfn two() {}\n#[test]\nfn three() {}";
        assert_eq!(names(source).collect::<Vec<_>>(), ["one", "three"]);
    }
}
