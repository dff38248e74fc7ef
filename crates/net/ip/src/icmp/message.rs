//! ICMP messages: why one is sent, what it says, why none is sent, and the bytes of the packet that it quotes.

use volley_graph::PacketView;

/// The longest error message, with its IP header.
pub(crate) const LONGEST: usize = 1280;

/// Why a packet is dropped, as an ICMP error reports it to the sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ErrorReason {
    /// Its hops are used up.
    Expired,
    /// No route covers its destination.
    NoRoute,
    /// The route leads nowhere, or the next hop does not answer.
    Unreachable,
    /// The route says that such packets are prohibited.
    Prohibited,
    /// It is for the router, which does not speak its protocol.
    Protocol,
    /// It is for the router, which has no listener on its port.
    Port,
    /// It does not fit the next link, and must not be fragmented.
    TooBig,
    /// A field of it is wrong.
    Problem,
    /// It is the first fragment of a datagram that was not whole in time.
    Reassembly,
    /// It is a fragment whose length is no multiple of 8, and more follow.
    FragmentLength,
    /// It is a fragment whose end lies where no datagram's can.
    FragmentOffset,
    /// It is a first fragment without all headers.
    HeaderChain,
}

/// Errors that share one budget.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    Expired,
    Unreachable,
    TooBig,
    Problem,
    Redirect,
}

/// What an error message says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ErrorMessage {
    pub kind: u8,
    pub code: u8,
    /// Bytes 4 to 7: MTU or pointer.
    pub rest: [u8; 4],
}

/// Why a packet is not answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Suppressed {
    /// It is an ICMP error, or may be one.
    AboutError,
    /// It is a fragment that is not the first.
    AboutFragment,
    /// Its source is not the address of one host.
    BadSource,
    /// Its destination is not one host.
    BadDestination,
    /// No route leads back.
    NoWayBack,
    /// The interface has no address to answer from.
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

/// Hops of what the router sends itself, one more than the wire shall see: the rewrite takes one off.
pub(crate) const HOPS: u8 = 65;

/// Copy the packet's first bytes, as many as `out` holds or there are; returns how many.
pub(crate) fn quote(out: &mut [u8], packet: &PacketView<'_>) -> usize {
    let mut done = 0;
    packet.segments(0, |segment| {
        let part = segment.len().min(out.len() - done);
        out[done..done + part].copy_from_slice(&segment[..part]);
        done += part;
    });
    done
}

/// A big-endian number in front of which `at` bytes lie; 0 where the bytes end.
pub(crate) fn be16(bytes: &[u8], at: usize) -> u16 {
    bytes
        .get(at..at + 2)
        .map_or(0, |b| u16::from_be_bytes([b[0], b[1]]))
}
