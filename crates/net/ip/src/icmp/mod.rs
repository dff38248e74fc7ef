//! ICMP errors: when one is sent, what it says, and how many. `docs/icmp.md` is the operator's page.
//!
//! A node that drops a packet counts it under its reason and sends it to the error node instead of `error-drop`; the error
//! node knows from the reason what is to be said, makes the error beside the packet, and lets the packet go on to its end.

mod control;
mod limits;
mod reason;
mod v4;
mod v6;
mod way;

pub use control::IcmpSwitches;
pub(crate) use control::own;
pub(crate) use limits::Limits;
pub(crate) use reason::Reasons;
pub(crate) use way::{ends, leaves_from, mtu};

use crate::Ip;
use crate::cut::Cuts;
use crate::local::Deliver;
use crate::reassembly::Reassemble;
use volley_graph::PacketView;

/// The longest error message, with its IP header.
pub(crate) const LONGEST: usize = 1280;

/// Why a packet goes no further, as far as its sender is told.
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
    /// It is for the router, where nobody listens on its port.
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
}

/// What differs between ICMP and ICMPv6. Where a packet is asked for, its position is at the IP header, whose fixed part is
/// there.
pub trait Icmp: Ip + Deliver + Cuts + Reassemble {
    /// Name of the node that makes errors.
    const ICMP_ERROR: &'static str;
    /// Where packets go that are too long for the link they leave by, and may be cut.
    const FRAGMENT: &'static str;
    /// Name of the node for messages to the router.
    const ICMP_INPUT: &'static str;
    /// Name of the node that answers echo requests.
    const ICMP_ECHO: &'static str;
    /// Where messages for the router go: to the drop, to be answered, to whoever
    /// waits for answers, to the kernel, to neighbour discovery.
    const ICMP_EDGES: &'static [&'static str];
    /// Type of an echo request.
    const ECHO_REQUEST: u8;
    /// Type of an echo reply.
    const ECHO_REPLY: u8;
    /// Type of the message that tells of a field at fault.
    const PARAMETER_PROBLEM: u8;

    /// Source and destination.
    fn ends(header: &[u8]) -> Option<(Self::Addr, Self::Addr)>;
    /// Why nobody may be told about this packet, whatever happened to it.
    #[doc(hidden)]
    #[expect(private_interfaces, reason = "the trait is sealed by its types")]
    fn silence(packet: &PacketView<'_>) -> Option<Suppressed>;
    /// What is to be said; none when such a packet is dropped silently.
    #[doc(hidden)]
    #[expect(private_interfaces, reason = "the trait is sealed by its types")]
    fn say(why: ErrorReason, packet: &PacketView<'_>, mtu: u16) -> Option<ErrorMessage>;
    /// Whether a message about a packet to a group is one of the few that are sent.
    #[doc(hidden)]
    #[expect(private_interfaces, reason = "the trait is sealed by its types")]
    fn tells_of_groups(why: ErrorReason, say: ErrorMessage, packet: &[u8]) -> bool;
    /// Whether an address may be the source of what is routed.
    fn is_routable(own: Self::Addr) -> bool;
    /// Write an error message about `packet` and return its length.
    #[doc(hidden)]
    #[expect(private_interfaces, reason = "the trait is sealed by its types")]
    fn write(
        out: &mut [u8; LONGEST],
        say: ErrorMessage,
        ends: (Self::Addr, Self::Addr),
        packet: &PacketView<'_>,
    ) -> usize;
    /// Name of the node that tells senders of better first hops.
    const REDIRECT: &'static str;
    /// An address that an IPv4-mapped or IPv6 one stands for; none for what is of the other family.
    fn mapped(octets: [u8; 16]) -> Option<Self::Addr>;
    /// Where a redirect comes from, on an interface with these addresses and this MAC address; `near` is the one whose network
    /// the receiver is in.
    fn redirects_from(own: &[(Self::Addr, u8)], mac: u64, near: Self::Addr) -> Self::Addr;
    /// Whether a redirect may name this as the better first hop of `destination`.
    fn is_first_hop(hop: Self::Addr, destination: Self::Addr) -> bool;
    /// Write a redirect about `packet` to `hop`, whose MAC address is given where it is known; returns its length.
    #[doc(hidden)]
    fn write_redirect(
        out: &mut [u8; LONGEST],
        hop: (Self::Addr, Option<[u8; 6]>),
        ends: (Self::Addr, Self::Addr),
        packet: &PacketView<'_>,
    ) -> usize;
    /// Turn an echo request into its answer: returns how many bytes at its start are no longer part of it, or none where
    /// there is no echo request.
    fn echo(packet: &mut [u8]) -> Option<usize>;
    /// Whether a type is one of neighbour discovery that somebody here reads.
    fn is_neighbor(kind: u8) -> bool;
    /// Whether a type is one of errors, or of what is treated like one: none is sent about them.
    fn is_error(kind: u8) -> bool;
    /// Type and code of an ICMP message.
    fn kind(packet: &[u8]) -> Option<(u8, u8)>;
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
