//! Parses netlink messages of the kernel. The input is untrusted: a message that cannot be parsed is `Odd`.

use crate::routes::{Hops, RouteHop};
use netlink_packet_core::ParseableParametrized;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressAttribute, AddressMessage, AddressProtocol};
use netlink_packet_route::link::{
    InfoData, InfoVlan, InfoVrf, LinkAttribute, LinkFlags, LinkInfo, LinkMessage, VlanProtocol,
};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteMessage, RouteNextHopFlags, RouteProtocol,
    RouteType, RouteVia,
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use volley_iface::VlanTag;
use volley_model::{IfAddress, Mac, Prefix};

/// Bytes of `nlmsghdr`.
const HEADER: usize = 16;
const ERROR: u16 = 2;
const DONE: u16 = 3;
const NEW_NEXTHOP: u16 = 104;
const DEL_NEXTHOP: u16 = 105;
/// The first message type that is not a netlink control message.
const FIRST_KIND: u16 = 16;
/// Flag of a message of a dump: the dumped data changed after the dump began (`NLM_F_DUMP_INTR`).
const INTERRUPTED: u16 = 0x10;
const REPLACE: u16 = 0x100;
const APPEND: u16 = 0x800;

/// An interface of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Ifindex.
    pub index: u32,
    /// Name of the interface.
    pub name: String,
    /// MAC address of the interface.
    pub mac: Option<Mac>,
    /// MTU of the interface.
    pub mtu: u32,
    /// Administratively up.
    pub up: bool,
    /// Ifindex of the master: a bridge or a VRF.
    pub master: Option<u32>,
    /// Type of the interface, as far as this crate uses it.
    pub device: Device,
}

/// Type of an interface of the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Device {
    /// A type that this crate does not use.
    #[default]
    Other,
    /// An 802.1Q device.
    Vlan {
        /// Ifindex of the lower device.
        parent: u32,
        /// Tag type (TPID) of the device.
        tag: VlanTag,
        /// VLAN identifier.
        vlan: u16,
    },
    /// A VRF.
    Vrf {
        /// The VRF's table in the kernel.
        table: u32,
    },
}

/// Position of a new route among those of the same prefix and metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Before the others.
    First,
    /// In place of the first.
    Replace,
    /// After the others.
    Append,
}

/// A route of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Table of the kernel.
    pub table: u32,
    /// Prefix of the route.
    pub prefix: Prefix,
    /// Metric; the lowest is preferred.
    pub metric: u32,
    /// Next hops of the route.
    pub hops: Hops,
    /// Position among routes of the same prefix and metric.
    pub place: Place,
    /// Origin of the route (`rtm_protocol`).
    pub protocol: u8,
}

/// An object that was added or deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// An interface.
    Link(Link),
    /// An address of the interface with this ifindex.
    Address(u32, IfAddress),
    /// A link-local address that the kernel generated (RFC 4862, 5.3), on the interface with this ifindex.
    Automatic(u32, IfAddress),
    /// A permanent neighbour on the interface with this ifindex.
    Neighbor(u32, IpAddr, Option<Mac>),
    /// A route.
    Route(Route),
    /// A next-hop object or group, by identifier.
    NextHop(u32, NextHop),
}

/// Contents of a next-hop object of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextHop {
    /// One next hop.
    One(RouteHop),
    /// A blackhole.
    Drop,
    /// A group: identifiers and weights of other next-hop objects.
    Group(Vec<(u32, u8)>),
}

/// A parsed netlink message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelMessage {
    /// An object was added or changed.
    New(Item),
    /// An object was deleted.
    Gone(Item),
    /// End of a dump.
    Done,
    /// Reply to a request: 0, or the kernel's error number.
    Answer(i32),
    /// The dumped data changed during the dump: the dump may be incomplete.
    Interrupted,
    /// A message that this crate does not use.
    Other,
    /// A message that cannot be parsed.
    Odd,
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes
        .get(at..at + 2)
        .map_or(0, |b| u16::from_ne_bytes([b[0], b[1]]))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes
        .get(at..at + 4)
        .map_or(0, |b| u32::from_ne_bytes([b[0], b[1], b[2], b[3]]))
}

