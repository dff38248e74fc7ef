use super::*;

const SECOND: u64 = 1000 * MS;
/// Robustness 2, query interval 125 s, response 10 s: the group membership interval is 260 s, the last member query time 2 s.
const GMI: u64 = 260;
const LMQT: u64 = 2;
const G: u32 = 7;

/// A querier with the address 5 that has sent its startup queries.
fn querier() -> Querier<u32> {
    let mut it = Querier::new(crate::model::tests::querier());
    it.set_own(Some(5), 0);
    for at in 0..60 {
        it.turn(at * SECOND);
    }
    it
}

/// INCLUDE or EXCLUDE, seconds left on the group timer, and on each source timer.
type State = (bool, u64, Vec<(u32, u64)>);

fn state(it: &Querier<u32>, now: u64) -> Option<State> {
    let group = it.group(G)?;
    let left = |until: u64| until.saturating_sub(now) / SECOND;
    let sources = group.sources.iter().map(|(a, it)| (*a, left(it.until)));
    let until = if group.exclude { left(group.until) } else { 0 };
    Some((group.exclude, until, sources.collect()))
}

/// At 100 s sources 1 and 2 are requested (INCLUDE), or 1 and 2 are requested and 3 and 4 blocked (EXCLUDE).
fn begin(exclude: bool) -> Querier<u32> {
    let mut it = querier();
    let at = 100 * SECOND;
    if exclude {
        it.report(at, RecordType::ModeIsExclude, G, &[3, 4]);
    }
    it.report(at, RecordType::ModeIsInclude, G, &[1, 2]);
    it
}

/// State after a record 60 s later, and the queries that follow.
fn after(exclude: bool, kind: RecordType, list: &[u32]) -> (State, Vec<(Vec<u32>, bool)>) {
    let mut it = begin(exclude);
    let now = 160 * SECOND;
    it.next = u64::MAX;
    it.report(now, kind, G, list);
    let state = state(&it, now).unwrap();
    let asks = it.turn(now).into_iter().map(|ask| {
        assert_eq!(ask.group, Some(G));
        (ask.sources, ask.suppress)
    });
    (state, asks.collect())
}

#[test]
fn every_row_of_the_tables_holds() {
    use RecordType::*;
    // Timers set at 100 s have 200 s left at 160 s.
    const OLD: u64 = GMI - 60;
    let ask = |sources: &[u32]| vec![(sources.to_vec(), false)];
    let none = Vec::new;
    let inc = |sources: &[(u32, u64)]| (false, 0, sources.to_vec());
    let exc = |until, sources: &[(u32, u64)]| (true, until, sources.to_vec());
    for kind in [ModeIsInclude, AllowNewSources] {
        assert_eq!(
            after(false, kind, &[2, 9]),
            (inc(&[(1, OLD), (2, GMI), (9, GMI)]), none())
        );
        assert_eq!(
            after(true, kind, &[2, 3, 9]),
            (
                exc(OLD, &[(1, OLD), (2, GMI), (3, GMI), (4, 0), (9, GMI)]),
                none()
            )
        );
    }
    assert_eq!(
        after(false, ModeIsExclude, &[2, 9]),
        (exc(GMI, &[(2, OLD), (9, 0)]), none())
    );
    assert_eq!(
        after(true, ModeIsExclude, &[2, 3, 9]),
        (exc(GMI, &[(2, OLD), (3, 0), (9, GMI)]), none())
    );
    assert_eq!(
        after(false, BlockOldSources, &[2, 9]),
        (inc(&[(1, OLD), (2, LMQT)]), ask(&[2]))
    );
    assert_eq!(
        after(false, ChangeToExclude, &[2, 9]),
        (exc(GMI, &[(2, LMQT), (9, 0)]), ask(&[2]))
    );
    assert_eq!(
        after(false, ChangeToInclude, &[2, 9]),
        (inc(&[(1, LMQT), (2, GMI), (9, GMI)]), ask(&[1]))
    );
    assert_eq!(
        after(true, BlockOldSources, &[2, 3, 9]),
        (
            exc(OLD, &[(1, OLD), (2, LMQT), (3, 0), (4, 0), (9, LMQT)]),
            ask(&[2, 9])
        )
    );
    assert_eq!(
        after(true, ChangeToExclude, &[2, 3, 9]),
        (exc(GMI, &[(2, LMQT), (3, 0), (9, LMQT)]), ask(&[2, 9]))
    );
    let both = vec![(vec![], false), (vec![1], false)];
    assert_eq!(
        after(true, ChangeToInclude, &[2, 3, 9]),
        (
            exc(LMQT, &[(1, LMQT), (2, GMI), (3, GMI), (4, 0), (9, GMI)]),
            both
        )
    );
}

