//! Volley: patches between its ports, or an IPv4 router.

use super::adapter::{Adapter, Choice, Reach};
use crate::switch::cost;
use crate::switch::process::Process;
use crate::switch::router;
use crate::switch::spec::{ROUTER as ROUTER_NAME, Traffic};
use crate::switch::topology::{Kind, Side, Topology};
use crate::switch::wire::{MAC, SOURCE_MAC, VLAN};
use std::path::Path;

/// Patches.
pub const ADAPTER: Adapter = Adapter {
    name: "volley",
    title: "Volley",
    program: None,
    kinds: &[Kind::Memif, Kind::VirtioUser, Kind::Veth, Kind::AfXdp],
    choices: &[
        Choice::Cores,
        Choice::RxMode,
        Choice::Swap,
        Choice::Packed,
        Choice::Queues,
    ],
    reach: Reach::Pairs,
    memif_queues: 1,
    start: router::start_switch,
    cost: Some(cost::of_volley),
};

/// The router, which forwards packets of the generator from the first link of a pair to the second.
pub const ROUTER: Adapter = Adapter {
    name: ROUTER_NAME,
    title: "Volley router",
    reach: Reach::Route,
    start: start_router,
    ..ADAPTER
};

/// Addresses, the routes of the generator's destinations, the neighbours behind them, and a cross-connect of tagged packets.
fn commands(topology: &Topology, sides: &[Side]) -> Result<Vec<String>, String> {
    let [(a, b)] = topology.patches[..] else {
        return Err("volley-router has one pair of ports: choose p2p, p2v or v2v".into());
    };
    let (rx, tx) = (&sides[a].name, &sides[b].name);
    let mut all = vec![
        format!("set interface mac address {rx} {MAC}"),
        format!("set interface ip address {rx} 198.19.0.254/24"),
        format!("set interface ip address {tx} 192.0.2.1/24"),
        format!("set ip neighbor {tx} 192.0.2.2 {SOURCE_MAC}"),
        "ip route add 20.0.0.0/8 via 192.0.2.2".to_owned(),
    ];
    if topology.spec.traffic == Traffic::Mix {
        let [from, to] = [rx, tx].map(|port| format!("{port}.{VLAN}"));
        all.extend([
            format!("set interface ip address {rx} 2001:2:1::fe/64"),
            format!("set interface ip address {tx} 2001:db8:ffff::1/64"),
            format!("set ip6 neighbor {tx} 2001:db8:ffff::2 {SOURCE_MAC}"),
            "ip route add 2001:db8::/32 via 2001:db8:ffff::2".to_owned(),
            format!("create sub-interfaces {rx} {VLAN}"),
            format!("create sub-interfaces {tx} {VLAN}"),
            format!("set interface state {from} up"),
            format!("set interface state {to} up"),
            format!("set interface l2 xconnect {from} {to}"),
        ]);
    }
    Ok(all)
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
        for (traffic, count) in [("one", 5), ("mix", 14)] {
            let spec = format!("p2p --physical veth --peer volley-router --traffic {traffic}");
            let spec = Spec::of(&spec).unwrap();
            let topology = Topology::new(&spec, Path::new("/x"), 1).unwrap();
            let sides: Vec<Side> = topology.links.iter().map(|link| link.switch()).collect();
            let lines = commands(&topology, &sides).unwrap();
            assert_eq!(lines.len(), count);
            for line in lines {
                let parsed = volley_cli::parse_line(&line);
                assert!(parsed.is_ok(), "{line}: {}", parsed.err().unwrap());
            }
        }
    }
}
