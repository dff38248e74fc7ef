//! The items of "Nodes by users": plugins.

use super::{Item, Work, item};

pub const ITEMS: &[Item] = &[
    item(
        "new",
        "a project of at most 40 lines with its test, written by `volley plugin new`",
        Work::Command(&["test", "-p", "volley", "--bin", "volley", "plugin::"]),
    ),
    item(
        "load-replace-unload",
        "1,000 replacements between rounds with full vectors: no packet lost, code unmapped",
        Work::Command(&[
            "test",
            "-p",
            "volley-plugin-host",
            "--test",
            "plugins",
            "a_plugin_",
        ]),
    ),
    item(
        "traffic",
        "replacements while the generator sends as fast as it can: no packet lost",
        Work::Command(&[
            "test",
            "-p",
            "volley",
            "--test",
            "plugins",
            "replacements_under_traffic",
        ]),
    ),
    item(
        "abi",
        "wrong compiler or SDK, truncated, no plugin, panics: one sentence, the router goes on",
        Work::Command(&["test", "-p", "volley-plugin-host"]),
    ),
    item(
        "faces",
        "file, commands, HTTP; refused while used; gone after unload",
        Work::Command(&["test", "-p", "volley", "--test", "plugins"]),
    ),
];
