//! Peers that do everything wrong: nothing crashes, nothing is touched outside the shared regions, the interface goes
//! down with a reason, and others go on.

mod support;

use proptest::prelude::*;
use std::cell::RefCell;
use support::hostile::{Arena, attack_master, attack_slave};

thread_local! {
    /// Made once: what one script breaks the next one finds.
    static ARENA: RefCell<Arena> = RefCell::new(Arena::new());
}

fn cases() -> ProptestConfig {
    let mut config = ProptestConfig::with_cases(600);
    if let Some(cases) = std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|n| n.parse().ok())
    {
        config.cases = cases;
    }
    config.failure_persistence = None;
    config
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn any_client_is_survived(script in proptest::collection::vec(any::<u8>(), 0..600)) {
        ARENA.with_borrow_mut(|arena| attack_master(arena, &script));
    }

    #[test]
    fn any_server_is_survived(script in proptest::collection::vec(any::<u8>(), 0..600)) {
        ARENA.with_borrow_mut(|arena| attack_slave(arena, &script));
    }
}

#[test]
fn attacks_end_with_named_reasons() {
    let mut arena = Arena::new();
    let mut seed = 1u64;
    for round in 0..400 {
        let script: Vec<u8> = (0..400)
            .map(|_| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (seed >> 56) as u8
            })
            .collect();
        if round % 2 == 0 {
            attack_master(&mut arena, &script);
        } else {
            attack_slave(&mut arena, &script);
        }
    }
    let reasons: Vec<&str> = arena.reasons.iter().map(String::as_str).collect();
    let text = reasons.join("\n");
    for wanted in [
        "peer fault: ring index out of range",
        "peer fault: descriptor points out of its region",
        "peer fault: descriptor names no region",
        "was truncated",
        "unexpected message",
        "the peer has gone",
    ] {
        assert!(text.contains(wanted), "{wanted} is not among:\n{text}");
    }
    println!("{text}");
}
