//! Creates a node from `xtask/templates/node.rs.txt`: the file, its line in `node/mod.rs`, and a list of the remaining
//! steps.

use crate::error::Error;
use crate::home::Home;
use std::fs;
use std::path::{Path, PathBuf};

const TEMPLATE: &str = include_str!("../templates/node.rs.txt");

/// Writes node `name` into a crate, named by its package (`volley-ip`, `ip`) or its folder.
pub fn run(home: &Home, name: &str, of_crate: &str) -> Result<(), Error> {
    check_name(name)?;
    let dir = find_crate(home, of_crate)?;
    let file = write(&dir, name)?;
    let shown = file.strip_prefix(&home.root).unwrap_or(&file).display();
    println!(
        "wrote {shown}\nnext: say what it does in the first line, name its edges and counters,"
    );
    println!(
        "add it to `register` in {}/src/lib.rs, and run `cargo test -p {}`",
        of_crate,
        package(&dir)?
    );
    Ok(())
}

/// A name of words joined by hyphens.
pub(crate) fn check_name(name: &str) -> Result<(), Error> {
    let letters = name
        .bytes()
        .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    let ends = name.starts_with(|c: char| c.is_ascii_lowercase())
        && !name.ends_with('-')
        && !name.contains("--");
    if letters && ends {
        return Ok(());
    }
    Err(Error::Usage(format!(
        "`{name}`: a name is words of a-z and 0-9 joined by single hyphens, such as `ip4-input`"
    )))
}

/// The folder of a crate that is named by its package or its folder.
pub(crate) fn find_crate(home: &Home, wanted: &str) -> Result<PathBuf, Error> {
    let mut known = Vec::new();
    for group in ["base", "net", "io", "control"] {
        let folder = home.root.join("crates").join(group);
        for entry in fs::read_dir(&folder).map_err(Error::file(&folder))? {
            let dir = entry.map_err(Error::file(&folder))?.path();
            if !dir.join("Cargo.toml").is_file() {
                continue;
            }
            let name = package(&dir)?;
            if name == wanted
                || name == format!("volley-{wanted}")
                || dir.ends_with(wanted.trim_end_matches('/'))
            {
                return Ok(dir);
            }
            known.push(name);
        }
    }
    known.sort();
    Err(Error::Usage(format!(
        "there is no crate `{wanted}`; there are {}",
        known.join(", ")
    )))
}

/// The name of the package in a folder.
pub(crate) fn package(dir: &Path) -> Result<String, Error> {
    let path = dir.join("Cargo.toml");
    let text = fs::read_to_string(&path).map_err(Error::file(&path))?;
    let manifest: toml::Table =
        toml::from_str(&text).map_err(|error| Error::format(path.display().to_string(), error))?;
    let name = manifest
        .get("package")
        .and_then(|package| package.get("name"))
        .and_then(toml::Value::as_str);
    name.map(str::to_owned)
        .ok_or_else(|| Error::format(path.display().to_string(), "it has no package name"))
}

fn write(dir: &Path, name: &str) -> Result<PathBuf, Error> {
    let folder = dir.join("src/node");
    let stem = name.replace('-', "_");
    let file = folder.join(format!("{stem}.rs"));
    if file.exists() {
        return Err(Error::Usage(format!("{} is there already", file.display())));
    }
    fs::create_dir_all(&folder).map_err(Error::file(&folder))?;
    fs::write(&file, fill(name)).map_err(Error::file(&file))?;
    let index = folder.join("mod.rs");
    let text = if index.is_file() {
        fs::read_to_string(&index).map_err(Error::file(&index))?
    } else {
        "//! One node per file.\n\n".into()
    };
    fs::write(&index, with_module(&text, &stem)).map_err(Error::file(&index))?;
    Ok(file)
}

fn fill(name: &str) -> String {
    TEMPLATE
        .replace("@node@", name)
        .replace("@Type@", &type_name(name))
}

/// `ip4-input` becomes `Ip4Input`.
pub(crate) fn type_name(name: &str) -> String {
    let word = |word: &str| {
        let (first, rest) = word.split_at(1.min(word.len()));
        first.to_uppercase() + rest
    };
    name.split('-').map(word).collect()
}

/// Inserts `pub mod stem;` after the last one that sorts before it.
fn with_module(text: &str, stem: &str) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let new = format!("pub mod {stem};");
    let is_module = |line: &String| line.starts_with("pub mod ") || line.starts_with("mod ");
    let behind = lines
        .iter()
        .rposition(|line| is_module(line) && *line < new);
    let first = lines.iter().position(is_module);
    let at = behind.map(|at| at + 1).or(first).unwrap_or(lines.len());
    lines.insert(at, new);
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked() {
        for good in ["ip4-input", "l2-patch", "drop"] {
            assert!(check_name(good).is_ok());
        }
        for bad in [
            "",
            "IP4",
            "ip4_input",
            "-ip4",
            "ip4-",
            "ip4--input",
            "4ip",
            "ip4 input",
        ] {
            assert!(
                check_name(bad).unwrap_err().to_string().contains("hyphens"),
                "{bad}"
            );
        }
        assert_eq!(type_name("ip4-hop-by-hop"), "Ip4HopByHop");
    }

    #[test]
    fn the_template_is_filled_and_parses() {
        let text = fill("ip4-input");
        assert!(
            text.starts_with("//! ip4-input: ") && !text.contains('@'),
            "{text}"
        );
        assert!(text.contains("pub struct Ip4Input;"));
        syn::parse_file(&text).unwrap();
    }

    #[test]
    fn modules_stay_sorted() {
        let text =
            "//! One node per file.\n\npub mod drop;\npub mod rewrite;\n\npub use drop::Drop;\n";
        assert!(
            with_module(text, "lookup")
                .contains("pub mod drop;\npub mod lookup;\npub mod rewrite;\n")
        );
        assert!(with_module(text, "arp").contains("pub mod arp;\npub mod drop;\n"));
        assert_eq!(with_module("//! x\n", "a"), "//! x\npub mod a;\n");
    }

    #[test]
    fn a_crate_is_found_by_any_name_and_a_file_never_overwritten() {
        let home = Home::find().unwrap();
        for name in ["volley-graph", "graph", "base/graph"] {
            assert!(
                find_crate(&home, name)
                    .unwrap()
                    .ends_with("crates/base/graph")
            );
        }
        assert!(
            find_crate(&home, "nothing")
                .unwrap_err()
                .to_string()
                .contains("volley-wire")
        );
        let dir = tempfile::tempdir().unwrap();
        let file = write(dir.path(), "a-node").unwrap();
        assert!(file.ends_with("src/node/a_node.rs"));
        assert!(
            fs::read_to_string(dir.path().join("src/node/mod.rs"))
                .unwrap()
                .contains("pub mod a_node;")
        );
        assert!(write(dir.path(), "a-node").is_err());
    }
}
