//! Items about resources that packets and connections can exhaust: buffers, neighbour entries, client connections.

use crate::{Item, Work, item, objects, test_file};

pub const MULTICAST: Item = item(
    "multicast-undo",
    "8: 16,385 multicast routes in one transaction whose last request is refused: below 10 s and 300 MB more, the old route forwards",
    Work::Command(test_file!["mroutes"]),
);

pub const FULL_TABLE: Item = item(
    "full-table",
    "7: 962,000 routes by API are added, compared, committed and rolled back: each answer and completion meanwhile within 100 ms",
    Work::With(
        &[("VOLLEY_ROUTES", "962000"), ("VOLLEY_ANSWER_MS", "100")],
        test_file!["answers"],
    ),
);

pub const COMMITS: Item = item(
    "commit-differences",
    "7: ten commits of one change each with 100,000 routes: at most 1.2 times one commit on the disk, history within 100 ms",
    Work::Command(test_file!["commits", "commits_of_one_change_each"]),
);

pub const FRAGMENTS: Item = item(
    "held-buffers",
    "3: fragments for the router and in transit, and a scan, hold no more than their shares of the buffers: forwarding goes on",
    Work::Command(test_file!["reassembly", "leave_half_of_the_buffers"]),
);

pub const SCAN: Item = item(
    "neighbor-scan",
    "12: a scan of 300 and of 2,000 unused addresses a second: new neighbours resolve, known ones and other networks at once",
    Work::Command(test_file!["neighbors", "a_scan_of_unused_addresses"]),
);

pub const TLS: Item = item(
    "idle-tls",
    "11: 300 idle connections over TCP, 200 handshakes at once: the unix socket and other sources are served",
    Work::Command(test_file!["http", "idle_connections_over_tcp"]),
);

pub const ADDRESSES: Item = item(
    "many-addresses",
    "10: 4,000 and 16,000 addresses and networks in one transaction, interface up and down: added and removed in about four times the time",
    Work::Command(test_file!["addresses", "thousands_of_addresses"]),
);

/// Longest time of 200,000 routes, in seconds.
const SECONDS: f64 = 20.0;

pub const HOST_ROUTES: Item = item(
    "host-routes",
    "10: 200,000 host routes without a common /24 in one transaction: time, memory a route",
    Work::Call(|sitting| {
        objects::bulk(
            sitting,
            "scattered_host_routes",
            "200000",
            SECONDS,
            objects::BYTES,
        )
    }),
);

pub const LIMITS: Item = item(
    "limits",
    "10: more routes, tables, interfaces, addresses or sessions than [limits] allows, more than a cgroup of 220 MB can hold: refused, the daemon goes on",
    Work::Command(test_file!["limits"]),
);
