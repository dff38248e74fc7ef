//! ICMP messages: reasons to send one, its contents, reasons for suppression, and the quoted packet.

use volley_graph::PacketView;

/// Largest error message, with its IP header.
pub(crate) const LONGEST: usize = 1280;

/// Reason for a drop, as an ICMP error reports it to the sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ErrorReason {
    /// The TTL or hop limit is exhausted.
    Expired,
    /// No route covers the destination.
    NoRoute,
    /// The route is unreachable, or the next hop does not answer.
    Unreachable,
    /// The route is prohibited.
    Prohibited,
    /// The packet is for the router, which does not support the protocol.
    Protocol,
    /// The packet is for the router, which has no listener on the port.
    Port,
    /// The packet exceeds the MTU of the next link, and must not be fragmented.
    TooBig,
    /// A field of the packet is invalid.
    Problem,
    /// The packet is the first fragment of a datagram whose reassembly timed out.
    Reassembly,
    /// The packet is a fragment with more to follow whose length is no multiple of 8.
    FragmentLength,
    /// The packet is a fragment that ends behind the largest length of a datagram.
    FragmentOffset,
    /// The packet is a first fragment without the whole header chain.
    HeaderChain,
}

/// Errors that share one rate limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    Expired,
    Unreachable,
    TooBig,
    Problem,
    Redirect,
}

/// Contents of an error message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ErrorMessage {
    pub kind: u8,
    pub code: u8,
    /// Bytes 4 to 7: MTU or pointer.
    pub rest: [u8; 4],
}

/// Reason why no error is sent about a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Suppressed {
    /// The packet is an ICMP error, or may be one.
    AboutError,
    /// The packet is a fragment other than the first.
    AboutFragment,
    /// The source is not the address of one host.
    BadSource,
    /// The destination is not the address of one host.
    BadDestination,
    /// No route leads to the source.
    NoWayBack,
    /// No interface address can be the source of the error.
    NoAddress,
}

impl ErrorReason {
    pub(crate) fn class(self) -> Class {
        match self {
            ErrorReason::Expired | ErrorReason::Reassembly => Class::Expired,
            ErrorReason::TooBig => Class::TooBig,
            ErrorReason::Problem
            | ErrorReason::FragmentLength
            | ErrorReason::FragmentOffset
            | ErrorReason::HeaderChain => Class::Problem,
            _ => Class::Unreachable,
        }
    }
}

/// TTL or hop limit of packets from the router, one more than on the wire: the rewrite decrements it.
pub(crate) const HOPS: u8 = 65;

/// Copies the first bytes of the packet, as many as `out` holds or the packet has; returns how many.
pub(crate) fn quote(out: &mut [u8], packet: &PacketView<'_>) -> usize {
    let mut done = 0;
    packet.segments(0, |segment| {
        let part = segment.len().min(out.len() - done);
        out[done..done + part].copy_from_slice(&segment[..part]);
        done += part;
    });
    done
}

/// The big-endian 16-bit word at offset `at`; 0 behind the end.
pub(crate) fn be16(bytes: &[u8], at: usize) -> u16 {
    bytes
        .get(at..at + 2)
        .map_or(0, |b| u16::from_be_bytes([b[0], b[1]]))
}
