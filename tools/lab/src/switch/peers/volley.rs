//! Volley: patches between its ports, or an IPv4 router.

use super::adapter::{ALL, Adapter};
use crate::switch::process::Process;
use crate::switch::router;
use crate::switch::topology::{Side, Topology};
use crate::switch::wire::{MAC, SOURCE_MAC};
use std::path::Path;

/// Patches.
pub const ADAPTER: Adapter = Adapter {
    name: "volley",
    title: "Volley",
    program: None,
    kinds: ALL,
    is_placed: true,
    memif_queues: 1,
    start: router::start_switch,
};

/// The router, which forwards packets of the generator from the first link of a pair to the second.
pub const ROUTER: Adapter = Adapter {
    name: "volley-router",
    title: "Volley router",
    start: start_router,
    ..ADAPTER
};

/// Addresses, the route of the generator's destinations, and the neighbour behind it.
fn commands(topology: &Topology, sides: &[Side]) -> Result<[String; 5], String> {
    let [(a, b)] = topology.patches[..] else {
        return Err("volley-router has one pair of ports: choose p2p, p2v or v2v".into());
    };
    let (rx, tx) = (&sides[a].name, &sides[b].name);
    Ok([
        format!("set interface mac address {rx} {MAC}"),
        format!("set interface ip address {rx} 198.19.0.254/24"),
        format!("set interface ip address {tx} 192.0.2.1/24"),
        format!("set ip neighbor {tx} 192.0.2.2 {SOURCE_MAC}"),
        "ip route add 20.0.0.0/8 via 192.0.2.2".to_owned(),
    ])
}

fn start_router(topology: &Topology, program: &Path) -> Result<Process, String> {
    let sides: Vec<Side> = topology.links.iter().map(|link| link.switch()).collect();
    let then = commands(topology, &sides)?;
    router::start_router("the router", topology, program, &sides, &then)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::Spec;

    #[test]
    fn every_command_of_the_router_is_one_of_the_command_line() {
        volley_daemon::objects::register().unwrap();
        let spec = Spec::of("p2p --physical veth").unwrap();
        let topology = Topology::new(&spec, Path::new("/x"), 1).unwrap();
        let sides: Vec<Side> = topology.links.iter().map(|link| link.switch()).collect();
        for line in commands(&topology, &sides).unwrap() {
            let parsed = volley_cli::parse_line(&line);
            assert!(parsed.is_ok(), "{line}: {}", parsed.err().unwrap());
        }
    }
}
