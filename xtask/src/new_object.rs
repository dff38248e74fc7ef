//! Creates a class of objects from `xtask/templates/object.rs.txt`: the file, and a list of the remaining steps.

use crate::error::Error;
use crate::home::Home;
use crate::new_node::{check_name, find_crate, package, type_name};
use std::fs;
use std::path::{Path, PathBuf};

const TEMPLATE: &str = include_str!("../templates/object.rs.txt");

/// Writes the class `name` into a crate, named by its package (`volley-ip`, `ip`) or its folder.
pub fn run(home: &Home, name: &str, of_crate: &str) -> Result<(), Error> {
    check_name(name)?;
    let dir = find_crate(home, of_crate)?;
    let file = write(&dir, name)?;
    let shown = file.strip_prefix(&home.root).unwrap_or(&file).display();
    let (stem, package) = (stem(name), package(&dir)?);
    println!("wrote {shown}");
    println!(
        "next: write the sentences and the fields; in {of_crate}/src/lib.rs add `mod {stem};`,"
    );
    println!("call `{stem}::own(registry)` in `register` and `{stem}::class()?` in `classes`;");
    println!(
        "a crate without `register` and `classes` gets both, and a line in apps/daemon/src/features.rs;"
    );
    println!(
        "run `cargo test -p {package} -p volley-daemon` and write the section of the feature's page in docs/"
    );
    Ok(())
}

fn stem(name: &str) -> String {
    name.replace('-', "_")
}

fn write(dir: &Path, name: &str) -> Result<PathBuf, Error> {
    let file = dir.join("src").join(format!("{}.rs", stem(name)));
    if file.exists() {
        return Err(Error::Usage(format!("{} exists already", file.display())));
    }
    fs::write(&file, fill(name)).map_err(Error::file(&file))?;
    Ok(file)
}

fn fill(name: &str) -> String {
    TEMPLATE
        .replace("@words@", &name.replace('-', " "))
        .replace("@class@", &stem(name))
        .replace("@Type@", &type_name(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_is_filled_and_parses() {
        let text = fill("rate-limit");
        assert!(!text.contains('@'), "{text}");
        for part in [
            "class = \"rate_limit\"",
            "set rate limit <name>",
            "pub struct RateLimit {",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        syn::parse_file(&text).unwrap();
    }

    #[test]
    fn a_file_is_never_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("src")).unwrap();
        let file = write(dir.path(), "rate-limit").unwrap();
        assert!(file.ends_with("src/rate_limit.rs"));
        assert!(write(dir.path(), "rate-limit").is_err());
    }
}
