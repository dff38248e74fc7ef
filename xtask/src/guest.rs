//! `cargo xtask guest`: a program of this machine, run under a stock Debian kernel in an emulated guest that has VLAN
//! devices, VRFs, bonds and other features that this machine's kernel may lack.
//!
//! The guest sees the host's files; changes are discarded at its end. /tmp, /run and /var/tmp are empty, and the only
//! network interface is `lo`.

mod fetch;
mod initramfs;
mod job;
mod machine;

use crate::error::Error;
use crate::home::Home;
use crate::report::{self, Outcome, Skip};
pub use job::Job;
pub use machine::Ending;
use std::ffi::OsString;
use std::io::Write;

/// Status of a job that exceeded its time limit, as in timeout(1).
const TOO_LONG: u8 = 124;
/// Status if the job could not be run.
const NO_GUEST: u8 = 2;

/// The command, with the words after `guest`; returns the status of the program.
pub fn command(home: &Home, words: Vec<OsString>) -> Result<u8, Error> {
    let job = Job::from_words(words)?;
    let ran = run(home, &job, &mut std::io::stdout().lock());
    let code = match &ran {
        Ok(Ending::Exit { status, .. }) => *status,
        Ok(Ending::TooLong(_)) => TOO_LONG,
        Ok(Ending::Broken(_)) | Err(_) => NO_GUEST,
    };
    report::single("guest", outcome(&ran));
    Ok(code)
}

/// Runs a job and passes its output on. `Err` is the reason why this machine cannot run a guest.
pub fn run(home: &Home, job: &Job, to: &mut dyn Write) -> Result<Ending, String> {
    machine::check()?;
    let kernel = fetch::kernel(home)?;
    let folder = initramfs::Folder::new(home)?;
    let initrd = initramfs::pack(home, &kernel, job, &folder)?;
    machine::run(&kernel.image, &initrd, job.seconds, &folder, to)
}

/// Result of a job, for a report.
pub fn outcome(ran: &Result<Ending, String>) -> Outcome {
    match ran {
        Ok(ending) => ending.outcome(),
        Err(reason) => Skip(reason.clone()),
    }
}
