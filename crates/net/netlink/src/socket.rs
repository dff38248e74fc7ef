//! Netlink sockets in the namespace of the LCP taps: one for notifications, one for requests.

use crate::error::LcpSyncError;
use crate::message::{self, KernelMessage};
use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkHeader,
    NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::{Socket, protocols::NETLINK_ROUTE};
use rustix::net::sockopt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

/// Folder of the namespaces of `ip netns`.
const NAMES: &str = "/run/netns";
/// Receive buffer in bytes: enough for a burst of changes of a full table.
const ROOM: usize = 64 << 20;
/// Largest read in bytes.
const PIECE: usize = 1 << 16;
/// RTNLGRP_LINK, NEIGH, IPV4_IFADDR, IPV4_ROUTE, IPV6_IFADDR, IPV6_ROUTE, NEXTHOP.
const GROUPS: [u32; 7] = [1, 3, 5, 7, 9, 11, 32];
const GET_NEXTHOP: u16 = 106;
/// Longest time that the kernel may take for a reply.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(5);

/// Path of the namespace `name`: a name of `ip netns`, a path, or `pid:N`.
fn path(name: &str) -> PathBuf {
    match name.strip_prefix("pid:") {
        Some(process) => PathBuf::from(format!("/proc/{process}/ns/net")),
        None if name.starts_with('/') => PathBuf::from(name),
        None => PathBuf::from(NAMES).join(name),
    }
}

/// Runs `body` in a namespace, on a dedicated thread that ends with it.
pub fn inside<T: Send>(
    namespace: Option<&str>,
    body: impl FnOnce() -> io::Result<T> + Send,
) -> Result<T, LcpSyncError> {
    let failed = |error| LcpSyncError::Kernel("a netlink socket", error);
    let Some(name) = namespace else {
        return body().map_err(failed);
    };
    let refused = |error| LcpSyncError::Namespace(name.to_owned(), error);
    let file = volley_file::open(&path(name)).map_err(refused)?;
    let enter = move || {
        let kind = Some(rustix::thread::LinkNameSpaceType::Network);
        rustix::thread::move_into_link_name_space(file.as_fd(), kind)?;
        body()
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("volley-netns".into());
        let thread = thread.spawn_scoped(scope, enter).map_err(refused)?;
        let died = || Err(io::Error::other("the thread in it has died"));
        thread.join().unwrap_or_else(|_| died()).map_err(refused)
    })
}

/// The two sockets.
pub struct Kernel {
    events: Socket,
    requests: Socket,
    number: u32,
    /// The dumped data changed during the current dump.
    interrupted: bool,
    buffer: Vec<u8>,
}

/// Result of reading notifications.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketRead {
    /// Messages were read.
    Some,
    /// No message is pending.
    Nothing,
    /// The kernel dropped messages because the socket buffer was full; which ones is unknown.
    Overrun,
}

fn open(groups: &[u32]) -> io::Result<Socket> {
    let mut socket = Socket::new(NETLINK_ROUTE)?;
    socket.bind_auto()?;
    for group in groups {
        // A kernel without next-hop objects does not have this group.
        let joined = socket.add_membership(*group);
        if *group != GROUPS[GROUPS.len() - 1] {
            joined?;
        }
    }
    Ok(socket)
}

fn both() -> io::Result<(Socket, Socket)> {
    let (events, requests) = (open(&GROUPS)?, open(&[])?);
    if sockopt::set_socket_recv_buffer_size_force(events.as_fd(), ROOM).is_err() {
        // Without CAP_NET_ADMIN, the largest size that the system allows.
        let _ = sockopt::set_socket_recv_buffer_size(events.as_fd(), ROOM);
    }
    events.set_non_blocking(true)?;
    sockopt::set_socket_timeout(requests.as_fd(), sockopt::Timeout::Recv, Some(PATIENCE))?;
    Ok((events, requests))
}

