use super::*;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

mod differences;

/// A disk that stops at any byte. A rename without a sync may be lost.
#[derive(Clone, Default, Debug)]
struct Crashing {
    files: Rc<RefCell<BTreeMap<String, Vec<u8>>>>,
    /// Names on the disk at the last sync.
    durable: Rc<RefCell<BTreeMap<String, Vec<u8>>>>,
    /// Remaining bytes and steps until the disk stops; `None`: it does not stop.
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

    /// The disk in the state that the next start finds.
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
        // A new file may have its name at any time, with any part of its bytes.
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
    let delete = |n| Request::InterfaceDelete {
        name: format!("pg{n}"),
    };
    (1..=n).map(delete).collect()
}

fn about(comment: &str) -> About {
    About {
        time_s: 7,
        comment: Some(comment.into()),
        ..About::default()
    }
}

/// The configuration that a start would restore.
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
        let reported = journal.write(about("new"), requests(5), Some(99));
        assert!(reported.is_ok() || stop < whole);
        for kept in [false, true] {
            let found = restored(disk.after(kept)).expect("a commit");
            assert!(found == requests(2) || found == requests(5), "at {stop}");
            news += usize::from(found == requests(5));
            assert!(reported.is_err() || found == requests(5), "told, and lost");
            // The journal can continue from there.
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
    assert!(error.contains("the commits there are as before"), "{error}");
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
    // From then on the commit is known as not confirmed in time.
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
    assert!(journal.commit(20).is_err() && journal.commit(21).is_ok());
}

type Files = BTreeMap<String, Vec<u8>>;

/// A disk with these files.
fn with(files: &Files) -> Crashing {
    Crashing {
        files: Rc::new(RefCell::new(files.clone())),
        ..Crashing::default()
    }
}

/// All variants of a file with one bit changed, truncated, or missing.
fn damaged(file: &[u8]) -> Vec<Option<Vec<u8>>> {
    let flipped = (0..file.len() * 8).map(|bit| {
        let mut hurt = file.to_vec();
        hurt[bit / 8] ^= 1 << (bit % 8);
        Some(hurt)
    });
    let cut = (0..file.len()).map(|to| Some(file[..to].to_vec()));
    let longer = [b"\n", b"\0", b"0"].map(|more| Some([file, more].concat()));
    flipped.chain(cut).chain(longer).chain([None]).collect()
}

fn put(disk: &Crashing, name: &str, file: Option<Vec<u8>>) {
    let mut files = disk.files.borrow_mut();
    match file {
        Some(file) => files.insert(name.into(), file),
        None => files.remove(name),
    };
}

/// Three commits, of which the third was rolled back by its deadline: the second is active.
fn after_a_rollback() -> Files {
    let disk = Crashing::default();
    let mut journal = Journal::open(disk.clone()).unwrap();
    journal.write(about("a"), requests(1), None).unwrap();
    journal.write(about("b"), requests(2), None).unwrap();
    journal.write(about("c"), requests(3), Some(9)).unwrap();
    journal.go_back(10).unwrap();
    disk.files.take()
}

#[test]
fn a_damaged_copy_of_the_head_changes_nothing() {
    let files = after_a_rollback();
    let count = 2 * damaged(&files["head.1"]).len();
    println!("{count} damaged copies of the head, at least 1000: the other one counts");
    assert!(count >= 1000, "{count}");
    for (name, other) in [("head.1", "head.2"), ("head.2", "head.1")] {
        for (i, hurt) in damaged(&files[name]).into_iter().enumerate() {
            let disk = with(&files);
            let is_missing = hurt.is_none();
            put(&disk, name, hurt);
            let journal = Journal::open(disk.clone()).unwrap();
            assert_eq!(journal.head().current, Some(2), "{name} {i}");
            assert_eq!(journal.notes().len(), usize::from(!is_missing));
            // The copy is repaired: then the other one may be damaged.
            put(&disk, other, None);
            assert_eq!(restored(disk), Some(requests(2)), "{name} {i}");
        }
    }
}

