//! Router advertisements: parsed data is bounded. The checksum is corrected so that mutations reach the options.
#![no_main]

#[path = "../src/sums.rs"]
mod sums;

use libfuzzer_sys::fuzz_target;
use std::net::Ipv6Addr;
use volley_router_discovery::{PREFIXES, ReceivedAdvert, is_advertisement};
use volley_wire::icmp6::Icmp6;
use volley_wire::ip6::Ip6;
use volley_wire::nd::NdMessage;

fuzz_target!(|bytes: &[u8]| {
    let packet = sums::repaired(bytes);
    let _ = is_advertisement(&packet);
    let upper = Ip6::parse(&packet)
        .ok()
        .and_then(|ip| ip.upper().ok().map(|upper| upper.payload));
    for message in [Some(bytes), upper].into_iter().flatten() {
        let Ok(icmp) = Icmp6::parse(message) else {
            continue;
        };
        let Some(Ok(nd)) = NdMessage::parse(&icmp) else {
            continue;
        };
        if let Some(advert) = ReceivedAdvert::read(Ipv6Addr::from(1), &nd) {
            assert_eq!(advert.offers().len(), usize::from(advert.count));
            assert!(usize::from(advert.count) <= PREFIXES && advert.preference <= 2);
        }
    }
});
