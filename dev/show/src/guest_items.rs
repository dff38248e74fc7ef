//! Items that need kernel features which this machine may lack: tests of the daemon and of drivers in an emulated guest.

use super::Sitting;
use xtask::cargo_test::{tests_line, tests_run};
use xtask::guest::{self, Ending, Job};
use xtask::report::{Fail, Outcome, Pass, Skip};
use xtask::run::Program;

/// Time limit of the guest in seconds, boot included.
const SECONDS: u64 = 500;

/// Devices of the kernel on LCP taps.
pub fn devices(sitting: &Sitting<'_>) -> Outcome {
    tests(sitting, "volley", "devices")
}

/// Taps with vhost-net.
pub fn tap_vhost_net(sitting: &Sitting<'_>) -> Outcome {
    tests(sitting, "volley-tap", "vhost_net")
}

/// The packaged unit, started by systemd.
pub fn unit(sitting: &Sitting<'_>) -> Outcome {
    tests(sitting, "volley", "unit")
}

/// All tests of a file of a package.
fn tests(sitting: &Sitting<'_>, package: &str, file: &str) -> Outcome {
    match binary(sitting, package, file) {
        Ok(binary) => run(sitting, &binary),
        Err(reason) => Fail(reason),
    }
}

/// Builds a test file of a package; returns its path.
fn binary(sitting: &Sitting<'_>, package: &str, file: &str) -> Result<String, String> {
    let built = Program::cargo(sitting.home)
        .args(["test", "--release", "--locked", "-p", package])
        .args(["--test", file, "--no-run"])
        .require()?;
    let named = |line: &str| {
        let path = line.trim().strip_prefix("Executable ")?;
        Some(path.split_once('(')?.1.strip_suffix(')')?.to_owned())
    };
    let found = built.stderr.lines().find_map(named);
    found.ok_or_else(|| format!("cargo did not say where the tests of {file} are"))
}

fn run(sitting: &Sitting<'_>, binary: &str) -> Outcome {
    let words = [binary, "--nocapture", "--test-threads", "1"];
    let job = match Job::new(words.map(Into::into).into(), SECONDS) {
        Ok(job) => Job {
            dir: sitting.home.root.clone(),
            ..job
        },
        Err(error) => return Fail(error.to_string()),
    };
    let mut message = Vec::new();
    let ran = guest::run(sitting.home, &job, &mut message);
    let message = String::from_utf8_lossy(&message);
    let outcome = guest::outcome(&ran);
    let lines: Vec<&str> = message.lines().collect();
    let last = lines[lines.len().saturating_sub(30)..].join("\n");
    match (ran, outcome) {
        (Ok(Ending::Exit { status: 0, .. }), _) if tests_run(&message) == 0 => {
            Fail(format!("no test ran\n{last}"))
        }
        (Ok(Ending::Exit { status: 0, .. }), _) if message.contains("SKIP") => {
            let why = lines.iter().find(|line| line.contains("SKIP"));
            Skip((*why.unwrap_or(&"")).to_owned())
        }
        (_, Pass(how)) => Pass(format!("{} in a guest: {how}", tests_line(&message))),
        (_, Fail(how)) => Fail(format!("{how}\n{last}")),
        (_, skip) => skip,
    }
}
