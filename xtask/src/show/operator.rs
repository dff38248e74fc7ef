//! The items of "An operator's first week", one line each: what a person types and sees.

use super::{Item, Work, item};

pub const ITEMS: &[Item] = &[
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
