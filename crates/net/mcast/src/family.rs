//! What differs between groups of IPv4 and of IPv6.

use volley_fib::{Family, V4, V6};
use volley_wire::{MacAddr, ethertype};

/// An IP version, as multicast nodes see it. Headers are looked at behind the input nodes: their fixed part is there.
pub trait Mcast: Family {
    /// Name of the node that finds the route.
    const LOOKUP: &'static str;
    /// Name of the node that checks where packets come from.
    const RPF: &'static str;
    /// Name of the node that makes copies.
    const REPLICATE: &'static str;
    /// Name of the node that makes each copy ready to leave.
    const REWRITE: &'static str;
    /// Name of the node that tells senders.
    const ICMP_ERROR: &'static str;
    /// Name of the node that cuts.
    const FRAGMENT: &'static str;
    /// Packets that do not fit are told of (RFC 4443, 2.4 e.3), or dropped in silence (RFC 1812, 4.3.2.7).
    const TELLS: bool;
    /// Type of its Ethernet frames.
    const ETHER_TYPE: [u8; 2];

    /// Source and group.
    fn ends(header: &[u8]) -> Option<(Self::Addr, Self::Addr)>;
    /// Length of the packet by its own header.
    fn length(header: &[u8]) -> usize;
    /// Hops that it may still go.
    fn hops(header: &[u8]) -> u8;
    /// Whether it may be cut here.
    fn may_fragment(header: &[u8]) -> bool;
    /// One hop less, and the MAC address of the group (RFC 1112, 6.4; RFC 2464, 7).
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
