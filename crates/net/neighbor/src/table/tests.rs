use super::*;
use proptest::prelude::*;

const A: Mac = [2, 0, 0, 0, 0, 1];
const B: Mac = [2, 0, 0, 0, 0, 2];

fn key(n: u32) -> Key {
    (1, IpAddr::from((0x0a00_0000 + n).to_be_bytes()))
}

/// Queues a packet for an untrusted address.
fn wait(table: &mut Table<u32>, key: Key, packet: u32, now: u64) {
    let origin = Origin {
        net: (key.0, IpAddr::from([10, 0, 0, 0]), 8),
        worker: 0,
        trusted: false,
    };
    table.wait(key, origin, packet, now);
}

fn answer(mac: Mac) -> Word {
    Word::Answer {
        mac: Some(mac),
        solicited: true,
        overrides: true,
    }
}

fn effects(table: &mut Table<u32>) -> Vec<Effect<u32>> {
    std::mem::take(&mut table.effects)
}

#[test]
fn first_packets_wait_and_go_on_in_order() {
    let mut table = Table::default();
    for packet in 0..10 {
        wait(&mut table, key(1), packet, 0);
    }
    let message = effects(&mut table);
    assert_eq!(
        message,
        [
            Effect::Ask(key(1), None),
            Effect::Evict(vec![0]),
            Effect::Evict(vec![1])
        ],
        "asked once; the newest replaces the oldest (RFC 4861, 7.2.2)"
    );
    assert_eq!(table.counts.hold_full, 2);
    table.hear(key(1), answer(A), SECOND / 2);
    assert_eq!(
        effects(&mut table),
        [
            Effect::Publish(key(1), A),
            Effect::Release((2..10).collect())
        ]
    );
    wait(&mut table, key(1), 20, SECOND / 2 + LATE - 1);
    wait(&mut table, key(1), 21, SECOND / 2 + LATE);
    assert_eq!(
        effects(&mut table),
        [Effect::Release(vec![20]), Effect::GiveUp(vec![21])],
        "a late one is let go, but nothing goes in circles"
    );
    table.hear(key(1), answer(B), SECOND);
    assert_eq!(effects(&mut table), [Effect::Publish(key(1), B)]);
}

#[test]
fn a_silent_neighbour_frees_what_waited_for_it() {
    let mut table = Table::default();
    wait(&mut table, key(1), 7, 0);
    for now in 0..3 {
        table.turn(now * SECOND);
    }
    assert_eq!(
        effects(&mut table),
        [
            Effect::Ask(key(1), None),
            Effect::Ask(key(1), None),
            Effect::Ask(key(1), None)
        ]
    );
    table.turn(3 * SECOND);
    assert_eq!(effects(&mut table), [Effect::GiveUp(vec![7])]);
    assert!(table.is_empty() && table.next_due().is_none() && table.spare.is_empty());
    assert_eq!(table.counts.failed, 1);
}

#[test]
fn unknown_hosts_are_entered_only_when_they_ask() {
    let mut table = Table::<u32>::default();
    table.hear(key(1), answer(A), 0);
    assert!(table.is_empty() && table.effects.is_empty());
    table.hear(key(1), Word::Question(A), 0);
    assert_eq!(effects(&mut table), [Effect::Publish(key(1), A)]);
    table.forget_interface(1);
    assert_eq!(effects(&mut table), [Effect::Withdraw(key(1))]);
}

