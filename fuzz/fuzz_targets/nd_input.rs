//! Neighbour solicitations and advertisements as nd-input parses them: it agrees with the parser of `volley-wire`.
#![no_main]

#[path = "../src/sums.rs"]
mod sums;

use libfuzzer_sys::fuzz_target;
use volley_neighbor::fuzzing::nd_message;
use volley_wire::icmp6::Icmp6;
use volley_wire::ip6::Ip6;
use volley_wire::nd::{NdBody, NdMessage};

fuzz_target!(|bytes: &[u8]| {
    let packet = sums::repaired(bytes);
    let Some((target, mac)) = nd_message(&packet) else {
        return;
    };
    let ip = Ip6::parse(&packet).expect("nd-input has read it");
    let upper = ip.upper().expect("nd-input has read it");
    let icmp = Icmp6::parse(upper.payload).expect("nd-input has read it");
    let nd = NdMessage::parse(&icmp)
        .expect("it is one")
        .expect("nd-input has read it");
    let same = match nd.body {
        NdBody::NeighbourSolicitation { target } => target,
        NdBody::NeighbourAdvertisement { target, .. } => target,
        _ => panic!("another message"),
    };
    assert_eq!(same, target);
    assert!(!target.is_multicast());
    assert!(mac.is_none() || nd.options().count() > 0);
});
