//! Runs programs on emulated x86-64 processors (qemu-user): the kernels of the level `scalar` on the oldest processor that programs are
//! built for and, in plain Rust, on an older one, and what `volley` says on the older one.

use crate::cargo_test;
use crate::home::Home;
use crate::install::{self, Package};
use crate::report::{Outcome, Skip};
use crate::run::Program;

const TRIPLE: &str = "x86_64-unknown-linux-gnu";
const EMULATOR: &str = "qemu-x86_64-static";
const PACKAGE: Package = Package::new(EMULATOR, &["qemu-user-static"]);
/// The first processor with x86-64-v2.
const OLDEST: &str = "Nehalem";
/// A processor before it, and the beginning of what a program says on it.
const OLDER: &str = "Conroe";
const SAYS: &str = "this processor has no SSE4.1, SSE4.2, POPCNT, ";
/// Seconds of a build or of the tests.
const SECONDS: u64 = 900;

/// The stage of long runs.
pub fn run(home: &Home) -> Outcome {
    if !cfg!(target_arch = "x86_64") {
        return Skip("this machine is not x86-64".to_owned());
    }
    if let outcome @ Skip(_) = install::debian(home, &PACKAGE) {
        return outcome;
    }
    let plain = tests(home, OLDER).env("RUSTFLAGS", "");
    Outcome::of(cargo_test::count(tests(home, OLDEST)).and_then(|count| {
        let plain = cargo_test::count(plain)?;
        says(home)?;
        Ok(format!(
            "{count} tests of kernels on {OLDEST}, {plain} of those in plain Rust on {OLDER}; the error of volley on {OLDER}"
        ))
    }))
}

/// The tests of the kernels on an emulated processor.
fn tests(home: &Home, processor: &str) -> Program {
    Program::cargo(home)
        .args(["test", "--locked", "--lib", "--target", TRIPLE])
        .args(["-p", "volley-simd"])
        .env("CARGO_TARGET_DIR", home.target.join("x86-v2"))
        .env(
            "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER",
            format!("{EMULATOR} -cpu {processor}"),
        )
        // The kernel's list of extensions is that of the real processor.
        .args(["--", "--skip", "the_processor_has_what_the_kernel_says"])
        .limit_seconds(SECONDS)
}

/// `volley` ends with the error on the older processor.
fn says(home: &Home) -> Result<(), String> {
    Program::cargo(home)
        .args(["build", "--release", "--locked", "-p", "volley"])
        .limit_seconds(SECONDS)
        .require()?;
    let output = Program::new(home, EMULATOR)
        .args(["-cpu", OLDER])
        .arg(home.target.join("release/volley"))
        .arg("--version")
        .limit_seconds(SECONDS)
        .output()
        .map_err(|error| error.to_string())?;
    match output.ending == "exit code 1" && output.stderr.starts_with(SAYS) {
        true => Ok(()),
        false => Err(format!(
            "`volley --version` on {OLDER}: {}\n{}",
            output.ending,
            output.tail(5)
        )),
    }
}
