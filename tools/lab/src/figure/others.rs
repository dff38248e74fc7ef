//! Figures of the papers that are not measured, and peers that are not run, with the reasons.

use crate::switch::ADAPTERS;
use serde::Serialize;

/// A figure or table that is not measured.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Other {
    /// Name, like those of the measured figures.
    pub name: &'static str,
    /// Contents.
    pub title: &'static str,
    /// Reason.
    pub why: &'static str,
}

const fn other(name: &'static str, title: &'static str, why: &'static str) -> Other {
    Other { name, title, why }
}

const PLACES: &str = "the allocations need more processors than the switch, the generator and the system leave here; moonroute-8 measures workers";
const PEER: &str = "the numbers of the paper were not found in a form that can be cited; switch-p2p measures the Linux router";

/// The figures and tables that are not measured.
pub const SKIPPED: [Other; 4] = [
    other("vpp-11", "Core allocation", PLACES),
    other("moonroute-t2", "Comparison with other routers", PEER),
    other("moonroute-t3", "Comparison with other routers", PEER),
    other(
        "talk-table",
        "Table of the talk",
        "the plugin of the tutorial is not in the program",
    ),
];

/// The peers that are not part of a run on this machine, with the reasons.
pub fn skipped_peers() -> Vec<(&'static str, String)> {
    ADAPTERS
        .into_iter()
        .filter_map(|a| Some((a.title, a.missing()?)))
        .collect()
}
