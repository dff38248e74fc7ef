//! The plugin of the tutorial, `docs/tutorial/ip-in-ip`: a project outside of the workspace, with its own target folder.

use crate::home::Home;
use crate::install;
use crate::run::Program;
use std::path::{Path, PathBuf};

/// From the root.
pub const FOLDER: &str = "docs/tutorial/ip-in-ip";
/// Frames and what becomes of them, and the program that builds them by scapy.
const FRAMES: [&str; 2] = ["tests/frames.txt", "tests/frames.py"];

fn cargo(home: &Home, words: &[&str]) -> Program {
    // Of the release profile, as the router that loads the plugin.
    Program::cargo(home)
        .args(words)
        .args(["--release", "--offline", "--locked"])
        .dir(&home.root.join(FOLDER))
        .env("CARGO_TARGET_DIR", folder(home))
}

fn folder(home: &Home) -> PathBuf {
    home.target.join("tutorial")
}

/// Runs its tests, which compare each stage with the frames; returns whether scapy has confirmed the frames.
pub fn test(home: &Home) -> Result<bool, String> {
    let confirmed = install::has_scapy(home);
    if confirmed {
        confirm(home, &home.root.join(FOLDER))?;
    }
    cargo(home, &["test"]).require().map(|_| confirmed)
}

/// Compares the frames with those that scapy builds now.
fn confirm(home: &Home, folder: &Path) -> Result<(), String> {
    let [frames, program] = FRAMES.map(|name| folder.join(name));
    let kept = std::fs::read_to_string(&frames);
    let kept = kept.map_err(|error| format!("{}: {error}", frames.display()))?;
    let built = Program::new(home, home.python()).arg(&program).require()?;
    match built.stdout == kept {
        true => Ok(()),
        false => Err(format!(
            "{} is not what {} prints",
            frames.display(),
            program.display()
        )),
    }
}

/// Builds the library for the router that was built from the same sources; returns its path.
pub fn build(home: &Home) -> Result<PathBuf, String> {
    cargo(home, &["build"]).require()?;
    Ok(folder(home).join("release/libip_in_ip.so"))
}
