//! ARP for IPv4 over Ethernet (RFC 826).
//!
//! Contract: [`ArpPacket::parse`] accepts only hardware type 1, protocol 0x0800 and address lengths 6 and 4, with any
//! operation.

use core::net::Ipv4Addr;

use crate::header::header;
use crate::{EtherType, Header, MacAddr, U16, WireError};

header! {
    /// A whole ARP packet.
    pub struct ArpPacket: 28, "ARP packet" {
        /// Hardware type: 1, Ethernet
        pub hardware: U16,
        /// Protocol type: IPv4
        pub protocol: EtherType,
        /// Length of a hardware address: 6
        pub hardware_len: u8,
        /// Length of a protocol address: 4
        pub protocol_len: u8,
        /// [`REQUEST`] or [`REPLY`]
        pub operation: U16,
        /// Sender's hardware address
        pub sender_mac: MacAddr,
        /// Sender's protocol address
        pub sender_ip: [u8; 4],
        /// Target's hardware address; zero in a request
        pub target_mac: MacAddr,
        /// Target's protocol address
        pub target_ip: [u8; 4],
    }
}

/// Operation: who has `target_ip`?
pub const REQUEST: u16 = 1;
/// Operation: `sender_mac` has `sender_ip`.
pub const REPLY: u16 = 2;

impl ArpPacket {
    /// An ARP packet for IPv4 over Ethernet; an error names the field with another value.
    pub fn parse(bytes: &[u8]) -> Result<&ArpPacket, WireError> {
        let (arp, _padding) = ArpPacket::split(bytes)?;
        let field = |what, value: u32| WireError::Field { what, value };
        if arp.hardware.get() != 1 {
            return Err(field("ARP hardware type", arp.hardware.get().into()));
        }
        if arp.protocol != EtherType::IP4 {
            return Err(field("ARP protocol type", arp.protocol.value().into()));
        }
        if (arp.hardware_len, arp.protocol_len) != (6, 4) {
            return Err(field(
                "ARP address length",
                u32::from(arp.hardware_len) << 8 | u32::from(arp.protocol_len),
            ));
        }
        Ok(arp)
    }

    fn new(operation: u16, sender: (MacAddr, Ipv4Addr), target: (MacAddr, Ipv4Addr)) -> ArpPacket {
        ArpPacket {
            hardware: U16::new(1),
            protocol: EtherType::IP4,
            hardware_len: 6,
            protocol_len: 4,
            operation: U16::new(operation),
            sender_mac: sender.0,
            sender_ip: sender.1.octets(),
            target_mac: target.0,
            target_ip: target.1.octets(),
        }
    }

    /// A request by `sender` for the MAC address of `target`.
    pub fn request(sender_mac: MacAddr, sender: Ipv4Addr, target: Ipv4Addr) -> ArpPacket {
        Self::new(REQUEST, (sender_mac, sender), (MacAddr::ZERO, target))
    }

    /// The reply to `self` by the owner of its target address.
    pub fn reply(&self, owner: MacAddr) -> ArpPacket {
        Self::new(
            REPLY,
            (owner, self.target_ip()),
            (self.sender_mac, self.sender_ip()),
        )
    }

    /// Sender's protocol address.
    pub fn sender_ip(&self) -> Ipv4Addr {
        self.sender_ip.into()
    }

    /// Target's protocol address.
    pub fn target_ip(&self) -> Ipv4Addr {
        self.target_ip.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IntoBytes;
    use alloc::string::ToString;

    const REQUEST_BYTES: [u8; 28] = [
        0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2,
    ];

    #[test]
    fn bytes_both_ways() {
        let arp = ArpPacket::request(
            MacAddr::local(1),
            [10, 0, 0, 1].into(),
            [10, 0, 0, 2].into(),
        );
        assert_eq!(arp.as_bytes(), REQUEST_BYTES);
        let parsed = ArpPacket::parse(&REQUEST_BYTES).unwrap();
        assert_eq!(*parsed, arp);
        let reply = parsed.reply(MacAddr::local(2));
        assert_eq!(
            (reply.operation.get(), reply.sender_ip(), reply.target_mac),
            (2, [10, 0, 0, 2].into(), arp.sender_mac)
        );
    }

    #[test]
    fn other_formats_are_named() {
        let with = |at: usize, value: u8| {
            let mut bytes = REQUEST_BYTES;
            bytes[at] = value;
            ArpPacket::parse(&bytes).unwrap_err().to_string()
        };
        assert_eq!(
            with(1, 6),
            "ARP hardware type is 6, which its standard does not allow here"
        );
        assert!(with(2, 9).starts_with("ARP protocol type"));
        assert!(with(4, 8).starts_with("ARP address length"));
        for cut in 0..28 {
            assert!(ArpPacket::parse(&REQUEST_BYTES[..cut]).is_err());
        }
    }
}
