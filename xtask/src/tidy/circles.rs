//! Import circles: files that import each other in a circle can only be read together, so a circle has at most three
//! files.

use super::Finding;
use super::imports::Crate;

/// Maximum number of files in a circle.
const LIMIT: usize = 3;

/// Crates with larger circles, and the size of the largest one. A number here may only go down.
const CEILINGS: &[(&str, usize)] = &[];

/// Reports circles that are too large for their crate, and ceilings that are too high.
pub fn circles(crates: &[Crate]) -> Vec<Finding> {
    compare(crates, CEILINGS)
}

fn compare(crates: &[Crate], ceilings: &[(&str, usize)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for one in crates {
        let ceiling = ceilings.iter().find(|(dir, _)| *dir == one.dir);
        let limit = ceiling.map_or(LIMIT, |(_, size)| *size);
        let circles = of(one);
        let finding = |path: &str, text: String| Finding {
            path: path.to_owned(),
            line: 0,
            text,
        };
        for circle in circles.iter().filter(|circle| circle.len() > limit) {
            let text = format!(
                "{} files import each other, {limit} is the limit: move what they share to a separate file: {}",
                circle.len(),
                circle.join(", ")
            );
            findings.push(finding(&circle[0], text));
        }
        let largest = circles.iter().map(Vec::len).max().unwrap_or(0);
        if ceiling.is_some() && largest < limit {
            let text = match largest > LIMIT {
                true => format!("the largest circle has {largest} files: lower the ceiling of {limit} in xtask/src/tidy/circles.rs"),
                false => "no circle is too large: remove the crate from the ceilings in xtask/src/tidy/circles.rs".to_owned(),
            };
            findings.push(finding(&one.dir, text));
        }
    }
    findings
}

/// The circles of a crate with more than one file, the largest first; each is sorted by path.
fn of(one: &Crate) -> Vec<Vec<String>> {
    let count = one.files.len();
    let mut reaches = vec![vec![false; count]; count];
    for import in &one.imports {
        reaches[import.from][import.to] = true;
    }
    for through in 0..count {
        for from in 0..count {
            if reaches[from][through] {
                for to in 0..count {
                    reaches[from][to] |= reaches[through][to];
                }
            }
        }
    }
    let mut circles: Vec<Vec<String>> = Vec::new();
    let mut done = vec![false; count];
    for first in 0..count {
        let members = (0..count).filter(|&file| reaches[first][file] && reaches[file][first]);
        let members: Vec<usize> = members.filter(|&file| !done[file]).collect();
        members.iter().for_each(|&file| done[file] = true);
        if members.len() > 1 {
            let mut paths: Vec<String> = members.iter().map(|&f| one.files[f].clone()).collect();
            paths.sort();
            circles.push(paths);
        }
    }
    circles.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    circles
}

/// Without ceilings: the number of circles, or the crates with circles that are too large.
pub fn strict(crates: &[Crate]) -> Result<String, String> {
    let largest = |one: &Crate| of(one).first().map_or(0, Vec::len);
    let large = crates.iter().filter(|one| largest(one) > LIMIT);
    let lines: Vec<String> = large
        .map(|one| format!("{} {}", one.dir, largest(one)))
        .collect();
    let count = crates.len();
    match lines.is_empty() {
        true => Ok(format!("{count} crates")),
        false => Err(format!(
            "{} of {count} crates have larger ones, with this number of files: {}",
            lines.len(),
            lines.join(", ")
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::super::imports::crates;
    use super::super::source::Source;
    use super::*;

    /// Files `f0`, `f1`, ..., each of which imports the next, and the last the first.
    fn circle(files: usize) -> Vec<Crate> {
        let mods: String = (0..files).map(|n| format!("mod f{n};\n")).collect();
        let root = Source::new("crates/a/b/src/lib.rs", &mods);
        let file = |n: usize| {
            let text = format!("use crate::f{}::T;\npub struct T;\n", (n + 1) % files);
            Source::new(&format!("crates/a/b/src/f{n}.rs"), &text)
        };
        let sources: Vec<Source> = [root].into_iter().chain((0..files).map(file)).collect();
        crates(&sources)
    }

    #[test]
    fn four_files_in_a_circle_are_too_many() {
        assert_eq!(compare(&circle(3), &[]), []);
        let findings = compare(&circle(4), &[]);
        assert_eq!(findings.len(), 1);
        assert!(findings[0].text.contains("4 files import each other"));
        assert!(findings[0].text.contains("crates/a/b/src/f3.rs"));
    }

    #[test]
    fn a_ceiling_holds_and_only_goes_down() {
        assert_eq!(compare(&circle(6), &[("crates/a/b", 6)]), []);
        assert_eq!(compare(&circle(7), &[("crates/a/b", 6)]).len(), 1);
        let lower = compare(&circle(5), &[("crates/a/b", 6)]);
        assert!(lower[0].text.contains("has 5 files: lower the ceiling"));
        let gone = compare(&circle(3), &[("crates/a/b", 6)]);
        assert!(gone[0].text.contains("remove the crate"));
    }

    #[test]
    fn a_ceiling_is_no_excuse_for_the_strict_reader() {
        assert_eq!(strict(&circle(3)), Ok("1 crates".to_owned()));
        assert!(strict(&circle(4)).unwrap_err().contains("crates/a/b 4"));
    }

    #[test]
    fn a_chain_is_no_circle() {
        let root = Source::new(
            "crates/a/b/src/lib.rs",
            "mod x;\nmod y;\nmod z;\nuse x::T;\n",
        );
        let file = |name: &str, text: &str| Source::new(&format!("crates/a/b/src/{name}.rs"), text);
        let sources = [
            root,
            file("x", "use crate::y::T as U;\npub struct T;\n"),
            file("y", "use crate::z::T as U;\npub struct T;\n"),
            file("z", "pub struct T;\n"),
        ];
        assert!(of(&crates(&sources)[0]).is_empty());
    }
}
