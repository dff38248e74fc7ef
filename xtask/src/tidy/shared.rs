//! Files of the shared folder must not be copied into the repository: the data has other owners.

use super::{Finding, source};
use crate::error::Error;
use crate::home::Home;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Smaller files may be equal by chance.
const SMALLEST: u64 = 64;

/// Files of the checkout that equal a file of the shared folder (except licence texts).
pub fn copies(home: &Home) -> Result<Vec<Finding>, Error> {
    let Some(folder) = home.shared() else {
        return Ok(Vec::new());
    };
    let originals = by_length(&folder)?;
    let mut findings = Vec::new();
    for path in source::files(home)? {
        if let Some(original) = original_of(&path, &originals)? {
            let text = format!(
                "is a copy of {}; read it where it is, or make synthetic data",
                original.display()
            );
            findings.push(Finding {
                path: source::relative(home, &path),
                line: 0,
                text,
            });
        }
    }
    Ok(findings)
}

fn by_length(folder: &Path) -> Result<HashMap<u64, Vec<PathBuf>>, Error> {
    let inside = Home {
        root: folder.to_path_buf(),
        target: PathBuf::new(),
    };
    let mut lengths: HashMap<u64, Vec<PathBuf>> = HashMap::new();
    for path in source::files(&inside)? {
        let length = std::fs::metadata(&path).map_err(Error::file(&path))?.len();
        if length >= SMALLEST && !path.components().any(|part| part.as_os_str() == "licenses") {
            lengths.entry(length).or_default().push(path);
        }
    }
    Ok(lengths)
}

fn original_of<'a>(
    path: &Path,
    originals: &'a HashMap<u64, Vec<PathBuf>>,
) -> Result<Option<&'a PathBuf>, Error> {
    let length = std::fs::metadata(path).map_err(Error::file(path))?.len();
    let Some(candidates) = originals.get(&length) else {
        return Ok(None);
    };
    let bytes = std::fs::read(path).map_err(Error::file(path))?;
    for candidate in candidates {
        if std::fs::read(candidate).map_err(Error::file(candidate))? == bytes {
            return Ok(Some(candidate));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_found_under_another_name() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("shared/data/table.txt", &"10.0.0.0/8 1\n".repeat(9));
        write("shared/data/licenses/mit.txt", &"as is\n".repeat(20));
        write("main/crates/mine.txt", &"10.0.0.0/8 1\n".repeat(9));
        write("main/crates/other.txt", &"10.0.0.0/8 2\n".repeat(9));
        write("main/LICENSE", &"as is\n".repeat(20));
        let originals = by_length(&dir.path().join("shared")).unwrap();
        let copy = |name: &str| {
            original_of(&dir.path().join("main").join(name), &originals)
                .unwrap()
                .is_some()
        };
        assert!(copy("crates/mine.txt"));
        assert!(!copy("crates/other.txt") && !copy("LICENSE"));
    }
}
