//! Differences between ICMP and ICMPv6 for the nodes.

use super::message::{ErrorMessage, ErrorReason, LONGEST, Suppressed};
use crate::Ip;
use crate::cut::Cuts;
use crate::local::Deliver;
use crate::reassembly::Reassemble;
use volley_graph::PacketView;

/// Differences between ICMP and ICMPv6. The position of a `packet` parameter is at the IP header, whose fixed part is present.
pub trait Icmp: Ip + Deliver + Cuts + Reassemble {
    /// Name of the node that creates errors.
    const ICMP_ERROR: &'static str;
    /// Name of the node that fragments packets which exceed the MTU of the egress link and may be fragmented.
    const FRAGMENT: &'static str;
    /// Name of the node for ICMP messages to the router.
    const ICMP_INPUT: &'static str;
    /// Name of the node that replies to echo requests.
    const ICMP_ECHO: &'static str;
    /// Edges of the ICMP input node: drop, echo, `ping` and other listeners for replies, kernel, neighbour discovery.
    const ICMP_EDGES: &'static [&'static str];
    /// Type of an echo request.
    const ECHO_REQUEST: u8;
    /// Type of an echo reply.
    const ECHO_REPLY: u8;
    /// Type of the parameter problem.
    const PARAMETER_PROBLEM: u8;

    /// Source and destination address of a packet.
    fn ends(header: &[u8]) -> Option<(Self::Addr, Self::Addr)>;
    /// Reason why no ICMP error about this packet may be sent; none if one may.
    #[doc(hidden)]
    #[expect(private_interfaces, reason = "the trait is sealed by its types")]
    fn silence(packet: &PacketView<'_>) -> Option<Suppressed>;
    /// The error message for a reason; none if the packet is dropped silently.
    #[doc(hidden)]
    #[expect(private_interfaces, reason = "the trait is sealed by its types")]
    fn say(why: ErrorReason, packet: &PacketView<'_>, mtu: u16) -> Option<ErrorMessage>;
    /// Whether an error about a multicast packet is one of the exceptions that are sent.
    #[doc(hidden)]
    #[expect(private_interfaces, reason = "the trait is sealed by its types")]
    fn tells_of_groups(why: ErrorReason, say: ErrorMessage, packet: &[u8]) -> bool;
    /// Whether an own address may be the source of a routed packet.
    fn is_routable(own: Self::Addr) -> bool;
    /// Writes an error message about `packet` and returns its length.
    #[doc(hidden)]
    #[expect(private_interfaces, reason = "the trait is sealed by its types")]
    fn write(
        out: &mut [u8; LONGEST],
        say: ErrorMessage,
        ends: (Self::Addr, Self::Addr),
        packet: &PacketView<'_>,
    ) -> usize;
    /// Name of the node that sends redirects.
    const REDIRECT: &'static str;
    /// The address of this family from an IPv4-mapped or IPv6 address; none for the other family.
    fn mapped(octets: [u8; 16]) -> Option<Self::Addr>;
    /// Source of a redirect on an interface with these addresses and this MAC address; `near` is the own address in the
    /// receiver's network.
    fn redirects_from(own: &[(Self::Addr, u8)], mac: u64, near: Self::Addr) -> Self::Addr;
    /// Whether a redirect may name `hop` as the better first hop for `destination`.
    fn is_first_hop(hop: Self::Addr, destination: Self::Addr) -> bool;
    /// Writes a redirect about `packet` to `hop`, whose MAC address is given if known; returns the length.
    #[doc(hidden)]
    fn write_redirect(
        out: &mut [u8; LONGEST],
        hop: (Self::Addr, Option<[u8; 6]>),
        ends: (Self::Addr, Self::Addr),
        packet: &PacketView<'_>,
    ) -> usize;
    /// Turns an echo request into its reply. Returns the number of bytes to remove at the start; none if the packet is no echo
    /// request.
    fn echo(packet: &mut [u8]) -> Option<usize>;
    /// Whether a type is a neighbour discovery message that the router processes.
    fn is_neighbor(kind: u8) -> bool;
    /// Whether a type is an error or is treated like one: no error is sent about such a message.
    fn is_error(kind: u8) -> bool;
    /// Type and code of an ICMP message.
    fn kind(packet: &[u8]) -> Option<(u8, u8)>;
}
