//! Interfaces of the kernel over netlink: properties, change events, and changes.

use crate::{LinuxError, Namespace, sys};
use netlink_packet_core::{NLM_F_ACK, NLM_F_CREATE, NLM_F_REPLACE, NLM_F_REQUEST};
use netlink_packet_core::{NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{
    InfoKind, LinkAttribute, LinkFlags, LinkInfo, LinkLayerType, LinkMessage,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The multicast group of link changes.
const LINK_GROUP: u32 = 1;
const NEEDS: &str = "cap_net_admin";

/// Properties of an interface of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelLink {
    /// Index of the interface in its namespace.
    pub index: u32,
    /// Name of the interface.
    pub name: String,
    /// MAC address, if the interface is Ethernet.
    pub mac: Option<[u8; 6]>,
    /// Length of the largest IP packet.
    pub mtu: u32,
    /// Administratively up.
    pub up: bool,
    /// Whether the interface has a carrier: a peer that is up, a cable.
    pub carrier: bool,
    /// Number of receive queues.
    pub rx_queues: u32,
    /// Number of transmit queues.
    pub tx_queues: u32,
    /// Whether the other end is a kernel on this machine.
    pub is_virtual: bool,
}

/// Changes that the kernel has reported.
#[derive(Clone, Debug, Default)]
pub struct News {
    /// Whether anything changed.
    pub any: bool,
    /// Indices of deleted interfaces, even if the index is in use again.
    pub gone: BTreeSet<u32>,
}

impl News {
    fn read(&mut self, mut bytes: &[u8]) {
        self.any = true;
        while let Ok(message) = NetlinkMessage::<RouteNetlinkMessage>::deserialize(bytes) {
            if let NetlinkPayload::InnerMessage(RouteNetlinkMessage::DelLink(link)) =
                message.payload
                // A bridge sends the same message for a port that leaves it.
                && link.header.interface_family == AddressFamily::Unspec
            {
                self.gone.insert(link.header.index);
            }
            let length = (message.header.length as usize).next_multiple_of(4);
            match bytes.get(length.max(16)..) {
                Some(rest) if !rest.is_empty() => bytes = rest,
                _ => return,
            }
        }
    }
}

/// The interfaces of one namespace.
pub struct KernelLinks {
    requests: Socket,
    events: Socket,
    /// A socket for calls that netlink's link messages do not cover.
    calls: OwnedFd,
    place: String,
}

fn open(groups: u32) -> io::Result<Socket> {
    let mut socket = Socket::new(NETLINK_ROUTE)?;
    socket.bind(&SocketAddr::new(0, groups))?;
    socket.connect(&SocketAddr::new(0, 0))?;
    Ok(socket)
}

impl KernelLinks {
    /// The interfaces of `namespace`.
    pub fn open(namespace: &Namespace) -> Result<Self, LinuxError> {
        let failed = |error| LinuxError::of("a netlink socket", NEEDS, error);
        namespace.run(|| {
            let requests = open(0).map_err(failed)?;
            let events = open(LINK_GROUP).map_err(failed)?;
            events.set_non_blocking(true).map_err(failed)?;
            let calls = sys::socket(libc::AF_INET, libc::SOCK_DGRAM, 0).map_err(failed)?;
            Ok(KernelLinks {
                requests,
                events,
                calls,
                place: namespace.place(),
            })
        })
    }

    /// A descriptor that is readable when something has changed.
    pub fn events(&self) -> BorrowedFd<'_> {
        self.events.as_fd()
    }

    /// Whether anything has changed since the last call.
    pub fn changed(&self) -> bool {
        self.news().any
    }

    /// Changes since the last call.
    pub fn news(&self) -> News {
        let mut news = News::default();
        let mut bytes = Vec::with_capacity(32_768);
        loop {
            bytes.clear();
            match self.events.recv(&mut bytes, 0) {
                Ok(_) => news.read(&bytes),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return news,
                // The kernel reports once that it dropped an event.
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => news.any = true,
                Err(_) => {
                    news.any = true;
                    return news;
                }
            }
        }
    }

    fn ask(&self, message: RouteNetlinkMessage, flags: u16) -> io::Result<Option<KernelLink>> {
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | flags;
        let mut request = NetlinkMessage::new(header, NetlinkPayload::from(message));
        request.finalize();
        let mut bytes = vec![0; request.header.length as usize];
        request.serialize(&mut bytes);
        self.requests.send(&bytes, 0)?;
        let (answer, _) = self.requests.recv_from_full()?;
        let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer);
        match answer.map_err(io::Error::other)?.payload {
            NetlinkPayload::Error(error) if error.code.is_some() => Err(error.to_io()),
            NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewLink(link)) => {
                Ok(Some(describe(link)))
            }
            _ => Ok(None),
        }
    }

    fn get(&self, message: LinkMessage) -> io::Result<Option<KernelLink>> {
        match self.ask(RouteNetlinkMessage::GetLink(message), 0) {
            Err(e) if matches!(e.raw_os_error(), Some(libc::ENODEV | libc::ENXIO)) => Ok(None),
            other => other,
        }
    }

    /// The interface with this name.
    pub fn by_name(&self, name: &str) -> Result<KernelLink, LinuxError> {
        let mut message = LinkMessage::default();
        message.attributes = vec![LinkAttribute::IfName(name.to_owned())];
        let found = self.get(message);
        found
            .map_err(|e| LinuxError::of("asking for an interface", NEEDS, e))?
            .ok_or_else(|| LinuxError::NoLink(name.to_owned(), self.place.clone()))
    }

    /// The interface with this index; `None` if it does not exist.
    pub fn by_index(&self, index: u32) -> Result<Option<KernelLink>, LinuxError> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        self.get(message)
            .map_err(|e| LinuxError::of("asking for an interface", NEEDS, e))
    }

    fn set(
        &self,
        what: &'static str,
        index: u32,
        change: impl FnOnce(&mut LinkMessage),
    ) -> Result<(), LinuxError> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        change(&mut message);
        self.ask(RouteNetlinkMessage::SetLink(message), NLM_F_ACK)
            .map(|_| ())
            .map_err(|e| LinuxError::of(what, NEEDS, e))
    }

    /// Set an interface up or down.
    pub fn set_up(&self, index: u32, up: bool) -> Result<(), LinuxError> {
        self.set("setting a kernel interface up or down", index, |m| {
            m.header.change_mask = LinkFlags::Up;
            m.header.flags = if up {
                LinkFlags::Up
            } else {
                LinkFlags::empty()
            };
        })
    }

    /// Set the MTU of an interface.
    pub fn set_mtu(&self, index: u32, mtu: u32) -> Result<(), LinuxError> {
        self.set("setting the MTU of a kernel interface", index, |m| {
            m.attributes.push(LinkAttribute::Mtu(mtu));
        })
    }

    /// The present speed of an interface in bit/s; `None` if the kernel does not know it.
    pub fn speed_bps(&self, index: u32) -> Option<u64> {
        // The interface may have been renamed.
        let link = self.by_index(index).ok().flatten()?;
        let mbps = sys::link_speed(self.calls.as_fd(), &link.name)?;
        Some(u64::from(mbps) * 1_000_000)
    }

    /// Set the MAC address of an interface.
    pub fn set_mac(&self, index: u32, mac: [u8; 6]) -> Result<(), LinuxError> {
        self.set(
            "setting the MAC address of a kernel interface",
            index,
            |m| {
                m.attributes.push(LinkAttribute::Address(mac.to_vec()));
            },
        )
    }

    /// Make the interface a port of bridge `bridge`.
    pub fn set_master(&self, index: u32, bridge: u32) -> Result<(), LinuxError> {
        self.set("putting a kernel interface into a bridge", index, |m| {
            m.attributes.push(LinkAttribute::Controller(bridge));
        })
    }

    /// Add an address to an interface.
    pub fn add_address(&self, index: u32, address: IpAddr, length: u8) -> Result<(), LinuxError> {
        let mut message = AddressMessage::default();
        message.header.family = match address {
            IpAddr::V4(_) => AddressFamily::Inet,
            IpAddr::V6(_) => AddressFamily::Inet6,
        };
        (message.header.prefix_len, message.header.index) = (length, index);
        let attributes = [
            AddressAttribute::Local(address),
            AddressAttribute::Address(address),
        ];
        message.attributes = attributes.into();
        let flags = NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE;
        self.ask(RouteNetlinkMessage::NewAddress(message), flags)
            .map(|_| ())
            .map_err(|e| LinuxError::of("giving a kernel interface an address", NEEDS, e))
    }

    /// Delete an interface; no error if it does not exist.
    pub fn delete(&self, index: u32) -> Result<(), LinuxError> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        match self.ask(RouteNetlinkMessage::DelLink(message), NLM_F_ACK) {
            Err(e) if e.raw_os_error() != Some(libc::ENODEV) => {
                Err(LinuxError::of("deleting a kernel interface", NEEDS, e))
            }
            _ => Ok(()),
        }
    }
}

