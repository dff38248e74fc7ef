//! Hostile peers: nothing crashes, nothing outside the shared regions is accessed, the interface goes down with a reason,
//! and other interfaces keep working.

mod support;

use proptest::prelude::*;
use std::cell::RefCell;
use support::hostile::{Arena, REGION, RING, attack_master, attack_slave, reason_after};

thread_local! {
    /// Created once, so damage by one script affects the next one.
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
fn each_fault_has_its_name() {
    let mut arena = Arena::new();
    let (head, first) = (6, 128);
    let chain = |length: u32| {
        let mut bytes = Vec::new();
        for slot in 0..16u16 {
            let next = u16::from(slot < 15 || length < 1000);
            bytes.extend([next.to_le_bytes(), [0, 0]].concat());
            bytes.extend([length.to_le_bytes(), [0; 4], [0; 4]].concat());
        }
        bytes
    };
    let one = |region: u8, length: u32, offset: u32| {
        let mut bytes = vec![0, 0, region, 0];
        bytes.extend([length.to_le_bytes(), offset.to_le_bytes()].concat());
        bytes
    };
    let index = |n: u8| (head, vec![n, 0]);
    let posted = (RING + head, vec![16, 0]);
    let region = REGION as u32;
    let attacks = [
        (vec![index(17)], "ring index out of range (17)"),
        (
            vec![(first, one(9, 64, 0)), index(1)],
            "descriptor names no region (9)",
        ),
        (
            vec![(first, one(0, 65, region - 64)), index(1)],
            "descriptor points out of its region",
        ),
        (
            vec![(first, one(0, 64, u32::MAX)), index(1)],
            "descriptor points out of its region",
        ),
        (
            vec![(first, chain(256)), index(16)],
            "descriptor chain does not end (16)",
        ),
        (
            vec![(first, chain(8000)), index(16)],
            "packet too long (128000)",
        ),
        (
            vec![(RING + first, one(0, 0, 0)), posted.clone()],
            "descriptor of an empty buffer (0)",
        ),
        (
            vec![(RING + first, one(7, 256, 0)), posted.clone()],
            "descriptor names no region (7)",
        ),
        (
            vec![(RING + first, one(0, 256, region - 255)), posted],
            "points out of its region",
        ),
        (
            vec![(RING + head, vec![17, 0])],
            "ring index out of range (17)",
        ),
    ];
    for (writes, wanted) in attacks {
        let message = reason_after(&mut arena, &writes, None);
        assert!(
            message.starts_with("peer fault: ") && message.contains(wanted),
            "{message}, not {wanted}"
        );
    }
    let message = reason_after(&mut arena, &[], Some(0));
    assert_eq!(message, "peer fault: region 0 was truncated");
}
