//! Builds that start while the tests wait for their peers, since the two cores are seldom both busy then.
//!
//! The builds run under the kernel's idle policy (sched(7), `SCHED_IDLE`) and use only idle time, so they delay no test.
//! The release build comes first, then the builds of the sanitizers, one after the other. If a build fails, its stage
//! repeats it and reports its messages.

use crate::home::Home;
use crate::run::{Program, exists};
use crate::sanitize;
use std::cell::Cell;
use std::sync::mpsc::{Receiver, sync_channel};

/// Program that starts another one under the idle policy (util-linux).
const IDLE: &str = "chrt";

/// The builds, if they were started.
#[derive(Default)]
pub struct Ahead(Cell<Option<Receiver<bool>>>);

impl Ahead {
    /// Starts the builds if the machine can. Builds all fuzz targets, or only those of runs without `--long`.
    pub fn begin(&self, home: &Home, all_targets: bool) {
        if !exists(IDLE) {
            return;
        }
        let (home, (tell, reported)) = (home.clone(), sync_channel(1));
        std::thread::spawn(move || {
            let release = idle_cargo(&home).args(BUILD).require();
            // The receiver may be dropped: a run that failed early ends.
            let _ = tell.send(release.is_ok());
            for sanitizer in [
                sanitize::address_tests(idle_cargo(&home), &home).arg("--no-run"),
                sanitize::fuzz_targets_build(idle_cargo(&home), &home, all_targets),
            ] {
                // The stage reports the failure.
                let _ = sanitizer.require();
            }
        });
        self.0.set(Some(reported));
    }

    /// Waits for the end of the release build: true if it was started and succeeded.
    pub fn is_done(&self) -> bool {
        let begun = self.0.take();
        begun.is_some_and(|reported| reported.recv().unwrap_or(false))
    }
}

/// Cargo under the idle policy.
fn idle_cargo(home: &Home) -> Program {
    Program::cargo_by(home, IDLE, &["--idle", "0"])
}

/// Arguments of cargo for the release build.
pub const BUILD: [&str; 3] = ["build", "--release", "--locked"];
