//! Builds for AArch64, and runs tests on an emulated processor (qemu-user): the kernels of the level `neon`, the nodes that call
//! them, and the router's demo.

use crate::home::Home;
use crate::install::{self, Package};
use crate::report::{Outcome, Skip};
use crate::run::Program;
use crate::{cargo_test, sanitize};
use std::path::PathBuf;

const TRIPLE: &str = "aarch64-unknown-linux-gnu";
const LINKER: &str = "aarch64-linux-gnu-gcc";
const EMULATOR: &str = "qemu-aarch64-static";
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
        Ok(format!(
            "{count} tests of crates with kernels and nodes; `volley demo` {verified}; on an emulated processor"
        ))
    }))
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
