//! `cargo xtask guest`: a program of this machine, run under a stock Debian kernel in an emulated guest, where there are
//! VLAN devices, VRFs, bonds and whatever else this machine's kernel may lack.
//!
//! The guest sees the host's files; what it writes is gone with it. /tmp, /run and /var/tmp are empty, and of the network
//! there is only `lo`.

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

/// The status of a job that did not end in time, as timeout(1) has it.
const TOO_LONG: u8 = 124;
/// The status when there was no job to judge.
const NO_GUEST: u8 = 2;

/// The command, with the words behind `guest`; what it returns is the status of the program.
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

/// Runs a job and passes on what it prints, as it comes. `Err` is the reason why this machine can have no guest.
pub fn run(home: &Home, job: &Job, to: &mut dyn Write) -> Result<Ending, String> {
    machine::check()?;
    let kernel = fetch::kernel(home)?;
    let folder = initramfs::Folder::new(home)?;
    let initrd = initramfs::pack(home, &kernel, job, &folder)?;
    machine::run(&kernel.image, &initrd, job.seconds, &folder, to)
}

/// How it went, for a report.
pub fn outcome(ran: &Result<Ending, String>) -> Outcome {
    match ran {
        Ok(ending) => ending.outcome(),
        Err(reason) => Skip(reason.clone()),
    }
}
