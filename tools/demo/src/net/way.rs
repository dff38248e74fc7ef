//! Connections between the two namespaces: by Linux, and by Volley with each driver.

use super::daemon::Daemon;
use super::error::NetError;
use super::hosts::{DEVICE, Hosts, JUMBO, Space};
use super::programs::Programs;
use std::path::Path;

/// A connection from host to host. Each host always has one interface; the connections differ in what is between the
/// hosts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Way {
    /// veth pairs in a Linux bridge.
    Bridge,
    /// veth pairs and Linux IP forwarding.
    Forwarding,
    /// Taps of one Volley.
    Tap,
    /// Packet sockets of one Volley on veth pairs.
    AfPacket,
    /// Packet sockets of one Volley on veth pairs, and Volley routes instead of patching.
    Routed,
    /// XDP sockets of one Volley on veth pairs.
    AfXdp,
    /// Taps of two Volleys, which are joined by memif.
    Memif,
    /// Taps of two Volleys, which are joined by vhost-user and virtio-user.
    Vhost,
}

/// The parts of a connection, which live until the end of its measurement.
pub struct Joined {
    /// Description, with the features that the kernel permitted.
    pub what: String,
    /// The address of host B.
    pub target: &'static str,
    _daemons: Vec<Daemon>,
}

/// MAC addresses of the router, for each side.
const ROUTER: [&str; 2] = ["02:fe:00:00:00:01", "02:fe:00:00:00:02"];
/// The hosts, and the letter in the names of their interfaces.
const SIDES: [(Space, &str); 2] = [(Space::A, "a"), (Space::B, "b")];

/// Environment in which a connection is built.
pub struct Site<'a> {
    /// The namespaces.
    pub hosts: &'a Hosts,
    /// Runs programs.
    pub programs: &'a Programs,
    /// Folder for files and sockets.
    pub folder: &'a Path,
}

impl Way {
    /// Connect the hosts, and give them their addresses.
    pub fn join(self, site: &Site<'_>) -> Result<Joined, NetError> {
        match self {
            Way::Bridge => site.bridge(),
            Way::Forwarding => site.forwarding(),
            Way::Tap => site.taps(),
            Way::AfPacket => site.sockets("af_packet", "host-interface", ""),
            Way::Routed => site.routed(),
            Way::AfXdp => site.xdp(),
            Way::Memif => site.memif(),
            Way::Vhost => site.vhost(),
        }
    }
}

impl std::fmt::Display for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Way::Bridge => "linux bridge",
            Way::Forwarding => "linux forwarding",
            Way::Tap => "tap",
            Way::AfPacket => "af_packet",
            Way::Routed => "af_packet, routed",
            Way::AfXdp => "af_xdp",
            Way::Memif => "memif",
            Way::Vhost => "vhost-user",
        })
    }
}

/// A tap whose other end is the host's interface.
fn tap(hosts: &Hosts, space: Space, name: &str) -> String {
    let namespace = hosts.name(space);
    format!(
        "[[interface]]\nname = \"{name}\"\nkind = \"tap\"\nhost = \"{DEVICE}\"\nnamespace = \"{namespace}\"\n\
         mtu = {JUMBO}\n"
    )
}

/// An interface on the middle end of a veth pair.
fn on_veth(name: &str, kind: &str, more: &str) -> String {
    format!(
        "[[interface]]\nname = \"{name}\"\nkind = \"{kind}\"\nhost = \"v{name}\"\nmtu = {JUMBO}\n{more}\n"
    )
}

