//! The text of any bytes: no panic, bounded length, and one line where one line is documented.
#![no_main]

use libfuzzer_sys::fuzz_target;
use volley_wire::EtherType;
use volley_wire::dissect::{self, From, MAX_LAYERS};

fuzz_target!(|bytes: &[u8]| {
    let froms = [From::Ethernet, From::Ip, From::Type(EtherType::ARP)];
    for from in froms {
        let packet = dissect::packet(bytes, from);
        let line = packet.to_string();
        assert!(!line.is_empty() && line.len() < 8000 && !line.contains('\n'));
        assert!(format!("{packet:#}").lines().count() <= MAX_LAYERS + 1);
    }
});
