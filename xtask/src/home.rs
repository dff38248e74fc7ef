//! Paths: the checkout, the target directory, the shared data beside it, the oracle's Python.

use crate::error::Error;
use crate::run::Program;
use std::path::{Path, PathBuf};

/// The checkout that the command works on.
#[derive(Clone, Debug)]
pub struct Home {
    /// Folder of the workspace.
    pub root: PathBuf,
    /// Folder of cargo's build output.
    pub target: PathBuf,
}

impl Home {
    /// The checkout in which `cargo xtask` was called. Cargo passes it at run time; the path known at compile time is
    /// only the fallback, since two checkouts that share a target directory share the binary.
    pub fn find() -> Result<Self, Error> {
        let manifest =
            std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or(env!("CARGO_MANIFEST_DIR").into());
        Self::of_manifest(Path::new(&manifest))
    }

    fn of_manifest(manifest: &Path) -> Result<Self, Error> {
        let is_checkout = |dir: &&Path| dir.join("xtask/Cargo.toml").is_file();
        let Some(root) = manifest.ancestors().skip(1).find(is_checkout) else {
            return Err(Error::Usage(format!(
                "{}: not in a checkout of Volley; call `cargo xtask` inside one",
                manifest.display()
            )));
        };
        let root = root.to_path_buf();
        let target = match std::env::var_os("CARGO_TARGET_DIR") {
            Some(dir) => root.join(dir),
            None => root.join("target"),
        };
        Ok(Self { root, target })
    }

    /// The folder with real tables and captures, if it exists: `$VOLLEY_SHARED` (empty: none), else `shared` beside the
    /// checkout.
    pub fn shared(&self) -> Option<PathBuf> {
        let beside = self.root.parent().map(|parent| parent.join("shared"));
        let named = std::env::var_os("VOLLEY_SHARED").map(PathBuf::from);
        let there = |path: &PathBuf| !path.as_os_str().is_empty() && path.join("data").is_dir();
        named.or(beside).filter(there)
    }

    /// A file of the real data, or the reason why it is missing.
    pub fn data(&self, name: &str) -> Result<PathBuf, String> {
        let shared = self
            .shared()
            .ok_or("no shared data beside the checkout (set VOLLEY_SHARED)")?;
        let path = shared.join("data").join(name);
        if path.is_file() {
            Ok(path)
        } else {
            Err(format!("{} is not there", path.display()))
        }
    }

    /// Python of the virtual environment created by `xtask install`, else the system's Python.
    pub fn python(&self) -> PathBuf {
        let own = self.venv().join("bin/python");
        if own.is_file() {
            own
        } else {
            PathBuf::from("python3")
        }
    }

    /// Folder of Python's virtual environment, whether or not it exists.
    pub fn venv(&self) -> PathBuf {
        self.target.join("venv")
    }

    /// The release binary, whether or not it has been built.
    pub fn volley(&self) -> PathBuf {
        self.target.join("release/volley")
    }

    /// Builds the release binary with line information and names of inlined functions.
    ///
    /// # Errors
    /// The build fails.
    pub fn volley_with_lines(&self) -> Result<PathBuf, String> {
        let build = ["build", "--profile", "symbols", "--locked", "-p", "volley"];
        Program::cargo(self).args(build).require()?;
        Ok(self.target.join("symbols/volley"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checkout_is_the_one_that_cargo_names() {
        let dir = tempfile::tempdir().unwrap();
        let manifest = dir.path().join("xtask");
        assert!(Home::of_manifest(&manifest).is_err());
        std::fs::create_dir_all(&manifest).unwrap();
        std::fs::write(manifest.join("Cargo.toml"), "").unwrap();
        let tool = dir.path().join("dev/show");
        for manifest in [manifest, tool] {
            assert_eq!(Home::of_manifest(&manifest).unwrap().root, dir.path());
        }
    }
}
