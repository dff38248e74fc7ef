//! Every header parser on any bytes; checks what each parser guarantees for its view.
#![no_main]

use libfuzzer_sys::fuzz_target;
use volley_wire::arp::ArpPacket;
use volley_wire::checksum::Sum;
use volley_wire::icmp4::Icmp4;
use volley_wire::icmp6::Icmp6;
use volley_wire::ip4::Ip4;
use volley_wire::ip6::Ip6;
use volley_wire::nd::NdMessage;
use volley_wire::tcp::Tcp;
use volley_wire::udp::Udp;
use volley_wire::{EtherType, IpProto, eth};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(frame) = eth::frame(bytes) {
        assert_eq!(frame.offset + frame.payload.len(), bytes.len());
        assert_eq!(frame.tags.count() * 4 + 14, frame.offset);
        match frame.ether_type {
            EtherType::ARP => drop(ArpPacket::parse(frame.payload)),
            EtherType::IP4 => ip4(frame.payload),
            EtherType::IP6 => ip6(frame.payload),
            _ => {}
        }
    }
    ip4(bytes);
    ip6(bytes);
    transport(bytes);
});

fn ip4(bytes: &[u8]) {
    let Ok(ip) = Ip4::parse(bytes) else { return };
    assert_eq!(
        20 + ip.options.len() + ip.payload.len() + ip.trailer.len(),
        bytes.len()
    );
    assert!(ip.options().count() <= ip.options.len());
    if ip.checksum_ok() && ip.header.ttl > 0 {
        let mut changed = *ip.header;
        changed.decrement_ttl();
        let full = {
            let mut h = changed;
            h.fill_checksum(ip.options);
            h.checksum
        };
        // A checksum field of 0xffff is correct, too, but no sender computes it.
        assert!(changed.checksum == full || ip.header.checksum.get() == 0xffff);
    }
    transport(ip.payload);
}

fn ip6(bytes: &[u8]) {
    let Ok(ip) = Ip6::parse(bytes) else { return };
    assert_eq!(40 + ip.payload.len() + ip.trailer.len(), bytes.len());
    let mut at = 0;
    for ext in ip.extensions().flatten() {
        assert_eq!(ext.offset, at);
        assert!(ext.bytes.len() >= 8 && ext.options().count() <= ext.bytes.len());
        at += ext.bytes.len();
    }
    if let Ok(upper) = ip.upper() {
        assert_eq!(
            (upper.offset, upper.offset + upper.payload.len()),
            (at, ip.payload.len())
        );
        transport(upper.payload);
    }
}

fn transport(bytes: &[u8]) {
    let (src, dst) = (1u128.into(), 2u128.into());
    let pseudo = Sum::pseudo6(src, dst, IpProto::TCP, bytes.len() as u32);
    if let Ok(udp) = Udp::parse(bytes) {
        assert_eq!(8 + udp.payload.len(), usize::from(udp.header.len.get()));
        let _ = (
            udp.checksum_ok4([1; 4].into(), [2; 4].into()),
            udp.checksum_ok6(src, dst),
        );
    }
    if let Ok(tcp) = Tcp::parse(bytes) {
        assert_eq!(20 + tcp.options.len() + tcp.payload.len(), bytes.len());
        let whole = pseudo.bytes(bytes).is_valid();
        assert_eq!(tcp.checksum_ok(pseudo), whole);
        let _ = (tcp.mss(), tcp.options().count());
    }
    let _ = Icmp4::parse(bytes).map(|icmp| icmp.checksum_ok());
    if let Ok(icmp) = Icmp6::parse(bytes)
        && let Some(Ok(nd)) = NdMessage::parse(&icmp)
    {
        assert!(nd.options().count() <= bytes.len() / 8);
    }
}
