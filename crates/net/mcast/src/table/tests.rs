use super::*;
use proptest::prelude::*;
use volley_fib::{V4, V6};

/// A change of the table.
#[derive(Clone, Debug)]
enum Deed<F: Family> {
    Set(Name<F>, Vec<u32>, Vec<u32>),
    Remove(Name<F>),
    Forget(u32),
}

/// A small set of addresses, so that routes collide and cover each other.
fn name<F: Family>() -> impl Strategy<Value = Name<F>> {
    let top = u32::from(F::BITS) - 8;
    let group =
        (0u128..4, 0u128..4).prop_map(move |(high, low)| 0xef << top | high << (top - 4) | low);
    let lens = prop::sample::select(vec![8, 10, 12, F::BITS - 2, F::BITS - 1, F::BITS]);
    let source = prop::option::of(0u128..4);
    (0u32..3, group, lens, source).prop_map(|(table, group, len, source)| {
        let len = if source.is_some() { F::BITS } else { len };
        Name {
            table,
            group: F::first(F::from_wide(group), len),
            len,
            source: source.map(F::from_wide),
        }
    })
}

fn ports() -> impl Strategy<Value = Vec<u32>> {
    let some = prop::collection::btree_set(0u32..5, 1..4);
    some.prop_map(|ports| ports.into_iter().collect())
}

fn deed<F: Family>() -> impl Strategy<Value = Deed<F>> {
    prop_oneof![
        6 => (name(), ports(), ports()).prop_map(|(n, a, f)| Deed::Set(n, a, f)),
        3 => name().prop_map(Deed::Remove),
        1 => (0u32..5).prop_map(Deed::Forget),
    ]
}

/// Routes as a list.
type Plain<F> = Vec<(Name<F>, Vec<u32>, Vec<u32>)>;

fn plain<F: Family>(all: &mut Plain<F>, deed: &Deed<F>) {
    match deed {
        Deed::Set(name, accept, forward) => {
            all.retain(|(n, ..)| n != name);
            all.push((*name, accept.clone(), forward.clone()));
        }
        Deed::Remove(name) => all.retain(|(n, ..)| n != name),
        Deed::Forget(port) => {
            for (_, accept, forward) in all.iter_mut() {
                accept.retain(|p| p != port);
                forward.retain(|p| p != port);
            }
            all.retain(|(_, accept, _)| !accept.is_empty());
        }
    }
}

/// The best route by linear search: one with a source before any without, then the longest prefix.
fn best<F: Family>(
    all: &Plain<F>,
    table: u32,
    source: F::Addr,
    group: F::Addr,
) -> Option<(Vec<u32>, Vec<u32>)> {
    let covers = |name: &Name<F>| {
        name.table == table
            && name.source.is_none_or(|s| s == source)
            && F::first(group, name.len) == name.group
    };
    let found = all.iter().filter(|(name, ..)| covers(name));
    let best = found.max_by_key(|(name, ..)| (name.source.is_some(), name.len));
    best.map(|(_, accept, forward)| (accept.clone(), forward.clone()))
}

fn agree<F: Family>(deeds: &[Deed<F>]) {
    let domain = Domain::new();
    let reader = domain.register();
    let (mut mfib, mut list) = (Mfib::<F>::new(&domain, 1), Plain::new());
    let snap = mfib.snap();
    for deed in deeds {
        match deed {
            Deed::Set(name, accept, forward) => {
                mfib.set(*name, accept.clone(), forward.clone()).unwrap();
            }
            Deed::Remove(name) => {
                let there = list.iter().any(|(n, ..)| n == name);
                assert_eq!(mfib.remove(name), there);
            }
            Deed::Forget(port) => mfib.forget(*port),
        }
        mfib.publish();
        plain(&mut list, deed);
        assert_eq!(mfib.iter().count(), list.len());
        let plane = snap.read(reader.guard());
        let top = u32::from(F::BITS) - 8;
        for at in 0u128..3 * 16 * 5 {
            let (table, high, low, source) = (at as u32 % 3, at / 3 % 4, at / 12 % 4, at / 48);
            let group = F::from_wide(0xef << top | high << (top - 4) | low);
            let source = F::from_wide(source);
            let id = plane.find(table, source, group);
            let entry = id.map(|id| plane.entry(id).expect("a number that was found"));
            let found = entry.map(|e| (e.accept.to_vec(), e.forward.to_vec()));
            assert_eq!(found, best(&list, table, source, group));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if std::env::var_os("VOLLEY_SMALL").is_some() { 4 } else { 64 }))]

    #[test]
    fn ip4_agrees_with_a_look_at_all_routes(deeds in prop::collection::vec(deed::<V4>(), 1..60)) {
        agree(&deeds);
    }

    #[test]
    fn ip6_agrees_with_a_look_at_all_routes(deeds in prop::collection::vec(deed::<V6>(), 1..60)) {
        agree(&deeds);
    }
}

fn one(group: u32) -> Name<V4> {
    Name {
        table: 0,
        group,
        len: 32,
        source: None,
    }
}

