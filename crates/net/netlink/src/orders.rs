//! Encodes changes of LCP taps and routes as rtnetlink messages.

use crate::links::Order;
use crate::own::{METRIC, PROTOCOL, Step};
use crate::routes::{Hops, RouteHop, Spot};
use crate::socket::Kernel;
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVlan, LinkAttribute, LinkFlags, LinkInfo, LinkMessage, VlanProtocol,
};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteMessage, RouteNextHop, RouteNextHopFlags,
    RouteScope, RouteType, RouteVia,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use std::io;
use std::net::IpAddr;
use volley_iface::VlanTag;

/// `ESRCH`: the object to delete does not exist.
const NOT_THERE: i32 = 3;

impl Kernel {
    /// Carries out an order on the LCP tap with this ifindex.
    pub fn carry_out(&mut self, index: u32, order: &Order) -> io::Result<()> {
        let mut link = LinkMessage::default();
        link.header.index = index;
        match order {
            Order::Up(up) => {
                link.header.change_mask = LinkFlags::Up;
                if *up {
                    link.header.flags = LinkFlags::Up;
                }
            }
            Order::Mtu(mtu) => link.attributes.push(LinkAttribute::Mtu(*mtu)),
            Order::Mac(mac) => link.attributes.push(LinkAttribute::Address(mac.0.to_vec())),
            Order::Gone => return self.set(RouteNetlinkMessage::DelLink(link)),
            Order::Device(name, tag, vlan) => {
                return self.add(RouteNetlinkMessage::NewLink(device(
                    index, name, *tag, *vlan,
                )));
            }
            Order::Address(address, there) => {
                let message = address_message(index, address);
                return match there {
                    true => self.make(RouteNetlinkMessage::NewAddress(message)),
                    false => self.set(RouteNetlinkMessage::DelAddress(message)),
                };
            }
            Order::Neighbor(address, mac) => {
                let message = neighbor_message(index, *address, *mac);
                return match mac {
                    Some(_) => self.make(RouteNetlinkMessage::NewNeighbour(message)),
                    None => self.set(RouteNetlinkMessage::DelNeighbour(message)),
                };
            }
        }
        self.set(RouteNetlinkMessage::SetLink(link))
    }
}

/// An 802.1Q device on the interface with this ifindex.
fn device(on: u32, name: &str, tag: VlanTag, vlan: u16) -> LinkMessage {
    let protocol = match tag {
        VlanTag::Dot1q => VlanProtocol::Ieee8021Q,
        VlanTag::Dot1ad => VlanProtocol::Ieee8021Ad,
    };
    let data = vec![InfoVlan::Id(vlan), InfoVlan::Protocol(protocol)];
    let info = vec![
        LinkInfo::Kind(InfoKind::Vlan),
        LinkInfo::Data(InfoData::Vlan(data)),
    ];
    let mut message = LinkMessage::default();
    message.attributes = vec![
        LinkAttribute::IfName(name.to_owned()),
        LinkAttribute::Link(on),
        LinkAttribute::LinkInfo(info),
    ];
    message
}

fn family_of(address: IpAddr) -> AddressFamily {
    match address {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    }
}

fn address_message(index: u32, address: &volley_model::IfAddress) -> AddressMessage {
    let mut message = AddressMessage::default();
    message.header.family = family_of(address.addr());
    (message.header.prefix_len, message.header.index) = (address.len(), index);
    message.attributes = vec![
        AddressAttribute::Local(address.addr()),
        AddressAttribute::Address(address.addr()),
    ];
    message
}

fn neighbor_message(
    index: u32,
    address: IpAddr,
    mac: Option<volley_model::Mac>,
) -> NeighbourMessage {
    let mut message = NeighbourMessage::default();
    message.header.family = family_of(address);
    message.header.ifindex = index;
    message.header.state = NeighbourState::Permanent;
    let to = match address {
        IpAddr::V4(a) => NeighbourAddress::Inet(a),
        IpAddr::V6(a) => NeighbourAddress::Inet6(a),
    };
    message.attributes.push(NeighbourAttribute::Destination(to));
    let mac = mac.map(|mac| NeighbourAttribute::LinkLayerAddress(mac.0.to_vec()));
    message.attributes.extend(mac);
    message
}

