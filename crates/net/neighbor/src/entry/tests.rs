use super::*;
use proptest::prelude::*;

const A: Mac = [2, 0, 0, 0, 0, 1];
const B: Mac = [2, 0, 0, 0, 0, 2];
const S: u64 = SECOND;

fn timers() -> Timers {
    Timers::default()
}

fn answer(mac: impl Into<Option<Mac>>, solicited: bool, overrides: bool) -> Word {
    Word::Answer {
        mac: mac.into(),
        solicited,
        overrides,
    }
}

/// An entry with MAC address A in a state, at time 0.
fn in_state(state: State) -> Entry {
    let mut entry = Entry::sought(0);
    if state == State::Incomplete {
        return entry;
    }
    entry.hear(answer(A, true, true), 0, &timers());
    entry.enter(state, 0, &timers());
    entry
}

#[test]
fn a_silent_neighbour_is_asked_three_times_a_second_apart() {
    let mut entry = Entry::sought(7 * S);
    let mut asked = Vec::new();
    loop {
        let now = entry.due();
        match entry.turn(now, &timers()) {
            Act::AskAll => asked.push(now / S),
            Act::Forget => break assert_eq!(now, 10 * S),
            other => panic!("{other:?}"),
        }
        assert_eq!(entry.turn(entry.due() - 1, &timers()), Act::Wait);
    }
    assert_eq!(asked, [7, 8, 9]);
}

#[test]
fn a_neighbour_that_answers_goes_round_all_states() {
    let mut entry = Entry::sought(0);
    assert_eq!(entry.turn(0, &timers()), Act::AskAll);
    assert!(entry.hear(answer(A, true, true), S / 2, &timers()));
    assert_eq!((entry.state(), entry.mac()), (State::Reachable, Some(A)));
    for (state, after) in [(State::Stale, 30), (State::Delay, 30)] {
        let due = entry.due();
        assert_eq!(due - entry.since(), after * S);
        assert_eq!(entry.turn(due, &timers()), Act::Wait);
        assert_eq!(entry.state(), state);
    }
    let probe = entry.due();
    assert_eq!(probe - entry.since(), 5 * S);
    for n in 0..3 {
        assert_eq!(entry.turn(probe + n * S, &timers()), Act::Ask(A));
        assert_eq!(entry.state(), State::Probe);
    }
    let mut silent = entry;
    assert_eq!(silent.turn(probe + 3 * S, &timers()), Act::Forget);
    assert!(!entry.hear(answer(A, true, true), probe + 2 * S, &timers()));
    assert_eq!(entry.state(), State::Reachable);
}

#[test]
fn who_only_asked_is_kept_for_hours_and_never_asked() {
    let mut entry = Entry::heard(A, 0, &timers());
    assert_eq!((entry.state(), entry.due()), (State::Stale, 4 * 3600 * S));
    assert_eq!(entry.turn(entry.due(), &timers()), Act::Forget);
    let mut used = Entry::heard(A, 0, &timers());
    used.used(S, &timers());
    assert_eq!((used.state(), used.due()), (State::Delay, 6 * S));
    assert_eq!(used.turn(6 * S, &timers()), Act::Ask(A));
}

#[test]
fn a_question_that_could_not_be_asked_does_not_count() {
    let mut entry = Entry::sought(0);
    for n in 0..10 {
        assert_eq!(entry.turn(n * S, &timers()), Act::AskAll);
        entry.postpone((n + 1) * S);
    }
}

