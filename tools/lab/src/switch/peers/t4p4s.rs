//! t4p4s: the program that its compiler makes of its example `portfwd`, under the name `t4p4s-portfwd`. Written against its
//! documentation; tried where the program is in PATH.

use super::adapter::{ALL, Adapter, DPDK, Reach, dpdk_arguments};
use crate::switch::process::Process;
use crate::switch::topology::Topology;
use std::path::Path;

/// The adapter.
pub const ADAPTER: Adapter = Adapter {
    name: "t4p4s",
    title: "t4p4s",
    program: Some("t4p4s-portfwd"),
    kinds: ALL,
    choices: DPDK,
    reach: Reach::Pair,
    memif_queues: 1,
    start,
    cost: None,
};

/// All ports, each with its one queue on the second lcore.
fn ports(topology: &Topology) -> [String; 4] {
    let count = topology.links.len();
    let queues: Vec<String> = (0..count).map(|n| format!("({n},0,1)")).collect();
    [
        "-p".into(),
        format!("{:#x}", (1u64 << count) - 1),
        "--config".into(),
        queues.join(","),
    ]
}

fn start(topology: &Topology, _: &Path) -> Result<Process, String> {
    if topology.patches.len() != 1 {
        return Err("t4p4s has one pair of ports: choose p2p, p2v or v2v".into());
    }
    let mut command = topology.kept("t4p4s-portfwd");
    command.args(dpdk_arguments(topology)).arg("--");
    command.args(ports(topology));
    Process::start_until("t4p4s", command, &topology.sockets())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::Spec;

    #[test]
    fn a_queue_for_each_port() {
        let spec = Spec::of("p2p").unwrap();
        let arguments = ports(&Topology::new(&spec, Path::new("/x"), 0).unwrap());
        assert_eq!(arguments.join(" "), "-p 0x3 --config (0,0,1),(1,0,1)");
    }
}
