use super::*;
use proptest::prelude::*;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

fn key(n: u64) -> u64 {
    (0x0200_0000_0000 + n) << 16 | 10
}

fn find(table: &MacTable, reader: &mut crate::qsbr::Reader, key: u64) -> u32 {
    let answer = table.snap().read(reader.guard(), 0).find(key);
    reader.quiescent();
    answer
}

#[test]
fn grows_from_nothing_and_keeps_everything() {
    let domain = Domain::new();
    let mut reader = domain.register();
    let mut table = MacTable::new(&domain, 2, MAX_ENTRIES);
    let n = 100_000;
    for i in 0..n {
        let id = table.insert(key(i), (i % 4000) as u32).unwrap();
        assert_eq!(u64::from(id), i + 1);
    }
    assert!(table.buckets() * 2 >= n as usize && table.buckets() <= n as usize * 2);
    for i in 0..n {
        let answer = find(&table, &mut reader, key(i));
        assert_eq!(
            (u64::from(answer >> ID_BITS), table.get(key(i))),
            (i % 4000, Some(i as u32 + 1))
        );
        assert_eq!(find(&table, &mut reader, key(i) ^ 1), 0, "another domain");
    }
}

#[test]
fn a_full_table_says_so_and_room_comes_back() {
    let domain = Domain::new();
    let mut table = MacTable::new(&domain, 1, 1000);
    let ids: Vec<u32> = (0..1000)
        .map(|i| table.insert(key(i), 1).unwrap())
        .collect();
    assert_eq!(table.insert(key(1000), 1), Err(Full));
    table.remove(ids[7]);
    table.remove(ids[7]);
    assert_eq!((table.len(), table.get(key(7))), (999, None));
    assert_eq!(table.insert(key(1000), 1), Ok(ids[7]));
    for (i, id) in ids.iter().enumerate().filter(|(i, _)| *i != 7) {
        assert_eq!(table.get(key(i as u64)), Some(*id));
    }
}

#[test]
fn marks_are_each_workers_own_and_outlive_growth() {
    let domain = Domain::new();
    let reader = domain.register();
    let mut table = MacTable::new(&domain, 2, MAX_ENTRIES);
    let id = table.insert(key(1), 5).unwrap();
    assert!(!table.take_mark(id));
    for worker in [0, 1] {
        let snap = table.snap();
        let view = snap.read(reader.guard(), worker);
        view.mark(view.find(key(1)));
    }
    for i in 2..5000 {
        table.insert(key(i), 5).unwrap();
    }
    assert!(table.take_mark(id), "one answer for both workers");
    assert!(!table.take_mark(id));
    let snap = table.snap();
    let view = snap.read(reader.guard(), 1);
    view.mark(view.find(key(1)));
    table.remove(id);
    assert_eq!(table.insert(key(9999), 5), Ok(id));
    assert!(!table.take_mark(id), "the mark was another station's");
}

#[test]
fn readers_never_see_an_answer_of_another_key() {
    change_beside_a_reader(0);
}

/// So many buckets that slots are compared without branches.
#[test]
fn readers_of_a_large_table_never_see_an_answer_of_another_key() {
    change_beside_a_reader(70_000);
}

/// Insert and remove keys beside a reader, in a table with this number of other keys.
fn change_beside_a_reader(others: u64) {
    let domain = Domain::new();
    let mut table = MacTable::new(&domain, 1, 4000 + others as usize);
    for n in 0..others {
        table.insert(key(1_000_000 + n), 1).unwrap();
    }
    assert_eq!(table.buckets() >= store::MANY_BUCKETS, others > 0);
    let (snap, stop) = (table.snap(), Arc::new(AtomicBool::new(false)));
    // The tag is a function of the key, so that a reader can check it.
    let tag = |n: u64| (n * 7 % 4093) as u32;
    let over = stop.clone();
    let watched = Arc::new(AtomicU64::new(0));
    let seen = watched.clone();
    let mut reader = domain.register();
    let looking = std::thread::spawn(move || {
        let (mut looks, mut found) = (0u64, 0u64);
        while !over.load(Ordering::Relaxed) {
            let view = snap.read(reader.guard(), 0);
            for n in 0..3000 {
                let answer = view.find(key(n));
                assert!(
                    answer == 0 || answer >> ID_BITS == tag(n),
                    "key {n}: {answer:#x}"
                );
                found += u64::from(answer != 0);
            }
            looks += 1;
            seen.store(looks, Ordering::Relaxed);
            reader.quiescent();
        }
        found
    });
    let mut round = 0u64;
    while round < 61 || round.is_multiple_of(2) || watched.load(Ordering::Relaxed) < 500 {
        round += 1;
        for n in (round % 3..3000).step_by(3) {
            match table.get(key(n)) {
                Some(id) => table.remove(id),
                None => _ = table.insert(key(n), tag(n)),
            }
        }
        domain.reclaim();
    }
    stop.store(true, Ordering::Relaxed);
    assert!(looking.join().unwrap() > 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn like_a_map(steps in proptest::collection::vec((0u64..600, 0u32..TAG_MAX, 0u8..8), 1..4000)) {
        let domain = Domain::new();
        let mut reader = domain.register();
        let mut table = MacTable::new(&domain, 1, 500);
        let mut model: HashMap<u64, u32> = HashMap::new();
        for (n, tag, what) in steps {
            let key = key(n);
            match (table.get(key), what) {
                (Some(id), 0) => {
                    table.remove(id);
                    model.remove(&key);
                }
                (Some(id), _) => {
                    table.set(id, tag);
                    model.insert(key, tag);
                }
                (None, _) => {
                    let room = model.len() < 500;
                    prop_assert_eq!(table.insert(key, tag).is_ok(), room);
                    if room {
                        model.insert(key, tag);
                    }
                }
            }
            prop_assert_eq!(table.len(), model.len());
            reader.quiescent();
        }
        for n in 0..600 {
            let answer = find(&table, &mut reader, key(n));
            prop_assert_eq!((answer != 0).then_some(answer >> ID_BITS), model.get(&key(n)).copied());
        }
    }
}
