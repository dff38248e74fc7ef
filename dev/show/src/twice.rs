//! What the program writes twice, by the list of the tool `duplicates`.

use std::path::Path;
use xtask::home::Home;
use xtask::report::Outcome;
use xtask::run::{self, Program};
use xtask::tidy::House;

/// The tool, which is no part of the project.
const TOOL: &str = "duplicates";
/// Pairs of places with the same lines in the program of 2026-11-24 (commit d13bb22f), which was four fifths as large.
const BEFORE: usize = 58;

/// Counts pairs of places that have six or more lines in common to the letter, tests left out.
pub fn run(home: &Home) -> Outcome {
    if !run::exists(TOOL) {
        return Outcome::Skip(format!("the program {TOOL} is not on PATH"));
    }
    // Outside of the checkout, because the tool leaves out what git ignores.
    let folder = std::env::temp_dir().join(format!("volley-duplicates-{}", std::process::id()));
    let counted = list(home, &folder).and_then(|text| pairs(&text));
    let removed = std::fs::remove_dir_all(&folder).map_err(|error| error.to_string());
    Outcome::of(counted.and_then(|pairs| removed.and_then(|()| judge(&pairs))))
}

fn judge(Pairs { exact, all, rows }: &Pairs) -> Result<String, String> {
    let text = format!("{exact} pairs, and {} of the same shape", all - exact);
    match *exact <= BEFORE {
        true => Ok(format!("{text} (at most {BEFORE} pairs)")),
        false => Err(format!(
            "{text}, more than {BEFORE} pairs: {}",
            rows.join("; ")
        )),
    }
}

/// The tool's list of a copy of the program's files in `folder`.
fn list(home: &Home, folder: &Path) -> Result<String, String> {
    let house = House::read(home).map_err(|error| error.to_string())?;
    if folder.exists() {
        std::fs::remove_dir_all(folder).map_err(|error| error.to_string())?;
    }
    for (path, text) in house.program() {
        let path = folder.join(path);
        let parent = path.parent().unwrap_or(folder);
        let written = std::fs::create_dir_all(parent).and_then(|()| std::fs::write(&path, text));
        written.map_err(|error| format!("{}: {error}", path.display()))?;
    }
    let tool = Program::new(home, TOOL).args(["--most", "200", "--seconds", "300", "--repo"]);
    Ok(tool.arg(folder).limit_seconds(400).require()?.stdout)
}

/// What the tool lists.
#[derive(Debug, PartialEq)]
struct Pairs {
    /// How many pairs are the same to the letter.
    exact: usize,
    /// All pairs, those of the same shape too.
    all: usize,
    /// The pairs to the letter among the rows that the tool shows.
    rows: Vec<String>,
}

/// Reads the list's head, `605 pairs of places (…) (552 by shape alone, …)`, and its rows, `D1 a.rs:1-9 ~ b.rs:4-12  shape`.
fn pairs(list: &str) -> Result<Pairs, String> {
    let head = list.lines().next().unwrap_or_default();
    if list.contains("incomplete:") {
        return Err(format!("{TOOL} did not read all files: {head}"));
    }
    let number = |before: &str| -> Option<usize> {
        let (text, _) = head.split_once(before)?;
        text.rsplit(['(', ' ']).next()?.parse().ok()
    };
    let found = number(" pairs of places").zip(number(" by shape alone"));
    let (all, shape) = found.ok_or_else(|| format!("{TOOL} has another form of list: {head}"))?;
    let exact = all.checked_sub(shape).ok_or("more shapes than pairs")?;
    let is_row = |line: &&str| line.contains(" ~ ") && !line.contains(" shape");
    let rows = list.lines().filter(is_row).map(|row| row.trim().to_owned());
    Ok(Pairs {
        exact,
        all,
        rows: rows.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_s_head_is_read() {
        let head = "605 pairs of places (946 files read), each sharing runs (552 by shape alone, 447 of those thin)\n\
            D1 a.rs:1-9 ~ b.rs:4-12\nD2 a.rs:30-39 ~ c.rs:4-12  shape";
        let rows = vec!["D1 a.rs:1-9 ~ b.rs:4-12".to_owned()];
        assert_eq!(
            pairs(head),
            Ok(Pairs {
                exact: 53,
                all: 605,
                rows
            })
        );
        assert!(pairs("no duplicates (3 files read)").is_err());
        let part = format!("{head}\nincomplete: time");
        assert!(pairs(&part).unwrap_err().contains("did not read all"));
        let of = |exact| {
            judge(&Pairs {
                exact,
                all: 600,
                rows: Vec::new(),
            })
        };
        assert!(of(BEFORE).is_ok() && of(BEFORE + 1).is_err());
    }
}
