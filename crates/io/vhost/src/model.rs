//! The objects of this crate: both ends of a vhost-user socket.

use crate::show::ShowVhostUser;
use std::path::PathBuf;
use volley_object::{Choice, Class, DefinitionError, FieldError, Object, Query, refuse};

/// Longest path of a socket, in bytes.
const SOCKET: usize = 107;

/// virtio device for a guest or a program, behind a vhost-user socket (the back end).
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "vhost_user", interface = "vhost-user", machine, check = VhostUser::check)]
#[object(formerly = "vhost-user queues= ring=")]
#[object(
    set = "create vhost-user {socket <socket> | server@role=server | gso@gso=on | packed@packed=on | event-idx@event_idx=on | \
           name <name> | (hwaddr | mac) <+mac> | mtu <+mtu>}"
)]
#[object(unset = "delete vhost-user <name>")]
#[object(example = "create vhost-user socket /run/vm1.sock server")]
pub struct VhostUser {
    /// Name of the interface; without one, the driver numbers the interface.
    #[object(key, default = String::new(), example = "vm1")]
    pub name: String,
    /// Path of the socket.
    #[object(example = "/run/vm1.sock")]
    pub socket: PathBuf,
    /// Side that waits for the other at the socket.
    #[object(default = SocketRole::Client)]
    pub role: SocketRole,
    /// Exchange unfinished checksums and super-segments with the peer.
    #[object(default = false)]
    pub gso: bool,
    /// Use packed rings, where the peer has them.
    #[object(default = false)]
    pub packed: bool,
    /// Suppress notifications for which the peer does not wait, where the peer has event indices.
    #[object(default = false)]
    pub event_idx: bool,
}

/// Driver of a vhost-user device of another program (the front end).
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "virtio_user", interface = "virtio-user", machine, check = VirtioUser::check)]
#[object(formerly = "virtio-user")]
#[object(
    set = "create interface virtio-user {socket <socket> | server@role=server | gso@gso=on | packed@packed=on | \
           event-idx@event_idx=on | queues <queues> | ring <ring> | name <name> | (hwaddr | mac) <+mac> | mtu <+mtu>}"
)]
#[object(unset = "delete interface virtio-user <name>")]
#[object(example = "create interface virtio-user socket /run/vhost.sock queues 2")]
pub struct VirtioUser {
    /// Name of the interface; without one, the driver numbers the interface.
    #[object(key, default = String::new(), example = "vm1")]
    pub name: String,
    /// Path of the socket.
    #[object(example = "/run/vhost.sock")]
    pub socket: PathBuf,
    /// Side that waits for the other at the socket.
    #[object(default = SocketRole::Client)]
    pub role: SocketRole,
    /// Exchange unfinished checksums and super-segments with the peer.
    #[object(default = false)]
    pub gso: bool,
    /// Use packed rings, where the peer has them.
    #[object(default = false)]
    pub packed: bool,
    /// Suppress notifications for which the peer does not wait, where the peer has event indices.
    #[object(default = false)]
    pub event_idx: bool,
    /// Queue pairs.
    #[object(default = 1, range = 1u32..=16)]
    pub queues: u32,
    /// Descriptors of each ring, a power of two.
    #[object(default = 512, range = 64u32..=32_768)]
    pub ring: u32,
}

/// Side of the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum SocketRole {
    /// Connect to the socket, again and again until the peer is there.
    Client,
    /// Make the socket and listen.
    Server,
}

fn check_socket(socket: &std::path::Path) -> Result<(), FieldError> {
    if socket.as_os_str().len() > SOCKET {
        return refuse("socket", format!("must have {SOCKET} bytes at most"));
    }
    Ok(())
}

impl VhostUser {
    fn check(&self) -> Result<(), FieldError> {
        check_socket(&self.socket)
    }
}

impl VirtioUser {
    fn check(&self) -> Result<(), FieldError> {
        check_socket(&self.socket)?;
        if !self.ring.is_power_of_two() {
            let why = format!("must be a power of two, not {}", self.ring);
            return refuse("ring", why);
        }
        Ok(())
    }
}

/// The back end as the driver treats both ends. Its peer decides queues and rings.
impl From<VhostUser> for VirtioUser {
    fn from(it: VhostUser) -> Self {
        VirtioUser {
            name: it.name,
            socket: it.socket,
            role: it.role,
            gso: it.gso,
            packed: it.packed,
            event_idx: it.event_idx,
            ..VirtioUser::default()
        }
    }
}

/// The classes of this crate.
pub fn classes() -> Result<Vec<Class>, DefinitionError> {
    ShowVhostUser::query()?;
    Ok(vec![VhostUser::class()?, VirtioUser::class()?])
}
