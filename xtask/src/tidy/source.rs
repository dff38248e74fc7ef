//! The Rust files of the checkout, read and parsed once.

use super::Finding;
use crate::error::Error;
use crate::home::Home;
use std::path::{Path, PathBuf};

/// Folders without sources of this project.
const SKIP: [&str; 7] = [
    "target",
    ".git",
    ".venv",
    "__pycache__",
    "node_modules",
    "corpus",
    "artifacts",
];

/// One Rust file.
pub struct Source {
    /// Path in the checkout, with slashes.
    pub path: String,
    /// Text of the file.
    pub text: String,
    /// `None` if the file does not parse (rustc then reports it, not tidy).
    pub syntax: Option<syn::File>,
}

impl Source {
    /// A file by its path from the checkout's folder and its text.
    pub fn new(path: &str, text: &str) -> Self {
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
            syntax: syn::parse_file(text).ok(),
        }
    }

    /// A finding in a line of the file.
    pub fn finding(&self, line: usize, text: impl Into<String>) -> Finding {
        Finding {
            path: self.path.clone(),
            line,
            text: text.into(),
        }
    }

    /// The last part of the path.
    pub fn file_name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// Whether the file contains one node: `*/src/node/*.rs`, except the module file.
    pub fn is_node(&self) -> bool {
        self.path.contains("/src/node/") && self.file_name() != "mod.rs"
    }

    /// Integration tests, benches, examples, fuzz targets, test modules in separate files, and the node test bench.
    pub fn is_test(&self) -> bool {
        const FOLDERS: [&str; 4] = ["/tests/", "/benches/", "/examples/", "/fuzz_targets/"];
        FOLDERS.iter().any(|folder| self.path.contains(folder))
            || self.path.starts_with("fuzz/")
            || matches!(self.file_name(), "tests.rs" | "testing.rs" | "harness.rs")
            || self.file_name().ends_with("_test.rs")
            || self.file_name().ends_with("_tests.rs")
    }

    /// `crates/base/simd` for a file of that crate.
    pub fn crate_dir(&self) -> &str {
        self.path.split_once("/src/").map_or("", |(dir, _)| dir)
    }

    /// Whether the code runs in the router: not in tools or tests.
    pub fn is_library(&self) -> bool {
        self.path.starts_with("crates/") && self.path.contains("/src/") && !self.is_test()
    }
}

/// Every Rust file, ordered by path.
pub fn all(home: &Home) -> Result<Vec<Source>, Error> {
    let mut sources = Vec::new();
    for path in files(home)? {
        if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).map_err(Error::file(&path))?;
            sources.push(Source::new(&relative(home, &path), &text));
        }
    }
    Ok(sources)
}

/// Every file of the checkout that belongs to the project.
pub fn files(home: &Home) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    let mut folders = vec![home.root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).map_err(Error::file(&folder))? {
            let entry = entry.map_err(Error::file(&folder))?;
            let kind = entry.file_type().map_err(Error::file(entry.path()))?;
            let name = entry.file_name();
            if kind.is_file() {
                found.push(entry.path());
            } else if kind.is_dir() && !SKIP.iter().any(|skip| name == *skip) {
                folders.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The path of a file relative to the checkout's folder.
pub fn relative(home: &Home, path: &Path) -> String {
    path.strip_prefix(&home.root)
        .unwrap_or(path)
        .to_string_lossy()
        .replace('\\', "/")
}
