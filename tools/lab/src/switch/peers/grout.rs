//! grout: cross-connected ports. Written against its manual pages; tried where the program is in PATH.

use super::adapter::{ALL, Adapter, DPDK, Reach, dpdk_device, script};
use crate::switch::process::Process;
use crate::switch::topology::Topology;
use std::path::Path;

/// The adapter.
pub const ADAPTER: Adapter = Adapter {
    name: "grout",
    title: "grout",
    program: Some("grout"),
    kinds: ALL,
    choices: DPDK,
    reach: Reach::Pairs,
    memif_queues: 1,
    start,
    cost: None,
};

fn text(topology: &Topology) -> Result<String, String> {
    let dir = topology.folder()?.display();
    // Without huge pages (test mode), always polling.
    let mut text = format!(
        "export GROUT_SOCK_PATH='{dir}/grout.sock'
run grout -t -p
while [ ! -S '{dir}/grout.sock' ]; do await 'socket of grout'; done
"
    );
    for link in &topology.links {
        let (n, device) = (link.number, dpdk_device(link));
        text += &format!("grcli interface add port p{n} devargs '{device}'\n");
    }
    for (a, b) in &topology.patches {
        for (rx, tx) in [(a, b), (b, a)] {
            text += &format!("grcli interface set p{rx} mode xconnect p{tx} promisc on up\n");
        }
    }
    Ok(text)
}

fn start(topology: &Topology, _: &Path) -> Result<Process, String> {
    script("grout", topology, &text(topology)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::Spec;

    #[test]
    fn ports_are_cross_connected_both_ways() {
        let spec = Spec::of("p2p").unwrap();
        let text = text(&Topology::new(&spec, Path::new("/x"), 0).unwrap()).unwrap();
        for line in [
            "grcli interface add port p0 devargs 'net_memif0,role=server,id=0,socket=/x/0.sock,socket-abstract=no'",
            "grcli interface set p1 mode xconnect p0 promisc on up",
        ] {
            assert!(text.lines().any(|it| it == line), "{line}: {text}");
        }
    }
}
