//! The bridge and the router of the Linux kernel, in the network namespace of the veth pairs.

use super::adapter::{Adapter, Reach, script};
use crate::switch::process::Process;
use crate::switch::topology::{Kind, Topology};
use crate::switch::wire::{MAC, SOURCE_MAC};
use std::path::Path;

/// The bridge.
pub const BRIDGE: Adapter = Adapter {
    name: "linux-bridge",
    title: "Linux bridge (veth)",
    program: Some("ip"),
    kinds: &[Kind::Veth],
    choices: &[],
    reach: Reach::Pairs,
    memif_queues: 1,
    start: start_bridges,
    cost: None,
};

/// The router, which forwards packets of the generator from the first link of a pair to the second.
pub const ROUTER: Adapter = Adapter {
    name: "linux-router",
    title: "Linux router (veth)",
    reach: Reach::Route,
    start: start_router,
    ..BRIDGE
};

/// One bridge for each pair of links.
fn bridges(topology: &Topology) -> String {
    let mut text = String::new();
    for (a, b) in &topology.patches {
        text += &format!("ip link add br{a} type bridge\n");
        for n in [a, b] {
            text += &format!("ip link set {} master br{a}\n", topology.links[*n].device());
        }
        text += &format!("ip link set br{a} up\n");
    }
    text
}

fn start_bridges(topology: &Topology, _: &Path) -> Result<Process, String> {
    script("the bridge", topology, &bridges(topology))
}

/// Addresses of the links, and a permanent neighbour of the generator's packets.
///
/// # Errors
/// If there are several pairs of links.
pub fn links(topology: &Topology) -> Result<String, String> {
    let [(a, b)] = topology.patches[..] else {
        return Err("a Linux router has one pair of ports: choose p2p, p2v or v2v".into());
    };
    let (rx, tx) = (topology.links[a].device(), topology.links[b].device());
    Ok(format!(
        "echo 1 > /proc/sys/net/ipv4/ip_forward
ip link set {rx} address {MAC}
ip address add 198.19.0.254/24 dev {rx}
ip address add 192.0.2.1/24 dev {tx}
ip neighbor replace 192.0.2.2 lladdr {SOURCE_MAC} nud permanent dev {tx}
"
    ))
}

/// With the route of the generator's destinations.
fn router(topology: &Topology) -> Result<String, String> {
    let route = "ip route add 20.0.0.0/8 via 192.0.2.2\n";
    Ok(links(topology)? + route)
}

fn start_router(topology: &Topology, _: &Path) -> Result<Process, String> {
    script("the router", topology, &router(topology)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::Spec;

    #[test]
    fn a_bridge_for_each_pair_and_one_route() {
        let spec = Spec::of("loopback --physical veth --ports veth").unwrap();
        let chain = Topology::new(&spec, Path::new("/x"), 1).unwrap();
        let text = bridges(&chain);
        assert!(text.contains("ip link set sw3 master br2\n"), "{text}");
        assert!(router(&chain).is_err());
        let spec = Spec::of("p2p --physical veth").unwrap();
        let text = router(&Topology::new(&spec, Path::new("/x"), 1).unwrap()).unwrap();
        assert!(
            text.contains("ip link set sw0 address 02:00:00:00:00:98\n"),
            "{text}"
        );
    }
}
