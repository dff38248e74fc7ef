//! Where things are: the checkout, the target directory, the shared data beside it, the Python of the oracle.

use crate::error::Error;
use crate::run::Program;
use std::path::{Path, PathBuf};

/// The checkout that is worked on.
#[derive(Clone, Debug)]
pub struct Home {
    /// Folder of the workspace.
    pub root: PathBuf,
    /// Folder that cargo builds into.
    pub target: PathBuf,
}

impl Home {
    /// The checkout that `cargo xtask` was called in. Cargo says which one at run time; what was known when xtask was
    /// compiled is only the fallback, since two checkouts that share a target directory share the binary.
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

    /// The folder with real tables and captures, if it is there: `$VOLLEY_SHARED` (empty: it is not), else `shared` beside
    /// the checkout.
    pub fn shared(&self) -> Option<PathBuf> {
        let beside = self.root.parent().map(|parent| parent.join("shared"));
        let named = std::env::var_os("VOLLEY_SHARED").map(PathBuf::from);
        let there = |path: &PathBuf| !path.as_os_str().is_empty() && path.join("data").is_dir();
        named.or(beside).filter(there)
    }

    /// A file of the real data, or the reason why not.
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

    /// The virtual environment made by `xtask install`, else the system's Python.
    pub fn python(&self) -> PathBuf {
        let own = self.venv().join("bin/python");
        if own.is_file() {
            own
        } else {
            PathBuf::from("python3")
        }
    }

    /// Folder of the virtual environment of Python, whether or not it is there.
    pub fn venv(&self) -> PathBuf {
        self.target.join("venv")
    }

    /// The release binary, whether or not it has been built.
    pub fn volley(&self) -> PathBuf {
        self.target.join("release/volley")
    }

    /// The release binary with lines and the names of inlined functions, built.
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
