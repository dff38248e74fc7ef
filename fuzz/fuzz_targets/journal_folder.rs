//! A state directory with any files: it opens, or an error gives the reason; a commit that is written into it is the active one
//! after the next start.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use volley_control::Journal;
use volley_control::journal::{About, Disk};

const NAMES: [&str; 12] = [
    "head.1",
    "head.2",
    "head.1.new",
    "commit-00000001",
    "commit-00000002",
    "waiting-00000002",
    "waiting-00000003",
    "rolled-back-00000002",
    "rolled-back-00000003",
    "commit-00000003",
    "commit-18446744073709551615",
    "waiting-1x",
];

#[derive(Clone, Default, Debug)]
struct Memory(Rc<RefCell<BTreeMap<String, Vec<u8>>>>);

impl Disk for Memory {
    fn place(&self) -> PathBuf {
        "/fuzz".into()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.0.borrow().keys().cloned().collect())
    }

    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let found = self.0.borrow().get(name).cloned();
        found.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.0.borrow_mut().insert(name.into(), bytes.into());
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let file = self
            .0
            .borrow_mut()
            .remove(from)
            .ok_or(io::ErrorKind::NotFound)?;
        self.0.borrow_mut().insert(to.into(), file);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let removed = self.0.borrow_mut().remove(name);
        removed
            .map(drop)
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

fuzz_target!(|bytes: &[u8]| {
    let disk = Memory::default();
    // For each file: the number in its name, whether and as what it is sealed, its length, its content.
    let mut rest = bytes;
    while let Some(([name, seal, len], more)) = rest.split_first_chunk::<3>() {
        let (content, more) = more.split_at(more.len().min(usize::from(*len)));
        let format = ["", "volley-head-2", "volley-commit-2"][usize::from(*seal) % 3];
        let line = match format {
            "" => String::new(),
            _ => format!(
                "{format} {} {:08x}\n",
                content.len(),
                crc32fast::hash(content)
            ),
        };
        let file = [line.as_bytes(), content].concat();
        let name = NAMES[usize::from(*name) % NAMES.len()];
        disk.0.borrow_mut().insert(name.into(), file);
        rest = more;
    }
    let copy = |disk: &Memory| Memory(Rc::new(RefCell::new(disk.0.borrow().clone())));
    for open in [Journal::open, Journal::open_anyway] {
        look(copy(&disk), open);
    }
});

fn look(
    disk: Memory,
    open: fn(Memory) -> Result<Journal<Memory>, volley_control::journal::JournalError>,
) {
    let mut journal = match open(disk.clone()) {
        Ok(journal) => journal,
        Err(error) => return assert!(error.to_string().starts_with("/fuzz"), "{error}"),
    };
    for number in journal.numbers() {
        match journal.commit(number) {
            Ok(commit) => assert_eq!(commit.number, number),
            Err(error) => assert!(error.to_string().contains(&number.to_string()), "{error}"),
        }
    }
    let head = journal.head().clone();
    assert!(
        journal
            .before(u64::MAX)
            .all(|commit| !head.has_rolled_back(commit.number))
    );
    if let Ok(number) = journal.write(About::default(), Vec::new(), None) {
        let journal = Journal::open(disk).expect("what was written is opened");
        assert_eq!(journal.head().current, Some(number));
        assert_eq!(
            journal.commit(number).expect("it is there").about,
            About::default()
        );
    }
}
