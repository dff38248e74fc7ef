//! The items of "A bad day": hostile peers, disks, floods and other users; one item for each number of the issue.

mod data;
mod repeated;

use super::{Item, Sitting, Work, guest_items, item, long, test_file};
use xtask::report::{Fail, Outcome, Pass};
use xtask::sanitize;

pub const ITEMS: [Item; 31] = [
    item(
        "blocked-worker",
        "1: peers fill the event counters that they are notified by, and make them block: forwarding, answers and the end go on",
        Work::Command(test_file!["peers", "blocks_nothing"]),
    ),
    item(
        "shrunk-memory",
        "2: memif and vhost-user peers shrink their memory, many of each, in either order: each interface names the fault",
        Work::Command(test_file!["peers", "shrinks_in_either_order"]),
    ),
    item(
        "peer-memory",
        "9: sparse files of 4 GB: what a peer left out costs no more than peer_charge_mb, also in a cgroup of 600 MB",
        Work::Command(test_file![
            "peers",
            "cost_no_more",
            "are_refused",
            "does_not_end_a_daemon"
        ]),
    ),
    item(
        "shared-memory",
        "1, 2, 9: the crate through which peers' memory and event counters go, with the way taken where the kernel lacks AIO",
        Work::Command(&["test", "-p", "volley-shm"]),
    ),
    item(
        "journal",
        "4: every bit of the head and of the active commit flipped, cut or missing: a sentence, never a commit that was rolled back",
        Work::Command(&["test", "--workspace", "--lib", "journal"]),
    ),
    item(
        "damaged-start",
        "4: a daemon over damaged commits does not start, and the command that its error names repairs it",
        Work::Command(test_file!["damage", "damage", "crc_of_zlib"]),
    ),
    item(
        "full-disk-deadline",
        "5: a confirm deadline passes while the disk is full: what runs goes back, the disk is tried again",
        Work::Command(test_file!["damage", "deadline"]),
    ),
    item(
        "odd-files",
        "6: FIFOs, devices, endless and huge files, links as paths of every command: refused, and the daemon answers on",
        Work::Command(test_file!["odd_files"]),
    ),
    item(
        "private-files",
        "13: state directory, commits and captures belong to their user alone",
        Work::Command(test_file!["damage", "user_alone"]),
    ),
    item(
        "foreign-socket",
        "14, 15: another user's socket, one that does not accept, answers with escape sequences, token and key files that others read",
        Work::Command(test_file!["foreign_socket"]),
    ),
    item(
        "small-faults",
        "15: reads during a commit, odd numbers, long comments, SIGHUP, a read-only state directory",
        Work::Command(test_file![
            "damage",
            "while_a_commit",
            "end_nothing",
            "is_read"
        ]),
    ),
    item(
        "unit",
        "16: systemd starts the packaged unit in a guest: rated at most 2.5, and every driver works for its user with its capabilities",
        Work::Call(guest_items::unit),
    ),
    item(
        "system-calls",
        "16: every thread, stopped and made to call execve, ptrace, mount and others, is refused; workers open nothing",
        Work::Command(test_file!["seccomp"]),
    ),
    item(
        "folders",
        "16: every thread, stopped and made to create, write, remove and read files outside the daemon's folders, is refused (Landlock)",
        Work::Command(test_file!["landlock"]),
    ),
    data::FULL_TABLE,
    data::COMMITS,
    data::MULTICAST,
    data::FRAGMENTS,
    data::SCAN,
    data::TLS,
    data::ADDRESSES,
    data::HOST_ROUTES,
    data::LIMITS,
    item(
        "faults",
        "commits and reloads over a disk that fails, 2,000 seeds, whole commits and differences: the configuration is the old or the new one",
        Work::With(
            &[("VOLLEY_SEEDS", "2000")],
            &["test", "--workspace", "--lib", "simulation"],
        ),
    ),
    item(
        "peer-faults",
        "memif peers over sockets, epoll, memory and eventfds that fail, 2,000 seeds: up and exchanging packets, or down with a reason",
        Work::With(
            &[("VOLLEY_SEEDS", "2000")],
            test_file!["simulation", "a_memif_interface"],
        ),
    ),
    item(
        "vhost-faults",
        "vhost-user and virtio-user peers over sockets, memory and eventfds that fail, 2,000 seeds: up and exchanging frames, or down with a reason",
        Work::With(
            &[("VOLLEY_SEEDS", "2000")],
            test_file!["simulation", "a_vhost_interface"],
        ),
    ),
    repeated::KILLS,
    repeated::DAMAGED,
    repeated::OPERATIONS,
    long(
        "soak",
        "traffic, commits, rollbacks, peers, floods and API clients for two hours: 0 lost outside named drops, memory flat",
        Work::Span(
            "VOLLEY_SOAK_SECONDS",
            7200,
            test_file!["soak", "nothing_is_lost"],
        ),
    ),
    item(
        "fuzzers",
        "at least 24 fuzz targets for all that is read from outside, each with seeds and in the table of fuzz/README.md, 10 s each \
         under AddressSanitizer",
        Work::Call(fuzzers),
    ),
];

/// Minimum number of fuzz targets.
const TARGETS: usize = 24;

/// What is read from outside, and a target for each part of it.
const READ: [(&str, &[&str]); 11] = [
    (
        "packets",
        &[
            "wire_parse",
            "wire_dissect",
            "ip_headers",
            "nd_advert",
            "nd_input",
            "mld_listener",
            "group_messages",
            "ping_answer",
            "dhcp_relay",
            "batcher_walk",
        ],
    ),
    ("netlink messages", &["netlink_messages"]),
    ("memif", &["memif_peer"]),
    ("vhost-user", &["vhost_messages"]),
    ("virtio", &["virtio_split", "virtio_packed", "vnet_header"]),
    ("HTTP", &["http_body", "http_path", "http_tokens"]),
    ("command line", &["cli_line", "cli_complete"]),
    ("file", &["config_text", "input_decompress"]),
    ("journal", &["journal_record", "journal_folder"]),
    ("route dumps (MRT)", &["route_file"]),
    ("pcap", &["pcap_read"]),
];

fn fuzzers(sitting: &Sitting<'_>) -> Outcome {
    let text = match sanitize::fuzz(sitting.home, 10, true) {
        Pass(text) => text,
        other => return other,
    };
    let count: Option<usize> = text.split(' ').next().and_then(|n| n.parse().ok());
    let has = |name: &str| text.split([' ', ',']).any(|word| word == name);
    let without = READ
        .iter()
        .find(|(_, names)| !names.iter().all(|name| has(name)));
    match (count, without) {
        (Some(TARGETS..), None) => Pass(format!("{text}; at least {TARGETS}")),
        (_, Some((part, _))) => Fail(format!("a target for {part} is missing: {text}")),
        _ => Fail(format!("fewer than {TARGETS} targets: {text}")),
    }
}