impl Kernel {
    /// Opens the sockets in a namespace; none = Volley's own.
    pub fn open(namespace: Option<&str>) -> Result<Self, LcpSyncError> {
        let (events, requests) = inside(namespace, both)?;
        Ok(Kernel {
            events,
            requests,
            number: 0,
            interrupted: false,
            buffer: Vec::with_capacity(PIECE),
        })
    }

    /// Descriptor that is readable when a notification is pending.
    pub fn events(&self) -> Option<OwnedFd> {
        self.events.as_fd().try_clone_to_owned().ok()
    }

    /// Reads the notifications of one receive call.
    pub fn hear(&mut self, each: impl FnMut(KernelMessage)) -> SocketRead {
        self.buffer.clear();
        match self.events.recv(&mut self.buffer, 0) {
            Ok(_) => {
                message::read(&self.buffer, None, each);
                SocketRead::Some
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => SocketRead::Nothing,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => SocketRead::Some,
            Err(_) => SocketRead::Overrun,
        }
    }

    /// Starts a new sequence number.
    fn next(&mut self) {
        self.number = self.number.wrapping_add(1);
        self.interrupted = false;
    }

    fn send(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | flags;
        self.next();
        header.sequence_number = self.number;
        let mut request = NetlinkMessage::new(header, NetlinkPayload::from(message));
        request.finalize();
        let mut bytes = vec![0; request.header.length as usize];
        request.serialize(&mut bytes);
        self.requests.send(&bytes, 0).map(drop)
    }

    /// Sends a change and waits for the reply.
    fn ask(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.send(message, NLM_F_ACK | flags)?;
        let mut answer = None;
        while answer.is_none() {
            self.buffer.clear();
            self.requests.recv(&mut self.buffer, 0)?;
            message::read(&self.buffer, Some(self.number), |output| {
                if let KernelMessage::Answer(code) = output {
                    answer = Some(code);
                }
            });
        }
        match answer {
            Some(0) | None => Ok(()),
            Some(code) => Err(io::Error::from_raw_os_error(code)),
        }
    }

    /// Changes an existing object.
    pub fn set(&mut self, message: RouteNetlinkMessage) -> io::Result<()> {
        self.ask(message, 0)
    }

    /// Creates an object that does not exist yet.
    pub fn add(&mut self, message: RouteNetlinkMessage) -> io::Result<()> {
        self.ask(message, NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Creates or replaces an object.
    pub fn make(&mut self, message: RouteNetlinkMessage) -> io::Result<()> {
        self.ask(message, NLM_F_CREATE | NLM_F_REPLACE)
    }

    /// Starts a dump; [`Kernel::dumped`] reads the reply.
    pub fn dump(&mut self, message: RouteNetlinkMessage) -> io::Result<()> {
        self.send(message, NLM_F_DUMP)
    }

    /// Starts a dump of all next-hop objects.
    pub fn dump_next_hops(&mut self) -> io::Result<()> {
        self.next();
        let flags = NLM_F_REQUEST | NLM_F_DUMP;
        let mut bytes = 24u32.to_ne_bytes().to_vec();
        bytes.extend(GET_NEXTHOP.to_ne_bytes());
        bytes.extend(flags.to_ne_bytes());
        bytes.extend(self.number.to_ne_bytes());
        bytes.resize(24, 0);
        self.requests.send(&bytes, 0).map(drop)
    }

    /// Reads one part of a dump; true if more follows. If the dumped data changed meanwhile, the end of the dump is an error.
    pub fn dumped(&mut self, mut each: impl FnMut(KernelMessage)) -> io::Result<bool> {
        self.buffer.clear();
        self.requests.recv(&mut self.buffer, 0)?;
        let mut ended = None;
        message::read(&self.buffer, Some(self.number), |output| match output {
            KernelMessage::Interrupted => self.interrupted = true,
            KernelMessage::Done => ended = Some(0),
            KernelMessage::Answer(code) => ended = Some(code),
            other => each(other),
        });
        match ended {
            None => Ok(true),
            Some(0) if self.interrupted => Err(io::ErrorKind::Interrupted.into()),
            Some(0) => Ok(false),
            Some(code) => Err(io::Error::from_raw_os_error(code)),
        }
    }
}
