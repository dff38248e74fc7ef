//! What an adapter consists of, and arguments that programs of DPDK share.

use crate::switch::cost::Cost;
use crate::switch::process::{Process, can_make_namespaces, is_installed};
use crate::switch::spec::Spec;
use crate::switch::topology::{Kind, Link, Scenario, Topology};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Reads what packets have cost a switch so far.
pub type AskCost = fn(&mut Process) -> Result<Cost, String>;

/// Between which ports a switch forwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Between the ports of each pair, in both directions.
    Pairs,
    /// Between the ports of one pair, in both directions.
    Pair,
    /// From the first port of one pair to the second: it routes.
    Route,
}

/// An option of a point that not every switch has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The threads of the switch are placed on processors.
    Cores,
    /// The switch replaces MAC addresses.
    Mac,
    /// The switch has a receive mode.
    RxMode,
    /// The switch joins ports as the slave or the front end.
    Swap,
    /// The switch has packed rings of vhost-user.
    Packed,
    /// The ports of the switch have several queues.
    Queues,
}

impl Choice {
    /// All of them.
    pub const ALL: [Choice; 6] = [
        Choice::Cores,
        Choice::Mac,
        Choice::RxMode,
        Choice::Swap,
        Choice::Packed,
        Choice::Queues,
    ];

    /// Name on the command line.
    pub fn option(self) -> &'static str {
        match self {
            Choice::Cores => "--cores",
            Choice::Mac => "--mac",
            Choice::RxMode => "--rx-mode",
            Choice::Swap => "--swap",
            Choice::Packed => "--packed",
            Choice::Queues => "--queues",
        }
    }

    /// Whether a point has the option.
    pub fn is_made(self, spec: &Spec) -> bool {
        match self {
            Choice::Cores => spec.cores.is_some(),
            Choice::Mac => spec.mac,
            Choice::RxMode => spec.rx_mode.is_some(),
            Choice::Swap => spec.swap,
            Choice::Packed => spec.packed,
            Choice::Queues => spec.queues > 1,
        }
    }

    /// The ports that the option is for; empty for all.
    pub fn kinds(self) -> &'static [Kind] {
        match self {
            Choice::Swap => &[Kind::Memif, Kind::VirtioUser],
            Choice::Packed => &[Kind::VirtioUser],
            Choice::Queues => &[Kind::Memif, Kind::VirtioUser],
            _ => &[],
        }
    }
}

/// A switch that can be measured.
pub struct Adapter {
    /// Name, as in `--peer`.
    pub name: &'static str,
    /// Name in the report.
    pub title: &'static str,
    /// Program in PATH; none for this program.
    pub program: Option<&'static str>,
    /// Ports that the switch can have.
    pub kinds: &'static [Kind],
    /// Options that it has.
    pub choices: &'static [Choice],
    /// Between which ports it forwards.
    pub reach: Reach,
    /// Queues on which the switch transmits to a memif port; the slave on the other side makes them.
    pub memif_queues: u16,
    /// Start it with the links of the topology; the second argument is this program.
    pub start: fn(&Topology, &Path) -> Result<Process, String>,
    /// Read what packets have cost so far, if the switch can say it.
    pub cost: Option<AskCost>,
}

/// All kinds of ports.
pub const ALL: &[Kind] = &[Kind::Memif, Kind::VirtioUser, Kind::Veth];
/// Options that [`dpdk_device`] passes on to a program of DPDK.
pub const DPDK: &[Choice] = &[Choice::Swap, Choice::Packed];

impl Adapter {
    /// Why the switch is skipped; none if it can be started.
    pub fn missing(&self) -> Option<String> {
        if let Some(program) = self.program.filter(|program| !is_installed(program)) {
            return Some(format!("no program {program} in PATH"));
        }
        match self.kinds == [Kind::Veth] && !can_make_namespaces() {
            true => Some("this user may not make network namespaces: run the lab as root".into()),
            false => None,
        }
    }

    /// Whether the switch can have all these ports.
    pub fn has(&self, kinds: &[Kind]) -> bool {
        kinds.iter().all(|kind| self.kinds.contains(kind))
    }

    /// Why the switch cannot forward between the ports of a point; none if it can.
    pub fn out_of_reach(&self, spec: &Spec) -> Option<String> {
        let name = self.name;
        let is_chain = spec.scenario == Scenario::Loopback;
        match self.reach {
            Reach::Pair | Reach::Route if is_chain => Some(format!(
                "{name} forwards between one pair of ports: choose p2p, p2v or v2v instead of loopback"
            )),
            Reach::Route if spec.both => Some(format!(
                "--both: {name} routes from the first port to the second: leave --both out"
            )),
            Reach::Route if spec.reverse => Some(format!(
                "--reverse: {name} routes from the first port to the second: leave --reverse out"
            )),
            _ => None,
        }
    }
}

