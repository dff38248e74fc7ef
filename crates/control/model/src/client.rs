//! Who makes a change.

use std::fmt;

/// By which way a change comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// The control socket of `volley ctl`.
    Cli,
    /// The HTTP interface.
    Http,
    /// The configuration file or the last commit, at start.
    Start,
    /// The Linux mirror.
    LinuxCp,
    /// The daemon itself.
    Daemon,
}

impl fmt::Display for Via {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Via::Cli => "cli",
            Via::Http => "http",
            Via::Start => "start",
            Via::LinuxCp => "linux-cp",
            Via::Daemon => "daemon",
        })
    }
}

/// Who makes a change: a client of one of the faces, or a part of the daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    /// By which way the change comes.
    pub via: Via,
    /// The user of the socket's peer, or `token NAME` over TCP; of a part of the daemon, its name.
    pub user: String,
    /// Where the client is: `pid 4711`, or an IP address with its port; empty for a part of the daemon.
    pub from: String,
}

impl Client {
    /// A part of the daemon.
    pub fn internal(via: Via) -> Client {
        Client {
            via,
            user: via.to_string(),
            from: String::new(),
        }
    }

    /// The peer of a unix socket; what the kernel did not tell is none.
    pub fn of_peer(via: Via, uid: Option<u32>, pid: Option<i32>) -> Client {
        Client {
            via,
            user: uid.map_or_else(|| "unknown".to_owned(), user_name),
            from: pid.map_or_else(String::new, |pid| format!("pid {pid}")),
        }
    }

    /// Whether it is a person or program outside of the daemon.
    pub fn is_outside(&self) -> bool {
        matches!(self.via, Via::Cli | Via::Http)
    }
}

/// The name of a user in `/etc/passwd`; `uid N` when there is none.
fn user_name(uid: u32) -> String {
    let all = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    named(&all, uid).unwrap_or_else(|| format!("uid {uid}"))
}

fn named(passwd: &str, uid: u32) -> Option<String> {
    let name = |line: &str| {
        let mut columns = line.split(':');
        let (name, _, number) = (columns.next()?, columns.next()?, columns.next()?);
        (number.parse() == Ok(uid) && !name.is_empty()).then(|| name.to_owned())
    };
    passwd.lines().find_map(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_have_the_names_of_the_passwd_file() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nbroken\nada:x:1000:1000::/home/ada:\n";
        assert_eq!(named(passwd, 0).as_deref(), Some("root"));
        assert_eq!(named(passwd, 1000).as_deref(), Some("ada"));
        assert_eq!(named(passwd, 7), None);
        let client = Client::of_peer(Via::Cli, Some(4_000_000_000), Some(7));
        assert_eq!(
            (&client.user[..], &client.from[..]),
            ("uid 4000000000", "pid 7")
        );
        assert!(client.is_outside());
    }
}
