//! The release build, begun while the tests wait for their peers: two cores are seldom both busy then.
//!
//! It runs under the kernel's idle policy (sched(7), `SCHED_IDLE`): it gets what nobody else wants, so that no test is late by
//! it. Whether it came to a good end is asked when its turn comes; otherwise it is done again there, and its messages are told.

use crate::home::Home;
use crate::run::{Program, exists};
use std::cell::Cell;
use std::thread::JoinHandle;

/// What begins a program under that policy (util-linux).
const IDLE: &str = "chrt";

/// A build that may have been begun.
#[derive(Default)]
pub struct Ahead(Cell<Option<JoinHandle<bool>>>);

impl Ahead {
    /// Begin, where the machine can.
    pub fn begin(&self, home: &Home) {
        if !exists(IDLE) {
            return;
        }
        let home = home.clone();
        let build = move || {
            let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
            let program = Program::new(&home, IDLE).args(["--idle", "0"]).arg(cargo);
            program
                .args(BUILD)
                .env("CARGO_INCREMENTAL", "0")
                .require()
                .is_ok()
        };
        self.0.set(Some(std::thread::spawn(build)));
    }

    /// Wait for its end: true where it was begun and is done.
    pub fn is_done(&self) -> bool {
        let begun = self.0.take();
        begun.is_some_and(|thread| thread.join().unwrap_or(false))
    }
}

/// Cargo's words for it.
pub const BUILD: [&str; 3] = ["build", "--release", "--locked"];
