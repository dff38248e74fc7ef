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
const PEER: &str = "the other routers have no adapter, and the numbers of the paper were not found in a form that can be cited";

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

/// A program to compare with.
#[derive(Clone, Copy, Debug)]
struct Peer {
    /// Name.
    pub name: &'static str,
    /// Program that is searched in PATH.
    pub program: &'static str,
}

const fn peer(name: &'static str, program: &'static str) -> Peer {
    Peer { name, program }
}

/// Programs to compare with that have no adapter yet.
const WITHOUT: [Peer; 5] = [
    peer("OVS-DPDK", "ovs-vswitchd"),
    peer("grout", "grout"),
    peer("BESS", "bessd"),
    peer("Snabb", "snabb"),
    peer("t4p4s", "t4p4s"),
];

/// The peers that are not part of a run on this machine, with the reasons.
pub fn skipped_peers() -> Vec<(&'static str, String)> {
    let with = ADAPTERS
        .into_iter()
        .filter_map(|a| Some((a.title, a.missing()?)));
    with.chain(WITHOUT.iter().map(|peer| (peer.name, peer.why())))
        .collect()
}

impl Peer {
    /// Why the peer is not part of a run on this machine.
    fn why(&self) -> String {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let found = std::env::split_paths(&path).map(|dir| dir.join(self.program));
        match found.into_iter().find(|path| path.is_file()) {
            Some(path) => format!("{} is installed, but has no adapter", path.display()),
            None => format!("no program {} in PATH", self.program),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_distinguished_from_an_installed_one() {
        let none = peer("none", "no-such-program-of-any-package").why();
        assert_eq!(none, "no program no-such-program-of-any-package in PATH");
        assert!(peer("shell", "sh").why().contains("/sh is installed"));
    }
}
