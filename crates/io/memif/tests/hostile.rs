//! Hostile peers: nothing crashes, nothing outside the shared regions is accessed, the interface goes down with a reason,
//! and other interfaces keep working.

mod support;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use std::cell::RefCell;
use support::hostile::{Arena, REGION, RING, attack_master, attack_slave, reason_after};
use support::process::{resident_kib, resources};

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

/// Most that the memory of this process may grow after the first tenth of the operations, in KiB.
const GROWTH_KIB: u64 = 16 << 10;
/// In shorter runs the growth is that of caches, and of valgrind.
const JUDGED: usize = 100_000;
/// Most files, and maps, of a connection that is ending.
const ENDING: usize = 4;

/// `VOLLEY_OPERATIONS=N` makes it N operations: messages, and writes into shared memory.
#[test]
fn many_operations_cost_no_memory() {
    let asked = std::env::var("VOLLEY_OPERATIONS").ok();
    let wanted: usize = asked.map_or(5000, |text| text.parse().unwrap());
    let mut arena = Arena::new();
    let mut runner = TestRunner::deterministic();
    let script = proptest::collection::vec(any::<u8>(), 0..600);
    let (mut scripts, mut warm) = (0, None);
    while arena.operations < wanted {
        let bytes = script.new_tree(&mut runner).unwrap().current();
        match scripts % 2 {
            0 => attack_master(&mut arena, &bytes),
            _ => attack_slave(&mut arena, &bytes),
        }
        scripts += 1;
        if warm.is_none() && arena.operations >= wanted / 10 {
            warm = Some((resident_kib(), resources()));
        }
    }
    let (before, open) = warm.unwrap();
    let (done, more) = (arena.operations, resident_kib().saturating_sub(before));
    println!(
        "{done} operations of hostile memif peers in {scripts} scripts: {more} KiB more than after a tenth, at most {GROWTH_KIB}"
    );
    // Other tests of this process need memory and files at the same time, unless this test was requested.
    if wanted >= JUDGED {
        assert!(more < GROWTH_KIB, "{more} KiB");
        // A connection may be ending at either time.
        let now = resources();
        let same = now.0 <= open.0 + ENDING && now.1 <= open.1 + ENDING;
        assert!(same, "files and maps: {now:?} after {open:?}");
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
