//! The items of "A bad day": what peers, disks, floods and other users do to the daemon, a number of the issue each.

mod data;

use super::{Item, Work, item};

/// The tests of `apps/volley/tests/peers.rs` whose names hold one of these words.
macro_rules! peers {
    ($($word:literal),+) => {
        Work::Command(&["test", "-p", "volley", "--test", "peers", "--", $($word),+])
    };
}

pub const ITEMS: [Item; 8] = [
    item(
        "blocked-worker",
        "1: peers fill the event counters that they are notified by, and make them block: forwarding, answers and the end go on",
        peers!["blocks_nothing"],
    ),
    item(
        "shrunk-memory",
        "2: memif and vhost-user peers shrink their memory, many of each, in either order: each interface names the fault",
        peers!["shrinks_in_either_order"],
    ),
    item(
        "peer-memory",
        "9: sparse files of 4 GB: what a peer left out costs no more than peer_charge_mb, also in a cgroup of 600 MB",
        peers!["cost_no_more", "are_refused", "does_not_end_a_daemon"],
    ),
    item(
        "shared-memory",
        "1, 2, 9: the crate through which peers' memory and event counters go, with the way taken where the kernel lacks AIO",
        Work::Command(&["test", "-p", "volley-shm"]),
    ),
    data::FRAGMENTS,
    data::SCAN,
    data::TLS,
    data::ADDRESSES,
];
