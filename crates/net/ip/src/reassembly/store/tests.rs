//! Model test of the store: every datagram is an array of bytes, and every rule is explicit.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

const BOUNDS: Bounds = Bounds {
    datagrams: 64,
    fragments: 64,
    buffers: 512,
    timeout_ns: 1000,
};

fn span(start: u32, end: u32, more: bool) -> Span {
    Span {
        start,
        end,
        more,
        ..Span::default()
    }
}

/// The payload of a fragment: the value of each byte depends on its offset.
fn bytes(key: u32, span: Span) -> Vec<u8> {
    let byte = |at: u32| (at * 31 + key * 7) as u8;
    (span.start..span.end).map(byte).collect()
}

type Fragments = Store<u32, Vec<u8>>;
/// A dropped fragment: its bytes, the reason, and whether it is the first of its datagram.
type Dropped = (Vec<u8>, Fault, bool);

fn give(store: &mut Fragments, key: u32, span: Span, now_ns: u64) -> Result<(), Fault> {
    let leave = store.offer(&key, span, &BOUNDS, now_ns)?;
    store.put(leave, bytes(key, span));
    Ok(())
}

/// Takes all complete datagrams and all dropped fragments.
fn collect(store: &mut Fragments) -> (Vec<Vec<u8>>, Vec<Dropped>) {
    let mut whole = Vec::new();
    while let Some(next) = store.next_whole() {
        let parts = store.fragments_of(next).map(|(_, item)| item.clone());
        whole.push(parts.flatten().collect());
        while store.take(next).is_some() {}
    }
    let dropped = std::iter::from_fn(|| store.next_drop()).collect();
    (whole, dropped)
}

#[derive(Default)]
struct Model {
    /// By datagram: its arrival time, its spans, and whether it was given up.
    all: BTreeMap<u32, (u64, Vec<Span>, bool)>,
}

impl Model {
    /// The expected result for a fragment, and the datagram if it is complete.
    fn give(&mut self, key: u32, new: Span, now: u64) -> (Result<(), Fault>, Option<Vec<u8>>) {
        self.all
            .retain(|_, (born, ..)| now - *born < BOUNDS.timeout_ns);
        let (_, spans, spoiled) = self.all.entry(key).or_insert((now, Vec::new(), false));
        if *spoiled {
            return (Err(Fault::Spoiled), None);
        }
        if spans.contains(&new) {
            return (Err(Fault::Duplicate), None);
        }
        let end = spans.iter().find(|s| !s.more).map(|s| s.end);
        let fault = if spans.iter().any(|s| s.start < new.end && new.start < s.end) {
            Some(Fault::Overlap)
        } else if end.is_some_and(|end| new.end > end || !new.more)
            || !new.more && spans.iter().any(|s| s.start > new.start)
        {
            Some(Fault::End)
        } else if spans.len() >= BOUNDS.fragments as usize {
            Some(Fault::TooMany)
        } else {
            None
        };
        if let Some(fault) = fault {
            *spoiled = true;
            return (Err(fault), None);
        }
        spans.push(new);
        let end = spans.iter().find(|s| !s.more).map(|s| s.end);
        let have: u32 = spans.iter().map(|s| s.end - s.start).sum();
        if end == Some(have) {
            self.all.remove(&key);
            return (Ok(()), Some(bytes(key, span(0, have, false))));
        }
        (Ok(()), None)
    }
}

/// A fragment of one of a few short datagrams, so that fragments often meet.
fn fragment() -> impl Strategy<Value = (u32, Span, u64)> {
    (0u32..4, 0u32..12, 1u32..5, any::<bool>(), 0u64..120)
        .prop_map(|(key, at, len, more, later)| (key, span(at * 8, (at + len) * 8, more), later))
}

