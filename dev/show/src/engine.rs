//! The items of "The vector engine": its sections `Speed and memory to reach`, `Bad input` and `Done when`, in order.

use super::{Item, Work, bench_items, item, long, lpm_items, run_items, test_file};
use xtask::{budget, report::Outcome, sanitize};

pub const ITEMS: [Item; 39] = [
    // Speed and memory to reach.
    item(
        "graph-rtc-ip4",
        "graph over rtc, ip4 uniform, full table",
        Work::GraphOverRtc("--scenario ip4 --destinations uniform TABLES", 1.8),
    ),
    item(
        "graph-rtc-mix",
        "graph over rtc, mix, full tables",
        Work::GraphOverRtc("--scenario mix --destinations uniform TABLES", 1.8),
    ),
    item("xc", "patch", Work::Cycles("--scenario xc", 9.0)),
    item(
        "l2xc",
        "through ethernet-input",
        Work::Cycles("--scenario l2xc", 16.0),
    ),
    item("ip4", "ip4, 1 route", Work::Cycles("--scenario ip4", 30.0)),
    item(
        "ip4-full",
        "ip4, full table, 64k uniform",
        Work::Cycles("--scenario ip4 --destinations uniform TABLES", 45.0),
    ),
    item(
        "ip4-full-1m",
        "ip4, full table, 1M distinct",
        Work::Cycles(
            "--scenario ip4 --destinations uniform --distinct 1048576 TABLES",
            80.0,
        ),
    ),
    item("ip6", "ip6, 1 route", Work::Cycles("--scenario ip6", 40.0)),
    item(
        "ip6-full",
        "ip6, full table, 64k uniform",
        Work::Cycles("--scenario ip6 --destinations uniform TABLES", 70.0),
    ),
    item("mix", "mix, 1 route", Work::Cycles("--scenario mix", 55.0)),
    item(
        "mix-full",
        "mix, full tables",
        Work::Cycles("--scenario mix --destinations uniform TABLES", 90.0),
    ),
    item(
        "single",
        "one packet per vector, ip4",
        Work::Call(bench_items::one_packet_per_vector),
    ),
    item(
        "vector-size",
        "curve from 4 to 1024 for xc, ip4, mix",
        Work::Call(bench_items::curve),
    ),
    item(
        "vector-gain",
        "gain from vectors of 4 to 256, ip4",
        Work::Call(bench_items::gain),
    ),
    item(
        "lpm4-bytes",
        "LPM4 memory, full table",
        Work::Call(|sitting| lpm_items::bytes(sitting, &lpm_items::V4)),
    ),
    item(
        "lpm4-dpdk",
        "LPM4 batched lookup against dpdk-test-fib's best",
        Work::Call(|sitting| lpm_items::against_dpdk(sitting, &lpm_items::V4)),
    ),
    item(
        "lpm4-load",
        "LPM4 load time",
        Work::Call(|sitting| lpm_items::load(sitting, &lpm_items::V4)),
    ),
    item(
        "lpm4-updates",
        "LPM4 updates with lookups going on",
        Work::Call(|sitting| lpm_items::updates(sitting, &lpm_items::V4)),
    ),
    item(
        "lpm6-bytes",
        "LPM6 memory, full table",
        Work::Call(|sitting| lpm_items::bytes(sitting, &lpm_items::V6)),
    ),
    item(
        "lpm6-dpdk",
        "LPM6 batched lookup against dpdk-test-fib's best",
        Work::Call(|sitting| lpm_items::against_dpdk(sitting, &lpm_items::V6)),
    ),
    item(
        "lpm6-load",
        "LPM6 load time",
        Work::Call(|sitting| lpm_items::load(sitting, &lpm_items::V6)),
    ),
    item(
        "lpm6-updates",
        "LPM6 updates with lookups going on",
        Work::Call(|sitting| lpm_items::updates(sitting, &lpm_items::V6)),
    ),
    item(
        "budget",
        "instructions per packet for xc, ip4, ip6",
        Work::Call(|sitting| budget::run(sitting.home, false)),
    ),
    // Bad input.
    item(
        "replay",
        "captures through vector sizes and ISA levels, against the oracle",
        Work::Command(test_file!["replay"]),
    ),
    long(
        "replay-all",
        "every capture, vector size and ISA level",
        Work::Command(&[
            "test",
            "--workspace",
            "--test",
            "replay",
            "--",
            "--include-ignored",
        ]),
    ),
    item(
        "bad-config",
        "bad config: one clear sentence, nothing changed",
        Work::Command(&["test", "-p", "volley-config"]),
    ),
    item(
        "bad-lines",
        "bad CLI line: one clear sentence, nothing changed",
        Work::Command(&["test", "-p", "volley-cli"]),
    ),
    item(
        "bad-files",
        "lying pcap and MRT files are reported",
        Work::Command(&[
            "test",
            "-p",
            "volley-pcap",
            "-p",
            "volley-fib",
            "-p",
            "volley-input",
        ]),
    ),
    item(
        "no-buffers",
        "running out of buffers drops and counts",
        Work::Command(test_file!["streams", "running_out_of_buffers"]),
    ),
    // Done when.
    long(
        "fresh-clone",
        "a fresh clone runs the demo and the test command",
        Work::Call(run_items::fresh_clone),
    ),
    item(
        "demo",
        "the README's first command",
        Work::Call(run_items::demo),
    ),
    item(
        "tests",
        "unit, property, golden and corpus tests",
        Work::Command(&["test", "--workspace"]),
    ),
    item(
        "oracle",
        "the oracle's own tests",
        Work::Call(run_items::oracle),
    ),
    long(
        "asan",
        "AddressSanitizer over base",
        Work::Call(|sitting| sanitize::address(sitting.home, 64)),
    ),
    long(
        "memcheck",
        "valgrind memcheck over base",
        Work::Call(|sitting| sanitize::memcheck(sitting.home, 16)),
    ),
    item(
        "loom",
        "loom over QSBR and the free list",
        Work::Call(|sitting| sanitize::loom(sitting.home)),
    ),
    long(
        "fuzz",
        "fuzz targets for wire formats, CLI and config",
        Work::Call(|sitting| sanitize::fuzz(sitting.home, 30, true)),
    ),
    item(
        "tidy",
        "house rules",
        Work::Call(|sitting| xtask::tidy::run(sitting.home)),
    ),
    item(
        "closing-note",
        "the closing note with figures and gaps",
        Work::Call(|_| Outcome::Skip("for people to read".into())),
    ),
];
