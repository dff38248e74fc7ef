use super::*;
use proptest::prelude::*;

const SECOND: u64 = 1_000_000_000;

fn rules(learn: bool, limit: u32, age_s: u64) -> Rules {
    Rules {
        learn,
        limit,
        age_ns: age_s * SECOND,
    }
}

fn stations() -> MacEntries {
    MacEntries::new(&Domain::new(), 2)
}

fn at(n: u8) -> u64 {
    key([2, 0, 0, 0, 0, n], 1)
}

/// Whole sweeps; marks are not read before the interval has passed.
fn pass(stations: &mut MacEntries, from_s: u64, to_s: u64) {
    (from_s..=to_s).for_each(|s| stations.sweep(s * SECOND));
}

#[test]
fn keys_there_and_back() {
    let mac_of = [2, 0xab, 3, 4, 5, 0xff];
    assert_eq!(key(mac_of, 0x1234), 0x02ab_0304_05ff_1234);
    assert_eq!(mac(key(mac_of, 7)), mac_of);
}

#[test]
fn silent_stations_are_forgotten_and_those_in_use_are_not() {
    let domain = Domain::new();
    let reader = domain.register();
    let mut all = MacEntries::new(&domain, 2);
    all.set_rules(1, rules(true, 100, 60));
    all.set_rules(2, rules(true, 100, 0));
    all.hear(at(1), 4, 0);
    all.hear(at(2), 4, 0);
    all.hear(key([2, 0, 0, 0, 0, 3], 2), 4, 0);
    all.fix(at(4), 4).unwrap();
    pass(&mut all, 1, 58);
    assert_eq!(all.iter().count(), 4);
    // Another worker uses one of the entries.
    let snap = all.snap();
    let view = snap.read(reader.guard(), 1);
    view.mark(view.find(at(2)));
    pass(&mut all, 59, 66);
    assert!(all.get(at(1)).is_none(), "silent for a minute");
    assert_eq!(all.get(at(2)).unwrap().last_seen_ns / SECOND, 60);
    pass(&mut all, 67, 130);
    let left: Vec<u64> = all.iter().map(|(key, _)| key).collect();
    assert_eq!(
        left,
        [key([2, 0, 0, 0, 0, 3], 2), at(4)],
        "age 0, and configured"
    );
    let record = all.record(1).unwrap();
    assert_eq!(
        (record.learned, record.fixed, record.counts.aged),
        (0, 1, 2)
    );
}

#[test]
fn configured_stations_neither_move_nor_count_against_the_limit() {
    let mut all = stations();
    all.set_rules(1, rules(true, 2, 0));
    all.fix(at(1), 9).unwrap();
    for n in 1..5 {
        all.hear(at(n), 3, 0);
    }
    assert_eq!(all.get(at(1)).unwrap().port, 9);
    let record = *all.record(1).unwrap();
    assert_eq!((record.learned, record.fixed), (2, 1));
    assert_eq!((record.counts.learned, record.counts.refused), (2, 1));
    // A configured entry replaces a learned one, and is removed again.
    all.fix(at(2), 9).unwrap();
    assert_eq!(
        (all.record(1).unwrap().learned, all.record(1).unwrap().fixed),
        (1, 2)
    );
    all.unfix(at(2));
    all.unfix(at(3));
    assert_eq!((all.get(at(2)), all.get(at(3)).is_some()), (None, true));
    all.drop_domain(1);
    assert!(all.iter().next().is_none() && all.record(1).is_none());
    all.hear(at(1), 3, 0);
    assert!(all.iter().next().is_none(), "of a domain that is gone");
}

/// Reference model: a plain list.
#[derive(Default)]
struct Model {
    list: Vec<(u64, u32, bool, u64)>,
    refused: u64,
    moved: u64,
}

impl Model {
    fn hear(&mut self, key: u64, port: u32, now: u64, limit: usize) {
        let learned = self.list.iter().filter(|s| !s.2).count();
        match self.list.iter_mut().find(|s| s.0 == key) {
            Some(one) if one.2 => {}
            Some(one) => {
                self.moved += u64::from(one.1 != port);
                *one = (key, port, false, now);
            }
            None if learned >= limit => self.refused += 1,
            None => self.list.push((key, port, false, now)),
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Hear(u8, u32),
    Fix(u8, u32),
    Unfix(u8),
    FlushPort(u32),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (0u8..40, 0u32..4).prop_map(|(n, port)| Step::Hear(n, port)),
        2 => (0u8..40, 0u32..4).prop_map(|(n, port)| Step::Fix(n, port)),
        1 => (0u8..40).prop_map(Step::Unfix),
        1 => (0u32..4).prop_map(Step::FlushPort),
        2 => (1u64..40).prop_map(Step::Wait),
    ]
}

proptest! {
    #[test]
    fn like_a_list(steps in proptest::collection::vec(step(), 1..300)) {
        const AGE: u64 = 60 * SECOND;
        let (mut all, mut model, mut now) = (stations(), Model::default(), 0);
        all.set_rules(1, rules(true, 20, 60));
        for step in steps {
            match step {
                Step::Hear(n, port) => {
                    all.hear(at(n), port, now);
                    model.hear(at(n), port, now, 20);
                }
                Step::Fix(n, port) => {
                    all.fix(at(n), port).unwrap();
                    model.list.retain(|s| s.0 != at(n));
                    model.list.push((at(n), port, true, 0));
                }
                Step::Unfix(n) => {
                    all.unfix(at(n));
                    model.list.retain(|s| s.0 != at(n) || !s.2);
                }
                Step::FlushPort(port) => {
                    all.flush(|_, s| s.port == port && !s.fixed);
                    model.list.retain(|s| s.1 != port || s.2);
                }
                Step::Wait(seconds) => {
                    now += seconds * SECOND;
                    // A sweep begins at most every five seconds: the table may lag by that time.
                    all.sweep(now);
                    let late = now.saturating_sub(SWEEP_NS);
                    for &(key, _, _, heard) in model.list.iter().filter(|s| !s.2) {
                        let due = now - heard >= AGE;
                        prop_assert!(all.get(key).is_none() || !due || late.saturating_sub(heard) < AGE);
                        prop_assert!(all.get(key).is_some() || due);
                    }
                    model.list.retain(|s| s.2 || all.get(s.0).is_some());
                }
            }
            let mut got: Vec<_> = all.iter().map(|(k, s)| (k, s.port, s.fixed)).collect();
            let mut want: Vec<_> = model.list.iter().map(|s| (s.0, s.1, s.2)).collect();
            got.sort_unstable();
            want.sort_unstable();
            prop_assert_eq!(got, want);
            let counts = all.record(1).unwrap().counts;
            prop_assert_eq!((counts.moved, counts.refused), (model.moved, model.refused));
        }
    }
}
