//! System calls of the control thread that can fail or have nothing yet: sockets, epoll, shared memory, event counters.
//!
//! [`Kernel`] makes them. A simulation makes them fail by seed (`tests/simulation.rs`). Workers make none of these calls.

use crate::region::Map;
use crate::socket::{Address, Channel, ChannelError, Listener};
use crate::wire::Message;
use rustix::event::epoll;
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::io;
use std::sync::Arc;
use volley_shm::{Account, Event, MapError};

/// The system calls. Each function of the trait makes the call.
pub trait Calls {
    /// Connect to a server.
    fn connect(&self, address: &Address) -> Result<Channel, Errno> {
        Channel::connect(address)
    }

    /// Accept the next waiting connection.
    fn accept(&self, listener: &Listener) -> Result<Option<Channel>, Errno> {
        listener.next()
    }

    /// Send a message with an optional file.
    fn send(
        &self,
        channel: &Channel,
        message: &Message,
        file: Option<BorrowedFd<'_>>,
    ) -> Result<(), ChannelError> {
        channel.send(message, file)
    }

    /// Receive the next message, if there is one.
    fn receive(
        &self,
        channel: &Channel,
    ) -> Result<Option<(Message, Option<OwnedFd>)>, ChannelError> {
        channel.receive()
    }

    /// Let an epoll file report that a file is readable or closed.
    fn watch(&self, events: &OwnedFd, file: BorrowedFd<'_>, number: u64) -> Result<(), Errno> {
        let flags = epoll::EventFlags::IN | epoll::EventFlags::RDHUP;
        epoll::add(events, file, epoll::EventData::new_u64(number), flags)
    }

    /// Map a peer's region.
    fn peer_memory(
        &self,
        file: BorrowedFd<'_>,
        size: u64,
        account: &Arc<Account>,
    ) -> Result<Map, MapError> {
        Map::of_peer(file, size, account)
    }

    /// Allocate memory for a peer to map.
    fn own_memory(&self, size: usize) -> Result<(OwnedFd, Map), MapError> {
        Map::of_ours(size)
    }

    /// An event counter that a peer sent.
    fn peer_event(&self, file: OwnedFd) -> io::Result<Event> {
        Event::of_peer(file)
    }

    /// A new event counter.
    fn own_event(&self) -> io::Result<Event> {
        Event::new()
    }
}

/// The calls of the operating system.
pub struct Kernel;

impl Calls for Kernel {}
