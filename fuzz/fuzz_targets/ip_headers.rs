//! Options of IPv4 headers and extension headers of IPv6 as the router parses them: filling in options moves none, and
//! `volley-wire` finds the same behind the extension headers, or more behind an authentication header.
#![no_main]

use libfuzzer_sys::fuzz_target;
use volley_ip::fuzzing::{fill_options, upper};
use volley_wire::IpProto;
use volley_wire::ip6::Ip6;
use volley_wire::tlv::Options;

/// The longest options of an IPv4 header.
const OPTIONS: usize = 40;

fuzz_target!(|bytes: &[u8]| {
    let options = &bytes[..bytes.len().min(OPTIONS) & !3];
    if let Some(filled) = fill_options(options) {
        assert!(
            places(&filled).eq(places(options)),
            "{options:x?} -> {filled:x?}"
        );
    }
    let Ok(ip) = Ip6::parse(bytes) else { return };
    let own = &bytes[..40 + ip.payload.len()];
    if let (Some((proto, at)), Ok(same)) = (upper(own), ip.upper()) {
        let same = (same.proto.0, 40 + same.offset);
        if proto == IpProto::AH.0 {
            // The router does not process IPsec: the chain ends at an authentication header. `volley-wire` follows it.
            assert!(same.1 > at, "{same:?} is not behind {at}");
        } else {
            assert_eq!((proto, at), same);
        }
    }
});

/// Position, type and length of each option.
fn places(options: &[u8]) -> impl Iterator<Item = (usize, u8, usize)> {
    let all = Options::classic(options, "IPv4 option");
    all.map(|found| found.expect("sound options"))
        .map(|it| (it.offset, it.kind, it.data.len()))
}