/// Parses all messages of one read from a socket. Of replies, only those with sequence number `number` are reported: the reply
/// to a request that timed out may arrive late.
pub fn read(mut bytes: &[u8], number: Option<u32>, mut each: impl FnMut(KernelMessage)) {
    while bytes.len() >= HEADER {
        let len = u32_at(bytes, 0) as usize;
        let Some(one) = bytes.get(..len).filter(|one| one.len() >= HEADER) else {
            return each(KernelMessage::Odd);
        };
        if number.is_none_or(|number| u32_at(one, 8) == number) {
            let flags = u16_at(one, 6);
            if number.is_some() && flags & INTERRUPTED != 0 {
                each(KernelMessage::Interrupted);
            }
            each(message(u16_at(one, 4), flags, &one[HEADER..]));
        }
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
    }
}

fn message(kind: u16, flags: u16, body: &[u8]) -> KernelMessage {
    match kind {
        DONE => KernelMessage::Done,
        ERROR => KernelMessage::Answer((u32_at(body, 0) as i32).saturating_neg()),
        NEW_NEXTHOP => next_hop(body).map_or(KernelMessage::Odd, KernelMessage::New),
        DEL_NEXTHOP => next_hop(body).map_or(KernelMessage::Odd, KernelMessage::Gone),
        kind if kind < FIRST_KIND => KernelMessage::Other,
        kind => match RouteNetlinkMessage::parse_with_param(body, kind) {
            Ok(message) => understood(message, flags),
            Err(_) => KernelMessage::Odd,
        },
    }
}

fn understood(message: RouteNetlinkMessage, flags: u16) -> KernelMessage {
    let (item, there) = match message {
        RouteNetlinkMessage::NewLink(m) => (Some(Item::Link(link(m))), true),
        RouteNetlinkMessage::DelLink(m) => (Some(Item::Link(link(m))), false),
        RouteNetlinkMessage::NewAddress(m) => (address(m), true),
        RouteNetlinkMessage::DelAddress(m) => (address(m), false),
        RouteNetlinkMessage::NewNeighbour(m) => (neighbor(m), true),
        RouteNetlinkMessage::DelNeighbour(m) => (neighbor(m), false),
        RouteNetlinkMessage::NewRoute(m) => (route(m, flags).map(Item::Route), true),
        RouteNetlinkMessage::DelRoute(m) => (route(m, flags).map(Item::Route), false),
        _ => (None, true),
    };
    match (item, there) {
        (None, _) => KernelMessage::Other,
        (Some(item), true) => KernelMessage::New(item),
        (Some(item), false) => KernelMessage::Gone(item),
    }
}

fn link(message: LinkMessage) -> Link {
    let mut link = Link {
        index: message.header.index,
        name: String::new(),
        mac: None,
        mtu: 0,
        up: message.header.flags.contains(LinkFlags::Up),
        master: None,
        device: device(&message.attributes),
    };
    for attribute in message.attributes {
        match attribute {
            LinkAttribute::IfName(name) => link.name = name,
            LinkAttribute::Address(mac) => link.mac = mac.try_into().ok().map(Mac),
            LinkAttribute::Mtu(mtu) => link.mtu = mtu,
            LinkAttribute::Controller(master) => link.master = Some(master).filter(|m| *m != 0),
            _ => {}
        }
    }
    link
}

fn device(attributes: &[LinkAttribute]) -> Device {
    let (mut parent, mut data) = (None, None);
    for attribute in attributes {
        match attribute {
            LinkAttribute::Link(index) => parent = Some(*index),
            LinkAttribute::LinkInfo(all) => {
                data = all.iter().find_map(|info| match info {
                    LinkInfo::Data(data) => Some(data),
                    _ => None,
                });
            }
            _ => {}
        }
    }
    match (data, parent) {
        (Some(InfoData::Vrf(all)), _) => {
            let table = all.iter().find_map(|info| match info {
                InfoVrf::TableId(table) => Some(*table),
                _ => None,
            });
            table.map_or(Device::Other, |table| Device::Vrf { table })
        }
        (Some(InfoData::Vlan(all)), Some(parent)) => vlan(parent, all).unwrap_or_default(),
        _ => Device::Other,
    }
}

