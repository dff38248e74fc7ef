//! Commits on a disk: one file per commit, and the head, which names the active commit.
//!
//! - A commit is written to a temporary file, made durable and renamed; then the head likewise. The rename of the head's first
//!   copy makes the commit active: before it the old commit is active, after it the new one, and there is no state between.
//! - There are two copies of the head, so that damage to one has no effect. The first is written first; a second copy that
//!   cannot be written is removed, because an old copy must not become valid again.
//! - Every file has its length and CRC-32. A damaged file, or one with an unknown field, is reported as an error; another
//!   commit replaces it only when an operator requests that ([`Journal::open_anyway`]).
//! - A commit with many requests is stored as the differences from an earlier one, every 25th one whole (`large.rs`).
//! - The name of a commit's file contains its state (`commit-`, `waiting-`, `rolled-back-`), so that a commit that was rolled
//!   back is known as such without the head.
//! - [`Disk`] is the only access to a file system, so that tests can stop it at any byte.

mod disk;
mod error;
mod head;
mod large;
mod record;

pub use disk::{Disk, Folder};
pub use error::{JournalError, correction};
pub use large::Summary;
pub use record::{About, Commit, Fault, Head, Lapsed};

pub(crate) use large::Sizes;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use volley_model::Request;

/// Minimum number of commits that are kept; older ones are removed. A commit from which others are differences is removed with
/// them.
pub const KEPT: usize = 100;

/// One of so many large commits is written whole, so that damage to one file leaves commits that can replace the others.
const WHOLE_EVERY: u64 = 25;

/// The state in the name of a commit's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Mark {
    /// The commit is or was active.
    Commit,
    /// The commit was not confirmed.
    Waiting,
    /// The commit was rolled back and is never active again.
    RolledBack,
}

const MARKS: [(Mark, &str); 3] = [
    (Mark::Commit, "commit-"),
    (Mark::Waiting, "waiting-"),
    (Mark::RolledBack, "rolled-back-"),
];

impl Mark {
    fn file(self, number: u64) -> String {
        let name = MARKS.iter().find(|(mark, _)| *mark == self);
        format!("{}{number:08}", name.map_or("commit-", |(_, name)| name))
    }

    fn of(file: &str) -> Option<(u64, Mark)> {
        let of =
            |(mark, name): &(Mark, &str)| Some((file.strip_prefix(name)?.parse().ok()?, *mark));
        MARKS.iter().find_map(of)
    }
}

/// Commits in a folder.
#[derive(Debug)]
pub struct Journal<D: Disk = Folder> {
    disk: D,
    head: Head,
    /// The existing commits, by number.
    files: BTreeMap<u64, Mark>,
    next: u64,
    /// The greatest number of a head that the journal tried to write, see [`Head::sequence`].
    sequence: u64,
    /// Not both copies of the head on the disk are current.
    behind: bool,
    /// The disk reported an error for a head, but may have stored it.
    in_doubt: bool,
    /// Files of commits that were refused, to be removed when no head on the disk can name them.
    left: BTreeMap<u64, Mark>,
    /// What was repaired when the journal was opened.
    notes: Vec<String>,
    /// Why the active commit could not be determined.
    lost: Option<String>,
    pub(crate) sizes: Sizes,
}

impl<D: Disk> Journal<D> {
    /// Reads the directory, and removes files that a crash left half-written. Fails when the active commit is unknown.
    pub fn open(disk: D) -> Result<Journal<D>, JournalError> {
        Journal::opened(disk, false)
    }

    /// Opens the journal like [`Journal::open`], but an unknown active commit is not an error: the newest commit that was
    /// confirmed, was not rolled back and can be read becomes active, and [`Journal::notes`] reports it. An operator must have
    /// requested this.
    pub fn open_anyway(disk: D) -> Result<Journal<D>, JournalError> {
        Journal::opened(disk, true)
    }

    fn opened(disk: D, anyway: bool) -> Result<Journal<D>, JournalError> {
        let mut journal = Journal::listed(disk)?;
        match journal.read_head() {
            Ok(()) => {
                journal.undo_unnamed();
                journal.mark_files();
            }
            Err(JournalError::Head { why, instead, .. }) if anyway => {
                journal.head.current = instead;
                let place = journal.place();
                let place = place.display();
                let note = format!("{place}: it is not known which commit is active: {why}");
                journal.notes.push(note);
                journal.lost = Some(why);
            }
            Err(error) => return Err(error),
        }
        Ok(journal)
    }