/// Cases of RFC 4861, appendix C: state, message, resulting state, resulting MAC address.
#[test]
fn words_change_states_as_the_rfc_says() {
    use State::{Delay, Incomplete, Probe, Reachable, Stale};
    let cases = [
        (Incomplete, answer(None, true, true), Incomplete, None),
        (Incomplete, answer(A, true, false), Reachable, Some(A)),
        (Incomplete, answer(A, false, true), Stale, Some(A)),
        (Incomplete, Word::Question(B), Stale, Some(B)),
        (Reachable, answer(A, true, false), Reachable, Some(A)),
        (Reachable, answer(None, true, false), Reachable, Some(A)),
        (Reachable, answer(A, false, true), Reachable, Some(A)),
        (Reachable, answer(B, true, false), Stale, Some(A)),
        (Reachable, answer(B, false, false), Stale, Some(A)),
        (Reachable, answer(B, true, true), Reachable, Some(B)),
        (Reachable, answer(B, false, true), Stale, Some(B)),
        (Reachable, Word::Question(A), Reachable, Some(A)),
        (Reachable, Word::Question(B), Stale, Some(B)),
    ];
    let later = [Stale, Delay, Probe].into_iter().flat_map(|state| {
        [
            (state, answer(A, true, false), Reachable, Some(A)),
            (state, answer(None, true, true), Reachable, Some(A)),
            (state, answer(A, false, true), state, Some(A)),
            (state, answer(B, true, false), state, Some(A)),
            (state, answer(B, true, true), Reachable, Some(B)),
            (state, answer(B, false, true), Stale, Some(B)),
            (state, Word::Question(A), state, Some(A)),
            (state, Word::Question(B), Stale, Some(B)),
        ]
    });
    for (from, word, to, mac) in cases.into_iter().chain(later) {
        let mut entry = in_state(from);
        let before = entry.mac();
        let new = entry.hear(word, S, &timers());
        assert_eq!((entry.state(), entry.mac()), (to, mac), "{from:?} {word:?}");
        assert_eq!(new, mac != before, "{from:?} {word:?}");
    }
}

#[derive(Clone, Debug)]
enum Event {
    Say(Word),
    Use,
    Pass(u64),
}

fn event() -> impl Strategy<Value = Event> {
    let mac = prop_oneof![Just(A), Just(B)];
    let answered = (
        proptest::option::of(mac.clone()),
        any::<bool>(),
        any::<bool>(),
    );
    prop_oneof![
        mac.prop_map(|mac| Event::Say(Word::Question(mac))),
        answered.prop_map(|(mac, s, o)| Event::Say(answer(mac, s, o))),
        Just(Event::Use),
        (0..200 * S).prop_map(Event::Pass),
    ]
}

proptest! {
    /// For every sequence of events: all states but INCOMPLETE have a MAC address, the next due time never decreases, and an
    /// entry without further messages is deleted after a bounded number of requests.
    #[test]
    fn every_entry_comes_to_an_end(events in proptest::collection::vec(event(), 0..40)) {
        let (timers, mut now, mut entry) = (timers(), 0, Entry::sought(0));
        for event in events {
            match event {
                Event::Say(word) => {
                    entry.hear(word, now, &timers);
                }
                Event::Use => entry.used(now, &timers),
                Event::Pass(span) => {
                    now += span;
                    if entry.turn(now, &timers) == Act::Forget {
                        return Ok(());
                    }
                }
            }
            prop_assert_eq!(entry.mac().is_none(), entry.state() == State::Incomplete);
            prop_assert!(entry.since() <= now);
        }
        let mut questions = 0;
        for _ in 0..20 {
            now = now.max(entry.due());
            match entry.turn(now, &timers) {
                Act::Forget => return Ok(()),
                Act::Wait => {}
                Act::Ask(mac) => {
                    prop_assert_eq!(Some(mac), entry.mac());
                    questions += 1;
                }
                Act::AskAll => questions += 1,
            }
            prop_assert!(questions <= 3);
        }
        prop_assert!(false, "it never ends: {:?}", entry);
    }
}

#[test]
fn who_is_asked_once_is_asked_no_more_than_that() {
    let t = timers();
    let mut sought = Entry::sought(0);
    sought.once(5 * S, &t);
    assert_eq!(sought.turn(5 * S, &t), Act::AskAll);
    assert_eq!(sought.turn(6 * S - 1, &t), Act::Wait);
    assert_eq!(sought.turn(6 * S, &t), Act::Forget);
    let mut stale = Entry::heard(A, 0, &t);
    stale.once(5 * S, &t);
    assert_eq!(
        (stale.state(), stale.turn(5 * S, &t)),
        (State::Probe, Act::Ask(A))
    );
    assert_eq!(stale.turn(6 * S, &t), Act::Forget);
    for state in [State::Reachable, State::Delay, State::Probe] {
        let mut entry = in_state(state);
        let before = entry;
        entry.once(S, &t);
        assert_eq!(entry, before, "{state:?}");
    }
}