#[test]
fn who_leaves_is_asked_for_twice_and_then_gone() {
    let mut it = querier();
    it.next = u64::MAX;
    it.old_report(100 * SECOND, 2, G);
    assert_eq!(it.group(G).unwrap().version(101 * SECOND), 2);
    it.report(160 * SECOND, RecordType::BlockOldSources, G, &[1]);
    assert_eq!(state(&it, 160 * SECOND), Some((true, GMI - 60, vec![])));
    it.report(160 * SECOND, RecordType::ChangeToInclude, G, &[]);
    assert_eq!(state(&it, 160 * SECOND), Some((true, LMQT, vec![])));
    let mut times = Vec::new();
    for ms in 160_000..163_000 {
        times.extend(it.turn(ms * MS).iter().map(|_| ms));
    }
    assert_eq!(times, [160_000, 161_000]);
    assert!(it.group(G).is_none() && it.changed.contains(&G));
    // An IGMPv1 host sends no leave message: the group timer runs out.
    it.old_report(200 * SECOND, 1, G);
    it.report(210 * SECOND, RecordType::ChangeToInclude, G, &[]);
    assert_eq!(state(&it, 210 * SECOND), Some((true, GMI - 10, vec![])));
    it.turn(459 * SECOND);
    assert!(it.group(G).is_some());
    it.turn(460 * SECOND);
    assert!(it.group(G).is_none());
}

#[test]
fn timers_end_modes_and_sources() {
    let mut it = begin(true);
    // Sources 1 and 2 remain requested for longer than all others.
    it.report(160 * SECOND, RecordType::AllowNewSources, G, &[1]);
    it.turn(361 * SECOND);
    assert_eq!(state(&it, 361 * SECOND), Some((false, 0, vec![(1, 59)])));
    it.turn(420 * SECOND);
    assert!(it.group(G).is_none());
}

#[test]
fn the_lowest_address_asks() {
    let query = |group| Query {
        group,
        within_ms: 1000,
        suppress: false,
        robustness: 3,
        interval_s: 20,
    };
    let mut it = begin(true);
    it.hear(160 * SECOND, 6, &query(None), &[]);
    assert_eq!(it.querier(), Some((5, None)));
    it.hear(160 * SECOND, 4, &query(None), &[]);
    // 3 x 20 s and half of 10 s.
    assert_eq!(it.querier(), Some((4, Some(225 * SECOND))));
    assert!(it.turn(200 * SECOND).is_empty());
    // A non-querier lowers its timers by the queries of the querier.
    it.report(200 * SECOND, RecordType::ChangeToInclude, G, &[]);
    assert!(state(&it, 200 * SECOND).unwrap().1 > 100);
    it.hear(200 * SECOND, 4, &query(Some(G)), &[1]);
    assert_eq!(state(&it, 200 * SECOND).unwrap().2[0], (1, 3));
    it.hear(200 * SECOND, 4, &query(Some(G)), &[]);
    assert_eq!(state(&it, 200 * SECOND).unwrap().1, 3);
    assert_eq!(it.turn(265 * SECOND).len(), 1, "it asks again");
    assert_eq!(it.querier(), Some((5, None)));
}

#[test]
fn queries_come_soon_at_first_and_then_at_the_interval() {
    let mut it = Querier::<u32>::new(crate::model::tests::querier());
    let mut times = Vec::new();
    for at in 0..500 {
        if at == 10 {
            it.set_own(Some(5), at * SECOND);
        }
        times.extend(it.turn(at * SECOND).iter().map(|_| at));
    }
    assert_eq!(times, [10, 42, 167, 292, 417]);
}

#[test]
fn there_is_room_for_so_many() {
    let mut it = querier();
    for group in 0..2000 {
        it.report(SECOND, RecordType::ModeIsExclude, group, &[]);
    }
    assert_eq!(
        (it.iter().count(), it.refused),
        (GROUPS, 2000 - GROUPS as u64)
    );
    let list: Vec<u32> = (0..100).collect();
    for kind in [
        RecordType::ModeIsInclude,
        RecordType::BlockOldSources,
        RecordType::ModeIsExclude,
        RecordType::ChangeToExclude,
    ] {
        it.report(SECOND, kind, G, &list);
        assert_eq!(it.group(G).unwrap().sources.len(), GROUP_SOURCES);
    }
}
