//! What an adapter consists of, and arguments that programs of DPDK share.

use crate::switch::process::{Process, is_installed};
use crate::switch::topology::{Kind, Link, Topology};
use std::path::Path;

/// A switch that can be measured.
pub struct Adapter {
    /// Name, as in `--peer`.
    pub name: &'static str,
    /// Name in the report.
    pub title: &'static str,
    /// Program in PATH; none for this program.
    pub program: Option<&'static str>,
    /// Start it with the links of the topology; the second argument is this program.
    pub start: fn(&Topology, &Path) -> Result<Process, String>,
}

impl Adapter {
    /// Why the switch is skipped; none if it can be started.
    pub fn missing(&self) -> Option<String> {
        let program = self.program.filter(|program| !is_installed(program))?;
        Some(format!("no program {program} in PATH"))
    }
}

/// A virtual device of DPDK for a link, as the side of the switch.
fn dpdk_device(link: &Link) -> String {
    let (number, socket) = (link.number, link.socket.display());
    match link.kind {
        Kind::Memif => {
            format!("net_memif{number},role=server,id=0,socket={socket},socket-abstract=no")
        }
        Kind::VirtioUser => format!("net_vhost{number},iface={socket}"),
    }
}

/// Arguments of DPDK's environment, without huge pages and cards: main core and one lcore on any of the processors.
pub fn dpdk_arguments(topology: &Topology) -> Vec<String> {
    let last = std::thread::available_parallelism().map_or(1, usize::from) - 1;
    let mut all: Vec<String> = [
        "--no-huge",
        "-m",
        "512",
        "--no-pci",
        "--no-shconf",
        "--no-telemetry",
    ]
    .map(str::to_owned)
    .to_vec();
    all.push(format!("--file-prefix=volley-lab-{}", std::process::id()));
    all.push(format!("--lcores=0@(0-{last}),1@(0-{last})"));
    let devices = topology.links.iter().map(dpdk_device);
    all.extend(devices.map(|device| format!("--vdev={device}")));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::Spec;

    #[test]
    fn devices_of_dpdk() {
        let spec = Spec::of("p2v").unwrap();
        let topology = Topology::new(&spec, Path::new("/x"));
        let arguments = dpdk_arguments(&topology);
        let devices: Vec<&String> = arguments.iter().filter(|a| a.contains("--vdev")).collect();
        assert!(devices[0].contains("net_memif0,role=server,id=0,socket=/x/0.sock"));
        assert_eq!(devices[1], "--vdev=net_vhost1,iface=/x/1.sock");
    }
}
