//! FastClick: a pair of DPDK elements for each direction. Written against its documented configuration; tried where the program is in PATH.

use super::adapter::{Adapter, dpdk_arguments};
use crate::switch::process::Process;
use crate::switch::topology::Topology;
use std::path::Path;
use std::process::Command;

/// The adapter.
pub const ADAPTER: Adapter = Adapter {
    name: "fastclick",
    title: "FastClick",
    program: Some("click"),
    start,
};

/// The configuration: from each port to its other one.
fn configuration(topology: &Topology) -> String {
    let both = topology.patches.iter().flat_map(|(a, b)| [(a, b), (b, a)]);
    both.map(|(rx, tx)| format!("FromDPDKDevice({rx}, PROMISC true) -> ToDPDKDevice({tx});"))
        .collect::<Vec<_>>()
        .join(" ")
}

fn start(topology: &Topology, _: &Path) -> Result<Process, String> {
    let mut command = Command::new("click");
    command.arg("--dpdk").args(dpdk_arguments(topology));
    command.args(["--", "-e", &configuration(topology)]);
    let sockets: Vec<&Path> = topology.links.iter().map(|l| l.socket.as_path()).collect();
    Process::start_until("FastClick", command, &sockets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::Spec;

    #[test]
    fn both_directions_of_every_pair() {
        let spec = Spec::of("p2p").unwrap();
        let text = configuration(&Topology::new(&spec, Path::new("/x")));
        let wanted = "FromDPDKDevice(0, PROMISC true) -> ToDPDKDevice(1); FromDPDKDevice(1, PROMISC true) -> ToDPDKDevice(0);";
        assert_eq!(text, wanted);
    }
}
