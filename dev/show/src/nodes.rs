//! The items of "Nodes by users": plugins, Lua scripts, graphs in Click's language.

mod click;
mod native_cost;
mod talk;

use super::{Item, Work, item};

/// Tests of plugins, by the beginnings of their names.
macro_rules! tests {
    [$($name:literal),* $(,)?] => {
        Work::Command(&["test", "--workspace", "--test", "plugins", "--", $($name),*])
    };
}

/// The tests are built with the features of the whole workspace, as those of CI are: nothing is compiled twice.
pub const ITEMS: &[Item] = &[
    item(
        "new",
        "a project of at most 40 lines with its test, written by `volley plugin new`",
        Work::Command(&["test", "--workspace", "--bin", "volley", "plugin::"]),
    ),
    item(
        "load-replace-unload",
        "1,000 replacements between rounds with full vectors: no packet lost, code unmapped",
        tests![
            "a_plugin_comes_and_goes",
            "a_plugin_is_replaced_a_thousand_times",
            "traces_of_a_plugin_outlive_it",
        ],
    ),
    item(
        "traffic",
        "replacements while the generator sends as fast as it can: no packet lost",
        tests!["replacements_under_traffic"],
    ),
    item(
        "abi",
        "wrong compiler or SDK, truncated, no plugin, panics: one sentence, the router goes on",
        tests![
            "what_is_no_plugin_of_this_router",
            "a_file_that_others_can_change",
            "a_plugin_that_does_not_register",
            "a_refused_version_leaves",
            "a_panic_in_a_node",
        ],
    ),
    item(
        "faces",
        "a plugin and its objects in file, commands, HTTP; refused while used; gone after unload",
        tests![
            "a_plugin_is_an_object",
            "objects_of_a_plugin",
            "a_file_with_a_plugin",
        ],
    ),
    item(
        "native-cost",
        "a node as a plugin against the same node built in, instructions",
        Work::Look(native_cost::judge),
    ),
    item(
        "talk",
        "the tutorial's six stages of IP in IP: each output as scapy builds it; clocks and instructions beside the talk's",
        Work::Look(talk::judge),
    ),
    item(
        "lua-router",
        "the router in Lua (under 100 lines) forwards what the native router forwards; reload under traffic without loss",
        Work::Command(&["test", "--workspace", "--test", "lua"]),
    ),
    item(
        "lua-limits",
        "endless loop, out of bounds, huge allocation, error: dropped with a reason, file and line, and the router goes on",
        Work::Command(&["test", "--workspace", "--lib", "tests::limits::"]),
    ),
    item(
        "click",
        "elements and configurations in Click's language, a router for two interfaces among them, against scapy",
        Work::Look(click::judge),
    ),
    item(
        "rewire",
        "graphs that change 1,000 times under traffic: what is the same goes on, no packet lost",
        Work::Command(&[
            "test",
            "--workspace",
            "--test",
            "click_rewire",
            "--",
            "--include-ignored",
        ]),
    ),
    item(
        "python",
        "graphs that the Python client wires, changes under traffic and stops, in a daemon",
        Work::Command(&[
            "test",
            "--workspace",
            "--test",
            "http",
            "--",
            "the_python_client",
        ]),
    ),
];