/// Datagrams split at random, and the order in which their fragments arrive.
fn cuts() -> impl Strategy<Value = Vec<(u32, Span)>> {
    let one = prop::collection::btree_set(1u32..200, 0..20);
    prop::collection::vec(one, 1..6)
        .prop_map(|all| {
            let mut fragments = Vec::new();
            for (key, cuts) in all.iter().enumerate() {
                let mut at = 0;
                for cut in cuts {
                    fragments.push((key as u32, span(at * 8, cut * 8, true)));
                    at = *cut;
                }
                fragments.push((key as u32, span(at * 8, at * 8 + 13, false)));
            }
            fragments
        })
        .prop_shuffle()
}

proptest! {
    #[test]
    fn whatever_comes_the_store_says_what_the_model_says(all in prop::collection::vec(fragment(), 1..200)) {
        let (mut store, mut model) = (Fragments::new(64, 512), Model::default());
        let mut now = 0;
        for (key, span, later) in all {
            now += later;
            let (want, whole) = model.give(key, span, now);
            prop_assert_eq!(give(&mut store, key, span, now), want);
            let (got, _) = collect(&mut store);
            prop_assert_eq!(got, whole.into_iter().collect::<Vec<_>>());
            prop_assert_eq!(store.datagrams() as usize, model.all.len());
            let held: usize = model.all.values().filter(|it| !it.2).map(|it| it.1.len()).sum();
            prop_assert_eq!(store.fragments() as usize, held);
        }
        store.expire(BOUNDS.timeout_ns, now + BOUNDS.timeout_ns);
        let (_, dropped) = collect(&mut store);
        prop_assert!(dropped.iter().all(|(_, fault, _)| *fault == Fault::Timeout));
        prop_assert_eq!((store.datagrams(), store.fragments()), (0, 0));
    }

    #[test]
    fn cuts_in_any_order_make_the_datagrams_again(mut all in cuts(), twice in any::<prop::sample::Index>()) {
        let mut store = Fragments::new(64, 512);
        let again = all[twice.index(all.len())];
        let datagrams = 1 + all.iter().map(|(key, _)| *key).max().unwrap_or(0);
        let mut want: Vec<Vec<u8>> = Vec::new();
        for key in 0..datagrams {
            let end = all.iter().filter(|(k, _)| *k == key).map(|(_, s)| s.end).max();
            want.push(bytes(key, span(0, end.unwrap_or(0), false)));
        }
        // One fragment arrives twice in a row, which changes nothing, unless it is a whole datagram, which is then received
        // twice.
        let at = all.iter().position(|it| *it == again).unwrap_or(0);
        if again.1.start > 0 || again.1.more {
            all.insert(at + 1, again);
        }
        let mut got = Vec::new();
        for (key, span) in all {
            let message = give(&mut store, key, span, 5);
            prop_assert!(matches!(message, Ok(()) | Err(Fault::Duplicate)));
            got.extend(collect(&mut store).0);
        }
        got.sort();
        want.sort();
        prop_assert_eq!(got, want);
    }

    #[test]
    fn a_flood_stays_within_bounds(all in prop::collection::vec((any::<u16>(), 0u32..500, any::<bool>()), 1..3000)) {
        let bounds = Bounds { datagrams: 16, fragments: 8, buffers: 40, timeout_ns: u64::MAX };
        let mut store = Store::<u32, u8>::new(32, 64);
        let (mut given, mut back) = (0, 0);
        for (n, (key, at, more)) in all.iter().enumerate() {
            let span = span(at * 8, at * 8 + 8, *more);
            if let Ok(leave) = store.offer(&u32::from(*key % 64), span, &bounds, n as u64) {
                store.put(leave, 0);
                given += 1;
            }
            prop_assert!(store.datagrams() <= 16 && store.fragments() <= 64);
            if n % 7 == 0 {
                while let Some(whole) = store.next_whole() {
                    while store.take(whole).is_some() { back += 1; }
                }
                while store.next_drop().is_some() { back += 1; }
                prop_assert!(store.fragments() <= 40);
            }
        }
        store.expire(0, u64::MAX);
        while let Some(whole) = store.next_whole() {
            while store.take(whole).is_some() { back += 1; }
        }
        while store.next_drop().is_some() { back += 1; }
        prop_assert_eq!(given, back, "nothing is lost or doubled");
        prop_assert_eq!((store.datagrams(), store.fragments()), (0, 0));
    }
}