fn vlan(parent: u32, all: &[InfoVlan]) -> Option<Device> {
    let (mut vlan, mut tag) = (None, VlanTag::Dot1q);
    for info in all {
        match info {
            InfoVlan::Id(id) => vlan = Some(*id),
            InfoVlan::Protocol(VlanProtocol::Ieee8021Ad) => tag = VlanTag::Dot1ad,
            _ => {}
        }
    }
    let vlan = vlan?;
    Some(Device::Vlan { parent, tag, vlan })
}

fn address(message: AddressMessage) -> Option<Item> {
    let (mut own, mut other, mut automatic) = (None, None, false);
    for attribute in message.attributes {
        match attribute {
            AddressAttribute::Local(address) => own = Some(address),
            AddressAttribute::Address(address) => other = Some(address),
            AddressAttribute::Protocol(AddressProtocol::LinkLocal) => automatic = true,
            _ => {}
        }
    }
    let address = IfAddress::new(own.or(other)?, message.header.prefix_len).ok()?;
    Some(match automatic {
        true => Item::Automatic(message.header.index, address),
        false => Item::Address(message.header.index, address),
    })
}

fn neighbor(message: NeighbourMessage) -> Option<Item> {
    let (mut address, mut mac) = (None, None);
    for attribute in message.attributes {
        match attribute {
            NeighbourAttribute::Destination(NeighbourAddress::Inet(a)) => address = Some(a.into()),
            NeighbourAttribute::Destination(NeighbourAddress::Inet6(a)) => address = Some(a.into()),
            NeighbourAttribute::LinkLayerAddress(bytes) => mac = bytes.try_into().ok().map(Mac),
            _ => {}
        }
    }
    let fixed = message.header.state == NeighbourState::Permanent;
    let mac = mac.filter(|_| fixed);
    Some(Item::Neighbor(message.header.ifindex, address?, mac))
}

fn ip(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(a) => Some((*a).into()),
        RouteAddress::Inet6(a) => Some((*a).into()),
        _ => None,
    }
}

/// Attributes of one next hop.
#[derive(Default)]
struct RouteAttributes {
    gateway: Option<IpAddr>,
    interface: Option<u32>,
    legs: Vec<RouteHop>,
    object: Option<u32>,
    metric: u32,
    table: Option<u32>,
    destination: Option<IpAddr>,
}

fn way(attributes: Vec<RouteAttribute>) -> RouteAttributes {
    let mut way = RouteAttributes::default();
    for attribute in attributes {
        match attribute {
            RouteAttribute::Gateway(a) => way.gateway = ip(&a),
            RouteAttribute::Via(RouteVia::Inet(a)) => way.gateway = Some(a.into()),
            RouteAttribute::Via(RouteVia::Inet6(a)) => way.gateway = Some(a.into()),
            RouteAttribute::Oif(index) => way.interface = Some(index),
            RouteAttribute::NhId(id) => way.object = Some(id),
            RouteAttribute::Priority(metric) => way.metric = metric,
            RouteAttribute::Table(table) => way.table = Some(table),
            RouteAttribute::Destination(a) => way.destination = ip(&a),
            RouteAttribute::MultiPath(all) => {
                way.legs.extend(all.into_iter().map(|hop| RouteHop {
                    interface: hop.interface_index,
                    gateway: self::way(hop.attributes).gateway,
                    weight: hop.hops.saturating_add(1),
                    onlink: hop.flags.contains(RouteNextHopFlags::Onlink),
                }));
            }
            _ => {}
        }
    }
    way
}

