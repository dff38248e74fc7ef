//! FastClick: a pair of DPDK elements for each direction. Written against its documented configuration; tried where the program is in PATH.

use super::adapter::{ALL, Adapter, DPDK, Reach, dpdk_arguments};
use crate::switch::process::Process;
use crate::switch::topology::Topology;
use std::path::Path;

/// The adapter.
pub const ADAPTER: Adapter = Adapter {
    name: "fastclick",
    title: "FastClick",
    program: Some("click"),
    kinds: ALL,
    choices: DPDK,
    reach: Reach::Pairs,
    memif_queues: 1,
    start,
    cost: None,
};

/// The configuration: from each port to its other one.
fn configuration(topology: &Topology) -> String {
    let both = topology.patches.iter().flat_map(|(a, b)| [(a, b), (b, a)]);
    both.map(|(rx, tx)| format!("FromDPDKDevice({rx}, PROMISC true) -> ToDPDKDevice({tx});"))
        .collect::<Vec<_>>()
        .join(" ")
}

fn start(topology: &Topology, _: &Path) -> Result<Process, String> {
    let mut command = topology.kept("click");
    command.arg("--dpdk").args(dpdk_arguments(topology));
    command.args(["--", "-e", &configuration(topology)]);
    Process::start_until("FastClick", command, &topology.sockets())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::Spec;

    #[test]
    fn both_directions_of_every_pair() {
        let spec = Spec::of("p2p").unwrap();
        let text = configuration(&Topology::new(&spec, Path::new("/x"), 0).unwrap());
        let wanted = "FromDPDKDevice(0, PROMISC true) -> ToDPDKDevice(1); FromDPDKDevice(1, PROMISC true) -> ToDPDKDevice(0);";
        assert_eq!(text, wanted);
    }
}