    fn listed(disk: D) -> Result<Journal<D>, JournalError> {
        let listed = disk.list();
        let all = listed.map_err(|source| disk_error(&disk, "cannot be listed", source))?;
        for left in all.iter().filter(|n| n.ends_with(".new")) {
            // The file was never renamed, so the commit was never active; a file that cannot be removed is overwritten later.
            let _ = disk.remove(left);
        }
        if all.iter().any(|name| name == head::OLDER) {
            return Err(JournalError::Older(disk.place()));
        }
        let mut files = BTreeMap::new();
        for (number, mark) in all.iter().filter_map(|name| Mark::of(name)) {
            // If two files have one number, keep that of the commit that must not become active.
            let known = files.entry(number).or_insert(mark);
            *known = mark.max(*known);
        }
        let next = files.keys().next_back().map_or(1, |n| n.saturating_add(1));
        Ok(Journal {
            head: Head::default(),
            notes: disk.notes().to_vec(),
            disk,
            files,
            next,
            sequence: 0,
            behind: false,
            in_doubt: false,
            left: BTreeMap::new(),
            lost: None,
            sizes: large::SIZES,
        })
    }

    /// Sentences about damage that was found and repaired or replaced, and about a folder that cannot be written.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// An error if no commit can be applied although one was written: neither the active commit nor another one is readable.
    pub fn is_lost(&self) -> Result<(), JournalError> {
        match (&self.lost, self.head.current) {
            (Some(why), None) => Err(JournalError::Head {
                place: self.place(),
                why: why.clone(),
                instead: None,
            }),
            _ => Ok(()),
        }
    }

    /// The head: the active commit, and whether it waits to be confirmed.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// Path of the folder, for messages.
    pub fn place(&self) -> PathBuf {
        self.disk.place()
    }

    /// Numbers of commits, oldest first.
    pub fn numbers(&self) -> Vec<u64> {
        self.files.keys().copied().collect()
    }

