//! The path batcher's walk through the headers of a packet: stopping where rules need no more finds the same as going to the
//! end.
#![no_main]

use libfuzzer_sys::fuzz_target;
use volley_batcher::fuzzing::walk;

const NAMES: [&str; 16] = [
    "ethernet",
    "vlan.id",
    "vlan@2.id",
    "ip4.dst",
    "ip4@2.src",
    "ip6.dst",
    "ip6.src",
    "udp.dport",
    "tcp.dport",
    "gre",
    "vxlan.vni",
    "mpls.label",
    "icmp4",
    "gtpu",
    "ip4",
    "udp@2",
];

fuzz_target!(|bytes: &[u8]| {
    let Some((mask, packet)) = bytes.split_first_chunk::<2>() else {
        return;
    };
    let mask = u16::from_be_bytes(*mask);
    let wanted = NAMES.iter().enumerate().filter(|(n, _)| mask >> n & 1 != 0);
    let wanted: Vec<&str> = wanted.map(|(_, name)| *name).collect();
    walk(&[], &wanted, packet);
});
