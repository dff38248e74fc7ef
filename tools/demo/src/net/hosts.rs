//! The network namespaces of the demo: two hosts, and one in the middle for what connects them. Everything that the demo
//! creates is in one of them, so the machine's own network stays unchanged, and all is removed with the namespaces.

use super::error::NetError;
use super::programs::{Programs, Started, start};
use std::process::{Command, Stdio};

/// Prefix of the namespaces' names; the process id follows.
const PREFIX: &str = "volley-demo-";
/// Name of the hosts' interface.
pub const DEVICE: &str = "e";
/// The largest tested MTU.
pub const JUMBO: u32 = 9000;

/// One of the namespaces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Space {
    /// The sending host.
    A,
    /// The namespace between the hosts.
    Middle,
    /// The receiving host.
    B,
}

const ALL: [Space; 3] = [Space::A, Space::Middle, Space::B];

/// The namespaces; dropping it removes them.
pub struct Hosts {
    programs: Programs,
}

impl Hosts {
    /// Create the namespaces, after removing those that a killed demo has left.
    pub fn new(programs: &Programs) -> Result<Self, NetError> {
        sweep();
        let hosts = Hosts {
            programs: programs.clone(),
        };
        for space in ALL {
            let name = hosts.name(space);
            programs.run(10, &["ip", "netns", "add", &name])?;
            hosts.ip(space, "link set lo up")?;
            // Only the streams may send packets.
            let quiet = "echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6 || true";
            hosts.exec(space, 5, &["sh", "-c", quiet])?;
        }
        Ok(hosts)
    }

    /// Name of a namespace.
    pub fn name(&self, space: Space) -> String {
        format!("{PREFIX}{}-{space:?}", std::process::id()).to_lowercase()
    }

    /// Run `ip ...` in a namespace; words are separated by blanks.
    pub fn ip(&self, space: Space, words: &str) -> Result<String, NetError> {
        let name = self.name(space);
        let mut line = vec!["ip", "-n", &name];
        line.extend(words.split_whitespace());
        self.programs.run(10, &line)
    }

    /// Run a program in a namespace.
    pub fn exec(&self, space: Space, seconds: u64, words: &[&str]) -> Result<String, NetError> {
        let name = self.name(space);
        let line = [&["ip", "netns", "exec", &name], words].concat();
        self.programs.run(seconds, &line)
    }

    /// Start a program in a namespace.
    pub fn start(&self, space: Space, seconds: u64, words: &[&str]) -> Result<Started, NetError> {
        self.programs.check()?;
        let name = self.name(space);
        start(seconds, &[&["ip", "netns", "exec", &name], words].concat())
    }

    /// A veth pair from a host to the middle, where its end has the name `ours`. Both ends are up.
    pub fn veth(&self, space: Space, ours: &str) -> Result<(), NetError> {
        let host = self.name(space);
        self.ip(
            Space::Middle,
            &format!(
                "link add {ours} mtu {JUMBO} type veth peer name {DEVICE} mtu {JUMBO} netns {host}"
            ),
        )?;
        self.ip(Space::Middle, &format!("link set {ours} up"))?;
        self.ip(space, &format!("link set {DEVICE} up"))?;
        Ok(())
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        ALL.into_iter().for_each(|space| remove(&self.name(space)));
    }
}

/// Remove a namespace, even after a signal.
fn remove(name: &str) {
    let mut command = Command::new("timeout");
    command.args(["10", "ip", "netns", "del", name]);
    // It is no error if the namespace does not exist.
    let _ = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
}

/// Remove the namespaces of demos that were killed.
fn sweep() {
    let Ok(entries) = std::fs::read_dir("/run/netns") else {
        return;
    };
    for name in entries
        .flatten()
        .filter_map(|e| e.file_name().into_string().ok())
    {
        if owner(&name).is_some_and(|pid| !std::path::Path::new(&format!("/proc/{pid}")).exists()) {
            remove(&name);
        }
    }
}

/// The process that created a namespace with that name.
fn owner(name: &str) -> Option<u32> {
    let (pid, _) = name.strip_prefix(PREFIX)?.split_once('-')?;
    pid.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_names_have_owners() {
        assert_eq!(owner("volley-demo-17-middle"), Some(17));
        for other in ["volley-demo-", "volley-demo-x-a", "vt17-0-1", "red"] {
            assert_eq!(owner(other), None, "{other}");
        }
    }
}
