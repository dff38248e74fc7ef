//! A disk in memory that fails by seed.
//!
//! A loss of power may revert what was not synced, each change of a name separately. A call that fails may have taken effect.
//! The content of a file is durable when `write` returns, its name is durable after `sync`, as in POSIX.

use super::random::Random;
use crate::journal::{Disk, Sizes};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::rc::Rc;

pub(super) type Files = BTreeMap<String, Vec<u8>>;

/// A change of names that is not durable yet.
#[derive(Clone, Debug)]
enum Change {
    /// The name has this content.
    Named(String, Vec<u8>),
    /// The first name is removed, the second one has the content.
    Renamed(String, String, Vec<u8>),
    Removed(String),
}

impl Change {
    fn make(self, files: &mut Files) {
        match self {
            Change::Named(name, bytes) => _ = files.insert(name, bytes),
            Change::Renamed(from, to, bytes) => {
                files.remove(&from);
                files.insert(to, bytes);
            }
            Change::Removed(name) => _ = files.remove(&name),
        }
    }
}

#[derive(Debug, Default)]
struct Content {
    /// The state that the process sees.
    seen: Files,
    /// The state that survives in any case.
    durable: Files,
    /// The changes since.
    pending: Vec<Change>,
}

/// How the disk fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Faults {
    /// Percentage of write calls that fail.
    pub(super) writes: usize,
    /// Percentage of read calls that fail.
    pub(super) reads: usize,
    /// Free bytes; `None`: unlimited.
    pub(super) space: Option<usize>,
    /// Number of calls until the power fails; `None`: it does not fail.
    pub(super) calls: Option<usize>,
}

/// The disk. Clones share the same disk.
#[derive(Clone, Debug)]
pub(super) struct SimDisk {
    content: Rc<RefCell<Content>>,
    faults: Rc<Cell<Faults>>,
    random: Random,
    sizes: Option<Sizes>,
}

impl SimDisk {
    pub(super) fn new(random: &Random, sizes: Option<Sizes>) -> SimDisk {
        SimDisk {
            sizes,
            content: Rc::default(),
            faults: Rc::default(),
            random: random.clone(),
        }
    }

    /// Which commits a journal on this disk stores as differences; `None`: those of the journal.
    pub(super) fn sizes(&self) -> Option<Sizes> {
        self.sizes
    }

    pub(super) fn fail(&self, faults: Faults) {
        self.faults.set(faults);
    }

    /// Runs an operation without faults.
    pub(super) fn sound<T>(&self, work: impl FnOnce() -> T) -> T {
        let faults = self.faults.take();
        let done = work();
        self.faults.set(faults);
        done
    }

    /// Whether the power did not fail during the last operation.
    pub(super) fn has_power(&self) -> bool {
        self.faults.get().calls != Some(0)
    }

    /// The power fails: each change that was not synced survives or is lost.
    pub(super) fn lose_power(&self) {
        let content = &mut *self.content.borrow_mut();
        let pending = std::mem::take(&mut content.pending);
        let most = self.random.below(pending.len() + 1);
        // Either a prefix of the changes survives, as with a journaling file system, or any subset.
        let in_order = self.random.percent(50);
        for (at, change) in pending.into_iter().enumerate() {
            let survives = match in_order {
                true => at < most,
                false => self.random.percent(50),
            };
            if survives {
                change.make(&mut content.durable);
            }
        }
        content.seen = content.durable.clone();
        self.faults.set(Faults::default());
    }

    /// Files as the process sees them.
    pub(super) fn files(&self) -> Files {
        self.content.borrow().seen.clone()
    }

    /// Another disk with these files.
    pub(super) fn with(files: Files) -> SimDisk {
        let disk = SimDisk::new(&Random::new(0), None);
        disk.content.borrow_mut().seen = files.clone();
        disk.content.borrow_mut().durable = files;
        disk
    }

    /// Whether the power allows one more call.
    fn call(&self) -> io::Result<()> {
        let mut faults = self.faults.get();
        match &mut faults.calls {
            Some(0) => return Err(io::Error::other("the power is gone")),
            Some(left) => *left -= 1,
            None => {}
        }
        self.faults.set(faults);
        Ok(())
    }

    /// Whether a write call fails, and then whether it takes effect nevertheless.
    fn fault(&self) -> Option<bool> {
        let fails = self.random.percent(self.faults.get().writes);
        fails.then(|| self.random.percent(50))
    }

    fn change(&self, change: Change) {
        let content = &mut *self.content.borrow_mut();
        change.clone().make(&mut content.seen);
        content.pending.push(change);
    }

    /// A change of names, which may fail.
    fn try_change(&self, change: Change) -> io::Result<()> {
        let fault = self.fault();
        if fault != Some(false) {
            self.change(change);
        }
        fault.map_or(Ok(()), |_| {
            Err(io::Error::other("the disk does not answer"))
        })
    }

    /// Number of bytes of a file that the disk accepts.
    fn room(&self, name: &str, wanted: usize) -> (usize, io::Result<()>) {
        let Some(space) = self.faults.get().space else {
            return (wanted, Ok(()));
        };
        let seen = &self.content.borrow().seen;
        let used: usize = seen.iter().filter(|f| f.0 != name).map(|f| f.1.len()).sum();
        match space.saturating_sub(used) {
            left if left < wanted => (left, Err(ErrorKind::StorageFull.into())),
            _ => (wanted, Ok(())),
        }
    }
}

impl Disk for SimDisk {
    fn place(&self) -> PathBuf {
        "/simulated".into()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.content.borrow().seen.keys().cloned().collect())
    }

    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        self.call()?;
        if self.random.percent(self.faults.get().reads) {
            return Err(io::Error::other("the disk does not answer"));
        }
        let found = self.content.borrow().seen.get(name).cloned();
        found.ok_or_else(|| ErrorKind::NotFound.into())
    }

    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let (mut taken, mut done) = self.room(name, bytes.len());
        if let Err(off) = self.call() {
            // The power fails during the call.
            (taken, done) = (self.random.below(bytes.len() + 1), Err(off));
        } else if self.fault().is_some() {
            taken = self.random.below(taken + 1);
            done = Err(io::Error::other("the disk does not answer"));
        }
        let content = &mut *self.content.borrow_mut();
        let part = bytes[..taken].to_vec();
        // If the name of a file is durable, the new content is durable.
        if let Some(durable) = content.durable.get_mut(name) {
            durable.clone_from(&part);
        }
        content.seen.insert(name.into(), part.clone());
        content.pending.push(Change::Named(name.into(), part));
        done
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.call()?;
        let file = self.content.borrow().seen.get(from).cloned();
        let file = file.ok_or(ErrorKind::NotFound)?;
        self.try_change(Change::Renamed(from.into(), to.into(), file))
    }

    fn sync(&self) -> io::Result<()> {
        self.call()?;
        let fault = self.fault();
        if fault != Some(false) {
            let content = &mut *self.content.borrow_mut();
            content.durable = content.seen.clone();
            content.pending.clear();
        }
        fault.map_or(Ok(()), |_| {
            Err(io::Error::other("the disk does not answer"))
        })
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.call()?;
        self.try_change(Change::Removed(name.into()))
    }
}
