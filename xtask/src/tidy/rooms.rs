//! Rooms of a crate: folders, or single files, that import only rooms to their left.

use super::Finding;
use super::imports::{Crate, Import};

/// The rooms of a crate; the first imports no other.
const ROOMS: &[(&str, &[&str])] = &[(
    "crates/base/graph",
    &["data", "queues", "node_api", "worker", "engine", "harness"],
)];

/// Imports of a room to the right, files outside of all rooms, and imports by the root's re-exports.
pub fn arrows(crates: &[Crate]) -> Vec<Finding> {
    compare(crates, ROOMS)
}

fn compare(crates: &[Crate], table: &[(&str, &[&str])]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (dir, rooms) in table {
        match crates.iter().find(|one| one.dir == *dir) {
            Some(one) => findings.extend(of(one, rooms)),
            None => findings.push(Finding {
                path: (*dir).to_owned(),
                line: 0,
                text: "no crate is there: correct the table in xtask/src/tidy/rooms.rs".to_owned(),
            }),
        }
    }
    findings
}

fn of(one: &Crate, rooms: &[&str]) -> Vec<Finding> {
    let place = |file: usize| {
        rooms
            .iter()
            .position(|room| *room == name(&one.files[file]))
    };
    let mut findings = Vec::new();
    for file in (1..one.files.len()).filter(|file| place(*file).is_none()) {
        findings.push(Finding {
            path: one.files[file].clone(),
            line: 0,
            text: format!("is in no room: the rooms are {}", rooms.join(", ")),
        });
    }
    for import in one.imports.iter().filter(|import| import.from != 0) {
        let text = match (place(import.from), place(import.to)) {
            (Some(from), Some(to)) if from < to => upward(import, rooms[from], rooms[to]),
            (Some(_), None) if import.to == 0 => {
                format!(
                    "`{}` is defined in the root of the crate: move it to a room",
                    import.path
                )
            }
            (Some(_), Some(_)) if import.by_root => {
                format!(
                    "`{}` is re-exported by the root: import it from its room",
                    import.path
                )
            }
            _ => continue,
        };
        findings.push(Finding {
            path: one.files[import.from].clone(),
            line: import.line,
            text,
        });
    }
    findings
}

fn upward(import: &Import, from: &str, to: &str) -> String {
    let path = &import.path;
    format!(
        "`{path}` is an import of `{to}` by `{from}`, which is to its left: split the file, or move the type"
    )
}

/// The room of a file: `queues` for `crates/base/graph/src/queues/trace.rs`, `harness` for `.../src/harness.rs`.
fn name(path: &str) -> &str {
    let inside = path.split_once("/src/").map_or(path, |(_, inside)| inside);
    let room = inside.split_once('/').map_or(inside, |(room, _)| room);
    room.trim_end_matches(".rs")
}

/// The tables as text.
pub fn summary() -> String {
    let line = |(dir, rooms): &(&str, &[&str])| format!("{dir}: {}", rooms.join(" <- "));
    let lines: Vec<String> = ROOMS.iter().map(line).collect();
    lines.join("; ")
}

#[cfg(test)]
mod tests {
    use super::super::imports::crates;
    use super::super::source::Source;
    use super::*;

    const TABLE: &[(&str, &[&str])] = &[("crates/a/b", &["low", "high"])];

    fn findings(root: &str, low: &str, high: &str) -> Vec<String> {
        let file = |path: &str, text: &str| Source::new(&format!("crates/a/b/src/{path}"), text);
        let sources = [
            file("lib.rs", root),
            file("low/mod.rs", "pub(crate) mod part;\n"),
            file("low/part.rs", low),
            file("high.rs", high),
        ];
        let found = compare(&crates(&sources), TABLE);
        found.iter().map(|finding| finding.text.clone()).collect()
    }

    const ROOT: &str = "mod low;\nmod high;\npub use low::part::Low;\npub use high::High;\n";
    const LOW: &str = "pub struct Low;\n";
    const HIGH: &str = "use crate::low::part::Low;\npub struct High(Low);\n";

    #[test]
    fn a_room_imports_only_leftwards() {
        assert!(findings(ROOT, LOW, HIGH).is_empty());
        let low = "use crate::high::High;\npub struct Low;\n";
        let found = findings(ROOT, low, HIGH);
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("import of `high` by `low`"), "{found:?}");
        // An import by the root, in the middle of the code.
        let low = "pub struct Low;\nfn f() { crate::High::g() }\n";
        assert!(findings(ROOT, low, HIGH)[0].contains("import of `high` by `low`"));
    }

    #[test]
    fn the_root_is_no_way_between_rooms() {
        let high = "use crate::Low;\npub struct High(Low);\n";
        assert!(findings(ROOT, LOW, high)[0].contains("re-exported by the root"));
        let root = format!("{ROOT}pub struct Other;\n");
        let low = "use super::super::Other;\npub struct Low(Other);\n";
        assert!(findings(&root, low, HIGH)[0].contains("defined in the root"));
    }

    #[test]
    fn every_file_is_in_a_room() {
        let sources = [
            Source::new("crates/a/b/src/lib.rs", "mod low;\nmod cellar;\n"),
            Source::new("crates/a/b/src/low.rs", ""),
            Source::new("crates/a/b/src/cellar.rs", ""),
        ];
        let found = compare(&crates(&sources), TABLE);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].path, "crates/a/b/src/cellar.rs");
        let found = compare(&crates(&sources), &[("crates/a/c", &[])]);
        assert!(found[0].text.contains("no crate is there"));
    }
}
