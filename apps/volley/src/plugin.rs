//! `volley plugin new`: the project of a plugin, outside of Volley's sources.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

const SOURCE: &str = include_str!("../templates/plugin/lib.rs.txt");
const MANIFEST: &str = include_str!("../templates/plugin/Cargo.toml.txt");
const README: &str = include_str!("../templates/plugin/README.md.txt");
const CARGO: &str = include_str!("../templates/plugin/config.toml.txt");

/// The folder of the SDK when this program was built.
const SDK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/plugin/sdk");

/// The flags of the compiler for this program, as an array of TOML: a plugin has the same ones.
const FLAGS: &str = env!("VOLLEY_RUSTFLAGS");

#[derive(clap::Subcommand)]
pub enum Command {
    /// Write the project of a plugin into a new folder: a node on a feature arc with settings, counters and a test.
    New {
        /// Name of the project, its folder and its node: words of a-z and 0-9 joined by single hyphens.
        name: String,
        /// Folder of the SDK (`crates/plugin/sdk` of Volley's sources); default: the sources that this program was built of.
        #[arg(long, value_name = "PATH")]
        sdk: Option<PathBuf>,
    },
}

/// Why the project was not written: one sentence.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "`{0}`: the name of a plugin is words of a-z and 0-9 joined by single hyphens, such as `ttl-guard`"
    )]
    Name(String),
    #[error(
        "there is no SDK in {0}: name its folder by `--sdk`, `crates/plugin/sdk` of Volley's sources"
    )]
    Sdk(String),
    #[error("{0} exists already: choose another name, or remove it")]
    Exists(String),
    #[error("{0}: {1}")]
    Write(String, io::Error),
}

pub fn main(command: Command) -> Result<(), Error> {
    let Command::New { name, sdk } = command;
    let sdk = sdk.unwrap_or_else(|| SDK.into());
    write(Path::new(""), &name, &sdk)?;
    let text = format!("wrote {name}: `cd {name} && cargo test && cargo build --release`\n");
    // A closed pipe is not an error.
    let _ = io::stdout().write_all(text.as_bytes());
    Ok(())
}

fn check(name: &str) -> Result<(), Error> {
    let is_word = |word: &str| {
        let letters = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        !word.is_empty() && word.bytes().all(letters)
    };
    let begins = name.starts_with(|c: char| c.is_ascii_lowercase());
    match begins && name.len() <= 40 && name.split('-').all(is_word) {
        true => Ok(()),
        false => Err(Error::Name(name.to_owned())),
    }
}

/// The type name `TtlGuard` for `ttl-guard`.
fn type_name(name: &str) -> String {
    let word = |word: &str| {
        let (first, rest) = word.split_at(1.min(word.len()));
        first.to_uppercase() + rest
    };
    name.split('-').map(word).collect()
}

/// Writes the project `name` into the folder `parent`.
fn write(parent: &Path, name: &str, sdk: &Path) -> Result<(), Error> {
    check(name)?;
    let shown = |path: &Path| path.display().to_string();
    let found = sdk.canonicalize();
    let found = found.ok().filter(|sdk| sdk.join("Cargo.toml").is_file());
    let sdk = found.ok_or_else(|| Error::Sdk(shown(sdk)))?;
    let folder = parent.join(name);
    if folder.exists() {
        return Err(Error::Exists(shown(&folder)));
    }
    let fill = |text: &str| {
        text.replace("@name@", name)
            .replace("@file@", &name.replace('-', "_"))
            .replace("@Type@", &type_name(name))
            .replace("@sdk@", &shown(&sdk))
            .replace("@flags@", FLAGS)
    };
    let put = |path: &Path, text: &str| {
        fs::write(path, fill(text)).map_err(|e| Error::Write(shown(path), e))
    };
    let (source, cargo) = (folder.join("src"), folder.join(".cargo"));
    for folder in [&source, &cargo] {
        fs::create_dir_all(folder).map_err(|e| Error::Write(shown(folder), e))?;
    }
    put(&source.join("lib.rs"), SOURCE)?;
    put(&folder.join("Cargo.toml"), MANIFEST)?;
    put(&folder.join("README.md"), README)?;
    put(&cargo.join("config.toml"), CARGO)?;
    put(&folder.join(".gitignore"), "target\n")?;
    // The router's versions of the crates that both sides share; cargo removes the others.
    let (from, to) = (sdk.join("../../../Cargo.lock"), folder.join("Cargo.lock"));
    match fs::copy(&from, &to) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(Error::Write(shown(&to), e)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_is_small_and_filled_and_not_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "ttl-guard", Path::new(SDK)).unwrap();
        let read = |file: &str| fs::read_to_string(dir.path().join("ttl-guard").join(file));
        let source = read("src/lib.rs").unwrap();
        assert!(source.contains("struct TtlGuard("), "{source}");
        for file in [
            "src/lib.rs",
            "Cargo.toml",
            "README.md",
            ".cargo/config.toml",
        ] {
            assert!(!read(file).unwrap().contains('@'), "{file}");
        }
        let lines = |text: &str| text.lines().filter(|it| !it.trim().is_empty()).count();
        let (code, test) = source.split_once("#[cfg(test)]").unwrap();
        assert!(lines(code) <= 40, "{} lines", lines(code));
        assert!(lines(test) <= 10, "{} lines of the test", lines(test));
        assert!(read("Cargo.lock").is_ok(), "the router's versions");
        let flags = format!("[build]\nrustflags = {FLAGS}\n");
        assert!(read(".cargo/config.toml").unwrap().ends_with(&flags));
        let again = write(dir.path(), "ttl-guard", Path::new(SDK));
        assert!(again.unwrap_err().to_string().contains("exists already"));
    }

    #[test]
    fn wrong_names_and_folders_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["", "-", "a--b", "a-", "A", "../x", "1a", "a b"] {
            let refused = write(dir.path(), name, Path::new(SDK));
            assert!(matches!(refused, Err(Error::Name(_))), "{name}");
        }
        let refused = write(dir.path(), "a", dir.path()).unwrap_err();
        assert!(refused.to_string().starts_with("there is no SDK in"));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
