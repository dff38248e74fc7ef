//! Facts of the build for the fingerprint: the compiler, the target and its features, and a hash of the sources of the crates that both sides share.

use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

/// Crates whose code runs on both sides, from this crate's folder.
const SHARED: [&str; 10] = [
    "../abi",
    "../sdk",
    "../../base/buf",
    "../../base/graph",
    "../../base/simd",
    "../../base/stack-sample",
    "../../base/tables",
    "../../base/wire",
    "../../control/object",
    "../../control/object-derive",
];

fn main() -> io::Result<()> {
    let rustc = env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let version = Command::new(rustc).arg("-vV").output()?.stdout;
    let version = String::from_utf8_lossy(&version).into_owned();
    let first = version.lines().next().unwrap_or("unknown");
    println!("cargo::rustc-env=VOLLEY_RUSTC={first}");
    let target = env::var("TARGET").unwrap_or_default();
    println!("cargo::rustc-env=VOLLEY_TARGET={target}");
    let features = env::var("CARGO_CFG_TARGET_FEATURE").unwrap_or_default();
    println!("cargo::rustc-env=VOLLEY_FEATURES={features}");
    let mut hasher = DefaultHasher::new();
    for folder in SHARED {
        for part in ["Cargo.toml", "src"] {
            let path = Path::new(folder).join(part);
            println!("cargo::rerun-if-changed={}", path.display());
            take(&path, &mut hasher)?;
        }
    }
    println!("cargo::rustc-env=VOLLEY_SOURCES={:016x}", hasher.finish());
    Ok(())
}

/// Hash a file, or the files of a folder by name.
fn take(path: &Path, hasher: &mut DefaultHasher) -> io::Result<()> {
    if path.is_file() {
        hasher.write(path.to_string_lossy().as_bytes());
        hasher.write(&fs::read(path)?);
        return Ok(());
    }
    let inside = fs::read_dir(path)?.map(|entry| Ok(entry?.path()));
    let mut inside = inside.collect::<io::Result<Vec<PathBuf>>>()?;
    inside.sort();
    inside.iter().try_for_each(|path| take(path, hasher))
}
