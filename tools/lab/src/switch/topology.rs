//! The links of a scenario: which socket joins which ports.

use super::process::{KEEPER, in_namespace};
use super::spec::Spec;
use crate::allocation::{Allocation, Places};
use clap::ValueEnum;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Variable with the folder in which DPDK makes one for each of its programs and never removes it.
const RUNTIME: &str = "RUNTIME_DIRECTORY";

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
    /// Shared memory of memif; the switch is the master, or with `--swap` the slave.
    Memif,
    /// vhost-user; the switch is the back end, or with `--swap` the front end.
    VirtioUser,
    /// A veth pair of the kernel, in a network namespace of the measurement.
    Veth,
    /// A veth pair whose packets the switch receives and sends through XDP sockets.
    AfXdp,
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let value = self.to_possible_value();
        f.write_str(value.as_ref().map_or("", |value| value.get_name()))
    }
}

impl Kind {
    /// Whether the link is a veth pair.
    pub fn is_veth(self) -> bool {
        matches!(self, Kind::Veth | Kind::AfXdp)
    }
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
    /// Queues from which the other side of a memif port receives.
    pub memif_queues: u16,
    /// Process whose network namespace has the veth pairs; 0 without such pairs.
    pub holder: u32,
    /// The switch is the memif slave, or the front end of the vhost-user device.
    pub is_swapped: bool,
    /// Packed rings of vhost-user.
    pub is_packed: bool,
    /// Queues of both sides, in each direction.
    pub queues: u16,
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
    /// Number of the interface of the kernel on the side of the switch, in its namespace.
    pub fn index(&self) -> u32 {
        index(self.number)
    }

    /// The interface of the kernel on the side of the switch.
    pub fn device(&self) -> String {
        format!("sw{}", self.number)
    }

    /// The interface of the kernel on the other side.
    pub fn far_device(&self) -> String {
        format!("lab{}", self.number)
    }

    /// The side of the switch.
    pub fn switch(&self) -> Side {
        self.side(SWITCH, !self.is_swapped)
    }

    /// The side of a VNF, or of the generator.
    pub fn other(&self) -> Side {
        self.side("v", self.is_swapped)
    }

    /// A side; the one that listens is the memif master, and the back end of a vhost-user device.
    fn side(&self, letter: &str, listens: bool) -> Side {
        let (number, socket) = (self.number, self.socket.display());
        let name = format!("{letter}{number}");
        let queues = self.queues;
        // The slave and the front end decide the queues.
        let role = match (listens, self.memif_queues.max(queues)) {
            (true, _) => "master".to_owned(),
            (false, 1) => "slave".to_owned(),
            (false, receive) => format!("slave rx-queues {receive} tx-queues {queues}"),
        };
        let (create, more) = match listens {
            true => ("create vhost-user", " server".to_owned()),
            false => ("create interface virtio-user", format!(" queues {queues}")),
        };
        let more = match self.is_packed {
            true => format!("{more} packed"),
            false => more,
        };
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
            Kind::Veth | Kind::AfXdp => {
                let holder = self.holder;
                let device = match letter {
                    SWITCH => self.device(),
                    _ => self.far_device(),
                };
                let port = match (self.kind, letter) {
                    (Kind::AfXdp, SWITCH) => format!(
                        "create interface af_xdp host-if {device} netns pid:{holder} name {name}"
                    ),
                    _ => {
                        format!("create host-interface name {device} netns pid:{holder} as {name}")
                    }
                };
                Side {
                    before: None,
                    port,
                    name,
                }
            }
        }
    }
}

/// Number of the interface of the kernel on the side of the switch, for a link. The kernel numbers the other sides from 2 on.
pub fn index(link: usize) -> u32 {
    1000 + link as u32
}

/// First letter of the names of the ports of the switch.
const SWITCH: &str = "p";

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
    /// Processors of the threads of the switch; none if the system places them.
    pub places: Option<Places>,
    /// What is measured.
    pub spec: Spec,
}

/// How the links of a scenario are joined, in their order.
pub fn kinds(spec: &Spec) -> Vec<Kind> {
    let (physical, of_vnfs) = (spec.physical(), spec.ports());
    match spec.scenario {
        Scenario::P2p => vec![physical, physical],
        Scenario::P2v => vec![physical, of_vnfs],
        Scenario::V2v => vec![of_vnfs, of_vnfs],
        Scenario::Loopback => {
            let inner = std::iter::repeat_n(of_vnfs, 2 * usize::from(spec.vnfs));
            std::iter::once(physical)
                .chain(inner)
                .chain([physical])
                .collect()
        }
    }
}

