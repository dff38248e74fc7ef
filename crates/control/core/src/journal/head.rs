//! The two copies of the head.

use super::Journal;
use super::disk::Disk;
use super::error::JournalError;
use super::record::{Fault, Head};
use std::io;

/// File names of the copies; the first one is written first.
const COPIES: [&str; 2] = ["head.1", "head.2"];

/// The only copy in older versions.
pub(super) const OLDER: &str = "head";

impl<D: Disk> Journal<D> {
    /// Reads a copy of the head; `None` if the file does not exist.
    fn copy(&self, name: &str) -> Result<Option<Head>, Fault> {
        match self.disk.read(name) {
            Ok(bytes) => Head::read(&bytes).map(Some),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(Fault::Unread(e.to_string())),
        }
    }

    /// Reads the head, and repairs a damaged copy from the other one.
    pub(super) fn read_head(&mut self) -> Result<(), JournalError> {
        let copies = COPIES.map(|name| self.copy(name));
        let good = copies.iter().filter_map(|c| c.as_ref().ok()?.as_ref());
        let Some(head) = good.max_by_key(|head| head.sequence).cloned() else {
            return self.without_head(&copies);
        };
        for (name, copy) in COPIES.iter().zip(&copies) {
            let why = match copy {
                Ok(Some(same)) if *same == head => continue,
                // A crash happened between the writes of the two copies.
                Ok(_) => None,
                Err(fault) => Some(fault),
            };
            if let Some(why) = why {
                let file = self.disk.place().join(name);
                let note = format!(
                    "{} {why}; the other copy of the head is used",
                    file.display()
                );
                self.notes.push(note);
            }
            self.behind |= self.place_file(name, &head.bytes()).is_err();
        }
        // The previous process may have ended before the rename was durable.
        self.behind |= self.disk.sync().is_err();
        self.sequence = head.sequence;
        let named = [head.current, head.before].into_iter().flatten();
        let past = named.max().map_or(1, |n| n.saturating_add(1));
        self.next = self.next.max(past);
        self.head = head;
        Ok(())
    }

    /// Handles a folder in which neither copy is usable: the folder is new, or damaged.
    fn without_head(&self, copies: &[Result<Option<Head>, Fault>; 2]) -> Result<(), JournalError> {
        if self.files.is_empty() && copies.iter().all(|c| matches!(c, Ok(None))) {
            return Ok(());
        }
        let why = |(name, copy): (&&str, &Result<Option<Head>, Fault>)| match copy {
            Ok(_) => format!("{name} is missing"),
            Err(fault) => format!("{name} {fault}"),
        };
        let why: Vec<String> = COPIES.iter().zip(copies).map(why).collect();
        Err(JournalError::Head {
            place: self.disk.place(),
            why: why.join(", "),
            instead: self.before(u64::MAX).next().map(|commit| commit.number),
        })
    }

    /// Writes the head: the first copy decides. After an error the head is as before, also on the disk if the disk can still be
    /// written.
    pub(super) fn set_head(&mut self, head: Head) -> Result<(), JournalError> {
        // Two heads never have the same number, even if the disk refused one of them.
        self.sequence += 1;
        let mut head = Head {
            sequence: self.sequence,
            ..head
        };
        let refused = self.left.keys().filter(|n| Some(**n) != head.current);
        head.undone.extend(refused);
        head.undone.sort_unstable();
        head.undone.dedup();
        let bytes = head.bytes();
        self.stage(COPIES[0], &bytes)?;
        if let Err(error) = self.put(COPIES[0]) {
            self.keep_head(&head);
            return Err(error);
        }
        self.head = head;
        self.in_doubt = false;
        self.behind = self.place_file(COPIES[1], &bytes).is_err();
        if self.behind {
            // An old copy must not become valid again.
            let _ = self.disk.remove(COPIES[1]);
        }
        self.remove_left();
        Ok(())
    }

    /// Writes the valid head again: the disk reported an error for the first copy of a new head, but may have stored it.
    fn keep_head(&mut self, refused: &Head) {
        let has_second = !self.behind;
        (self.behind, self.in_doubt) = (true, true);
        let holds = Head {
            sequence: refused.sequence,
            undone: refused.undone.clone(),
            ..self.head.clone()
        };
        if holds == *refused || self.set_head(self.head.clone()).is_ok() {
            return;
        }
        // If the second copy is the valid one, it is read.
        let first = self.copy(COPIES[0]);
        if has_second && first.is_ok_and(|copy| copy.as_ref() == Some(refused)) {
            let _ = self.disk.remove(COPIES[0]);
        }
    }
}