#[test]
fn the_oldest_stale_one_makes_room_and_those_that_answered_stay() {
    let mut table = Table::<u32>::default();
    table.limits.neighbors = 3;
    wait(&mut table, key(1), 1, 0);
    table.hear(key(1), answer(A), 0);
    wait(&mut table, key(2), 2, 1);
    table.hear(key(3), Word::Question(A), 3);
    table.hear(key(4), Word::Question(A), 2);
    effects(&mut table);
    table.hear(key(5), Word::Question(B), 5);
    assert_eq!(
        effects(&mut table),
        [Effect::Withdraw(key(4)), Effect::Publish(key(5), B)]
    );
    for n in 6..20 {
        wait(&mut table, key(n), n, 6);
    }
    assert_eq!(
        table.counts.evicted, 1,
        "who is sought takes no place of who is known"
    );
    assert_eq!(table.mac(key(1)), Some(Some(A)), "it answered a moment ago");
    for n in 6..8 {
        table.hear(key(n), answer(A), 7);
    }
    effects(&mut table);
    table.hear(key(9), answer(B), 8);
    assert_eq!(table.counts.refused, 1, "all have answered");
    assert_eq!(effects(&mut table), [Effect::GiveUp(vec![9])]);
}

#[test]
fn a_scan_leaves_places_and_questions_to_the_others() {
    let mut table = Table::<u32>::default();
    table.limits.incomplete = 100;
    let at = |net: u8, n: u32| (1, IpAddr::from([10, net, (n / 250) as u8, (n % 250) as u8]));
    let origin = |net: u8, trusted| Origin {
        net: (1, IpAddr::from([10, net, 0, 0]), 16),
        worker: 0,
        trusted,
    };
    // The neighbour answered once and is silent since.
    table.wait(at(1, 60_000), origin(1, false), 0, 0);
    table.hear(at(1, 60_000), answer(A), 0);
    table.forget(at(1, 60_000));
    // A scan of 5,000 addresses in one second, four times.
    let mut asked = BTreeSet::new();
    for n in 0..20_000 {
        let now = SECOND + u64::from(n) * SECOND / 5000;
        table.wait(at(1, n), origin(1, false), n, now);
        if n % 1000 == 999 {
            table.wait(at(2, n), origin(2, false), n, now);
            table.wait(at(1, 40_000 + n), origin(1, true), n, now);
            table.wait(at(1, 60_000), origin(1, false), n, now);
            for key in [at(2, n), at(1, 40_000 + n), at(1, 60_000)] {
                let may = table.effects.contains(&Effect::Ask(key, None));
                assert!(may, "{key:?} is asked for at once, {n}");
                table.forget(key);
            }
        }
        table.relieve(0, table.incomplete.waiting.len().saturating_sub(50));
        let incomplete = table.incomplete.on(1);
        assert!(incomplete <= 100, "{incomplete}");
        for effect in effects(&mut table) {
            if let Effect::Ask(key, _) = effect {
                asked.insert(key);
            }
        }
    }
    let asked = asked.len();
    assert!(
        (3900..=4200).contains(&asked),
        "all that the rate allows: {asked}"
    );
    assert!(table.counts.crowded > 0 && table.counts.evicted > 10_000);
}

#[test]
fn questions_are_bounded_in_rate() {
    let mut table = Table::default();
    (0..1000).for_each(|n| wait(&mut table, key(n), n, 0));
    let asked = |table: &mut Table<u32>| {
        let of = |e: &Effect<u32>| matches!(e, Effect::Ask(..));
        effects(table).iter().filter(|e| of(e)).count()
    };
    assert_eq!(asked(&mut table), 75, "the rest is for others");
    for step in 1..=20u64 {
        table.turn(step * SECOND / 20);
    }
    let n = asked(&mut table);
    assert!((850..=1100).contains(&n), "{n}");
}

#[derive(Clone, Debug)]
enum Event {
    Wait(u32),
    Hear(u32, Word),
    Pass(u64),
    Forget(u32),
}

fn event() -> impl Strategy<Value = Event> {
    let word = prop_oneof![
        Just(Word::Question(A)),
        Just(Word::Question(B)),
        Just(answer(A)),
        Just(answer(B)),
    ];
    prop_oneof![
        (0..12u32).prop_map(Event::Wait),
        (0..12u32, word).prop_map(|(n, w)| Event::Hear(n, w)),
        (0..40 * SECOND).prop_map(Event::Pass),
        (0..12u32).prop_map(Event::Forget),
    ]
}

