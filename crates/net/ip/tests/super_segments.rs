//! A super-segment passes the rewrite if its segments fit the MTU, and keeps its offload metadata.

use volley_fib::columns::DPO;
use volley_fib::{Fib, IfInfo, Neighbor};
use volley_graph::harness::{In, Out, run};
use volley_graph::{Checksum, Col, Counters, Domain, Gso, NodeId, Offload};
use volley_iface::GsoProtocol;
use volley_ip::node::ip_rewrite::{Count, Rewrite};
use volley_wire::MacAddr;
use volley_wire::build::Packet as Build;

const MTU: u16 = 1500;

fn super_segment(payload: usize) -> Vec<u8> {
    Build::eth(MacAddr::local(2), MacAddr::local(1))
        .ip4([192, 0, 2, 1].into(), [10, 0, 0, 9].into())
        .dont_fragment()
        .tcp(1, 2, 0x10)
        .payload(vec![7; payload])
        .build()
}

fn offload(size: u16) -> Offload {
    Offload {
        checksum: Some(Checksum {
            start: 34,
            offset: 16,
        }),
        gso: Some(Gso {
            kind: GsoProtocol::Tcp4.into(),
            size,
            headers: 54,
        }),
    }
}

#[test]
fn the_segments_are_held_against_the_mtu() {
    let domain = Domain::new();
    let mut fib = Fib::new(&domain);
    let info = IfInfo {
        index: 0,
        name: "pg0".into(),
        mac: [2, 0, 0, 0, 0, 1],
        mtu: MTU,
        up: true,
    };
    fib.set_interface(info).unwrap();
    fib.add_address(0, "10.0.0.1/24".parse().unwrap()).unwrap();
    let hop = "10.0.0.9".parse().unwrap();
    fib.set_neighbor(0, hop, Neighbor::new([6; 6])).unwrap();
    let plane = fib.dataplane4();
    let reader = domain.register();
    let dpo = plane.read(reader.guard()).forward(0, 0x0a00_0009, 0);
    let packet = |bytes: Vec<u8>| In::new(&bytes).column(DPO.col, dpo.0).advance(14);
    let packets = [
        packet(super_segment(9000)).offload(offload(1460)),
        packet(super_segment(9000)).offload(offload(1461)),
        packet(super_segment(1460)),
        packet(super_segment(1461)),
        packet(super_segment(1460)).offload(offload(9000)),
    ];
    let out = run(&packets, &domain, move |_| Rewrite::new(plane.clone(), 256));
    let sent: Vec<_> = out.iter().filter(|o| o.to == "interface-output").collect();
    let lens: Vec<usize> = sent.iter().map(|o| o.bytes.len()).collect();
    assert_eq!(lens, [9054, 1514, 1514]);
    let reason = |o: &Out| NodeId::of_reason(o.columns[&Col::ERR]).1;
    let reported = out.iter().filter(|o| o.to == "ip4-icmp-error");
    let reported: Vec<usize> = reported.map(reason).collect();
    assert_eq!(reported, [Count::FragNeeded.index(); 2]);
    let left: Vec<_> = sent.iter().map(|o| o.offload).collect();
    assert_eq!(left, [offload(1460), Offload::NONE, offload(9000)]);
}
