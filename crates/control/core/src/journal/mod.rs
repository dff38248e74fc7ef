//! Commits on a disk: each one file, and a head that says which holds.
//!
//! - A commit is written beside its place, made durable, renamed into it; then the head likewise. The rename of the head
//!   is the moment the commit holds: before it the old one does, after it the new one, and nothing between.
//! - Every file carries its length and checksum. A file that does not add up is as if it were not there.
//! - [`Disk`] is all that is asked of a file system, so that tests can stop it at any byte.

mod disk;
mod record;

pub use disk::{Disk, Folder};
pub use record::{Commit, Head, Lapsed};

use serde::{Deserialize, Serialize};
use std::io;
use std::path::PathBuf;
use volley_model::{CommitHow, EngineSettings, Request};

/// Commits that are kept; older ones go.
pub const KEPT: usize = 100;

/// What went wrong with the journal: one sentence.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The disk refused.
    #[error("{}: {step}: {source}; the commit before it still holds", place.display())]
    Disk {
        /// Folder of the journal.
        place: PathBuf,
        /// What was tried.
        step: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// There is no such commit.
    #[error("there is no commit {number}{}", there_are(.known))]
    NoCommit {
        /// The number asked for.
        number: u64,
        /// Numbers that there are.
        known: Vec<u64>,
    },
    /// Another daemon has the folder.
    #[error("{}: another daemon keeps its commits here; stop it or choose another --state-dir", .0.display())]
    Taken(PathBuf),
}

fn there_are(all: &[u64]) -> String {
    match (all.first(), all.last()) {
        (Some(first), Some(last)) => format!("; there are {first} to {last}"),
        _ => "; there are none yet".into(),
    }
}

/// What is asked of a commit when it is written.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct About {
    /// Seconds since 1970.
    pub time_s: u64,
    /// What the operator said.
    pub comment: Option<String>,
    /// Who committed it: a user, or `token NAME`; none in journals of older versions.
    #[serde(default)]
    pub user: Option<String>,
    /// How it was made; none in journals of older versions.
    #[serde(default)]
    pub how: Option<CommitHow>,
    /// Settings of the engine for the next start, when the commit's file gave them.
    pub engine: Option<EngineSettings>,
}

/// Commits in a folder.
#[derive(Debug)]
pub struct Journal<D: Disk = Folder> {
    disk: D,
    head: Head,
    /// Numbers of commits that add up, in order.
    numbers: Vec<u64>,
    next: u64,
}

const HEAD: &str = "head";

fn name(number: u64) -> String {
    format!("commit-{number:08}")
}

fn number(name: &str) -> Option<u64> {
    name.strip_prefix("commit-")?.parse().ok()
}

impl<D: Disk> Journal<D> {
    /// Reads what is there, and clears away what a crash left half-written.
    pub fn open(disk: D) -> Result<Journal<D>, JournalError> {
        let all = disk
            .list()
            .map_err(|source| disk_error(&disk, "cannot be listed", source))?;
        for left in all.iter().filter(|n| n.ends_with(".new")) {
            // It was never renamed, so it never held; one that stays is written over.
            let _ = disk.remove(left);
        }
        let mut numbers: Vec<u64> = all.iter().filter_map(|n| number(n)).collect();
        numbers.sort_unstable();
        let next = numbers.last().map_or(1, |n| n + 1);
        let mut journal = Journal {
            head: Head::default(),
            disk,
            numbers,
            next,
        };
        journal.head = match journal.disk.read(HEAD).ok().and_then(|b| Head::read(&b)) {
            Some(head) => head,
            None => journal.newest(),
        };
        Ok(journal)
    }

    /// Without a head, the newest commit that adds up holds.
    fn newest(&self) -> Head {
        let good = |n: &&u64| self.commit(**n).is_ok();
        Head {
            current: self.numbers.iter().rev().find(good).copied(),
            ..Head::default()
        }
    }

    /// Which commit holds, and whether it waits to be confirmed.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// Where it is, in words.
    pub fn place(&self) -> PathBuf {
        self.disk.place()
    }

