//! The links of a scenario: which socket joins which ports.

use super::spec::Spec;
use clap::ValueEnum;
use std::path::{Path, PathBuf};

/// A scenario of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scenario {
    /// From a physical port to another.
    P2p,
    /// From a physical port to a VNF.
    P2v,
    /// From a VNF to another.
    V2v,
    /// From a physical port through a chain of VNFs to another one.
    Loopback,
}

/// How a port is joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// Shared memory of memif; the switch is the master.
    Memif,
    /// vhost-user; the switch is the back end.
    VirtioUser,
}

/// A link of the switch.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// How it is joined.
    pub kind: Kind,
    /// Socket at which both sides meet.
    pub socket: PathBuf,
    /// Number, from 0 on.
    pub number: usize,
}

/// Commands of `volley ctl` for one side of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct Side {
    /// Command before the port is made.
    pub before: Option<String>,
    /// Command that makes the port.
    pub port: String,
    /// Name of the port.
    pub name: String,
}

impl Link {
    /// The side of the switch.
    pub fn switch(&self) -> Side {
        self.side("p", "master", "create vhost-user", " server")
    }

    /// The side of a VNF, or of the generator.
    pub fn other(&self) -> Side {
        self.side("v", "slave", "create interface virtio-user", "")
    }

    fn side(&self, letter: &str, role: &str, create: &str, more: &str) -> Side {
        let (number, socket) = (self.number, self.socket.display());
        let name = format!("{letter}{number}");
        match self.kind {
            Kind::Memif => Side {
                before: Some(format!(
                    "create memif socket id {} filename {socket}",
                    number + 1
                )),
                port: format!(
                    "create interface memif id 0 socket-id {} {role} name {name}",
                    number + 1
                ),
                name,
            },
            Kind::VirtioUser => Side {
                before: None,
                port: format!("{create} socket {socket}{more} name {name}"),
                name,
            },
        }
    }
}

/// The links of a scenario.
#[derive(Clone, Debug)]
pub struct Topology {
    /// All links of the switch.
    pub links: Vec<Link>,
    /// Numbers of links between which the switch forwards, in both directions.
    pub patches: Vec<(usize, usize)>,
    /// The two sides of every VNF, between which it forwards.
    pub vnfs: Vec<[Side; 2]>,
    /// The sides of the generator.
    pub ends: [Side; 2],
}

impl Topology {
    /// The links of a scenario, with sockets in a folder.
    pub fn new(spec: &Spec, folder: &Path) -> Topology {
        let (physical, virtual_kind) = (Kind::Memif, spec.ports);
        let kinds: Vec<Kind> = match spec.scenario {
            Scenario::P2p => vec![physical, physical],
            Scenario::P2v => vec![physical, virtual_kind],
            Scenario::V2v => vec![virtual_kind, virtual_kind],
            Scenario::Loopback => {
                let inner = std::iter::repeat_n(virtual_kind, 2 * usize::from(spec.vnfs));
                std::iter::once(physical)
                    .chain(inner)
                    .chain([physical])
                    .collect()
            }
        };
        let link = |(number, kind): (usize, Kind)| Link {
            kind,
            socket: folder.join(format!("{number}.sock")),
            number,
        };
        let links: Vec<Link> = kinds.into_iter().enumerate().map(link).collect();
        // Links 0 and 1, 2 and 3, ... are joined by the switch; 1 and 2, 3 and 4, ... by VNFs.
        let pairs = (0..links.len()).step_by(2).map(|n| (n, n + 1));
        let inner = (1..links.len() - 1).step_by(2);
        let vnfs = inner.map(|n| [links[n].other(), links[n + 1].other()]);
        Topology {
            patches: pairs.collect(),
            vnfs: vnfs.collect(),
            ends: [links[0].other(), links[links.len() - 1].other()],
            links,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_alternates_between_switch_and_vnfs() {
        let spec = Spec::of("loopback --vnfs 2 --ports virtio-user").unwrap();
        let topology = Topology::new(&spec, Path::new("/x"));
        assert_eq!(topology.links.len(), 6);
        assert_eq!(topology.patches, [(0, 1), (2, 3), (4, 5)]);
        let names = |vnf: &[Side; 2]| [vnf[0].name.clone(), vnf[1].name.clone()];
        let vnfs: Vec<_> = topology.vnfs.iter().map(names).collect();
        assert_eq!(vnfs, [["v1", "v2"], ["v3", "v4"]]);
        assert_eq!(
            [&topology.ends[0].name, &topology.ends[1].name],
            ["v0", "v5"]
        );
        assert_eq!(topology.links[0].kind, Kind::Memif);
        assert_eq!(topology.links[3].kind, Kind::VirtioUser);
    }

    #[test]
    fn every_command_of_a_side_is_one_of_the_command_line() {
        volley_daemon::objects::register().unwrap();
        for ports in ["memif", "virtio-user"] {
            let spec = Spec::of(&format!("v2v --ports {ports}")).unwrap();
            let topology = Topology::new(&spec, Path::new("/run/x"));
            assert!(topology.vnfs.is_empty());
            for link in &topology.links {
                for side in [link.switch(), link.other()] {
                    let lines = side.before.iter().chain([&side.port]);
                    for line in lines {
                        let parsed = volley_cli::parse_line(line);
                        assert!(parsed.is_ok(), "{line}: {}", parsed.err().unwrap());
                    }
                }
            }
        }
    }
}
