//! DPDK's testpmd, in io or mac mode: it forwards between port 0 and port 1, 2 and 3, and so on.

use super::adapter::{ALL, Adapter, Choice, Reach, dpdk_arguments};
use crate::switch::cost;
use crate::switch::process::Process;
use crate::switch::topology::Topology;
use std::path::Path;

/// The adapter.
pub const ADAPTER: Adapter = Adapter {
    name: "testpmd",
    title: "DPDK testpmd",
    program: Some("dpdk-testpmd"),
    kinds: ALL,
    choices: &[
        Choice::Cores,
        Choice::Mac,
        Choice::Swap,
        Choice::Packed,
        Choice::Queues,
    ],
    reach: Reach::Pairs,
    memif_queues: 1,
    start,
    cost: Some(cost::of_testpmd),
};

fn start(topology: &Topology, _: &Path) -> Result<Process, String> {
    // Lines are written when they are complete, although the output is no terminal.
    let mut command = topology.command("stdbuf");
    command.args(["-oL", "dpdk-testpmd"]);
    command.args(dpdk_arguments(topology));
    let mode = if topology.spec.mac { "mac" } else { "io" };
    command.args([
        "--",
        &format!("--forward-mode={mode}"),
        "--port-topology=paired",
        "--total-num-mbufs=32768",
        "--disable-link-check",
        "--no-flush-rx",
        "--txd=1024",
        "--rxd=1024",
    ]);
    let queues = topology.spec.queues;
    command.args([format!("--rxq={queues}"), format!("--txq={queues}")]);
    // Each forwarding lcore has one of the directions.
    let workers = topology.places.as_ref().map_or(1, |p| p.workers.len());
    command.arg(format!("--nb-cores={workers}"));
    if !topology.spec.cost {
        // It forwards until the enter key, or the end of its input.
        return Process::start("testpmd", command, "Press enter to exit");
    }
    command.args(["--record-core-cycles", "--interactive"]);
    // The prompt is no complete line: it reads the command when it has started.
    let mut process = Process::start("testpmd", command, "")?;
    process.ask("start", "nb forwarding cores")?;
    Ok(process)
}
