//! The two copies of the head.

use super::Journal;
use super::disk::Disk;
use super::error::JournalError;
use super::record::{Fault, Head};
use std::io;

/// The first copy is written first.
const COPIES: [&str; 2] = ["head.1", "head.2"];

/// The only copy of older versions.
pub(super) const OLDER: &str = "head";

impl<D: Disk> Journal<D> {
    /// A copy of the head; none if there is no such file.
    fn copy(&self, name: &str) -> Result<Option<Head>, Fault> {
        match self.disk.read(name) {
            Ok(bytes) => Head::read(&bytes).map(Some),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(Fault::Unread(e.to_string())),
        }
    }

    /// Reads the head, and repairs a damaged copy by the other one.
    pub(super) fn read_head(&mut self) -> Result<(), JournalError> {
        let copies = COPIES.map(|name| self.copy(name));
        let good = copies.iter().filter_map(|c| c.as_ref().ok()?.as_ref());
        let Some(head) = good.max_by_key(|head| head.sequence).cloned() else {
            return self.without_head(&copies);
        };
        for (name, copy) in COPIES.iter().zip(&copies) {
            let why = match copy {
                Ok(Some(same)) if *same == head => continue,
                // A crash between the two copies.
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
        // The process before this one may have ended before it was durable.
        self.behind |= self.disk.sync().is_err();
        self.sequence = head.sequence;
        let named = [head.current, head.before].into_iter().flatten();
        let past = named.max().map_or(1, |n| n.saturating_add(1));
        self.next = self.next.max(past);
        self.head = head;
        Ok(())
    }

    /// Neither copy can be used: that is how a folder begins, or damage.
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

    /// Writes the head: the first copy decides. After an error the head is as before, also on the disk if it takes that.
    pub(super) fn set_head(&mut self, head: Head) -> Result<(), JournalError> {
        // No two heads have one number, also if the disk has refused one of them.
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
            // An old one must not come back.
            let _ = self.disk.remove(COPIES[1]);
        }
        self.remove_left();
        Ok(())
    }

    /// The disk has refused the first copy of a head, and may have it all the same: writes the one that holds once more.
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
        // The second copy is the one that holds: then it is the one to read.
        let first = self.copy(COPIES[0]);
        if has_second && first.is_ok_and(|copy| copy.as_ref() == Some(refused)) {
            let _ = self.disk.remove(COPIES[0]);
        }
    }
}
