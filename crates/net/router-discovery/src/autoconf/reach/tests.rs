use super::*;

fn s(seconds: u64) -> u64 {
    seconds * SECOND
}

#[test]
fn who_answers_goes_first_then_who_is_not_known_then_who_is_silent() {
    let known = Reach::Known { answered: false };
    let silent = Reach::Silent { again: 0 };
    let places: Vec<u8> = [known, Reach::New, Reach::Sought, silent]
        .iter()
        .flat_map(|reach| [0, 1, 2, 9].map(|preference| reach.place(preference)))
        .collect();
    assert_eq!(places, [0, 1, 2, 2, 3, 4, 5, 5, 3, 4, 5, 5, 6, 6, 6, 6]);
}

#[test]
fn a_router_is_sought_and_one_that_does_not_answer_is_asked_once_a_minute() {
    let mut reach = Reach::New;
    assert_eq!(
        reach.look(ReachabilityEvent::NoEntry, 0),
        Some(AutoconfAction::Seek)
    );
    assert_eq!(reach.look(ReachabilityEvent::Sought, s(1)), None);
    reach.fail(s(3));
    assert!(reach.is_silent());
    // An advertisement creates a neighbour entry, but does not confirm it.
    assert_eq!(reach.look(ReachabilityEvent::Known, s(4)), None);
    let asked: Vec<u64> = (4..300)
        .filter(|at| {
            reach.look(ReachabilityEvent::NoEntry, s(*at)) == Some(AutoconfAction::AskOnce)
        })
        .collect();
    assert_eq!(asked, [63, 123, 183, 243]);
    reach.fail(s(300));
    assert_eq!(
        reach,
        Reach::Silent { again: s(303) },
        "it was known before"
    );
    assert_eq!(
        reach.look(ReachabilityEvent::Sought, s(303)),
        None,
        "somebody asks already"
    );
    assert_eq!(reach.look(ReachabilityEvent::Answered, s(304)), None);
    assert_eq!(reach, Reach::Known { answered: true });
}

#[test]
fn one_that_was_known_is_sought_at_once_when_it_fails_and_when_it_is_forgotten() {
    let mut reach = Reach::New;
    assert_eq!(reach.look(ReachabilityEvent::Known, 0), None);
    assert_eq!(reach, Reach::Known { answered: false });
    reach.look(ReachabilityEvent::Answered, s(1));
    assert_eq!(reach.look(ReachabilityEvent::Known, s(40)), None);
    assert_eq!(reach, Reach::Known { answered: true }, "it did once");
    let mut failed = reach;
    failed.fail(s(50));
    assert_eq!(
        failed.look(ReachabilityEvent::NoEntry, s(50)),
        Some(AutoconfAction::AskOnce)
    );
    assert_eq!(failed, Reach::Silent { again: s(110) });
    // An operator cleared the table: this does not make the router silent.
    assert_eq!(
        reach.look(ReachabilityEvent::NoEntry, s(50)),
        Some(AutoconfAction::Seek)
    );
    assert_eq!(reach, Reach::Sought);
}