/// A virtual device of DPDK for a link, as the side of the switch.
pub fn dpdk_device(link: &Link) -> String {
    let (number, socket) = (link.number, link.socket.display());
    let queues = match link.queues {
        1 => String::new(),
        queues => format!(",queues={queues}"),
    };
    match link.kind {
        Kind::Memif => {
            let role = if link.is_swapped { "client" } else { "server" };
            format!("net_memif{number},role={role},id=0,socket={socket},socket-abstract=no")
        }
        Kind::VirtioUser if link.is_swapped => {
            let packed = u8::from(link.is_packed);
            format!(
                "net_virtio_user{number},path={socket},queue_size=1024,packed_vq={packed}{queues}"
            )
        }
        Kind::VirtioUser => format!("net_vhost{number},iface={socket}{queues}"),
        Kind::Veth | Kind::AfXdp => format!("net_af_packet{number},iface={}", link.device()),
    }
}

/// Arguments of DPDK's environment, without huge pages and cards, that choose no core and no port.
pub fn dpdk_memory() -> Vec<String> {
    let mut all: Vec<String> = [
        "--no-huge",
        "-m",
        "512",
        "--no-pci",
        "--no-shconf",
        "--no-telemetry",
    ]
    .map(str::to_owned)
    .to_vec();
    all.push(format!("--file-prefix=volley-lab-{}", std::process::id()));
    all
}

/// The main lcore and those that forward, on their processors.
fn lcores(topology: &Topology) -> String {
    let Some(places) = &topology.places else {
        let last = std::thread::available_parallelism().map_or(1, usize::from) - 1;
        return format!("--lcores=0@(0-{last}),1@(0-{last})");
    };
    let mut all = format!("--lcores=0@{}", places.control);
    for (n, place) in places.workers.iter().enumerate() {
        all += &format!(",{}@{place}", n + 1);
    }
    all
}

/// Arguments of DPDK's environment: main lcore and the others, by default one on any of the processors, and a device for each link.
pub fn dpdk_arguments(topology: &Topology) -> Vec<String> {
    let mut all = dpdk_memory();
    all.push(lcores(topology));
    let devices = topology.links.iter().map(dpdk_device);
    all.extend(devices.map(|device| format!("--vdev={device}")));
    all
}

/// A file of the switch in the folder of the sockets.
///
/// # Errors
/// A sentence, if the file cannot be written.
pub fn write(topology: &Topology, name: &str, text: &str) -> Result<PathBuf, String> {
    write_bytes(topology, name, text.as_bytes())
}

/// As [`write()`], for a file that is no text.
///
/// # Errors
/// A sentence, if the file cannot be written.
pub fn write_bytes(topology: &Topology, name: &str, bytes: &[u8]) -> Result<PathBuf, String> {
    let file = topology.folder()?.join(name);
    let written = volley_file::create(&file).and_then(|mut out| out.write_all(bytes));
    written.map_err(|e| format!("{}: {e}", file.display()))?;
    Ok(file)
}

/// The line by which a script says that the switch forwards.
const READY: &str = "volley-lab: the switch is ready";

/// What scripts begin with: `run PROGRAM...` starts a program, and each turn of a loop that waits is an `await WHAT`, whose number is limited:
/// the shell would not notice the end of the lab.
const BEFORE: &str = r#"exec 2>&1
pids=''
run() { setpriv --pdeathsig KILL -- "$@" & pids="$pids $!"; }
trap '[ -z "$pids" ] || kill $pids 2>/dev/null' EXIT
turns=0
await() {
    turns=$((turns + 1))
    if [ $turns -gt 300 ]; then echo "no $1"; exit 1; fi
    sleep 0.05
}"#;

/// Start a shell, in the namespace of the veth pairs, that runs a script and then waits until its standard input is closed.
/// A program that the script starts by `run` ends with the shell. The kernel does not kill a program that has changed its user with its
/// parent, so the shell sends a signal to each.
///
/// # Errors
/// The last line of the script's output, if a command fails.
pub fn script(what: &str, topology: &Topology, text: &str) -> Result<Process, String> {
    let mut command = topology.command("sh");
    command.args(["-ec", &format!("{BEFORE}\n{text}\necho '{READY}'\ncat\n")]);
    Process::start(what, command, READY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocation::Places;
    use crate::switch::Spec;

    #[test]
    fn devices_of_dpdk() {
        let spec = Spec::of("p2v").unwrap();
        let topology = Topology::new(&spec, Path::new("/x"), 0).unwrap();
        let arguments = dpdk_arguments(&topology);
        let devices: Vec<&String> = arguments.iter().filter(|a| a.contains("--vdev")).collect();
        assert!(devices[0].contains("net_memif0,role=server,id=0,socket=/x/0.sock"));
        assert_eq!(devices[1], "--vdev=net_vhost1,iface=/x/1.sock");
        let placed = Topology {
            places: Some(Places {
                control: 0,
                workers: vec![3, 3],
                generator: 0,
            }),
            ..topology
        };
        assert_eq!(lcores(&placed), "--lcores=0@0,1@3,2@3");
        for (ports, device) in [
            ("", "net_vhost0,iface=/x/0.sock,queues=4"),
            (
                " --swap",
                "net_virtio_user0,path=/x/0.sock,queue_size=1024,packed_vq=0,queues=4",
            ),
        ] {
            let spec = Spec::of(&format!("v2v --queues 4{ports}")).unwrap();
            let topology = Topology::new(&spec, Path::new("/x"), 0).unwrap();
            assert_eq!(dpdk_device(&topology.links[0]), device);
        }
    }
}
