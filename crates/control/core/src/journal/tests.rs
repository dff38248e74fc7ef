use super::*;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// A disk that stops at any byte. What was renamed but not synced may be there or not.
#[derive(Clone, Default, Debug)]
struct Crashing {
    files: Rc<RefCell<BTreeMap<String, Vec<u8>>>>,
    /// Names as the disk has them since the last sync.
    durable: Rc<RefCell<BTreeMap<String, Vec<u8>>>>,
    /// Bytes and steps left until it stops; none = it does not.
    left: Rc<Cell<Option<usize>>>,
    spent: Rc<Cell<usize>>,
}

impl Crashing {
    fn spend(&self, wanted: usize) -> (usize, io::Result<()>) {
        let can = self.left.get().unwrap_or(usize::MAX).min(wanted);
        self.spent.set(self.spent.get() + can);
        self.left.set(self.left.get().map(|left| left - can));
        let done = match can == wanted {
            true => Ok(()),
            false => Err(io::Error::other("the power is gone")),
        };
        (can, done)
    }

    /// The disk as the next start finds it.
    fn after(&self, names_kept: bool) -> Crashing {
        let files = match names_kept {
            true => self.files.borrow().clone(),
            false => self.durable.borrow().clone(),
        };
        Crashing {
            durable: Rc::new(RefCell::new(files.clone())),
            files: Rc::new(RefCell::new(files)),
            ..Crashing::default()
        }
    }
}

impl Disk for Crashing {
    fn place(&self) -> PathBuf {
        "/simulated".into()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.files.borrow().keys().cloned().collect())
    }

    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let found = self.files.borrow().get(name).cloned();
        found.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let (can, done) = self.spend(bytes.len());
        let part = bytes[..can].to_vec();
        self.files.borrow_mut().insert(name.into(), part.clone());
        // A new file may be there by its name at any time, with any part of its bytes.
        self.durable.borrow_mut().insert(name.into(), part);
        done
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.spend(1).1?;
        let file = self.files.borrow_mut().remove(from);
        self.files
            .borrow_mut()
            .insert(to.into(), file.ok_or(io::ErrorKind::NotFound)?);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.spend(1).1?;
        *self.durable.borrow_mut() = self.files.borrow().clone();
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.spend(1).1?;
        self.files.borrow_mut().remove(name);
        Ok(())
    }
}

fn requests(n: u32) -> Vec<Request> {
    let table = |table| Request::TableAdd {
        family: volley_model::Family::V4,
        table,
    };
    (1..=n).map(table).collect()
}

fn about(comment: &str) -> About {
    About {
        time_s: 7,
        comment: Some(comment.into()),
        ..About::default()
    }
}

/// What a start would restore.
fn restored(disk: Crashing) -> Option<Vec<Request>> {
    let journal = Journal::open(disk).unwrap();
    let current = journal.head().current?;
    Some(journal.commit(current).unwrap().requests)
}

#[test]
fn stopped_at_any_byte_the_old_or_the_new_holds() {
    let start = || {
        let disk = Crashing::default();
        let mut journal = Journal::open(disk.clone()).unwrap();
        journal.write(about("old"), requests(2), None).unwrap();
        disk.spent.set(0);
        (disk, journal)
    };
    let (disk, mut journal) = start();
    journal.write(about("new"), requests(5), Some(99)).unwrap();
    let (whole, mut news) = (disk.spent.get(), 0);
    assert!(whole > 300, "{whole}");
    for stop in 0..=whole {
        let (disk, mut journal) = start();
        disk.left.set(Some(stop));
        let told = journal.write(about("new"), requests(5), Some(99));
        assert_eq!(told.is_ok(), stop == whole);
        for kept in [false, true] {
            let found = restored(disk.after(kept)).expect("a commit");
            assert!(found == requests(2) || found == requests(5), "at {stop}");
            news += usize::from(found == requests(5));
            assert!(told.is_err() || found == requests(5), "told, and lost");
            // And the journal goes on from there.
            let mut next = Journal::open(disk.after(kept)).unwrap();
            next.write(about("next"), requests(3), None).unwrap();
            let after = next.disk.after(false);
            assert_eq!(restored(after), Some(requests(3)));
        }
    }
    assert!(news >= 3, "the new one holds from the rename on: {news}");
}