impl Site<'_> {
    /// Both hosts in one network.
    fn joined(&self, what: &str, daemons: Vec<Daemon>) -> Result<Joined, NetError> {
        for (at, (space, _)) in SIDES.into_iter().enumerate() {
            let address = format!("addr add 10.231.0.{}/24 dev {DEVICE}", at + 1);
            self.hosts.ip(space, &address)?;
            self.hosts.ip(space, &format!("link set {DEVICE} up"))?;
        }
        Ok(Joined {
            what: what.to_owned(),
            target: "10.231.0.2",
            _daemons: daemons,
        })
    }

    /// Hosts in two networks, with a router as their gateway.
    fn apart(&self, what: &str, daemons: Vec<Daemon>) -> Result<Joined, NetError> {
        for (at, (space, _)) in SIDES.into_iter().enumerate() {
            let ip = |words: String| self.hosts.ip(space, &words).map(drop);
            ip(format!("addr add 10.231.{at}.2/24 dev {DEVICE}"))?;
            ip(format!("route add default via 10.231.{at}.1"))?;
        }
        Ok(Joined {
            what: what.to_owned(),
            target: "10.231.1.2",
            _daemons: daemons,
        })
    }

    /// A veth pair to each host: `va` and `vb` in the middle.
    fn pairs(&self) -> Result<(), NetError> {
        for (space, name) in SIDES {
            self.hosts.veth(space, &format!("v{name}"))?;
        }
        Ok(())
    }

    fn daemon(&self, name: &str, config: &str) -> Result<Daemon, NetError> {
        Daemon::start(self.hosts, self.programs, self.folder.join(name), config)
    }

    fn bridge(&self) -> Result<Joined, NetError> {
        self.pairs()?;
        let ip = |words: &str| self.hosts.ip(Space::Middle, words);
        ip(&format!("link add br0 mtu {JUMBO} type bridge"))?;
        ip("link set va master br0")?;
        ip("link set vb master br0")?;
        ip("link set br0 up")?;
        self.joined("veth pairs in a bridge of the kernel", Vec::new())
    }

    fn forwarding(&self) -> Result<Joined, NetError> {
        self.pairs()?;
        for (at, (_, name)) in SIDES.into_iter().enumerate() {
            let address = format!("addr add 10.231.{at}.1/24 dev v{name}");
            self.hosts.ip(Space::Middle, &address)?;
        }
        let on = "echo 1 > /proc/sys/net/ipv4/ip_forward";
        self.hosts.exec(Space::Middle, 5, &["sh", "-c", on])?;
        self.apart("veth pairs, routed by the kernel", Vec::new())
    }

    fn taps(&self) -> Result<Joined, NetError> {
        let [a, b] = SIDES.map(|(space, name)| tap(self.hosts, space, name));
        let mut daemon = self.daemon("tap", &(a + &b))?;
        daemon.patch("a", "b")?;
        daemon.link("a")?;
        daemon.link("b")?;
        self.joined("taps, patched by Volley", vec![daemon])
    }

    /// Volley on veth pairs.
    fn sockets(&self, what: &str, kind: &str, more: &str) -> Result<Joined, NetError> {
        self.pairs()?;
        let mut daemon = self.on_pairs(kind, more)?;
        daemon.link("a")?;
        daemon.link("b")?;
        self.joined(
            &format!("{what} on veth pairs, patched by Volley"),
            vec![daemon],
        )
    }

    fn on_pairs(&self, kind: &str, more: &str) -> Result<Daemon, NetError> {
        let config = on_veth("a", kind, more) + &on_veth("b", kind, more);
        let mut daemon = self.daemon(kind, &config)?;
        daemon.patch("a", "b")?;
        Ok(daemon)
    }

    fn routed(&self) -> Result<Joined, NetError> {
        self.pairs()?;
        let mut config = String::new();
        for (at, (space, name)) in SIDES.into_iter().enumerate() {
            let mac = format!("02:aa:00:00:00:0{}", at + 1);
            let words = format!("link set {DEVICE} address {mac}");
            self.hosts.ip(space, &words)?;
            let router = ROUTER[at];
            let more = format!("mac = \"{router}\"\naddresses = [\"10.231.{at}.1/24\"]\n");
            config += &on_veth(name, "host-interface", &more);
            config += &format!(
                "[[neighbor]]\ninterface = \"{name}\"\naddress = \"10.231.{at}.2\"\nmac = \"{mac}\"\n"
            );
        }
        let mut daemon = self.daemon("routed", &config)?;
        daemon.link("a")?;
        daemon.link("b")?;
        let joined = self.apart(
            "af_packet on veth pairs, routed by Volley with static neighbours",
            vec![daemon],
        )?;
        for (at, (space, _)) in SIDES.into_iter().enumerate() {
            let router = ROUTER[at];
            let words = format!("neigh add 10.231.{at}.1 lladdr {router} dev {DEVICE}");
            self.hosts.ip(space, &words)?;
        }
        Ok(joined)
    }

    /// In native mode, else in generic mode with super-segments off at the hosts: the kernel drops them there.
    fn xdp(&self) -> Result<Joined, NetError> {
        self.pairs()?;
        let (mut daemon, mode) = match self.on_pairs("af_xdp", "mode = \"native\"") {
            Ok(daemon) => (daemon, "native"),
            Err(NetError::Interrupted) => return Err(NetError::Interrupted),
            Err(_) => {
                for (space, _) in SIDES {
                    let line = ["ethtool", "-K", DEVICE, "tso", "off", "gso", "off"];
                    self.hosts.exec(space, 10, &line)?;
                }
                let daemon = self.on_pairs("af_xdp", "mode = \"generic\"")?;
                (daemon, "generic (native was refused)")
            }
        };
        daemon.link("a")?;
        daemon.link("b")?;
        let what = format!("af_xdp on veth pairs, {mode} mode, patched by Volley");
        self.joined(&what, vec![daemon])
    }

    /// Two Volleys, each with a tap to its host, and an interface `m` of configuration `between` that connects them.
    fn two(&self, kind: &str, what: &str, between: [String; 2]) -> Result<Joined, NetError> {
        let mut daemons = Vec::new();
        for ((space, name), config) in SIDES.into_iter().zip(between) {
            let config = tap(self.hosts, space, name) + &config;
            let mut daemon = self.daemon(&format!("{kind}-{name}"), &config)?;
            daemon.patch(name, "m")?;
            daemons.push(daemon);
        }
        for (daemon, (_, name)) in daemons.iter_mut().zip(SIDES) {
            daemon.link(name)?;
            daemon.link("m")?;
        }
        self.joined(what, daemons)
    }

    fn memif(&self) -> Result<Joined, NetError> {
        let socket = self.folder.join("memif.sock").display().to_string();
        let between = ["master", "slave"].map(|role| {
            format!(
                "[[memif_socket]]\nid = 1\nfilename = \"{socket}\"\n[[interface]]\nname = \"m\"\nkind = \"memif\"\n\
                 mtu = {JUMBO}\nmemif = {{ id = 0, socket = 1, role = \"{role}\" }}\n"
            )
        });
        self.two(
            "memif",
            "memif between two Volleys, each with a tap",
            between,
        )
    }

    fn vhost(&self) -> Result<Joined, NetError> {
        let socket = self.folder.join("vhost.sock").display().to_string();
        let between = [("vhost-user", "server"), ("virtio-user", "client")].map(|(kind, role)| {
            format!(
                "[[interface]]\nname = \"m\"\nkind = \"{kind}\"\nsocket = \"{socket}\"\nrole = \"{role}\"\n\
                 gso = true\nevent_idx = true\nmtu = {JUMBO}\n"
            )
        });
        let what = "vhost-user and virtio-user between two Volleys, each with a tap";
        self.two("vhost", what, between)
    }
}