    /// Numbers of commits, oldest first.
    pub fn numbers(&self) -> &[u64] {
        &self.numbers
    }

    /// Reads a commit.
    pub fn commit(&self, number: u64) -> Result<Commit, JournalError> {
        let read = self.disk.read(&name(number)).ok();
        let commit = read.and_then(|bytes| Commit::read(&bytes));
        commit
            .filter(|c| c.number == number)
            .ok_or_else(|| JournalError::NoCommit {
                number,
                known: self.numbers.clone(),
            })
    }

    /// Writes a commit and makes it hold. With `confirm_by` (seconds since 1970) it waits to be confirmed.
    pub fn write(
        &mut self,
        about: About,
        requests: Vec<Request>,
        confirm_by: Option<u64>,
    ) -> Result<u64, JournalError> {
        let number = self.next;
        let commit = Commit {
            number,
            about,
            requests,
        };
        self.place_file(&name(number), &commit.bytes())?;
        // From here on the number is used, whether the commit comes to hold or not.
        self.next = number + 1;
        // What the operator goes back to is the last one that was confirmed.
        let before = match self.head.confirm_by {
            Some(_) => self.head.before,
            None => self.head.current,
        };
        let head = Head {
            current: Some(number),
            confirm_by,
            before: confirm_by.and(before),
            lapsed: self.head.lapsed.clone(),
        };
        if let Err(error) = self.set_head(head) {
            let _ = self.disk.remove(&name(number));
            return Err(error);
        }
        self.numbers.push(number);
        self.forget_old();
        Ok(number)
    }

    /// Makes the waiting commit hold for good; false when none waits.
    pub fn confirm(&mut self) -> Result<bool, JournalError> {
        if self.head.confirm_by.is_none() {
            return Ok(false);
        }
        let head = Head {
            current: self.head.current,
            lapsed: self.head.lapsed.clone(),
            ..Head::default()
        };
        self.set_head(head).map(|()| true)
    }

    /// Goes back to the commit before the waiting one (none: before the first), whose time has passed at `time_s` (seconds
    /// since 1970).
    pub fn go_back(&mut self, time_s: u64) -> Result<Option<u64>, JournalError> {
        let mut lapsed = self.head.lapsed.clone();
        let passed = self.head.current.map(|number| Lapsed { number, time_s });
        lapsed.extend(passed);
        // Commits that are gone need no note.
        lapsed.retain(|l| self.numbers.contains(&l.number));
        let head = Head {
            current: self.head.before,
            lapsed,
            ..Head::default()
        };
        self.set_head(head)?;
        Ok(self.head.current)
    }

    fn set_head(&mut self, head: Head) -> Result<(), JournalError> {
        self.place_file(HEAD, &head.bytes())?;
        self.head = head;
        Ok(())
    }

    /// Puts a file in its place, whole and durable, or leaves what was there.
    fn place_file(&self, name: &str, bytes: &[u8]) -> Result<(), JournalError> {
        let new = format!("{name}.new");
        let failed = |step| move |source| disk_error(&self.disk, step, source);
        if let Err(source) = self.disk.write(&new, bytes) {
            let _ = self.disk.remove(&new);
            return Err(disk_error(&self.disk, "cannot be written", source));
        }
        self.disk
            .rename(&new, name)
            .map_err(failed("cannot be renamed"))?;
        self.disk.sync().map_err(failed("cannot be made durable"))
    }

    fn forget_old(&mut self) {
        while self.numbers.len() > KEPT {
            let oldest = self.numbers[0];
            if self.head.current == Some(oldest) || self.head.before == Some(oldest) {
                return;
            }
            // One that cannot be removed is only in the way.
            let _ = self.disk.remove(&name(oldest));
            self.numbers.remove(0);
        }
    }
}

fn disk_error<D: Disk>(disk: &D, step: &'static str, source: io::Error) -> JournalError {
    JournalError::Disk {
        place: disk.place(),
        step,
        source,
    }
}

#[cfg(test)]
mod tests;
