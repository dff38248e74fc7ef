//! DPDK's testpmd in io mode: it forwards between port 0 and port 1, 2 and 3, and so on.

use super::adapter::{ALL, Adapter, dpdk_arguments};
use crate::switch::process::Process;
use crate::switch::topology::Topology;
use std::path::Path;

/// The adapter.
pub const ADAPTER: Adapter = Adapter {
    name: "testpmd",
    title: "DPDK testpmd",
    program: Some("dpdk-testpmd"),
    kinds: ALL,
    is_placed: true,
    memif_queues: 1,
    start,
};

fn start(topology: &Topology, _: &Path) -> Result<Process, String> {
    // Lines are written when they are complete, although the output is no terminal.
    let mut command = topology.command("stdbuf");
    command.args(["-oL", "dpdk-testpmd"]);
    command.args(dpdk_arguments(topology));
    command.args([
        "--",
        "--forward-mode=io",
        "--port-topology=paired",
        "--total-num-mbufs=32768",
        "--disable-link-check",
        "--no-flush-rx",
    ]);
    // Each forwarding lcore has one of the directions.
    let workers = topology.places.as_ref().map_or(1, |p| p.workers.len());
    command.arg(format!("--nb-cores={workers}"));
    // It forwards until the enter key, or the end of its input.
    Process::start("testpmd", command, "Press enter to exit")
}
