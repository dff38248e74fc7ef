//! Types of super-segments: the protocol of the segments, and whether their sender uses ECN. The engine carries a type as a
//! [`GsoKind`].

use volley_graph::GsoKind;
use volley_wire::IpProto;

/// Protocol number of TCP (IANA).
pub(crate) const TCP: u8 = IpProto::TCP.0;
/// Protocol number of UDP.
const UDP: u8 = IpProto::UDP.0;

/// The protocol of a super-segment; its number is the class of the [`GsoKind`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum GsoProtocol {
    /// TCP over IPv4.
    Tcp4 = 0,
    /// TCP over IPv6.
    Tcp6 = 1,
    /// UDP over either, one datagram for each segment.
    Udp = 2,
}

impl GsoProtocol {
    /// Whether the segments are UDP datagrams, and not TCP segments.
    #[inline(always)]
    pub(crate) const fn is_udp(self) -> bool {
        matches!(self, GsoProtocol::Udp)
    }

    /// Protocol number in the IP header.
    #[inline(always)]
    pub(crate) const fn number(self) -> u8 {
        if self.is_udp() { UDP } else { TCP }
    }

    /// Offset of the checksum from the start of the layer-4 header.
    #[inline(always)]
    pub(crate) const fn checksum_offset(self) -> usize {
        if self.is_udp() { 6 } else { 16 }
    }
}

/// The type of a super-segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GsoType {
    /// Protocol of the segments.
    pub protocol: GsoProtocol,
    /// TCP with ECN: the CWR flag stays on the first segment only (RFC 3168, 6.1.2).
    pub ecn: bool,
}

/// The names of the classes, for the text of traces.
pub(crate) const NAMES: [&str; GsoKind::CLASSES] = ["TCP over IPv4", "TCP over IPv6", "UDP"];

impl From<GsoProtocol> for GsoKind {
    #[inline(always)]
    fn from(protocol: GsoProtocol) -> Self {
        match protocol {
            GsoProtocol::Tcp4 => const { GsoKind::new(GsoProtocol::Tcp4 as u8) },
            GsoProtocol::Tcp6 => const { GsoKind::new(GsoProtocol::Tcp6 as u8) },
            GsoProtocol::Udp => const { GsoKind::new(GsoProtocol::Udp as u8) },
        }
    }
}

impl From<GsoKind> for GsoProtocol {
    #[inline(always)]
    fn from(kind: GsoKind) -> Self {
        match kind.class() {
            0 => GsoProtocol::Tcp4,
            1 => GsoProtocol::Tcp6,
            _ => GsoProtocol::Udp,
        }
    }
}

impl From<GsoType> for GsoKind {
    #[inline(always)]
    fn from(gso: GsoType) -> Self {
        GsoKind::from(gso.protocol).with_flag(gso.ecn)
    }
}

impl From<GsoKind> for GsoType {
    #[inline(always)]
    fn from(kind: GsoKind) -> Self {
        GsoType {
            protocol: kind.into(),
            ecn: kind.has_flag(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use GsoProtocol::{Tcp4, Tcp6, Udp};

    #[test]
    fn types_survive_the_engine() {
        for (protocol, name) in [
            (Tcp4, "TCP over IPv4"),
            (Tcp6, "TCP over IPv6"),
            (Udp, "UDP"),
        ] {
            for ecn in [false, true] {
                let gso = GsoType { protocol, ecn };
                let kind = GsoKind::from(gso);
                assert_eq!(GsoType::from(kind), gso);
                assert_eq!(GsoProtocol::from(kind), protocol);
                assert_eq!(NAMES[usize::from(kind.class())], name);
            }
        }
    }
}
