//! Model test of the store against a plain model that scans everything for each fragment.

use super::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const BOUNDS: Bounds = Bounds {
    datagrams: 64,
    fragments: 5,
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

/// Result for a fragment, which is identified by its number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Went {
    On(u32),
    Waits,
    Lost(Why),
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Why {
    Overlap,
    TooMany,
    Timeout,
    Evicted,
    Full,
}

fn why(fault: Fault) -> Why {
    match fault {
        Fault::Overlap => Why::Overlap,
        Fault::TooMany => Why::TooMany,
        Fault::Timeout => Why::Timeout,
        Fault::Evicted => Why::Evicted,
        Fault::Full => Why::Full,
        other => panic!("{other:?}"),
    }
}

/// A fragment: its datagram, its range, and the hash of its flow if it is the first.
#[derive(Clone, Copy, Debug)]
struct Given {
    key: u32,
    span: Span,
    hash: u32,
    later_ns: u64,
}

type Fragments = Flows<u32, usize>;

fn give(store: &mut Fragments, it: &Given, bounds: &Bounds, number: usize, now_ns: u64) -> Went {
    if it.span.start == 0 {
        let message = store.first(&it.key, (it.span, it.hash), bounds, now_ns);
        return message.map_or_else(|fault| Went::Lost(why(fault)), |()| Went::On(it.hash));
    }
    match store.later(&it.key, it.span, bounds, now_ns) {
        Ok(Later::Known(hash)) => Went::On(hash),
        Ok(Later::Wait(leave)) => {
            store.put(leave, number);
            Went::Waits
        }
        Err(fault) => Went::Lost(why(fault)),
    }
}

/// Takes all fragments that are ready or dropped.
fn collect(store: &mut Fragments) -> Vec<(usize, Went)> {
    let ready = std::iter::from_fn(|| store.next_ready().map(|(n, hash)| (n, Went::On(hash))));
    let mut out: Vec<_> = ready.collect();
    let dropped = std::iter::from_fn(|| {
        store
            .next_drop()
            .map(|(n, fault)| (n, Went::Lost(why(fault))))
    });
    out.extend(dropped);
    assert!(!store.is_due());
    out
}

#[derive(Default)]
struct Datagram {
    /// Hash, end of the first fragment, and its arrival time.
    known: Option<(u32, u32, u64)>,
    since_ns: u64,
    waits: Vec<(usize, u32)>,
    units: BTreeSet<u32>,
    total: Option<u32>,
}

impl Datagram {
    fn note(&mut self, span: Span) -> bool {
        self.units.extend(span.start / 8..span.end.div_ceil(8));
        if !span.more {
            self.total = Some(span.end.div_ceil(8));
        }
        let all = |total| self.units == (0..total).collect();
        self.total.is_some_and(all)
    }
}

#[derive(Default)]
struct Model(BTreeMap<u32, Datagram>);

impl Model {
    fn expire(&mut self, now: u64) -> Vec<(usize, Went)> {
        let mut late = Vec::new();
        self.0.retain(|_, it| {
            let stays = now - it.since_ns < BOUNDS.timeout_ns;
            if !stays {
                late.extend(it.waits.iter().map(|(n, _)| (*n, Went::Lost(Why::Timeout))));
            }
            stays
        });
        late
    }

    fn give(&mut self, new: &Given, number: usize, now: u64) -> (Went, Vec<(usize, Went)>) {
        let mut out = self.expire(now);
        let it = self.0.entry(new.key).or_insert(Datagram {
            since_ns: now,
            ..Datagram::default()
        });
        let span = new.span;
        if span.start == 0 {
            let same = it
                .known
                .filter(|(hash, end, _)| (*hash, *end) == (new.hash, span.end));
            if it.known.is_some() && same.is_none() {
                (it.units, it.total) = (BTreeSet::new(), None);
            }
            let born = same.map_or(now, |(_, _, born)| born);
            it.known = Some((new.hash, span.end, born));
            it.since_ns = now;
            out.extend(it.waits.drain(..).map(|(n, start)| match start < span.end {
                true => (n, Went::Lost(Why::Overlap)),
                false => (n, Went::On(new.hash)),
            }));
            if it.note(span) {
                self.0.remove(&new.key);
            }
            return (Went::On(new.hash), out);
        }
        let went = match it.known {
            Some((_, end, _)) if span.start < end => Went::Lost(Why::Overlap),
            Some((hash, ..)) => {
                it.since_ns = now;
                if it.note(span) {
                    self.0.remove(&new.key);
                }
                Went::On(hash)
            }
            None if it.waits.len() >= BOUNDS.fragments as usize => Went::Lost(Why::TooMany),
            None => {
                it.waits.push((number, span.start));
                it.note(span);
                Went::Waits
            }
        };
        (went, out)
    }
}

/// A fragment of one of a few datagrams, short enough that at most four separate ranges occur.
fn given() -> impl Strategy<Value = Given> {
    (
        0u32..4,
        0u32..8,
        1u32..5,
        any::<bool>(),
        (0u32..3, 0u64..300),
    )
        .prop_map(|(key, at, len, more, (hash, later_ns))| {
            let end = (at + len).min(8);
            // A first fragment is no whole datagram.
            let span = span(at * 8, end * 8, more || at == 0);
            let hash = hash + 1;
            Given {
                key,
                span,
                hash,
                later_ns,
            }
        })
}

/// Datagrams split at random, and the order in which their fragments arrive.
fn cuts() -> impl Strategy<Value = Vec<Given>> {
    let one = prop::collection::btree_set(1u32..200, 1..20);
    prop::collection::vec(one, 1..6)
        .prop_map(|all| {
            let mut fragments = Vec::new();
            for (key, cuts) in (0u32..).zip(&all) {
                let mut at = 0;
                for cut in cuts.iter().copied().chain([300]) {
                    let span = span(at * 8, cut * 8, cut < 300);
                    let (hash, later_ns) = (key + 100, 0);
                    fragments.push(Given {
                        key,
                        span,
                        hash,
                        later_ns,
                    });
                    at = cut;
                }
            }
            fragments
        })
        .prop_shuffle()
}

proptest! {
    #[test]
    fn whatever_comes_the_store_says_what_the_model_says(all in prop::collection::vec(given(), 1..200)) {
        let (mut store, mut model) = (Fragments::new(64, 512), Model::default());
        let mut now = 0;
        for (number, it) in all.iter().enumerate() {
            now += it.later_ns;
            let (want, mut others) = model.give(it, number, now);
            prop_assert_eq!(give(&mut store, it, &BOUNDS, number, now), want);
            let mut got = collect(&mut store);
            got.sort();
            others.sort();
            prop_assert_eq!(got, others);
            let known = model.0.values().filter(|it| it.known.is_some()).count();
            let (are, wait) = store.datagrams();
            prop_assert_eq!((are as usize, (are + wait) as usize), (known, model.0.len()));
            let waits: usize = model.0.values().map(|it| it.waits.len()).sum();
            prop_assert_eq!(store.fragments() as usize, waits);
            prop_assert_eq!(store.oldest_ns(), model.0.values().map(|it| it.since_ns).min());
        }
        store.expire(BOUNDS.timeout_ns, now + BOUNDS.timeout_ns);
        collect(&mut store);
        prop_assert_eq!((store.datagrams(), store.fragments()), ((0, 0), 0));
    }

    #[test]
    fn fragments_in_any_order_go_on_with_their_flow_once(all in cuts()) {
        let mut store = Fragments::new(64, 512);
        let bounds = Bounds { fragments: 64, ..BOUNDS };
        let mut went = Vec::new();
        for (number, it) in all.iter().enumerate() {
            went.push((number, give(&mut store, it, &bounds, number, 5)));
            let after = collect(&mut store);
            // Fragments that waited follow the first one in order of arrival.
            prop_assert!(after.is_sorted());
            prop_assert!(after.is_empty() || it.span.start == 0);
            went.extend(after);
        }
        let mut on: Vec<_> = went.into_iter().filter(|(_, went)| *went != Went::Waits).collect();
        on.sort();
        let want: Vec<_> = all.iter().enumerate().map(|(n, it)| (n, Went::On(it.hash))).collect();
        prop_assert_eq!(on, want);
    }

    #[test]
    fn a_datagram_is_over_when_all_of_it_came_in_order_or_in_reverse(cuts in cuts(), reverse in any::<bool>()) {
        let mut all: Vec<_> = cuts.into_iter().filter(|it| it.key == 0).collect();
        all.sort_by_key(|it| it.span.start);
        if reverse {
            all.reverse();
        }
        let bounds = Bounds { fragments: 64, ..BOUNDS };
        let mut store = Fragments::new(64, 512);
        for (number, it) in all.iter().enumerate() {
            prop_assert_eq!(store.datagrams() == (0, 0), number == 0);
            give(&mut store, it, &bounds, number, 5);
        }
        collect(&mut store);
        prop_assert_eq!((store.datagrams(), store.fragments()), ((0, 0), 0));
    }

    #[test]
    fn nothing_is_complete_that_lacks_a_byte(all in prop::collection::vec((0u32..40, 1u32..6, any::<bool>()), 1..60)) {
        let (mut cover, mut exact) = (CoveredRange::default(), Datagram::default());
        for (at, len, more) in all {
            let span = span(at * 8, (at + len) * 8, more);
            exact.note(span);
            cover.add(span);
            // More than the datagram's length may have arrived.
            let covers = |total| (0..total).all(|at| exact.units.contains(&at));
            prop_assert!(!cover.is_all() || exact.total.is_some_and(covers));
        }
    }

    #[test]
    fn a_flood_stays_within_bounds(all in prop::collection::vec((any::<u16>(), 0u32..9, any::<u8>()), 1..3000)) {
        let bounds = Bounds { datagrams: 16, fragments: 4, buffers: 20, timeout_ns: u64::MAX };
        let mut store = Fragments::new(32, 64);
        let (mut waited, mut back) = (0, 0);
        for (number, (key, at, hash)) in all.into_iter().enumerate() {
            let span = span(at * 8, at * 8 + 8, true);
            let it = Given { key: u32::from(key % 64), span, hash: u32::from(hash), later_ns: 0 };
            let went = give(&mut store, &it, &bounds, number, number as u64);
            waited += usize::from(went == Went::Waits);
            let (known, awaited) = store.datagrams();
            prop_assert!(known + awaited <= 16 && store.fragments() <= 64);
            if number % 7 == 0 {
                back += collect(&mut store).len();
                prop_assert!(store.fragments() <= 20);
            }
        }
        store.expire(0, u64::MAX);
        back += collect(&mut store).len();
        prop_assert_eq!(waited, back, "nothing is lost or doubled");
        prop_assert_eq!((store.datagrams(), store.fragments()), ((0, 0), 0));
    }
}

#[test]
fn later_fragments_alone_do_not_push_flows_out() {
    let bounds = Bounds {
        datagrams: 8,
        ..BOUNDS
    };
    let mut store = Fragments::new(64, 512);
    for key in 0..4 {
        store
            .first(&key, (span(0, 16, true), 7), &bounds, 0)
            .unwrap();
    }
    for key in 100..300 {
        let message = store.later(&key, span(16, 24, true), &bounds, 1);
        let Ok(Later::Wait(leave)) = message else {
            panic!("{message:?}")
        };
        store.put(leave, key as usize);
    }
    assert_eq!(store.datagrams(), (4, 4));
    assert_eq!(store.take_forgotten(), 0);
    let evicted = collect(&mut store);
    assert_eq!(evicted.len(), 196);
    assert!(evicted.is_sorted(), "the oldest go");
    // First fragments evict awaited datagrams, and then known ones.
    for key in 1000..1006 {
        store
            .first(&key, (span(0, 16, true), 7), &bounds, 2)
            .unwrap();
    }
    assert_eq!((store.datagrams(), store.take_forgotten()), ((8, 0), 2));
}

#[test]
fn however_long_its_fragments_come_a_flow_is_forgotten() {
    let mut store = Fragments::new(4, 16);
    let bounds = Bounds {
        timeout_ns: LIFE_NS / 4,
        ..BOUNDS
    };
    store.first(&1, (span(0, 8, true), 7), &bounds, 0).unwrap();
    let mut now = 0;
    let mut known = || {
        now += LIFE_NS / 8;
        let message = store.later(&1, span(8, 16, true), &bounds, now);
        (message == Ok(Later::Known(7)), now)
    };
    while known().0 {}
    assert!(known().1 <= 2 * LIFE_NS);
}

#[test]
fn buffers_count_and_not_fragments_and_a_lower_limit_applies_to_what_waits() {
    let bounds = Bounds {
        buffers: 40,
        ..BOUNDS
    };
    let mut store = Fragments::new(64, 512);
    for key in 0..5 {
        let later = Span {
            chained: 9,
            ..span(8, 16, true)
        };
        let Ok(Later::Wait(leave)) = store.later(&key, later, &bounds, u64::from(key)) else {
            panic!("{key}");
        };
        store.put(leave, key as usize);
    }
    assert_eq!(collect(&mut store), [(0, Went::Lost(Why::Evicted))]);
    assert_eq!(store.buffers(), 40);
    store.shrink(25);
    let gone = [1, 2].map(|n| (n, Went::Lost(Why::Evicted)));
    assert_eq!((collect(&mut store), store.buffers()), (gone.to_vec(), 20));
    store.first(&3, (span(0, 8, true), 7), &bounds, 9).unwrap();
    assert_eq!(collect(&mut store), [(3, Went::On(7))]);
    assert_eq!(store.buffers(), 10);
}
