//! Each feature that the README lists as supported has a section in `docs/supported.md`, and each row there names an
//! existing test: `path::name`.

use super::Finding;
use crate::error::Error;
use crate::home::Home;
use std::collections::BTreeSet;

const README: &str = "README.md";
const TABLE: &str = "docs/supported.md";
const SECTION: &str = "## Supported";

/// The number of claims in the table.
pub fn rows(home: &Home) -> Result<usize, Error> {
    let table = std::fs::read_to_string(home.root.join(TABLE)).map_err(Error::file(TABLE))?;
    Ok(claim_rows(&table).count())
}

/// The lines of the table that are claims, with their numbers from 0.
fn claim_rows(table: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = table.lines().enumerate();
    lines.filter(|(_, line)| line.starts_with("| ") && *line != "| claim | test |")
}

/// Compares the README, the table and the tests of the checkout.
pub fn claims(home: &Home) -> Result<Vec<Finding>, Error> {
    let read =
        |path: &str| std::fs::read_to_string(home.root.join(path)).map_err(Error::file(path));
    let table = read(TABLE)?;
    let mut findings = sections(&read(README)?, &table);
    findings.extend(tests(&table, |path| read(path).ok()));
    Ok(findings)
}

/// The README's entries (`- **Name**: ...` under [`SECTION`]) against the table's sections.
fn sections(readme: &str, table: &str) -> Vec<Finding> {
    let claimed: BTreeSet<&str> = readme
        .lines()
        .skip_while(|line| *line != SECTION)
        .skip(1)
        .take_while(|line| !line.starts_with("## "))
        .filter_map(|line| Some(line.strip_prefix("- **")?.split_once("**")?.0))
        .collect();
    let shown: BTreeSet<&str> = table
        .lines()
        .filter_map(|line| line.strip_prefix("## "))
        .collect();
    let mut findings = Vec::new();
    if claimed.is_empty() {
        findings.push(finding(
            README,
            0,
            format!("no entries `- **Name**: ...` under `{SECTION}`"),
        ));
    }
    for name in claimed.difference(&shown) {
        let text = format!("`{name}` has no section in {TABLE}: name the test that shows it");
        findings.push(finding(README, 0, text));
    }
    for name in shown.difference(&claimed) {
        let text = format!("`{name}` is no entry of `{SECTION}` in {README}");
        findings.push(finding(TABLE, 0, text));
    }
    findings
}

/// Checks every row's test; `read` returns the text of a file of the checkout.
fn tests(table: &str, read: impl Fn(&str) -> Option<String>) -> Vec<Finding> {
    let judge =
        |(at, line): (usize, &str)| problem(line, &read).map(|text| finding(TABLE, at + 1, text));
    claim_rows(table).filter_map(judge).collect()
}

fn problem(line: &str, read: impl Fn(&str) -> Option<String>) -> Option<String> {
    let cell = line.trim_end_matches([' ', '|']).rsplit('|').next()?.trim();
    let test = cell
        .strip_prefix('`')
        .and_then(|cell| cell.strip_suffix('`'));
    let Some((path, name)) = test.and_then(|test| test.split_once("::")) else {
        return Some("a row ends with its test, `path::name`".to_owned());
    };
    let Some(text) = read(path) else {
        return Some(format!("{path} does not exist"));
    };
    match defines(&text, path, name) {
        true => None,
        false => Some(format!("{path} has no test `{name}`")),
    }
}

/// Whether a file defines a test: `fn name(` with a test attribute above it, or `def test_...(`.
fn defines(text: &str, path: &str, name: &str) -> bool {
    if path.ends_with(".py") {
        return name.starts_with("test_") && text.contains(&format!("def {name}("));
    }
    let definition = format!("fn {name}(");
    let mut marked = false;
    for line in text.lines().map(str::trim) {
        if line.contains(&definition) && marked {
            return true;
        }
        let attribute = line.starts_with("#[");
        marked = line == "#[test]" || line.starts_with("#[tokio::test") || (marked && attribute);
    }
    false
}

fn finding(path: &str, line: usize, text: String) -> Finding {
    Finding {
        path: path.to_owned(),
        line,
        text,
    }
}

#[cfg(test)]
mod self_tests {
    use super::*;

    const PAGE: &str = "# V\n\n## Supported\n\n- **L2**: bridges.\n- **ICMP**: errors.\n\n## Not supported\n\n- **NAT**: no.\n";

    #[test]
    fn readme_and_table_have_the_same_entries() {
        assert!(sections(PAGE, "# S\n\n## ICMP\n\n## L2\n").is_empty());
        assert_eq!(sections(PAGE, "## ICMP\n").len(), 1);
        assert_eq!(sections(PAGE, "## ICMP\n## L2\n## NAT\n").len(), 1);
        assert_eq!(sections("## What is supported\n- **L2**: x\n", "").len(), 1);
    }

    #[test]
    fn each_row_names_a_test_that_exists() {
        let file = |path: &str| match path {
            "a.rs" => Some("#[test]\n#[ignore]\nfn real() {}\nfn helper() {}\n".to_owned()),
            "b.py" => Some("def test_it(x):\n    pass\ndef helper():\n    pass\n".to_owned()),
            _ => None,
        };
        let count = |row: &str| {
            tests(
                &format!("| claim | test |\n|---|---|\n| x | {row} |\n"),
                file,
            )
            .len()
        };
        assert_eq!(count("`a.rs::real`"), 0);
        assert_eq!(count("`b.py::test_it`"), 0);
        assert_eq!(count("`a.rs::rea`"), 1);
        assert_eq!(count("`a.rs::helper`"), 1);
        assert_eq!(count("`b.py::helper`"), 1);
        assert_eq!(count("`c.rs::real`"), 1);
        assert_eq!(count("a.rs::real"), 1);
        assert_eq!(count("by hand"), 1);
    }
}