fn describe(message: LinkMessage) -> KernelLink {
    let flags = message.header.flags;
    let ethernet = message.header.link_layer_type == LinkLayerType::Ether;
    let mut link = KernelLink {
        index: message.header.index,
        name: String::new(),
        mac: None,
        mtu: 0,
        up: flags.contains(LinkFlags::Up),
        carrier: flags.contains(LinkFlags::LowerUp),
        rx_queues: 1,
        tx_queues: 1,
        is_virtual: false,
    };
    for attribute in message.attributes {
        match attribute {
            LinkAttribute::IfName(name) => link.name = name,
            LinkAttribute::Address(mac) if ethernet => link.mac = mac.try_into().ok(),
            LinkAttribute::Mtu(mtu) => link.mtu = mtu,
            LinkAttribute::NumRxQueues(n) => link.rx_queues = n,
            LinkAttribute::NumTxQueues(n) => link.tx_queues = n,
            LinkAttribute::LinkInfo(infos) => {
                let cable = |i: &LinkInfo| {
                    matches!(
                        i,
                        LinkInfo::Kind(InfoKind::Veth | InfoKind::Tun | InfoKind::Bridge)
                    )
                };
                link.is_virtual = infos.iter().any(cable);
            }
            _ => {}
        }
    }
    link
}
