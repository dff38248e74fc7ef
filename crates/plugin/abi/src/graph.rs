//! What a plugin changes in the graph besides its nodes: arcs, edges of other nodes, and the packets that its nodes receive.

use std::cell::Cell;
use std::fmt;
use std::rc::Rc;
use volley_graph::ArcId;

/// A feature arc of a plugin. The router gives it a number before it makes the first instance of a node.
#[derive(Clone, Debug)]
pub struct PluginArc {
    /// Name.
    pub name: String,
    /// The node that sends packets into the arc.
    pub start: String,
    /// The node at the end of the arc.
    pub end: String,
    number: Rc<Cell<u8>>,
}

impl PluginArc {
    pub(crate) fn new(name: &str, start: &str, end: &str) -> Self {
        PluginArc {
            name: name.to_owned(),
            start: start.to_owned(),
            end: end.to_owned(),
            number: Rc::default(),
        }
    }

    /// The arc, for `Vector::send_arc`. Call it in the function that makes the instance of a node: before, it is another arc.
    pub fn id(&self) -> ArcId {
        ArcId(self.number.get())
    }

    /// The router's side: the number of the arc.
    pub fn set(&self, id: ArcId) {
        self.number.set(id.0);
    }
}

/// An edge of a node of the router or of the plugin that leads to a node of the plugin as long as the plugin is loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginEdge {
    /// The node whose edge it is.
    pub node: String,
    /// Where its edge leads without the plugin.
    pub from: String,
    /// The node of the plugin.
    pub to: String,
}

/// Packets that a node of a plugin receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PluginProtocol {
    /// Frames of an EtherType other than those of IPv4, IPv6 and VLAN tags, to the interface's MAC address or a group. Their
    /// position is behind the Ethernet header.
    EtherType(u16),
    /// IPv4 packets to an address of the router with this protocol, which is not ICMP, TCP or UDP. Their position is at the IP
    /// header.
    Ip4(u8),
    /// As `Ip4`, for IPv6: the protocol behind the extension headers.
    Ip6(u8),
    /// UDP datagrams over IPv4 to this port of the router.
    Udp4(u16),
    /// UDP datagrams over IPv6 to this port of the router.
    Udp6(u16),
}

impl fmt::Display for PluginProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PluginProtocol::EtherType(number) => write!(f, "EtherType 0x{number:04x}"),
            PluginProtocol::Ip4(number) => write!(f, "IPv4 protocol {number}"),
            PluginProtocol::Ip6(number) => write!(f, "IPv6 protocol {number}"),
            PluginProtocol::Udp4(port) => write!(f, "UDP port {port} of IPv4"),
            PluginProtocol::Udp6(port) => write!(f, "UDP port {port} of IPv6"),
        }
    }
}

/// A node of a plugin that receives the packets of a protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginListener {
    /// The protocol.
    pub protocol: PluginProtocol,
    /// The node.
    pub node: String,
}
