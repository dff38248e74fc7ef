//! Forwarding state with a few interfaces.

use std::sync::Arc;
use volley_fib::{Fib, IfInfo, Neighbor};
use volley_graph::Domain;

/// Interfaces if0, if1 and so on, up, with this MTU and without addresses.
pub(crate) fn with_interfaces(domain: &Arc<Domain>, count: u32, mtu: u16) -> Fib {
    let mut fib = Fib::new(domain);
    for index in 0..count {
        let info = IfInfo {
            index,
            name: format!("if{index}"),
            mac: [2, 0, 0, 0, 0, index as u8],
            mtu,
            up: true,
        };
        fib.set_interface(info).unwrap();
    }
    fib
}

/// Adds an address with its prefix length to an interface.
pub(crate) fn address(fib: &mut Fib, iface: u32, address: &str) {
    fib.add_address(iface, address.parse().unwrap()).unwrap();
}

/// Adds a neighbour on an interface; `one` and `two` are the last bytes of its MAC address.
pub(crate) fn neighbor(fib: &mut Fib, iface: u32, address: &str, [one, two]: [u8; 2]) {
    let neighbor = Neighbor::new([2, 0, 0, 0, one, two]);
    fib.set_neighbor(iface, address.parse().unwrap(), neighbor)
        .unwrap();
}
