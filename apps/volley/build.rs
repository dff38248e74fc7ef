//! Passes the flags of the compiler to the program, which writes them into the projects of plugins.
//!
//! Tells the linker to pack the relocations of the program (`DT_RELR` of the ELF specification), where glibc reads them packed.
//!
//! The release build also folds functions with the same code into one, if LLD links it: 0.6 MB of copies,
//! mostly of generic functions. Nothing compares addresses of functions.
//!
//! The program is position-independent and has some 35,000 pointers in its tables: 24 bytes each as plain relocations, less than
//! one packed. glibc reads packed ones since version 2.36; a linker that cannot pack says so in a warning and links without.

use std::process::Command;

/// The first version of glibc that reads them.
const READS_PACKED: (u32, u32) = (2, 36);

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let is_native = variable("HOST") == variable("TARGET");
    let is_glibc = variable("CARGO_CFG_TARGET_ENV") == "gnu";
    if is_native && is_glibc && glibc().is_some_and(|version| version >= READS_PACKED) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
    println!("cargo::rustc-env=VOLLEY_RUSTFLAGS={}", flags(&variable));
    if variable("PROFILE") == "release" && links_by_lld(&variable) {
        println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
    }
}

/// The flags of the compiler, as an array of TOML.
fn flags(variable: &impl Fn(&str) -> String) -> String {
    let flags = variable("CARGO_ENCODED_RUSTFLAGS");
    let flags = flags.split('\x1f').filter(|flag| !flag.is_empty());
    let quoted: Vec<String> = flags.map(|flag| format!("{flag:?}")).collect();
    format!("[{}]", quoted.join(", "))
}

/// Whether the linker is LLD, as far as is known: that is the default of Rust for this target, if no flag chooses another.
fn links_by_lld(variable: &impl Fn(&str) -> String) -> bool {
    let flags = variable("CARGO_ENCODED_RUSTFLAGS");
    let chosen = flags.contains("link") || !variable("RUSTC_LINKER").is_empty();
    variable("TARGET") == "x86_64-unknown-linux-gnu" && !chosen
}

/// The version of this machine's glibc, by a line such as `glibc 2.36`.
fn glibc() -> Option<(u32, u32)> {
    let output = Command::new("getconf")
        .arg("GNU_LIBC_VERSION")
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
