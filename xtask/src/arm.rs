//! Runs tests on emulated processors (qemu-user). On AArch64: the kernels of the level `neon`, the nodes that call them, and the router's
//! demo. On x86-64-v2, for which everything is built: the kernels of the level `scalar`. On an older processor: the error of the program.

use crate::home::Home;
use crate::install::{self, Package};
use crate::report::{Outcome, Skip};
use crate::run::Program;
use crate::{cargo_test, sanitize};
use std::path::PathBuf;

const TRIPLE: &str = "aarch64-unknown-linux-gnu";
const LINKER: &str = "aarch64-linux-gnu-gcc";
const EMULATOR: &str = "qemu-aarch64-static";
const X86_TRIPLE: &str = "x86_64-unknown-linux-gnu";
const X86_EMULATOR: &str = "qemu-x86_64-static";
/// The first processor with x86-64-v2.
const V2: &str = "Nehalem";
/// A processor before it, and the beginning of what a program says on it.
const OLDER: [&str; 2] = ["Conroe", "this processor has no SSE4.1, SSE4.2, POPCNT, "];
/// Libraries of the emulated programs, where Debian's packages install them.
const LIBRARIES: &str = "/usr/aarch64-linux-gnu";
const PACKAGES: [Package; 3] = [
    Package::new(LINKER, &["gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"]),
    Package::new("aarch64-linux-gnu-g++", &["g++-aarch64-linux-gnu"]),
    Package::new(EMULATOR, &["qemu-user-static"]),
];
/// Crates whose nodes run the kernels, beside those that contain or call them directly.
const NODES: [&str; 5] = [
    "volley-ethernet",
    "volley-iface",
    "volley-ip",
    "volley-l2",
    "volley-mcast",
];
/// Arguments of `chrt` for a program without real-time priority, with which `show speed` is run: emulated threads that wait for each
/// other by polling would starve each other.
const ORDINARY: [&str; 2] = ["--other", "0"];
/// Seconds for the standard library of the architecture.
const TARGET_SECONDS: u64 = 300;
/// Seconds of the router's build.
const BUILD_SECONDS: u64 = 900;
/// Seconds of the demo, which takes 14 on the machine of 2026-11-29.
const DEMO_SECONDS: u64 = 300;
/// Seconds of the build and the tests: an emulated processor takes some ten times as long as a real one.
const TEST_SECONDS: u64 = 3_000;

/// The stage of long runs.
pub fn run(home: &Home) -> Outcome {
    let missing = PACKAGES.iter().find_map(|package| {
        let outcome = install::debian(home, package);
        matches!(outcome, Skip(_)).then_some(outcome)
    });
    if let Some(skipped) = missing {
        return skipped;
    }
    let add = Program::new(home, "rustup")
        .args(["target", "add", TRIPLE])
        .limit_seconds(TARGET_SECONDS);
    if let Err(reason) = add.require() {
        return Skip(format!(
            "rustup has no standard library for {TRIPLE}: {reason}"
        ));
    }
    Outcome::of(cargo_test::count(tests(home)).and_then(|count| {
        let verified = demo(home)?;
        let of_base = match cfg!(target_arch = "x86_64") {
            true => base(home)?,
            false => "not x86-64".to_owned(),
        };
        Ok(format!(
            "{count} tests of crates with kernels and nodes; `volley demo` {verified}; on an emulated processor; {of_base}"
        ))
    }))
}

/// Kernels on the oldest processor that programs are built for, and what a program says on an older one.
fn base(home: &Home) -> Result<String, String> {
    let tests = Program::cargo(home)
        .args(["test", "--locked", "--lib", "--target", X86_TRIPLE])
        .args(["-p", "volley-simd"])
        .env("CARGO_TARGET_DIR", folder(home))
        .env(
            "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER",
            format!("{X86_EMULATOR} -cpu {V2}"),
        )
        // The kernel's list of extensions is that of the real processor.
        .args(["--", "--skip", "the_processor_has_what_the_kernel_says"])
        .limit_seconds(TEST_SECONDS);
    let count = cargo_test::count(tests)?;
    Program::cargo(home)
        .args(["build", "--locked", "-p", "volley"])
        .limit_seconds(BUILD_SECONDS)
        .require()?;
    let [older, says] = OLDER;
    let output = Program::new(home, X86_EMULATOR)
        .args(["-cpu", older])
        .arg(home.target.join("debug/volley"))
        .arg("--version")
        .limit_seconds(TARGET_SECONDS)
        .output()
        .map_err(|error| error.to_string())?;
    match output.stderr.starts_with(says) {
        true => Ok(format!(
            "{count} tests of kernels on {V2}; the error on {older}"
        )),
        false => Err(format!(
            "`volley --version` on {older} says: {}",
            output.tail(5)
        )),
    }
}

/// The router's demo, which compares what the router does with recorded and generated packets to the reference model.
fn demo(home: &Home) -> Result<String, String> {
    cargo(home, "build")
        .args(["-p", "volley"])
        .limit_seconds(BUILD_SECONDS)
        .require()?;
    let program = folder(home).join(TRIPLE).join("debug/volley");
    let output = Program::new(home, "chrt")
        .args(ORDINARY)
        .args([EMULATOR, "-L", LIBRARIES])
        .arg(program)
        .arg("demo")
        .limit_seconds(DEMO_SECONDS)
        .require()?;
    let line = output
        .stdout
        .lines()
        .find(|line| line.starts_with("verified: "));
    let line = line.ok_or_else(|| format!("the demo verified nothing: {}", output.tail(20)))?;
    Ok(line.to_owned())
}

fn tests(home: &Home) -> Program {
    cargo(home, "test")
        .args(["--no-fail-fast", "--lib", "--tests"])
        .args(sanitize::packages(&sanitize::BASE))
        .args(sanitize::packages(&NODES))
        .env("PROPTEST_CASES", "4")
        .env("VOLLEY_SMALL", "1")
        .limit_seconds(TEST_SECONDS)
}

fn folder(home: &Home) -> PathBuf {
    home.target.join("arm")
}

fn cargo(home: &Home, command: &str) -> Program {
    let emulator = format!("{EMULATOR} -L {LIBRARIES}");
    Program::cargo_by(home, "chrt", &ORDINARY)
        .args([command, "--locked", "--target", TRIPLE])
        .env("CARGO_TARGET_DIR", folder(home))
        .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", LINKER)
        .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", emulator)
}