impl Kernel {
    /// Carries out a step for a route of Volley.
    pub fn route(&mut self, spot: Spot, step: &Step) -> io::Result<()> {
        match step {
            Step::Add(hops) => self.add(RouteNetlinkMessage::NewRoute(route(spot, METRIC, hops))),
            Step::Replace(hops) => {
                self.make(RouteNetlinkMessage::NewRoute(route(spot, METRIC, hops)))
            }
            Step::Remove(metric, hops) => {
                let message = RouteNetlinkMessage::DelRoute(route(spot, *metric, hops));
                match self.set(message) {
                    Err(error) if error.raw_os_error() == Some(NOT_THERE) => Ok(()),
                    done => done,
                }
            }
        }
    }
}

fn route(spot: Spot, metric: u32, hops: &Hops) -> RouteMessage {
    let to = spot.prefix.addr();
    let mut message = RouteMessage::default();
    message.header.address_family = family_of(to);
    message.header.destination_prefix_length = spot.prefix.len();
    message.header.protocol = PROTOCOL.into();
    message.header.kind = match hops {
        Hops::Drop => RouteType::BlackHole,
        Hops::Unreachable => RouteType::Unreachable,
        Hops::Prohibit => RouteType::Prohibit,
        Hops::Legs(_) | Hops::Object(_) | Hops::Local(_) => RouteType::Unicast,
    };
    message.attributes = vec![
        RouteAttribute::Destination(address(to)),
        RouteAttribute::Table(spot.table),
        RouteAttribute::Priority(metric),
    ];
    match hops {
        Hops::Legs(legs) => ways(&mut message, legs),
        Hops::Object(id) => message.attributes.push(RouteAttribute::NhId(*id)),
        _ => {}
    }
    message
}

fn ways(message: &mut RouteMessage, legs: &[RouteHop]) {
    if let [leg] = legs {
        if leg.gateway.is_none() && message.header.address_family == AddressFamily::Inet {
            message.header.scope = RouteScope::Link;
        }
        message.header.flags = onlink(leg, RouteFlags::Onlink, RouteFlags::empty());
        message.attributes.push(RouteAttribute::Oif(leg.interface));
        message
            .attributes
            .extend(gateway(message.header.address_family, leg));
        return;
    }
    let hop = |leg: &RouteHop| {
        let mut hop = RouteNextHop::default();
        hop.flags = onlink(leg, RouteNextHopFlags::Onlink, RouteNextHopFlags::empty());
        hop.hops = leg.weight.saturating_sub(1);
        hop.interface_index = leg.interface;
        hop.attributes = gateway(message.header.address_family, leg)
            .into_iter()
            .collect();
        hop
    };
    let all = legs.iter().map(hop).collect();
    message.attributes.push(RouteAttribute::MultiPath(all));
}

/// `yes` for a leg with a gateway: Volley knows the interface of each next hop, but the kernel may have no address on that
/// link.
fn onlink<T>(leg: &RouteHop, yes: T, no: T) -> T {
    if leg.gateway.is_some() { yes } else { no }
}

fn gateway(family: AddressFamily, leg: &RouteHop) -> Option<RouteAttribute> {
    match (leg.gateway?, family) {
        (IpAddr::V6(via), AddressFamily::Inet) => Some(RouteAttribute::Via(RouteVia::Inet6(via))),
        (via, _) => Some(RouteAttribute::Gateway(address(via))),
    }
}

fn address(of: IpAddr) -> RouteAddress {
    match of {
        IpAddr::V4(a) => RouteAddress::Inet(a),
        IpAddr::V6(a) => RouteAddress::Inet6(a),
    }
}