#[test]
fn a_full_disk_loses_nothing() {
    let disk = Crashing::default();
    let mut journal = Journal::open(disk.clone()).unwrap();
    let first = journal.write(about("a"), requests(1), None).unwrap();
    disk.left.set(Some(100));
    let error = journal
        .write(about("b"), requests(500), None)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("the commit before it still holds"),
        "{error}"
    );
    disk.left.set(None);
    assert_eq!(journal.head().current, Some(first));
    assert_eq!(restored(disk.after(true)), Some(requests(1)));
    journal.write(about("c"), requests(2), None).unwrap();
    assert_eq!(restored(disk.after(false)), Some(requests(2)));
}

#[test]
fn a_waiting_commit_is_confirmed_or_goes() {
    let disk = Crashing::default();
    let mut journal = Journal::open(disk.clone()).unwrap();
    let first = journal.write(about("a"), requests(1), None).unwrap();
    journal.write(about("b"), requests(2), Some(10)).unwrap();
    let third = journal.write(about("c"), requests(3), Some(20)).unwrap();
    let again = Journal::open(disk.after(false)).unwrap();
    assert_eq!(again.head().before, Some(first));
    assert_eq!(again.head().confirm_by, Some(20));
    assert_eq!(journal.go_back(21).unwrap(), Some(first));
    assert_eq!(restored(disk.after(false)), Some(requests(1)));
    // That it was not confirmed in time is known from then on.
    let lapsed = [Lapsed {
        number: third,
        time_s: 21,
    }];
    journal.write(about("d"), requests(4), Some(30)).unwrap();
    assert_eq!(journal.head().lapsed, lapsed);
    let again = Journal::open(disk.after(false)).unwrap();
    assert_eq!(again.head().lapsed, lapsed);
    assert!(journal.confirm().unwrap() && !journal.confirm().unwrap());
    assert_eq!(restored(disk.after(false)), Some(requests(4)));
    assert_eq!(journal.commit(third).unwrap().about, about("c"));
    let error = journal.commit(99).unwrap_err().to_string();
    assert_eq!(error, "there is no commit 99; there are 1 to 4");
}

#[test]
fn damage_is_noticed_and_old_commits_go() {
    let disk = Crashing::default();
    let mut journal = Journal::open(disk.clone()).unwrap();
    for n in 1..=(KEPT as u32 + 20) {
        journal.write(about("x"), requests(n), None).unwrap();
    }
    assert_eq!(journal.numbers().len(), KEPT);
    let newest = format!("commit-{:08}", KEPT + 20);
    for at in 0..disk.files.borrow()[&newest].len() {
        let hurt = disk.after(true);
        hurt.files.borrow_mut().get_mut(&newest).unwrap()[at] ^= 0x10;
        hurt.files.borrow_mut().remove("head");
        assert_eq!(restored(hurt), Some(requests(KEPT as u32 + 19)), "{at}");
    }
}

/// What versions wrote before commits had a user: kept as they wrote it, lengths and checksums too.
#[test]
fn journals_of_older_versions_are_read() {
    let body = b"{\"number\":3,\"time_s\":7,\"comment\":\"a\",\"engine\":null}\n\
        {\"table-add\":{\"family\":\"ip4\",\"table\":1}}\n";
    let head = b"{\"current\":3,\"confirm_by\":null,\"before\":null}";
    let disk = Crashing::default();
    let put = |name: &str, kind: &str, body: &[u8]| {
        let file = record::sealed(kind, body);
        disk.files.borrow_mut().insert(name.into(), file);
    };
    put("commit-00000003", "volley-commit-1", body);
    put("head", "volley-head-1", head);
    let journal = Journal::open(disk.clone()).unwrap();
    assert_eq!(journal.head().current, Some(3));
    let commit = journal.commit(3).unwrap();
    assert_eq!(commit.about, about("a"));
    assert_eq!((commit.about.user, commit.about.how), (None, None));
    assert_eq!(commit.requests, requests(1));
}