/// Parses a route; none if the route is not synchronised.
fn route(message: RouteMessage, flags: u16) -> Option<Route> {
    let header = message.header;
    if header.flags.contains(RouteFlags::Cloned)
        || header.protocol == RouteProtocol::Kernel && header.kind != RouteType::Local
    {
        // A cached route (`RTM_F_CLONED`), or a route that the kernel derived from an address.
        return None;
    }
    let is6 =
        u8::from(header.address_family) != u8::from(netlink_packet_route::AddressFamily::Inet);
    let way = way(message.attributes);
    let any: IpAddr = match is6 {
        true => Ipv6Addr::UNSPECIFIED.into(),
        false => Ipv4Addr::UNSPECIFIED.into(),
    };
    let destination = way.destination.unwrap_or(any);
    let prefix = Prefix::masked(destination, header.destination_prefix_length).ok()?;
    let hops = match header.kind {
        RouteType::Unicast => unicast(&way, header.flags.contains(RouteFlags::Onlink)),
        RouteType::Local => Hops::Local(way.interface.unwrap_or(0)),
        RouteType::BlackHole => Hops::Drop,
        RouteType::Unreachable => Hops::Unreachable,
        RouteType::Prohibit => Hops::Prohibit,
        _ => return None,
    };
    let place = match flags {
        _ if flags & REPLACE != 0 => Place::Replace,
        _ if flags & APPEND != 0 => Place::Append,
        _ => Place::First,
    };
    Some(Route {
        table: way.table.unwrap_or(header.table.into()),
        prefix,
        metric: way.metric,
        hops,
        place,
        protocol: header.protocol.into(),
    })
}

fn unicast(way: &RouteAttributes, onlink: bool) -> Hops {
    if let Some(id) = way.object {
        return Hops::Object(id);
    }
    let mut legs = way.legs.clone();
    if let (true, Some(interface)) = (legs.is_empty(), way.interface) {
        legs.push(RouteHop {
            interface,
            gateway: way.gateway,
            weight: 1,
            onlink,
        });
    }
    Hops::Legs(legs)
}

/// `struct nhmsg` (8 bytes) and its attributes.
fn next_hop(body: &[u8]) -> Option<Item> {
    let (mut id, mut leg, mut group, mut drops) = (None, RouteHop::default(), None, false);
    leg.weight = 1;
    let mut rest = body.get(8..)?;
    // `nh_flags`.
    leg.onlink = u32_at(body, 4) & RouteNextHopFlags::Onlink.bits() as u32 != 0;
    while rest.len() >= 4 {
        let (len, kind) = (usize::from(u16_at(rest, 0)), u16_at(rest, 2) & 0x3fff);
        let value = rest.get(4..len)?;
        match kind {
            1 => id = Some(u32_at(value, 0)),
            2 => {
                // `struct nexthop_grp`: identifier, weight less one, three reserved bytes.
                let member = |m: &[u8]| (u32_at(m, 0), m[4].saturating_add(1));
                group = Some(value.chunks_exact(8).map(member).collect());
            }
            4 => drops = true,
            5 => leg.interface = u32_at(value, 0),
            6 => leg.gateway = gateway(value),
            _ => {}
        }
        rest = rest.get(len.next_multiple_of(4)..).unwrap_or_default();
    }
    let hop = match (group, drops) {
        (Some(group), _) => NextHop::Group(group),
        (None, true) => NextHop::Drop,
        (None, false) => NextHop::One(leg),
    };
    Some(Item::NextHop(id?, hop))
}