impl Topology {
    /// The links of a scenario, with sockets in a folder, and veth pairs in the network namespace of a process.
    ///
    /// # Errors
    /// If there are too few processors for the allocation.
    pub fn new(spec: &Spec, folder: &Path, holder: u32) -> Result<Topology, String> {
        let link = |(number, kind): (usize, Kind)| Link {
            kind,
            socket: folder.join(format!("{number}.sock")),
            number,
            memif_queues: spec.memif_queues,
            holder,
            is_swapped: spec.swap,
            is_packed: spec.packed,
            queues: spec.queues,
        };
        let links: Vec<Link> = kinds(spec).into_iter().enumerate().map(link).collect();
        // Links 0 and 1, 2 and 3, ... are joined by the switch; 1 and 2, 3 and 4, ... by VNFs.
        let pairs = (0..links.len()).step_by(2).map(|n| (n, n + 1));
        let inner = (1..links.len() - 1).step_by(2);
        let vnfs = inner.map(|n| [links[n].other(), links[n + 1].other()]);
        let places = spec.cores.map(Allocation::here).transpose()?;
        Ok(Topology {
            places,
            patches: pairs.collect(),
            vnfs: vnfs.collect(),
            ends: [links[0].other(), links[links.len() - 1].other()],
            links,
            spec: spec.clone(),
        })
    }

    /// The sockets that the switch makes.
    pub fn sockets(&self) -> Vec<&Path> {
        let made = self.links.iter().filter(|link| !link.kind.is_veth());
        made.map(|link| link.socket.as_path()).collect()
    }

    /// The folder of the sockets, for files of the switch.
    ///
    /// # Errors
    /// If there is no link.
    pub fn folder(&self) -> Result<&Path, String> {
        let folder = self.links.first().and_then(|link| link.socket.parent());
        folder.ok_or_else(|| "no folder for the files of the switch".to_owned())
    }

    /// As [`Topology::command`], of a program that does not end with its standard input: a shell ends it then.
    pub fn kept(&self, program: &str) -> Command {
        let mut command = self.command("sh");
        command.args(["-c", KEEPER, "sh", program]);
        command
    }

    /// A command, in the network namespace of the veth pairs if there are any, else in its own where the system allows it. Files that
    /// DPDK would leave behind are in the folder of the sockets.
    pub fn command(&self, program: &str) -> Command {
        let mut command = match self.links.iter().find(|link| link.kind.is_veth()) {
            None => in_namespace(Path::new(program)),
            Some(link) => {
                let mut command = Command::new("nsenter");
                command.arg(format!("--net=/proc/{}/ns/net", link.holder));
                command.args(["--", program]);
                command
            }
        };
        if let Ok(folder) = self.folder() {
            command.env(RUNTIME, folder);
        }
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_alternates_between_switch_and_vnfs() {
        let spec = Spec::of("loopback --vnfs 2 --ports virtio-user").unwrap();
        let topology = Topology::new(&spec, Path::new("/x"), 0).unwrap();
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
    fn files_of_dpdk_are_in_the_folder_that_is_removed() {
        for args in ["p2p", "p2p --physical veth"] {
            let spec = Spec::of(args).unwrap();
            let topology = Topology::new(&spec, Path::new("/x"), 7).unwrap();
            let command = topology.command("dpdk-testpmd");
            let set = command.get_envs().find(|(name, _)| *name == RUNTIME);
            let folder = set.and_then(|(_, value)| value);
            assert_eq!(folder.map(Path::new), Some(Path::new("/x")), "{args}");
        }
    }

    #[test]
    fn every_command_of_a_side_is_one_of_the_command_line() {
        volley_daemon::objects::register().unwrap();
        let all = [
            "memif",
            "virtio-user",
            "veth",
            "af-xdp",
            "memif --swap",
            "virtio-user --swap --packed",
            "memif --queues 4",
            "memif --swap --queues 4",
            "virtio-user --queues 4",
        ];
        for ports in all {
            let spec = Spec::of(&format!("v2v --ports {ports}")).unwrap();
            let topology = Topology::new(&spec, Path::new("/run/x"), 7).unwrap();
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