#[test]
fn without_a_head_no_commit_is_chosen_and_never_one_that_was_rolled_back() {
    let files = after_a_rollback();
    for hurt in damaged(&files["head.1"]) {
        let disk = with(&files);
        put(&disk, "head.1", hurt.clone());
        put(&disk, "head.2", hurt);
        let error = Journal::open(disk.clone()).unwrap_err().to_string();
        assert!(
            error.contains("head.1 ") && error.contains("head.2 "),
            "{error}"
        );
        assert!(
            error.contains("`volley run --fallback` to apply commit 2 instead"),
            "{error}"
        );
        assert!(error.contains("`volley config rollback 2`"), "{error}");
        let mut journal = Journal::open_anyway(disk.clone()).unwrap();
        assert_eq!(journal.head().current, Some(2));
        // The command in the error repairs the journal.
        let again = About {
            back_to: Some(2),
            ..about("rollback to 2")
        };
        assert_eq!(journal.write(again, requests(2), None).unwrap(), 4);
        assert_eq!(restored(disk), Some(requests(2)));
    }
    // No commit can be applied.
    let disk = with(&files);
    for name in ["head.1", "head.2", "commit-00000001", "commit-00000002"] {
        put(&disk, name, Some(b"x".to_vec()));
    }
    let error = Journal::open(disk.clone()).unwrap_err().to_string();
    assert!(
        error.contains("`mv /simulated /simulated.damaged`"),
        "{error}"
    );
    let journal = Journal::open_anyway(disk).unwrap();
    assert_eq!(journal.head().current, None);
}

#[test]
fn a_damaged_commit_is_an_error_that_names_it() {
    let files = after_a_rollback();
    let name = "commit-00000002";
    let count = damaged(&files[name]).len();
    println!("{count} damaged active commits, at least 1000: an error names each");
    assert!(count >= 1000, "{count}");
    for (i, hurt) in damaged(&files[name]).into_iter().enumerate() {
        let disk = with(&files);
        put(&disk, name, hurt);
        let journal = Journal::open(disk).unwrap();
        // The active commit is known nevertheless.
        assert_eq!(journal.head().current, Some(2));
        let error = journal.commit(2).unwrap_err().to_string();
        let named = error.starts_with("/simulated/commit-00000002 ");
        assert!(
            named || error.starts_with("there is no commit 2"),
            "{i}: {error}"
        );
        let others: Vec<u64> = journal.before(2).map(|c| c.number).collect();
        assert_eq!(others, [1]);
    }
}

#[test]
fn a_commit_that_an_operator_rolled_back_takes_nobodys_place() {
    let disk = Crashing::default();
    let mut journal = Journal::open(disk.clone()).unwrap();
    for n in 1..=3 {
        journal.write(about("x"), requests(n), None).unwrap();
    }
    let back = About {
        back_to: Some(1),
        ..about("rollback to 1")
    };
    assert_eq!(journal.write(back, requests(1), None).unwrap(), 4);
    journal.write(about("y"), requests(5), Some(9)).unwrap();
    journal.write(about("z"), requests(6), None).unwrap();
    // 2 and 3 were rolled back, 5 was never confirmed.
    let journal = Journal::open(with(&disk.files.borrow())).unwrap();
    let others: Vec<u64> = journal.before(6).map(|c| c.number).collect();
    assert_eq!(others, [4, 1]);
    assert!(journal.commit(3).is_ok(), "an operator can have it back");
    for name in ["head.1", "head.2", "commit-00000006"] {
        put(&disk, name, None);
    }
    let journal = Journal::open_anyway(disk).unwrap();
    assert_eq!(journal.head().current, Some(4));
}