fn gateway(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(octets) = <[u8; 4]>::try_from(bytes) {
        return Some(octets.into());
    }
    <[u8; 16]>::try_from(bytes).ok().map(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut out = ((4 + value.len()) as u16).to_ne_bytes().to_vec();
        out.extend(kind.to_ne_bytes());
        out.extend(value);
        out.resize(out.len().next_multiple_of(4), 0);
        out
    }

    fn framed(kind: u16, body: &[u8]) -> Vec<u8> {
        let mut out = ((HEADER + body.len()) as u32).to_ne_bytes().to_vec();
        out.extend(kind.to_ne_bytes());
        out.resize(HEADER, 0);
        out.extend(body);
        out
    }

    fn all(bytes: &[u8]) -> Vec<KernelMessage> {
        let mut output = Vec::new();
        read(bytes, None, |one| output.push(one));
        output
    }

    /// Found by the fuzz target netlink_messages.
    #[test]
    fn an_error_number_without_a_negative_is_read() {
        let answers = [
            framed(2, &i32::MIN.to_ne_bytes()),
            framed(2, &(-17i32).to_ne_bytes()),
        ];
        let want = [i32::MAX, 17].map(KernelMessage::Answer);
        assert_eq!(all(&answers.concat()), want);
    }

    #[test]
    fn next_hops_and_groups_are_read() {
        let mut one = vec![2, 0, 0, 0, 0, 0, 0, 0];
        one.extend(attribute(1, &7u32.to_ne_bytes()));
        one.extend(attribute(5, &3u32.to_ne_bytes()));
        one.extend(attribute(6, &[192, 0, 2, 9]));
        // RTNH_F_ONLINK.
        one[4] = 4;
        let mut group = vec![0; 8];
        group.extend(attribute(1, &9u32.to_ne_bytes()));
        let members = [7u32.to_ne_bytes(), [1, 0, 0, 0], 8u32.to_ne_bytes(), [0; 4]];
        group.extend(attribute(2, &members.concat()));
        let bytes = [framed(104, &one), framed(105, &group), framed(3, &[0; 4])].concat();
        let leg = RouteHop {
            interface: 3,
            gateway: Some("192.0.2.9".parse().unwrap()),
            weight: 1,
            onlink: true,
        };
        let want = [
            KernelMessage::New(Item::NextHop(7, NextHop::One(leg))),
            KernelMessage::Gone(Item::NextHop(9, NextHop::Group(vec![(7, 2), (8, 1)]))),
            KernelMessage::Done,
        ];
        assert_eq!(all(&bytes), want);
    }

    #[test]
    fn devices_and_vrfs_are_told_apart() {
        // `struct ifinfomsg`: family, type, number 7, flags (up), change.
        let mut body = vec![0, 0, 1, 0, 7, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0];
        let name = |name: &str| attribute(3, name.as_bytes());
        let nested = |kind: u16, parts: &[Vec<u8>]| attribute(kind | 0x8000, &parts.concat());
        let device = |bytes: &[u8]| match all(&framed(16, bytes)).remove(0) {
            KernelMessage::New(Item::Link(link)) => (link.name, link.master, link.device),
            other => panic!("{other:?}"),
        };
        let head = body.clone();
        body.extend(name("v100\0"));
        body.extend(attribute(5, &3u32.to_ne_bytes()));
        body.extend(attribute(10, &9u32.to_ne_bytes()));
        // IFLA_INFO_KIND, then IFLA_VLAN_ID and IFLA_VLAN_PROTOCOL (big endian) within IFLA_INFO_DATA.
        let data = [
            attribute(1, &100u16.to_ne_bytes()),
            attribute(5, &0x88a8u16.to_be_bytes()),
        ];
        let info = [attribute(1, b"vlan\0"), nested(2, &data)];
        body.extend(nested(18, &info));
        let vlan = Device::Vlan {
            parent: 3,
            tag: VlanTag::Dot1ad,
            vlan: 100,
        };
        assert_eq!(device(&body), ("v100".into(), Some(9), vlan));
        let mut body = head;
        body.extend(name("red\0"));
        let data = [attribute(1, &10u32.to_ne_bytes())];
        let info = [attribute(1, b"vrf\0"), nested(2, &data)];
        body.extend(nested(18, &info));
        let vrf = Device::Vrf { table: 10 };
        assert_eq!(device(&body), ("red".into(), None, vrf));
    }

    #[test]
    fn whatever_is_cut_off_is_odd_and_nothing_worse() {
        let mut one = vec![2, 0, 0, 0, 0, 0, 0, 0];
        one.extend(attribute(1, &7u32.to_ne_bytes()));
        let bytes = framed(104, &one);
        for len in 0..bytes.len() {
            let output = all(&bytes[..len]);
            assert!(
                output.iter().all(|s| *s == KernelMessage::Odd),
                "{len}: {output:?}"
            );
            let mut lies = bytes.clone();
            lies[..4].copy_from_slice(&(len as u32).to_ne_bytes());
            lies[16 + 8] = len as u8;
            all(&lies);
        }
        for kind in 16..120 {
            all(&framed(kind, &[0xff; 40]));
            all(&framed(kind, &[]));
        }
    }
}
