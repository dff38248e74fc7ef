//! Corrects the checksums of packets, so that mutations get past them.

use volley_wire::checksum::Sum;
use volley_wire::ip6::Ip6;

/// The packet with the checksums of its IP header and of the ICMP, IGMP or ICMPv6 message in it.
pub fn repaired(bytes: &[u8]) -> Vec<u8> {
    let mut packet = bytes.to_vec();
    match packet.first().map(|b| b >> 4) {
        Some(4) => four(&mut packet),
        Some(6) => six(&mut packet),
        _ => {}
    }
    packet
}

fn four(packet: &mut [u8]) {
    let (at, all) = (usize::from(packet[0] & 15) * 4, packet.len());
    if at < 20 || all < at {
        return;
    }
    packet[10..12].fill(0);
    let sum = Sum::new().bytes(&packet[..at]).checksum();
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    let end = usize::from(u16::from_be_bytes([packet[2], packet[3]])).clamp(at, all);
    if let Some(message) = packet.get_mut(at..end).filter(|m| m.len() >= 4) {
        message[2..4].fill(0);
        let sum = Sum::new().bytes(message).checksum();
        message[2..4].copy_from_slice(&sum.to_be_bytes());
    }
}

fn six(packet: &mut [u8]) {
    let Ok(ip) = Ip6::parse(packet) else { return };
    let (src, dst) = (ip.header.src, ip.header.dst);
    let Ok(upper) = ip.upper() else { return };
    let (at, len, proto) = (40 + upper.offset, upper.payload.len(), upper.proto);
    let Some(message) = packet.get_mut(at..at + len).filter(|m| m.len() >= 4) else {
        return;
    };
    message[2..4].fill(0);
    let sum = Sum::pseudo6(src.into(), dst.into(), proto, len as u32)
        .bytes(message)
        .checksum();
    message[2..4].copy_from_slice(&sum.to_be_bytes());
}
