//! A router for tests of nodes: interface 0 is the clients' network, 1 that of the servers, 2 is bound to table 7.

use std::sync::Arc;
use volley_fib::columns::UPPER_OFFSET;
use volley_fib::{Fib, IfInfo, Neighbor};
use volley_graph::Domain;
use volley_graph::harness::In;
use volley_iface::{IfIdx, IfTable};
use volley_model::Family;

/// MAC address of an interface.
pub fn mac(index: u32) -> [u8; 6] {
    [2, 0, 0, 0, 0, 0x10 + index as u8]
}

/// Routes, addresses and neighbours.
pub fn fib(domain: &Arc<Domain>) -> Fib {
    let mut fib = Fib::new(domain);
    for index in 0..3 {
        let info = IfInfo {
            index,
            name: format!("if{index}"),
            mac: mac(index),
            mtu: 1500,
            up: true,
        };
        fib.set_interface(info).unwrap();
    }
    for family in [Family::V4, Family::V6] {
        fib.add_table(family, 7).unwrap();
        fib.bind_interface(2, family, 7).unwrap();
    }
    for (index, addr) in [
        (0, "10.0.0.1/24"),
        (0, "2001:db8:a::1/64"),
        (1, "192.0.2.1/24"),
        (1, "2001:db8:b::1/64"),
        (2, "198.51.100.1/24"),
        (2, "2001:db8:c::1/64"),
    ] {
        fib.add_address(index, addr.parse().unwrap()).unwrap();
    }
    let neighbor = Neighbor::new([2, 0, 0, 0, 0, 0x99]);
    fib.set_neighbor(1, "192.0.2.67".parse().unwrap(), neighbor)
        .unwrap();
    fib
}

/// The workers' view of the interfaces; number 9 has an LCP tap.
pub fn table() -> Arc<IfTable> {
    let table = IfTable::new(1);
    for index in 0..3 {
        table.set_mac(IfIdx(index), mac(index));
    }
    table.set_lcp_tap(IfIdx(9), Some(IfIdx(8)));
    table
}

/// A datagram as the node receives it: headers, then the message.
pub fn datagram(header: &[u8], message: &[u8], rx: u32) -> In {
    let packet = In::new(&[header, message].concat()).rx(rx);
    packet.column(UPPER_OFFSET.col, header.len() as u32 - 8)
}
