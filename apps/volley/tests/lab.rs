//! `volley lab` starts the program `volley-lab`.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

/// A script that prints its arguments and ends with status 3.
fn script(dir: &Path, word: &str) {
    let path = dir.join("volley-lab");
    std::fs::write(&path, format!("#!/bin/sh\necho {word} \"$@\"\nexit 3\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// `volley` in a folder without the build's other programs.
fn lab(volley: &Path, path: &Path) -> Output {
    Command::new(volley)
        .args(["lab", "run", "vpp-7", "--help", "--out", "a b"])
        .env("PATH", path)
        .output()
        .unwrap()
}

#[test]
fn the_program_beside_is_started_else_the_one_in_path() {
    let [own, other] = [0; 2].map(|_| tempfile::tempdir().unwrap());
    let volley = own.path().join("volley");
    let built = Path::new(env!("CARGO_BIN_EXE_volley"));
    if std::fs::hard_link(built, &volley).is_err() {
        std::fs::copy(built, &volley).unwrap();
    }

    let output = lab(&volley, other.path());
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        error.contains("cargo build --release -p volley-lab"),
        "{error}"
    );
    assert_eq!(error.lines().count(), 1, "{error}");

    script(other.path(), "path");
    let output = lab(&volley, other.path());
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(text, "path run vpp-7 --help --out a b\n");
    assert_eq!(output.status.code(), Some(3));

    let output = Command::new(&volley)
        .args(["generate", "--rate", "1M"])
        .env("PATH", other.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(text, "path generate --rate 1M\n");

    script(own.path(), "beside");
    let output = lab(&volley, other.path());
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.starts_with("beside run"), "{text}");
}