#[test]
fn a_number_names_one_route_or_none() {
    let mut mfib = Mfib::<V4>::new(&Domain::new(), 2);
    let id = |mfib: &Mfib<V4>, group| mfib.current().find(0, 1, group);
    mfib.set(one(7), vec![1], vec![2]).unwrap();
    mfib.publish();
    let first = id(&mfib, 7).unwrap();
    mfib.set(one(7), vec![3], vec![]).unwrap();
    mfib.publish();
    assert_eq!(
        id(&mfib, 7),
        Some(first),
        "other interfaces, the same route"
    );
    assert_eq!(*mfib.current().entry(first).unwrap().accept, [3]);
    assert!(mfib.remove(&one(7)) && !mfib.remove(&one(7)));
    mfib.publish();
    assert!(mfib.current().entry(first).is_none());
    mfib.set(one(8), vec![1], vec![2]).unwrap();
    mfib.publish();
    assert_ne!(id(&mfib, 8), Some(first));
    assert!(
        mfib.current().entry(first).is_none(),
        "another route is in its slot"
    );
}

#[test]
fn what_was_carried_stays_with_the_route() {
    let mut mfib = Mfib::<V4>::new(&Domain::new(), 2);
    mfib.set(one(7), vec![1], vec![2]).unwrap();
    let sums = |mfib: &Mfib<V4>| mfib.iter().next().unwrap().1.counts.sums();
    let counts = mfib.iter().next().unwrap().1.counts.clone();
    counts.passed(0, 100);
    counts.passed(1, 10);
    counts.refused(1);
    mfib.set(one(7), vec![1], vec![2, 3]).unwrap();
    let (packets, bytes, wrong) = (2, 110, 1);
    let want = Sums {
        packets,
        bytes,
        wrong,
    };
    assert_eq!(sums(&mfib), want);
    mfib.remove(&one(7));
    mfib.set(one(7), vec![1], vec![2]).unwrap();
    assert_eq!(sums(&mfib), Sums::default());
}

#[test]
fn there_is_an_end_of_room() {
    let mut mfib = Mfib::<V4>::new(&Domain::new(), 1);
    for group in 0..MROUTES as u32 {
        mfib.set(one(group), vec![1], vec![]).unwrap();
    }
    let more = one(MROUTES as u32);
    assert_eq!(mfib.set(more, vec![1], vec![]), Err(TooMany));
}

#[test]
fn many_changes_are_published_as_one() {
    let mut mfib = Mfib::<V4>::new(&Domain::new(), 1);
    mfib.set(one(7), vec![1], vec![2]).unwrap();
    mfib.publish();
    let before: *const Plane<V4> = mfib.current();
    mfib.publish();
    assert!(std::ptr::eq(before, mfib.current()), "nothing has changed");
    mfib.set(one(8), vec![1], vec![2]).unwrap();
    mfib.remove(&one(7));
    let found = |mfib: &Mfib<V4>| [7, 8].map(|group| mfib.current().find(0, 1, group).is_some());
    assert_eq!(found(&mfib), [true, false], "workers have the old routes");
    mfib.publish();
    assert_eq!(found(&mfib), [false, true]);
}

/// Members of group 7: interface 5 with all sources but 1, interface 6 with source 2 only.
#[test]
fn members_are_ways_out_of_what_covers_their_group() {
    let mut mfib = Mfib::<V4>::new(&Domain::new(), 1);
    let want = |interface, exclude, source: u32| GroupState {
        interface,
        exclude,
        sources: [source].into(),
    };
    let all = vec![want(5, true, 1), want(6, false, 2)];
    let out = |mfib: &Mfib<V4>, source, group| {
        let id = mfib.current().find(0, source, group)?;
        Some(mfib.current().entry(id)?.forward.to_vec())
    };
    mfib.join((0, 7), all.clone());
    mfib.publish();
    assert_eq!(out(&mfib, 3, 7), None, "members make no route");
    let wide = Name { len: 24, ..one(0) };
    mfib.set(wide, vec![1], vec![9]).unwrap();
    mfib.publish();
    let by_source = |mfib: &Mfib<V4>| [1, 2, 3].map(|source| out(mfib, source, 7));
    let want = [vec![9], vec![9, 5, 6], vec![9, 5]].map(Some);
    assert_eq!(by_source(&mfib), want);
    assert_eq!(out(&mfib, 3, 8), Some(vec![9]));
    mfib.set(one(7), vec![1], vec![5, 8]).unwrap();
    mfib.publish();
    let want = [vec![5, 8], vec![5, 8, 6], vec![5, 8]].map(Some);
    assert_eq!(by_source(&mfib), want);
    let source = Name {
        source: Some(3),
        ..one(7)
    };
    mfib.set(source, vec![2], vec![]).unwrap();
    mfib.publish();
    assert_eq!(out(&mfib, 3, 7), Some(vec![5]));
    mfib.remove(&source);
    mfib.remove(&one(7));
    mfib.publish();
    // Packets in flight keep their route when the members leave.
    let under_way = mfib.current().find(0, 2, 7).unwrap();
    mfib.join((0, 7), Vec::new());
    mfib.publish();
    assert_eq!(by_source(&mfib), [9, 9, 9].map(|port| Some(vec![port])));
    let entry = mfib.current().entry(under_way).unwrap();
    assert_eq!(entry.forward.to_vec(), [9]);
    mfib.join((0, 7), all);
    mfib.forget(1);
    mfib.publish();
    assert_eq!(by_source(&mfib), [None, None, None]);
    assert_eq!(mfib.derived_count, 0);
}
