//! Builds that begin while the tests wait for their peers: two cores are seldom both busy then.
//!
//! They run under the kernel's idle policy (sched(7), `SCHED_IDLE`): they get what no other program wants, so that no test is
//! late by them. The release build comes first, then the builds of the sanitizers, one after the other. The stage of each build
//! does it again if it failed, and reports its messages.

use crate::home::Home;
use crate::run::{Program, exists};
use crate::sanitize;
use std::cell::Cell;
use std::sync::mpsc::{Receiver, sync_channel};

/// The program that begins another one under that policy (util-linux).
const IDLE: &str = "chrt";

/// Builds that may have been begun.
#[derive(Default)]
pub struct Ahead(Cell<Option<Receiver<bool>>>);

impl Ahead {
    /// Begin, where the machine can. Of the fuzz targets all are built, or those of a run that is not long.
    pub fn begin(&self, home: &Home, all_targets: bool) {
        if !exists(IDLE) {
            return;
        }
        let (home, (tell, told)) = (home.clone(), sync_channel(1));
        std::thread::spawn(move || {
            let release = idle_cargo(&home).args(BUILD).require();
            // The other side may have gone: a run that failed early ends.
            let _ = tell.send(release.is_ok());
            for sanitizer in [
                sanitize::address_tests(idle_cargo(&home), &home).arg("--no-run"),
                sanitize::fuzz_targets_build(idle_cargo(&home), &home, all_targets),
            ] {
                // The stage finds out what failed.
                let _ = sanitizer.require();
            }
        });
        self.0.set(Some(told));
    }

    /// Wait for the end of the release build: true where it was begun and is done.
    pub fn is_done(&self) -> bool {
        let begun = self.0.take();
        begun.is_some_and(|told| told.recv().unwrap_or(false))
    }
}

/// Cargo under the idle policy.
fn idle_cargo(home: &Home) -> Program {
    Program::cargo_by(home, IDLE, &["--idle", "0"])
}

/// Arguments of cargo for the release build.
pub const BUILD: [&str; 3] = ["build", "--release", "--locked"];
