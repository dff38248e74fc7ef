//! Commits that are stored as differences.

use super::*;

const TINY: Sizes = Sizes { large: 1, share: 8 };

/// Requests of a large configuration in which some differ from those of another one.
fn many(changed: &[u32]) -> Vec<Request> {
    let mut all = requests(200);
    for n in changed {
        let name = format!("changed{n}");
        all[*n as usize % 200] = Request::InterfaceDelete { name };
    }
    all
}

fn opened(disk: &Crashing) -> Journal<Crashing> {
    let mut journal = Journal::open(disk.clone()).unwrap();
    journal.sizes = TINY;
    journal
}

fn size(disk: &Crashing, name: &str) -> usize {
    disk.files.borrow()[name].len()
}

#[test]
fn a_change_of_a_large_commit_is_small() {
    let disk = Crashing::default();
    let mut journal = opened(&disk);
    let mut shorter = many(&[7, 9]);
    shorter.drain(40..60);
    let mut moved = many(&[7]);
    let block: Vec<Request> = moved.drain(10..30).collect();
    moved.splice(100..100, block);
    let longer = [many(&[3]), requests(2), many(&[0])].concat();
    let all = [many(&[]), many(&[7]), shorter, moved, longer];
    for commit in &all {
        journal.write(about("x"), commit.clone(), None).unwrap();
    }
    let whole = size(&disk, "commit-00000001");
    for (n, wanted) in (1u64..).zip(&all) {
        let size = size(&disk, &format!("commit-{n:08}"));
        assert!(n == 1 || size < whole / 8, "{n}: {size} of {whole}");
        let again = Journal::open(with(&disk.files.borrow())).unwrap();
        assert_eq!(again.commit(n).unwrap().requests, *wanted, "{n}");
        let summary = again.summary(n).unwrap();
        assert_eq!(summary.requests, wanted.len() as u64);
        assert_eq!(summary.about, about("x"));
    }
    // Another configuration is written whole, and so is a small one.
    journal.write(about("x"), requests(900), None).unwrap();
    assert!(size(&disk, "commit-00000006") > whole);
    journal.sizes = large::SIZES;
    journal.write(about("x"), requests(900), None).unwrap();
    let file = disk.files.borrow()["commit-00000007"].clone();
    assert!(file.starts_with(b"volley-commit-2 "));
    assert_eq!(Commit::read(&file).unwrap().requests, requests(900));
}

#[test]
fn any_difference_is_read_as_it_was_written() {
    use proptest::prelude::*;
    let line = || 0u32..12;
    let lists = (
        proptest::collection::vec(line(), 1..60),
        proptest::collection::vec(line(), 1..60),
    );
    let of = |list: &[u32]| -> Vec<Request> {
        let request = |n: &u32| Request::InterfaceDelete {
            name: format!("pg{n}"),
        };
        list.iter().map(request).collect()
    };
    proptest!(|((first, second) in lists)| {
        let disk = Crashing::default();
        let mut journal = opened(&disk);
        journal.sizes = Sizes { large: 1, share: 1 };
        journal.write(about("a"), of(&first), None).unwrap();
        journal.write(about("b"), of(&second), None).unwrap();
        prop_assert_eq!(journal.commit(2).unwrap().requests, of(&second));
        prop_assert_eq!(journal.commit(1).unwrap().requests, of(&first));
    });
}

#[test]
fn stopped_at_any_byte_a_difference_holds_or_the_one_before() {
    let start = || {
        let disk = Crashing::default();
        let mut journal = opened(&disk);
        journal.write(about("whole"), many(&[]), None).unwrap();
        journal.write(about("old"), many(&[1]), None).unwrap();
        disk.spent.set(0);
        (disk, journal)
    };
    let (disk, mut journal) = start();
    journal.write(about("new"), many(&[2]), Some(99)).unwrap();
    let (whole, mut news) = (disk.spent.get(), 0);
    assert!(whole < 2000, "it is no difference: {whole}");
    for stop in 0..=whole {
        let (disk, mut journal) = start();
        disk.left.set(Some(stop));
        let reported = journal.write(about("new"), many(&[2]), Some(99));
        for kept in [false, true] {
            let found = restored(disk.after(kept)).expect("a commit");
            assert!(found == many(&[1]) || found == many(&[2]), "at {stop}");
            news += usize::from(found == many(&[2]));
            assert!(reported.is_err() || found == many(&[2]), "told, and lost");
            let mut next = opened(&disk.after(kept));
            next.write(about("next"), many(&[3]), None).unwrap();
            let numbers = next.numbers();
            assert!(numbers.iter().all(|n| next.commit(*n).is_ok()), "at {stop}");
            assert_eq!(restored(next.disk.after(false)), Some(many(&[3])));
        }
    }
    assert!(news >= 3, "{news}");
}