proptest! {
    /// Every packet is waiting or was returned exactly once; limits hold; the indexes agree with the entries; and the published
    /// addresses are those of the table.
    #[test]
    fn nothing_is_lost(events in proptest::collection::vec(event(), 0..80)) {
        let mut table = Table::<u32>::default();
        (table.limits.neighbors, table.limits.held) = (6, 3);
        table.limits.incomplete = 4;
        let (mut now, mut next, mut back) = (0, 0, Vec::new());
        let mut published = HashMap::new();
        for event in events {
            match event {
                Event::Wait(n) => {
                    wait(&mut table, key(n), next, now);
                    next += 1;
                }
                Event::Hear(n, word) => table.hear(key(n), word, now),
                Event::Pass(span) => {
                    now += span;
                    table.turn(now);
                }
                Event::Forget(n) => table.forget(key(n)),
            }
            for effect in effects(&mut table) {
                match effect {
                    Effect::Release(packets) | Effect::GiveUp(packets) | Effect::Evict(packets) => back.extend(packets),
                    Effect::Publish(key, mac) => _ = published.insert(key, mac),
                    Effect::Withdraw(key) => prop_assert!(published.remove(&key).is_some()),
                    Effect::Ask(key, _) => prop_assert!(table.mac(key).is_some()),
                }
            }
            let waiting: Vec<u32> = table.slots.values().flat_map(|s| s.held.iter().copied()).collect();
            let mut all: Vec<u32> = back.iter().chain(&waiting).copied().collect();
            all.sort_unstable();
            prop_assert_eq!(all, (0..next).collect::<Vec<_>>());
            let sought = table.iter().filter(|s| s.mac.is_none()).count();
            prop_assert!(table.len() - sought <= 6 && table.due.len() == table.len());
            prop_assert_eq!(table.known_on.get(&1).copied().unwrap_or(0), table.len() - sought);
            prop_assert!(table.incomplete.on(1) <= 4 && table.incomplete.all.len() == table.incomplete.on(1));
            let waits = table.slots.values().filter(|s| s.group.is_some() && !s.held.is_empty());
            prop_assert_eq!(waits.count(), table.incomplete.waiting.len());
            let known: HashMap<Key, Mac> =
                table.iter().filter_map(|s| Some((s.key, s.mac?))).collect();
            prop_assert_eq!(&known, &published);
            let spare = table.slots.iter().filter_map(|(k, s)| spare_key(*k, &s.entry));
            prop_assert_eq!(spare.collect::<BTreeSet<_>>(), table.spare.clone());
            for slot in table.slots.values() {
                prop_assert!(slot.held.len() <= 3);
                prop_assert!(slot.held.is_empty() || slot.entry.mac().is_none());
            }
        }
    }
}

#[test]
fn somebody_is_sought_without_a_packet_and_who_fails_is_named() {
    let mut table: Table<u32> = Table::default();
    table.seek(key(1), 0);
    table.seek(key(1), SECOND / 2);
    assert_eq!(effects(&mut table), [Effect::Ask(key(1), None)]);
    assert_eq!(table.state(key(1)), Some(State::Incomplete));
    table.hear(key(1), answer(A), SECOND / 2);
    table.hear(key(2), Word::Question(B), SECOND / 2);
    effects(&mut table);
    table.used(key(2), SECOND);
    assert_eq!(table.state(key(2)), Some(State::Delay));
    table.used(key(1), SECOND);
    assert_eq!(
        table.state(key(1)),
        Some(State::Reachable),
        "it answered a moment ago"
    );
    table.turn(6 * SECOND);
    assert_eq!(effects(&mut table), [Effect::Ask(key(2), Some(B))]);
    for now in 7..=9 {
        table.turn(now * SECOND);
    }
    assert_eq!(std::mem::take(&mut table.failed), [key(2)]);
    table.ask_once(key(2), 20 * SECOND);
    effects(&mut table);
    table.turn(21 * SECOND);
    assert_eq!(
        (effects(&mut table), &table.failed[..]),
        (vec![], &[key(2)][..])
    );
    table.forget(key(1));
    assert_eq!(table.failed.len(), 1, "that is no failure");
}
