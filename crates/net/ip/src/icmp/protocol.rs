//! What the nodes need of ICMP and of ICMPv6.

use super::message::{ErrorMessage, ErrorReason, LONGEST, Suppressed};
use crate::Ip;
use crate::cut::Cuts;
use crate::local::Deliver;
use crate::reassembly::Reassemble;
use volley_graph::PacketView;

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
    /// Where messages for the router go: to the drop, to be answered, to `ping` and other listeners for answers, to the kernel,
    /// to neighbour discovery.
    const ICMP_EDGES: &'static [&'static str];
    /// Type of an echo request.
    const ECHO_REQUEST: u8;
    /// Type of an echo reply.
    const ECHO_REPLY: u8;
    /// Type of the message that tells of a field at fault.
    const PARAMETER_PROBLEM: u8;

    /// Source and destination.
    fn ends(header: &[u8]) -> Option<(Self::Addr, Self::Addr)>;
    /// Why no ICMP error about this packet may be sent, whatever happened to it.
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
    /// The address of an IPv4-mapped or IPv6 address; none for one of the other family.
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
    /// Whether a type is one of neighbour discovery that the router reads.
    fn is_neighbor(kind: u8) -> bool;
    /// Whether a type is one of errors, or of what is treated like one: none is sent about them.
    fn is_error(kind: u8) -> bool;
    /// Type and code of an ICMP message.
    fn kind(packet: &[u8]) -> Option<(u8, u8)>;
}
