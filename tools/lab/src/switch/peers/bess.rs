//! BESS: a port module for each direction. Written against its documented configuration; tried where the program is in PATH.

use super::adapter::{ALL, Adapter, DPDK, Reach, dpdk_device, script, write};
use crate::switch::process::Process;
use crate::switch::topology::{Link, Topology};
use std::path::Path;

/// The adapter.
pub const ADAPTER: Adapter = Adapter {
    name: "bess",
    title: "BESS",
    program: Some("bessd"),
    kinds: ALL,
    choices: DPDK,
    reach: Reach::Pairs,
    memif_queues: 1,
    start,
    cost: None,
};

/// Port of the daemon's interface, of this machine alone.
const PORT: u16 = 10514;

/// The configuration, in the language of bessctl.
fn configuration(topology: &Topology) -> String {
    let port = |link: &Link| format!("p{} = PMDPort(vdev='{}')\n", link.number, dpdk_device(link));
    let mut text: String = topology.links.iter().map(port).collect();
    for (a, b) in &topology.patches {
        for (rx, tx) in [(a, b), (b, a)] {
            text += &format!("PortInc(port=p{rx}) -> PortOut(port=p{tx})\n");
        }
    }
    text
}

fn start(topology: &Topology, _: &Path) -> Result<Process, String> {
    let file = write(topology, "lab.bess", &configuration(topology))?;
    // In the foreground and without huge pages.
    let text = format!(
        "run bessd -f -k -m 0 -p {PORT}
tries=0
until bessctl daemon connect localhost:{PORT} -- run file '{}'; do
    tries=$((tries + 1)); [ $tries -lt 50 ]; sleep 0.2
done
",
        file.display()
    );
    script("BESS", topology, &text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::Spec;

    #[test]
    fn a_path_for_each_direction() {
        let spec = Spec::of("v2v").unwrap();
        let text = configuration(&Topology::new(&spec, Path::new("/x"), 0).unwrap());
        for line in [
            "p0 = PMDPort(vdev='net_vhost0,iface=/x/0.sock')",
            "PortInc(port=p0) -> PortOut(port=p1)",
            "PortInc(port=p1) -> PortOut(port=p0)",
        ] {
            assert!(text.lines().any(|it| it == line), "{line}: {text}");
        }
    }
}
