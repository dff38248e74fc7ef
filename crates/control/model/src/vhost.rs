//! Interfaces to virtual machines, containers and DPDK programs over vhost-user sockets.

use crate::error::ModelError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Formatter};
use std::path::PathBuf;
use volley_object::quote;

/// A vhost-user socket and what is offered there. Kind `vhost-user` is the back end (the device, for a guest), kind
/// `virtio-user` the front end (the driver, for somebody's back end).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct VhostSpec {
    /// The socket.
    pub socket: PathBuf,
    /// Which side waits for the other.
    pub role: SocketRole,
    /// Unfinished checksums and super-segments are exchanged with the peer.
    pub gso: bool,
    /// Packed rings, where the peer has them.
    pub packed: bool,
    /// Event indices, where the peer has them.
    pub event_idx: bool,
    /// Front end: queue pairs, 1..=16. A back end has as many as the peer wants.
    pub queues: u32,
    /// Front end: descriptors of each ring, a power of two, 64..=32768.
    pub ring: u32,
}

impl Default for VhostSpec {
    fn default() -> Self {
        VhostSpec {
            socket: PathBuf::new(),
            role: SocketRole::Client,
            gso: false,
            packed: false,
            event_idx: false,
            queues: 1,
            ring: 512,
        }
    }
}

/// Who waits for whom at a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SocketRole {
    /// Connects, again and again until there is somebody.
    #[default]
    Client,
    /// Makes the socket and listens.
    Server,
}

impl VhostSpec {
    pub(crate) fn validate(&self, kind: &str) -> Result<(), ModelError> {
        let invalid = |why: &str| Err(ModelError::invalid(format!("{kind} interface"), why));
        let path = self.socket.as_os_str().as_encoded_bytes();
        if path.is_empty() || path.contains(&0) {
            return invalid("it has no socket: give socket PATH");
        }
        if path.len() > 107 {
            return invalid("the path of its socket has more than 107 bytes");
        }
        crate::validate::within("queues", self.queues, 1..=16)?;
        crate::validate::within("ring", self.ring, 64..=32_768)?;
        if !self.ring.is_power_of_two() {
            let what = format!("ring {}", self.ring);
            return Err(ModelError::invalid(what, "it must be a power of two"));
        }
        Ok(())
    }
}

impl Display for VhostSpec {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let default = VhostSpec::default();
        write!(f, "socket {}", quote(&self.socket.display().to_string()))?;
        for (on, word) in [
            (self.role == SocketRole::Server, " server"),
            (self.gso, " gso"),
            (self.packed, " packed"),
            (self.event_idx, " event-idx"),
        ] {
            f.write_str(if on { word } else { "" })?;
        }
        for (value, usual, word) in [
            (self.queues, default.queues, "queues"),
            (self.ring, default.ring, "ring"),
        ] {
            if value != usual {
                write!(f, " {word} {value}")?;
            }
        }
        Ok(())
    }
}
