//! The items of "Nodes by users": plugins, Lua scripts, graphs in Click's language.

mod click;
mod click_speed;
mod lua;
mod native_cost;
mod outside;
mod project;
mod replacements;
mod talk;

use super::{Item, Work, item, test_file};

pub const ITEMS: &[Item] = &[
    item(
        "new",
        "a project of at most 40 lines that `volley plugin new` writes: its test passes, it is built, and packets pass its node in a router",
        Work::Look(project::judge),
    ),
    item(
        "load-replace-unload",
        "1,000 replacements at 10 Mpps: no packet lost or doubled, code unmapped, memory flat",
        Work::Look(replacements::judge),
    ),
    item(
        "traffic",
        "replacements in a daemon while the generator sends as fast as it can: no packet lost, memory flat",
        Work::Look(replacements::daemon),
    ),
    item(
        "brings",
        "a plugin built outside of the workspace brings sources, stages, arcs, edges, receivers, verbs, tasks, metrics; replaces a node; nothing is left",
        Work::Look(outside::judge),
    ),
    item(
        "abi",
        "wrong compiler or SDK, truncated, no plugin, panics: one sentence, the router goes on",
        Work::Command(test_file![
            "plugins",
            "what_is_no_plugin_of_this_router",
            "a_file_that_others_can_change",
            "a_plugin_that_does_not_register",
            "a_refused_version_leaves",
            "a_panic_in_a_node",
        ]),
    ),
    item(
        "faces",
        "a plugin and its objects in file, commands, HTTP; refused while used; gone after unload",
        Work::Command(test_file![
            "plugins",
            "a_plugin_is_an_object",
            "objects_of_a_plugin",
            "a_file_with_a_plugin",
        ]),
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
        "the router in Lua (under 100 lines) forwards what the native router forwards, at 1.5 times its cost at most; reload under traffic without loss",
        Work::Look(lua::router),
    ),
    item(
        "scatter",
        "arrays, masks and drop-out have the same packets in the same order; drop-out is not slower than arrays at low shares",
        Work::Look(lua::scatter),
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
        "click-speed",
        "Click's IP router for two interfaces in memory, at least 3 times as fast as FastClick",
        Work::Call(click_speed::judge),
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
        Work::Command(test_file!["http", "the_python_client"]),
    ),
    item(
        "snabb-style",
        "Lua programs that wire apps as in Snabb, in a daemon: changed under traffic, no packet lost",
        Work::Command(test_file!["snabb"]),
    ),
];
