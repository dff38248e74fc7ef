//! Fields of headers by name, such as `ip4.ttl`, by the table of `volley_sdk::wire::field`.

use volley_sdk::wire::field::{
    ARP, ETH, Field, FieldKind, HeaderFields, IP4, IP6, header, of_protocol,
};
use volley_sdk::wire::{EtherType, IpProto, MacAddr, U16};

/// Bytes of an Ethernet header.
pub(crate) const ETHERNET: usize = 14;

/// A field and its header.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    header: &'static HeaderFields,
    pub(crate) field: &'static Field,
}

/// The field that a script names as `header.field`.
pub(crate) fn find(name: &str) -> Result<Place, String> {
    let wrong = || {
        format!(
            "'{name}' is no field: write HEADER.FIELD, such as ip4.ttl; docs/generated/packet-fields.md lists the fields"
        )
    };
    let (of, field) = name.split_once('.').ok_or_else(wrong)?;
    let header = header(of).ok_or_else(wrong)?;
    let field = header.field(field).ok_or_else(wrong)?;
    if !field.has_place() || field.bits > 48 && field.kind != FieldKind::Ip6 {
        return Err(format!("{name} has no fixed position or more than 48 bits"));
    }
    Ok(Place { header, field })
}

impl Place {
    /// Whether the field is in the IPv4 header, and not its checksum.
    pub(crate) fn is_summed(self) -> bool {
        std::ptr::eq(self.header, &IP4) && self.field.name != "checksum"
    }

    /// Where the header starts in a packet whose IP header, if it has one, starts at `net`; none if the packet has no such header.
    pub(crate) fn header_at(self, bytes: &[u8], net: usize) -> Option<usize> {
        let is = |other: &'static HeaderFields| std::ptr::eq(self.header, other);
        if is(&ETH) {
            return (net == ETHERNET).then_some(0);
        }
        if is(&ARP) {
            return (net == ETHERNET && ether_type(bytes) == Some(EtherType::ARP)).then_some(net);
        }
        let version = ip_version(bytes, net)?;
        match version {
            4 if is(&IP4) => return Some(net),
            6 if is(&IP6) => return Some(net),
            _ => {}
        }
        let (protocol, at) = transport(bytes, net, version)?;
        let known = of_protocol(protocol)?;
        is(known).then_some(at)
    }

    /// The value in a packet; none if the packet has no such field.
    pub(crate) fn read(self, bytes: &[u8], net: usize) -> Option<u128> {
        let at = self.header_at(bytes, net)?;
        self.field.read(bytes.get(at..)?)
    }

    /// Write the value; false, without a change, if the packet has no such field.
    pub(crate) fn write(self, bytes: &mut [u8], net: usize, value: u128) -> bool {
        let Some(at) = self.header_at(bytes, net) else {
            return false;
        };
        let (first, bits) = (usize::from(self.field.bit), usize::from(self.field.bits));
        let Some(bytes) = bytes.get_mut(at..at + (first + bits).div_ceil(8)) else {
            return false;
        };
        if first % 8 == 0 && bits % 8 == 0 {
            let value = value.to_be_bytes();
            if let Some(value) = value.get(value.len().saturating_sub(bits / 8)..) {
                bytes[first / 8..][..value.len()].copy_from_slice(value);
            }
            return true;
        }
        for bit in 0..bits {
            let place = first + bit;
            let one = 0x80 >> (place % 8);
            match value >> (bits - 1 - bit) & 1 {
                1 => bytes[place / 8] |= one,
                _ => bytes[place / 8] &= !one,
            }
        }
        true
    }

    /// Whether the field has room for the value.
    pub(crate) fn fits(self, value: u128) -> bool {
        value.checked_shr(u32::from(self.field.bits)).unwrap_or(0) == 0
    }
}

/// The EtherType of a frame.
pub(crate) fn ether_type(bytes: &[u8]) -> Option<EtherType> {
    let [high, low] = bytes.get(12..ETHERNET)?.try_into().ok()?;
    Some(EtherType(U16::from_bytes([high, low])))
}

/// The version of the IP packet at `net`, by the EtherType of a frame and by the packet.
pub(crate) fn ip_version(bytes: &[u8], net: usize) -> Option<u8> {
    let version = bytes.get(net)? >> 4;
    if net == 0 {
        return Some(version);
    }
    let is_right = match ether_type(bytes)? {
        EtherType::IP4 => version == 4,
        EtherType::IP6 => version == 6,
        _ => false,
    };
    is_right.then_some(version)
}

/// The protocol and the start of the header behind the IP header; none behind extension headers and in later fragments.
fn transport(bytes: &[u8], net: usize, version: u8) -> Option<(IpProto, usize)> {
    if version == 6 {
        return Some((IpProto(*bytes.get(net + 6)?), net + 40));
    }
    let length = usize::from(bytes.get(net)? & 15) * 4;
    let fragment = [*bytes.get(net + 6)? & 0x1f, *bytes.get(net + 7)?];
    (length >= 20 && fragment == [0, 0]).then_some(())?;
    Some((IpProto(*bytes.get(net + 9)?), net + length))
}

/// A MAC address as a number, the first byte highest.
pub(crate) fn mac_number(mac: MacAddr) -> u128 {
    mac.0
        .iter()
        .fold(0, |all, byte| all << 8 | u128::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame() -> Vec<u8> {
        let mut bytes = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
        bytes.extend([
            0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 9, 10, 0, 1, 2,
        ]);
        bytes.extend([0x12, 0x34, 0, 80, 0, 8, 0, 0]);
        bytes
    }

    #[test]
    fn fields_are_read_and_written_where_their_headers_are() {
        let mut bytes = frame();
        let port = find("udp.sport").unwrap();
        assert_eq!(port.read(&bytes, ETHERNET), Some(0x1234));
        assert!(port.write(&mut bytes, ETHERNET, 0xabcd));
        assert_eq!(port.read(&bytes, ETHERNET), Some(0xabcd));
        assert_eq!(find("ip4.ttl").unwrap().read(&bytes, ETHERNET), Some(64));
        assert_eq!(find("ip4.ttl").unwrap().read(&bytes[14..], 0), Some(64));
        assert_eq!(find("tcp.sport").unwrap().read(&bytes, ETHERNET), None);
        assert_eq!(find("eth.src").unwrap().read(&bytes[14..], 0), None);
        let dscp = find("ip4.dscp").unwrap();
        assert!(dscp.write(&mut bytes, ETHERNET, 0x2e));
        assert_eq!(bytes[15], 0xb8);
        assert!(dscp.fits(63) && !dscp.fits(64));
    }

    #[test]
    fn no_bytes_behind_the_end_are_read_or_written() {
        let whole = frame();
        for name in [
            "eth.dst",
            "ip4.dst",
            "udp.dport",
            "arp.spa",
            "ip6.src",
            "icmp.type",
        ] {
            let place = find(name).unwrap();
            for length in 0..=whole.len() {
                for net in [0, ETHERNET] {
                    let mut bytes = whole[..length].to_vec();
                    let before = place.read(&bytes, net);
                    let written = place.write(&mut bytes, net, 0);
                    assert_eq!(before.is_some(), written, "{name} in {length} bytes");
                }
            }
        }
    }

    #[test]
    fn wrong_names_are_refused() {
        for name in ["ttl", "ip4.colour", "ipx.ttl", "ip4.options"] {
            assert!(find(name).is_err(), "{name}");
        }
    }
}