#[test]
fn the_first_fragment_is_known_when_time_is_over() {
    let mut store = Fragments::new(4, 16);
    give(&mut store, 1, span(8, 16, true), 0).unwrap();
    give(&mut store, 1, span(0, 8, true), 10).unwrap();
    store.expire(1000, 999);
    assert!(!store.is_due());
    store.expire(1000, 1000);
    let (_, dropped) = collect(&mut store);
    let want = [
        (bytes(1, span(0, 8, true)), Fault::Timeout, true),
        (bytes(1, span(8, 16, true)), Fault::Timeout, false),
    ];
    assert_eq!(dropped, want);
}

#[test]
fn an_overlap_takes_all_of_the_datagram_and_its_rest_along() {
    let mut store = Fragments::new(4, 16);
    give(&mut store, 1, span(0, 16, true), 0).unwrap();
    let message = give(&mut store, 1, span(8, 24, true), 1);
    assert_eq!(message, Err(Fault::Overlap));
    let (_, dropped) = collect(&mut store);
    assert_eq!(dropped.len(), 1);
    assert_eq!(dropped[0].1, Fault::Overlap);
    let message = give(&mut store, 1, span(16, 24, false), 999);
    assert_eq!(message, Err(Fault::Spoiled));
    assert_eq!(give(&mut store, 1, span(16, 24, false), 1000), Ok(()));
}

#[test]
fn congestion_marks_are_put_together() {
    let mut store = Fragments::new(4, 16);
    let mut facts = |marks: [u8; 2]| {
        for (at, ecn) in marks.into_iter().enumerate() {
            let at = at as u32 * 8;
            let span = Span {
                ecn,
                ..span(at, at + 8, at == 0)
            };
            give(&mut store, 9, span, 0).unwrap();
        }
        let whole = store.next_whole().unwrap();
        let facts = store.facts(whole);
        while store.take(whole).is_some() {}
        facts
    };
    assert_eq!(facts([0, 0]), (16, Some(0)));
    assert_eq!(facts([2, 3]), (16, Some(3)));
    assert_eq!(facts([1, 2]), (16, Some(1)));
    assert_eq!(facts([0, 3]), (16, None));
}

#[test]
fn buffers_count_and_not_fragments_and_a_lower_limit_applies_to_what_waits() {
    let bounds = Bounds {
        buffers: 40,
        ..BOUNDS
    };
    let mut store = Store::<u32, u32>::new(64, 512);
    let of = |chained| Span {
        chained,
        ..span(0, 8, true)
    };
    let give = |store: &mut Store<u32, u32>, key: u32, chained| {
        let leave = store.offer(&key, of(chained), &bounds, u64::from(key));
        leave.map(|leave| store.put(leave, key))
    };
    for key in 0..4 {
        give(&mut store, key, 9).unwrap();
    }
    assert_eq!((store.buffers(), store.next_drop()), (40, None));
    give(&mut store, 4, 0).unwrap();
    assert_eq!(store.next_drop(), Some((0, Fault::Evicted, true)));
    assert_eq!(store.buffers(), 31);
    assert_eq!(
        give(&mut store, 5, 40),
        Err(Fault::Full),
        "it fits in no case, and none goes for it"
    );
    assert_eq!((store.next_drop(), store.buffers()), (None, 31));
    // The limit is lower after another worker was added.
    store.shrink(20);
    let gone: Vec<u32> = std::iter::from_fn(|| store.next_drop().map(|it| it.0)).collect();
    assert_eq!((gone, store.buffers()), (vec![1, 2], 11));
}
