//! Figures of the papers that are not measured, and peers that are not run, with the reasons.

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

const EVENTS: &str = "volley bench reads no hardware events, and a virtual machine often has none; `cargo xtask budget` counts instructions with callgrind";
const LATENCY: &str = "volley bench has no time stamps in packets";
const PLACES: &str = "volley bench steps its workers without a control thread, each on a core; moonroute-8 measures workers";
const PORTS: &str = "volley bench has no ports: packets are created and freed in memory";
const PEER: &str = "no peer runs inside volley bench";

/// The figures and tables that are not measured.
pub const SKIPPED: [Other; 17] = [
    other(
        "vpp-6b",
        "Instructions per packet by the largest vector size",
        EVENTS,
    ),
    other(
        "vpp-6c",
        "Instructions per cycle by the largest vector size",
        EVENTS,
    ),
    other(
        "vpp-6d",
        "L1 instruction misses per packet by the largest vector size",
        EVENTS,
    ),
    other("vpp-10", "Latency of XC, IP and MIX", LATENCY),
    other("vpp-11", "Core allocation", PLACES),
    other("vpp-12", "Comparison with DPDK forwarding", PEER),
    other(
        "moonroute-7",
        "Rate by clock",
        "the lab does not set the clock of the processor",
    ),
    other("moonroute-10", "Cache effects", EVENTS),
    other("moonroute-12", "Hardware events", EVENTS),
    other("moonroute-13", "Latency by receive batch", LATENCY),
    other("moonroute-t2", "Comparison with other routers", PEER),
    other("moonroute-t3", "Comparison with other routers", PEER),
    other(
        "switch-p2p",
        "Throughput and round-trip time between two ports (figures 4 and 8)",
        PORTS,
    ),
    other(
        "switch-p2v",
        "Throughput and round-trip time from a port to a VNF (figures 5 and 9)",
        PORTS,
    ),
    other(
        "switch-v2v",
        "Throughput and round-trip time between VNFs (figures 6 and 10)",
        PORTS,
    ),
    other(
        "switch-loopback",
        "Throughput of chains of 1 to 5 VNFs (figure 7)",
        PORTS,
    ),
    other(
        "talk-table",
        "Table of the talk",
        "the plugin of the tutorial is not in the program",
    ),
];

/// A program to compare with.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Peer {
    /// Name.
    pub name: &'static str,
    /// Program that is searched in PATH.
    pub program: &'static str,
}

const fn peer(name: &'static str, program: &'static str) -> Peer {
    Peer { name, program }
}

/// Programs to compare with. None has an adapter yet.
pub const PEERS: [Peer; 8] = [
    peer("DPDK testpmd", "dpdk-testpmd"),
    peer("OVS-DPDK", "ovs-vswitchd"),
    peer("VPP", "vpp"),
    peer("grout", "grout"),
    peer("FastClick", "click"),
    peer("BESS", "bessd"),
    peer("Snabb", "snabb"),
    peer("t4p4s", "t4p4s"),
];

impl Peer {
    /// Why the peer is not part of a run on this machine.
    pub fn why(&self) -> String {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let found = std::env::split_paths(&path).map(|dir| dir.join(self.program));
        match found.into_iter().find(|path| path.is_file()) {
            Some(path) => format!(
                "{} is installed; the lab cannot start it yet",
                path.display()
            ),
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
