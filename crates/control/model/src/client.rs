//! The client that makes a change.

use crate::role::Role;
use std::sync::Arc;
use volley_object::Choice;

/// The interface through which a change comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum Via {
    /// The control socket of `volley ctl`.
    Cli,
    /// The HTTP interface.
    Http,
    /// The configuration file or the last commit, at start.
    Start,
    /// The Linux control plane (LCP).
    LinuxCp,
    /// The daemon itself.
    Daemon,
}

/// The user of a unix socket's peer, by the operating system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// User ID.
    pub uid: u32,
    /// User name; `None`: the system has no name.
    pub name: Option<String>,
    /// Names of the user's groups.
    pub groups: Vec<String>,
}

/// How a client was identified; the client's role follows from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// A part of the daemon.
    Daemon,
    /// The user of a unix socket's peer.
    Peer(Arc<Peer>),
    /// A token, which has a role.
    Token(Role),
    /// The client is not identified.
    Unknown,
}

/// The client that makes a change: of an interface, or a part of the daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    /// The interface through which the change comes.
    pub via: Via,
    /// The user of the socket's peer, or `token NAME` over TCP; of a part of the daemon, its name.
    pub user: String,
    /// Location of the client: `pid 4711`, or an IP address with its port; empty for a part of the daemon.
    pub from: String,
    /// How the client was identified.
    pub identity: Identity,
}

impl Client {
    /// A part of the daemon.
    pub fn internal(via: Via) -> Client {
        Client {
            via,
            user: via.to_string(),
            from: String::new(),
            identity: Identity::Daemon,
        }
    }

    /// The peer of a unix socket; `None` for what the kernel did not report.
    pub fn of_peer(via: Via, peer: Option<Peer>, pid: Option<i32>) -> Client {
        let name = |peer: &Peer| peer.name.clone().unwrap_or(format!("uid {}", peer.uid));
        Client {
            via,
            user: peer.as_ref().map_or_else(|| "unknown".to_owned(), name),
            from: pid.map_or_else(String::new, |pid| format!("pid {pid}")),
            identity: peer.map_or(Identity::Unknown, |peer| Identity::Peer(Arc::new(peer))),
        }
    }

    /// Whether the client is a person or program outside the daemon.
    pub fn is_outside(&self) -> bool {
        matches!(self.via, Via::Cli | Via::Http)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_without_a_name_are_numbers() {
        let peer = |name: Option<&str>| Peer {
            uid: 4_000_000_000,
            name: name.map(str::to_owned),
            groups: Vec::new(),
        };
        let client = |peer| Client::of_peer(Via::Cli, peer, Some(7));
        assert_eq!(client(Some(peer(Some("ada")))).user, "ada");
        let client = client(Some(peer(None)));
        assert_eq!(
            (&client.user[..], &client.from[..]),
            ("uid 4000000000", "pid 7")
        );
        assert!(client.is_outside());
        let hidden = Client::of_peer(Via::Http, None, None);
        assert_eq!(hidden.identity, Identity::Unknown);
    }
}