#[test]
fn damage_is_named_and_leaves_the_other_commits() {
    let disk = Crashing::default();
    let mut journal = opened(&disk);
    journal.write(about("small"), requests(1), None).unwrap();
    for n in 0..3 {
        journal.write(about("x"), many(&[n]), None).unwrap();
    }
    let files = disk.files.take();
    let names = |n: u64| format!("commit-{n:08}");
    let reads = |disk: &Crashing| -> Vec<u64> {
        let journal = Journal::open(disk.clone()).unwrap();
        journal.before(u64::MAX).map(|c| c.number).collect()
    };
    assert_eq!(reads(&with(&files)), [4, 3, 2, 1]);
    for hurt in damaged(&files[&names(4)]) {
        let disk = with(&files);
        put(&disk, &names(4), hurt);
        assert_eq!(reads(&disk), [3, 2, 1]);
        let error = Journal::open(disk).unwrap().commit(4).unwrap_err();
        assert!(error.to_string().contains("commit"), "{error}");
    }
    // Without the base only commits that do not need it are left; every 37th kind of damage is tried.
    for hurt in damaged(&files[&names(2)]).into_iter().rev().step_by(37) {
        let disk = with(&files);
        put(&disk, &names(2), hurt);
        assert_eq!(reads(&disk), [1]);
        let journal = Journal::open(disk).unwrap();
        let error = journal.commit(4).unwrap_err().to_string();
        assert!(
            error.contains("commit-00000004 has the differences from commit 2, whose file "),
            "{error}"
        );
        assert!(journal.summary(4).is_ok());
    }
    // Another base than that of the differences.
    let disk = with(&files);
    let other = many(&[9]);
    let other = Commit {
        number: 2,
        about: about("x"),
        requests: other,
    };
    put(&disk, &names(2), Some(large::bytes(&other, || None, TINY)));
    let error = Journal::open(disk).unwrap().commit(4).unwrap_err();
    assert!(error.to_string().contains("from other requests"), "{error}");
}

#[test]
fn a_damaged_base_is_replaced_by_the_next_commit() {
    let disk = Crashing::default();
    let mut journal = opened(&disk);
    journal.write(about("x"), many(&[]), None).unwrap();
    journal.write(about("x"), many(&[1]), None).unwrap();
    let hurt = disk.files.borrow()["commit-00000001"].len() - 9;
    disk.files.borrow_mut().get_mut("commit-00000001").unwrap()[hurt] ^= 4;
    assert!(journal.commit(2).is_err());
    journal.write(about("x"), many(&[2]), None).unwrap();
    assert_eq!(journal.commit(3).unwrap().requests, many(&[2]));
    assert_eq!(restored(disk.after(false)), Some(many(&[2])));
}

#[test]
fn old_commits_go_with_the_differences_from_them() {
    let disk = Crashing::default();
    let mut journal = opened(&disk);
    for n in 1..=330 {
        let confirm_by = (n % 7 == 0).then_some(9);
        journal.write(about("x"), many(&[n]), confirm_by).unwrap();
        if n % 14 == 0 {
            journal.go_back(10).unwrap();
        }
        let numbers = journal.numbers();
        let count = numbers.len();
        assert!(count >= KEPT.min(n as usize), "{n}: {count}");
        assert!(count < KEPT + WHOLE_EVERY as usize, "{n}: {count}");
        if n % 11 == 0 {
            assert!(numbers.iter().all(|n| journal.commit(*n).is_ok()), "{n}");
        }
    }
    let total: usize = disk.files.borrow().values().map(Vec::len).sum();
    let whole = size(&disk, "commit-00000326");
    assert!(total < 12 * whole, "{total} bytes, a commit has {whole}");
}
