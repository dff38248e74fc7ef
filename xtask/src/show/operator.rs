//! The items of "An operator's first week": each by what a person types and sees.

use super::{Item, Work, item};

pub const ITEMS: [Item; 1] = [item(
    "log",
    "who did what, links, neighbours, clients; show log, events, files, history; floods, full disks, hostile text",
    Work::Command(&["test", "-p", "volley", "--test", "log"]),
)];
