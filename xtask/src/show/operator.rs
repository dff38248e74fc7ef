//! The items of "An operator's first week": what a person types, and sees.

use super::{Item, Work, item, long};
use crate::fresh;

pub const ITEMS: &[Item] = &[
    item(
        "fresh-clone",
        "the README's commands and every test that looks for shared data, with the data absent",
        Work::Call(|sitting| fresh::without_data(sitting.home)),
    ),
    long(
        "fresh-clone-ci",
        "the README's test command in a clone alone in a folder",
        Work::Call(|sitting| fresh::clone(sitting.home)),
    ),
    item(
        "demo-capture",
        "the demo verifies captures with long frames, raw, loopback and cooked ones",
        Work::Command(&["test", "-p", "volley", "--test", "demo_capture"]),
    ),
    item(
        "trace",
        "good packets are never called malformed, whatever was kept of them",
        Work::Command(&["test", "-p", "volley", "--test", "trace_text"]),
    ),
    item(
        "in-place",
        "200 settings committed and rolled back: no ping is lost, unless the difference marks an interruption",
        Work::Command(&["test", "-p", "volley", "--test", "in_place"]),
    ),
    item(
        "examples",
        "every example of the pages, the READMEs and the package is one",
        Work::Command(&["test", "-p", "volley", "--test", "examples"]),
    ),
    item(
        "capture-full-disk",
        "true counts, the reason, a whole last record and an error",
        Work::Command(&["test", "-p", "volley", "--test", "full_disk"]),
    ),
    item(
        "fib-absent",
        "an absent prefix: the route that packets to it follow, or an error",
        Work::Command(&["test", "-p", "volley", "--test", "ctl_script", "absent"]),
    ),
    item(
        "ctl-script",
        "commands on standard input: the line that fails, and the exit status",
        Work::Command(&["test", "-p", "volley", "--test", "ctl_script", "lines"]),
    ),
    item(
        "confirm-unit",
        "90s, 2m and plain seconds in config commit --confirm",
        Work::Command(&["test", "-p", "volley", "--test", "ctl_script", "confirm"]),
    ),
    item(
        "log",
        "who did what, links, neighbours, clients; show log, events, files, history; floods, full disks, hostile text",
        Work::Command(&["test", "-p", "volley", "--test", "log"]),
    ),
    item(
        "mac",
        "two routers of the same configuration have MAC and link-local addresses of their own; a twin is noticed",
        Work::Command(&[
            "test",
            "-p",
            "volley",
            "--test",
            "kernel_devices",
            "two_routers",
        ]),
    ),
    item(
        "missing-interface",
        "a kernel interface that is missing at start, deleted and made again, or moved is waited for; the last commit stays",
        Work::Command(&[
            "test",
            "-p",
            "volley",
            "--test",
            "kernel_devices",
            "--",
            "a_missing",
            "a_commit",
            "comes_and_goes",
        ]),
    ),
    item(
        "path-mtu",
        "the MTU is set in the kernel, follows it, and larger packets are answered by ICMP",
        Work::Command(&[
            "test",
            "-p",
            "volley",
            "--test",
            "kernel_devices",
            "path_mtu",
        ]),
    ),
];