#[test]
fn what_is_not_known_is_refused_by_its_name() {
    let files = after_a_rollback();
    let first =
        br#"{"number":2,"about":{"time_s":7,"comment":null,"user":null,"how":null,"engine":null}}"#;
    let lines: [(&[u8], &str); 4] = [
        (br#"{"number":2,"colour":1}"#, "unknown field `colour`"),
        (
            br#"{"number":2,"about":{"time_s":7,"mood":"good"}}"#,
            "unknown field `mood`",
        ),
        (
            br#"{"interface-delete":{"name":"pg1","shape":2}}"#,
            "unknown field `shape`",
        ),
        (
            br#"{"table-burn":{"table":1}}"#,
            "unknown variant `table-burn`",
        ),
    ];
    for (n, (line, wanted)) in lines.into_iter().enumerate() {
        let body = match n {
            0 | 1 => line.to_vec(),
            _ => [first, &b"\n"[..], line].concat(),
        };
        let disk = with(&files);
        put(
            &disk,
            "commit-00000002",
            Some(record::sealed("volley-commit-2", &body)),
        );
        let error = Journal::open(disk)
            .unwrap()
            .commit(2)
            .unwrap_err()
            .to_string();
        let at = if n < 2 { "line 2 " } else { "line 3 " };
        assert!(error.contains(wanted) && error.contains(at), "{error}");
    }
    let disk = with(&files);
    let head = record::sealed(
        "volley-head-2",
        br#"{"sequence":9,"current":1,"confirm_by":null,"before":null,"next":3}"#,
    );
    put(&disk, "head.1", Some(head.clone()));
    put(&disk, "head.2", Some(head));
    let error = Journal::open(disk).unwrap_err().to_string();
    assert!(error.contains("unknown field `next`"), "{error}");
    let disk = with(&files);
    put(
        &disk,
        "commit-00000002",
        Some(record::sealed("volley-commit-4", b"{}")),
    );
    let error = Journal::open(disk)
        .unwrap()
        .commit(2)
        .unwrap_err()
        .to_string();
    assert!(error.contains("'volley-commit-4'"), "{error}");
}

#[test]
fn a_commit_may_have_requests_that_are_objects_now() {
    let set = crate::tests::request("loop pg0");
    let files = after_a_rollback();
    let first =
        br#"{"number":2,"about":{"time_s":7,"comment":null,"user":null,"how":null,"engine":null}}"#;
    let read = |line: &[u8]| {
        let disk = with(&files);
        let body = [first, &b"\n"[..], line, b"\n"].concat();
        let commit = record::sealed("volley-commit-2", &body);
        put(&disk, "commit-00000002", Some(commit));
        let commit = Journal::open(disk).unwrap().commit(2);
        commit.map(|it| it.requests).map_err(|e| e.to_string())
    };
    assert_eq!(read(br#"{"loop-set":{"rx":"pg0"}}"#).unwrap(), [set]);
    let wrong = read(br#"{"loop-set":{"tx":"pg0"}}"#).unwrap_err();
    assert!(
        wrong.contains("line 3 ") && wrong.contains("unknown field `tx`"),
        "{wrong}"
    );
    let unknown = read(br#"{"loop-burn":{"rx":"pg0"}}"#).unwrap_err();
    assert!(unknown.contains("unknown variant `loop-burn`"), "{unknown}");
}

#[test]
fn checksums_are_crc_32_of_ieee_802_3() {
    // The check value of the CRC catalogue's CRC-32/ISO-HDLC.
    assert_eq!(
        record::sealed("x", b"123456789"),
        b"x 9 cbf43926\n123456789"
    );
}

#[test]
fn a_deadline_on_a_full_disk_rolls_back_and_is_written_later() {
    let disk = Crashing::default();
    let mut journal = Journal::open(disk.clone()).unwrap();
    journal.write(about("a"), requests(1), None).unwrap();
    journal.write(about("b"), requests(2), Some(9)).unwrap();
    disk.left.set(Some(0));
    journal.go_back(10).unwrap_err();
    assert_eq!(
        (journal.head().current, journal.is_behind()),
        (Some(1), true)
    );
    assert!(journal.settle().is_err() && journal.is_behind());
    // A commit that is written before the disk has accepted the rollback is based on the active commit.
    disk.left.set(None);
    let next = journal.write(about("c"), requests(3), Some(20)).unwrap();
    assert!(!journal.is_behind());
    let again = Journal::open(disk.after(false)).unwrap();
    assert_eq!(again.head().before, Some(1));
    assert_eq!(again.head().lapsed.len(), 1);
    assert_eq!(again.head().current, Some(next));
    // Without such a commit, `settle` writes the rollback.
    disk.left.set(Some(0));
    journal.go_back(21).unwrap_err();
    disk.left.set(None);
    journal.settle().unwrap();
    assert_eq!(restored(disk.after(false)), Some(requests(1)));
}

#[test]
fn journals_of_older_versions_are_refused_with_the_way_out() {
    let disk = Crashing::default();
    put(
        &disk,
        "head",
        Some(b"volley-head-1 2 0123456789abcdef\n{}".to_vec()),
    );
    let error = Journal::open(disk).unwrap_err().to_string();
    assert!(
        error.contains("older version") && error.contains("config show > FILE"),
        "{error}"
    );
}

#[test]
fn a_folder_is_private_and_a_second_daemon_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let outer = std::env::temp_dir().join(format!("volley-journal-{}", std::process::id()));
    let path = outer.join("state");
    std::fs::create_dir_all(&path).unwrap();
    std::fs::write(path.join("commit-00000009"), "x").unwrap();
    let mode = |path: &std::path::Path, mode: u32| {
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    };
    mode(&path, 0o777);
    mode(&path.join("commit-00000009"), 0o644);
    let folder = Folder::open(path.clone()).unwrap();
    assert!(matches!(
        Folder::open(path.clone()),
        Err(JournalError::Taken(_))
    ));
    folder.write("new", b"x").unwrap();
    assert_eq!(folder.list().unwrap().len(), 3);
    for name in ["", "lock", "new", "commit-00000009"] {
        let found = std::fs::metadata(path.join(name))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(found & 0o077, 0, "{name}: {found:o}");
    }
    // A link that another user created is not followed.
    std::os::unix::fs::symlink(path.join("new"), path.join("head.1.new")).unwrap();
    folder.write("head.1.new", b"y").unwrap_err();
    assert_eq!(folder.read("new").unwrap(), b"x");
    std::fs::remove_dir_all(outer).unwrap();
}
