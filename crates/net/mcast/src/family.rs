//! Differences between IPv4 and IPv6 multicast.

use volley_fib::{Family, V4, V6};
use volley_wire::{MacAddr, ethertype};

/// An IP version, as multicast nodes need it. The input nodes have checked that the fixed part of the header is present.
pub trait Mcast: Family {
    /// Name of the lookup node.
    const LOOKUP: &'static str;
    /// Name of the reverse-path check node.
    const RPF: &'static str;
    /// Name of the replication node.
    const REPLICATE: &'static str;
    /// Name of the rewrite node.
    const REWRITE: &'static str;
    /// Name of the node that sends ICMP errors.
    const ICMP_ERROR: &'static str;
    /// Name of the fragmentation node.
    const FRAGMENT: &'static str;
    /// Whether a packet that exceeds the MTU causes an ICMP error (RFC 4443, 2.4 e.3), or is dropped silently (RFC 1812,
    /// 4.3.2.7).
    const TELLS: bool;
    /// EtherType.
    const ETHER_TYPE: [u8; 2];

    /// Source and group of a packet.
    fn ends(header: &[u8]) -> Option<(Self::Addr, Self::Addr)>;
    /// Length of the packet by its IP header.
    fn length(header: &[u8]) -> usize;
    /// TTL or hop limit.
    fn hops(header: &[u8]) -> u8;
    /// Whether the router may fragment the packet.
    fn may_fragment(header: &[u8]) -> bool;
    /// Decrements the TTL or hop limit, and returns the MAC address of the group (RFC 1112, 6.4; RFC 2464, 7).
    fn hop(header: &mut [u8]) -> MacAddr;
}

fn be16(header: &[u8], at: usize) -> usize {
    let octets = header.get(at..at + 2);
    octets.map_or(0, |b| usize::from(u16::from_be_bytes([b[0], b[1]])))
}

fn octets<const N: usize>(header: &[u8], at: usize) -> Option<[u8; N]> {
    header.get(at..at + N)?.try_into().ok()
}

impl Mcast for V4 {
    const LOOKUP: &'static str = "ip4-mfib-forward-lookup";
    const RPF: &'static str = "ip4-mfib-forward-rpf";
    const REPLICATE: &'static str = "ip4-replicate";
    const REWRITE: &'static str = "ip4-rewrite-mcast";
    const ICMP_ERROR: &'static str = "ip4-icmp-error";
    const FRAGMENT: &'static str = "ip4-frag";
    const TELLS: bool = false;
    const ETHER_TYPE: [u8; 2] = ethertype::IP4.to_be_bytes();

    fn ends(header: &[u8]) -> Option<(u32, u32)> {
        let word = |at| octets(header, at).map(u32::from_be_bytes);
        Some((word(12)?, word(16)?))
    }

    fn length(header: &[u8]) -> usize {
        be16(header, 2)
    }

    fn hops(header: &[u8]) -> u8 {
        header.get(8).copied().unwrap_or(0)
    }

    fn may_fragment(header: &[u8]) -> bool {
        header.get(6).is_some_and(|flags| flags & 0x40 == 0)
    }

    fn hop(header: &mut [u8]) -> MacAddr {
        let Some(header) = header.first_chunk_mut::<20>() else {
            return MacAddr::ZERO;
        };
        header[8] = header[8].wrapping_sub(1);
        let sum = u16::from_be_bytes([header[10], header[11]]);
        let sum = volley_wire::checksum::after_ttl_decrement(sum);
        header[10..12].copy_from_slice(&sum.to_be_bytes());
        let [.., a, b, c, d] = *header;
        MacAddr::for_ip4_multicast([a, b, c, d].into())
    }
}

impl Mcast for V6 {
    const LOOKUP: &'static str = "ip6-mfib-forward-lookup";
    const RPF: &'static str = "ip6-mfib-forward-rpf";
    const REPLICATE: &'static str = "ip6-replicate";
    const REWRITE: &'static str = "ip6-rewrite-mcast";
    const ICMP_ERROR: &'static str = "ip6-icmp-error";
    const FRAGMENT: &'static str = "ip6-frag";
    const TELLS: bool = true;
    const ETHER_TYPE: [u8; 2] = ethertype::IP6.to_be_bytes();

    fn ends(header: &[u8]) -> Option<(u128, u128)> {
        let address = |at| octets(header, at).map(u128::from_be_bytes);
        Some((address(8)?, address(24)?))
    }

    fn length(header: &[u8]) -> usize {
        40 + be16(header, 4)
    }

    fn hops(header: &[u8]) -> u8 {
        header.get(7).copied().unwrap_or(0)
    }

    /// Only sources fragment (RFC 8200, 4.5).
    fn may_fragment(_: &[u8]) -> bool {
        false
    }

    fn hop(header: &mut [u8]) -> MacAddr {
        if let Some(hops) = header.get_mut(7) {
            *hops = hops.wrapping_sub(1);
        }
        let group = octets::<16>(header, 24).unwrap_or_default();
        MacAddr::for_ip6_multicast(group.into())
    }
}
