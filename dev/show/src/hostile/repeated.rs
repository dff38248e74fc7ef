//! Items that repeat an attack many times: kills, damaged journals, operations of hostile peers.

use crate::run_items::{command, figures};
use crate::{Item, Sitting, Work, long, test_file};
use xtask::report::{Outcome, Pass};
use xtask::sanitize;

pub const KILLS: Item = long(
    "kills",
    "1,000 kill -9 of a daemon that commits: the next start has the old configuration or the new one",
    // Four daemons at a time: each kill takes less than a second.
    Work::Span(
        "VOLLEY_KILLS",
        1000,
        test_file!["commits", "a_daemon_killed_at_any_time"],
    ),
);

pub const DAMAGED: Item = long(
    "damaged-journals",
    "4: 1,000 journals with one to three damaged files: the active commit runs, or a sentence names the command that repairs it",
    Work::With(
        &[("VOLLEY_DAMAGED", "1000")],
        test_file!["damage", "a_damaged_journal_is_refused"],
    ),
);

pub const OPERATIONS: Item = long(
    "peer-operations",
    "a million messages and writes of hostile memif, vhost-user and virtio peers, the first 20,000 also under valgrind memcheck: \
     at most 16 MiB more memory, no file left",
    Work::Call(operations),
);

/// Drivers with such a test: memif and vhost.
const DRIVERS: usize = 2;
const TEST: [&str; 2] = ["hostile", "many_operations"];
/// Operations of the peers of each driver.
const ALL: &str = "500000";
/// Operations of the peers of each driver under valgrind, which is slow.
const CHECKED: &str = "10000";

fn operations(sitting: &Sitting<'_>) -> Outcome {
    let variable = "VOLLEY_OPERATIONS";
    let [file, test] = TEST;
    let words = ["test", "--workspace", "--test", file, "--", test];
    let all = match command(sitting, &words, &[(variable, ALL)]) {
        Pass(all) => all,
        other => return other,
    };
    let checked = sanitize::memcheck_test(sitting.home, DRIVERS, TEST, (variable, CHECKED));
    Outcome::of(checked.map(|text| format!("{all}; under valgrind memcheck{}", figures(&text))))
}