    /// Commits that can replace one that cannot be applied, newest first: once active, confirmed, not rolled back, and before
    /// `number`.
    pub fn before(&self, number: u64) -> impl Iterator<Item = Commit> + '_ {
        let earlier = self.files.range(..number).rev();
        let good =
            earlier.filter(|(n, mark)| **mark == Mark::Commit && !self.head.has_rolled_back(**n));
        good.filter_map(|(n, _)| self.commit(*n).ok())
    }

    /// Reads a commit.
    pub fn commit(&self, number: u64) -> Result<Commit, JournalError> {
        self.read_with(number, |name| {
            let bytes = self.bytes(name)?;
            let commit = match self.base_file(&bytes)? {
                Some(base) => large::read(&bytes, Some(&base)),
                None => Commit::read(&bytes),
            };
            commit.map(|commit| (commit.number, commit))
        })
    }

    /// Reads number, time, author and comment of a commit. Of a large commit only the head is read.
    pub fn summary(&self, number: u64) -> Result<Summary, JournalError> {
        self.read_with(number, |name| {
            let bytes = self.start(name)?;
            let summary = match large::is_large(&bytes) {
                true => large::summary(&bytes)?,
                false => Commit::read(&self.bytes(name)?)?.into(),
            };
            Ok((summary.number, summary))
        })
    }

    /// Reads the file of a commit, and checks the commit's number.
    fn read_with<T>(
        &self,
        number: u64,
        read: impl FnOnce(&str) -> Result<(u64, T), Fault>,
    ) -> Result<T, JournalError> {
        let missing = || JournalError::NoCommit {
            number,
            known: self.numbers(),
        };
        let name = self.files.get(&number).ok_or_else(missing)?.file(number);
        let read = read(&name).and_then(|(found, it)| match found == number {
            true => Ok(it),
            false => Err(Fault::Number(found)),
        });
        let file = self.disk.place().join(name);
        read.map_err(|fault| JournalError::Commit { file, fault })
    }

    fn bytes(&self, name: &str) -> Result<Vec<u8>, Fault> {
        let read = self.disk.read(name);
        read.map_err(|e| Fault::Unread(e.to_string()))
    }

    /// The start of a file with the whole head of a large commit.
    fn start(&self, name: &str) -> Result<Vec<u8>, Fault> {
        let start = self.disk.read_start(name, large::START);
        let start = start.map_err(|e| Fault::Unread(e.to_string()))?;
        let is_short = matches!(large::summary(&start), Err(Fault::Length { .. }));
        match large::is_large(&start) && is_short {
            true => self.bytes(name),
            false => Ok(start),
        }
    }

    /// The file of the commit from which the commit in these bytes is stored as differences.
    fn base_file(&self, bytes: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
        if !large::is_large(bytes) {
            return Ok(None);
        }
        let Some(base) = large::summary(bytes)?.base else {
            return Ok(None);
        };
        let mark = self.files.get(&base).copied().unwrap_or(Mark::Commit);
        let file = self.bytes(&mark.file(base));
        file.map(Some)
            .map_err(|why| Fault::Base(base, Box::new(why)))
    }

    /// The commit from which this one is stored as differences; itself if there is none, or if its file is damaged.
    fn base_of(&self, number: u64, mark: Mark) -> Result<u64, Fault> {
        let start = self.start(&mark.file(number))?;
        let summary = large::is_large(&start).then(|| large::summary(&start));
        let base = summary.and_then(|it| it.ok()?.base);
        Ok(base.unwrap_or(number))
    }

    /// The commit from which the next one may be stored as differences, with its file.
    fn next_base(&self) -> Option<(u64, Vec<u8>)> {
        let (newest, mark) = self.files.last_key_value()?;
        let base = self.base_of(*newest, *mark).ok()?;
        let mark = self.files.get(&base)?;
        if self.next.saturating_sub(base) >= WHOLE_EVERY {
            return None;
        }
        let name = mark.file(base);
        let is_large = large::is_large(&self.start(&name).ok()?);
        let file = is_large.then(|| self.bytes(&name).ok()).flatten()?;
        Some((base, file))
    }

    /// Writes a commit and makes it active. With `confirm_by` (seconds since 1970) the commit waits to be confirmed.
    pub fn write(
        &mut self,
        about: About,
        requests: Vec<Request>,
        confirm_by: Option<u64>,
    ) -> Result<u64, JournalError> {
        let number = self.next;
        let back_to = about.back_to;
        let commit = Commit {
            number,
            about,
            requests,
        };
        if self.head == Head::default() {
            // Commit files without a head mean damage, so the head is written first, also for the first commit.
            self.set_head(Head::default())?;
        }
        let mark = match confirm_by {
            Some(_) => Mark::Waiting,
            None => Mark::Commit,
        };
        let bytes = large::bytes(&commit, || self.next_base(), self.sizes);
        // The number is used from here on, whether or not the commit becomes active: two commits never have the same number.
        self.next = number.saturating_add(1);
        self.left.insert(number, mark);
        let placed = self.place_file(&mark.file(number), &bytes);
        placed.inspect_err(|_| self.remove_left())?;
        // A rollback returns to the last commit that was confirmed.
        let before = match self.head.confirm_by {
            Some(_) => self.head.before,
            None => self.head.current,
        };
        let mut undone = self.head.undone.clone();
        if let Some(to) = back_to {
            undone.extend(
                self.files
                    .range(to.saturating_add(1)..number)
                    .map(|(n, _)| *n),
            );
            undone.sort_unstable();
            undone.dedup();
        }
        undone.retain(|n| self.files.contains_key(n));
        let head = Head {
            current: Some(number),
            confirm_by,
            before: confirm_by.and(before),
            lapsed: self.head.lapsed.clone(),
            undone,
            ..Head::default()
        };
        if let Err(error) = self.set_head(head) {
            self.remove_left();
            return Err(error);
        }
        self.files.insert(number, mark);
        self.mark_files();
        self.forget_old();
        Ok(number)
    }

    /// Makes the waiting commit permanent; false when no commit waits.
    pub fn confirm(&mut self) -> Result<bool, JournalError> {
        if self.head.confirm_by.is_none() {
            return Ok(false);
        }
        let head = Head {
            confirm_by: None,
            before: None,
            ..self.head.clone()
        };
        self.set_head(head)?;
        self.mark_files();
        Ok(true)
    }

    /// Rolls back to the commit before the waiting one (`None`: to the state before the first commit), because the time to
    /// confirm ended at `time_s` (seconds since 1970). The earlier commit is active from then on even if the disk refuses the
    /// head: then [`Journal::settle`] tries again.
    pub fn go_back(&mut self, time_s: u64) -> Result<Option<u64>, JournalError> {
        let mut lapsed = self.head.lapsed.clone();
        let passed = self.head.current.map(|number| Lapsed { number, time_s });
        lapsed.extend(passed);
        // Commits that were removed need no entry.
        lapsed.retain(|l| self.files.contains_key(&l.number));
        self.head = Head {
            current: self.head.before,
            confirm_by: None,
            before: None,
            lapsed,
            ..self.head.clone()
        };
        self.behind = true;
        self.settle()?;
        Ok(self.head.current)
    }

    /// Whether the disk refused a copy of the head.
    pub fn is_behind(&self) -> bool {
        self.behind
    }

    /// Writes again what the disk refused.
    pub fn settle(&mut self) -> Result<(), JournalError> {
        if self.behind {
            self.set_head(self.head.clone())?;
            self.mark_files();
            if self.behind {
                let source = io::Error::other("the second copy of the head is missing");
                return Err(disk_error(&self.disk, "cannot be written", source));
            }
        }
        Ok(())
    }

    /// Writes a file atomically and durably, or leaves the existing file.
    fn place_file(&self, name: &str, bytes: &[u8]) -> Result<(), JournalError> {
        self.stage(name, bytes)?;
        self.put(name)
    }

    /// Writes a temporary file. After an error the existing file is unchanged.
    fn stage(&self, name: &str, bytes: &[u8]) -> Result<(), JournalError> {
        let new = staged(name);
        let written = self.disk.write(&new, bytes);
        written.map_err(|source| {
            let _ = self.disk.remove(&new);
            disk_error(&self.disk, "cannot be written", source)
        })
    }

    /// Renames the temporary file to its final name. After an error either content may be on the disk.
    fn put(&self, name: &str) -> Result<(), JournalError> {
        let failed = |step| move |source| disk_error(&self.disk, step, source);
        let renamed = self.disk.rename(&staged(name), name);
        renamed.map_err(failed("cannot be renamed"))?;
        self.disk.sync().map_err(failed("cannot be made durable"))
    }

    /// Removes the files of commits that were refused, unless a head on the disk may name one of them.
    fn remove_left(&mut self) {
        if self.in_doubt {
            return;
        }
        let (disk, current) = (&self.disk, self.head.current);
        self.left.retain(|number, mark| {
            Some(*number) != current && disk.remove(&mark.file(*number)).is_err_and(is_there)
        });
    }

    /// Marks commits that no head names as rolled back: they were refused, or a crash came before the head was written. Such a
    /// commit never replaces another one, even when later commits are active.
    fn undo_unnamed(&mut self) {
        let later = self.files.keys().filter(|n| Some(**n) > self.head.current);
        let later: Vec<u64> = later.copied().collect();
        self.head.undone.extend(later);
        self.head.undone.sort_unstable();
        self.head.undone.dedup();
    }

    /// Renames files so that their names agree with the head. A file that cannot be renamed is renamed at the next opportunity.
    fn mark_files(&mut self) {
        let mut failed = false;
        for (number, mark) in &mut self.files {
            let wanted = match *mark {
                _ if self.head.has_rolled_back(*number) => Mark::RolledBack,
                Mark::Waiting
                    if self.head.current == Some(*number) && self.head.confirm_by.is_none() =>
                {
                    Mark::Commit
                }
                same => same,
            };
            let renamed = || self.disk.rename(&mark.file(*number), &wanted.file(*number));
            if wanted == *mark {
                continue;
            }
            match renamed() {
                Ok(()) => *mark = wanted,
                Err(_) => failed = true,
            }
        }
        if failed && let Ok(names) = self.disk.list() {
            // A disk may rename a file and report an error nevertheless.
            let found = names.iter().filter_map(|name| Mark::of(name));
            for (number, found) in found {
                if let Some(mark) = self.files.get_mut(&number) {
                    *mark = found;
                }
            }
        }
    }

    /// Removes the oldest commits: a commit and those that are differences from it together.
    fn forget_old(&mut self) {
        while self.files.len() > KEPT {
            let Some(mut group) = self.oldest_group() else {
                return;
            };
            if self.files.len() - group.len() < KEPT {
                return;
            }
            let base = group.remove(0);
            // The base is removed last, so that after a crash no commit is left that cannot be read.
            if group.into_iter().rev().any(|number| !self.forget(number)) {
                return;
            }
            if self.disk.sync().is_err() || !self.forget(base) {
                return;
            }
        }
    }

    /// The oldest commits that may be removed: a commit, and those that are stored as differences from it. `None` if the disk
    /// does not answer, or if the only such commits are needed.
    fn oldest_group(&self) -> Option<Vec<u64>> {
        let mut groups: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for (number, mark) in &self.files {
            let base = self.base_of(*number, *mark).ok()?;
            groups.entry(base).or_default().push(*number);
        }
        let kept = [self.head.current, self.head.before];
        let is_kept = |number: &u64| kept.contains(&Some(*number));
        groups
            .into_values()
            .find(|group| !group.iter().any(is_kept))
    }

    /// Removes the file of a commit; false if it is to be removed after the next commit.
    fn forget(&mut self, number: u64) -> bool {
        let Some(mark) = self.files.get(&number) else {
            return true;
        };
        if self.disk.remove(&mark.file(number)).is_err_and(is_there) {
            return false;
        }
        self.files.remove(&number);
        true
    }
}

/// The name of the temporary file.
fn staged(name: &str) -> String {
    format!("{name}.new")
}

/// Whether a file still exists after a failed removal.
fn is_there(error: io::Error) -> bool {
    error.kind() != io::ErrorKind::NotFound
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
